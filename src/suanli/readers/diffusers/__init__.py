"""Configs of diffusers, told by `_class_name`. The classes are loaded with the first config that is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suanli.nouns.arch import Arch

CLASS = "_class_name"


def is_diffusers(values: Mapping[str, Any]) -> bool:
    """Whether a config names a class of diffusers."""
    return CLASS in values and "model_type" not in values


def known_classes() -> tuple[str, ...]:
    """The classes that are read by formula."""
    from suanli.readers.diffusers import classes  # noqa: PLC0415

    return tuple(classes.READERS)


def read_diffusers_config(values: Mapping[str, Any], name: str, where: str = "config") -> Arch:
    """The architecture a config describes. Raises ConfigError naming every missing, bad or contradictory key."""
    from suanli.readers.diffusers import classes  # noqa: PLC0415

    return classes.read_class(values, name, where)
