"""`count --symbolic` and `--sweep`: the count as polynomials in the lengths, and its values at many of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from suanli.api.request import Request
from suanli.errors import Fault, InputError, nearest_names, shown
from suanli.nouns.arch import Arch
from suanli.nouns.convention import Convention
from suanli.nouns.counts import Count
from suanli.nouns.workload import MAX_LENGTH, Workload
from suanli.symbolic import polynomials
from suanli.units import parse

AXES = ("batch", "seq", "kv_len")
MOST_POINTS = 100_000
_EXPECTED = "seq=1024:131072:1024 (first:last:step) or batch=1,8,64; at most 100,000 points"

Sweep = tuple[str, "range | tuple[int, ...]"]


def read_sweep(request: Request, text: Any, phase: Any) -> Sweep | None:
    """`AXIS=FIRST:LAST:STEP` (LAST included) or `AXIS=V,V,…` as the axis and its values; faults are recorded."""
    if text is None:
        return None
    request.given["sweep"] = text
    name, _, values = str(text).partition("=")
    axis = name.strip().lower().replace("-", "_")
    if axis not in AXES or not values:
        request.fault(
            "bad_sweep", "the sweep cannot be read", "sweep", got=shown(text), expected=_EXPECTED,
            nearest=nearest_names(axis, AXES),
        )  # fmt: skip
        return None
    if axis == "kv_len" and phase != "decode":
        request.fault("bad_sweep", "keys are of decoding only", "sweep", got=shown(text), expected="--phase decode")
        return None
    read = request.attempt(lambda: _values(values))
    if read is None:
        return None
    if not 1 <= len(read) <= MOST_POINTS or min(read) < 1:
        request.fault("bad_sweep", "not a sweep of lengths", "sweep", got=shown(text), expected=_EXPECTED)
        return None
    return axis, read


def _values(text: str) -> range | tuple[int, ...]:
    """The lengths named. Raises InputError for a number that cannot be read."""
    if ":" not in text:
        return tuple(_length(part) for part in text.split(",")[: MOST_POINTS + 1])
    ends = [_length(part) for part in text.split(":")]
    first, last, step = (*ends, 1)[:3]
    return range(first, last + 1, step) if step > 0 and len(ends) <= 3 else range(0)


def _length(text: str) -> int:
    found = parse(text, "length", "--sweep")
    if not float(found).is_integer() or found > MAX_LENGTH:
        raise InputError(
            Fault(
                code="bad_sweep", message="not a length", where="--sweep", got=shown(text),
                expected=f"a whole number, at most {MAX_LENGTH:,}",
            )
        )  # fmt: skip
    return int(found)


def with_polynomials(
    books: Count, arch: Arch, workload: Workload, rule: Convention, *, symbolic: bool, sweep: Sweep | None
) -> Count:
    """The books with the polynomials, the swept values, or both. Raises InputError where there is no closed form."""
    found = polynomials(
        arch, workload.phase, rule, dtype=workload.dtype, kv_dtype=workload.kv_dtype, recompute=workload.recompute
    )
    points = None if sweep is None else tuple(found.point(**at) for at in _places(workload, *sweep))
    return replace(books, polynomials=found.texts if symbolic else None, sweep=points)


def _places(workload: Workload, axis: str, values: range | tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """The lengths of each point; keys follow the sequence where they were not given."""
    for value in values:
        at = {"batch": workload.batch, "seq": workload.seq, "kv_len": workload.kv_len, axis: value}
        if workload.phase == "decode" and at["kv_len"] is None:
            at["kv_len"] = at["seq"]
        yield at
