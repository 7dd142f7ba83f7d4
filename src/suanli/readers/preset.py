"""A preset of the catalogue as an architecture."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from suanli.catalog.presets import Preset, presets
from suanli.nouns.arch import Arch
from suanli.readers import layer_expr, paper
from suanli.readers.configs import Image, read_config, with_image


@lru_cache(maxsize=64)
def read_named_preset(name: str, image: Image | None = None, frames: int | None = None) -> Arch:
    """The architecture of the preset of that exact name; read once, as architectures never change."""
    return read_preset(presets()[name], image, frames)


def read_preset(preset: Preset, image: Image | None = None, frames: int | None = None) -> Arch:
    """The architecture of a preset, with its source; `image` is the picture's height and width, `frames` a clip's."""
    arch = _read(preset, image, frames)
    notes = (*arch.notes, preset.notes) if preset.notes else arch.notes
    return replace(
        arch,
        title=preset.title,
        task=preset.task or arch.task,
        sources=(preset.source,),
        notes=notes,
        max_positions=preset.max_positions or arch.max_positions,
    )


def _read(preset: Preset, image: Image | None, frames: int | None) -> Arch:
    where = f"preset {preset.name}"
    if preset.format == "expression":
        return layer_expr.read_layer_expression(preset.config["expression"], preset.name, image)
    if preset.format in ("hf", "diffusers"):
        return read_config(preset.config, preset.name, where, image, frames)
    return paper.READERS[preset.format](with_image(preset.config, image), preset.name, where)
