"""Which modules a scheme leaves alone: parts of a path, globs, or regular expressions, as engines match them."""

from __future__ import annotations

import fnmatch
import functools
import re

from suanli.nouns.formats import Scheme

_INDICES = re.compile(r"\.[\d,:…-]+$")
PATTERN = "re:"


def layer_path(path: str, label: str, number: int) -> str:
    """The path of a leaf in one layer: `model.layers.0-31.mlp.up` and 3 give `model.layers.3.mlp.up`."""
    stem = _INDICES.sub("", label)
    return f"{stem}.{number}{path.removeprefix(label)}" if stem != label else path


def skips(scheme: Scheme, path: str) -> bool:
    """Whether a module stays in the base format."""
    return any(_matches(entry, path) for entry in scheme.skip)


def _matches(entry: str, path: str) -> bool:
    if entry.startswith(PATTERN):
        return _compiled(entry.removeprefix(PATTERN)).match(path) is not None
    if "*" in entry:
        return fnmatch.fnmatchcase(path, entry) or fnmatch.fnmatchcase(path, f"{entry}.*")
    return f".{entry}." in f".{path}."


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
