"""Which files are traces of ranks: those named, and those of folders, in the order people count in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from suanli.errors import FaultList, UnreadableFileError
from suanli.readers import gate
from suanli.readers.summaries import is_summary

# Names that profilers give their files; others in a folder (logs, plots) are left alone, and said.
TRACES = (
    ".json", ".json.gz", ".json.zip", ".zip", ".sqlite", ".xplane.pb", ".xplane.pb.gz", ".parquet", ".nsys-rep",
)  # fmt: skip
# One run twice: what a profiler wrote, or somebody exported, stands beside the other; the first is read.
_TWICE = ((".xplane.pb", ".trace.json.gz"), (".xplane.pb", ".trace.json"), (".sqlite", ".nsys-rep"))
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Inputs:
    """Files by what they are, each list in natural order."""

    traces: tuple[str, ...]
    summaries: tuple[str, ...]
    ignored: tuple[str, ...] = ()  # of folders, because of their names

    def __len__(self) -> int:
        """Files that will be read."""
        return len(self.traces) + len(self.summaries)


def natural(text: str) -> tuple[object, ...]:
    """A key that sorts rank2 before rank10."""
    parts = _DIGITS.split(text)
    return tuple((0, int(part)) if place % 2 else (1, part.lower()) for place, part in enumerate(parts)), text


def find_inputs(paths: Iterable[str | os.PathLike[str]], *, summaries: bool = True) -> Inputs:
    """Traces, and summaries where these are wanted, among files and in folders, theirs too.

    Raises UnreadableFileError that lists every path that is not there, and every folder without any trace.
    """
    faults = FaultList(UnreadableFileError)
    files: list[str] = []
    ignored: list[str] = []
    for path in paths:
        gate.check_path(path, "TRACE")
        place = Path(path)
        if place.is_dir():
            found = _of_folder(place)
            named = _once([each for each in found if each.name.lower().endswith(TRACES)])
            ignored += [str(each) for each in found if each not in set(named)]
            files += [str(each) for each in named]
            if not named:
                faults.add(code="no_traces", message="the folder holds no traces", where=str(place),
                           got=_others(len(found)),
                           expected="files ending in " + ", ".join(TRACES))  # fmt: skip
        elif place.exists():
            files.append(str(place))
        else:
            faults.add(code="no_file", message="there is no such file or folder", where=str(place),
                       hint="Check the path.")  # fmt: skip
    faults.raise_if_any()
    return _sorted(dict.fromkeys(files), ignored, summaries)


def _others(count: int) -> str:
    return "no file" if not count else "1 other file" if count == 1 else f"{count:,} other files"


def _of_folder(folder: Path) -> list[Path]:
    return [
        each for each in folder.rglob("*")
        if each.is_file() and not any(part.startswith(".") for part in each.relative_to(folder).parts)
    ]  # fmt: skip


def _once(files: list[Path]) -> list[Path]:
    """Without files that hold the run of another once more."""
    there = {str(each) for each in files}
    again = {
        each for each in files for first, second in _TWICE
        if each.name.endswith(second) and str(each).removesuffix(second) + first in there
    }  # fmt: skip
    return [each for each in files if each not in again]


def _sorted(files: Iterable[str], ignored: Sequence[str], wanted: bool) -> Inputs:
    ordered = sorted(files, key=natural)
    parquet = [each for each in ordered if is_summary(each)]
    rest = tuple(each for each in ordered if each not in set(parquet))
    return Inputs(rest, tuple(parquet) if wanted else (), tuple(sorted(ignored, key=natural)))
