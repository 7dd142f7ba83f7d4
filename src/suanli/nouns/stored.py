"""Weights as a file stores them: a scheme that is no rule but the file's own header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suanli.nouns.formats import Scheme
from suanli.nouns.tensors import TensorTable


@dataclass(frozen=True, kw_only=True)
class StoredScheme(Scheme):
    """The tensors of a header. `like` is the scheme nearest to them: what drafts, peaks and comparisons go by."""

    like: Scheme = field(metadata={"unit": "", "doc": "scheme nearest to what is stored"})
    table: TensorTable = field(compare=False, repr=False, metadata={"unit": "", "doc": "the header"})
    file: str = field(metadata={"unit": "", "doc": "whose header"})
    rates: tuple[tuple[str, float], ...] = field(metadata={"unit": "B", "doc": "a weight, scales included, by part"})

    def rate(self, part: str) -> float:
        """Bytes of one weight of a part; a head that is tied is the table."""
        known: Mapping[str, float] = dict(self.rates)
        if part == "head" and "head" not in known:
            part = "embedding"
        return known.get(part, known.get("linear", 2.0))


def unstored(scheme: Scheme) -> Scheme:
    """The scheme itself, or the one that stored weights are like: for another model than the file's."""
    return scheme.like if isinstance(scheme, StoredScheme) else scheme
