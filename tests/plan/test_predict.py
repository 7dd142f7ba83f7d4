"""One layout explained; published reports of other planners' faults; runs that nothing was fitted to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.catalog.curves import find_curves
from suanli.catalog.devices import find_device
from suanli.catalog.fabrics import device_fabric, node_fabric
from suanli.catalog.measured import measured_steps
from suanli.catalog.profiles import find_profile
from suanli.count import build_ledger
from suanli.errors import InputError
from suanli.nouns.layout import Layout
from suanli.nouns.step import StepEstimate
from suanli.nouns.workload import Workload
from suanli.plan.observed import observe_step
from suanli.plan.predict import estimate, job_of
from suanli.plan.step_time import Job
from suanli.readers.model import read_model

DGX = node_fabric("hgx-h100")


def planned(model: Any, layout: Layout, batch: int, seq: int, gpu: str = "h100-sxm", stack: str = "nemo",
            dtype: str = "bf16", fabric: Any = DGX) -> StepEstimate:  # fmt: skip
    arch = read_model(model) if isinstance(model, str) else model
    flops = build_ledger(arch, Workload(phase="train", seq=seq), find_convention("causal")).model_flops * batch
    device, profile = find_device(gpu), find_profile(stack)
    peak = device.peak_flop_per_s("fp8" if dtype.startswith("fp8") else dtype)
    job = Job(arch=arch, seq=seq, dtype=dtype, curves=find_curves(device), fabric=fabric, traits=profile.traits)
    return estimate(job, layout, batch, profile, (f"{device.short_id} {dtype}",), flops, peak)


LLAMA_405B = Layout(tp=8, pp=16, dp=128, vpp=8, zero=1, sp=True, schedule="interleaved")


def test_an_estimate_adds_up_and_says_how_sure_it_is() -> None:
    found = planned("llama-3.1-405b", LLAMA_405B, 2048, 8192, stack="llama3")
    assert sum(entry.seconds for entry in found.account) == pytest.approx(found.step_time_s)
    low, high = found.step_time_interval_s
    assert low < found.step_time_s < high
    assert low * high == pytest.approx(found.step_time_s**2)  # as far below as above, in proportion
    assert found.seconds("matmul") > found.step_time_s / 2 and found.seconds("no such entry") == 0
    assert found.extrapolates == ()
    assert found.step_time_s == pytest.approx(6.72, rel=0.05)  # arXiv:2407.21783 Table 4: 400 TFLOP/s a GPU
    assert found.tokens_per_second_per_gpu == pytest.approx(2048 * 8192 / found.step_time_s / 16384)


# stack, GPU, dtype: what the estimate says it goes beyond
BEYOND = [
    ("nemo", "h100-sxm", "bf16", ()),
    ("nemo", "b200", "bf16", ("no run of nemo on b200 bf16 was seen, only on h100-sxm bf16, h100-sxm fp8",)),
    ("megatron-core", "h100-sxm", "bf16", ("no run of megatron-core was seen",)),
]


def test_a_stack_seen_without_experts_says_so() -> None:
    found = planned("mixtral-8x7b", Layout(dp=8, ep=8), 64, 4096)
    assert found.extrapolates == ("no run of nemo with routed experts was seen",)
    assert planned("mixtral-8x7b", Layout(dp=8, ep=8), 64, 4096, stack="megatron-bridge").extrapolates == ()


@pytest.mark.parametrize(("stack", "gpu", "dtype", "expected"), BEYOND)
def test_extrapolation_is_said(stack: str, gpu: str, dtype: str, expected: tuple[str, ...]) -> None:
    fabric = node_fabric("hgx-b200") if gpu == "b200" else DGX
    found = planned("llama-3.1-8b", Layout(dp=8), 64, 4096, gpu, stack, dtype, fabric)
    assert found.extrapolates == expected


def test_a_batch_that_is_not_whole_is_refused() -> None:
    with pytest.raises(InputError, match="the global batch is not whole micro-batches in --global-batch; got 100"):
        planned("llama-3.1-8b", Layout(dp=8), 100, 4096)


def test_deepseek_v3_on_2048_h800() -> None:
    """2.664M H800-hours for 14.8T tokens are 1,543 tokens/s a GPU: 19.9 s for 15,360 sequences. Nothing is fitted."""
    h800 = find_device("h800-sxm")
    fabric = device_fabric(h800, gpus_per_node=8, nics_bytes_per_s=400e9)
    layout = Layout(pp=16, dp=128, ep=64, zero=1, schedule="dualpipe")
    for stack in ("hai-llm", "nemo"):
        found = planned("deepseek-v3", layout, 15360, 4096, "h800-sxm", stack, "fp8_block", fabric)
        assert found.step_time_s == pytest.approx(19.9, rel=0.2)
        assert found.extrapolates


# --- reports: faults of other planners, and what is right ---------------------------------------------------------


def measured(id_: str, **changes: Any) -> tuple[StepEstimate, float]:
    run = observe_step(next(step for step in measured_steps() if step.id == id_))
    profile, layout = find_profile(run.stack), replace(run.layouts[0], **changes)
    batch = run.global_batch * layout.dp // run.layouts[0].dp
    job = job_of(run, profile.traits)
    return estimate(job, layout, batch, profile, run.labels, 1.0, 1.0), run.step_s


def test_data_parallelism_without_zero_gathers_no_weights() -> None:
    """llm-analysis: 530B on DP 1 → 8 with ZeRO off 46.9 → 113 s; measured 37.8 → 39.2 (arXiv:2205.05198)."""
    one, eight = measured("530B-sel+sp")[0], measured("530B-DP8")[0]
    assert eight.seconds("weight gathers") == 0
    assert eight.step_time_s / one.step_time_s == pytest.approx(39.15 / 37.83, abs=0.03)
    assert eight.seconds("data parallel") < 0.05 * eight.step_time_s  # parameters are divided by tp and pp


def test_utilisation_is_of_the_dense_peak() -> None:
    """Megatron-LM #1565: against 1,979 TFLOP/s, a sparse peak, 46 % read 24 %."""
    found = planned("llama-3.1-8b", Layout(dp=8, zero=1), 128, 8192)
    arch = read_model("llama-3.1-8b")
    flops = build_ledger(arch, Workload(phase="train", seq=8192), find_convention("causal")).model_flops * 128
    assert found.mfu == pytest.approx(flops / (8 * 989.4e12 * found.step_time_s), rel=1e-3)
    assert 0.3 < found.mfu < 0.6


def test_tiny_models_are_bound_by_launches() -> None:
    """SimAI #166: 126M on one GPU took 0.7 s and was simulated at 6.0 s. Here: 12 layers of 1,024 on 8 A100."""
    tiny = [step for step in measured_steps() if step.model == "h1024l12" and step.tp == 8 and step.micro_batch == 1]
    for step in tiny:
        found, seconds = measured(step.id)
        assert found.step_time_s == pytest.approx(seconds, rel=0.25)
        assert found.seconds("launch") == max(entry.seconds for entry in found.account)


def test_sends_are_mostly_hidden_and_entries_add_up() -> None:
    """SimAI #202, #90: the total was not the sum; exposed sends were 2 · vpp · micro-batches · time of one."""
    found, _ = measured("GPT3-175B-bf16-1024")
    assert sum(entry.seconds for entry in found.account) == pytest.approx(found.step_time_s)
    width, seq, micro, vpp = 12288, 2048, 64, 6  # 2,048 sequences on 32 replicas
    fabric, curves = node_fabric("hgx-h100"), find_curves("h100-sxm")
    one = float(curves.collective_s("p2p", width * seq * 2 / 4, 2, fabric, 1))  # 2 bytes, cut over tp 4
    assert 0 < found.seconds("sends") < 0.5 * (2 * vpp * micro * one)


def test_topology_matters() -> None:
    """astra-sim #207: a ring, a switch and a full mesh took the same cycles."""
    layout = Layout(dp=32, ep=32, zero=1)
    node = replace(DGX, gpus_per_node=32, nics_bytes_per_s=4 * 400e9)
    half = replace(DGX, nics_bytes_per_s=200e9)
    rack, plain, slow = (
        planned("mixtral-8x7b", replace(layout, ep=8), 256, 4096, fabric=fabric).step_time_s
        for fabric in (node, DGX, half)
    )
    assert rack < plain < slow
    four = Layout(dp=8, tp=4, sp=True, zero=1)
    across = replace(DGX, gpus_per_node=2, nics_bytes_per_s=100e9)  # pairs of GPUs: tp 4 leaves the node
    assert (
        planned("llama-3.1-8b", four, 64, 4096).step_time_s
        < planned("llama-3.1-8b", four, 64, 4096, fabric=across).step_time_s
    )
