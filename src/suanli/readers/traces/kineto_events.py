"""The events of Kineto that are read, as typed records: a decoder that skips in C what nobody asks for.

The category tells the record, so that each holds only the arguments its kind of event has; categories that are not kept
have a record without fields. Records begin as narrow as profilers write them: every event complete, every number whole.
What does not fit them is an error of the decoder, and the file is read on with wider ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cache, lru_cache, reduce
from itertools import pairwise
from operator import or_
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Raw

from suanli.nouns.trace import HostKind, WorkKind
from suanli.readers.traces.numbers import NO_TIME

NONE = Raw(b"")  # an argument that is not there; compared by identity
HALVES = ("B", "E")  # phases of events that begin, or end, only
NOT_KEPT = 255  # the code of every category that is not kept

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
NO_CAT = "(none)"  # put into names of processes and threads, which have no category
# Known and not kept. gpu_user_annotation is a mark drawn over kernels, cuda_sync a wait: neither is work of a device.
OTHER_CATS = (
    "python_function", "Trace", "ac2g", "async", "async_gpu", "async_cpu_to_gpu", "fwdbwd", "overhead", "cuda_sync",
    "cuda_event", "gpu_user_annotation", "cpu_instant_event", "mtia_counters", "mtia_insight", "hardware_counters",
    "cuda_profiler_range", "xpu_sync", "privateuse1_sync", "collective_comm", "external_correlation", "memory",
    NO_CAT,
)  # fmt: skip

_KNOWN_CATS = {*WORK_CATS, *OP_CATS, *RUNTIME_CATS, *OTHER_CATS}

# Fields stand in the order in which Kineto writes them: a key is sought from behind the one before it.
COLLECTIVE_SAYS = (
    ("in_elements", "In msg nelems"), ("out_elements", "Out msg nelems"), ("group_size", "Group size"),
    ("dtype", "dtype"), ("group", "Process Group Name"), ("label", "Process Group Description"),
    ("ranks", "Process Group Ranks"), ("group_id", "Process Group ID"), ("seq", "Seq"), ("src", "Src Rank"),
    ("dst", "Dst Rank"),
)  # fmt: skip
LAUNCH_SAYS = (
    ("hash", "kernel_hash"), ("file", "kernel_file"), ("kernel_name", "kernel_name"), ("kwargs", "kernel_kwargs"),
    ("warps", "num_warps"), ("stages", "num_stages"), ("grid", "grid"),
)  # fmt: skip
KERNEL_SAYS = (
    ("registers", "registers per thread"), ("shared", "shared memory"), ("grid", "grid"), ("block", "block"),
    ("kind", "kind"),
)  # fmt: skip
_WORK_FIELDS = (
    ("external", "External id"), ("device", "device"), ("stream", "stream"), ("correlation", "correlation"),
    *KERNEL_SAYS, ("bytes", "bytes"), ("collective", "Collective name"), ("graph", "graph id"),
    ("graph_node", "graph node id"), ("old_external", "external id"), ("size", "size"), ("direction", "direction"),
)  # fmt: skip
_OP_FIELDS = (
    ("external", "External id"), ("function", "Record function id"), ("sequence", "Sequence number"),
    ("forward", "Fwd thread id"), ("concrete", "Concrete Inputs"), ("index", "Ev Idx"), ("dims", "Input Dims"),
    ("types", "Input type"), ("collective", "Collective name"),
    ("backend", "kernel_backend"), ("old_dims", "Input dims"),
)  # fmt: skip
_NUMBERS = {
    "external", "old_external", "device", "stream", "correlation", "bytes", "size", "graph", "graph_node", "function",
    "index", "sequence", "forward",
}  # fmt: skip


def _arguments(name: str, fields: Iterable[tuple[str, str]]) -> type[msgspec.Struct]:
    """A record of arguments: whole numbers, -1 where absent, and what is kept as it stands in the file."""
    typed: list[Any] = [
        (field, int, msgspec.field(default=-1, name=key))
        if field in _NUMBERS
        else (field, Raw, msgspec.field(default=NONE, name=key))
        for field, key in fields
    ]
    return msgspec.defstruct(name, typed, gc=False, frozen=True)


_RUNTIME_ARGS = _arguments("RuntimeArgs", (("correlation", "correlation"),))
_WORK_ARGS, _OP_ARGS = _arguments("WorkArgs", _WORK_FIELDS), _arguments("OpArgs", _OP_FIELDS)
_FULL_WORK_ARGS = _arguments("FullWorkArgs", (*_WORK_FIELDS, *COLLECTIVE_SAYS))
_FULL_OP_ARGS = _arguments("FullOpArgs", (*_OP_FIELDS, *COLLECTIVE_SAYS, *LAUNCH_SAYS))


class Width(IntEnum):
    """What the fields of an event may hold. The wider takes everything the narrower takes, and says the same of it."""

    WHOLE = 0  # times are whole microseconds, processes and threads numbers, and every event is complete ("X")
    DECIMAL = 1  # times are anything, as text
    ANY = 2  # processes and threads may have names, numbers may stand in quotes, events may be halves


class KinetoDecoder:
    """Lists of events as JSON -> records. Learns categories it does not know, up to a bound, and keeps none of them.

    Until the first event that tells of a collective or a Triton kernel (`says_more`) the records are smaller, and
    until the first that does not fit them (`become_wider`) their fields are narrower.
    """

    MOST_CATS = 300

    def __init__(self, width: Width = Width.WHOLE) -> None:
        self.full, self.width = False, width
        self.others = [_record(cat) for cat in OTHER_CATS]
        self.unknown: dict[type[Any], str] = {}
        self._set()

    def become_full(self) -> None:
        """From now on records hold everything that is read of an event."""
        self.full = True
        self._set()

    def become_wider(self, field: str) -> bool:
        """From now on this field of records may hold more; False where it holds already whatever can be read."""
        if self.width == Width.ANY:
            return False
        times = self.width == Width.WHOLE and field in ("ts", "dur")
        self.width = Width.DECIMAL if times else Width.ANY
        self._set()
        return True

    def _set(self) -> None:
        work, ops = (_FULL_WORK_ARGS, _FULL_OP_ARGS) if self.full else (_WORK_ARGS, _OP_ARGS)
        self.work = {_kept(cat, work, self.width): kind for cat, kind in WORK_CATS.items()}
        self.ops = {_kept(cat, ops, self.width): kind for cat, kind in OP_CATS.items()}
        self.runtime = {_kept(cat, _RUNTIME_ARGS, self.width): HostKind.RUNTIME for cat in RUNTIME_CATS}
        self._build()

    def _build(self) -> None:
        kept = [*self.work, *self.ops, *self.runtime]
        left = [*self.others, *self.unknown]
        self.codes = {each: code for code, each in enumerate(kept)} | dict.fromkeys(left, NOT_KEPT)
        self.kinds = np.array([*self.work.values(), *self.ops.values(), *self.runtime.values()], dtype=np.uint8)
        borders = np.cumsum([0, len(self.work), len(self.ops), len(self.runtime)]).tolist()
        self.groups = list(pairwise(borders))  # codes of device work, of operators and marks, of runtime calls
        every, strict = reduce(or_, [*kept, *left]), self.width < Width.ANY
        self._list = msgspec.json.Decoder(list[every], strict=strict)  # type: ignore[valid-type]
        self._one = msgspec.json.Decoder(every, strict=strict)

    def learn(self, cat: str) -> bool:
        """Whether events of a category not known so far can be read from now on.

        One that is known is no news: an event has it beside another, as halves of two events that ran together.
        """
        if len(self.unknown) >= self.MOST_CATS or cat in _KNOWN_CATS or cat in self.unknown.values():
            return False
        self.unknown[_record(cat)] = cat
        self._build()
        return True

    def many(self, text: bytes) -> list[Any]:
        """The records of a JSON list. Raises msgspec.ValidationError, msgspec.DecodeError, RecursionError."""
        found: list[Any] = self._list.decode(text)
        return found

    def one(self, text: bytes) -> Any:
        """The record of one event. Raises as `many` does."""
        return self._one.decode(text)


def says_more(args: Sequence[Any], *, ops: bool) -> bool:
    """Whether arguments of device work, or of operators, tell of what only full records hold."""
    if ops and not absent([each.backend for each in args]):
        return True
    return not absent([each.collective for each in args])


def absent(values: Sequence[Any]) -> bool:
    """Whether an argument is in no event: told by identity, which is quick."""
    return values.count(NONE) == len(values)


_FIELDS: dict[Width, list[Any]] = {
    width: [
        ("ph", str, "") if width == Width.ANY else ("ph", Literal["X"]),
        ("name", str, ""),
        *((field, int | str if width == Width.ANY else int, "") for field in ("pid", "tid")),
        *((field, *((int, NO_TIME) if width == Width.WHOLE else (Raw, NONE))) for field in ("ts", "dur")),
    ]
    for width in Width
}


# Classes are made once, not once a trace: that takes 2 ms, and msgspec holds on to the last few dozen sets (6 MB).
@cache
def _kept(cat: str, args: type[msgspec.Struct], width: Width) -> type[Any]:
    fields = [*_FIELDS[width], ("args", args, args())]
    return msgspec.defstruct("Event", fields, tag=cat, tag_field="cat", gc=False)


@lru_cache(maxsize=1024)  # categories that files name as they like
def _record(cat: str) -> type[Any]:
    fields: list[Any] = [] if cat in OTHER_CATS else [("ph", str, "")]
    return msgspec.defstruct("Event", fields, tag=cat, tag_field="cat", gc=False)
