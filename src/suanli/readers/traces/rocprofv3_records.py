"""Records of rocprofv3's JSON, as they stand in the file; what nobody asks for is not among their fields."""

from __future__ import annotations

from typing import Annotated

import msgspec

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]  # what a column holds
Small = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Handle(msgspec.Struct, gc=False, frozen=True):
    """A number that stands for an agent, queue or stream."""

    handle: int = -1


class Cause(msgspec.Struct, gc=False, frozen=True):
    """The call that caused a record."""

    internal: Whole = -1


class Extent(msgspec.Struct, gc=False, frozen=True):
    """A grid or workgroup."""

    x: int = 0
    y: int = 0
    z: int = 0


class Dispatch(msgspec.Struct, gc=False, frozen=True):
    """What was dispatched, and where."""

    agent_id: Handle = Handle()
    queue_id: Handle = Handle()
    kernel_id: int = -1
    workgroup_size: Extent = Extent()
    grid_size: Extent = Extent()


class Record(msgspec.Struct, gc=False, frozen=True):
    """A dispatch, a copy or a call."""

    start_timestamp: Whole
    end_timestamp: Whole
    kind: Whole = -1
    operation: Whole = -1
    thread_id: Whole = -1
    correlation_id: Cause = Cause()
    dispatch_info: Dispatch = Dispatch()
    src_agent_id: Handle = Handle()
    dst_agent_id: Handle = Handle()
    bytes: Whole = -1


class Records(msgspec.Struct, frozen=True):
    """The records of one process."""

    kernel_dispatch: list[Record] = []
    memory_copy: list[Record] = []
    hip_api: list[Record] = []
    hsa_api: list[Record] = []
    rccl_api: list[Record] = []
    marker_api: list[Record] = []


class Bank(msgspec.Struct, gc=False, frozen=True):
    """A device's memory."""

    size_in_bytes: int = 0


class Agent(msgspec.Struct, frozen=True):
    """A CPU or GPU."""

    id: Handle = Handle()
    type: int = 0
    product_name: str = ""
    name: str = ""
    cu_count: int = 0
    gpu_index: Small = -1
    logical_node_type_id: Small = -1
    mem_banks: list[Bank] = []


class Symbol(msgspec.Struct, gc=False, frozen=True):
    """A kernel."""

    kernel_id: int = -1
    formatted_kernel_name: str = ""
    demangled_kernel_name: str = ""
    kernel_name: str = ""


class Kind(msgspec.Struct, frozen=True):
    """A kind of record and the names of its operations."""

    kind: str = ""
    operations: list[str] = []


class Text(msgspec.Struct, gc=False, frozen=True):
    """The text of a marker, by the number of its call."""

    key: int = -1
    value: str = ""


class Strings(msgspec.Struct, frozen=True):
    """Tables of names."""

    buffer_records: list[Kind] = []
    marker_api: list[Text] = []


class Meta(msgspec.Struct, frozen=True):
    """The process."""

    pid: Whole = -1


class Process(msgspec.Struct, frozen=True):
    """One process of the file."""

    metadata: Meta = Meta()
    agents: list[Agent] = []
    strings: Strings = Strings()
    kernel_symbols: list[Symbol] = []
    buffer_records: Records = Records()


class Document(msgspec.Struct, frozen=True, rename={"processes": "rocprofiler-sdk-tool"}):
    """The file."""

    processes: list[Process]
