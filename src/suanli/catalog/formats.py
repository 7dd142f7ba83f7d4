"""Storage formats by name: those of `formats.toml`, and ggml's block types."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

from suanli.catalog import ggml
from suanli.errors import unknown_name
from suanli.nouns.formats import Format

FILE = "formats.toml"


def list_formats() -> tuple[Format, ...]:
    """Every format."""
    return tuple(_catalogue().values())


def find_format(name: str, where: str = "--kv-dtype") -> Format:
    """The format of that name, letter case aside. Raises UnknownNameError, naming the nearest."""
    found = _catalogue().get(str(name).strip().lower())
    if found is None:
        hint = "Blocks with scales: mxfp4 is 17/32 B a number, nvfp4 9/16, q8_0 34/32, q4_0 18/32."
        raise unknown_name("storage format", str(name), tuple(_catalogue()), where=where, hint=hint)
    return found


@functools.cache
def _catalogue() -> dict[str, Format]:
    text = resources.files("suanli.catalog").joinpath(FILE).read_text(encoding="utf-8")
    plain = {name: Format(name=name, **entry) for name, entry in tomllib.loads(text).items()}
    blocks = {
        name.lower(): Format(name=name.lower(), values=values, nbytes=nbytes, source=ggml.SOURCE)
        for name, values, nbytes in ggml.GGML_TYPES.values()
    }
    return blocks | plain
