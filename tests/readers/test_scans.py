"""State-space, recurrent and hybrid decoders against transformers on the meta device.

Parameters leaf by leaf. FLOPs to the last: what a trace sees is our total under `full`, less the scans' recurrences,
plus what transformers multiplies for a scan without kernels, plus the positions its padded convolutions throw away.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable
from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.errors import ConfigError, InputError
from suanli.nouns.arch import Arch
from suanli.nouns.layers import CausalConv, Linear, Scan
from suanli.nouns.workload import Workload
from suanli.readers.hf import hybrids, lfm, linear_attention, mamba, read_hf_config, zamba, zaya
from suanli.work import FALLBACK, RECURRENCE, Setting, causal_conv, scan_counts

pytestmark = pytest.mark.torch

BATCH, LENGTHS = 2, (16, 80)
FULL = find_convention("full")
FAMILIES = {
    name for module in (mamba, linear_attention, hybrids, zamba, lfm, zaya) for name in module.FAMILIES
} | set(linear_attention.CAUSAL) | {"minimax"}  # fmt: skip

LLAMA = {
    "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 4, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": 0,
}  # fmt: skip
UNTIED, TIED = {"tie_word_embeddings": False}, {"tie_word_embeddings": True}
PURE = {"vocab_size": 96, "hidden_size": 72, "num_hidden_layers": 3, "conv_kernel": 3}
SSD = {
    "mamba_n_heads": 9, "mamba_d_head": 16, "mamba_n_groups": 3, "mamba_d_state": 10, "mamba_d_conv": 3,
    "mamba_chunk_size": 32,
}  # fmt: skip
DELTA = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 6, "linear_key_head_dim": 10, "linear_value_head_dim": 14,
    "linear_conv_kernel_dim": 3,
}  # fmt: skip
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40}
LATENT = {
    "num_key_value_heads": 6, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6,
    "num_experts": 8, "num_experts_per_token": 3, "moe_intermediate_size": 40, "num_shared_experts": 2,
}  # fmt: skip

SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "mamba": ("mamba", PURE | UNTIED | {"state_size": 7, "expand": 3, "use_bias": True, "use_conv_bias": False}),
    "mamba-ranked": ("mamba", PURE | TIED | {"time_step_rank": 11}),
    "falcon_mamba": ("falcon_mamba", PURE | UNTIED | {"state_size": 7}),
    "mamba2": ("mamba2", PURE | UNTIED | {"num_heads": 9, "head_dim": 16, "n_groups": 3, "state_size": 10,
                                          "chunk_size": 32, "use_bias": True}),
    "jamba": ("jamba", LLAMA | UNTIED | {"num_experts": 4, "num_experts_per_tok": 3, "attn_layer_period": 3,
                                         "attn_layer_offset": 1, "mamba_d_state": 7, "mamba_dt_rank": 5,
                                         "mamba_proj_bias": True}),
    "bamba": ("bamba", LLAMA | UNTIED | SSD | {"attn_layer_indices": [1], "attention_bias": True, "mlp_bias": True,
                                               "mamba_proj_bias": True}),
    "falcon_h1": ("falcon_h1", LLAMA | UNTIED | SSD | {"mamba_d_ssm": 144, "head_dim": 10, "mamba_rms_norm": True,
                                                       "projectors_bias": True}),
    "granitemoehybrid": ("granitemoehybrid", LLAMA | UNTIED | SSD | {
        "layer_types": ["mamba", "attention", "mamba", "attention"], "num_local_experts": 4, "num_experts_per_tok": 3,
        "shared_intermediate_size": 56, "attention_bias": True}),
    "granitemoehybrid-dense": ("granitemoehybrid", LLAMA | TIED | SSD | {
        "layer_types": ["mamba", "mamba", "attention", "mamba"], "num_local_experts": 0,
        "shared_intermediate_size": 56}),
    "nemotron_h": ("nemotron_h", {
        "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_attention_heads": 6, "head_dim": 10,
        "num_key_value_heads": 2, "layers_block_type": ["mamba", "moe", "attention", "mlp", "mamba"],
        "mamba_num_heads": 9, "mamba_head_dim": 16, "n_groups": 3, "ssm_state_size": 10, "chunk_size": 32,
        "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40, "moe_latent_size": 48,
        "moe_shared_expert_intermediate_size": 56, "mlp_bias": True, "use_bias": True} | UNTIED),
    "zamba": ("zamba", LLAMA | UNTIED | {
        "num_hidden_layers": 7, "num_key_value_heads": 6, "n_mamba_heads": 3, "mamba_d_state": 7, "mamba_dt_rank": 5,
        "layers_block_type": ["mamba", "hybrid", "mamba", "mamba", "hybrid", "mamba", "hybrid"],
        "attention_head_dim": 24}),
    "zamba2": ("zamba2", LLAMA | TIED | {
        "num_hidden_layers": 7, "num_key_value_heads": 6, "n_mamba_heads": 9, "mamba_d_state": 10, "mamba_ngroups": 3,
        "layers_block_type": ["mamba", "hybrid", "mamba", "mamba", "hybrid", "mamba", "hybrid"], "adapter_rank": 5,
        "chunk_size": 32, "num_mem_blocks": 2, "use_shared_attention_adapter": True}),
    "lfm2": ("lfm2", LLAMA | UNTIED | {
        "layer_types": ["conv", "full_attention", "conv", "conv"], "conv_bias": True, "block_multiple_of": 16}),
    "lfm2-as-given": ("lfm2", LLAMA | TIED | {"full_attn_idxs": [2], "block_auto_adjust_ff_dim": False}),
    "lfm2_moe": ("lfm2_moe", LLAMA | UNTIED | EXPERTS | {
        "layer_types": ["conv", "full_attention", "conv", "conv"], "num_dense_layers": 1}),
    "lfm3": ("lfm3", LLAMA | UNTIED | {"num_hidden_layers": 6, "head_dim": 10, "sliding_window": 5,
                                       "use_sandwich_norm": False}),
    "recurrent_gemma": ("recurrent_gemma", LLAMA | TIED | {"lru_width": 84, "attention_window_size": 5,
                                                           "conv1d_width": 3, "attention_bias": True}),
    "qwen3_next": ("qwen3_next", LLAMA | UNTIED | DELTA | EXPERTS | {
        "head_dim": 10, "shared_expert_intermediate_size": 56, "mlp_only_layers": [2], "attention_bias": True}),
    "qwen3_5_text": ("qwen3_5_text", LLAMA | TIED | DELTA | {"head_dim": 10}),
    "qwen3_5_moe_text": ("qwen3_5_moe_text", LLAMA | UNTIED | DELTA | EXPERTS | {
        "head_dim": 10, "shared_expert_intermediate_size": 56,
        "layer_types": ["full_attention", "linear_attention", "linear_attention", "full_attention"]}),
    "qwen3_5": ("qwen3_5", {"text_config": LLAMA | UNTIED | DELTA | {"head_dim": 10}}),
    "qwen3_5_moe": ("qwen3_5_moe", {"text_config": LLAMA | UNTIED | DELTA | EXPERTS | {
        "head_dim": 10, "shared_expert_intermediate_size": 56}}),
    "olmo_hybrid": ("olmo_hybrid", LLAMA | UNTIED | DELTA | {"attention_bias": True}),
    "kimi_linear": ("kimi_linear", LLAMA | UNTIED | LATENT | {
        "linear_head_dim": 10, "linear_num_heads": 3, "num_hidden_layers": 6}),
    "bailing_hybrid": ("bailing_hybrid", LLAMA | UNTIED | LATENT | {
        "head_dim": 10, "q_lora_rank": 24, "layer_group_size": 3, "first_k_dense_replace": 1,
        "num_expert_group": 1, "topk_group": 1}),
    "minimax": ("minimax", LLAMA | UNTIED | {"head_dim": 12, "num_local_experts": 8, "num_experts_per_tok": 2,
                                             "block_size": 32}),
    "zaya": ("zaya", LLAMA | UNTIED | {
        "head_dim": 10, "moe_intermediate_size": 40, "num_experts": 5, "router_hidden_size": 12, "cca_time0": 4,
        "cca_time1": 3, "sliding_window": 5, "attention_bias": True,
        "layer_types": ["hybrid", "hybrid_sliding", "hybrid", "hybrid_sliding"]}),
    "rwkv": ("rwkv", {"vocab_size": 96, "hidden_size": 72, "num_hidden_layers": 3,
                      "intermediate_size": 104} | UNTIED),
    "xlstm": ("xlstm", {"vocab_size": 96, "hidden_size": 256, "num_hidden_layers": 2, "num_heads": 4,
                        "qk_dim_factor": 0.25, "chunk_size": 32, "use_bias": True} | UNTIED),
}  # fmt: skip

# transformers' own configs; only where layers or a list are needed to build them is something said.
DEFAULTS: dict[str, dict[str, Any]] = {model_type: {} for model_type in sorted(FAMILIES)} | {
    "mamba": {"num_hidden_layers": 3},  # each layer's recurrence is run step by step
    "falcon_mamba": {"num_hidden_layers": 3},
    "lfm2_moe": {"num_hidden_layers": 6, "layer_types": ["conv", "conv", "full_attention"] * 2},
    "jamba": {"num_hidden_layers": 8},
    "zamba": {"num_hidden_layers": 9},
}


def _built(model_type: str, values: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The config as its file would hold it, and the model."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(model_type, **values)
    file = config.to_dict()
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    return file | {"architectures": [type(model).__name__]}, model


def _inputs(model_type: str, seq: int) -> dict[str, Any]:
    """No mask, and a cache; hybrids whose default config has no attention cannot ask their cache for its length."""
    import torch

    ids = {"input_ids": torch.ones(BATCH, seq, dtype=torch.long, device="meta")}
    if model_type in ("bamba", "granitemoehybrid"):
        mask = torch.zeros(BATCH, 1, seq, seq, dtype=torch.bfloat16, device="meta")
        return ids | {"attention_mask": mask, "use_cache": False}
    return ids | {"use_cache": True}


def _padding(arch: Arch) -> int:
    """FLOPs of the positions that a convolution padded on both sides computes and drops."""
    convs = [(placed.times, placed.layer) for placed in arch.leaves() if isinstance(placed.layer, CausalConv)]
    if any(layer.groups for _, layer in convs):
        return _zaya_padding(arch)
    return sum(times * int(causal_conv(layer, BATCH, layer.kernel - 1).value) for times, layer in convs)


def _zaya_padding(arch: Arch) -> int:
    """Two convolutions in a row, padded once for both; and a projection of the nothing before the first token."""
    found = {placed.layer.name.rpartition(".")[2]: (placed.times, placed.layer) for placed in arch.leaves()}
    (_, first), (_, second) = found["conv_qk_depthwise"], found["conv_qk_grouped"]
    (_, delayed), layers = found["v_proj_delayed"], sum(p.times for p in arch.leaves() if p.layer.kind == "attention")
    assert isinstance(first, CausalConv)
    assert isinstance(second, CausalConv)
    assert isinstance(delayed, Linear)
    between = int(causal_conv(first, BATCH, second.kernel - 1).value)
    return layers * (between + 2 * BATCH * delayed.in_features * delayed.out_features)


def _explained(arch: Arch, seq: int) -> int:
    """What a trace of transformers sees, from the ledger and the count of scans without kernels."""
    workload = Workload(seq=seq, batch=BATCH)
    ledger = build_ledger(arch, workload, FULL)
    scans = scan_counts(Setting(arch, workload, FULL))
    assert scans.get(RECURRENCE, 0) == ledger.scan_flops
    return ledger.model_flops - ledger.scan_flops + scans.get(FALLBACK, 0) + _padding(arch)


def _under_its_layer(arch: Arch) -> Any:
    """Names as we have them: an adapter of Zamba 2 under the layer that runs it, not the one that holds the list."""
    hybrid = sorted(
        index
        for module in arch.root.children
        if any("shared_transformer" in child.name for child in getattr(module, "children", ()))
        for index in module.indices  # type: ignore[union-attr]
    )

    def spelled(name: str) -> str:
        found = re.fullmatch(r"model\.layers\.\d+\.(shared_transformer\..*_adapter_list\.(\d+)\..*)", name)
        return f"model.layers.{hybrid[int(found[2])]}.{found[1]}" if found else name

    return spelled


def _check(model_type: str, values: dict[str, Any], module_differences: Any, traced_flops: Any) -> None:
    import torch

    file, model = _built(model_type, values)
    arch = read_hf_config(file, model_type)
    assert module_differences(arch, model, _under_its_layer(arch)) == []
    assert arch.params_total == sum(parameter.numel() for parameter in model.parameters())
    for seq in LENGTHS:
        with torch.no_grad():
            seen = traced_flops(lambda seq=seq: model(**_inputs(model_type, seq)))
        assert _explained(arch, seq) == seen, seq


def test_every_family_has_a_small_case_and_a_default() -> None:
    assert {model_type for model_type, _ in SMALL.values()} == set(DEFAULTS) == FAMILIES


@pytest.mark.parametrize("case", SMALL)
def test_small_and_odd(case: str, module_differences: Any, traced_flops: Any) -> None:
    model_type, values = SMALL[case]
    _check(model_type, values, module_differences, traced_flops)


# Of every kind of recurrence the defaults that run fastest, token by token as they are; all under -m.
QUICK = (
    "jamba", "lfm2_moe", "mamba", "mamba2", "minimax", "nemotron_h", "qwen3_5_text", "recurrent_gemma", "zamba",
)  # fmt: skip


def sampled(names: Iterable[str], chosen: Container[str]) -> list[Any]:
    return [pytest.param(each, marks=() if each in chosen else pytest.mark.full) for each in names]


@pytest.mark.parametrize("model_type", sampled(DEFAULTS, QUICK))
def test_default_config(model_type: str, module_differences: Any, traced_flops: Any) -> None:
    _check(model_type, DEFAULTS[model_type], module_differences, traced_flops)


@pytest.mark.parametrize("case", [case for case in SMALL if case not in ("rwkv", "lfm2", "lfm2_moe", "lfm3")])
def test_file_as_written_by_hand(case: str) -> None:
    """Only the keys a person writes, old words of layer lists among them, read as what transformers saves."""
    model_type, values = SMALL[case]
    file, _ = _built(model_type, values)
    named = {"architectures": file["architectures"]} if model_type in linear_attention.CAUSAL else {}
    written = read_hf_config({"model_type": model_type, **values, **named}, "written")
    assert written.params_total == read_hf_config(file, "saved").params_total


# --- training -----------------------------------------------------------------------------------------------------

STEPWISE = {"rwkv": "changes in place what its backward needs", "xlstm": "so does what is left of the last chunk"}
TRIANGLES_BY_HAND = ("kimi_linear", "bailing_hybrid")  # KDA solves its triangles row by row, without a product


@pytest.fixture(scope="module")
def trained_flops() -> Any:
    """FLOPs of forward and backward; torch's own formula for the backward of a grouped convolution is wrong."""
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    def grouped_mm(a: Any, b: Any, *_: Any, **__: Any) -> int:
        return 2 * a[0] * a[1] * b[-1]

    def convolution_backward(grad: Any, _x: Any, weight: Any, *rest: Any, **__: Any) -> int:
        each = 2 * math.prod(grad) * math.prod(weight[1:])
        return each * sum(rest[7][:2])  # of the input and of the kernel, where asked for

    aten = torch.ops.aten
    mapping = {aten._grouped_mm: grouped_mm, aten.convolution_backward: convolution_backward}

    def trace(step: Any) -> int:
        with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
            step()
        return counter.get_total_flops()

    return trace


def _scan_backward(model_type: str, arch: Arch, seq: int) -> int:
    """Backward of all scans without kernels beyond two products for each of forward: nothing flows into the zeros
    before the first chunk nor out of the state after the last one, and a solved triangle costs a product.
    """
    total = 0
    for placed in arch.leaves():
        layer = placed.layer
        if not isinstance(layer, Scan) or layer.rule not in ("delta", "decay"):
            continue
        product, last = 2 * BATCH * layer.heads * layer.key_dim * layer.value_dim, seq % layer.chunk or layer.chunk
        if layer.rule == "decay":
            more = -product * (min(seq, layer.chunk) + 2 * last)
        else:
            more = -4 * product * layer.chunk
            if model_type not in TRIANGLES_BY_HAND:
                chunks, widths = -(-seq // layer.chunk), layer.key_dim + layer.value_dim
                more += 2 * BATCH * layer.heads * chunks * layer.chunk**2 * widths
        total += placed.times * more
    return total


def _padding_trained(model_type: str, arch: Arch) -> int:
    """Three products for every position dropped; ZAYA's nothing before the first token needs no gradient."""
    found = 3 * _padding(arch)
    if model_type == "zaya":
        delayed = [p for p in arch.leaves() if p.layer.name.endswith("v_proj_delayed")]
        found -= sum(2 * BATCH * p.times * p.layer.weight_params for p in delayed)  # type: ignore[attr-defined]
    return found


TRAINED = [case for case in SMALL if case not in STEPWISE]


@pytest.mark.parametrize("case", sampled(TRAINED, TRAINED[::2]))
def test_training(case: str, trained_flops: Any) -> None:
    """Forward and backward: ours less the scans, and the scans as plain torch differentiates them."""
    model_type, values = SMALL[case]
    file, model = _built(model_type, values)
    arch = read_hf_config(file, case)
    for seq in LENGTHS:
        seen = trained_flops(lambda seq=seq: model.train()(**_inputs(model_type, seq)).logits.sum().backward())
        workload = Workload(seq=seq, batch=BATCH, phase="train")
        ledger = build_ledger(arch, workload, FULL)
        scans = scan_counts(Setting(arch, workload, FULL))
        assert ledger.scan_flops == 3 * scans.get(RECURRENCE, 0)
        ours = ledger.model_flops - ledger.scan_flops + _padding_trained(model_type, arch)
        assert ours + 3 * scans.get(FALLBACK, 0) + _scan_backward(model_type, arch, seq) == seen, seq


# --- decoding -----------------------------------------------------------------------------------------------------

READS_BY_PRODUCT = ("selective", "ssd")  # the delta rule's step is elementwise in plain torch


@pytest.mark.parametrize("case", ["mamba", "falcon_mamba", "mamba2", "jamba", "bamba", "qwen3_next", "lfm2"])
def test_decoding_a_token(case: str, traced_flops: Any) -> None:
    """After a prompt: all but scans as counted, of a scan's step only its reading, and each convolution run over
    two positions to keep one.
    """
    import torch

    model_type, values = SMALL[case]
    file, model = _built(model_type, values)
    arch = read_hf_config(file, case)

    def ids(length: int) -> Any:
        return torch.ones(BATCH, length, dtype=torch.long, device="meta")

    with torch.no_grad():
        prompt = model(ids(9), use_cache=True)
        cache = next(prompt[name] for name in ("cache", "past_key_values", "cache_params") if name in prompt)
        seen = traced_flops(lambda: model(ids(1), cache=cache, use_cache=True))
    ledger = build_ledger(arch, Workload(phase="decode", batch=BATCH, kv_len=10), FULL)
    scans = [(p.times, p.layer) for p in arch.leaves() if isinstance(p.layer, Scan)]
    reading = sum(2 * BATCH * times * scan.state_elements for times, scan in scans if scan.rule in READS_BY_PRODUCT)
    convs = [(p.times, p.layer) for p in arch.leaves() if isinstance(p.layer, CausalConv)]
    dropped = sum(times * int(causal_conv(layer, BATCH, 1).value) for times, layer in convs)
    assert ledger.model_flops - ledger.scan_flops + reading + dropped == seen


# --- as published -------------------------------------------------------------------------------------------------


def test_nemotron_layers_as_letters() -> None:
    """Published configs hold a string: M Mamba 2, E experts, * attention, - an MLP."""
    values = {"model_type": "nemotron_h", **SMALL["nemotron_h"][1]}
    listed = read_hf_config(values, "listed")
    values.pop("layers_block_type")
    assert read_hf_config(values | {"hybrid_override_pattern": "ME*-M"}, "listed") == listed
    with pytest.raises(ConfigError, match="pattern"):
        read_hf_config(values | {"hybrid_override_pattern": "MX"}, "unknown")


def test_kimi_linear_as_published(module_differences: Any) -> None:
    """Heads and layers of KDA in a part of their own, layers counted from 1."""
    values = {key: value for key, value in SMALL["kimi_linear"][1].items() if not key.startswith("linear_")}
    part = {"head_dim": 10, "num_heads": 3, "short_conv_kernel_size": 3, "full_attn_layers": [2, 6],
            "kda_layers": [1, 3, 4, 5]}  # fmt: skip
    values |= {"linear_attn_config": part, "first_k_dense_replace": 2}
    _, model = _built("kimi_linear", values)
    assert module_differences(read_hf_config({"model_type": "kimi_linear", **values}, "published"), model) == []


def test_the_decoder_alone_where_its_class_is_named() -> None:
    values = {"model_type": "qwen3_5", **SMALL["qwen3_5"][1]}
    assert "text decoder only" in read_hf_config(values | {"architectures": ["Qwen3_5ForCausalLM"]}, "text").notes
    with pytest.raises(ConfigError, match="missing part vision_config"):
        read_hf_config(values | {"architectures": ["Qwen3_5ForConditionalGeneration"]}, "both")


def test_closed_forms_refuse_a_model_with_states() -> None:
    """Letters of a transformer would leave the scans out without a word."""
    arch = read_hf_config({"model_type": "bamba", **SMALL["bamba"][1]}, "small")
    with pytest.raises(InputError, match="has none"):
        build_ledger(arch, Workload(seq=8), find_convention("neox"))
