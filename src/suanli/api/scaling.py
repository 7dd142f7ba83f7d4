"""`suanli.scale`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suanli.api.keeping import keeps_request, written
from suanli.api.parts import assumed_line
from suanli.api.request import Request
from suanli.catalog.scaling import usual
from suanli.errors import FaultList, InputError, SuanliError, shown, unknown_name
from suanli.nouns.result import Result
from suanli.nouns.scaling import METRICS, Scaling, Series, Size
from suanli.plan.laws import PLANNER
from suanli.plan.scale import analyse
from suanli.readers.results import SUFFIX
from suanli.readers.sizes import MOST_GPUS, check_units, read_figure, read_sizes, series_of, with_batch
from suanli.readers.sizes_of_runs import read_runs, sizes_of_runs
from suanli.units import parse

ALIASES = {"time": "step_time_s", "tokens": "tokens_per_s", "samples": "samples_per_s", "tflops": "tflops_per_gpu"}
MOST_PROJECTED = 1000
PLANNED = ("gpu", "pin", "seq", "dtype", "stack", "fabric")  # options of the planner
ONE_SERIES = "FILE.csv, JSON files of `suanli mfu`, or --points 64:1.0,128:1.9 with --metric"


@keeps_request
def scale(
    file: str | Path | Sequence[str | Path] | None = None,
    *,
    points: str | Mapping[int, float] | Sequence[Any] | None = None,
    metric: str | None = None,
    project: Any = None,
    series: str | None = None,
    global_batch: Any = None,
    model: Any = None,
    gpu: str | None = None,
    pin: str | Mapping[str, Any] | None = None,
    seq: Any = None,
    dtype: str | None = None,
    stack: str | None = None,
    fabric: str | None = None,
) -> Result:
    """Linear speed-up of a series of sizes, its law, and a projection to more GPUs.

    `file` is a CSV, or JSON files of `suanli mfu`; `points` is text like `64:1.0,128:1.9`, a mapping of GPUs to
    figures, or results of `suanli.mfu`. With `model` and `gpu` the planner of layouts is a law too (`pin`, `seq`,
    `dtype`, `stack`, `fabric` as for `layout`). Raises InputError listing every fault.

    >>> result = scale(points="3072:23.66,12288:6.34", metric="step_time_s")
    >>> round(result.pairs[0].ratio, 5)
    0.93297
    """
    request = Request()
    name = None if metric is None else request.attempt(lambda: _metric(metric))
    batch = request.whole("global_batch", global_batch, low=1)
    more = request.attempt(lambda: _projected(project))
    found = None
    given = {"file": file, "points": points, "metric": metric, "project": project, "series": series,
             "global_batch": global_batch, "model": model, "gpu": gpu, "pin": pin, "seq": seq, "dtype": dtype,
             "stack": stack, "fabric": fabric}  # fmt: skip
    asked = None
    if any(given[name] is not None for name in ("model", *PLANNED)):
        from suanli.api.scale_planned import read_asked  # noqa: PLC0415  the planner comes where it is asked

        asked = read_asked(request, model, given)
    if (file is None) == (points is None):
        request.fault("contradiction" if file is not None else "missing_option", "one series of sizes is needed",
                      "points", expected=ONE_SERIES)  # fmt: skip
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
    planner = None if asked is None else asked.plan(found, more)
    books = analyse(found, by=name, project=more, slope=known.slope_per_doubling, width=known.interval_units,
                    planner=planner)  # fmt: skip
    return Result(
        kind="scale",
        inputs={key: written(value) for key, value in given.items() if value is not None} | _assumed(request),
        result=books,
        sources=(
            "Amdahl 1967; Gustafson 1988; Gunther 1993 (universal scalability law)",
            "usual slope and width of intervals: published series, see `suanli verify --only scaling`",
        ),
        notes=(*assumed_line(request), *_notes(books, known.slope_per_doubling)),
        asked={"series": found},
    )


def _assumed(request: Request) -> dict[str, Any]:
    return {"assumed": request.assumed} if request.assumed else {}


def _of_file(file: Any, series: str | None, batch: int | None) -> Series:
    """The series of a CSV, or of JSON files of `suanli mfu`. `batch` is for files that say none."""
    files = [file] if isinstance(file, str | Path) else list(file) if isinstance(file, list | tuple) else [None]
    if not files or not all(isinstance(each, str | Path) for each in files):
        raise _fault("no_file", "not a file", "FILE.csv", shown(file), "the path of a CSV file, or of JSON files")
    paths = [Path(str(each)).expanduser() for each in files]
    if all(path.suffix.lower() == SUFFIX for path in paths):
        if series is not None:
            raise _fault("contradiction", "results of mfu are one series", "--series", shown(series), "no such option")
        found = read_runs(paths)
    elif len(paths) > 1:
        raise _fault("contradiction", "several files", "FILE.csv", ", ".join(path.name for path in paths)[:100],
                     "one CSV file, or JSON files of `suanli mfu` alone")  # fmt: skip
    else:
        found = read_sizes(paths[0], series)
    return found if batch is None else with_batch(found, batch)


def _count(value: Any, where: str) -> int | None:
    """A number of GPUs, None where it is none."""
    try:
        found = parse(str(value).strip(), "count", where)
    except SuanliError:
        return None
    return int(found) if 1 <= found <= MOST_GPUS and float(found).is_integer() else None


JUDGED_AS_OTHERS = "the planner's projection has the interval of the other laws: no published series judged its own"


def _notes(books: Scaling, slope: float) -> tuple[str, ...]:
    if not books.projection:
        return ()
    usual_slope = f"a power law's slope leans on what is usual, {slope:+.2%} for each doubling; intervals hold 90 %"
    planned = books.fit is not None and books.fit.law == PLANNER
    return (usual_slope, *((JUDGED_AS_OTHERS,) if planned else ()))


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
        runs = sizes_of_runs([(f"points[{place}]", each.to_dict()) for place, each in enumerate(points)])
        return runs if batch is None else with_batch(runs, batch)
    if name is None:
        if metric is None:
            faults.add(code="missing_option", message="points need to say what they are", where="--metric",
                       expected="one of " + ", ".join(METRICS))  # fmt: skip
        faults.raise_if_any()
        raise _fault("missing_option", "points need a known metric", "--metric", shown(metric), ", ".join(METRICS))
    pairs = list(points.items()) if isinstance(points, Mapping) else _pairs(points, faults)
    sizes = []
    for gpus, value in pairs:
        count = _count(gpus, "--points")
        figure = read_figure(name, str(value).strip(), "--points", faults)
        if count is None:
            faults.add(code="bad_gpus", message="gpus is not possible", where="--points", got=shown(gpus),
                       expected=f"a whole number, 1 to {MOST_GPUS:,}")  # fmt: skip
        elif figure is not None:
            sizes.append(Size(gpus=count, figures={name: figure}, global_batch=batch))
    typed = [(f"{gpus} GPUs", value) for gpus, value in pairs if isinstance(value, str)]
    check_units(name, typed, "--points", faults)
    return series_of("--points", sizes, faults)


_POINTS = "text like 64:1.0,128:1.9, a mapping of GPUs to figures, pairs, or results of suanli.mfu"


def _pairs(points: Any, faults: FaultList) -> list[tuple[Any, Any]]:
    """GPUs and figures as given; a fault for each part of a text that is no pair. Raises InputError for the rest."""
    if not isinstance(points, str):
        pairs = [each if isinstance(each, tuple | list) else (each,) for each in points]
        if any(len(each) != 2 for each in pairs):
            raise _fault("bad_points", "not pairs of GPUs and figures", "--points", shown(points), _POINTS)
        return [(each[0], each[1]) for each in pairs]
    split = [part.partition(":") for part in points.split(",") if part.strip()]
    for gpus, colon, _ in split:
        if not colon:
            faults.add(code="bad_points", message="a point has no figure", where="--points", got=shown(gpus),
                       expected="GPUS:FIGURE, like 64:1.0")  # fmt: skip
    return [(gpus, value) for gpus, colon, value in split if colon]


def _fault(code: str, message: str, where: str, got: str, expected: str) -> InputError:
    faults = FaultList(InputError)
    faults.add(code=code, message=message, where=where, got=got, expected=expected)
    return InputError(*faults.faults)
