"""`suanli.summarise`, and many ranks for `suanli.explain`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suanli.api.request import Request
from suanli.errors import Fault, InputError, UnreadableFileError, shown
from suanli.nouns.result import Result
from suanli.nouns.summarised import Summarised, SummaryFile
from suanli.written import write_bytes

if TYPE_CHECKING:
    from suanli.explain.fleet.pool import Fleet
    from suanli.fleet.run import Made, Progress
    from suanli.fleet.store import Store
    from suanli.nouns.fleet import LostRank
    from suanli.nouns.summary import RankAbout

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
SOURCES = ("clocks aligned by collectives: the ends of one call differ by the clocks of its ranks",)
MOST_WORKERS = 4096


def summarise(
    traces: Paths,
    output: str | os.PathLike[str] | None = None,
    *,
    gpu: str | None = None,
    engine: str = "local",
    workers: Any = None,
    progress: Progress | None = None,
) -> Result:
    """One trace → a summary of it as Parquet in the file `output`; several, or a folder → a folder of summaries.

    A summary holds the account of each device, and device work in columns; `explain` takes folders of them. One
    that is in the folder already, of the same trace, is not made again. What cannot be read is told in its row.
    Raises InputError for options and paths that are wrong, or one trace that cannot be read.
    """
    from suanli.fleet.inputs import find_inputs  # noqa: PLC0415  numpy comes with the first trace alone

    request = Request()
    device = request.attempt(lambda: _gpu(gpu))
    engine_ = request.attempt(lambda: _engine(engine))
    count = request.attempt(lambda: _workers(workers))
    found = request.attempt(lambda: find_inputs(_listed(traces), summaries=False))
    if output is None:
        request.fault("missing_option", "a place for the summary is needed", "output", expected="-o FILE.parquet",
                      hint="With several traces: -o FOLDER.")  # fmt: skip
    request.check()
    assert found is not None and engine_ is not None and output is not None
    target = Path(output)
    if len(found.traces) == 1 and not target.is_dir() and target.suffix == ".parquet":
        rows = [_one(found.traces[0], target, device)]
    else:
        rows = _several(found.traces, target, device, engine_, count, progress)
    inputs = {"traces": [str(each) for each in _listed(traces)], "output": str(output), "gpu": gpu, "engine": engine}
    return Result(
        kind="summarise",
        inputs={key: value for key, value in inputs.items() if value is not None},
        result=Summarised(files=tuple(rows), ignored=found.ignored),
        ok=any(row.output for row in rows),
    )


def explain_folder(
    paths: Paths,
    *,
    gpu: str | None = None,
    engine: str = "local",
    workers: Any = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Where the time of many ranks went: traces, summaries of traces, and folders of both.

    `engine` is local (a process a core), ray, or ray://HOST:PORT. Summaries are kept in the folder `cache` and taken
    from there the next time; without it they are thrown away. Files that cannot be read are told, the rest goes on.
    Raises InputError for options and paths that are wrong, ranks that come twice, and where nothing could be read.
    """
    from suanli.explain.fleet.whole import report_of  # noqa: PLC0415  numpy comes with the first trace alone
    from suanli.fleet.inputs import find_inputs  # noqa: PLC0415

    request = Request()
    device = request.attempt(lambda: _gpu(gpu))
    engine_ = request.attempt(lambda: _engine(engine))
    count = request.attempt(lambda: _workers(workers))
    found = request.attempt(lambda: find_inputs(_listed(paths)))
    request.check()
    assert found is not None and engine_ is not None
    with ExitStack() as stack:
        store = _store(cache, device, found.traces, stack)
        made = _all(found.traces, store, engine_, count, progress)
        files = [each.summary for each in made if each.summary is not None]
        lost = _lost(made)
        fleet, notes = _pooled([*files, *map(Path, found.summaries)], lost)
    report = report_of(fleet, lost, (*notes, *_ignored(found.ignored)))
    inputs = {"traces": [str(each) for each in _listed(paths)], "gpu": gpu, "engine": engine,
              "cache": None if cache is None else str(cache)}  # fmt: skip
    return Result(
        kind="explain",
        inputs={key: value for key, value in inputs.items() if value is not None},
        result=report,
        sources=SOURCES,
        notes=() if cache is not None or not found.traces else ("summaries are not kept: name a folder with --cache",),
    )


def _listed(paths: Paths) -> list[str | os.PathLike[str]]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def _gpu(gpu: str | None) -> str | None:
    from suanli.catalog.devices import find_device  # noqa: PLC0415

    return None if gpu is None else find_device(gpu).short_id


def _engine(engine: Any) -> str:
    from suanli.fleet.run import check_engine  # noqa: PLC0415

    return check_engine(str(engine))


def _workers(value: Any) -> int | None:
    if value is None:
        return None
    text = str(value).strip()
    if text.isdigit() and 1 <= int(text) <= MOST_WORKERS:
        return int(text)
    raise InputError(
        Fault(code="bad_workers", message="no number of processes", where="--workers", got=shown(value),
              expected=f"a whole number from 1 to {MOST_WORKERS:,}")
    )  # fmt: skip


def _store(cache: Any, gpu: str | None, traces: Sequence[str], stack: ExitStack) -> Store:
    from suanli.fleet.store import Store  # noqa: PLC0415

    if cache is None:
        return Store(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="suanli-"))), gpu)
    folder = Path(cache)
    if folder.exists() and any(Path(each).resolve().parent == folder.resolve() for each in traces):
        raise InputError(
            Fault(code="cache_beside_inputs", message="summaries are not kept among the traces", where="--cache",
                  got=str(cache), hint="Name another folder.")
        )  # fmt: skip
    return Store(folder, gpu)


def _all(
    traces: Sequence[str], store: Store, engine: str, workers: int | None, progress: Progress | None
) -> tuple[Made, ...]:
    from suanli.fleet.run import summarise_all  # noqa: PLC0415

    return summarise_all(traces, store, engine, workers, progress)


def _lost(made: Iterable[Made]) -> list[LostRank]:
    from suanli.explain.fleet.ranks import rank_of_name  # noqa: PLC0415
    from suanli.nouns.fleet import LostRank  # noqa: PLC0415

    found = []
    for each in made:
        if each.faults:
            rank = rank_of_name(each.path)
            reason = "; ".join(_reason(fault) for fault in each.faults)
            found.append(LostRank(path=each.path, ranks="" if rank is None else str(rank), reason=reason))
    return found


def _reason(fault: Fault) -> str:
    return fault.message + (f", got {fault.got}" if fault.got else "")


def _pooled(files: Sequence[Path], lost: list[LostRank]) -> tuple[Fleet, tuple[str, ...]]:
    """The fleet of the summaries that can be read; the others join `lost`. Each is in memory once."""
    from suanli.explain.fleet.pool import NEEDED, pool  # noqa: PLC0415
    from suanli.explain.fleet.ranks import rank_all  # noqa: PLC0415
    from suanli.nouns.fleet import LostRank  # noqa: PLC0415
    from suanli.readers.summaries import read_about, read_summary  # noqa: PLC0415

    abouts: list[RankAbout] = []
    kept: list[Path] = []
    for path in files:
        try:
            abouts.append(read_about(path))
            kept.append(path)
        except UnreadableFileError as problem:
            lost.append(LostRank(path=str(path), ranks="", reason=_reason(problem.faults[0])))
    ranked = rank_all(abouts)

    def read() -> Iterable[Any]:
        for rank, place in zip(ranked.ranks, ranked.places, strict=True):
            try:
                yield rank, read_summary(kept[place], NEEDED)
            except UnreadableFileError as problem:
                lost.append(LostRank(path=str(kept[place]), ranks=str(rank), reason=_reason(problem.faults[0])))

    fleet = pool(read())
    if not fleet.units:
        _nothing(lost, len(files))
    return fleet, ranked.notes


def _nothing(lost: Sequence[LostRank], files: int) -> None:
    faults = [Fault(code="unreadable", message=each.reason, where=each.path) for each in lost]
    if not faults:
        faults = [Fault(code="no_device_work", message=f"none of {files} traces has work of a device", where="TRACE",
                        hint="Profile with the activities of the device switched on.")]  # fmt: skip
    raise UnreadableFileError(*faults)


def _ignored(paths: Sequence[str]) -> tuple[str, ...]:
    """What of the folders was not read: files of other names, and runs that stand there twice."""
    from suanli.fleet.inputs import TRACES  # noqa: PLC0415

    again = [each for each in paths if each.lower().endswith(TRACES)]
    others = [each for each in paths if each not in set(again)]
    found = (("files in the folders that are not called like traces, left alone", others),
             ("files in the folders that hold the run of another once more, left alone", again))  # fmt: skip
    return tuple(f"{said}: {len(held)} ({_first(held)})" for said, held in found if held)


def _first(paths: Sequence[str]) -> str:
    return ", ".join(Path(each).name for each in paths[:3]) + (" …" if len(paths) > 3 else "")


def _one(trace: str, target: Path, gpu: str | None) -> SummaryFile:
    from suanli.fleet.job import Job, summarise_job  # noqa: PLC0415
    from suanli.fleet.store import source_of  # noqa: PLC0415

    if not target.parent.is_dir():  # told before the work, not after it
        raise UnreadableFileError(
            Fault(code="no_folder", message="there is no such folder", where="--output", got=str(target.parent))
        )
    done = summarise_job(Job(source_of(trace), gpu))
    if done.content is None:
        raise UnreadableFileError(*done.faults)
    write_bytes(target, done.content)
    return _file(trace, target, reused=False)


def _several(
    traces: Sequence[str], target: Path, gpu: str | None, engine: str, workers: int | None, progress: Progress | None
) -> list[SummaryFile]:
    if not traces:
        raise UnreadableFileError(
            Fault(code="no_traces", message="there are only summaries, and no trace to summarise", where="TRACE",
                  hint="`suanli explain` takes them as they are.")
        )  # fmt: skip
    message = "a summary is a Parquet file" if len(traces) == 1 else f"{len(traces)} summaries need a folder"
    if target.suffix and not target.is_dir():
        raise InputError(
            Fault(code="not_a_folder", message=message, where="--output",
                  got=str(target), expected="a folder, or one trace and a file ending in .parquet")
        )  # fmt: skip
    with ExitStack() as stack:
        store = _store(target, gpu, traces, stack)
        made = _all(traces, store, engine, workers, progress)
    return [
        _file(each.path, each.summary, reused=each.reused) if each.summary is not None
        else SummaryFile(path=each.path, reasons={"output": "; ".join(map(_reason, each.faults))})
        for each in made
    ]  # fmt: skip


def _file(trace: str, output: Path, *, reused: bool) -> SummaryFile:
    from suanli.readers.summaries import read_about  # noqa: PLC0415

    about = read_about(output)
    return SummaryFile(
        path=trace,
        output=str(output),
        rank=about.rank,
        devices=len(about.devices),
        steps=len(about.steps),
        work=sum(each.work for each in about.devices),
        trace_bytes=about.size_bytes,
        summary_bytes=output.stat().st_size,
        reused=reused,
        reasons={} if about.rank is not None else {"rank": "the trace does not say it"},
    )
