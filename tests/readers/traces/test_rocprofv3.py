"""JSON of rocprofv3: tables of names, agents, copies, launches within a process; the public sample by plain Python."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import UnreadableFileError
from suanli.explain.intervals import covered_ns
from suanli.nouns.trace import CollectiveCall, HostKind, Trace, TraceDevice, WorkKind
from suanli.readers.traces.rocprofv3 import read_rocprofv3

KINDS = [
    {"kind": "NONE", "operations": []},
    {"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel", "hipMemcpyAsync"]},
    {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE",
                                           "MEMORY_COPY_DEVICE_TO_HOST", "MEMORY_COPY_DEVICE_TO_DEVICE"]},
    {"kind": "MARKER_CORE_API", "operations": ["roctxRangePushA"]},
    {"kind": "RCCL_API", "operations": ["ncclAllReduce"]},
]  # fmt: skip
CPU, GPU, OTHER = 100, 101, 102


def agents() -> list[dict[str, Any]]:
    gpu = {"type": 2, "product_name": "AMD Instinct MI350X", "cu_count": 256, "logical_node_type_id": 0}
    banks = {"mem_banks": [{"size_in_bytes": 309_220_868_096}]}
    return [
        {"id": {"handle": CPU}, "type": 1, "product_name": "CPU", "gpu_index": -1},
        {"id": {"handle": GPU}, "gpu_index": 0, **gpu, **banks},
        {"id": {"handle": OTHER}, "gpu_index": -1, **gpu, "logical_node_type_id": 4},
    ]


def record(start: int, end: int, number: int, **more: Any) -> dict[str, Any]:
    return {
        "start_timestamp": start,
        "end_timestamp": end,
        "correlation_id": {"internal": number, "external": 0},
    } | more


def dispatch(start: int, end: int, number: int, *, agent: int = GPU, kernel: int = 8) -> dict[str, Any]:
    info = {"agent_id": {"handle": agent}, "queue_id": {"handle": 16}, "kernel_id": kernel,
            "workgroup_size": {"x": 512, "y": 1, "z": 1}, "grid_size": {"x": 4096, "y": 2, "z": 1}}  # fmt: skip
    return record(start, end, number, kind=11, operation=2, thread_id=908, dispatch_info=info, stream_id={"handle": 5})


def call(start: int, end: int, number: int, kind: int, operation: int = 0) -> dict[str, Any]:
    return record(start, end, number, kind=kind, operation=operation, thread_id=908)


def process(pid: int = 908, **records: Any) -> dict[str, Any]:
    symbols = [{"kernel_id": 8, "formatted_kernel_name": "gemm", "demangled_kernel_name": "gemm.kd"},
               {"kernel_id": 9, "formatted_kernel_name": "", "kernel_name": "_Z4gemm.kd"}]  # fmt: skip
    strings = {"buffer_records": KINDS, "marker_api": [{"key": 3, "value": "step 1"}]}
    return {"metadata": {"pid": pid}, "agents": agents(), "strings": strings, "kernel_symbols": symbols,
            "buffer_records": records}  # fmt: skip


def text(*processes: dict[str, Any]) -> bytes:
    return json.dumps({"rocprofiler-sdk-tool": list(processes)}).encode()


def read(folder: Path, *processes: dict[str, Any]) -> Trace:
    path = folder / "1_results.json"
    path.write_bytes(text(*processes))
    return read_rocprofv3(path)


def test_dispatches_and_their_launches(tmp_path: Path) -> None:
    trace = read(tmp_path, process(kernel_dispatch=[dispatch(100, 250, 1)], hip_api=[call(50, 60, 1, 1)]))
    assert [trace.names[place] for place in trace.work.name] == ["gemm"]
    assert (trace.work.start_ns.tolist(), trace.work.end_ns.tolist(), trace.work.stream.tolist()) == (
        [100],
        [250],
        [16],
    )
    assert trace.work.launch.tolist() == [0]
    assert trace.names[trace.host.name[0]] == "hipLaunchKernel"
    assert trace.host.kind.tolist() == [HostKind.RUNTIME]
    assert trace.details[0].kernel == {"grid": (4096, 2, 1), "block": (512, 1, 1)}
    assert trace.threads == (("908", "908"),)
    assert trace.devices == (
        TraceDevice(id=0, name="AMD Instinct MI350X", sm_count=256, memory_bytes=309_220_868_096),
        TraceDevice(id=4, name="AMD Instinct MI350X", sm_count=256),
    )


def test_launches_of_another_process_are_not_joined(tmp_path: Path) -> None:
    first = process(1, kernel_dispatch=[dispatch(10, 20, 1)], hip_api=[call(1, 2, 1, 1)])
    second = process(2, kernel_dispatch=[dispatch(30, 40, 1)], hip_api=[call(3, 4, 1, 1)])
    third = process(3, kernel_dispatch=[dispatch(50, 60, 1)])
    trace = read(tmp_path, first, second, third)
    assert [int(trace.host.start_ns[row]) if row >= 0 else None for row in trace.work.launch] == [1, 3, None]


@pytest.mark.parametrize(
    ("operation", "source", "target", "label", "device"),
    [(2, CPU, GPU, "HtoD", 0), (3, GPU, CPU, "DtoH", 0), (4, GPU, OTHER, "DtoD", 4), (0, CPU, GPU, None, 0)],
)
def test_copies(tmp_path: Path, operation: int, source: int, target: int, label: str | None, device: int) -> None:
    ends = {"src_agent_id": {"handle": source}, "dst_agent_id": {"handle": target}}
    copied = record(5, 9, 2, kind=2, operation=operation, thread_id=1, bytes=4096, **ends)
    trace = read(tmp_path, process(memory_copy=[copied]))
    assert (trace.work.kind.tolist(), trace.work.bytes.tolist()) == ([WorkKind.COPY], [4096])
    assert trace.names[trace.work.name[0]] == (f"Memcpy {label}" if label else "Memcpy")
    assert trace.copy_kinds == ((label,) if label else ())
    assert trace.work.device.tolist() == [device]


def test_markers_and_collectives(tmp_path: Path) -> None:
    trace = read(tmp_path, process(marker_api=[call(0, 9, 3, 3), call(1, 2, 4, 3)], rccl_api=[call(5, 6, 5, 4)]))
    assert [trace.names[place] for place in trace.host.name] == ["step 1", "roctxRangePushA", "ncclAllReduce"]
    assert trace.host.kind.tolist() == [HostKind.MARK, HostKind.MARK, HostKind.RUNTIME]
    assert trace.collectives == (CollectiveCall(name="ncclAllReduce"),)
    assert trace.host.collective.tolist() == [-1, -1, 0]
    fault = trace.faults[0]
    assert fault.message == "no kernel was recorded: use --kernel-trace --memory-copy-trace"


def test_what_the_tables_do_not_know(tmp_path: Path) -> None:
    rows = [dispatch(0, 1, 1, kernel=77), dispatch(1, 2, 2, kernel=9), dispatch(2, 3, 3, agent=CPU), dispatch(5, 4, 4)]
    trace = read(tmp_path, process(kernel_dispatch=rows, hip_api=[call(0, 1, 9, 99), call(0, 1, 9, 1, 99)]))
    assert [trace.names[place] for place in trace.work.name] == ["kernel 77", "_Z4gemm.kd"]
    assert {trace.names[place] for place in trace.host.name} == {"call without a name"}
    assert {fault.code: fault.count for fault in trace.faults} == {"no-name": 1, "no-device": 1, "negative-duration": 1}


@pytest.mark.parametrize(
    "content",
    [b"[]", b"{}", b'{"rocprofiler-sdk-tool": 3}', b'{"rocprofiler-sdk-tool": [', text(process())[:-5],
     b'{"rocprofiler-sdk-tool": [{"buffer_records": {"hip_api": [{"start_timestamp": 1}]}}]}',
     b'{"rocprofiler-sdk-tool": [{"metadata": {"pid": 99999999999999999999}}]}'],
)  # fmt: skip
def test_what_is_no_json_of_rocprofv3(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableFileError, match="the file is no JSON of rocprofv3"):
        read_rocprofv3(path)


@settings(max_examples=60)
@given(data=st.data())
def test_broken_text_is_an_error_or_a_sound_trace(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    rows = {"kernel_dispatch": [dispatch(1, 2, 1), dispatch(3, 4, 2)], "hip_api": [call(0, 1, 1, 1)]}
    content = bytearray(text(process(**rows)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(32, 126))
    path = tmp_path_factory.mktemp("x") / "a.json"
    path.write_bytes(content)
    try:
        trace = read_rocprofv3(path)
    except UnreadableFileError:
        return
    assert (trace.work.end_ns >= trace.work.start_ns).all()
    assert len(trace.work) + len(trace.host) <= 3


@pytest.mark.shared
def test_the_public_sample(shared: Path) -> None:
    path = shared / "traces" / "files" / "tl_rocprofv3_908.json.gz"
    trace = read_rocprofv3(path)
    (plain,) = json.loads(gzip.decompress(path.read_bytes()))["rocprofiler-sdk-tool"]
    rows = plain["buffer_records"]["kernel_dispatch"]
    assert len(trace.work) == len(rows) == 43_915
    spans = [(row["start_timestamp"], row["end_timestamp"]) for row in rows]
    found = zip(trace.work.start_ns.tolist(), trace.work.end_ns.tolist(), strict=True)
    assert sorted(found) == sorted(spans)
    busy = until = 0
    for start, end in sorted(spans):
        busy += max(0, end - max(start, until))
        until = max(until, end)
    assert covered_ns(trace.work.start_ns, trace.work.end_ns) == busy == 4_233_112_334
    names = {symbol["kernel_id"]: symbol["formatted_kernel_name"] for symbol in plain["kernel_symbols"]}
    expected = Counter(names[row["dispatch_info"]["kernel_id"]] for row in rows)
    assert Counter(trace.names[place] for place in trace.work.name) == expected
    assert trace.devices[0].name == "AMD Instinct MI350X"
    assert trace.faults == ()
