"""All classes of diffusers that are read by formula, by `_class_name`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from suanli.errors import ConfigError, Fault, nearest_names
from suanli.nouns.arch import Arch
from suanli.readers.config import Config, brief
from suanli.readers.diffusers import autoencoder, clips, joint, mmdit, pictures, unet

READERS: dict[str, Callable[[Config, str], Arch]] = {
    **pictures.FAMILIES,
    **mmdit.FAMILIES,
    **joint.FAMILIES,
    **clips.FAMILIES,
    **unet.FAMILIES,
    **autoencoder.FAMILIES,
}


def read_class(values: Mapping[str, Any], name: str, where: str = "config") -> Arch:
    """The architecture a config describes. Raises ConfigError naming every missing, bad or contradictory key."""
    word = values.get("_class_name")
    reader = READERS.get(word) if isinstance(word, str) else None
    if reader is None:
        raise ConfigError(
            Fault(
                code="unknown_class", message=f"unknown _class_name {brief(word)}", where=f"{where}: _class_name",
                nearest=nearest_names(word, READERS) if isinstance(word, str) else (),
                hint=f"Known by formula: {len(READERS)} classes of diffusers. --trace counts any class of diffusers, "
                "run on --input.",
            )
        )  # fmt: skip
    return reader(Config(values, where), name)
