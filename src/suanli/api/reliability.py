"""`suanli.goodput`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suanli.api.keeping import keeps_request
from suanli.api.request import MOST_GPUS, Request
from suanli.catalog.failures import find_failures
from suanli.errors import shown
from suanli.nouns.goodput import FailureTable, Rate
from suanli.nouns.result import Result
from suanli.nouns.workload import option
from suanli.plan.events import measure_goodput
from suanli.plan.goodput import Reliability, counted_rate, given_rate, plan_goodput
from suanli.readers.events import read_events
from suanli.units import DAY, HOUR

RATES = ("mtbf", "mtbf_node", "mtti", "failures")
NEEDED = {"checkpoint_save": "save a checkpoint", "restart": "restart after an interrupt"}
GPUS_PER_NODE = 8
_UNKNOWN = Rate(mtti_s=1.0, low_s=None, high_s=None, gpu_hours=1.0, source="")
FORMULAS = (
    "exact loss and Daly's interval: Daly 2006, doi:10.1016/j.future.2004.11.016",
    "Young's interval: Young 1974, doi:10.1145/361147.361115",
)


@keeps_request
def goodput(
    *,
    gpus: Any = None,
    mtbf: Any = None,
    mtbf_node: Any = None,
    mtti: Any = None,
    failures: str | None = None,
    gpus_per_node: Any = None,
    detect: Any = None,
    restart: Any = None,
    checkpoint_save: Any = None,
    checkpoint_mode: str | None = None,
    checkpoint_stall: Any = None,
    checkpoint_load: Any = None,
    interval: Any = None,
    spares: Any = None,
    repair: Any = None,
    stragglers: Any = None,
    maintenance: Any = None,
    days: Any = None,
    mfu: Any = None,
    seed: Any = None,
    events: str | Path | None = None,
) -> Result:
    """Availability and useful time of a long run, planned from a failure rate or measured from a log of events.

    Raises InputError listing every fault of the request.

    >>> round(goodput(mtti="3.09h", restart="10min", checkpoint_save="60s").interval_s / 60, 1)
    18.6
    """
    typed = {name: value for name, value in locals().items() if value is not None}
    return _measured(typed) if events is not None else _planned(typed)


def _planned(typed: dict[str, Any]) -> Result:
    request = Request()
    at, table = read_reliability(request, typed)
    work = request.quantity("days", typed.get("days"), "factor")
    mfu = request.quantity("mfu", typed.get("mfu"), "fraction")
    seed = request.whole("seed", typed.get("seed"), 0 if work is not None else None) or 0
    if mfu is not None and not 0 < mfu <= 1:
        request.fault("bad_mfu", "mfu is not possible", "mfu", got=str(typed["mfu"]), expected="above 0, at most 1")
    if work == 0:
        request.fault("bad_days", "no work to do", "days", got=str(typed["days"]), expected="above 0")
    request.check()
    assert at is not None
    found = plan_goodput(at, work_s=None if work is None else work * DAY, mfu=mfu, seed=seed)
    return Result(
        kind="goodput",
        inputs={**request.given, "assumed": request.assumed},
        result=found,
        sources=(at.rate.source, *FORMULAS),
        notes=_notes(request, typed, table),
        asked={"reliability": at},
    )


def read_reliability(request: Request, typed: dict[str, Any]) -> tuple[Reliability | None, FailureTable | None]:
    """What interrupts a run and what is done about it, from options of this verb; faults go to the request."""
    gpus = request.whole("gpus", typed.get("gpus"), low=1, high=MOST_GPUS)
    per_node = request.whole("gpus_per_node", typed.get("gpus_per_node"), low=1)
    rate, table = _rate(request, typed, gpus, per_node)
    return _reliability(request, typed, rate, table, gpus), table


def _rate(
    request: Request, typed: dict[str, Any], gpus: int | None, per_node: int | None
) -> tuple[Rate | None, FailureTable | None]:
    """The failure rate of the job by the one option that gives it."""
    given = [name for name in RATES if name in typed]
    if len(given) != 1:
        request.fault(
            "contradiction" if given else "missing_option", "one failure rate is needed", given[0] if given else "mtbf",
            got=" and ".join(map(option, given)) or None, expected="one of " + ", ".join(map(option, RATES)),
        )  # fmt: skip
        return None, None
    name = given[0]
    value = typed[name] if name == "failures" else request.quantity(name, typed[name], "span")
    if value is None or (name != "failures" and not value > 0):
        if value is not None:
            request.fault(f"bad_{name}", "no time between failures", name, got=str(typed[name]), expected="above 0")
        return None, None
    if name == "mtti":
        return Rate(mtti_s=value, low_s=None, high_s=None, gpu_hours=value * (gpus or 1) / HOUR,
                    source="MTTI as given"), None  # fmt: skip
    if gpus is None:
        if "gpus" in typed:
            return None, None  # a fault already recorded
        request.fault("missing_option", "a rate per GPU or node needs the number of GPUs", "gpus", expected="--gpus N")
        return None, None
    if name == "failures":
        request.given["failures"] = value
        table = request.attempt(lambda: find_failures(str(value)))
        return (None if table is None else _of_table(table, gpus)), table
    size = 1 if name == "mtbf" else per_node or request.whole("gpus_per_node", None, GPUS_PER_NODE) or 1
    return given_rate(value / HOUR * size, gpus, f"{option(name)} as given"), None


def _of_table(table: FailureTable, gpus: int) -> Rate:
    source = f"failures {table.name}: {table.source}"
    if table.interrupts is None or table.exposure is None:
        return given_rate(table.gpu_hours_per_interrupt, gpus, source)
    return counted_rate(table.interrupts, table.exposure, gpus, source)


def _reliability(
    request: Request, typed: dict[str, Any], rate: Rate | None, table: FailureTable | None, gpus: int | None
) -> Reliability | None:
    names = ("checkpoint_save", "checkpoint_stall", "checkpoint_load", "detect", "restart", "interval", "repair")
    times = {name: request.quantity(name, typed.get(name), "span") for name in names}
    for name, what in NEEDED.items():
        if name not in typed:
            request.fault("missing_option", f"a plan needs the time to {what}", name, expected=f"{option(name)} 60s")
    if times["interval"] == 0:
        request.fault("bad_interval", "no work between checkpoints", "interval", got="0", expected="above 0")
    mode = request.word("checkpoint_mode", typed.get("checkpoint_mode"), "blocking")
    slow = request.quantity("stragglers", typed.get("stragglers"), "fraction") or 0.0
    maintenance, every = _maintenance(request, typed.get("maintenance"))
    spares = request.whole("spares", typed.get("spares"))
    known = rate or _UNKNOWN  # a fault already recorded; the other values are still checked
    found = request.attempt(lambda: Reliability(
        rate=known, gpus=gpus, detect_s=times["detect"] or 0.0, restart_s=times["restart"] or 0.0,
        load_s=times["checkpoint_load"] or 0.0, save_s=times["checkpoint_save"] or 0.0, mode=mode,
        stall_s=times["checkpoint_stall"], interval_s=times["interval"], spares=spares, repair_s=times["repair"],
        straggling=slow, maintenance_s=maintenance, maintenance_every_s=every, causes=table.causes if table else (),
    ))  # fmt: skip
    return None if rate is None else found


def _maintenance(request: Request, text: Any) -> tuple[float, float | None]:
    """`4h/14d` as seconds and seconds."""
    if text is None:
        return 0.0, None
    spent, _, every = str(text).partition("/")
    read = [request.quantity("maintenance", part, "span") for part in (spent, every)]
    request.given["maintenance"] = text
    if read[0] is None or read[1] is None:
        return 0.0, None
    if not read[1] > 0:
        request.fault(
            "bad_maintenance", "no time between two of them", "maintenance", got=str(text), expected="like 4h/14d"
        )
        return 0.0, None
    return float(read[0]), float(read[1])


def _notes(request: Request, typed: dict[str, Any], table: FailureTable | None) -> tuple[str, ...]:
    zero = [name.replace("_", " ") for name in ("detect", "checkpoint_load") if name not in typed]
    assumed = [f"{name.replace('_', ' ')} {value}" for name, value in request.assumed.items()]
    left = [f"{' and '.join(zero)} 0 s (part of --restart)"] if zero else []
    idle = []
    if "gpus_per_node" in typed and "mtbf_node" not in typed:
        idle.append("--gpus-per-node changes nothing without --mtbf-node")
    if "seed" in typed and "days" not in typed:
        idle.append("--seed changes nothing without --days")
    return (
        *((f"assumed: {', '.join(assumed + left)}",) if assumed or left else ()),
        "failures are taken to come at a constant rate, one after another",
        *(table.notes if table else ()),
        *idle,
    )


def _measured(typed: dict[str, Any]) -> Result:
    """What a log of events says; options of a plan are faults beside it."""
    request = Request()
    gpus = request.whole("gpus", typed.get("gpus"), low=1, high=MOST_GPUS)
    for name in typed:
        if name not in ("events", "gpus"):
            request.fault("contradiction", "a log of events is measured, not planned", name, expected="--events alone, or with --gpus")  # noqa: E501  # fmt: skip
    if not isinstance(typed["events"], str | Path):
        request.fault("no_file", "not a file", "events", got=shown(typed["events"]), expected="the path of a CSV file")
        request.check()
    path = Path(typed["events"]).expanduser()
    rows = request.attempt(lambda: read_events(path))
    request.check()
    assert rows is not None
    request.given["events"] = str(typed["events"])
    found = measure_goodput(rows, gpus)
    per = "of one GPU" if gpus else "of the job (--gpus N gives that of a GPU)"
    return Result(
        kind="goodput",
        inputs={**request.given, "assumed": request.assumed},
        result=found,
        sources=(
            f"{len(rows):,} events of {path.name}",
            "interval of the rate: Garwood 1936, doi:10.1093/biomet/28.3-4.437",
        ),
        notes=(f"the hours of one interrupt are {per}; time down is not counted as time at risk",),
    )
