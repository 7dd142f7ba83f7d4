"""A preset of the catalogue as an architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from suanli.catalog.presets import Preset, presets
from suanli.nouns.arch import Arch
from suanli.readers import layer_expr, paper
from suanli.readers.hf import read_hf_config


@lru_cache(maxsize=64)
def read_named_preset(name: str, image: tuple[int, ...] | None = None) -> Arch:
    """The architecture of the preset of that exact name; read once, as architectures never change."""
    return read_preset(presets()[name], image)


def read_preset(preset: Preset, image: tuple[int, ...] | None = None) -> Arch:
    """The architecture of a preset, with its source; `image` is the picture's height and width."""
    arch = _read(preset, image)
    notes = (*arch.notes, preset.notes) if preset.notes else arch.notes
    return replace(
        arch,
        title=preset.title,
        task=preset.task or arch.task,
        sources=(preset.source,),
        notes=notes,
        max_positions=preset.max_positions or arch.max_positions,
    )


def _read(preset: Preset, image: tuple[int, ...] | None) -> Arch:
    where = f"preset {preset.name}"
    if preset.format == "expression":
        return layer_expr.read_layer_expression(preset.config["expression"], preset.name, image)
    config = with_image(preset.config, image)
    if preset.format == "hf":
        return read_hf_config(config, preset.name, where)
    return paper.READERS[preset.format](config, preset.name, where)


def with_image(config: Mapping[str, Any], image: tuple[int, ...] | None) -> Mapping[str, Any]:
    """The same config for another picture size."""
    if image is None:
        return config
    sides = list(image) * 2 if len(image) == 1 else list(image)  # one number is a square
    from suanli.readers.hf.families import COMPOSED  # noqa: PLC0415  loaded with the first config

    changed: dict[str, Any] = {**config, "image_size": sides}
    if config.get("model_type") in COMPOSED:  # the picture is the model's, the nested size its tower's
        return changed
    if isinstance(config.get("vision_config"), Mapping):
        changed["vision_config"] = {**config["vision_config"], "image_size": sides}
    return changed
