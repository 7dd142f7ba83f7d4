"""How far served times, throughput and energy are off on measured points: fitted, and held out.

A fold is one architecture on one GPU; everything is fitted again without it, other sources' rows of it left out too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suanli.nouns.serving_error import ServingError
from suanli.nouns.serving_profile import PowerProfile, ServingProfile
from suanli.plan.calibrate import half_width
from suanli.plan.serving.fitting import FittedEngines, Served, fit_engines
from suanli.plan.serving.points import Kept, prompt_of
from suanli.plan.serving.power import fit_power, joule_parts
from suanli.plan.serving.replicas import with_profile

Array = Any
# What is believed of an engine before any point: factors from micro-benchmarks (memory reads reach 0.84 to 0.91 of the
# peak rate, attention of decode less), custom all-reduces at half of NCCL's time, tens of microseconds a layer.
BELIEVED = ServingProfile(
    weights=1.1, cache=1.2, passes=2.0, collective=0.5, layer_s=3e-5, step_s=3e-4, sequence_s=2e-5, prefill=1.2,
    prefill_other=1.0,
)  # fmt: skip


@dataclass(frozen=True)
class ServingCheck:
    """All errors, and what was fitted on the way."""

    errors: tuple[ServingError, ...]
    engines: FittedEngines
    widths: dict[str, tuple[float, int]]  # 80 % half-width of held-out logarithms and rows, by engine label
    power: PowerProfile | None
    fitted_s: Array  # seconds between two tokens of every point kept, as fitted
    held_s: Array  # the same, its fold left out


def check_points(kept: Kept) -> ServingCheck:
    """Fit on all points and with every fold left out, and judge both."""
    import numpy as np  # noqa: PLC0415

    served = kept.served()
    engines = fit_engines(served, BELIEVED)
    fitted, held = engines.predict(served), _held_out(served)
    errors = list(_times(kept, served, engines, fitted, held))
    power, energy = _energy(kept, served, fitted, held)
    labels = np.array(served.engines)
    logs = np.log(held / served.seconds)
    widths = {name: (half_width(logs[labels == name]), int((labels == name).sum())) for name in sorted(set(labels))}
    return ServingCheck((*errors, *energy), engines, {str(k): v for k, v in widths.items()}, power, fitted, held)


def _held_out(served: Served) -> Array:
    """Every point predicted from the other folds."""
    import numpy as np  # noqa: PLC0415

    folds, found = np.array(served.folds), np.zeros(len(served.seconds))
    for fold in sorted(set(served.folds)):
        rows = folds == fold
        found[rows] = fit_engines(served.take(~rows), BELIEVED).predict(served.take(rows))
    return found


def _times(kept: Kept, served: Served, engines: FittedEngines, fitted: Array, held: Array) -> list[ServingError]:
    import numpy as np  # noqa: PLC0415

    online, other = np.array(kept.of_kind("served")), np.array(kept.of_kind("offline", "chat"))
    chat = np.array(kept.of_kind("chat")) & np.array([point.tpot_s is not None for point in kept.points])
    found = []
    if online.any():
        ratios = [each[online] / served.seconds[online] for each in (fitted, held)]
        found.append(_error("time per output token", "aiconfigurator's silicon sample", ratios, served, online, "mean",
                            (None, 0.15)))  # fmt: skip
        found += _first_token(kept, served, online, engines)
    if other.any():
        ratios = [served.seconds[other] / each[other] for each in (fitted, held)]
        found.append(_error("output throughput", "TensorRT-LLM offline, ML.ENERGY", ratios, served, other, "median",
                            (0.15, 0.20)))  # fmt: skip
    if chat.any():
        measured = np.array([point.tpot_s or 1.0 for point in kept.points])[chat]
        ratios = [each[chat] / measured for each in (fitted, held)]
        found.append(_error("inter-token latency", "ML.ENERGY: medians; prompt length assumed", ratios, served, chat))
    return found


_ARRIVALS = (
    ("arrivals assumed even: half a step, then the prompt's own prefill", lambda _: 1.0),
    ("all users assumed to send together: half of the other prompts come first", lambda users: (users + 1) / 2),
)


def _first_token(kept: Kept, served: Served, rows: Array, engines: FittedEngines) -> list[ServingError]:
    """Time to first token under two assumptions: the table does not say how requests arrive. Nothing is fitted."""
    import numpy as np  # noqa: PLC0415

    found = []
    for said, prompts in _ARRIVALS:
        ratios = []
        for place in (int(each) for each in np.flatnonzero(rows)):
            point, users = kept.points[place], kept.concurrency[place]
            replica = with_profile(kept.replicas[place], engines.profile(served.engines[place]))
            step = float(replica.decode_s(users, prompt_of(point) + point.osl / 2))
            prefill = float(replica.prefill_s(prompt_of(point), prompt_of(point)))
            assert point.ttft_s is not None, "checked when it was kept"
            ratios.append((step / 2 + prompts(users) * prefill) / point.ttft_s)
        both = [np.array(ratios)] * 2
        found.append(_error("time to first token", f"aiconfigurator; {said}", both, served, rows))
    return found


def _energy(
    kept: Kept, served: Served, fitted: Array, held: Array
) -> tuple[PowerProfile | None, tuple[ServingError, ...]]:
    import numpy as np  # noqa: PLC0415

    rows = np.array([point.joules_per_token is not None for point in kept.points])
    places = [int(each) for each in np.flatnonzero(rows)]
    if not places:
        return None, ()
    joules = np.array([kept.points[place].joules_per_token for place in places], dtype=float)
    folds = np.array(served.folds)[rows]
    parts = [np.array([_parts(kept, place, times[place]) for place in places]) for times in (fitted, held)]
    numbers = fit_power(parts[0], joules)
    without = np.zeros(len(places))
    for fold in sorted(set(folds)):
        out = folds == fold
        without[out] = parts[1][out] @ np.array(fit_power(parts[0][~out], joules[~out]))
    ratios = [parts[0] @ np.array(numbers) / joules, without / joules]
    error = _error("GPU energy per output token", "ML.ENERGY", ratios, served, rows, "mean", (0.20, 0.25))
    width = half_width(np.log(ratios[1]))
    return PowerProfile(always=numbers[0], memory=numbers[1], products=numbers[2], half_width=width,
                        rows=len(places), source="ML.ENERGY leaderboard"), (error,)  # fmt: skip


def _parts(kept: Kept, place: int, token_s: float) -> tuple[float, ...]:
    point = kept.points[place]
    return joule_parts(kept.replicas[place], prompt_of(point), point.osl, kept.concurrency[place], float(token_s))


def _error(
    quantity: str, source: str, ratios: list[Array], served: Served, rows: Array, judged: str = "",
    bars: tuple[float | None, float | None] = (None, None),
) -> ServingError:  # fmt: skip
    import numpy as np  # noqa: PLC0415

    fitted, held = (np.abs(each - 1) for each in ratios)
    folds = np.array(served.folds)[rows]
    by_fold = tuple(
        (str(fold), int((folds == fold).sum()), float(held[folds == fold].mean())) for fold in sorted(set(folds))
    )
    return ServingError(
        quantity=quantity, source=source, n=len(held),
        mean_fitted=float(fitted.mean()), mean_held_out=float(held.mean()),
        median_fitted=float(np.median(fitted)), median_held_out=float(np.median(held)),
        bias_held_out=float(np.median(ratios[1] - 1)), judged=judged, bar_fitted=bars[0], bar_held_out=bars[1],
        folds=by_fold,
    )  # fmt: skip
