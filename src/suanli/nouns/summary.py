"""One rank of a trace in columns: what is left of it once its own account is made, small enough for thousands of ranks.

The columns stand in a Parquet file under these names, so any tool reads them; `RankAbout` stands in its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.explained import DeviceAccount
from suanli.nouns.trace import TraceFault

Column = Any  # a one-dimensional numpy array; nouns never import numpy

SCHEMA = 1  # of the file: it grows when a column or a field changes its meaning
WORD = "word"  # a column of text: in memory an int32 place in `RankSummary.words`, -1 for none


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


# Name of the column, its type, what it holds. Numbers that are not said are -1 in memory and null in the file.
COLUMNS: Mapping[str, tuple[str, str]] = {
    "device": ("int32", "number of the device in the trace"),
    "stream": ("int64", "stream, queue or line"),
    "start_ns": ("int64", "on the clock of the rank"),
    "duration_ns": ("int64", "impossible durations cut"),
    "name": (WORD, "kernel, copy or set, as printed"),
    "work_class": (WORD, "matmul, compute, communication, peer copy, copy"),
    "step": (WORD, "step that launched it"),
    "formula": (WORD, "id of the formula its FLOPs come from"),
    "flops": ("float64", "its share of the FLOPs of its operator"),
    "collective": (WORD, "all-reduce, all-gather …, or as the kernel is called"),
    "call": (WORD, "the call as the file prints it: send, recv, _allgather_base …"),
    "group": (WORD, "process group or communicator"),
    "group_label": (WORD, "its description"),
    "members": (WORD, "its ranks, separated by commas, where listed in full"),
    "group_size": ("int32", "ranks of the group"),
    "sequence": ("int64", "number of the call within its group"),
    "nth": ("int32", "of the calls of one name in one group with one sequence, or in one step where none has a number"),
    "bytes": ("int64", "of the whole tensor"),
    "in_bytes": ("int64", "sent in by this rank"),
    "out_bytes": ("int64", "that come out at this rank"),
    "peer": ("int32", "rank at the other end of a send or receive, as printed"),
}
WORDS = tuple(name for name, (kind, _) in COLUMNS.items() if kind == WORD)


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """One step of one device, on the clock of its rank."""

    name: str = _field("", "as marked, or its number")
    device: int = _field("", "number in the trace")
    start_ns: int = _field("ns", "first start of its work")
    end_ns: int = _field("ns", "first start of the next step's work, or the last end of its own")
    seconds: float = _field("s", "between the two")
    compute_s: float = _field("s", "union of kernels that do not communicate")
    communication_s: float = _field("s", "union of communication")
    exposed_communication_s: float = _field("s", "communication less compute")
    idle_s: float = _field("s", "nothing runs")


@dataclass(frozen=True, kw_only=True)
class RankAbout:
    """What a summary says beside its columns."""

    schema: int = _field("", "of the file", default=SCHEMA)
    version: str = _field("", "of the program that wrote it")
    path: str = _field("", "of the trace, as given")
    format: str = _field("", "of the trace")
    producer: str = _field("", "who wrote the trace", default="")
    rank: int | None = _field("", "as the trace says; None: it does not", default=None)
    world_size: int | None = _field("ranks", "as the trace says", default=None)
    host: str | None = _field("", "machine, where the file name tells; None: it does not", default=None)
    digest: str = _field("", "BLAKE2b of the trace file, 128 bits", default="")
    size_bytes: int = _field("B", "of the trace file, as it lies there", default=0)
    mtime_ns: int = _field("ns", "when the trace file was last written", default=0)
    bytes_read: int = _field("B", "of the trace, unpacked", default=0)
    gpu: str | None = _field("", "device that was named in place of the trace's own", default=None)
    devices: tuple[DeviceAccount, ...] = _field("", "each device over its whole window", default=())
    links: Mapping[int, float | None] = _field(
        "B/s", "link of each device within its node, both directions; None: not known", default_factory=dict
    )
    steps: tuple[StepTime, ...] = _field("", "each step on each device", default=())
    steps_found: str = _field("", "how steps were told apart, or why not", default="")
    warnings: tuple[TraceFault, ...] = _field("", "what is wrong with the trace, or missing", default=())


@dataclass(frozen=True, kw_only=True, eq=False)
class RankSummary:
    """One trace in columns: a row a piece of device work, in the order of the trace."""

    about: RankAbout = _field("", "what is said of the whole")
    columns: Mapping[str, Column] = _field("", "one array a name of COLUMNS")
    words: Mapping[str, tuple[str, ...]] = _field("", "of each column of text, what its numbers stand for")

    def __len__(self) -> int:
        """Pieces of device work."""
        return len(self.columns["start_ns"])

    def texts(self, column: str) -> list[str | None]:
        """A column of text, row by row."""
        words = (*self.words[column], None)
        return [words[place] for place in self.columns[column]]
