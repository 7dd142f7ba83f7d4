"""Every rule of Kineto's format on files made for it: what is device work, whose it is, when it was."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest

from suanli.errors import UnreadableFileError
from suanli.nouns.trace import HostKind, OpDetail, Trace, TraceDevice, WorkKind
from suanli.readers.traces.kineto import read_kineto
from suanli.units import counted

HERE = Path(__file__).parent


def event(cat: str, name: str, ts: Any, dur: Any, *, pid: Any = 100, tid: Any = 100, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: Any, dur: Any, **args: Any) -> dict[str, Any]:
    return event("kernel", name, ts, dur, pid=0, tid=7, **{"device": 0, "stream": 7, **args})


def read(folder: Path, events: list[Any], file: str = "rank0.json", **said: Any) -> Trace:
    import json

    path = folder / file
    path.write_text(json.dumps({"baseTimeNanoseconds": 0, **said, "traceEvents": events}), encoding="utf-8")
    return read_kineto(path)


def codes(trace: Trace) -> dict[str, int]:
    return {fault.code: fault.count for fault in trace.faults}


def work_names(trace: Trace) -> list[str]:
    return [trace.names[place] for place in trace.work.name]


@pytest.mark.parametrize(
    ("cat", "kind"),
    [
        ("kernel", WorkKind.KERNEL), ("gpu_memcpy", WorkKind.COPY), ("gpu_memset", WorkKind.SET),
        ("Kernel", WorkKind.KERNEL), ("Memcpy", WorkKind.COPY), ("Memset", WorkKind.SET),
        ("mtia_ccp_events", WorkKind.KERNEL),
    ],
)  # fmt: skip
def test_device_work_is_told_by_category(tmp_path: Path, cat: str, kind: WorkKind) -> None:
    trace = read(tmp_path, [event(cat, "w", 5, 2, device=3, stream=9)])
    assert trace.work.kind.tolist() == [kind]
    assert (trace.work.start_ns.tolist(), trace.work.end_ns.tolist()) == ([5_000], [7_000])
    assert (trace.work.device.tolist(), trace.work.stream.tolist()) == ([3], [9])
    assert len(trace.host) == 0


@pytest.mark.parametrize(
    "cat",
    ["gpu_user_annotation", "cuda_sync", "cuda_event", "overhead", "Trace", "python_function", "ac2g", "fwdbwd"],
)
def test_what_is_drawn_beside_work_is_none(tmp_path: Path, cat: str) -> None:
    """A sync on a stream, or a mark over kernels, has device and stream as arguments too (HTA #162)."""
    trace = read(tmp_path, [kernel("k", 1, 1), event(cat, "x", 0, 100, device=0, stream=7)])
    assert work_names(trace) == ["k"]
    assert (trace.events, len(trace.host)) == (2, 0)


def test_an_op_with_a_stream_stays_on_the_host(tmp_path: Path) -> None:
    """Triton launches carry args.stream (HTA PR #268: 94 µs instead of 1.76)."""
    trace = read(
        tmp_path, [event("cpu_op", "triton_poi_0", 0, 94, stream=0, device=0), kernel("triton_poi_0", 50, 1.76)]
    )
    assert (trace.work.end_ns - trace.work.start_ns).tolist() == [1_760]
    assert trace.host.kind.tolist() == [HostKind.OP]


@pytest.mark.parametrize(
    ("cat", "name", "kind"),
    [
        ("cpu_op", "aten::mm", HostKind.OP), ("Operator", "aten::mm", HostKind.OP), ("hpu_op", "mm", HostKind.OP),
        ("user_annotation", "mine", HostKind.MARK), ("user_annotation", "ProfilerStep#3", HostKind.MARK),
        ("Operator", "ProfilerStep#3", HostKind.MARK), ("cpu_op", "ProfilerStep#3", HostKind.MARK),
        ("cuda_runtime", "cudaLaunchKernel", HostKind.RUNTIME), ("cuda_driver", "cuLaunchKernel", HostKind.RUNTIME),
        ("Runtime", "cudaLaunchKernel", HostKind.RUNTIME), ("xpu_runtime", "zeLaunch", HostKind.RUNTIME),
        ("mtia_runtime", "launch", HostKind.RUNTIME), ("privateuse1_runtime", "launch", HostKind.RUNTIME),
    ],
)  # fmt: skip
def test_kinds_of_host_spans(tmp_path: Path, cat: str, name: str, kind: HostKind) -> None:
    assert read(tmp_path, [event(cat, name, 1, 1)]).host.kind.tolist() == [kind]


# 1712195495519689.047 µs is 1712195495519689047 ns; as a float64 of µs it ends in .0, of ns in 9024
NINETEEN = "1712195495519689.047"


@pytest.mark.parametrize(
    ("ts", "dur", "base", "start", "length"),
    [
        ("1712195495519689.047", "63.813", None, 1_712_195_495_519_689_047, 63_813),
        ("7889237999999.999", "0.001", 1_719_853_884_000_000_000, 1_727_743_121_999_999_999, 1),
        ("2915995397672.546", "12.0", 0, 2_915_995_397_672_546, 12_000),
        ("12", "3", 1_000, 13_000, 3_000),
    ],
)
def test_times_are_exact(tmp_path: Path, ts: str, dur: str, base: int | None, start: int, length: int) -> None:
    """The base is added, wherever it stands; decimals are read as text."""
    path = tmp_path / "rank0.json"
    row = '{"ph": "X", "cat": "%s", "name": "k", "pid": 0, "tid": 7, "ts": %s, "dur": %s, "args": {}}'
    rows = ", ".join(row % (cat, ts, dur) for cat in ("kernel", "cpu_op"))
    tail = "" if base is None else f', "baseTimeNanoseconds": {base}'
    path.write_text(f'{{"traceEvents": [{rows}]{tail}}}')
    trace = read_kineto(path)
    assert trace.base_ns == (base or 0)
    for table in (trace.work, trace.host):
        assert table.start_ns.tolist() == [start]
        assert (table.end_ns - table.start_ns).tolist() == [length]


@pytest.mark.parametrize("base", ["x", -1, 10**19, 1.5, None, [1], "9" * 30])
def test_a_base_that_is_no_time_is_not_added(tmp_path: Path, base: Any) -> None:
    trace = read(tmp_path, [kernel("k", 1, 1)], baseTimeNanoseconds=base)
    assert trace.work.start_ns.tolist() == [1_000]
    assert codes(trace)["base-time"] == 0


def test_a_kernel_finds_its_launch_and_its_op(tmp_path: Path) -> None:
    events = [
        kernel("k", 30, 5, correlation=77, **{"External id": 4}),
        event("cuda_runtime", "cudaLaunchKernel", 20, 2, correlation=77),
        event("cpu_op", "aten::mm", 10, 20, **{"External id": 4}),
        event("cpu_op", "aten::add", 40, 2, **{"External id": 77}),
    ]
    trace = read(tmp_path, events)
    assert trace.names[trace.host.name[trace.work.launch[0]]] == "cudaLaunchKernel"
    assert trace.names[trace.host.name[trace.work.op[0]]] == "aten::mm"
    assert trace.work.correlation.tolist() == [77]


@pytest.mark.parametrize(("tied", "to"), [(4, "record_param_comms"), (5, "nccl:all_reduce")])
def test_a_collective_is_tied_to_either_of_its_spans(tmp_path: Path, tied: int, to: str) -> None:
    """chakra #196: External id leads to record_param_comms, not to the mark nccl:*. Whichever it is, both are there."""
    spans = [event("user_annotation", "nccl:all_reduce", 0, 9, **{"External id": 5}),
             event("cpu_op", "record_param_comms", 1, 7, **{"External id": 4})]  # fmt: skip
    said = {"External id": tied, "Collective name": "allreduce"}
    trace = read(tmp_path, [*spans, kernel("ncclDevKernel_AllReduce", 20, 9, **said)])
    assert [trace.names[name] for name in trace.host.name] == ["nccl:all_reduce", "record_param_comms"]
    assert trace.names[trace.host.name[trace.work.op[0]]] == to
    assert trace.collectives[trace.work.collective[0]].name == "allreduce"


def test_an_external_id_that_is_the_correlation_ties_to_nothing(tmp_path: Path) -> None:
    """Old versions wrote the correlation for it, and it meets ids of ops by chance."""
    events = [kernel("k", 30, 5, correlation=4, **{"External id": 4}), event("cpu_op", "o", 1, 1, **{"External id": 4})]
    assert read(tmp_path, events).work.op.tolist() == [-1]


def test_an_op_comes_before_a_mark_of_the_same_id(tmp_path: Path) -> None:
    both = [event(cat, cat, 1, 9, **{"External id": 4}) for cat in ("user_annotation", "cpu_op")]
    trace = read(tmp_path, [*both, kernel("k", 30, 5, **{"External id": 4})])
    assert trace.names[trace.host.name[trace.work.op[0]]] == "cpu_op"
    trace = read(tmp_path, [both[0], kernel("k", 30, 5, **{"External id": 4})])
    assert trace.names[trace.host.name[trace.work.op[0]]] == "user_annotation"


def test_work_without_launch_is_kept(tmp_path: Path) -> None:
    """Launched before the window: busy is real, attribution is not (TraceLens #106)."""
    trace = read(tmp_path, [kernel("k", 30, 5, correlation=77), kernel("unnumbered", 40, 5)])
    assert (trace.work.launch.tolist(), trace.work.op.tolist()) == ([-1, -1], [-1, -1])


def test_of_two_processes_the_launch_just_before_counts(tmp_path: Path) -> None:
    launches = [event("cuda_runtime", f"launch {ts}", ts, 1, pid=ts, correlation=5) for ts in (10, 50)]
    trace = read(tmp_path, [*launches, kernel("a", 20, 1, correlation=5), kernel("b", 60, 1, correlation=5)])
    assert [trace.names[trace.host.name[row]] for row in trace.work.launch] == ["launch 10", "launch 50"]


def test_old_spellings(tmp_path: Path) -> None:
    """torch 1.8: `external id` and `Input dims`, threads as text; 0 is no id."""
    events = [
        event("Operator", "aten::mm", 1, 5, tid="25738", **{"External id": 3, "Input dims": [[2, 3], [3, 4]]}),
        event("Kernel", "k", 9, 1, device=0, stream=7, correlation=8, **{"external id": 3}),
        event("Kernel", "k", 12, 1, device=0, stream=7, correlation=9, **{"external id": 0}),
    ]
    trace = read(tmp_path, events)
    assert trace.work.op.tolist() == [0, -1]
    assert trace.threads == (("100", "25738"),)
    assert trace.details[trace.host.detail[0]].dims == ((2, 3), (3, 4))


def test_shapes_are_kept_once(tmp_path: Path) -> None:
    said = {
        "Input Dims": [[8, 4], [], [[2], [3]]], "Input type": ["float", "Scalar", "TensorList"],
        "Concrete Inputs": ["", "1", ""], "Input Strides": [[4, 1], [], [[1], [1]]],
    }  # fmt: skip
    trace = read(tmp_path, [event("cpu_op", "a", ts, 1, **said) for ts in (1, 2, 3)] + [event("cpu_op", "b", 4, 1)])
    expected = OpDetail(
        dims=((8, 4), (), ((2,), (3,))), types=("float", "Scalar", "TensorList"), concrete=("", "1", ""),
    )  # fmt: skip
    assert trace.details == (expected,)
    assert trace.host.detail.tolist() == [0, 0, 0, -1]


def test_what_a_kernel_says(tmp_path: Path) -> None:
    said = {"grid": [4, 1, 1], "block": [128, 1, 1], "registers per thread": 40, "shared memory": 512}
    trace = read(tmp_path, [kernel("k", 1, 1, **said, **{"graph id": 6, "graph node id": 9}), kernel("k", 3, 1)])
    assert trace.details[trace.work.detail[0]].kernel == {
        "grid": [4, 1, 1], "block": [128, 1, 1], "registers_per_thread": 40, "shared_memory": 512,
    }  # fmt: skip
    assert (trace.work.graph.tolist(), trace.work.graph_node.tolist()) == ([6, -1], [9, -1])
    assert trace.work.detail.tolist() == [0, -1]


def test_what_a_triton_launch_says(tmp_path: Path) -> None:
    said = {
        "kernel_backend": "triton", "kernel_file": "/tmp/x.py", "kernel_hash": "abc", "num_warps": 8,
        "kernel_kwargs": "XBLOCK=2", "grid": "grid(100,)", "Input Dims": [[4]],
    }  # fmt: skip
    trace = read(tmp_path, [event("cpu_op", "plain", 0, 1), event("cpu_op", "triton_0", 1, 1, **said)])
    detail = trace.details[trace.host.detail[1]]
    assert detail.dims == ((4,),)
    assert detail.kernel is not None
    assert detail.kernel["kernel_file"] == "/tmp/x.py"
    assert (detail.kernel["kernel_kwargs"], detail.kernel["num_warps"]) == ("XBLOCK=2", 8)


def test_collectives(tmp_path: Path) -> None:
    said = {
        "Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 20, "Group size": 8, "dtype": "BFloat16",
        "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2]",
        "Seq": 5,
    }  # fmt: skip
    cut = {**said, "Process Group Ranks": "[0, 1, ...]", "Collective name": "send", "Dst Rank": 3}
    events = [event("cpu_op", "record_param_comms", 0, 9, **said), kernel("ncclDevKernel", 1, 9, **said)]
    trace = read(tmp_path, [*events, kernel("ncclSend", 20, 9, **cut), kernel("plain", 40, 1)])
    assert trace.work.collective.tolist() == [0, 1, -1]
    assert trace.host.collective.tolist() == [0]
    first, second = trace.collectives
    assert (first.name, first.dtype, first.group, first.group_label) == ("allreduce", "BFloat16", "0", "default_pg")
    assert (first.in_elements, first.out_elements, first.group_size, first.sequence) == (10, 20, 8, 5)
    assert (first.ranks, first.peer) == ((0, 1, 2), None)
    assert (second.ranks, second.peer) == (None, 3)


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        ("Memcpy HtoD (Pageable -> Device)", {}, "HtoD"),
        ("Memcpy DtoD (Device -> Device)", {"bytes": 64}, "DtoD"),
        ("CopyHostToDevice", {"kind": "HtoD"}, "HtoD"),
        ("Memcpy PtoP (Device -> Device)", {}, "PtoP"),
        ("copy", {}, None),
    ],
)
def test_copies(tmp_path: Path, name: str, said: dict[str, Any], expected: str | None) -> None:
    trace = read(tmp_path, [event("gpu_memcpy", name, 1, 1, device=0, stream=7, **said)])
    assert trace.copy_kinds == (() if expected is None else (expected,))
    assert trace.work.copy.tolist() == [-1 if expected is None else 0]
    assert trace.work.bytes.tolist() == [said.get("bytes", -1)]


def test_mtia_says_sizes_and_directions_its_own_way(tmp_path: Path) -> None:
    event_ = event("mtia_ccp_events", "DMA", 1, 1, pid=17, tid=108, stream=108, size=1024, direction="DEVICE_TO_HOST")
    trace = read(tmp_path, [event_])
    assert (trace.work.device.tolist(), trace.work.bytes.tolist()) == ([17], [1024])
    assert trace.copy_kinds == ("DEVICE_TO_HOST",)
    assert trace.work.kind.tolist() == [WorkKind.KERNEL]  # by category: the account may look closer


def test_backward_ops(tmp_path: Path) -> None:
    said = [{"Fwd thread id": 1, "Sequence number": 8}, {"Fwd thread id": 0, "Sequence number": 8}, {}]
    trace = read(tmp_path, [event("cpu_op", "o", 10 * at, 5, **each) for at, each in enumerate(said, 1)])
    assert trace.host.forward_thread.tolist() == [1, -1, -1]
    assert trace.host.sequence.tolist() == [8, 8, -1]


@pytest.mark.parametrize(
    ("file", "said", "rank"),
    [
        ("x.json", {"distributedInfo": {"rank": 5, "world_size": 8}}, 5),
        ("rank3.json", {"distributedInfo": {"rank": 5}}, 5),
        ("rank-34.Jul_15.pt.trace.json", {}, 34),
        ("inference_rank_1.json", {"distributedInfo": {"backend": "nccl"}}, 1),
        ("worker0.pt.trace.json", {}, 0),
        ("rank_not_found.json", {}, None),
        ("crank7.json", {}, None),
        ("trace.json", {"distributedInfo": {"rank": "x"}}, None),
    ],
)
def test_rank(tmp_path: Path, file: str, said: dict[str, Any], rank: int | None) -> None:
    trace = read(tmp_path, [kernel("k", 1, 1)], file, **said)
    assert trace.rank == rank
    assert ("no-rank" in codes(trace)) == (rank is None)


def test_what_stands_around_the_events(tmp_path: Path) -> None:
    config = [{"pg_name": "0", "ranks": [0, 1]}, {"pg_name": "1", "ranks": "[0, 1, ...]"}, "odd", {"ranks": [1]}]
    devices = [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85_018_279_936, "numSms": 132}]
    trace = read(
        tmp_path, [kernel("k", 1, 1, device=2)], deviceProperties=devices, cuda_runtime_version=12040, with_stack=0,
        record_shapes=1, distributedInfo={"rank": 0, "world_size": 2, "pg_config": config},
    )  # fmt: skip
    like = {"name": "NVIDIA H100", "sm_count": 132, "memory_bytes": 85_018_279_936}
    assert trace.devices == (TraceDevice(id=0, **like), TraceDevice(id=2, **like))  # AMD counts from another number
    assert (trace.world_size, trace.groups) == (2, {"0": (0, 1)})
    assert trace.recorded == {"shapes": True, "stacks": False}
    assert trace.producer == "Kineto (CUDA 12040)"


def test_events_that_the_profiler_dropped(tmp_path: Path) -> None:
    log = ["Record counts: Out-of-range = 4181, Blocklisted runtime = 7", "CUPTI stopped early? = 1"]
    trace = read(tmp_path, [kernel("k", 1, 1)], INFO=log)
    assert [(fault.count, fault.message) for fault in trace.faults if fault.code == "dropped-events"] == [
        (4181, "the profiler dropped 4,181 events as out of its window (Out-of-range in its log)"),
        (0, "CUPTI stopped before the end of the window: work after that is missing"),
    ]


def test_no_time_and_negative_times_are_left_out(tmp_path: Path) -> None:
    """kineto #109: ts 0 and dur 0; #646: a negative duration."""
    events = [
        kernel("ok", 10**10, 5), kernel("zero", 0, 0), kernel("negative", 10**10, -3), kernel("from zero", 0, 10**10),
        kernel("text", "soon", 5), kernel("none", None, 5), event("cpu_op", "negative", 10**10, -1),
        kernel("empty", 10**10, 0),
    ]  # fmt: skip
    trace = read(tmp_path, events)
    assert work_names(trace) == ["empty", "ok"]
    assert codes(trace) | {"base-time": 0} == {"no-time": 4, "negative-duration": 2, "base-time": 0}
    messages = {fault.code: fault.message for fault in trace.faults}
    assert messages["negative-duration"] == "2 events of negative duration are left out, 1 of a device"
    assert messages["no-time"] == "4 events without a time are left out"


def test_a_trace_that_starts_at_zero_is_one(tmp_path: Path) -> None:
    assert len(read(tmp_path, [kernel("a", 0, 5), kernel("b", 7, 5)]).work) == 2


def test_categories_nobody_knows_are_said(tmp_path: Path) -> None:
    trace = read(
        tmp_path, [kernel("k", 1, 1), event("npu", "n", 1, 1), event("npu", "n", 2, 1), {"ph": "s", "cat": "flow"}]
    )
    said = [(fault.count, fault.message) for fault in trace.faults if fault.code == "unknown-category"]
    assert said == [(2, "2 events of categories that are not known are left out: npu")]
    assert trace.events == 4


@pytest.mark.parametrize(
    ("events", "code", "message"),
    [
        ([{"ph": "X", "name": "a", "ts": 1, "dur": 1}], "no_known_events", "events without a category"),
        ([event("npu", "n", 1, 1)], "no_known_events", "categories npu"),
    ],
)
def test_events_of_another_kind(tmp_path: Path, events: list[Any], code: str, message: str) -> None:
    with pytest.raises(UnreadableFileError) as caught:
        read(tmp_path, events)
    (fault,) = caught.value.faults
    assert (fault.code, fault.got) == (code, message)
    assert fault.message == "none of 1 event has a category of torch.profiler"


@pytest.mark.parametrize("items", [[{"a": 1}], [{"cols": []}, {"cols": [{"id": "x"}]}], [{}]])
@pytest.mark.parametrize("bare", [True, False])
def test_a_list_of_other_things(tmp_path: Path, items: list[Any], bare: bool) -> None:
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps(items if bare else {"traceEvents": items}), encoding="utf-8")
    with pytest.raises(UnreadableFileError) as caught:
        read_kineto(path)
    (fault,) = caught.value.faults
    assert (fault.code, fault.got) == ("no_known_events", "items without a phase (ph)")
    assert fault.message == counted(len(items), "none of {count} {items|item} of the list is an event")


def test_an_empty_trace_is_one(tmp_path: Path) -> None:
    trace = read(tmp_path, [])
    assert (trace.events, len(trace.work), len(trace.host)) == (0, 0, 0)
    assert trace.faults == ()


def test_garbage_collection_is_left_as_it_was(tmp_path: Path) -> None:
    assert gc.isenabled()
    read(tmp_path, [kernel("k", 1, 1)])
    assert gc.isenabled()


def test_nothing_is_written_beside_the_file(tmp_path: Path) -> None:
    read(tmp_path, [kernel("k", 1, 1)])
    assert [each.name for each in tmp_path.iterdir()] == ["rank0.json"]


@pytest.mark.parametrize("ids", [(100, "100"), ("100", 100), ("100", "100"), (100, 100)])
def test_a_thread_is_one_whether_its_number_is_quoted_or_not(tmp_path: Path, ids: tuple[Any, Any]) -> None:
    """Some files quote one and not the other; with a large number among them too."""
    rows = [event("cpu_op", f"op{k}", 10 * k, 5, pid=ids[k % 2], tid=ids[(k + 1) % 2]) for k in range(6)]
    far = [event("cuda_runtime", "cudaLaunchKernel", 200, 5, pid=ids[0], tid=4_290_336_512)]
    trace = read(tmp_path, [*rows, *far])
    assert sorted(trace.threads) == [("100", "100"), ("100", "4290336512")]
