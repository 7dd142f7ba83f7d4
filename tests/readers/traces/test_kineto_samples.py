"""Public traces of Kineto beside a plain reading of them with json and whole numbers."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suanli.explain.intervals import covered_ns
from suanli.nouns.trace import HostKind, Trace
from suanli.readers.traces import read_trace

WORK = {"kernel": 0, "gpu_memcpy": 1, "gpu_memset": 2, "Kernel": 0, "Memcpy": 1, "Memset": 2, "mtia_ccp_events": 0}
RUNTIME = {"cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime"}
# events in the file, device work, of it with a launch, host spans; counted by grep and jq on the files
SAMPLES = {
    "hta_a100_train_rank0.json.gz": (108_936, 7_747, 6_875, 59_469),  # 872 launched before the window
    "hta_alexnet_a100_cudasync.json.gz": (1_408, 98, 98, 728),
    "hta_capitalised_cats.json.gz": (54, 4, 4, 8),
    "hta_compare_base.json.gz": (33, 18, 2, 15),
    "hta_compare_test.json.gz": (34, 17, 1, 17),
    "hta_cpu_only_rank34.json.gz": (30, 0, 0, 15),
    "hta_diff_control_a100.json.gz": (109_123, 9_450, 9_450, 65_486),
    "hta_diff_test_v100.json.gz": (105_167, 15_632, 15_018, 52_691),
    "hta_mi250_rocm62_toy.json.gz": (220, 16, 16, 94),
    "hta_mtia_inference.json.gz": (16_158, 1_313, 991, 12_865),
    "hta_no_distributedinfo.json.gz": (2_467, 0, 0, 2_467),
    "hta_rank_missing.json.gz": (2_467, 0, 0, 2_467),
    "hta_sampled_rank0.json.gz": (4_855, 1_204, 1_204, 3_606),
    "hta_sampled_rank1.json.gz": (4_720, 1_154, 1_154, 3_521),
    "hta_triton_example.json.gz": (71, 1, 1, 6),
    "hta_v100_ns_resolution.json.gz": (68_692, 6_095, 6_095, 39_309),
    "kineto_docs_after_fix.json": (75, 1, 1, 5),
    "kineto_tb_gpu_metrics_input.json": (340, 32, 32, 221),
    "kineto_tb_resnet50_autograd.json.gz": (79_711, 10_133, 10_133, 49_289),
    "kineto_tb_resnet50_nw0.json.gz": (75_718, 9_096, 9_096, 35_569),
    "kineto_tb_resnet50_nw0_v2.json.gz": (73_639, 10_015, 9_282, 44_304),
    "param_linear_kineto.json.gz": (86_859, 10_356, 10_356, 51_593),
    "tl_h100_bert_small.json.gz": (2_551, 61, 61, 612),
    "tl_h100_qwen05b.json.gz": (18_221, 1_707, 1_198, 6_109),
    "tl_mi210_gpu_only.json.gz": (2_443, 562, 562, 631),
    "tl_mi300_compile_triton.json.gz": (246, 12, 12, 101),
    "tl_mi300_ddp_resnet18.json.gz": (29_746, 2_375, 2_375, 11_772),
    "tl_mi300_resnet_actckpt.json.gz": (56_451, 3_653, 2_685, 11_128),  # 968 launched before the window
    "tl_mi300_xdit_sd35.json.gz": (239_093, 8_066, 8_066, 57_814),
    "tl_sglang_prefilldecode.json.gz": (60_315, 534, 534, 4_857),
    "tl_vllm_decode_graph.json.gz": (1_993, 434, 434, 121),
}


def plainly(path: Path) -> tuple[int, dict[int, list[tuple[int, int]]], list[dict[str, Any]]]:
    """Events, intervals of each device in whole nanoseconds, and the spans of the host."""
    raw = path.read_bytes()
    document = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw, parse_float=Decimal)
    base, devices, host = document.get("baseTimeNanoseconds", 0), {}, []
    for event in document["traceEvents"]:
        if event.get("ph") != "X":
            continue
        if event.get("cat") in WORK:
            start = int(Decimal(event["ts"]) * 1000) + base
            device = int(event["args"].get("device", event["pid"]))
            devices.setdefault(device, []).append((start, start + int(Decimal(event["dur"]) * 1000)))
        elif event.get("cat") in RUNTIME | {"cpu_op", "Operator", "user_annotation"}:
            host.append(event)
    return len(document["traceEvents"]), devices, host


def plain_cover(intervals: list[tuple[int, int]]) -> int:
    total = end = 0
    for low, high in sorted(intervals):
        total += max(0, high - max(low, end))
        end = max(end, high)
    return total


def codes(trace: Trace) -> dict[str, int]:
    return {fault.code: fault.count for fault in trace.faults}


@pytest.mark.shared
@pytest.mark.parametrize("file", SAMPLES)
def test_a_sample_is_read_exactly(file: str, shared: Path) -> None:
    path = shared / "traces" / "files" / file
    trace = read_trace(path)
    events, devices, host = plainly(path)
    linked = int((trace.work.launch >= 0).sum())
    assert SAMPLES[file] == (trace.events, len(trace.work), linked, len(trace.host))
    assert (trace.events, len(trace.work), len(trace.host)) == (events, sum(map(len, devices.values())), len(host))
    for device, intervals in devices.items():
        mine = trace.work.device == device
        assert sorted(intervals) == list(
            zip(trace.work.start_ns[mine].tolist(), trace.work.end_ns[mine].tolist(), strict=True)
        )
        assert covered_ns(trace.work.start_ns[mine], trace.work.end_ns[mine]) == plain_cover(intervals)
    starts = sorted(int(Decimal(each["ts"]) * 1000) + trace.base_ns for each in host)
    assert np.sort(trace.host.start_ns).tolist() == starts
    assert set(codes(trace)) <= {"no-rank", "base-time", "dropped-events"}


@pytest.mark.shared
@pytest.mark.parametrize("file", SAMPLES)
def test_a_launch_is_of_its_work(file: str, shared: Path) -> None:
    trace = read_trace(shared / "traces" / "files" / file)
    linked = np.flatnonzero(trace.work.launch >= 0)
    launches = trace.work.launch[linked]
    assert (trace.host.kind[launches] == HostKind.RUNTIME).all()
    assert (trace.host.correlation[launches] == trace.work.correlation[linked]).all()
    assert (trace.work.op < len(trace.host)).all()


@pytest.mark.shared
@pytest.mark.parametrize(
    ("file", "rank", "world"),
    [
        ("hta_a100_train_rank0.json.gz", 0, 16), ("hta_cpu_only_rank34.json.gz", 34, 300),
        ("hta_diff_control_a100.json.gz", 3, 8), ("hta_sampled_rank1.json.gz", 1, 128),
        ("hta_no_distributedinfo.json.gz", None, None), ("hta_rank_missing.json.gz", None, None),
    ],
)  # fmt: skip
def test_ranks(file: str, rank: int | None, world: int | None, shared: Path) -> None:
    """As distributedInfo of the file says."""
    trace = read_trace(shared / "traces" / "files" / file)
    assert (trace.rank, trace.world_size) == (rank, world)
    assert ("no-rank" in codes(trace)) == (rank is None)


@pytest.mark.shared
def test_dropped_events_are_said(shared: Path) -> None:
    trace = read_trace(shared / "traces" / "files" / "hta_v100_ns_resolution.json.gz")
    assert codes(trace)["dropped-events"] == 3_829  # "Out-of-range = 3829" in its INFO


@pytest.mark.shared
@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.999])
def test_a_sample_cut_off(cut: float, shared: Path, tmp_path: Path) -> None:
    whole = gzip.decompress((shared / "traces" / "files" / "tl_h100_bert_small.json.gz").read_bytes())
    path = tmp_path / "rank0.json"
    path.write_bytes(whole[: int(cut * len(whole))])
    trace = read_trace(path)
    assert codes(trace)["truncated"] == 1
    intact = read_trace(shared / "traces" / "files" / "tl_h100_bert_small.json.gz").work
    assert len(trace.work) <= 61
    busy = covered_ns(trace.work.start_ns, trace.work.end_ns)
    assert busy <= covered_ns(intact.start_ns, intact.end_ns)
