"""Seconds of blocks that were asked for before: a layout, a search and the next question share most of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Array = Any  # a numpy array
Made = Callable[[Array], list[Array]]
MOST = 4096  # combinations kept, a kilobyte or so each


class KnownTimes:
    """Tables [pass, column, combination] of each group of pieces, by what they depend on.

    Columns are numbers of one combination each, whatever stands beside it, so that those made together with others are
    those made alone. Threads may share one: places and tables are replaced together.
    """

    def __init__(self) -> None:
        self._held: tuple[Mapping[tuple[float, ...], int], list[Array]] = ({}, [])

    def __len__(self) -> int:
        """Combinations kept."""
        return len(self._held[0])

    def times(self, keys: Array, make: Made) -> list[Array]:
        """The tables of `keys` [axis, combination], which are distinct; `make` is called with those that are new. All
        are forgotten where there would be too many.
        """
        wanted = list(map(tuple, keys.T.tolist()))
        if len(wanted) > MOST:
            return make(keys)
        places, tables = self._held
        new = [at for at, key in enumerate(wanted) if key not in places]
        if len(places) + len(new) > MOST:
            places, tables, new = {}, [], list(range(len(wanted)))
        if new:
            places, tables = self._held = _grown(places, tables, [wanted[at] for at in new], make(keys[:, new]))
        at = [places[key] for key in wanted]
        return [table[:, :, at] for table in tables]


def _grown(
    places: Mapping[tuple[float, ...], int], tables: list[Array], keys: list[tuple[float, ...]], made: list[Array]
) -> tuple[Mapping[tuple[float, ...], int], list[Array]]:
    import numpy as np  # noqa: PLC0415

    more = {key: len(places) + at for at, key in enumerate(keys)}
    joined = [np.concatenate(pair, axis=2) for pair in zip(tables, made, strict=True)] if tables else made
    return {**places, **more}, joined
