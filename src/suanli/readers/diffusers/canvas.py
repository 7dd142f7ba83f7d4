"""What a denoiser works on: pixels become a latent, and the latent patches, which are the model's positions.

A config says how a latent is cut, not which autoencoder made it: its scale is the class's own, unless
`vae_scale_factor` (and `vae_scale_factor_temporal`) stand in the config.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from suanli.readers.config import Config, StandIn

PATCHES, JOINT = "patches", "text and patches"
FRAMES, PAIR = "latent frames", "two numbers"
MAX_SIDE, MAX_FRAMES, MAX_SCALE = 100_000, 100_000, 1024

Size = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Usual:
    """What a class is used with where nothing else is said: as its pipeline in diffusers has it."""

    picture: tuple[int, int] = (1024, 1024)
    frames: int | None = None  # of a clip; None for a model of pictures
    scale: int = 8  # pixels a latent cell is wide
    scale_t: int = 4  # frames a latent frame holds, after the first
    packed: int = 1  # latent cells side by side in one position before the model sees them
    text: int | None = None  # tokens of the prompt


@dataclass(frozen=True, kw_only=True)
class Canvas:
    """A picture or clip, its latent, and its patches; sizes are (frames,) height, width."""

    pixels: Size
    latent: Size
    grid: Size
    scale: Size
    assumed: bool

    @property
    def positions(self) -> int:
        """Patches of one picture or clip."""
        return prod(self.grid)

    @property
    def latent_note(self) -> str:
        """How pixels became a latent."""
        what = "clip" if len(self.pixels) == 3 else "picture"
        by = "" if set(self.scale) == {1} else f", an autoencoder of {times(self.scale)} assumed"
        shown = f"{what} {times(self.pixels)}{' (assumed)' if self.assumed else ''}"
        return f"{shown} = latent {times(self.latent)}{by}"

    @property
    def note(self) -> str:
        """How pixels became positions."""
        comma = "" if set(self.scale) == {1} else ","
        return f"{self.latent_note}{comma} = {times(self.grid)} patches: {self.positions:,} positions"


def times(sizes: Sequence[int]) -> str:
    """`33x480x720`."""
    return "x".join(map(str, sizes))


def read_canvas(config: Config, usual: Usual, patch: Size, *, square: bool = False) -> Canvas:
    """The canvas of `image_size` (pixels) and `num_frames`, or the config's own latent `sample_size`, or the usual.

    `patch` has one extent a dimension. A size that does not divide into patches is a fault.
    """
    scale = config.whole("vae_scale_factor", default=usual.scale, high=MAX_SCALE)
    picture = _picture(config, usual, scale)
    step = scale * usual.packed
    for side, extent, name in zip(picture, patch[-2:], ("height", "width"), strict=True):
        if side % (step * extent):
            config.fault(
                "bad_value", f"the picture's {name} does not divide into patches", "image_size",
                got=times(picture), expected=f"a multiple of {step * extent} pixels",
            )  # fmt: skip
    if square and picture[0] != picture[1]:
        config.fault("unsupported", "the model makes square pictures only", "image_size", got=times(picture))
    latent = tuple(side // scale for side in picture)
    grid = tuple(max(1, side // (step * extent)) for side, extent in zip(picture, patch[-2:], strict=True))
    assumed = not config.has("image_size")
    if usual.frames is None:
        return Canvas(pixels=picture, latent=latent, grid=grid, scale=(scale, scale), assumed=assumed)
    scale_t = config.whole("vae_scale_factor_temporal", default=usual.scale_t, high=MAX_SCALE)
    frames = _frames(config, usual.frames, scale_t)
    latents = (frames - 1) // scale_t + 1
    return Canvas(
        pixels=(frames, *picture), latent=(latents, *latent), grid=(-(-latents // patch[0]), *grid),
        scale=(scale_t, scale, scale), assumed=assumed or not config.has("num_frames"),
    )  # fmt: skip


def _frames(config: Config, usual: int, scale: int) -> int:
    frames = config.whole("num_frames", default=config.whole("sample_frames", default=usual), high=MAX_FRAMES)
    if (frames - 1) % scale:
        config.fault(
            "bad_value", "the frames do not divide into latent frames", "num_frames", got=f"{frames:,}",
            expected=f"a multiple of {scale}, and one",
        )  # fmt: skip
    return frames


def _picture(config: Config, usual: Usual, scale: int) -> tuple[int, int]:
    """Height and width in pixels; the usual ones stand in for bad ones."""
    if config.has("image_size"):
        return _pair(config, "image_size") or usual.picture
    if config.has("sample_height", "sample_width"):
        height, width = (config.need(name, high=MAX_SIDE) for name in ("sample_height", "sample_width"))
        return height * scale, width * scale
    cells = _pair(config, "sample_size") if config.has("sample_size") else None
    return usual.picture if cells is None else (cells[0] * scale, cells[1] * scale)


def _pair(config: Config, name: str) -> tuple[int, int] | None:
    """A number, which is a square, or height and width; None where bad."""
    value = config.raw(name)
    if not isinstance(value, list | tuple):
        side = config.need(name, high=MAX_SIDE)
        return None if isinstance(side, StandIn) else (side, side)
    found = config.wholes(name, low=1, high=MAX_SIDE)
    if found is not None and len(found) not in (1, 2):
        config.fault("bad_value", f"{name} is not height and width", name, got=f"a list of {len(found):,}")
        return None
    return None if found is None else (found[0], found[-1])


def patch_of(config: Config, default: Size, name: str = "patch_size", time: str | None = None) -> Size:
    """Extents of a patch: a list, or one number for height and width with that of `time` before them."""
    value = config.raw(name)
    if isinstance(value, list | tuple):
        found = config.wholes(name, low=1, high=MAX_SCALE) or default
        if len(found) != len(default):
            config.fault("bad_value", f"{name} has not {len(default)} extents", name, got=f"a list of {len(found):,}")
            return default
        return found
    side = config.whole(name, default=default[-1], high=MAX_SCALE)
    if len(default) == 2:
        return side, side
    if time is None:
        return default if value is None else (side, side, side)
    return config.whole(time, default=default[0], high=MAX_SCALE), side, side
