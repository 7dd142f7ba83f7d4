"""Requests of every verb that can be made again from what a report holds: small ones, two or more a verb."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import suanli
from suanli.nouns.result import Result

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STEP = EXAMPLES / "step.json"

Request = tuple[str, tuple[Any, ...], Mapping[str, Any]]

REQUESTS: dict[str, Request] = {
    "count_train": ("count", ("llama-3.1-8b",), {"seq": "4Ki", "phase": "train", "recompute": "selective"}),
    "count_by_kind": ("count", ("mixtral-8x7b",), {"by": "kind", "convention": "full", "trainable": "lora:r=8"}),
    "count_sweep": ("count", ("gpt2",), {"symbolic": True, "sweep": "seq=128:512:128"}),
    "count_image": ("count", ("resnet-50",), {"image": "288x288", "by": "layer"}),
    "count_config": ("count", ({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 100,
                                "n_positions": 64},), {"seq": 32}),
    "count_expression": ("count", ("linear(4096, 11008)",), {"batch": 2}),
    "count_like": ("count", ("gpt2",), {"like": "megatron", "seq": 256}),
    "compare": ("compare", ("bert-base",), {"tools": "megatron,6nd", "seq": 64}),
    "compare_two": ("compare", ("gpt2",), {"tools": ["palm", "6nd"], "batch": 2}),
    "mfu": ("mfu", ("llama-3-8b",), {"gpu": "h100-sxm", "seq": 8192, "tokens_per_second": 8000, "memory_used": "71GB"}),
    "mfu_above_peak": ("mfu", ("gpt2",), {"gpu": "a100-80gb-sxm", "gpus": 1, "step_time": "1ms", "global_batch": 512}),
    "train": ("train", ("llama-3.1-405b",), {"tokens": "15.6T", "gpu": "h100-sxm", "gpus": 16384, "mfu": "38%..43%",
                                             "failures": "llama-3-405b", "restart": "10min", "checkpoint_save": "60s"}),
    "train_rule": ("train", (), {"params": "175B", "tokens": "300B", "gpus": 1024, "tflops_per_gpu": 140}),
    "train_hours": ("train", ("gpt3-175b",), {"tokens": "300B", "gpu": "a100-80gb-sxm", "gpus": 1024,
                                              "gpu_hours": "0.8M", "carbon": "0.4kg/kWh"}),
    "layout": ("layout", ("llama-3-8b",), {"gpu": "h100-sxm", "gpus": 8, "global_batch": 64, "seq": 2048, "top": 3}),
    "layout_why": ("layout", ("gpt2",), {"gpu": "h100-sxm", "gpus": 8, "global_batch": 64, "pin": {"cp": 1, "pp": 1},
                                         "why": ("1", "2"), "emit": "megatron"}),
    "scale": ("scale", (), {"points": {64: 1.0, 128: 1.9, 256: 3.6}, "metric": "tokens_per_s", "project": "512,1024"}),
    "scale_time": ("scale", (), {"points": "3072:23.66,6144:12.21,8192:9.23", "metric": "time", "global_batch": 6144}),
    "goodput": ("goodput", (), {"gpus": 16384, "failures": "llama-3-405b", "restart": "10min", "days": 46,
                                "checkpoint_save": "60s", "mfu": "41.5%"}),
    "goodput_async": ("goodput", (), {"gpus": 512, "mtbf_node": "6400h", "detect": "2min", "restart": "8min",
                                      "checkpoint_save": "40s", "checkpoint_mode": "async", "checkpoint_stall": "3s",
                                      "spares": 2, "repair": "3d", "stragglers": "1%", "maintenance": "4h/14d"}),
    "infer": ("infer", ("llama-3.1-70b",), {"gpu": "h100-sxm", "gpus": 8, "dtype": "fp8", "rate": 3, "chunk": 1024,
                                            "isl": 4096, "price": 2.5, "sell": 4, "pue": 1.2, "carbon": "0.4kg/kWh",
                                            "stages": "pre=5ms:4,post=2ms:4"}),
    "infer_drafts": ("infer", ("deepseek-v3",), {"gpu": "h200", "gpus": 8, "dtype": "fp8-block", "concurrency": 16,
                                                 "draft_tokens": 1, "acceptance": 0.85, "preset": "sglang"}),
    "infer_search": ("infer", ("llama-3.1-70b",), {"gpu": "h100-sxm,b200", "dtype": "fp8", "rate": 20, "tpot": "30ms",
                                                   "ttft": "1s", "price": 3}),
    "explain": ("explain", (STEP,), {"gpu": "h200-sxm"}),
    "explain_against": ("explain", (str(STEP),), {"gpu": "h200-sxm", "compare": STEP, "steps": "1..2"}),
    "gpus": ("gpus", (), {"filter": "nvidia hopper", "sort": "bf16"}),
    "gpu": ("gpus", ("mi250x",), {}),
    "models": ("models", (), {"filter": "gpt2", "sort": "params"}),
    "model": ("models", ("mixtral-8x7b",), {}),
    "why": ("why", ("flops.forward", "llama-3-8b"), {"seq": 8192}),
    "why_mfu": ("why", ("mfu", "llama-3-8b"), {"gpu": "h100-sxm", "seq": 8192, "tokens_per_second": 8000}),
    "why_formula": ("why", ("gpt_model_flops",), {}),
    "verify": ("verify", ("articles",), {}),
    "verify_more": ("verify", (["scaling", "runs"],), {"every": True}),
    "learn": ("learn", ("backprop",), {"steps": 3, "rate": 0.4}),
    "learn_zh": ("learn", ("roofline",), {"lang": "zh"}),
    "calibrate": ("calibrate", (EXAMPLES / "runs.csv",), {"gpu": "h100-sxm", "name": "mine"}),
    "calibrate_shipped": ("calibrate", (), {"shipped": "llama3"}),
}  # fmt: skip

_MADE: dict[str, Result] = {}


def made(name: str) -> Result:
    """The result of a request, made once a process."""
    if name not in _MADE:
        verb, args, options = REQUESTS[name]
        _MADE[name] = getattr(suanli, verb)(*args, **options)
    return _MADE[name]
