"""XSpace files made here: lines that count, rounding, copies, joins, broken and mangled files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import UnreadableFileError
from suanli.nouns.trace import HostKind, Trace, TraceDevice, WorkKind
from suanli.readers.traces.xplane import read_xplane

from .xspace_made import PlaneMade, Ref, packed, space, whole

FUSION = "%fusion.3 = bf16[8,128]{1,0} fusion(bf16[8,128]{1,0} %p)"
START = "%copy-start.1 = (f32[8]{0}, f32[8]{0}) copy-start(f32[8]{0} %p)"
DONE = "%copy-done.1 = f32[8]{0} copy-done(%copy-start.1)"


def read(folder: Path, content: bytes, name: str = "a.xplane.pb") -> Trace:
    path = folder / name
    path.write_bytes(content)
    return read_xplane(path)


def named(trace: Trace) -> list[str]:
    return [trace.names[place] for place in trace.work.name]


def tpu() -> PlaneMade:
    shared: dict[str, dict[str, Any]] = {
        FUSION: {"hlo_category": "loop fusion", "flops": 1000, "model_flops": 900, "bytes_accessed": 64},
        START: {"hlo_category": "copy-start", "flops": 0, "bytes_accessed": 32},
        DONE: {"hlo_category": Ref("copy-done"), "flops": 0},
    }
    stats = {"device_type_string": "TPU v6 Lite", "peak_teraflops_per_second": 918.0,
             "peak_hbm_bw_gigabytes_per_second": 1638.0}  # fmt: skip
    plane = PlaneMade("/device:TPU:1", stats=stats, shared=shared)
    plane.line("Steps", [("1", 0, 9_000_000)], id=1)
    plane.line("XLA Modules", [("jit_f(1)", 0, 9_000_000)], id=2)
    plane.line("XLA Ops", [(START, 0, 1_000), (FUSION, 1_000, 4_000_000), (DONE, 5_000_000, 2_000_000)], id=3)
    plane.line("Async XLA Ops", [(START, 0, 6_000_000)], id=4)
    return plane.line("XLA TraceMe", [("dependency-wait", 0, 9_000_000)], id=6)


def gpu(**stats: Any) -> PlaneMade:
    plane = PlaneMade("/device:GPU:0", stats={"core_count": 132, "memory_bandwidth": 3352 * 10**9, **stats})
    details = {"correlation_id": 41, "hlo_op": Ref("dot.1"), "hlo_module": Ref("jit_f"), "name": Ref("jit(f)/dot"),
               "kernel_details": Ref("regs:32 static_shared:0 grid:16,18,1 block:256,1,1 occ_pct:50")}  # fmt: skip
    plane.line("Stream #16(Kernel)", [("gemm", 5_000, 10_000, details)], id=16, timestamp_ns=1000)
    copied = {"correlation_id": 42, "memcpy_details": "kind_src:pageable kind_dst:device size:4096 dest:0 async:1"}
    plane.line("Stream #7(MemcpyH2D)", [("MemcpyH2D", 0, 3_000, copied), ("Memset", 3_000, 1_000)], id=7)
    return plane.line("XLA Ops", [("dot.1", 0, 90_000)], id=99)  # what streams show, once more


def test_a_tpus_operations_count_once(tmp_path: Path) -> None:
    trace = read(tmp_path, space(tpu()))
    assert sorted(named(trace)) == ["copy-done.1", "copy-start.1", "copy-start.1", "fusion.3"]
    kinds = dict(zip(named(trace), trace.work.kind.tolist(), strict=True))
    assert kinds == {"copy-start.1": WorkKind.COPY, "copy-done.1": WorkKind.COPY, "fusion.3": WorkKind.KERNEL}
    assert sorted(trace.work.stream.tolist()) == [3, 3, 3, 4]
    assert trace.events == 7  # 1 step, 1 module, 3 operations, 1 asynchronous, 1 wait
    assert trace.devices == (
        TraceDevice(id=1, name="TPU v6 Lite", memory_bytes_per_s=1638e9, peak_flop_per_s=918e12),
    )  # fmt: skip


def test_what_a_tpu_says_of_an_operation(tmp_path: Path) -> None:
    trace = read(tmp_path, space(tpu()))
    detail = trace.details[trace.work.detail[named(trace).index("fusion.3")]]
    assert (detail.flops, detail.model_flops, detail.bytes_accessed) == (1000, 900, 64)
    assert detail.hlo == {"category": "loop fusion", "text": FUSION}
    done = trace.details[trace.work.detail[named(trace).index("copy-done.1")]]
    assert (done.flops, done.model_flops) == (0, None)  # 0 is said, None is not


def test_a_gpus_streams(tmp_path: Path) -> None:
    host = PlaneMade("/host:CPU").line("Host Threads/9", [("cuLaunchKernel", 0, 2_000, {"correlation_id": 41})])
    trace = read(tmp_path, space(gpu(), host))
    assert named(trace) == ["MemcpyH2D", "Memset", "gemm"]
    assert trace.work.kind.tolist() == [WorkKind.COPY, WorkKind.SET, WorkKind.KERNEL]
    assert trace.work.stream.tolist() == [7, 7, 16]
    assert trace.work.start_ns.tolist() == [0, 3, 1005]  # 1,000 ns of the line + 5,000 ps
    assert trace.work.end_ns.tolist() == [3, 4, 1015]
    assert (trace.copy_kinds, trace.work.copy.tolist()) == (("HtoD",), [0, -1, -1])
    assert trace.work.bytes.tolist() == [4096, -1, -1]
    assert trace.work.launch.tolist() == [-1, -1, 0]
    detail = trace.details[trace.work.detail[2]]
    assert detail.hlo == {"module": "jit_f", "op": "dot.1", "name": "jit(f)/dot"}
    assert detail.kernel is not None
    assert (detail.kernel["grid"], detail.kernel["block"]) == ((16, 18, 1), (256, 1, 1))
    assert trace.devices[0].memory_bytes_per_s == 3352e9


@pytest.mark.parametrize(
    ("offset", "duration", "start", "end"),
    [
        (1_499, 0, 1, 1),
        (1_500, 0, 2, 2),  # halves go up
        (400, 200, 0, 1),  # 0.4 to 0.6
        (600, 200, 1, 1),  # 0.6 to 0.8
        (2_250, 6_250, 2, 9),  # 2.25 to 8.5
    ],
)
def test_picoseconds_are_rounded_at_both_ends(tmp_path: Path, offset: int, duration: int, start: int, end: int) -> None:
    plane = PlaneMade("/device:TPU:0").line("XLA Ops", [("a", offset, duration)])
    trace = read(tmp_path, space(plane))
    assert (trace.work.start_ns.tolist(), trace.work.end_ns.tolist()) == ([start], [end])


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=30))
def test_events_that_touch_still_touch(tmp_path_factory: pytest.TempPathFactory, durations: list[int]) -> None:
    events, at = [], 777
    for duration in durations:
        events.append(("a", at, duration))
        at += duration
    trace = read(tmp_path_factory.mktemp("x"), space(PlaneMade("/device:TPU:0").line("XLA Ops", events)))
    starts, ends = sorted(trace.work.start_ns.tolist()), sorted(trace.work.end_ns.tolist())
    assert starts[1:] == ends[:-1]
    assert abs((ends[-1] - starts[0]) * 1000 - sum(durations)) < 1000  # the total is off by less than 1 ns
    exact = sorted((ps, ps + length) for _, ps, length in events)
    assert all(
        abs((end - start) * 1000 - (b - a)) < 1000 for start, end, (a, b) in zip(starts, ends, exact, strict=True)
    )


def test_the_start_of_profiling_is_the_base(tmp_path: Path) -> None:
    task = PlaneMade("Task Environment", stats={"profile_start_time": 1_795_971_909_527_556_495})
    trace = read(tmp_path, space(gpu(), task))
    assert trace.base_ns == 1_795_971_909_527_556_495
    assert trace.work.start_ns[2] == 1_795_971_909_527_556_495 + 1005
    absolute = PlaneMade("/device:TPU:0").line("XLA Ops", [("a", 0, 5)], timestamp_ns=1_795_971_909_600_000_000)
    assert read(tmp_path, space(absolute, task)).base_ns == 0  # its lines have it already


def test_host_spans(tmp_path: Path) -> None:
    events = [("train", 0, 9_000_000, {"step_num": 3}), ("my phase", 1_000, 5_000), ("$a.py:1 f", 0, 1_000),
              ("PjitFunction(f)", 2_000, 1_000), ("dot.1", 3_000, 1_000, {"hlo_op": Ref("dot.1")}),
              ("cuMemcpyHtoDAsync_v2", 4_000, 500)]  # fmt: skip
    trace = read(tmp_path, space(PlaneMade("/host:CPU").line("python", events)))
    kinds = {trace.names[name]: HostKind(kind) for name, kind in zip(trace.host.name, trace.host.kind, strict=True)}
    assert kinds == {
        "train#3": HostKind.MARK,
        "my phase": HostKind.MARK,
        "PjitFunction(f)": HostKind.OP,
        "dot.1": HostKind.OP,
        "cuMemcpyHtoDAsync_v2": HostKind.RUNTIME,
    }
    assert trace.threads == (("/host:CPU", "python"),)


def test_only_the_host_was_profiled(tmp_path: Path) -> None:
    trace = read(tmp_path, space(PlaneMade("/host:CPU").line("python", [("a", 0, 5_000)])))
    assert (len(trace.work), trace.devices) == (0, ())
    message = "the trace has no plane of a GPU or TPU: only the host was profiled"
    assert [(fault.code, fault.message) for fault in trace.faults] == [("no-device-work", message)]


def test_planes_that_are_not_known_are_said(tmp_path: Path) -> None:
    other = PlaneMade("/device:CUSTOM:Frobnicator").line("Stream #1", [("a", 0, 5)])
    faults = read(tmp_path, space(gpu(), other)).faults
    assert [fault.message for fault in faults] == ["planes that are not known: /device:CUSTOM:Frobnicator"]


def test_sums_without_a_time_are_counted(tmp_path: Path) -> None:
    line = whole(1, 3) + packed(2, "XLA Ops") + packed(4, whole(1, 1) + whole(5, 7) + whole(3, 99))
    plane = packed(2, "/device:TPU:0") + packed(3, line)
    trace = read(tmp_path, packed(1, plane))
    assert len(trace.work) == 0
    assert [(fault.code, fault.count) for fault in trace.faults if fault.count] == [("aggregated", 1)]


def test_an_event_that_passes_its_lines_end_is_left_out(tmp_path: Path) -> None:
    event = packed(4, whole(1, 1) + whole(2, 5_000) + whole(3, 1_000))
    longer = event[:1] + bytes([event[1] + 2]) + event[2:]  # its length says 2 bytes more: the plane's number
    lines = [packed(3, whole(1, 3) + packed(2, "XLA Ops") + each) for each in (event + longer, event)]
    trace = read(tmp_path, packed(1, packed(2, "/device:TPU:0") + lines[0] + whole(1, 5) + lines[1]))
    assert trace.work.end_ns.tolist() == [6, 6]
    assert [(fault.code, fault.count) for fault in trace.faults] == [("broken-record", 1)]


def test_durations_that_cannot_be(tmp_path: Path) -> None:
    events = [("a", 0, -5), ("a", -(2**63), 1), ("a", 0, 2**63 - 1), ("a", 1_000, 1_000)]
    trace = read(tmp_path, space(PlaneMade("/device:TPU:0").line("XLA Ops", events)))
    assert trace.work.start_ns.tolist() == [1]
    assert {fault.code: fault.count for fault in trace.faults} == {"no-time": 2, "negative-duration": 1}


def test_a_packed_file_is_the_same(tmp_path: Path) -> None:
    content = space(gpu(), tpu())
    plain, zipped = read(tmp_path, content), read(tmp_path, gzip.compress(content), "a.xplane.pb.gz")
    assert zipped.bytes_read == len(content)
    assert (plain.names, plain.work.start_ns.tolist()) == (zipped.names, zipped.work.start_ns.tolist())


def test_a_file_that_was_saved_as_text_is_refused(tmp_path: Path) -> None:
    content = space(gpu(), tpu())
    mangled = content.decode("ascii", "replace").encode()
    with pytest.raises(UnreadableFileError, match=r"saved as text: bytes that are no text have become U\+FFFD"):
        read(tmp_path, mangled)
    assert len(read(tmp_path, content).work) == 7  # the original is good


@pytest.mark.parametrize("content", [b'{"traceEvents": []}', b"\x00" * 40, b"PK\x03\x04", b"\x0a\x00"])
def test_what_is_no_xspace(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UnreadableFileError, match="the file is no XSpace"):
        read(tmp_path, content)


def times(trace: Trace) -> set[tuple[int, int, int]]:
    work = trace.work
    return set(zip(work.device.tolist(), work.start_ns.tolist(), work.end_ns.tolist(), strict=True))


@given(part=st.floats(0.01, 0.999))
def test_a_cut_file_invents_no_time(tmp_path_factory: pytest.TempPathFactory, part: float) -> None:
    content, folder = space(gpu(), tpu()), tmp_path_factory.mktemp("x")
    known = times(read(folder, content))
    try:
        trace = read(folder, content[: int(part * len(content))])
    except UnreadableFileError:
        return
    assert times(trace) <= known
    assert trace.faults  # a loss is never silent


@settings(max_examples=150)
@given(data=st.data())
def test_broken_bytes_are_an_error_or_a_sound_trace(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    host = PlaneMade("/host:CPU").line("Host Threads/9", [("cuLaunchKernel", 0, 2_000, {"correlation_id": 41})])
    content = bytearray(space(gpu(), tpu(), host))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        trace = read(tmp_path_factory.mktemp("x"), bytes(content))
    except UnreadableFileError:
        return
    assert (trace.work.end_ns >= trace.work.start_ns).all()
    assert (trace.host.end_ns >= trace.host.start_ns).all()
    assert len(trace.work) <= 7 * 2
