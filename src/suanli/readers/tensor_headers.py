"""safetensors: the header of a file, a set of shards by its index, or a folder of them. Weights stay unread.

The format: 8 bytes of length (little endian), a JSON object of that length, then the tensors one after another with
no hole and no overlap (https://github.com/huggingface/safetensors, README, "Format").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from suanli.errors import shown
from suanli.nouns.tensors import Tensor, TensorTable
from suanli.readers import files, gate
from suanli.readers.binary import MAX_HEADER, Faults, opened, refuse
from suanli.readers.kinds import INDEX_SUFFIX
from suanli.units import BITS_PER_BYTE, MEGA

LENGTH_BYTES = 8
MAX_NAME = 1_000
MAX_TENSORS = 250_000  # of one file; the largest models in many have half as many
MAX_RANK = 64
MAX_ELEMENTS = 2**63

# Bits of an element, as the format's dtypes are named.
DTYPE_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
}  # fmt: skip
INTEGERS = frozenset(name for name in DTYPE_BITS if name[0] in "UI" or name == "BOOL")


class _TwiceError(ValueError):
    """A key given twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _TwiceError("a key is given twice")
    return found


def read_safetensors(path: Path) -> TensorTable:
    """The tensors of one file. Raises UnreadableFileError listing every fault of the header."""
    tensors, metadata = _header(path)
    return TensorTable(name=path.stem, format="safetensors", tensors=tensors, metadata=metadata, arch_missing=NO_ARCH)


NO_ARCH = "a weight file says no more than shapes: give the model's config.json, or the folder with it"


def _header(path: Path) -> tuple[tuple[Tensor, ...], Mapping[str, Any]]:
    with opened(path) as (stream, size):
        head = stream.read(LENGTH_BYTES)
        length = int.from_bytes(head, "little")
        if len(head) < LENGTH_BYTES:
            refuse(path, "truncated", "the file is too short for a header", got=f"{size:,} bytes")
        if length > MAX_HEADER:
            limit = f"at most {MAX_HEADER // MEGA} MB"
            refuse(path, "header_too_large", "the header is too large", got=f"{length:,} bytes", expected=limit)
        if length > size - LENGTH_BYTES:
            got = f"a header of {length:,} bytes in a file of {size:,}"
            refuse(path, "truncated", "the header is longer than the file", got=got)
        text = stream.read(length)
    values = _parsed(path, text)
    room = size - LENGTH_BYTES - length
    if gate.is_closed():  # a browser may send the header alone: then there is as much room as it says
        room = max(room, *(_end(entry) for entry in values.values()), 0)
    return _checked(path, values, room)


def _end(entry: Any) -> int:
    """Where the data of a tensor ends, 0 where that cannot be told."""
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    return offsets[1] if isinstance(offsets, list) and len(offsets) == 2 and _is_count(offsets[1]) else 0


def _parsed(path: Path, text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        refuse(path, "not_safetensors", "the header is no JSON object", hint="Is it a safetensors file?")
    try:
        values = json.loads(text.decode("utf-8"), object_pairs_hook=_once)
    except RecursionError:
        refuse(path, "not_safetensors", "the header is nested too deep")
    except ValueError as problem:  # bad JSON, bad UTF-8, a key twice, an endless number
        refuse(path, "not_safetensors", "the header cannot be read", got=str(problem)[:100])
    assert isinstance(values, dict)
    return values


def _checked(path: Path, values: dict[str, Any], room: int) -> tuple[tuple[Tensor, ...], Mapping[str, Any]]:
    faults = Faults(path)
    metadata = values.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        faults.add("bad_metadata", "the metadata are no object", "__metadata__", got=type(metadata).__name__)
        metadata = {}
    if len(values) > MAX_TENSORS:
        refuse(path, "too_many", "too many tensors", got=f"{len(values):,}", expected=f"at most {MAX_TENSORS:,}")
    found: list[Tensor] = []
    spans: list[tuple[int, int, str]] = []
    for name, entry in values.items():
        tensor = _tensor(name, entry, faults)
        span = _span(name, entry, room, faults)
        if tensor is None or span is None:
            continue
        if span[1] - span[0] != tensor.nbytes:
            got, want = f"{span[1] - span[0]:,} bytes", f"{tensor.nbytes:,} for {tensor.dtype} {list(tensor.shape)}"
            faults.add("wrong_size", "offsets and shape differ", shown(name), got=got, expected=want)
        found.append(tensor)
        spans.append((*span, name))
    _check_spans(spans, room, faults)
    faults.raise_if_any()
    return tuple(found), metadata


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_ELEMENTS


def _tensor(name: str, entry: Any, faults: Faults) -> Tensor | None:
    if len(name) > MAX_NAME or not isinstance(entry, dict):
        faults.add("bad_tensor", "not the description of a tensor", shown(name), got=type(entry).__name__)
        return None
    dtype, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        faults.add("bad_dtype", "unknown dtype", shown(name), got=shown(dtype), expected=f"one of {len(DTYPE_BITS)}")
        return None
    if not isinstance(shape, list) or len(shape) > MAX_RANK or not all(map(_is_count, shape)):
        faults.add("bad_shape", "the shape is no list of whole numbers", shown(name), got=shown(shape))
        return None
    elements = prod(shape)
    if elements >= MAX_ELEMENTS:
        faults.add("bad_shape", "the shape holds more than 2⁶³ elements", shown(name), got=shown(shape))
        return None
    return Tensor(name, dtype, tuple(shape), -(-elements * DTYPE_BITS[dtype] // BITS_PER_BYTE), dtype in INTEGERS)


def _span(name: str, entry: Any, room: int, faults: Faults) -> tuple[int, int] | None:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        faults.add("bad_offsets", "the offsets are no two whole numbers", shown(name), got=shown(offsets))
        return None
    start, end = offsets
    if not start <= end <= room:
        faults.add(
            "out_of_range", "the offsets lie outside the file's data", shown(name), got=f"{start:,} to {end:,}",
            expected=f"within {room:,} bytes",
        )  # fmt: skip
        return None
    return start, end


def _check_spans(spans: list[tuple[int, int, str]], room: int, faults: Faults) -> None:
    """Tensors follow one another with no overlap, no hole and no rest."""
    spans.sort()
    for (_, end, name), (start, _, following) in pairwise([(0, 0, "the start"), *spans]):
        if start < end:
            faults.add("overlap", f"overlaps {shown(name)}", shown(following), got=f"{start:,} before {end:,}")
        elif start > end:
            faults.add("hole", f"leaves a hole after {shown(name)}", shown(following), got=f"{start - end:,} bytes")
    last = spans[-1][1] if spans else 0
    if last < room and not faults.list.faults:
        faults.add("hole", "bytes after the last tensor", "the end", got=f"{room - last:,} bytes")


# --- shards -------------------------------------------------------------------------------------------------------


def read_index(path: Path) -> TensorTable:
    """The tensors of every shard an index names. Raises UnreadableFileError listing what does not agree."""
    values, faults = files.read_json_config(path), Faults(path)
    where = values.get("weight_map")
    if not isinstance(where, dict) or not where:
        refuse(path, "bad_index", "the index has no weight_map", expected="an object of tensor and file names")
    for name, shard in where.items():
        if not isinstance(shard, str) or Path(shard).name != shard or not shard.endswith(".safetensors"):
            faults.add("bad_index", "not the name of a file beside the index", shown(name), got=shown(shard))
    faults.raise_if_any()
    tensors: list[Tensor] = []
    for shard in sorted(set(where.values())):
        held = _header(path.parent / shard)[0]
        tensors.extend(held)
        for tensor in held:
            if where.get(tensor.name) != shard:
                faults.add("bad_index", f"the index does not place it in {shard}", shown(tensor.name))
    for name in where.keys() - {tensor.name for tensor in tensors}:
        faults.add("missing_tensor", f"named by the index but not in {where[name]}", shown(name))
    faults.raise_if_any()
    stem = path.name.removesuffix(INDEX_SUFFIX)
    name = path.absolute().parent.name if stem == "model" else stem
    return TensorTable(
        name=name, format="safetensors", tensors=tuple(tensors), arch_missing=NO_ARCH,
        notes=_size_note(values, sum(tensor.nbytes for tensor in tensors)),
    )  # fmt: skip


def _size_note(values: Mapping[str, Any], total: int) -> tuple[str, ...]:
    metadata = values.get("metadata")
    said = metadata.get("total_size") if isinstance(metadata, dict) else None
    if not isinstance(said, int) or said == total:
        return ()
    return (f"the index says total_size {said:,} bytes; its shards hold {total:,}",)


def read_folder(path: Path) -> TensorTable | None:
    """The weights in a folder: by its index, or every safetensors file in it; None where it holds none."""
    indices = sorted(path.glob(f"*{INDEX_SUFFIX}"))
    if len(indices) == 1:
        return read_index(indices[0])
    shards = sorted(path.glob("*.safetensors"))
    if not shards:
        return None
    faults, tensors = Faults(path), {}
    for shard in shards:
        for tensor in _header(shard)[0]:
            if tensor.name in tensors:
                faults.add("tensor_twice", "stands in two files of the folder", shown(tensor.name))
            tensors[tensor.name] = tensor
    faults.raise_if_any()
    return TensorTable(
        name=path.absolute().name, format="safetensors", tensors=tuple(tensors.values()), arch_missing=NO_ARCH
    )
