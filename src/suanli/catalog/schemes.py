"""How weights are stored, by name: the schemes of `schemes.toml`, and ggml's types for every matrix."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any

from suanli.catalog import ggml
from suanli.errors import unknown_name
from suanli.nouns.formats import Format, Scheme

FILE = "schemes.toml"
EVERY_MATRIX = ("linear", "experts", "head", "embedding")


def list_schemes() -> tuple[Scheme, ...]:
    """Every scheme, ggml's types last."""
    return tuple(_catalogue().values())


def find_scheme(name: str, where: str = "--dtype") -> Scheme:
    """The scheme of that name, letter case aside. Raises UnknownNameError, naming the nearest."""
    found = _catalogue().get(str(name).strip().lower())
    if found is None:
        hint = "A config's quantization_config is read as it stands: no name is needed then."
        raise unknown_name("weight scheme", str(name), tuple(_catalogue()), where=where, hint=hint)
    return found


@functools.cache
def _catalogue() -> dict[str, Scheme]:
    text = resources.files("suanli.catalog").joinpath(FILE).read_text(encoding="utf-8")
    named = {name: _scheme(name, entry) for name, entry in tomllib.loads(text).items()}
    blocks = (
        Format(name=name.lower(), values=values, nbytes=nbytes, source=ggml.SOURCE)
        for name, values, nbytes in ggml.GGML_TYPES.values()
        if values > 1
    )
    return named | {block.name: _of_ggml(block) for block in blocks if block.name not in named}


def _scheme(name: str, entry: dict[str, Any]) -> Scheme:
    """A scheme of the file; 0 stands for all outputs, as TOML has no null."""
    values = {**entry, "targets": tuple(entry.get("targets", ()))}
    return Scheme(name=name, **values | ({"group_out": None} if entry.get("group_out") == 0 else {}))


def _of_ggml(block: Format) -> Scheme:
    title = f"every matrix in {block.name.upper()} ({float(block.bits):g} bits a weight), vectors in fp32"
    return Scheme(
        name=block.name, title=title, bits=block.bits, base="fp32", targets=EVERY_MATRIX, source=block.source
    )  # fmt: skip
