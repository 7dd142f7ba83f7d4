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
LARGEST_NS = 4 * 10**18  # more is no time; twice that fits int64
_NUMBER = re.compile(rb'\s*"?\s*([+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)\s*"?\s*')
_DIGITS_AND_MARKS = b"0123456789.,"
_PLACES = 3  # decimals of a microsecond that are whole nanoseconds
_WORD = 2**64


def nanoseconds(microseconds: Sequence[Text]) -> Array:
    """int64 nanoseconds of texts in microseconds; MISSING for what is no number or no time. Halves go to the even."""
    joined = b",".join(microseconds)
    fast = None if joined.translate(None, _DIGITS_AND_MARKS) else _plain(joined, len(microseconds))
    return _one_by_one(microseconds) if fast is None else fast


def _plain(joined: bytes, count: int) -> Array | None:
    """All of them where each is digits alone, or each is digits with a point and up to nine decimals."""
    if not count or joined.count(b",") != count - 1 or b",," in joined or joined[:1] == b"," or joined[-1:] == b",":
        return None
    if b"." not in joined:
        whole = np.fromstring(joined, dtype=np.int64, sep=",")
        return whole * KILO if _fits(whole, count) else None
    if joined.count(b".") != count:
        return None
    return _with_decimals(joined, count)


def _with_decimals(joined: bytes, count: int) -> Array | None:
    text = np.frombuffer(joined, dtype=np.uint8)
    points = np.flatnonzero(text == ord("."))
    ends = np.append(np.flatnonzero(text == ord(",")), len(text))
    places = ends - points - 1
    starts = np.append(-1, ends[:-1]) + 1
    if len(ends) != count or (points < starts + 1).any() or places.min() < 1 or places.max() > _PLACES:
        return None  # one number with two points and another with none, or more digits than nanoseconds have
    parts = np.fromstring(joined.replace(b".", b","), dtype=np.int64, sep=",")
    if len(parts) != 2 * count or not _fits(parts[::2], count):
        return None
    return parts[::2] * KILO + parts[1::2] * 10 ** (_PLACES - places)


def _fits(whole: Array, count: int) -> bool:
    """Whether all were read and none is near the end of int64, where reading saturates."""
    return len(whole) == count and bool((whole <= LARGEST_NS // KILO).all())


def _one_by_one(texts: Iterable[Text]) -> Array:
    return np.array([_nanoseconds(bytes(text)) for text in texts], dtype=np.int64)


def _nanoseconds(text: bytes) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return int(MISSING)
    value = (Decimal(match[1].decode()) * KILO).to_integral_value(ROUND_HALF_EVEN)
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
