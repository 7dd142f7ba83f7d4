"""A preset drawn to measured points of one's own: the same fit that made it, believing the preset beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from suanli.errors import Fault, InputError
from suanli.nouns.arch import Arch
from suanli.nouns.measured_serving import ServingPoint
from suanli.nouns.serving_profile import NUMBERS, ServingPreset, ServingProfile
from suanli.nouns.serving_ways import Calibration
from suanli.plan.serving.fitting import Served, fit_engines
from suanli.plan.serving.points import Kept, keep_points

Array = Any
LEAST = 2
WORTH = 4.0  # points that the width of the preset's interval counts as: two points alone say little of a spread


def calibrate(
    preset: ServingPreset, points: Sequence[ServingPoint], read: Callable[[str], Arch], where: str = "--calibrate"
) -> tuple[ServingPreset, Calibration]:
    """The preset's numbers shrunk between what it says and what the points say, with its interval.

    Raises InputError where fewer than two points can be used, or where they are of another engine than the preset's.
    """
    kept = keep_points(points, read)
    _check(preset, kept, where)
    served = kept.served()
    alone = replace_engines(served)
    before = _predicted(alone, preset.profile)
    profile = fit_engines(alone, preset.profile).shared
    after, held = _predicted(alone, profile), _held_out(alone, preset.profile)
    width = _width(preset.half_width, [math.log(each) for each in held / alone.seconds])
    told = Calibration(
        points=len(alone.seconds), left_out=kept.dropped,
        error_before=_error(before, alone), error_after=_error(after, alone), error_held_out=_error(held, alone),
        half_width_before=preset.half_width, half_width_after=width,
        factors={name: getattr(profile, name) / getattr(preset.profile, name) for name in NUMBERS},
    )  # fmt: skip
    gpus = tuple(sorted({*preset.gpus, *(point.gpu or "" for point in kept.points)}))
    return replace(preset, profile=profile, half_width=width, gpus=gpus), told


def replace_engines(served: Served) -> Served:
    """The points as of one engine: nothing is shared with others."""
    return replace(served, engines=("own",) * len(served.seconds))


def _check(preset: ServingPreset, kept: Kept, where: str) -> None:
    if not preset.rows:
        raise InputError(
            Fault(code="no_calibration", message="the ideal engine has nothing to calibrate", where=where,
                  expected="--preset vllm, tensorrt-llm or sglang")
        )  # fmt: skip
    engines = sorted({point.engine for point in kept.points})
    if len(kept.points) < LEAST:
        why = "; ".join(f"{count} {reason}" for reason, count in kept.dropped.items()) or "no rows"
        raise InputError(
            Fault(code="few_points", message="too few points to calibrate from", where=where,
                  got=f"{len(kept.points)} of {len(kept.points) + sum(kept.dropped.values())} rows ({why})",
                  expected=f"at least {LEAST}")
        )  # fmt: skip
    if engines != [preset.name.split("-chat")[0].split("-offline")[0]]:
        raise InputError(
            Fault(code="other_engine", message=f"the points are not of preset {preset.name}", where=where,
                  got=", ".join(engines), expected=f"rows of one engine, with --preset {engines[0]}")
        )  # fmt: skip


def _predicted(served: Served, profile: ServingProfile) -> Array:
    import numpy as np  # noqa: PLC0415

    return served.features @ np.array([getattr(profile, name) for name in NUMBERS])


def _held_out(served: Served, believed: ServingProfile) -> Array:
    import numpy as np  # noqa: PLC0415

    found, every = np.zeros(len(served.seconds)), np.arange(len(served.seconds))
    for place in every:
        profile = fit_engines(served.take(every != place), believed).shared
        found[place] = _predicted(served.take(every == place), profile)[0]
    return found


def _error(predicted: Array, served: Served) -> float:
    return float(abs(predicted / served.seconds - 1).mean())


def _width(before: float, logs: Sequence[float]) -> float:
    """Half-width from the preset's, as if of `WORTH` points, and the points' own errors when left out."""
    from statistics import NormalDist  # noqa: PLC0415

    unit = NormalDist().inv_cdf(0.9)  # 80 % of a normal spread lie within so many standard deviations
    square = WORTH * (before / unit) ** 2 + sum(each**2 for each in logs)
    return unit * math.sqrt(square / (WORTH + len(logs)))
