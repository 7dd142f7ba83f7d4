"""What readers gather on the way to a Trace: names and details kept once, faults counted, launches joined."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from suanli.nouns.trace import TraceDevice, TraceFault
from suanli.readers.traces.sentences import backward, no_time
from suanli.units import counted

Array = npt.NDArray[Any]
Item = TypeVar("Item")
LARGEST = 2**62  # of a time in ns: sums and differences of two still fit int64


class Once(Generic[Item]):
    """Items kept once each, in the order first seen; an item's place is its number in a Trace."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._places: dict[Hashable, int] = {}

    def place(self, key: Hashable, item: Item) -> int:
        """The place of the item of this key; added where it is new."""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.items)
            self.items.append(item)
        return place


class Names(Once[str]):
    """Texts kept once each."""

    def of(self, text: str) -> int:
        """The place of the text."""
        return self.place(text, text)

    def column(self, texts: Iterable[str]) -> Array:
        """The place of each text, int32."""
        return np.fromiter((self.of(text) for text in texts), dtype=np.int32)


class Faults:
    """Faults by code: counted, one sentence each, as `suanli.units.counted` has it, made at the end."""

    def __init__(self, given: Iterable[TraceFault] = ()) -> None:
        self._given = list(given)
        self._counts: dict[str, int] = {}
        self._sentences: dict[str, str] = {}

    def add(self, code: str, count: int, sentence: str) -> None:
        """Count something that is wrong; none where the count is 0."""
        if count:
            self._counts[code] = self._counts.get(code, 0) + int(count)
            self._sentences.setdefault(code, sentence)

    def say(self, code: str, count: int, sentence: str) -> None:
        """Something with a count and a sentence of its own."""
        self._given.append(TraceFault(code=code, count=count, message=sentence))

    def note(self, code: str, sentence: str) -> None:
        """Something that cannot be counted."""
        self._given.append(TraceFault(code=code, count=0, message=sentence))

    def found(self) -> tuple[TraceFault, ...]:
        """All of them, those given first."""
        of_counts = (
            TraceFault(code=code, count=count, message=counted(count, self._sentences[code]))
            for code, count in self._counts.items()
        )
        return (*self._given, *of_counts)


def within(values: Array, bound: int) -> Array:
    """Which values lie between -bound and bound; numpy's abs leaves the smallest int64 negative."""
    inside: Array = (values > -bound) & (values < bound)
    return inside


def sound(start_ns: Array, end_ns: Array, faults: Faults, what: str) -> Array:
    """Which rows have times that can be: an end not before its start, both within int64. Others are counted
    in sentences about `what`, in both numbers: `{spans|span}`.
    """
    inside = within(start_ns, LARGEST) & within(end_ns, LARGEST)
    forward = end_ns >= start_ns
    faults.add("no-time", int((~inside).sum()), no_time(what))
    faults.add("negative-duration", int((inside & ~forward).sum()), backward(what))
    return inside & forward


def distinct(columns: Sequence[Array]) -> tuple[Array, Array]:
    """The first row of each combination of values, and for every row the number of its combination."""
    number = np.zeros(len(columns[0]), dtype=np.int64)
    first = np.zeros(min(1, len(number)), dtype=np.int64)
    for column in columns:
        if len(column) and (column == column[0]).all():
            continue
        values, place = np.unique(column, return_inverse=True)
        _, first, number = np.unique(number * len(values) + place, return_index=True, return_inverse=True)
    return first, number


def joined(group: Array, number: Array, of_group: Array, of_number: Array) -> Array:
    """For each (group, number) the first place among (of_group, of_number) with the same two; -1: none.

    A negative group or number joins nothing.
    """
    if not len(of_number) or not len(number):
        return np.full(len(number), -1, dtype=np.int32)
    known = np.flatnonzero((of_group >= 0) & (of_number >= 0))
    groups = np.unique(np.concatenate((of_group[known], group)), return_inverse=True)[1].astype(np.int64)
    values, numbers = np.unique(np.concatenate((of_number[known], number)), return_inverse=True)
    pairs = np.unique(groups * len(values) + numbers, return_inverse=True)[1]
    ours, theirs = pairs[len(known) :], pairs[: len(known)]
    first: Array = np.full(int(pairs.max(initial=-1)) + 1, -1, dtype=np.int64)
    first[theirs[::-1]] = known[::-1]  # the last write wins: the earliest row
    found: Array = np.where((group >= 0) & (number >= 0), first[ours], -1).astype(np.int32)
    return found


def devices_seen(described: Iterable[TraceDevice], seen: Iterable[int]) -> tuple[TraceDevice, ...]:
    """Devices by id: those described, and those seen at work without a description. Of equal ids the first."""
    by_id: dict[int, TraceDevice] = {}
    for device in described:
        by_id.setdefault(device.id, device)
    for number in seen:
        by_id.setdefault(int(number), TraceDevice(id=int(number)))
    return tuple(by_id[number] for number in sorted(by_id))
