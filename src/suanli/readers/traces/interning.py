"""Things kept once and known by their place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class Places(dict[Any, int]):
    """A key -> its place, given at the first sight of it; `values_made` are what `make` says of each key, in order."""

    def __init__(self, make: Callable[[Any], Any] | None = None) -> None:
        super().__init__()
        self._make = make
        self.values_made: list[Any] = []

    def __missing__(self, key: Hashable) -> int:
        place = self[key] = len(self.values_made)
        self.values_made.append(key if self._make is None else self._make(key))
        return place

    @property
    def keys_made(self) -> list[Any]:
        """The keys that have a place, in order."""
        return [key for key, place in self.items() if place >= 0]

    def of(self, keys: Sequence[Any]) -> npt.NDArray[np.int32]:
        """Places of many, int32. New ones take theirs in the order they come: the same in every process."""
        return np.fromiter(map(self.__getitem__, keys), dtype=np.int32, count=len(keys))
