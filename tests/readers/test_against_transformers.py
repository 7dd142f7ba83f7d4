"""Every family against transformers on the meta device: parameters module by module, FLOPs against the dispatcher."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from suanli import adapters
from suanli.catalog.presets import presets
from suanli.readers.hf import (
    COMPOSED,
    READERS,
    dense_table,
    hybrids,
    late_gemma,
    lfm,
    linear_attention,
    mamba,
    mixture_table,
    not_causal,
    read_hf_config,
    two_streams,
    unusual,
    zamba,
    zaya,
)
from suanli.readers.preset import read_preset

pytestmark = pytest.mark.torch

SEQ, BATCH = 16, 2
LLAMA = {
    "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": False,
}  # fmt: skip
WIDE = LLAMA | {"head_dim": 10}  # 6 heads of 10 do not make 72
TIED = {"tie_word_embeddings": True}
FOUR = {"num_hidden_layers": 4}
GPT2 = {"vocab_size": 96, "n_embd": 72, "n_layer": 3, "n_head": 6, "n_positions": 64}
BERT = LLAMA | TIED | {"type_vocab_size": 3}
SHORT = {"sliding_window": 5}
DEEP = LLAMA | {
    "num_key_value_heads": 6, "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40,
    "n_shared_experts": 2, "first_k_dense_replace": 1, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 6, "n_group": 2, "topk_group": 1,
}  # fmt: skip
T5 = {
    "vocab_size": 96, "d_model": 72, "d_kv": 10, "d_ff": 104, "num_layers": 3, "num_decoder_layers": 2, "num_heads": 6,
    "relative_attention_num_buckets": 8,
}  # fmt: skip
BART = {
    "vocab_size": 96, "d_model": 72, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 6,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 104, "decoder_ffn_dim": 88,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Case:
    """One small config. `more` is what torch traces beyond what is counted, with the reason."""

    model_type: str
    config: dict[str, Any]
    note: str = ""
    more: int = 0
    why: str = ""
    device: str = "meta"  # cpu, with attention in plain matmuls, where the model looks at values


def case(model_type: str, *parts: dict[str, Any], **other: Any) -> Case:
    merged: dict[str, Any] = {}
    for part in parts:
        merged |= part
    return Case(model_type, merged, **other)


CASES = [
    case("llama", WIDE, {"attention_bias": True, "mlp_bias": True}),
    case("llama", LLAMA, TIED, note="tied"),
    case("mistral", WIDE, SHORT),
    case("ministral", WIDE, SHORT),
    case("qwen2", LLAMA, SHORT, {"use_sliding_window": True, "max_window_layers": 1}),
    case("qwen3", WIDE, {"attention_bias": True}),
    case("gemma", WIDE, TIED),
    case("gemma2", WIDE, TIED, SHORT),
    case("gemma3_text", WIDE, TIED, SHORT, {"num_hidden_layers": 7}),
    case("phi3", LLAMA, SHORT, {"pad_token_id": 0}),
    case("glm", WIDE, {"pad_token_id": 0}),
    case("glm4", WIDE, {"pad_token_id": 0}),
    case("olmo", LLAMA),
    case("olmo2", LLAMA),
    case("smollm3", LLAMA, {"pad_token_id": 0}),
    case("cohere", LLAMA, TIED, {"use_qk_norm": False}),
    case("cohere", LLAMA, TIED, {"use_qk_norm": True}, note="normed"),
    case("cohere2", LLAMA, TIED, SHORT, FOUR),
    case("stablelm", LLAMA, {"use_qkv_bias": True, "partial_rotary_factor": 0.5}),
    case("stablelm", LLAMA, {"use_parallel_residual": True, "qk_layernorm": True, "partial_rotary_factor": 0.5},
     note="parallel"),
    case("nemotron", LLAMA, {"mlp_bias": True}),
    case("gpt2", GPT2, {"n_inner": 104}),
    case("gptj", GPT2, {"rotary_dim": 4, "tie_word_embeddings": False}),
    case("gpt_neox", LLAMA),
    case("opt", LLAMA, TIED, {"ffn_dim": 104, "word_embed_proj_dim": 72}),
    case("opt", LLAMA, TIED, {"ffn_dim": 104, "word_embed_proj_dim": 40, "do_layer_norm_before": False}, note="narrow"),
    case("bloom", {"vocab_size": 96, "hidden_size": 72, "n_layer": 3, "n_head": 6}),
    case("falcon", LLAMA, TIED, {"new_decoder_architecture": True, "num_kv_heads": 2}, note="new"),
    case("falcon", LLAMA, TIED, {"multi_query": True, "bias": True, "parallel_attn": False}, note="old"),
    case("mpt", {"vocab_size": 96, "d_model": 72, "n_layers": 3, "n_heads": 6, "max_seq_len": 64}),
    case("starcoder2", LLAMA, TIED, SHORT),
    case("phi", LLAMA, {"qk_layernorm": True}),
    case("mixtral", LLAMA, {"num_local_experts": 4, "num_experts_per_tok": 2}),
    case(
        "qwen2_moe", LLAMA, SHORT,
        {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40, "decoder_sparse_step": 2,
         "shared_expert_intermediate_size": 56, "use_sliding_window": True, "max_window_layers": 1},
    ),
    case(
        "qwen3_moe", WIDE,
        {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40, "mlp_only_layers": [1]},
    ),
    case("olmoe", LLAMA, {"num_experts": 8, "num_experts_per_tok": 3}),
    case("phimoe", LLAMA, {"num_local_experts": 4, "num_experts_per_tok": 2},
         {"attention_bias": True, "lm_head_bias": True}),
    case("gpt_oss", WIDE, SHORT, FOUR, {"num_local_experts": 8, "num_experts_per_tok": 3}),
    case(
        "llama4_text", LLAMA, FOUR,
        {"head_dim": 12, "num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 120,
         "interleave_moe_layer_step": 2, "attention_chunk_size": 8, "pad_token_id": 0},
        # 2 layers, 32 tokens, the 3 experts of 4 a token is not routed to, 3 matrices of 72×104
        more=2 * 3 * (2 * 32 * 3 * 72 * 104),
        why="transformers multiplies every token with every Llama 4 expert and drops what was not routed",
    ),
    case(
        "glm4_moe", WIDE,
        {"n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40, "n_shared_experts": 1,
         "first_k_dense_replace": 1, "use_qk_norm": True, "attention_bias": True, "n_group": 1, "topk_group": 1},
    ),
    case("minimax_m2", WIDE, {"num_local_experts": 8, "num_experts_per_tok": 3}),
    case(
        "minimax", LLAMA, {"num_local_experts": 8, "num_experts_per_tok": 2, "head_dim": 12},
        more=2 * (2 * BATCH * SEQ * SEQ * 6 * 12),  # 1 lightning layer: q kᵀ and its product with v, 6 heads of 12
        why="lightning attention in blocks multiplies the pairs of a block beside the recurrence",
    ),
    case("deepseek_v2", DEEP),
    case("deepseek_v2", DEEP, {"q_lora_rank": None}, note="plain queries"),
    case("deepseek_v3", DEEP),
    case("kimi_k2", DEEP),
    case(
        "dbrx",
        {"d_model": 72, "n_heads": 6, "n_layers": 3, "max_seq_len": 64, "vocab_size": 96, "tie_word_embeddings": False,
         "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 1e4},
         "ffn_config": {"ffn_hidden_size": 104, "moe_num_experts": 4, "moe_top_k": 2}},
        device="cpu",
    ),
    case("bert", BERT),
    case("roberta", BERT),
    case("electra", BERT, {"embedding_size": 40}),
    case("electra", BERT, {"embedding_size": 72}, note="as wide"),
    case(
        "distilbert", {"vocab_size": 96, "dim": 72, "n_layers": 3, "n_heads": 6, "hidden_dim": 104,
        "max_position_embeddings": 64},
    ),
    case("t5", T5),
    case("t5", T5, {"feed_forward_proj": "gated-gelu"}, note="gated"),
    case("bart", BART, {"max_position_embeddings": 64}, device="cpu"),
    case("whisper", BART, {"num_mel_bins": 8},
         {"max_source_positions": 20, "max_target_positions": 32, "pad_token_id": 0}),
    case(
        "vit", {"hidden_size": 72, "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 104,
        "image_size": [40, 56], "patch_size": 8, "num_labels": 7},
    ),
    case(
        "clip",
        {"projection_dim": 40,
         "text_config": {"vocab_size": 96, "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 2,
                         "num_attention_heads": 4, "max_position_embeddings": 64},
         "vision_config": {"hidden_size": 72, "intermediate_size": 88, "num_hidden_layers": 3,
                           "num_attention_heads": 6, "image_size": 32, "patch_size": 8}},
    ),
    case("resnet", {"depths": [2, 3], "hidden_sizes": [64, 128],
     "embedding_size": 32, "image_size": 56, "num_labels": 7}),
    case(
        "resnet",
        {"depths": [2, 1], "hidden_sizes": [32, 64],
         "embedding_size": 32, "layer_type": "basic", "image_size": [40, 72]},
        note="basic",
    ),
    case(
        "resnet", {"depths": [1, 2], "hidden_sizes": [64, 128], "embedding_size": 16, "downsample_in_bottleneck": True,
                   "downsample_in_first_stage": True, "image_size": 65},
        note="stride in the 1x1",
    ),
]  # fmt: skip
IDS = [f"{each.model_type}-{each.note}".rstrip("-") for each in CASES]

CLASSES = {
    "bert": "BertForMaskedLM", "roberta": "RobertaForMaskedLM", "electra": "ElectraForMaskedLM",
    "distilbert": "DistilBertForMaskedLM", "t5": "T5ForConditionalGeneration", "bart": "BartForConditionalGeneration",
    "whisper": "WhisperForConditionalGeneration", "vit": "ViTForImageClassification", "clip": "CLIPModel",
    "resnet": "ResNetForImageClassification",
}  # fmt: skip
TYPES = {"kimi_k2": "deepseek_v3"}  # published in that class


def build(values: dict[str, Any], device: str = "meta") -> Any:
    """The transformers model of a config."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    values = dict(values)
    model_type = values.pop("model_type")
    config = transformers.AutoConfig.for_model(TYPES.get(model_type, model_type), **values)
    auto = getattr(transformers, CLASSES.get(model_type, "AutoModelForCausalLM"))
    make = auto.from_config if hasattr(auto, "from_config") else auto._from_config
    more = {} if device == "meta" else {"attn_implementation": "eager"}
    with torch.device(device):
        return make(config, dtype=torch.bfloat16, **more).eval()


def inputs(values: dict[str, Any], device: str) -> dict[str, Any]:
    """Arguments of a forward pass that never look at a value: masks of four dimensions, or none and a cache."""
    import torch

    def ids(seq: int = SEQ) -> Any:
        return torch.ones(BATCH, seq, dtype=torch.long, device=device)

    def floats(*shape: int) -> Any:
        return torch.zeros(*shape, dtype=torch.bfloat16, device=device)

    model_type = values["model_type"]
    if model_type in ("vit", "resnet"):
        size = values["image_size"]
        height, width = size if isinstance(size, list) else (size, size)
        return {"pixel_values": floats(BATCH, 3, height, width)}
    if model_type == "clip":
        return {"input_ids": ids(), "pixel_values": floats(BATCH, 3, 32, 32)}
    if model_type == "whisper":
        frames = 2 * values["max_source_positions"]
        return {"input_features": floats(BATCH, values["num_mel_bins"], frames), "decoder_input_ids": ids()}
    if model_type in ("t5", "bart"):
        return {"input_ids": ids(), "decoder_input_ids": ids(), "use_cache": True}
    if model_type in MASKLESS:
        return {"input_ids": ids(), "use_cache": True}
    return {"input_ids": ids(), "attention_mask": floats(BATCH, 1, SEQ, SEQ)}


MASKLESS = {"opt", "bloom"}


REMOTE = {"internlm2", "baichuan"}  # classes that are code of the model's own: transformers has none to compare with


SCANS = {name for module in (hybrids, lfm, linear_attention, mamba, zamba, zaya) for name in module.FAMILIES}
ROWS = {
    *dense_table.TABLE,
    *mixture_table.TABLE,
    *late_gemma.FAMILIES,
    *unusual.FAMILIES,
    *two_streams.FAMILIES,
}


def test_every_family_has_a_case() -> None:
    """Others have theirs in test_scans.py, test_causal_rows.py, multimodal/ and the files of not_causal.py's parts."""
    elsewhere = SCANS | ROWS | set(not_causal.FAMILIES) | set(COMPOSED)
    assert {each.model_type for each in CASES} - elsewhere == set(READERS) - REMOTE - elsewhere


def test_families_with_code_of_their_own_are_llama_shaped() -> None:
    """InternLM2 and Baichuan hold what a Llama of the same numbers holds: fused QKV is as many weights."""
    shape = {
        "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 100,
        "tie_word_embeddings": False,
    }  # fmt: skip
    for kind in sorted(REMOTE):
        ours = read_hf_config({"model_type": kind, **shape}, "own")
        assert ours.params_total == read_hf_config({"model_type": "llama", **shape}, "llama").params_total


@pytest.mark.parametrize("each", CASES, ids=IDS)
def test_parameters_module_by_module(each: Case, module_differences: Any) -> None:
    values = {"model_type": each.model_type, **each.config}
    model = build(values)
    arch = read_hf_config(values, "small")
    assert module_differences(arch, model) == []
    assert arch.params_total == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("each", CASES, ids=IDS)
def test_forward_flops(each: Case, traced_flops: Any, counted: Any) -> None:
    import torch

    values = {"model_type": each.model_type, **each.config}
    model = build(values, each.device).requires_grad_(False)
    with torch.no_grad():
        seen = traced_flops(lambda: model(**inputs(values, each.device)))
    assert counted(read_hf_config(values, "small"), seq=SEQ, batch=BATCH) + each.more == seen, each.why


# Without those whose forward already differs for a reason, and those that look at values.
TRAINED = [each for each in CASES if each.device == "meta" and not each.more]


@pytest.mark.parametrize("each", TRAINED, ids=[f"{each.model_type}-{each.note}".rstrip("-") for each in TRAINED])
def test_training_flops(each: Case, traced_flops: Any, counted: Any) -> None:
    """Forward and backward, as autograd runs it: pixels and waves need no gradient, embeddings' outputs do."""
    import torch

    values = {"model_type": each.model_type, **each.config}
    model = build(values).train()

    def step() -> None:
        out = model(**inputs(values, "meta"))
        logits = out.logits_per_text if hasattr(out, "logits_per_text") else out.logits
        logits.sum().backward()

    with torch.enable_grad():
        seen = traced_flops(step)
    assert counted(read_hf_config(values, "small"), seq=SEQ, batch=BATCH, phase="train") == seen


LORA_RANK = 3
ADAPTED = ("llama", "gptj", "phi", "gpt_neox", "cohere", "falcon", "stablelm", "olmo2")


def with_adapters(model: Any) -> Any:
    """Everything frozen but two small matrices beside every matrix of a layer, on the meta device."""
    from torch import nn

    class Adapted(nn.Module):
        def __init__(self, base: Any) -> None:
            super().__init__()
            self.base, wide = base, {"bias": False, "device": "meta", "dtype": base.weight.dtype}
            self.down = nn.Linear(base.in_features, LORA_RANK, **wide)
            self.up = nn.Linear(LORA_RANK, base.out_features, **wide)

        def forward(self, x: Any) -> Any:
            return self.base(x) + self.up(self.down(x))

    model.requires_grad_(False)
    found = [name for name, module in model.named_modules() if isinstance(module, nn.Linear) and "." in name]
    for name in found:
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, Adapted(model.get_submodule(name)))
    return model


@pytest.mark.parametrize("each", [each for each in CASES if each.model_type in ADAPTED], ids=str)
def test_training_of_adapters(each: Case, traced_flops: Any, counted: Any) -> None:
    """What autograd skips where nothing before is trained, also where MLP and attention stand side by side."""
    import torch

    values = {"model_type": each.model_type, **each.config}
    model = with_adapters(build(values)).train()
    with torch.enable_grad():
        seen = traced_flops(lambda: model(**inputs(values, "meta")).logits.sum().backward())
    tuned = adapters.with_lora(read_hf_config(values, "small"), adapters.Lora(LORA_RANK))
    assert counted(tuned, seq=SEQ, batch=BATCH, phase="train") == seen


# --- presets ------------------------------------------------------------------------------------------------------

HF_PRESETS = sorted(
    name for name, preset in presets().items() if preset.format == "hf" and preset.config["model_type"] not in COMPOSED
)
SAMPLED = set(HF_PRESETS[::9])


def _marked(name: str) -> Any:
    return pytest.param(name, marks=() if name in SAMPLED else pytest.mark.full)


@pytest.mark.parametrize("name", [_marked(name) for name in HF_PRESETS])
def test_preset_has_the_parameters_of_its_class(name: str, module_differences: Any) -> None:
    preset = presets()[name]
    arch = read_preset(preset)
    model = build(dict(preset.config))
    extra = 0
    if preset.config["model_type"] == "t5" and not preset.config.get("tie_word_embeddings", True):
        extra = preset.config["vocab_size"] * preset.config["d_model"]  # transformers 5 ties what the releases store
    total = sum(parameter.numel() for parameter in model.parameters())
    assert (arch.params_total, preset.params) == (total + extra, total + extra)
    if not extra:
        assert module_differences(arch, model) == []
