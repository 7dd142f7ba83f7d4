"""Payloads of NVTX ranges: NCCL says there the communicator, the size of the message and the peer.

Two forms, by how the report was exported: `jsonText` (`nsys export --include-json true`), an object of the schema's
entries by name; `binaryData` (`--include-blobs true`), a head of four little-endian u64 (domain, schema, size of the
payload, a length) and the C struct that NVTX_PAYLOAD_SCHEMA_ENTRIES describes by type and offset.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from suanli.nouns.trace import CollectiveCall

_HEAD = struct.Struct("<QQQQ")
_LOW = 2**32 - 1  # the schema's number is its head's lower half
# nvToolsExtPayload.h, NVTX_PAYLOAD_ENTRY_TYPE_*: int 5, unsigned 6, long 7 … size_t 22, address 23
_TYPES = {
    3: "<h", 4: "<H", 5: "<i", 6: "<I", 7: "<q", 8: "<Q", 9: "<q", 10: "<Q", 11: "<b", 12: "<B", 13: "<h", 14: "<H",
    15: "<i", 16: "<I", 17: "<q", 18: "<Q", 22: "<Q", 23: "<Q",
}  # fmt: skip
COMMUNICATOR, MESSAGE, PEER, RANKS = "NCCL communicator ID", "Message size [bytes]", "Peer rank", "No. of ranks"
_CALLS = frozenset(
    "nccl" + name
    for name in (
        "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Bcast", "Reduce", "Send", "Recv", "AllToAll",
        "AlltoAll", "Gather", "Scatter",
    )
)  # fmt: skip
Entry = tuple[str, int, int]  # name, type, offset


class Payloads:
    """The schemas of one file."""

    def __init__(self, entries: Iterable[tuple[Any, ...]]) -> None:
        """Rows (domain, schema, name, type, offset); the offset of the first entry is often left out."""
        self._schemas: dict[tuple[int, int], dict[str, Entry]] = {}
        for domain, schema, name, kind, offset in entries:
            if all(isinstance(each, int) for each in (domain, schema, kind)) and isinstance(name, str):
                place = offset if isinstance(offset, int) else 0
                self._schemas.setdefault((domain, schema), {})[name] = (name, kind, place)

    def read(self, json_text: Any, binary: Any) -> Mapping[str, int] | None:
        """Whole numbers of a payload by the names of their entries; None where it cannot be read."""
        if isinstance(json_text, str) and json_text:
            return _from_json(json_text)
        if isinstance(binary, bytes) and binary:
            return self._from_binary(binary)
        return None

    def _from_binary(self, data: bytes) -> Mapping[str, int] | None:
        if len(data) < _HEAD.size:
            return None
        domain, schema, size, _ = _HEAD.unpack_from(data)
        entries = self._schemas.get((domain & _LOW, schema & _LOW))
        if entries is None:
            return None
        body = data[_HEAD.size : _HEAD.size + size]
        read = {name: _number(body, kind, place) for name, kind, place in entries.values()}
        return {name: value for name, value in read.items() if value is not None}


def _number(body: bytes, kind: int, place: int) -> int | None:
    form = _TYPES.get(kind)
    if form is None or place < 0 or place + struct.calcsize(form) > len(body):
        return None
    value: int = struct.unpack_from(form, body, place)[0]
    return value


def _from_json(text: str) -> Mapping[str, int] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    inside = found.get("payload", found)
    pairs = inside.items() if isinstance(inside, dict) else ()
    return {name: value for name, each in pairs if (value := _whole(each)) is not None}


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            return int(value, 0) if len(value) < 20 else None
        except ValueError:
            return None
    return value if isinstance(value, int) else None


def collective(name: str, payload: Mapping[str, int] | None, ranks: Mapping[int, int]) -> CollectiveCall | None:
    """The call that a range of this name is; None where it is none (ncclGroupStart, ncclCommCount …).

    `ranks` is the members of each communicator, as ncclCommInit* says.
    """
    if name not in _CALLS:
        return None
    said = payload or {}
    group = said.get(COMMUNICATOR)
    return CollectiveCall(
        name=name,
        group=None if group is None else f"{group:#x}",
        group_size=None if group is None else ranks.get(group),
        message_bytes=_counted(said.get(MESSAGE)),
        peer=_counted(said.get(PEER)),
    )


def _counted(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None
