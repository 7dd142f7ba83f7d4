"""A config of either library as an architecture: transformers' by `model_type`, diffusers' by `_class_name`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suanli.nouns.arch import Arch
from suanli.readers.diffusers import is_diffusers, read_diffusers_config
from suanli.readers.hf import read_hf_config

Image = tuple[int, ...]


def read_config(
    values: Mapping[str, Any], name: str, where: str, image: Image | None = None, frames: int | None = None
) -> Arch:
    """The architecture, for another picture size or length of clip where given. Raises ConfigError."""
    if isinstance(values, Mapping) and is_diffusers(values):
        return read_diffusers_config(with_clip(values, image, frames), name, where)
    return read_hf_config(with_image(values, image), name, where)


def with_clip(config: Mapping[str, Any], image: Image | None, frames: int | None) -> Mapping[str, Any]:
    """The same config of diffusers for a picture of so many pixels, or a clip of so many frames."""
    sizes: dict[str, Any] = {} if image is None else {"image_size": list(image)}
    return {**config, **sizes, **({} if frames is None else {"num_frames": frames})}


def with_image(config: Mapping[str, Any], image: Image | None) -> Mapping[str, Any]:
    """The same config of transformers for another picture size."""
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
