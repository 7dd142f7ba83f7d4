"""How sure a planned run is: its utilisation with a spread, and its goodput with the failures behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from suanli.api.reliability import read_reliability
from suanli.api.request import Request
from suanli.catalog.run_spread import run_spread
from suanli.errors import shown
from suanli.nouns.measures import Source
from suanli.nouns.result import Result
from suanli.nouns.workload import option
from suanli.plan.goodput import Reliability
from suanli.plan.spread import TAKEN_AS_EXACT, Doubt, goodput_of
from suanli.plan.train import Budget
from suanli.readers.results import SUFFIX, read_result
from suanli.units import format_percent, format_seconds

FAILURES = ("failures", "restart", "checkpoint_save")
RANGE = ".."


def read_mfu(request: Request, typed: Any) -> tuple[float | None, float | None]:
    """MFU, and the 90 % half-width of its logarithm where a range is typed: `38%..44%` is its middle by ratio."""
    low, dots, high = str(typed).partition(RANGE) if isinstance(typed, str) else ("", "", "")
    if not dots:
        return request.quantity("mfu", typed, "fraction"), None
    ends = [request.quantity("mfu", part.strip(), "fraction") for part in (low, high)]
    request.given["mfu"] = typed
    if ends[0] is None or ends[1] is None:
        return None, None
    if not 0 < ends[0] < ends[1] <= 1:
        request.fault("bad_mfu", "no range of a utilisation", "mfu", got=shown(typed),
                      expected="two parts above 0, at most 1, the smaller first: 38%..44%")  # fmt: skip
        return None, None
    return math.sqrt(ends[0] * ends[1]), math.log(ends[1] / ends[0]) / 2


def given_why(half_width: float | None) -> str:
    """What the spread of a utilisation that is given comes from."""
    return f"{TAKEN_AS_EXACT}; a range gives it a spread (--mfu 38%..44%)" if half_width is None else "the range given"


def predicted_half_width(interval: tuple[float, float]) -> tuple[float, str]:
    """90 % half-width of the logarithm of a predicted utilisation, from its 80 % interval."""
    known = run_spread()
    width = math.log(interval[1] / interval[0]) / 2 * known.ninety_over_eighty
    return width, (
        f"the 80 % interval of the step {known.ninety_over_eighty:.2f} times as wide, as {known.steps:,} published "
        f"steps of {known.sets} sets predicted without their fold need for 90 %"
    )


def doubted(budget: Budget, half_width: float | None, why: str) -> Doubt | None:
    """The budget's doubt with another spread of its utilisation."""
    return None if budget.doubt is None else replace(budget.doubt, half_width=half_width, mfu_why=why)


# --- goodput ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Useful:
    """A goodput, the failures it comes from where they are known, and where it is from in words."""

    goodput: float
    failures: Reliability | None
    why: str
    assumed: tuple[Source, ...] = ()


def read_useful(request: Request, typed: Mapping[str, Any], gpus: int | None) -> Useful | None:
    """Goodput by `--goodput` (a part, a result of `goodput` or its file) or by `--failures`; 1 without either."""
    given = {name: typed[name] for name in FAILURES if typed[name] is not None}
    goodput = typed["goodput"]
    if goodput is not None and given:
        request.fault("contradiction", "one goodput is needed", "goodput",
                      got=" and ".join(map(option, ("goodput", *given))),
                      expected="--goodput, or --failures with --restart and --checkpoint-save")  # fmt: skip
        return None
    if given and "failures" not in given:
        request.fault("missing_option", f"{' and '.join(map(option, given))} without failures", "failures",
                      expected="--failures llama-3-405b, or no such option")  # fmt: skip
        return None
    if given:
        return _of_options(request, given | ({} if gpus is None else {"gpus": gpus}))
    if goodput is None:
        request.assumed["goodput"] = 1.0
        return Useful(1.0, None, "taken as 1: nothing is lost")
    return _of_goodput(request, goodput, gpus)


def _of_goodput(request: Request, goodput: Any, gpus: int | None) -> Useful | None:
    if isinstance(goodput, Path) or (isinstance(goodput, str) and goodput.strip().lower().endswith(SUFFIX)):
        path = Path(goodput).expanduser()
        request.given["goodput"] = str(goodput)
        found = request.attempt(lambda: read_result(path, "goodput"))
        return None if found is None else _of_document(request, found, path.name, gpus)
    if isinstance(goodput, Result) and goodput.kind == "goodput":
        request.given["goodput"] = "a result of goodput"
        return _of_document(request, goodput.to_dict(), "the result of goodput", gpus)
    value = request.quantity("goodput", goodput, "fraction")
    return None if value is None else Useful(value, None, TAKEN_AS_EXACT)


def _of_document(request: Request, found: Mapping[str, Any], name: str, gpus: int | None) -> Useful | None:
    """A result of `goodput`: a plan is made again from its options, a measured one is what it is."""
    typed = {key: value for key, value in found["inputs"].items() if key != "assumed"}
    own = found["result"].get("gpus")
    if gpus is not None and own is not None and own != gpus:
        request.fault("contradiction", f"{name} is of another number of GPUs", "goodput", got=f"{own:,}",
                      expected=f"{gpus:,}, as --gpus says")  # fmt: skip
        return None
    if "events" in typed:
        why = f"measured ({name}): one log, taken as exact"
        source = Source(name="goodput", value=found["result"].get("goodput"), why=why)
        value = request.quantity("goodput", found["result"].get("goodput"), "fraction")
        return None if value is None else Useful(value, None, why, (source,))
    return _of_options(request, typed | ({} if gpus is None else {"gpus": gpus}))


def _of_options(request: Request, typed: dict[str, Any]) -> Useful | None:
    """Goodput as the verb `goodput` has it from the same options."""
    apart = Request()
    at, _ = read_reliability(apart, typed)
    request.errors += apart.errors
    request.given |= {name: value for name, value in apart.given.items() if name in FAILURES}
    if at is None or apart.errors:
        return None
    value = request.attempt(lambda: goodput_of(at))
    if value is None:
        return None
    again = f"restart {format_seconds(at.mttr_s)}, checkpoint {format_seconds(at.cost_s)}"
    why = f"{format_percent(value)} as `suanli goodput` has it ({again}); {at.rate.source}"
    return Useful(value, at, at.rate.source, (Source(name="goodput", value=value, why=why),))
