"""`suanli.scale`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suanli.api.request import Request
from suanli.catalog.scaling import usual
from suanli.errors import FaultList, InputError, SuanliError, shown, unknown_name
from suanli.nouns.result import Result
from suanli.nouns.scaling import METRICS, Series, Size
from suanli.plan.scale import analyse
from suanli.readers.sizes import MOST_GPUS, read_figure, read_sizes
from suanli.units import parse

ALIASES = {"time": "step_time_s", "tokens": "tokens_per_s", "samples": "samples_per_s", "tflops": "tflops_per_gpu"}
MOST_PROJECTED = 1000


def scale(
    file: str | Path | None = None,
    *,
    points: str | Mapping[int, float] | Sequence[Any] | None = None,
    metric: str | None = None,
    project: Any = None,
    series: str | None = None,
    global_batch: Any = None,
) -> Result:
    """Linear speed-up of a series of sizes, its law, and a projection to more GPUs.

    `points` is text like `64:1.0,128:1.9`, a mapping of GPUs to figures, or results of `suanli.mfu`. Raises InputError
    listing every fault.

    >>> result = scale(points="3072:23.66,12288:6.34", metric="step_time_s")
    >>> round(result.pairs[0].ratio, 5)
    0.93297
    """
    request = Request()
    name = None if metric is None else request.attempt(lambda: _metric(metric))
    batch = request.whole("global_batch", global_batch, low=1)
    more = request.attempt(lambda: _projected(project))
    found = None
    if (file is None) == (points is None):
        request.fault("contradiction" if file is not None else "missing_option", "one series of sizes is needed",
                      "points", expected="a CSV file, or --points 64:1.0,128:1.9 with --metric")  # fmt: skip
    elif file is not None:
        found = request.attempt(lambda: _of_file(file, series, batch))
    else:
        found = request.attempt(lambda: _typed(points, name, metric, batch))
    if found is not None and name is not None and name not in found.shared:
        request.fault("no_common_metric", f"{name} is not there for every size", "metric",
                      expected="one of " + ", ".join(found.shared))  # fmt: skip
    if found is not None and more and min(more) <= found.sizes[-1].gpus:
        request.fault("bad_project", "a projection is to more GPUs than were measured", "project", got=shown(project),
                      expected=f"above {found.sizes[-1].gpus:,}")  # fmt: skip
    request.check()
    assert found is not None and more is not None
    known = usual()
    books = analyse(found, by=name, project=more, slope=known.slope_per_doubling, width=known.interval_units)
    given = {"file": None if file is None else str(file), "points": points, "metric": metric, "project": project,
             "series": series, "global_batch": global_batch}  # fmt: skip
    return Result(
        kind="scale",
        inputs={key: _plain(value) for key, value in given.items() if value is not None},
        result=books,
        sources=(
            "Amdahl 1967; Gustafson 1988; Gunther 1993 (universal scalability law)",
            "usual slope and width of intervals: published series, see `suanli verify --only scaling`",
        ),
        notes=_notes(books.projection, known.slope_per_doubling),
        asked={"series": found},
    )


def _of_file(file: Any, series: str | None, batch: int | None) -> Series:
    """The series of a file. A global batch is its rows' to say."""
    if not isinstance(file, str | Path):
        raise _fault("no_file", "not a file", "FILE.csv", shown(file), "the path of a CSV file")
    if batch is not None:
        raise _fault("contradiction", "a file says the batch itself", "--global-batch", f"{batch:,}",
                     "a column global_batch; the option is for --points")  # fmt: skip
    return read_sizes(Path(file).expanduser(), series)


def _count(value: Any, where: str) -> int | None:
    """A number of GPUs, None where it is none."""
    try:
        found = parse(str(value).strip(), "count", where)
    except SuanliError:
        return None
    return int(found) if 1 <= found <= MOST_GPUS and float(found).is_integer() else None


def _notes(projection: Sequence[Any], slope: float) -> tuple[str, ...]:
    if not projection:
        return ()
    return (f"a power law's slope leans on what is usual, {slope:+.2%} for each doubling; intervals hold 90 %",)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else shown(value, 200)


def _metric(text: str) -> str:
    name = str(text).strip().lower().replace("-", "_")
    name = ALIASES.get(name, name)
    if name not in METRICS:
        raise unknown_name(
            "metric", str(text), (*METRICS, *ALIASES), where="--metric", hint="Say what the figures are."
        )
    return name


def _projected(text: Any) -> tuple[int, ...]:
    """`8192,16384` as numbers of GPUs. Raises InputError."""
    if text is None:
        return ()
    parts = text if isinstance(text, list | tuple) else str(text).split(",")
    found = [_count(part, "--project") for part in parts]
    if not found or len(found) > MOST_PROJECTED or None in found:
        raise _fault(
            "bad_project", "not numbers of GPUs", "--project", shown(text), f"like 8192,16384; at most {MOST_GPUS:,}"
        )
    return tuple(each for each in found if each is not None)


def _typed(points: Any, name: str | None, metric: str | None, batch: int | None) -> Series:
    """Typed points, or results of `mfu`, as a series. Raises InputError with every fault."""
    faults = FaultList(InputError)
    if not isinstance(points, str | Mapping | Sequence):
        raise _fault("bad_points", "not points", "--points", shown(points), _POINTS)
    if not isinstance(points, str | Mapping) and points and all(getattr(each, "kind", "") == "mfu" for each in points):
        return _of_runs(points)
    if name is None:
        if metric is None:
            faults.add(code="missing_option", message="points need to say what they are", where="--metric",
                       expected="one of " + ", ".join(METRICS))  # fmt: skip
        faults.raise_if_any()
        raise _fault("missing_option", "points need a known metric", "--metric", shown(metric), ", ".join(METRICS))
    pairs = points.items() if isinstance(points, Mapping) else _pairs(points)
    sizes = []
    for gpus, value in pairs:
        count = _count(gpus, "--points")
        figure = read_figure(name, str(value).strip(), "--points", faults)
        if count is None:
            faults.add(code="bad_gpus", message="gpus is not possible", where="--points", got=shown(gpus),
                       expected=f"a whole number, 1 to {MOST_GPUS:,}")  # fmt: skip
        elif figure is not None:
            sizes.append(Size(gpus=count, figures={name: figure}, global_batch=batch))
    faults.raise_if_any()
    return Series(name="--points", sizes=tuple(sorted(sizes, key=lambda size: size.gpus)))


_POINTS = "text like 64:1.0,128:1.9, a mapping of GPUs to figures, pairs, or results of suanli.mfu"


def _pairs(points: Any) -> list[tuple[Any, Any]]:
    """GPUs and figures as given. Raises InputError for what is no pairs."""
    if not isinstance(points, str):
        pairs = [each if isinstance(each, tuple | list) else (each,) for each in points]
        if any(len(each) != 2 for each in pairs):
            raise _fault("bad_points", "not pairs of GPUs and figures", "--points", shown(points), _POINTS)
        return [(each[0], each[1]) for each in pairs]
    split = [part.partition(":") for part in points.split(",") if part.strip()]
    return [(gpus, value) for gpus, _, value in split]


def _of_runs(runs: Sequence[Any]) -> Series:
    """Results of `suanli.mfu` as sizes."""
    sizes = []
    for run in runs:
        found = FaultList(InputError)
        figures = {
            "tokens_per_s_per_gpu": read_figure(
                "tokens_per_s_per_gpu", repr(run.tokens_per_second_per_gpu), "mfu", found
            ),
        }
        if run.mfu is not None:
            figures["mfu"] = read_figure("mfu", repr(run.mfu), "mfu", found)
        sizes.append(Size(gpus=run.gpus, figures={name: each for name, each in figures.items() if each is not None}))
    return Series(name="results of mfu", sizes=tuple(sorted(sizes, key=lambda size: size.gpus)))


def _fault(code: str, message: str, where: str, got: str, expected: str) -> InputError:
    faults = FaultList(InputError)
    faults.add(code=code, message=message, where=where, got=got, expected=expected)
    return InputError(*faults.faults)
