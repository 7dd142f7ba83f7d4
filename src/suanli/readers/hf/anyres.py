"""Pictures of any resolution cut into tiles (LLaVA-NeXT, arXiv:2408.03326 §3.2): which canvas, how many tokens."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from suanli.readers.config import Config

Size = tuple[int, int]
MAX_PINPOINTS = 1000


@dataclass(frozen=True)
class Pinpoints:
    """The canvases a picture may be laid on, and the side of a tile."""

    canvases: tuple[Size, ...]
    tile: int

    @classmethod
    def read(cls, config: Config, tile: int) -> Pinpoints:
        """The canvases of a description; each must be a whole number of tiles."""
        value: Any = config.values.get("image_grid_pinpoints")
        good = isinstance(value, list | tuple) and 0 < len(value) <= MAX_PINPOINTS
        pairs = tuple(tuple(pair) if isinstance(pair, list | tuple) else () for pair in (value if good else ()))
        fits = all(
            len(pair) == 2 and all(isinstance(side, int) and side > 0 and side % tile == 0 for side in pair)
            for pair in pairs
        )
        if not good or not fits:
            config.fault(
                "bad_value" if value is not None else "missing_key", "image_grid_pinpoints is not possible",
                "image_grid_pinpoints", expected="a list of [height, width], whole numbers of tiles",
            )  # fmt: skip
            return cls(((tile, tile),), tile)
        return cls(tuple((int(pair[0]), int(pair[1])) for pair in pairs), tile)

    def canvas(self, size: Size) -> Size:
        """The canvas that keeps most of the picture, and of those the one that wastes least."""

        def kept(canvas: Size) -> tuple[int, int]:
            scale = min(canvas[1] / size[1], canvas[0] / size[0])
            area = min(int(size[1] * scale) * int(size[0] * scale), size[0] * size[1])
            return area, area - canvas[0] * canvas[1]

        return max(self.canvases, key=kept)  # of equals the first, as published

    def tiles(self, size: Size) -> int:
        """Tiles of the canvas, and one of the whole picture."""
        height, width = self.canvas(size)
        return (height // self.tile) * (width // self.tile) + 1

    def unpadded(self, size: Size, side: int, most: int | None) -> Size:
        """Rows and columns of patches that show the picture and not the canvas around it; `side` patches a tile.

        With `most`, shrunk to about that many tiles of patches where more than 1.1 times too large on a side.
        """
        canvas = self.canvas(size)
        height, width = (canvas[0] // self.tile) * side, (canvas[1] // self.tile) * side
        if size[1] / size[0] > width / height:
            shown = int(round(size[0] * (width / size[1]), 7))
            height -= 2 * ((height - shown) // 2)
        else:
            shown = int(round(size[1] * (height / size[0]), 7))
            width -= 2 * ((width - shown) // 2)
        if most is not None:
            ratio = sqrt(height * width / (most * side**2))
            if ratio > 1.1:
                return int(height // ratio), int(width // ratio)
        return height, width

    @staticmethod
    def largest(config: Config) -> int:
        """The number at the end of `anyres_max_9`."""
        word = config.raw("vision_aspect_ratio")
        digits = str(word or "anyres_max_9").removeprefix("anyres_max_")
        if not digits.isdigit() or not 0 < int(digits) < MAX_PINPOINTS:
            config.fault("bad_value", "vision_aspect_ratio is not possible", "vision_aspect_ratio", got=str(word))
            return 9
        return int(digits)
