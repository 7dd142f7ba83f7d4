"""nsys exports: each trap of the schema, on small databases made here."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from suanli.errors import UnreadableFileError
from suanli.nouns.trace import CollectiveCall, HostKind, Trace, TraceDevice, WorkKind
from suanli.readers.traces import nsys
from suanli.readers.traces.nsys import read_nsys
from suanli.readers.traces.nsys_tables import Tables

from .nsys_made import META, OTHER, PID, TID, call, copy, kernel, made, nvtx

KERNEL, MEMCPY, MEMSET, RUNTIME, NVTX = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS",
)  # fmt: skip


def named(trace: Trace) -> list[str]:
    return [trace.names[place] for place in trace.work.name]


def spans(trace: Trace) -> list[tuple[str, int]]:
    return [(trace.names[place], kind) for place, kind in zip(trace.host.name, trace.host.kind, strict=True)]


def codes(trace: Trace) -> dict[str, int]:
    return {fault.code: fault.count for fault in trace.faults}


def test_a_kernel_with_its_launch(tmp_path: Path) -> None:
    trace = read_nsys(made(tmp_path / "a.sqlite", {KERNEL: [kernel(100, 250)], RUNTIME: [call(50, 60)]}))
    assert (trace.format, trace.producer) == ("nsys", "NVIDIA Nsight Systems 2026.1.1.204, schema 3.24.14")
    assert named(trace) == ["void gemm<float>(int)"]
    assert (trace.work.start_ns.tolist(), trace.work.end_ns.tolist()) == ([100], [250])
    assert trace.work.launch.tolist() == [0]
    assert spans(trace) == [("cudaLaunchKernel_v7000", HostKind.RUNTIME)]
    detail = trace.details[trace.work.detail[0]]
    # shared memory = 16 static + 1,024 dynamic
    assert detail.kernel == {
        "grid": (8, 4, 1), "block": (128, 1, 1), "registers per thread": 32, "shared memory": 1040,
    }  # fmt: skip
    assert (trace.events, trace.faults, trace.base_ns) == (2, (), 0)
    assert trace.threads == (("77", "5"),)


def test_correlation_is_joined_within_its_process(tmp_path: Path) -> None:
    tables = {
        KERNEL: [kernel(10, 20, 1), kernel(30, 40, 1, globalPid=OTHER), kernel(50, 60, 9)],
        RUNTIME: [call(1, 2, 1, globalTid=OTHER + 3), call(3, 4, 1)],
    }
    trace = read_nsys(made(tmp_path / "a.sqlite", tables))
    of_launch = [None if row < 0 else int(trace.host.start_ns[row]) for row in trace.work.launch]
    assert of_launch == [3, 1, None]  # process 77 called at 3, 78 at 1; nobody has correlation 9


def test_work_without_a_process_is_joined_only_where_there_is_one(tmp_path: Path) -> None:
    bare = {key: value for key, value in kernel(10, 20).items() if key != "globalPid"}
    one = read_nsys(made(tmp_path / "one.sqlite", {KERNEL: [bare], RUNTIME: [call(1, 2)]}))
    assert one.work.launch.tolist() == [0]
    assert codes(one) == {"missing-column": 0}
    two = {KERNEL: [bare], RUNTIME: [call(1, 2), call(1, 2, globalTid=OTHER + 3)]}
    trace = read_nsys(made(tmp_path / "two.sqlite", two))
    assert trace.work.launch.tolist() == [-1]
    assert codes(trace) == {"missing-column": 0, "no-process": 1}


@pytest.mark.parametrize(
    ("code", "name", "label"),
    [
        (1, "Memcpy HtoD", "HtoD"),
        (2, "Memcpy DtoH", "DtoH"),
        (8, "Memcpy DtoD", "DtoD"),
        (10, "Memcpy PtoP", "PtoP"),
        (11, "Memcpy UVM HtoD", "UVM HtoD"),
        (99, "Memcpy", None),  # a kind of a later CUDA
    ],
)
def test_copies(tmp_path: Path, code: int, name: str, label: str | None) -> None:
    trace = read_nsys(made(tmp_path / "a.sqlite", {MEMCPY: [copy(5, 9, code)], MEMSET: [copy(9, 10)]}))
    assert named(trace) == [name, "Memset"]
    assert trace.work.kind.tolist() == [WorkKind.COPY, WorkKind.SET]
    assert trace.work.bytes.tolist() == [4096, 4096]
    place = trace.work.copy[0]
    assert (trace.copy_kinds[place] if place >= 0 else None) == label


def test_names_fall_back(tmp_path: Path) -> None:
    rows = [kernel(0, 1), kernel(1, 2, demangledName=404), kernel(2, 3, demangledName=None, shortName=404),
            kernel(3, 4, demangledName=None, shortName=None, mangledName=4)]  # fmt: skip
    trace = read_nsys(made(tmp_path / "a.sqlite", {KERNEL: rows}))
    assert named(trace) == ["void gemm<float>(int)", "gemm", "kernel without a name", "_Z4gemmIfEvi"]
    assert codes(trace)["no-name"] == 1


def test_graphs_by_node_and_as_a_whole(tmp_path: Path) -> None:
    whole = {"start": 30, "end": 90, "deviceId": 0, "streamId": 7, "correlationId": 5, "globalPid": PID, "graphId": 12}
    rows = [kernel(0, 1, graphId=12, graphNodeId=34), kernel(1, 2, graphId=0, graphNodeId=0)]
    tables = {KERNEL: rows, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [whole], RUNTIME: [call(20, 25, 5)]}
    trace = read_nsys(made(tmp_path / "a.sqlite", tables))
    assert named(trace)[2] == "CUDA graph 12"
    assert trace.work.kind.tolist() == [WorkKind.KERNEL] * 3
    assert trace.work.graph.tolist() == [12, -1, 12]  # an old export has 0 for none
    assert trace.work.graph_node.tolist() == [34, -1, -1]
    assert trace.work.launch.tolist() == [-1, -1, 0]
    fault = next(fault for fault in trace.faults if fault.code == "graph-as-a-whole")
    assert fault.message == "1 replay of a CUDA graph has no kernels: profile with --cuda-graph-trace=node"


def test_waiting_is_no_device_work(tmp_path: Path) -> None:
    wait = {"start": 0, "end": 900, "deviceId": 0, "streamId": 7, "correlationId": 3, "globalPid": PID, "syncType": 2}
    tables = {KERNEL: [kernel(1, 2)], "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [wait]}
    trace = read_nsys(made(tmp_path / "a.sqlite", tables))
    assert (len(trace.work), trace.events) == (1, 2)


def test_operators_of_pytorch(tmp_path: Path) -> None:
    rows = [
        nvtx(0, 90, "step 3"),
        nvtx(1, 80, "aten::mm, seq = 12, op_id = 5, sizes = [[64, 32], [32, 8]]"),
        nvtx(2, 70, "aten::mm, seq = 13, op_id = 6, sizes = [[64, 32], [32, 8]]"),
        nvtx(95, 99, None, textId=8),
        nvtx(100, 101, "forward, op_id = 9"),
    ]
    trace = read_nsys(made(tmp_path / "a.sqlite", {NVTX: rows}))
    mark, op = HostKind.MARK, HostKind.OP
    assert spans(trace) == [("step 3", mark), ("aten::mm", op), ("aten::mm", op), ("worker", mark), ("forward", mark)]
    assert trace.host.sequence.tolist() == [-1, 12, 13, -1, -1]
    assert [trace.details[place].dims for place in trace.host.detail[1:3]] == [((64, 32), (32, 8))] * 2
    assert len(trace.details) == 1  # equal ones once
    assert trace.recorded == {"shapes": True}
    without = read_nsys(made(tmp_path / "b.sqlite", {NVTX: [nvtx(0, 1, "aten::mm, op_id = 5")]}))
    assert without.recorded == {"shapes": False}


def test_ranges_that_need_not_nest_stand_apart(tmp_path: Path) -> None:
    rows = [nvtx(0, 50, "a"), nvtx(20, 80, "b", eventType=60), nvtx(7, None, "mark", eventType=34),
            nvtx(0, 10, "a category", eventType=33)]  # fmt: skip
    trace = read_nsys(made(tmp_path / "a.sqlite", {NVTX: rows}))
    lanes = {
        trace.names[name]: trace.threads[lane] for name, lane in zip(trace.host.name, trace.host.thread, strict=True)
    }
    assert lanes == {"a": ("77", "5"), "mark": ("77", "5"), "b": ("77", "5 start/end ranges")}
    at = [trace.names[name] for name in trace.host.name].index("mark")
    assert (trace.host.start_ns[at], trace.host.end_ns[at]) == (7, 7)


def test_ranges_without_an_end_are_counted(tmp_path: Path) -> None:
    rows = [nvtx(5, None, "open"), nvtx(5, 0, "open in an export without NULL"), nvtx(5, 6, "closed")]
    trace = read_nsys(made(tmp_path / "a.sqlite", {NVTX: rows}))
    assert [name for name, _ in spans(trace)] == ["closed"]
    assert codes(trace)["open-range"] == 2


def test_an_old_export_where_nothing_is_null(tmp_path: Path) -> None:
    """Everything NOT NULL: an empty text and number 0 stand for none."""
    rows = [nvtx(0, 9, "", textId=8, jsonText="", jsonTextId=0, binaryData="")]
    tables = {NVTX: rows, KERNEL: [kernel(1, 2, 0, graphId=0, graphNodeId=0)], RUNTIME: [call(0, 1, 0)]}
    trace = read_nsys(made(tmp_path / "a.sqlite", tables, declared="NOT NULL"))
    assert ("worker", HostKind.MARK) in spans(trace)
    assert (trace.work.correlation.tolist(), trace.work.launch.tolist()) == ([-1], [-1])


def payload(schema: int, body: bytes) -> bytes:
    """Head of four u64: domain, schema, size of the payload, length of all; then the struct."""
    return struct.pack("<QQQQ", 1, schema, len(body), 32 + len(body)) + body


ENTRIES = [
    {"domainId": 1, "schemaId": 7, "name": "NCCL communicator ID", "type": 18, "offset": None},
    {"domainId": 1, "schemaId": 7, "name": "Message size [bytes]", "type": 22, "offset": 8},
    {"domainId": 1, "schemaId": 9, "name": "NCCL communicator ID", "type": 18, "offset": None},
    {"domainId": 1, "schemaId": 9, "name": "No. of ranks", "type": 5, "offset": 8},
]


@pytest.mark.parametrize("form", ["binary", "json", "json by number"])
def test_nccl_says_size_and_communicator(tmp_path: Path, form: str) -> None:
    said: dict[str, Any] = {
        "binary": {"binaryData": payload(7, struct.pack("<QQ", 0xABC, 65536))},
        "json": {"jsonText": '{"NCCL communicator ID": 2748, "Message size [bytes]": 65536}'},
        "json by number": {"jsonTextId": 50},
    }[form]
    init = {"binaryData": payload(9, struct.pack("<Qi", 0xABC, 8) + bytes(4))}
    rows = [nvtx(0, 1, None, textId=7, domainId=1, **init), nvtx(2, 3, None, textId=6, domainId=1, **said)]
    tables = {NVTX: rows, "NVTX_PAYLOAD_SCHEMA_ENTRIES": ENTRIES}
    text = """INSERT INTO StringIds VALUES (50, '{"NCCL communicator ID": "0xabc", "Message size [bytes]": "65536"}')"""
    trace = read_nsys(made(tmp_path / "a.sqlite", tables, text))
    call_of = trace.collectives[trace.host.collective[1]]
    assert call_of == CollectiveCall(name="ncclAllReduce", group="0xabc", group_size=8, message_bytes=65536)
    assert trace.host.collective[0] == -1  # making a communicator is no collective


def test_an_unreadable_payload_is_counted(tmp_path: Path) -> None:
    rows = [nvtx(2, 3, None, textId=6, domainId=1, binaryData=b"\x01\x02")]
    trace = read_nsys(made(tmp_path / "a.sqlite", {NVTX: rows}))
    assert trace.collectives == (CollectiveCall(name="ncclAllReduce"),)
    assert codes(trace)["payload"] == 1


def test_devices_and_their_numbers_in_a_process(tmp_path: Path) -> None:
    """With CUDA_VISIBLE_DEVICES both processes call their GPU 0; TARGET_INFO_CUDA_DEVICE tells which it is."""
    gpus = [
        {
            "id": number,
            "name": "NVIDIA H100",
            "smCount": 132,
            "totalMemory": 80 * 10**9,
            "memoryBandwidth": 3352 * 10**9,
        }
        for number in (2, 3)
    ]
    seen = [{"gpuId": 2, "cudaId": 0, "pid": 77}, {"gpuId": 3, "cudaId": 0, "pid": 78}]
    tables: dict[str, Any] = {KERNEL: [kernel(0, 5), kernel(1, 9, globalPid=OTHER)], "TARGET_INFO_GPU": gpus}
    trace = read_nsys(made(tmp_path / "a.sqlite", tables | {"TARGET_INFO_CUDA_DEVICE": seen}))
    assert trace.work.device.tolist() == [2, 3]
    assert trace.devices[0] == TraceDevice(
        id=2, name="NVIDIA H100", sm_count=132, memory_bytes=80 * 10**9, memory_bytes_per_s=3352 * 10**9
    )
    unsaid = read_nsys(made(tmp_path / "b.sqlite", tables))
    assert unsaid.work.device.tolist() == [0, 0]
    assert codes(unsaid) == {"shared-device": 0}


def test_base_time_is_added(tmp_path: Path) -> None:
    tables = {KERNEL: [kernel(5, 9)], RUNTIME: [call(1, 2)],
              "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_001}]}  # fmt: skip
    trace = read_nsys(made(tmp_path / "a.sqlite", tables))
    assert trace.base_ns == 1_700_000_000_000_000_001
    assert trace.work.start_ns.tolist() == [1_700_000_000_000_000_006]
    assert trace.host.end_ns.tolist() == [1_700_000_000_000_000_003]


def test_the_profilers_own_warnings(tmp_path: Path) -> None:
    rows = [{"severity": 1, "text": "Profiling has started."}, {"severity": 2, "text": "clock is odd"},
            {"severity": 2, "text": "clock is odd"}, {"severity": 3, "text": "4181 events were lost"}]  # fmt: skip
    trace = read_nsys(made(tmp_path / "a.sqlite", {KERNEL: [kernel(0, 1)], "DIAGNOSTIC_EVENT": rows}))
    assert [(fault.code, fault.count, fault.message) for fault in trace.faults] == [
        ("diagnostic", 2, "the profiler says: clock is odd"),
        ("dropped-events", 1, "the profiler says: 4181 events were lost"),
    ]


def test_times_that_cannot_be_are_counted(tmp_path: Path) -> None:
    rows = [kernel(5, 4), kernel(None, 4), kernel(1, 2**63 - 1), kernel(0, 3), kernel(0, 3, deviceId=None)]  # type: ignore[arg-type]
    trace = read_nsys(made(tmp_path / "a.sqlite", {KERNEL: rows}))
    assert (trace.work.start_ns.tolist(), trace.work.end_ns.tolist()) == ([0], [3])
    assert codes(trace) == {"negative-duration": 1, "no-time": 2, "no-device": 1}


def test_text_in_columns_of_numbers(tmp_path: Path) -> None:
    rows = [kernel(0, 3, "seven", graphId="x", gridX=b"\0", deviceId=0), kernel("soon", 9)]  # type: ignore[arg-type]
    trace = read_nsys(made(tmp_path / "a.sqlite", {KERNEL: rows}))
    assert trace.work.correlation.tolist() == [-1]
    assert codes(trace) == {"no-time": 1}


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("4.0.1", "the export has schema 4.0.1, written for 3.x: columns are taken by name"),
        (None, "the export does not say its schema (META_DATA_EXPORT): columns are taken by name"),
    ],
)
def test_other_schemas_are_read_and_said(tmp_path: Path, version: str | None, message: str) -> None:
    rows = [META[0], *([{"name": "EXPORT_SCHEMA_VERSION", "value": version}] if version else [])]
    trace = read_nsys(made(tmp_path / "a.sqlite", {"META_DATA_EXPORT": rows, KERNEL: [kernel(0, 1)]}))
    assert [(fault.code, fault.message) for fault in trace.faults] == [("schema-version", message)]


def test_missing_columns_are_named_all_at_once(tmp_path: Path) -> None:
    tables = {KERNEL: [{"start": 1, "deviceId": 0}], MEMCPY: [{"start": 1, "end": 2}]}
    with pytest.raises(UnreadableFileError) as raised:
        read_nsys(made(tmp_path / "a.sqlite", tables))
    assert [fault.message for fault in raised.value.faults] == [
        "the nsys export lacks the column CUPTI_ACTIVITY_KIND_KERNEL.end",
        "the nsys export lacks the column CUPTI_ACTIVITY_KIND_MEMCPY.deviceId",
        "the nsys export lacks the column CUPTI_ACTIVITY_KIND_KERNEL.demangledName",
    ]


def test_no_kernels_no_table(tmp_path: Path) -> None:
    trace = read_nsys(made(tmp_path / "a.sqlite", {RUNTIME: [call(0, 1)]}))
    assert (len(trace.work), trace.devices) == (0, ())
    assert trace.faults[0].message == "the export has no kernels, copies or sets: profile with --trace=cuda,nvtx"


def test_threads_have_names_where_given(tmp_path: Path) -> None:
    tables = {RUNTIME: [call(0, 1)], "ThreadNames": [{"nameId": 8, "globalTid": TID}],
              "PROCESSES": [{"globalPid": PID, "name": "python3"}]}  # fmt: skip
    assert read_nsys(made(tmp_path / "a.sqlite", tables)).threads == (("python3 77", "worker 5"),)


def test_nothing_is_written_beside_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a database in WAL mode SQLite writes an index beside it, for readers too, unless it is told not to."""
    folder = tmp_path / "of the profiler"
    folder.mkdir()
    path = made(folder / "a #1?.sqlite", {KERNEL: [kernel(0, 1)]}, "PRAGMA journal_mode = WAL;")
    before, seen = path.read_bytes(), []

    def seeing(tables: Tables, *given: Any) -> Any:
        seen.append([each.name for each in folder.iterdir()])
        return described(tables, *given)

    described = nsys.described_devices
    monkeypatch.setattr(nsys, "described_devices", seeing)
    assert len(read_nsys(path).work) == 1
    assert [*seen, [each.name for each in folder.iterdir()]] == [["a #1?.sqlite"]] * 2
    assert path.read_bytes() == before


def test_changes_beside_the_export_are_said(tmp_path: Path) -> None:
    path = made(tmp_path / "a.sqlite", {KERNEL: [kernel(0, 1)]})
    (tmp_path / "a.sqlite-wal").write_bytes(b"pending")
    assert read_nsys(path).faults[0].message == "a.sqlite-wal beside the export holds changes that are not read"
