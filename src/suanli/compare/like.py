"""The number a tool would give, by its rules applied to our record of a model: the tool need not be installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from suanli.compare.forms import amount
from suanli.compare.peers import CPU
from suanli.compare.rules import TABLES, Table

Call = Mapping[str, Any]


@dataclass(frozen=True)
class Predicted:
    """A tool's total and books, in its own unit."""

    total: int
    entries: tuple[tuple[str, str, int], ...]


def predict(tool: str, calls: Iterable[Call], device: str, *, batch: int = 1, positional: bool = False) -> Predicted:
    """What `tool` says of recorded calls on a device. `positional`: the first input is no keyword."""
    table, recorded = TABLES[tool], list(calls)
    whole = {call["path"] for call in recorded if call["height"] == "module" and call["name"] in table.whole}
    rows = [row for call in recorded for row in _rows(table, call, device, whole)]
    total = sum(flops for _, _, flops in rows)
    if table.per_sample and positional:
        modules = sum(flops for _, operator, flops in rows if operator[:1].isupper())
        total = modules // batch + total - modules
    return Predicted(total, tuple(rows))


def _rows(table: Table, call: Call, device: str, whole: set[str]) -> Iterator[tuple[str, str, int]]:
    """What one call is charged, calls added up."""
    name, path = call["name"], call["path"]
    if call["height"] == "module":
        if not call["leaf"] and name != "MultiheadAttention":
            return
        rule = table.any_leaf or (table.modules.get(name, "") if call["plain"] else "")
        yield from _row(path, name, rule, call, call["times"])
    elif call["height"] == "function":
        if (path not in whole or path) and not (call["kernel"] and device == CPU):
            place = (
                path.rpartition(".")[0] if path in whole else path
            )  # a module counted whole keeps no list of its own
            yield from _row(place, name.partition(".")[2], table.functions.get(name, ""), call, call["times"])
    else:
        yield from _row(path, name, table.operators.get(name, ""), call, call["times"])
        for product in call["products"] if table.products else ():
            if table.only_on.get(product[0], device) == device:
                alone = {**call, "products": [product]}
                yield from _row(path, product[0], table.products.get(product[0], ""), alone, call["times"])


def _row(path: str, name: str, rule: str, call: Call, times: int) -> Iterator[tuple[str, str, int]]:
    charged = times * amount(rule, call) if rule else 0
    if charged:
        yield path, name, charged
