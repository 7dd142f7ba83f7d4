"""What events say beyond names and times, read once for each distinct text: shapes, grids, collectives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from suanli.nouns.trace import CollectiveCall, OpDetail
from suanli.readers.traces.interning import Places
from suanli.readers.traces.kineto_events import COLLECTIVE_SAYS, KERNEL_SAYS, LAUNCH_SAYS, NONE, absent

_MARK = b"\x1f"  # stands in no JSON text
_KERNEL, _OP, _OP_TEXTS = b"kernel", b"op", 3  # how keys of details begin, and the texts of an op without a launch
_LAUNCH = (("backend", "kernel_backend"), *LAUNCH_SAYS)
_SAYS = {field: key.replace(" ", "_") for field, key in (*KERNEL_SAYS, *_LAUNCH)}
_CALL_FIELDS = ("collective", *(field for field, _ in COLLECTIVE_SAYS))
_KERNEL_FIELDS = tuple(field for field, _ in KERNEL_SAYS)
_LAUNCH_FIELDS = tuple(field for field, _ in _LAUNCH)
Ints = npt.NDArray[np.int32]


class Details:
    """Details and collectives of one file, each once."""

    def __init__(self) -> None:
        self.ops = Places(_detail)
        self.ops |= {_KERNEL + _MARK * len(_KERNEL_FIELDS): -1, _OP + _MARK * _OP_TEXTS: -1}  # nothing said
        self.calls = Places(_call)

    def of_kernels(self, args: Sequence[Any]) -> Ints:
        """Places of what kernels say of themselves; -1: nothing."""
        join = _MARK.join
        return self.ops.of([join((_KERNEL, a.registers, a.shared, a.grid, a.block, a.kind)) for a in args])

    def of_ops(self, args: Sequence[Any], *, launches: bool) -> Ints:
        """Places of shapes, types and values of operators, and of what a Triton launch says; -1: nothing.

        `launches` says whether there can be any of Triton among them.
        """
        join = _MARK.join
        if absent([a.old_dims for a in args]) and not (launches and not absent([a.backend for a in args])):
            dims, types = [a.dims for a in args], [a.types for a in args]
            if absent(dims) and absent(types):
                return np.full(len(args), -1, dtype=np.int32)
            return self.ops.of(list(map(join, zip(repeat(_OP), dims, types, [a.concrete for a in args]))))
        keys = [
            join((_OP, a.dims if a.old_dims is NONE else a.old_dims, a.types, a.concrete))
            if a.backend is NONE
            else join((_OP, a.dims, a.types, a.concrete, *_texts(a, _LAUNCH_FIELDS)))
            for a in args
        ]
        return self.ops.of(keys)

    def of_collectives(self, args: Sequence[Any]) -> Ints:
        """Places of the calls of a communication library; -1: none."""
        calls = self.calls
        if absent([a.collective for a in args]):
            return np.full(len(args), -1, dtype=np.int32)
        return np.array(
            [-1 if a.collective is NONE else calls[_MARK.join(_texts(a, _CALL_FIELDS))] for a in args], dtype=np.int32
        )


def _texts(args: Any, fields: Iterable[str]) -> list[Any]:
    return [getattr(args, field) for field in fields]


def value_of(text: bytes) -> Any:
    """A JSON value; None where there is none or it cannot be read."""
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def _detail(key: bytes) -> OpDetail:
    kind, *texts = key.split(_MARK)
    if kind == _KERNEL:
        return OpDetail(kernel=_said(_KERNEL_FIELDS, texts))
    dims, types, concrete, *launch = texts
    return OpDetail(
        dims=_nested(value_of(dims)),
        types=_words(value_of(types)),
        concrete=_words(value_of(concrete)),
        kernel=_said(_LAUNCH_FIELDS, launch) or None,
    )


def _said(fields: Sequence[str], texts: Sequence[bytes]) -> dict[str, Any]:
    return {_SAYS[field]: value_of(text) for field, text in zip(fields, texts, strict=False) if text}


def _nested(value: Any) -> Any:
    """Lists as tuples, however deep; None for what is no list."""
    if not isinstance(value, list):
        return None
    try:
        return tuple(_nested(each) if isinstance(each, list) else each for each in value)
    except RecursionError:
        return None


def _words(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in value)


def _call(key: bytes) -> CollectiveCall:
    said = dict(zip(_CALL_FIELDS, map(value_of, key.split(_MARK)), strict=False))
    peers = [each for each in (_number(said["dst"]), _number(said["src"])) if each is not None and each >= 0]
    return CollectiveCall(
        name=_word(said["collective"]),
        group=_word(said["group"]) or _word(said["group_id"]),
        group_label=_word(said["label"]),
        ranks=ranks_of(said["ranks"]),
        group_size=_number(said["group_size"]),
        dtype=_word(said["dtype"]),
        in_elements=_number(said["in_elements"]),
        out_elements=_number(said["out_elements"]),
        sequence=_number(said["seq"]),
        peer=peers[0] if peers else None,
    )


def ranks_of(value: Any) -> tuple[int, ...] | None:
    """Ranks that are listed in full, as a list or as the text of one; None where they are cut or not said."""
    listed = value_of(value.encode()) if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(type(each) is int for each in listed):
        return None
    return tuple(listed) or None


def _word(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def _number(value: Any) -> int | None:
    if isinstance(value, str):
        value = value_of(value.encode())
    return value if type(value) is int else None
