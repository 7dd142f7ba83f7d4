"""Formula against trace, term by term: which module and pass of a model the two count differently, and by how much."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from suanli.nouns.ledger import Ledger, Op

_COPIES = re.compile(r"(?<=\.)[\d,:…-]+(?=\.|$)")


@dataclass(frozen=True, kw_only=True)
class TermDifference:
    """One term of a model that two ledgers do not agree on; copies of a layer are taken together."""

    path: str = field(metadata={"unit": "", "doc": "where in the model, `*` for every copy"})
    pass_: str = field(metadata={"unit": "", "doc": "forward, backward or recompute"})
    by_formula: int = field(metadata={"unit": "FLOPs", "doc": "counted by formula"})
    by_trace: int = field(metadata={"unit": "FLOPs", "doc": "counted by running the model"})

    @property
    def sentence(self) -> str:
        """The difference as a line."""
        more = self.by_trace - self.by_formula
        return f"{self.path} {self.pass_}: formula {self.by_formula:,}, trace {self.by_trace:,} ({more:+,})"


def term_differences(by_formula: Ledger, by_trace: Ledger) -> tuple[TermDifference, ...]:
    """Terms that differ, largest first; empty where both agree on every one.

    Leaves of other names whose module's sum is the same do not differ; else the smallest module that does is named.
    """
    return tuple(sorted(_search(by_formula, by_trace), key=lambda term: -abs(term.by_trace - term.by_formula)))


def _search(by_formula: Ledger, by_trace: Ledger) -> Iterable[TermDifference]:
    sums = [_sums(ledger.rows, lambda path: path) for ledger in (by_formula, by_trace)]
    for depth in _depths(sums):
        merged = [_merged(each, depth) for each in sums]
        found = [key for key in {**merged[0], **merged[1]} if merged[0].get(key, 0) != merged[1].get(key, 0)]
        clean = all(key in merged[0] and key in merged[1] for key in found)
        if not found or clean or depth == 0:
            for path, pass_ in found:
                key = (path, pass_)
                yield TermDifference(
                    path=path or "model", pass_=pass_, by_formula=merged[0].get(key, 0), by_trace=merged[1].get(key, 0)
                )
            return


Sums = dict[tuple[str, str], int]


def _sums(rows: Iterable[Op], name: Callable[[str], str]) -> Sums:
    """FLOPs by path (copies together) and pass."""
    found: Sums = {}
    for row in rows:
        if row.hardware_flops:
            key = (name(every_copy(row.path)), row.pass_)
            found[key] = found.get(key, 0) + row.hardware_flops
    return found


def every_copy(path: str) -> str:
    """`model.layers.0-31.mlp` as `model.layers.*.mlp`."""
    return _COPIES.sub("*", path)


def _depths(sums: list[Sums]) -> range:
    return range(max((path.count(".") + 1 for each in sums for path, _ in each), default=0), -1, -1)


def _merged(sums: Sums, depth: int) -> Sums:
    """The same with paths cut to a depth."""
    found: Sums = {}
    for (path, pass_), flops in sums.items():
        key = (".".join(path.split(".")[:depth]), pass_)
        found[key] = found.get(key, 0) + flops
    return found
