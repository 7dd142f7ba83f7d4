"""Threads of a file of Kineto, each once, however its process and number are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.readers.traces.interning import Places
from suanli.readers.traces.kineto_events import Width

Array = npt.NDArray[Any]
_MOST_LETTERS = 200  # of a name that is kept
_NONE = np.zeros(0, dtype=np.int64)


class Threads(dict[tuple[int | str, int | str], int]):
    """Process and thread as the file prints them -> their place, once as text however they are printed."""

    def __init__(self, places: Places) -> None:
        super().__init__()
        self._places = places
        self._sorted: dict[int, tuple[Array, Array]] = {}  # of a process its threads and their places

    def __missing__(self, pair: tuple[int | str, int | str]) -> int:
        process, thread = (str(each)[:_MOST_LETTERS] for each in pair)
        place = self[pair] = self._places[process, thread]
        return place

    def of(self, pids: Sequence[int | str], tids: Sequence[int | str], width: Width = Width.ANY) -> Array:
        """Places of many, int32, new ones in the order they come; both are numbers or empty below the width ANY."""
        numbers = _numbers(pids, tids) if width < Width.ANY else None
        if numbers is not None and (numbers[0] == numbers[0][0]).all():
            return self._of_process(int(numbers[0][0]), numbers[1])
        return np.fromiter(map(self.__getitem__, zip(pids, tids, strict=True)), dtype=np.int32, count=len(pids))

    def _of_process(self, process: int, tids: Array) -> Array:
        """Places of threads of one process, which are few: found among them sorted."""
        known, places = self._sorted.get(process, (_NONE, _NONE))
        at = np.searchsorted(known, tids)
        found = np.append(known, 0)[at] == tids
        found &= at < len(known)
        if not found.all():
            fresh = {tid: self[process, tid] for tid in tids[~found].tolist()}
            known, places = np.append(known, list(fresh)), np.append(places, list(fresh.values()))
            order = np.argsort(known)
            self._sorted[process] = known, places = known[order], places[order]
            at = np.searchsorted(known, tids)
        return places[at].astype(np.int32)


def _numbers(pids: Sequence[Any], tids: Sequence[Any]) -> tuple[Array, Array] | None:
    """Both as int64; None where a number does not fit, or is not said (an empty text)."""
    try:
        process, thread = (np.fromiter(each, dtype=np.int64, count=len(each)) for each in (pids, tids))
    except (OverflowError, ValueError):
        return None
    return process, thread
