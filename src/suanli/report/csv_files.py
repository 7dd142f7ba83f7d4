"""A result as CSV: raw numbers in the units of the JSON, which stand in the heads; tables with an empty line between.

What is one value comes first, a line each. Every list of records is a table, its heads the keys of the JSON with their
units, `layouts[].step_time_s [s]`; a list inside a record is a table of its own, with the place of the record it is of.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from suanli.nouns.result import Result, plain
from suanli.nouns.scaling import METRICS, Scaling

PLACE, KEY = "(place)", "(name)"  # of the record that a row is of; of a record in a mapping
Row = dict[str, Any]


@dataclass
class Sheet:
    """Values by themselves, and tables by the key of their list."""

    values: list[tuple[str, Any, str]] = field(default_factory=list)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)


def as_csv(result: Result) -> str:
    """The text of the file."""
    sheet = Sheet()
    for name, value, unit in _parts(result.result):
        _put(sheet, name, value, unit)
    sheet.units |= _own_units(result.result)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if sheet.values:
        writer.writerow(("quantity", "value", "unit"))
        writer.writerows((name, _cell(value), unit) for name, value, unit in sheet.values)
    for key, rows in sheet.tables.items():
        if out.tell():
            out.write("\n")
        _write(writer, key, rows, sheet.units)
    return out.getvalue()


def _own_units(found: Any) -> dict[str, str]:
    """Units that depend on what was asked: those of a figure that sizes are compared by."""
    return {"sizes[].value": METRICS[found.by].unit} if isinstance(found, Scaling) else {}


def _parts(record: Any) -> Iterator[tuple[str, Any, str]]:
    """Name, value and unit of what a record or mapping holds."""
    if isinstance(record, Mapping):
        yield from ((str(name), value, "") for name, value in record.items())
    else:
        for each in fields(record):
            if not each.metadata.get("hidden"):
                yield each.name.rstrip("_"), getattr(record, each.name), each.metadata.get("unit", "")


def _is_record(value: Any) -> bool:
    return (is_dataclass(value) and not isinstance(value, type)) or isinstance(value, Mapping)


def _put(sheet: Sheet, name: str, value: Any, unit: str) -> None:
    """A value of the result: a line, lines of its parts, or a table."""
    if isinstance(value, Mapping) and value and all(map(_is_record, value.values())):
        for key, record in value.items():
            _add_row(sheet, f"{name}{{}}", record, {KEY: key})
    elif _is_record(value):
        for part, inner, own in _parts(value):
            _put(sheet, f"{name}.{part}", inner, own or unit)
    elif isinstance(value, list | tuple | range) and len(value):
        for place, each in enumerate(value, 1):
            if _is_record(each):
                _add_row(sheet, f"{name}[]", each, {})
            else:
                sheet.values.append((f"{name}[{place}]", each, unit))
    elif not (isinstance(value, list | tuple | Mapping) and not value):
        sheet.values.append((name, value, unit))


def _add_row(sheet: Sheet, key: str, record: Any, row: Row) -> None:
    """A record as a row of the table of its list; lists in it as rows of tables of their own."""
    rows = sheet.tables.setdefault(key, [])
    rows.append(row)
    _fill(sheet, key, "", record, row, len(rows))


def _fill(sheet: Sheet, key: str, prefix: str, record: Any, row: Row, place: int, outer: str = "") -> None:
    """Cells of a row from a record; what a mapping holds has the unit of the mapping, `outer`."""
    for part, value, own in _parts(record):
        name, unit = f"{prefix}{part}", own or outer
        if _is_record(value):
            _fill(sheet, key, f"{name}.", value, row, place, unit)
        elif isinstance(value, list | tuple) and any(map(_is_record, value)):
            for each in value:
                _add_row(sheet, f"{key}.{name}[]", each, {PLACE: place})
        elif not (isinstance(value, list | tuple) and not value):
            row[name] = value
            sheet.units.setdefault(f"{key}.{name}", unit)


def _write(writer: Any, key: str, rows: Sequence[Row], units: Mapping[str, str]) -> None:
    """A table: every name that a row of it has, in the order in which they come."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer.writerow(_head(key, name, units.get(f"{key}.{name}", "")) for name in names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)


def _head(key: str, name: str, unit: str) -> str:
    """`layouts[].step_time_s [s]`; `layouts[] (place)` of what a row is of; `by_convention{} (name)` of a mapping."""
    if name in (PLACE, KEY):
        return f"{key.rpartition('.')[0] if name == PLACE else key} {name}"
    return f"{key}.{name} [{unit}]" if unit else f"{key}.{name}"


def _cell(value: Any) -> str:
    """A number as JSON has it, a text as it is; lists of texts or numbers as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
