"""Numbers of JSON as text -> whole numbers, exactly: no time goes through a float."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.units import KILO

Array = npt.NDArray[Any]
Text = Any  # bytes, or msgspec.Raw, which joins like bytes
MISSING = np.iinfo(np.int64).min  # no time of a file: every one that is kept is far smaller
NO_TIME = np.iinfo(np.int64).max  # stands for a time that is not written, where whole microseconds are read
LARGEST_NS = 4 * 10**18  # more is no time; twice that fits int64
_NUMBER = re.compile(rb'\s*"?\s*([+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)\s*"?\s*')
_DIGITS = b"0123456789"
_PLACES = 3  # decimals of a microsecond that are whole nanoseconds
_WORD = 2**64


def whole_nanoseconds(microseconds: Sequence[int]) -> Array:
    """int64 nanoseconds of whole microseconds; MISSING for what is no time, NO_TIME among it."""
    try:
        whole = np.fromiter(microseconds, dtype=np.int64, count=len(microseconds))
    except OverflowError:
        near = [value if -NO_TIME <= value <= NO_TIME else NO_TIME for value in microseconds]
        whole = np.array(near, dtype=np.int64)
    most = LARGEST_NS // KILO
    if len(whole) and (whole.max() > most or whole.min() < -most):
        sound = (whole >= -most) & (whole <= most)
        return np.where(sound, np.where(sound, whole, 0) * KILO, MISSING)
    whole *= KILO
    return whole


def nanoseconds(microseconds: Sequence[Text]) -> Array:
    """int64 nanoseconds of texts in microseconds; MISSING for what is no number or no time. Halves go to the even."""
    joined = b",".join(microseconds)
    fast = _plain(joined, joined.translate(None, _DIGITS), len(microseconds))
    return _one_by_one(microseconds) if fast is None else fast


def _plain(joined: bytes, marks: bytes, count: int) -> Array | None:
    """All of them where each is digits alone, or each is digits with a point and up to three decimals."""
    if not count or b",," in joined or joined[:1] == b"," or joined[-1:] == b",":
        return None
    if marks == b"," * (count - 1):
        whole = np.fromstring(joined, dtype=np.int64, sep=",")
        return whole * KILO if _fits(whole, count, LARGEST_NS // KILO) else None
    if marks != b".," * (count - 1) + b".":
        return None
    return _with_decimals(joined, count)


def _with_decimals(joined: bytes, count: int) -> Array | None:
    text = np.frombuffer(joined, dtype=np.uint8)
    marks = np.append(np.flatnonzero(text < ord("0")), len(text))  # points and commas in turn
    points, ends = marks[::2], marks[1::2]
    starts, places = np.append(0, ends[:-1] + 1), ends - points - 1
    if (points == starts).any() or places.min() < 1 or places.max() > _PLACES:
        return None  # a point at an edge, or more digits than nanoseconds have
    if places.min() == _PLACES:  # as Kineto prints them
        exact = np.fromstring(joined.replace(b".", b""), dtype=np.int64, sep=",")
        return exact if _fits(exact, count, LARGEST_NS) else None
    parts = np.fromstring(joined.replace(b".", b","), dtype=np.int64, sep=",")
    if len(parts) != 2 * count or not _fits(parts[::2], count, LARGEST_NS // KILO):
        return None
    exact = parts[::2] * KILO + parts[1::2] * 10 ** (_PLACES - places)
    return exact if _fits(exact, count, LARGEST_NS) else None


def _fits(numbers: Array, count: int, most: int) -> bool:
    """Whether all were read and none is near the end of int64, where reading saturates."""
    return len(numbers) == count and bool((numbers <= most).all())


def _one_by_one(texts: Iterable[Text]) -> Array:
    return np.array([_nanoseconds(bytes(text)) for text in texts], dtype=np.int64)


def decimal_of(text: bytes) -> Decimal | None:
    """The number that a JSON text is, in quotes or not; None where it is none."""
    match = _NUMBER.fullmatch(text)
    return None if match is None else Decimal(match[1].decode())


def _nanoseconds(text: bytes) -> int:
    us = decimal_of(text)
    if us is None:
        return int(MISSING)
    value = (us * KILO).to_integral_value(ROUND_HALF_EVEN)
    return int(value) if abs(value) <= LARGEST_NS else int(MISSING)


def whole_numbers(values: Sequence[int]) -> Array:
    """int64 of Python ints; those of uint64 keep their 64 bits, larger ones become -1."""
    try:
        return np.fromiter(values, dtype=np.int64, count=len(values))
    except OverflowError:
        return np.array([_wrapped(value) for value in values], dtype=np.int64)


def _wrapped(value: int) -> int:
    if not -(_WORD // 2) <= value < _WORD:
        return -1
    return value - _WORD if value >= _WORD // 2 else value
