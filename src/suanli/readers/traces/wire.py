"""Protobuf's wire format, decoded without generated classes: single messages, and many small ones in step.

Records of one kind (events, statistics) are decoded together: round by round the next field of every record that has
one left, as arrays. A trace of 100 MB has millions of them, and a Python step for each would take a minute. Nothing is
believed: a length that leaves its record, a varint without end or a group ends the record, which is then marked.
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10  # bytes of 7 bits for 64
_PAD = 64  # zeros behind the data: what reads past a record's end, by three numbers at most, stays inside


@dataclass(frozen=True)
class Data:
    """The bytes of one file, for single reads and for reads of many places at once."""

    raw: bytes
    array: Array

    @classmethod
    def of(cls, raw: bytes) -> Data:
        """The data with its padding."""
        return cls(raw, np.frombuffer(raw + bytes(_PAD), dtype=np.uint8))


def varint(raw: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at a place and the place behind it; the place is -1 where the number breaks off."""
    value = shift = 0
    while at < end and shift < 7 * _LONGEST_VARINT:
        byte = raw[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), at
        shift += 7
    return 0, -1


def fields(raw: bytes, at: int, end: int, breaks: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """Fields of one message: number, kind, value, end. Of BYTES the value is where they start.

    Where the message breaks off its place is added to `breaks`; bytes that pass the end come cut, as the last field.
    """
    while at < end:
        tag, place = varint(raw, at, end)
        number, kind = tag >> 3, tag & 7
        value, behind = _value(raw, kind, place, end) if place > 0 and number else (0, -1)
        if behind < 0 or (behind > end and kind != BYTES):
            breaks.append(at)
            return
        if behind > end:
            breaks.append(at)
        yield number, kind, value, min(behind, end)
        at = behind


def _value(raw: bytes, kind: int, at: int, end: int) -> tuple[int, int]:
    """The value at a place and the place behind it; -1 where it breaks off or its kind is unknown."""
    if kind == VARINT:
        return varint(raw, at, end)
    if kind == BYTES:
        size, start = varint(raw, at, end)
        return start, (start + size if start > 0 else -1)
    width = {FIXED64: 8, FIXED32: 4}.get(kind)
    if width is None:
        return 0, -1
    return int.from_bytes(raw[at : at + width], "little"), at + width


def signed(value: int) -> int:
    """An int64 that was read as unsigned."""
    return value - 2**64 if value >= 2**63 else value


@dataclass(frozen=True)
class Round:
    """The next field of each record that has one: all of one length. Of BYTES `value` is where they start."""

    record: Array  # which record
    number: Array
    kind: Array
    value: Array  # uint64
    end: Array


def rounds(data: Data, start: Array, end: Array, broken: Array) -> Iterator[Round]:
    """Fields of many records, in step. Records that break off are marked in `broken` and end there."""
    at = start.astype(np.int64)
    live = np.flatnonzero(at < end)
    while len(live):
        limit = end[live]
        tag, place, whole = _varints(data.array, at[live], limit)
        kind, number = (tag & np.uint64(7)).astype(np.int64), (tag >> np.uint64(3)).astype(np.int64)
        value, behind, read = _values(data.array, kind, place, limit)
        good = whole & read & (behind <= limit) & (number > 0)
        broken[live[~good]] = True
        at[live] = behind
        yield Round(live[good], number[good], kind[good], value[good], behind[good])
        live = live[good & (behind < limit)]


def _values(data: Array, kind: Array, place: Array, limit: Array) -> tuple[Array, Array, Array]:
    """The value of each field, the place behind it, and whether it could be read."""
    value, behind = np.zeros(len(kind), dtype=np.uint64), place.copy()
    read = np.zeros(len(kind), dtype=bool)
    for each, width in ((FIXED64, 8), (FIXED32, 4)):
        at = np.flatnonzero(kind == each)
        if len(at):
            value[at], behind[at], read[at] = _fixed(data, place[at], width), place[at] + width, True
    at = np.flatnonzero((kind == VARINT) | (kind == BYTES))
    number, after, whole = _varints(data, place[at], limit[at])
    packed = kind[at] == BYTES
    # a length past the file is cut to one past the record, which marks it
    stop = after + np.minimum(number, (limit[at] - after + 1).clip(0).astype(np.uint64)).astype(np.int64)
    value[at] = np.where(packed, after.astype(np.uint64), number)
    behind[at], read[at] = np.where(packed, stop, after), whole
    return value, behind, read


def _varints(data: Array, place: Array, limit: Array) -> tuple[Array, Array, Array]:
    """Numbers at places, the places behind them, and whether each ends before its limit."""
    byte = data[place]
    value, at = (byte & np.uint8(127)).astype(np.uint64), place + 1
    going = np.flatnonzero(byte > 127)
    for step in range(1, _LONGEST_VARINT):
        going = going[at[going] < limit[going]]
        if not len(going):
            break
        byte = data[at[going]]
        value[going] |= (byte & np.uint8(127)).astype(np.uint64) << np.uint64(7 * step)
        at[going] += 1
        going = going[byte > 127]
    whole = (at <= limit) & (data[at - 1] < 128)
    return value, at, whole


def _fixed(data: Array, place: Array, width: int) -> Array:
    """Little-endian numbers of `width` bytes."""
    value = np.zeros(len(place), dtype=np.uint64)
    for step in range(width):
        value |= data[place + step].astype(np.uint64) << np.uint64(8 * step)
    return value
