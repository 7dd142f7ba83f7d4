"""A measured run as somebody published it: every figure in the unit of its name, None where none was printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _field(unit: str, doc: str) -> Any:
    """A field that is None unless printed, with its own help."""
    return field(default=None, metadata={"unit": unit, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """One row of published_runs.csv. Percentages are as printed (0..100), tera and billions as named."""

    id: str = field(metadata={"doc": "group and number"})
    group: str = field(metadata={"doc": "the publication or project it comes from"})
    model: str = field(metadata={"doc": "name as printed"})
    task: str = field(metadata={"doc": "pre-training, fine-tuning, time to train …"})
    n_layers: int | None = _field("", "layers")
    hidden: int | None = _field("", "width")
    heads: int | None = _field("", "attention heads")
    kv_heads: int | None = _field("", "key/value heads")
    head_dim: int | None = _field("", "width of a head")
    ffn: int | None = _field("", "inner width of the MLP")
    vocab: int | None = _field("", "vocabulary")
    seq_len: int | None = _field("tokens", "positions of a sequence")
    gated_mlp: bool | None = _field("", "whether the MLP has three matrices")
    moe_experts: int | None = _field("", "routed experts")
    moe_topk: int | None = _field("", "experts a token passes")
    moe_ffn: int | None = _field("", "inner width of an expert")
    moe_shared: int | None = _field("", "shared experts")
    arch_extra: str | None = _field("", "latent attention, windows, dense layers")
    params_total_b: float | None = _field("1e9", "parameters, printed or nominal")
    params_active_b: float | None = _field("1e9", "parameters a token passes")
    gpu: str = field(metadata={"doc": "accelerator"})
    gpu_count: int | None = _field("", "accelerators")
    precision: str | None = _field("", "dtype as printed")
    peak_tflops_bf16: float | None = _field("TFLOP/s", "dense bf16 peak of the accelerator")
    peak_tflops_used: float | None = _field("TFLOP/s", "the peak the source divides by, where it says so")
    gbs_seqs: int | None = _field("sequences", "global batch")
    mbs_seqs: int | None = _field("sequences", "micro batch")
    grad_accum: int | None = _field("", "micro batches a step")
    dp: int | None = _field("", "data parallel")
    tp: int | None = _field("", "tensor parallel")
    pp: int | None = _field("", "pipeline parallel")
    vpp: int | None = _field("", "virtual pipeline stages")
    cp: int | None = _field("", "context parallel")
    ep: int | None = _field("", "expert parallel")
    zero_fsdp: str | None = _field("", "ZeRO stage or FSDP strategy")
    recompute: str | None = _field("", "activation recomputation as printed")
    framework: str | None = _field("", "trainer and version")
    step_time_s: float | None = _field("s", "time of a step")
    samples_per_s: float | None = _field("sequences/s", "of all accelerators")
    tokens_per_s: float | None = _field("tokens/s", "of all accelerators")
    tokens_per_s_per_gpu: float | None = _field("tokens/s", "of one")
    tflops_per_gpu: float | None = _field("TFLOP/s", "printed rate")
    tflops_kind: str | None = _field("", "model or hardware FLOPs")
    mfu_pct: float | None = _field("%", "printed MFU")
    hfu_pct: float | None = _field("%", "printed HFU")
    gpu_hours: float | None = _field("h", "accelerator-hours")
    days: float | None = _field("days", "calendar days, some of them the source's estimate")
    tokens_trained_b: float | None = _field("1e9", "tokens seen")
    date: str | None = _field("", "of the run or its publication")
    source: str = field(metadata={"doc": "where it was published"})
    source_loc: str | None = _field("", "table, line or file")
    commit: str | None = _field("", "version of that source")
    calc_tok_s_gpu: float | None = _field("tokens/s", "rate of one accelerator, worked out apart: a check of ours")
    published_pct_compared: float | None = _field("%", "printed MFU or HFU, or printed TFLOP/s over the peak")
    best_convention: str | None = _field("", "the convention that reproduces it, in words")
    best_delta_pts: float | None = _field("points", "what was left when it was worked out apart")
    check_status: str = field(metadata={"doc": "what that check said"})
    flag: bool = field(metadata={"doc": "contradicts itself, or no common convention comes within a point"})
    flag_reason: str | None = _field("", "why it is flagged")

    @property
    def peak_tflops(self) -> float | None:
        """The peak to divide by: the source's own where it names one."""
        return self.peak_tflops_used or self.peak_tflops_bf16
