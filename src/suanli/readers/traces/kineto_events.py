"""The events of Kineto that are read, as typed records: a decoder that skips in C what nobody asks for.

The category tells the record, so that each holds only the arguments its kind of event has; categories that are not kept
have a record without fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any

import msgspec
from msgspec import Raw

from suanli.nouns.trace import HostKind, WorkKind

NONE = Raw(b"")  # an argument that is not there; compared by identity

WORK_CATS = {
    "kernel": WorkKind.KERNEL, "Kernel": WorkKind.KERNEL, "mtia_ccp_events": WorkKind.KERNEL,
    "gpu_memcpy": WorkKind.COPY, "Memcpy": WorkKind.COPY, "gpu_memset": WorkKind.SET, "Memset": WorkKind.SET,
}  # fmt: skip
OP_CATS = {
    "cpu_op": HostKind.OP, "Operator": HostKind.OP, "hpu_op": HostKind.OP, "user_annotation": HostKind.MARK,
}  # fmt: skip
RUNTIME_CATS = (
    "cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "hip_driver", "xpu_runtime", "xpu_driver", "mtia_runtime",
    "glow_runtime", "privateuse1_runtime", "privateuse1_driver",
)  # fmt: skip
# Known and not kept. gpu_user_annotation is a mark drawn over kernels, cuda_sync a wait: neither is work of a device.
OTHER_CATS = (
    "python_function", "Trace", "ac2g", "async", "async_gpu", "async_cpu_to_gpu", "fwdbwd", "overhead", "cuda_sync",
    "cuda_event", "gpu_user_annotation", "cpu_instant_event", "mtia_counters", "mtia_insight", "hardware_counters",
    "cuda_profiler_range", "xpu_sync", "privateuse1_sync", "collective_comm", "external_correlation", "memory",
)  # fmt: skip

_COLLECTIVE = (
    ("collective", "Collective name"), ("dtype", "dtype"), ("in_elements", "In msg nelems"),
    ("out_elements", "Out msg nelems"), ("group_size", "Group size"), ("group", "Process Group Name"),
    ("group_id", "Process Group ID"), ("label", "Process Group Description"), ("ranks", "Process Group Ranks"),
    ("seq", "Seq"), ("src", "Src Rank"), ("dst", "Dst Rank"),
)  # fmt: skip
_IDS = (("external", "External id"), ("old_external", "external id"))
KERNEL_SAYS = (
    ("registers", "registers per thread"), ("shared", "shared memory"), ("grid", "grid"), ("block", "block"),
    ("kind", "kind"),
)  # fmt: skip
LAUNCH_SAYS = (
    ("backend", "kernel_backend"), ("hash", "kernel_hash"), ("file", "kernel_file"), ("kernel_name", "kernel_name"),
    ("kwargs", "kernel_kwargs"), ("warps", "num_warps"), ("stages", "num_stages"), ("grid", "grid"),
)  # fmt: skip
_WORK_NUMBERS = (
    *_IDS, ("device", "device"), ("stream", "stream"), ("correlation", "correlation"), ("bytes", "bytes"),
    ("size", "size"), ("graph", "graph id"), ("graph_node", "graph node id"),
)  # fmt: skip
_OP_SAYS = (
    ("dims", "Input Dims"), ("old_dims", "Input dims"), ("types", "Input type"), ("concrete", "Concrete Inputs"),
    ("strides", "Input Strides"),
)  # fmt: skip
Fields = Iterable[tuple[str, str]]


def _arguments(name: str, numbers: Fields, texts: Fields) -> type[msgspec.Struct]:
    """A record of arguments: whole numbers, -1 where absent, and what is kept as it stands in the file."""
    fields: list[Any] = [(field, int, msgspec.field(default=-1, name=key)) for field, key in numbers]
    fields += [(field, Raw, msgspec.field(default=NONE, name=key)) for field, key in texts]
    return msgspec.defstruct(name, fields, gc=False, frozen=True)


WorkArgs = _arguments("WorkArgs", _WORK_NUMBERS, (*KERNEL_SAYS, ("direction", "direction"), *_COLLECTIVE))
OpArgs = _arguments(
    "OpArgs", (*_IDS, ("forward", "Fwd thread id"), ("sequence", "Sequence number")),
    (*_OP_SAYS, *LAUNCH_SAYS, *_COLLECTIVE),
)  # fmt: skip
RuntimeArgs = _arguments("RuntimeArgs", (("correlation", "correlation"),), ())


class KinetoDecoder:
    """Lists of events as JSON -> records. Learns categories it does not know, up to a bound, and keeps none of them."""

    MOST_CATS = 300

    def __init__(self) -> None:
        self.work = {_record(cat, WorkArgs): kind for cat, kind in WORK_CATS.items()}
        self.ops = {_record(cat, OpArgs): kind for cat, kind in OP_CATS.items()}
        self.runtime = {_record(cat, RuntimeArgs): HostKind.RUNTIME for cat in RUNTIME_CATS}
        self.others = [_record(cat, None) for cat in OTHER_CATS]
        self.unknown: dict[type[Any], str] = {}
        self._build()

    def _build(self) -> None:
        classes = [*self.work, *self.ops, *self.runtime, *self.others, *self.unknown]
        every = reduce(or_, classes)
        self._list = msgspec.json.Decoder(list[every], strict=False)  # type: ignore[valid-type]
        self._one = msgspec.json.Decoder(every, strict=False)
        self.classes = classes

    def learn(self, cat: str) -> bool:
        """Whether events of a category not known so far can be read from now on."""
        if len(self.unknown) >= self.MOST_CATS or cat in self.unknown.values():
            return False
        self.unknown[_record(cat, None)] = cat
        self._build()
        return True

    def many(self, text: bytes) -> list[Any]:
        """The records of a JSON list. Raises msgspec.ValidationError, msgspec.DecodeError, RecursionError."""
        found: list[Any] = self._list.decode(text)
        return found

    def one(self, text: bytes) -> Any:
        """The record of one event. Raises as `many` does."""
        return self._one.decode(text)


def _record(cat: str, args: type[msgspec.Struct] | None) -> type[Any]:
    fields: list[Any] = []
    if args is not None:
        fields = [
            ("ph", str, ""), ("name", str, ""), ("pid", int | str, ""), ("tid", int | str, ""),
            ("ts", Raw, NONE), ("dur", Raw, NONE), ("args", args, args()),
        ]  # fmt: skip
    elif cat not in OTHER_CATS:
        fields = [("ph", str, "")]
    return msgspec.defstruct("Event", fields, tag=cat, tag_field="cat", gc=False)
