"""Mistakes that other tools made, each with its right answer: every row of the reference's cases is answered here."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.catalog.devices import find_device
from suanli.errors import UnknownNameError
from suanli.formulas.running import utilisation
from suanli.formulas.serving import equivalent_tokens, max_sequences
from suanli.nouns.serving import KvCache, ServingLayout
from suanli.plan.serving import (
    DoesNotFitError,
    Load,
    activation_bytes,
    check_fits,
    energy_read,
    kv_cache,
    token_energy,
    weight_bytes,
)
from suanli.plan.serving.budget import concurrency
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.replicas import build_replica
from suanli.plan.serving.times import Replica
from suanli.readers.preset import read_named_preset
from suanli.units import GIBI, GIGA, MILLI, TERA

pytestmark = pytest.mark.shared

H100_BYTES_PER_S = 3.35e12
Row = dict[str, str]


def cache(name: str, tokens: int, **options: Any) -> KvCache:
    return kv_cache(read_named_preset(name), tokens, **options)


def replica(name: str) -> Replica:
    """An ideal engine on one H100."""
    return build_replica(read_named_preset(name), find_device("h100-sxm"), ServingLayout(), Precision.of())


def peak(device: str) -> float:
    return find_device(device).peak_flop_per_s("bf16")


# --- peaks and utilisation ----------------------------------------------------------------------------------------


def nanogpt(row: Row) -> None:
    """104 % of 312 is 32.8 % of 989.4."""
    found = utilisation(1.04 * 312e12, peak("NVIDIA H100 80GB HBM3"))
    assert f"{found:.1%}" == row["right_value"] == "32.8%"


def olmo_b300(row: Row) -> None:
    found = suanli.mfu("llama-3-8b", gpu="NVIDIA B300 SXM6 AC", seq=8192, tflops_per_gpu="329.8").mfu
    assert f"{found:.2%}" == row["right_value"] == "14.66%"


def olmo_h200(row: Row) -> None:
    found = [peak("NVIDIA H200"), peak("NVIDIA H200 NVL")]
    assert " / ".join(f"{each / TERA:.1f}e12" for each in found) == row["right_value"]


def megatron(row: Row) -> None:
    found = suanli.mfu("llama-3-8b", gpu="NVIDIA H200", seq=8192, tflops_per_gpu="420").mfu
    assert f"{found:.2%}" == row["right_value"] == "42.45%"


def l40s(row: Row) -> None:
    assert peak("NVIDIA L40S") == float(row["right_value"]) == 362.05e12


def mi250x(row: Row) -> None:
    """One of the two devices torch sees in a package."""
    assert peak("AMD Instinct MI250X") == float(row["right_value"]) == 191.5e12


def a4000(row: Row) -> None:
    """Unknown, and no A40."""
    assert "unknown" in row["right_value"]
    with pytest.raises(UnknownNameError, match="unknown device 'NVIDIA RTX A4000'"):
        find_device("NVIDIA RTX A4000")


def b300_column(row: Row) -> None:
    """What the device column says is another GPU than the folder's name, with another peak."""
    assert "device column" in row["right_value"]
    assert find_device("NVIDIA GB300").short_id == "gb300" != find_device("b300").short_id
    assert (peak("NVIDIA GB300"), peak("b300")) == (2.5e15, 2.25e15)


# --- caches -------------------------------------------------------------------------------------------------------


def llama_estimate(row: Row) -> None:
    assert f"{cache('llama-3-8b', 1).bytes_per_token:.0f} B/token" == row["right_value"]


def hybrid_gpt_oss(row: Row) -> None:
    found = cache("gpt-oss-120b", 1).first_token_bytes
    tokens = 5.38 * GIBI / found
    assert f"{found:.0f} B/token; 5.38 GiB = ~{tokens / 1000:.1f}k tokens" == row["right_value"]


def gguf_latent(row: Row) -> None:
    latent, whole = (
        cache("deepseek-v3", 65_536, dtype="f16", expanded=each).ideal_bytes / GIBI for each in (False, True)
    )
    assert f"MLA cache {latent:.2f} GiB (f16); expanded K/V {whole:.0f} GiB" == row["right_value"]


def hybrid_pool(row: Row) -> None:
    """1,487 blocks of 784 positions; 45 a sequence; the log rounds to 33.04."""
    logged = round(concurrency(cache("qwen3.5-27b", 32_768), 1487), 2)
    assert f"{equivalent_tokens(logged, 32_768):,.0f} token-equivalents" == row["right_value"]


def sliding_concurrency(row: Row) -> None:
    found = concurrency(cache("starcoder2-3b", 16_384), 2_198_512 // 16)
    assert f"{found:.2f}x" == row["right_value"] == "178.68x"


def latent_elements(row: Row) -> None:
    found = cache("deepseek-v3", 1, dtype="int8").bytes_per_token
    assert f"{found:.0f} el/token (61 x 576)" == row["right_value"]
    for layout in (ServingLayout(tp=8), ServingLayout(tp=8, ep=8)):
        check_fits(read_named_preset("deepseek-v3"), find_device("h200-sxm"), scheme="fp8-block", layout=layout)


def flash_reads(row: Row) -> None:
    """128 · 1,280 · 131,072 B: 21.5 GB, 6.41 ms at 3.35 TB/s, a quarter of what 32 heads would be."""
    read = replica("llama-3.1-8b").decode_parts(128.0, 1280.0).cache
    assert f"{read / MILLI:.2f}" == "6.41"
    found = 128 * cache("llama-3.1-8b", 1280).ideal_bytes
    assert f"{found / GIGA:.1f} GB" in row["right_value"] and found / GIGA == pytest.approx(21.5, abs=0.05)
    assert f"{found / H100_BYTES_PER_S / MILLI:.2f}" == "6.41"
    assert f"{4 * found / GIGA:.1f} GB" in row["wrong_value"]


def cache_is_read_once(row: Row) -> None:
    """7.69 ms of cache and 4.48 ms of weights (the table is looked up, not read)."""
    found = 128 * cache("llama-3.1-8b", 1536).ideal_bytes / H100_BYTES_PER_S
    weights = weight_bytes(read_named_preset("llama-3.1-8b")).read / H100_BYTES_PER_S
    assert (f"{found / MILLI:.2f}", f"{weights / MILLI:.2f}") == ("7.69", "4.48")
    step = replica("llama-3.1-8b").decode_parts(128.0, 1536.0)
    assert f"{step.cache / MILLI:.2f}" == "7.69"
    one = replica("llama-3.1-8b").decode_parts(1.0, 1536.0).weights
    assert f"{one / MILLI:.2f}" == "4.48"
    assert f"{step.weights / MILLI:.2f}" == "5.13"  # 128 rows: reading and arithmetic at 0.6 of the peak, joined
    assert "12.4 ms (4.5 weights + 7.7 KV" in row["right_value"]
    assert f"{(found + weights) / MILLI:.1f}" == "12.2"  # the rest of the 12.4 is computing


# --- memory -------------------------------------------------------------------------------------------------------


def compute_buffer(row: Row) -> None:
    assert "add compute buffer" in row["right_value"]
    assert activation_bytes(read_named_preset("deepseek-v2-lite"), "llama.cpp", keys=32_768) > GIGA


def batch_beyond_capacity(row: Row) -> None:
    assert row["right_value"] == "max_batch = floor(KV tokens / ceil_to_block(isl+osl))"
    assert max_sequences(100_000, 1000 + 500, 32) == 100_000 // 1504
    found = suanli.infer("llama-3.1-8b", gpu="h100-sxm", isl=1000, osl=500, preset="tensorrt-llm", concurrency=10_000)
    assert found.max_concurrency == found.memory.cache_tokens // 1504
    assert found.load.concurrency == found.max_concurrency  # the others wait, and nothing overflows
    assert found.load.waiting == 10_000 - found.max_concurrency and found.ttft_s > 10 * found.load.prefill_s


def refused(row: Row) -> None:
    assert row["right_value"] == "does not fit: 811 GB weights"
    with pytest.raises(DoesNotFitError, match=r"got 811\.7 GB"):
        check_fits(read_named_preset("llama-3.1-405b"), find_device("h100-sxm"))
    with pytest.raises(DoesNotFitError, match=r"811\.7 GB on the fullest GPU of 80\.0 GB: 731\.7 GB more than it has"):
        suanli.infer("llama-3.1-405b", gpu="h100-sxm")


def adapters(row: Row) -> None:
    """CodeLlama-7B, batch 1, 2,048 long: about 16 GB with LoRA; less quantised, and more when all is trained."""
    assert row["right_value"].startswith("about 16 GB")

    def held(**options: Any) -> tuple[float, float]:
        found = suanli.count("codellama-7b", phase="train", seq=2048, batch=1, recompute="full", **options).bytes
        return found.weights, found.gradients + found.optimizer + found.activations

    lora, full = held(trainable="lora:r=16"), held()
    quantised = weight_bytes(read_named_preset("codellama-7b"), "nf4").total + lora[1]
    assert quantised < sum(lora) < sum(full)
    assert 14 * GIGA < sum(lora) < 17 * GIGA


def no_reading(row: Row) -> None:
    assert row["why"] == "no reading != 0"
    found = token_energy(Load(concurrency=8, output_tokens_per_s=100.0), None)
    assert found.kwh_per_day is None and "no reading" in found.reasons["kwh_per_day"]
    assert energy_read([(0, 100.0), (60, 100.0)]) == 6000 and energy_read([(0, None), (60, None)]) is None


def measured_point(row: Row) -> None:
    """A measured latency of a load that prompts decide: 9,000 tokens in, 30 out. It is met as others are: nothing is
    tuned to it. Ours over measured at 64 and 32 users is 1.31 and 0.87 (the report's tool: 0.81)."""
    assert "308.8 ms measured (b=32: 236.8)" in row["right_value"]
    asked = {"gpu": "h200", "isl": 9000, "osl": 30, "dtype": "bf16", "preset": "vllm"}
    tokens = [suanli.infer("qwen3-8b", **asked, concurrency=users).tpot_s for users in (64, 32)]
    ratios = [token / MILLI / measured for token, measured in zip(tokens, (308.8, 236.8), strict=True)]
    assert tokens[0] > tokens[1]
    assert ratios == pytest.approx(AIC1148, rel=0.05)
    found = cache("qwen3-8b", 9030)
    assert 64 * found.paged_bytes + weight_bytes(read_named_preset("qwen3-8b")).total < 0.9 * 141 * GIBI


AIC1148 = [1.31, 0.87]  # predicted over measured at 64 and 32 users

ANSWERS: dict[str, Callable[[Row], None]] = {
    "nanoGPT": nanogpt, "OLMo817": olmo_b300, "OLMo810": olmo_h200, "Megatron1565": megatron, "tt-L40S": l40s,
    "verl-A4000": a4000, "nano-MI250X": mi250x, "vllm29736": llama_estimate, "hfmem60": hybrid_gpt_oss,
    "ggufp8": gguf_latent, "ollama17201": compute_buffer, "vllm40691": hybrid_pool, "vllm19029": sliding_concurrency,
    "aic652": batch_beyond_capacity, "aic509": refused, "aic1148": measured_point, "gpupoor1": adapters,
    "codecarbon1316": no_reading, "lv-fa": flash_reads, "lla-kv2": cache_is_read_once, "genz-ds": latent_elements,
    "aic-b300": b300_column,
}  # fmt: skip


def rows(shared: Path) -> dict[str, Row]:
    with (shared / "cases" / "hardware_and_inference.csv").open(encoding="utf-8") as stream:
        return {row["id"]: row for row in csv.DictReader(stream)}


def test_every_case_has_an_answer(shared: Path) -> None:
    assert set(rows(shared)) == set(ANSWERS)


@pytest.mark.parametrize("case", ANSWERS)
def test_a_case(shared: Path, case: str) -> None:
    ANSWERS[case](rows(shared)[case])
