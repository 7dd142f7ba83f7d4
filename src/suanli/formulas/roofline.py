"""The roofline: what a kernel can reach at most, from its operations and the bytes it moves."""

from __future__ import annotations

from typing import Any

from suanli.formulas.kernels import smaller
from suanli.formulas.registry import formula

Numbers = Any

_SOURCE = "Williams, Waterman and Patterson 2009, doi:10.1145/1498765.1498785"


@formula(
    unit="FLOPs/B",
    expression="F/b",
    source=_SOURCE,
    legend={"flops": "F: operations [FLOPs]", "moved_bytes": "b: bytes read and written [B]"},
)
def operational_intensity(flops: Numbers, moved_bytes: Numbers) -> Numbers:
    """Operations for each byte moved; bytes may not be 0."""
    return flops / moved_bytes


@formula(
    unit="FLOP/s",
    expression="min(P, I·W)",
    source=_SOURCE,
    legend={"intensity": "I: operations for each byte moved [FLOPs/B]", "bytes_per_s": "W: peak memory rate [B/s]"},
)
def attainable_flop_per_s(intensity: Numbers, peak_flop_per_s: Numbers, bytes_per_s: Numbers) -> Numbers:
    """The roof over a kernel: the lower of the device's arithmetic and its memory."""
    return smaller(peak_flop_per_s, intensity * bytes_per_s)
