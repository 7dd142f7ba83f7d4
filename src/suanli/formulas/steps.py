"""Seconds of a training step that are waited for: other stages of a pipeline, exchanges that kernels do not hide.

Every function takes numbers or float64 arrays, which broadcast.
"""

from __future__ import annotations

from suanli.formulas.kernels import Numbers, joined_s, larger
from suanli.formulas.registry import formula

_WORDS = {
    "others_s": "w: one micro-batch on all stages but the slowest, added up [s]",
    "share": "β: the part a schedule leaves exposed: 1 (1F1B), 1/3 (ZB-H1), (p − 2)/(3(p − 1)) (DualPipe)",
    "vpp": "v: chunks a rank holds",
    "whole_s": "t: an exchange by itself [s]",
    "exposed": "x: share of it that is never hidden",
    "window_s": "w: kernels it can hide behind [s]",
    "busy_s": "b: kernels it runs beside [s]",
    "travel_s": "t: the exchange by itself [s]",
    "sharpness": "p: how sharply the slower of the two wins",
}


@formula(
    unit="s",
    expression="β·w/v",
    source="arXiv:2104.04473 §2.2 for equal stages: (p − 1)/v of a micro-batch; 2401.10241; 2412.19437 §3.2.1",
    legend=_WORDS,
)
def bubble_s(others_s: Numbers, share: Numbers, vpp: Numbers) -> Numbers:
    """What a pipeline waits at the beginning and the end of a step."""
    return share * others_s / vpp


@formula(
    unit="s",
    expression="x·t + max(0, (1 − x)·t − w)",
    source="definition: a share is never hidden, the rest as far as kernels last",
    legend=_WORDS,
)
def exposed_exchange_s(whole_s: Numbers, exposed: Numbers, window_s: Numbers) -> Numbers:
    """What of an exchange no kernel hides."""
    hidden = larger(1 - exposed, 0 * exposed)
    return whole_s * (1 - hidden) + larger(whole_s * hidden - window_s, 0 * whole_s)


@formula(
    unit="s",
    expression="(b^p + ((1 − x)·t)^p)^(1/p) + x·t − b",
    source="the same, where kernels and exchange slow one another near a tie",
    legend=_WORDS,
)
def exchange_beside_s(busy_s: Numbers, travel_s: Numbers, exposed: Numbers, sharpness: float) -> Numbers:
    """What an exchange adds to the kernels it runs beside."""
    hidden = larger(1 - exposed, 0 * exposed)
    return joined_s(busy_s, travel_s * hidden, sharpness) + travel_s * (1 - hidden) - busy_s
