"""Hugging Face `config.json`, by family. The families are many, and loaded with the first config that is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suanli.nouns.arch import Arch


def read_hf_config(values: Mapping[str, Any], name: str, where: str = "config") -> Arch:
    """The architecture a config describes. Raises ConfigError naming every missing, bad or contradictory key."""
    from suanli.readers.hf import families  # noqa: PLC0415

    return families.read_family(values, name, where)


def __getattr__(name: str) -> Any:
    """`READERS`, `CAUSAL` and `COMPOSED`, the tables of readers by `model_type`."""
    if name in ("READERS", "CAUSAL", "COMPOSED"):
        from suanli.readers.hf import families  # noqa: PLC0415

        return getattr(families, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
