"""What can be read of a JSON file of rocprofv3 that is cut, broken or odd in places; the rest is counted."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from suanli.readers.traces.gathered import Faults
from suanli.readers.traces.rocprofv3_mend import PROCESSES, salvage_document
from suanli.readers.traces.rocprofv3_records import Agent, Kind, Meta, Process, Record, Records, Strings, Symbol, Text
from suanli.readers.traces.sentences import behind, broken_json

_ODD = "{count} {values that are not as rocprofv3 writes them are|value that is not as rocprofv3 writes it is} left out"
Made = TypeVar("Made", bound=msgspec.Struct)


def salvaged(content: bytes, faults: Faults) -> list[Process]:
    """The processes that can be read; none where not one record can be."""
    try:
        found = salvage_document(content)
    except (ValueError, RecursionError):
        return []
    listed = found.document.get(PROCESSES) if isinstance(found.document, dict) else None
    odd: list[Any] = []
    processes = [_process(each, odd) for each in _items(listed, odd) if _is_process(each, odd)]
    if not any(getattr(process.buffer_records, name) for process in processes for name in Records.__struct_fields__):
        return []
    faults.add("broken-json", found.lost_pieces, broken_json(found.lost_bytes))
    faults.add("bad-event", len(odd), _ODD)
    faults.add("truncated", int(found.cut), "the file ends within its records: it was cut, or never finished")
    faults.add("more-documents", int(found.bytes_behind > 0), behind(found.bytes_behind))
    return processes


def _is_process(said: Any, odd: list[Any]) -> bool:
    """Whether it has anything that is read of one. What is lost is counted already."""
    known = isinstance(said, dict) and not said.keys().isdisjoint(Process.__struct_fields__)
    odd += [] if known or said is None else [said]
    return known


def _process(said: dict[str, Any], odd: list[Any]) -> Process:
    """What can be read of a process; what is not as it should be goes to `odd`."""
    strings, records = _member(said, "strings", odd), _member(said, "buffer_records", odd)
    listed = _items(strings.get("buffer_records"), odd)
    kinds = [_one(each, Kind, odd) or Kind() for each in listed]  # known by their places
    texts = _all(strings.get("marker_api"), Text, odd)
    return Process(
        metadata=_one(said.get("metadata"), Meta, odd) or Meta(),
        agents=_all(said.get("agents"), Agent, odd),
        strings=Strings(buffer_records=kinds, marker_api=texts),
        kernel_symbols=_all(said.get("kernel_symbols"), Symbol, odd),
        buffer_records=Records(**{name: _all(records.get(name), Record, odd) for name in Records.__struct_fields__}),
    )


def _member(said: dict[str, Any], name: str, odd: list[Any]) -> dict[str, Any]:
    value = said.get(name)
    odd += [] if value is None or isinstance(value, dict) else [value]
    return value if isinstance(value, dict) else {}


def _items(value: Any, odd: list[Any]) -> list[Any]:
    odd += [] if value is None or isinstance(value, list) else [value]
    return value if isinstance(value, list) else []


def _all(values: Any, kind: type[Made], odd: list[Any]) -> list[Made]:
    return [made for each in _items(values, odd) if (made := _one(each, kind, odd)) is not None]


def _one(value: Any, kind: type[Made], odd: list[Any]) -> Made | None:
    """The record of a value; None where it was lost, or is none, which goes to `odd`."""
    if value is None:
        return None
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError):
        odd.append(value)
        return None
