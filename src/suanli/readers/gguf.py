"""GGUF: metadata and tensors of the header, and the architecture where the metadata describe one that agrees.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, either byte order).
"""

from __future__ import annotations

import struct
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from suanli.catalog.ggml import GGML_TYPES
from suanli.errors import shown
from suanli.nouns.tensors import Tensor, TensorTable
from suanli.readers import gate
from suanli.readers.binary import MAX_HEADER, Faults, opened, refuse
from suanli.readers.gguf_arch import with_arch
from suanli.units import MEGA

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_KEY, MAX_TENSOR_NAME, MAX_RANK = 65_535, 1_000, 8
MAX_ENTRIES = 1_000_000  # tensors, or keys; the largest models have a few thousand
MAX_ARRAY = 10_000_000
MAX_ELEMENTS = 2**63
KEPT = 4096  # arrays up to this length are kept (one entry a layer); vocabularies only by their length
CHUNK = 2 * MEGA

INTEGERS = {"I8", "I16", "I32", "I64"}
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


class _Head:
    """Typed reads from the front of a file, fetched in chunks and never past the bound."""

    def __init__(self, path: Path, stream: BinaryIO, size: int) -> None:
        self.path, self.stream, self.size = path, stream, size
        self.data, self.at, self.order = bytearray(), 0, "<"

    def need(self, count: int) -> int:
        """Move past `count` bytes that are there; the place where they start."""
        start, end = self.at, self.at + count
        if end > self.size:
            refuse(self.path, "truncated", "the file ends within its header", got=f"{self.size:,} bytes")
        if end > MAX_HEADER:
            refuse(self.path, "header_too_large", "the header is too large", expected=f"at most {MAX_HEADER:,} bytes")
        while len(self.data) < end:
            fetched = self.stream.read(max(CHUNK, end - len(self.data)))
            if not fetched:
                refuse(self.path, "truncated", "the file ends within its header", got=f"{len(self.data):,} bytes")
            self.data += fetched
        self.at = end
        return start

    def one(self, code: str) -> Any:
        """One number."""
        layout = self.order + code
        return struct.unpack_from(layout, self.data, self.need(struct.calcsize(layout)))[0]

    def text(self, limit: int, what: str) -> str:
        """A string of bounded length."""
        length = self.one("Q")
        if length > limit:
            refuse(self.path, "bad_string", f"{what} is too long", got=f"{length:,} bytes", expected=f"≤ {limit:,}")
        start = self.need(length)
        return self.data[start : self.at].decode("utf-8", errors="replace")

    def value(self, kind: int, key: str, depth: int = 0) -> Any:
        """A metadata value; long arrays by their length only."""
        if kind in _SCALARS:
            return self.one(_SCALARS[kind])
        if kind == _STRING:
            return self.text(MAX_HEADER, f"the value of {shown(key)}")
        if kind != _ARRAY or depth > 3:
            refuse(self.path, "bad_type", f"unknown type of {shown(key)}", got=str(kind))
        inner, length = self.one("I"), self.one("Q")
        if length > MAX_ARRAY:
            refuse(self.path, "bad_array", f"the array {shown(key)} is too long", got=f"{length:,} entries")
        if inner in _SCALARS:
            layout = f"{self.order}{length}{_SCALARS[inner]}"
            start = self.need(struct.calcsize(layout))
            return list(struct.unpack_from(layout, self.data, start)) if length <= KEPT else Long(length)
        if inner == _STRING and length > KEPT:
            for _ in range(length):
                self.need(self.one("Q"))
            return Long(length)
        found = [self.value(inner, key, depth + 1) for _ in range(length)]
        return found if length <= KEPT else Long(length)


class Long(int):
    """The length of an array that was not kept."""


def read_gguf(path: Path) -> TensorTable:
    """The tensors of a file, with its architecture where that agrees. Raises UnreadableFileError."""
    with opened(path) as (stream, size):
        head = _Head(path, stream, size)
        count, keys = _counts(head)
        metadata: dict[str, Any] = {}
        for _ in range(keys):
            key = head.text(MAX_KEY, "a key")
            if key in metadata:
                refuse(path, "bad_key", "a key is given twice", got=shown(key))
            metadata[key] = head.value(head.one("I"), key)
        tensors = _tensors(head, count, metadata)
    table = TensorTable(
        name=path.stem, format=f"gguf {shown(metadata.get('general.architecture', 'unnamed'))}".replace("'", ""),
        tensors=tensors, metadata=metadata,
    )  # fmt: skip
    return with_arch(table)


def _counts(head: _Head) -> tuple[int, int]:
    head.need(len(MAGIC))
    if bytes(head.data[:4]) != MAGIC:
        refuse(head.path, "not_gguf", "the file does not start with GGUF", got=shown(bytes(head.data[:4])))
    version = head.one("I")
    if version & 0xFFFF == 0 and version:  # the other byte order puts a small number in the high half
        head.order, version = ">", version >> 24
    if version not in VERSIONS:
        refuse(head.path, "gguf_version", "this version of GGUF is not read", got=str(version), expected="2 or 3")
    count, keys = head.one("Q"), head.one("Q")
    if max(count, keys) > MAX_ENTRIES:
        refuse(head.path, "too_many", "the header names too many tensors or keys", got=f"{count:,} and {keys:,}")
    return count, keys


def _tensors(head: _Head, count: int, metadata: dict[str, Any]) -> tuple[Tensor, ...]:
    faults = Faults(head.path)
    found: list[tuple[Tensor | None, int]] = [_tensor(head, faults) for _ in range(count)]
    align = metadata.get("general.alignment", 32)
    if not isinstance(align, int) or not 1 <= align <= 2**20 or align & (align - 1):
        faults.add("bad_alignment", "the alignment is no power of two", "general.alignment", got=shown(align))
        align = 1
    room = head.size - -(-head.at // align) * align
    spans = []
    for tensor, offset in found:
        if tensor is None:
            continue
        if offset % align:
            faults.add("misaligned", f"the offset is no multiple of {align}", shown(tensor.name), got=f"{offset:,}")
        if offset + tensor.nbytes > room and not gate.is_closed():  # a browser may send the header alone
            got = f"{offset:,} to {offset + tensor.nbytes:,}"
            expected = f"within {max(room, 0):,} bytes"
            faults.add("out_of_range", "lies outside the file's data", shown(tensor.name), got=got, expected=expected)
        spans.append((offset, offset + tensor.nbytes, tensor.name))
    for (_, end, name), (start, _, following) in pairwise(sorted(spans)):
        if start < end:
            faults.add("overlap", f"overlaps {shown(name)}", shown(following), got=f"{start:,} before {end:,}")
    names = [tensor.name for tensor, _ in found if tensor is not None]
    if len(set(names)) != len(names):
        faults.add("tensor_twice", "a tensor is named twice", "the header")
    faults.raise_if_any()
    return tuple(tensor for tensor, _ in found if tensor is not None)


def _tensor(head: _Head, faults: Faults) -> tuple[Tensor | None, int]:
    name = head.text(MAX_TENSOR_NAME, "a tensor's name")
    rank = head.one("I")
    if rank > MAX_RANK:
        refuse(head.path, "bad_shape", f"{shown(name)} has too many dimensions", got=str(rank))
    shape = tuple(head.one("Q") for _ in range(rank))
    kind, offset = head.one("I"), head.one("Q")
    if kind not in GGML_TYPES:
        faults.add("bad_dtype", "unknown type of tensor", shown(name), got=str(kind))
        return None, offset
    dtype, block, size = GGML_TYPES[kind]
    elements = prod(shape)
    if elements >= MAX_ELEMENTS or (shape and shape[0] % block):
        expected = f"rows of whole blocks of {block}, fewer than 2⁶³ elements"
        faults.add("bad_shape", f"impossible for {dtype}", shown(name), got=shown(list(shape)), expected=expected)
        return None, offset
    return Tensor(name, dtype, shape, elements // block * size, dtype in INTEGERS), offset
