"""From a GGUF's metadata to the architecture they describe, taken only where its parameters agree with the tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suanli.errors import ConfigError
from suanli.nouns.tensors import TensorTable
from suanli.readers.hf import read_hf_config

# Keys of a Hugging Face config by what GGUF calls the same, below `ARCHITECTURE.` (gguf-py, constants.py, class Keys).
_KEYS = {
    "num_hidden_layers": "block_count",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "max_position_embeddings": "context_length",
    "sliding_window": "attention.sliding_window",
}
_EXPERTS = {"expert_used_count": "num_experts_per_tok", "expert_feed_forward_length": "moe_intermediate_size"}
_GPT2 = {
    "num_hidden_layers": "n_layer", "hidden_size": "n_embd", "num_attention_heads": "n_head",
    "intermediate_size": "n_inner", "max_position_embeddings": "n_positions",
}  # fmt: skip

# Architectures of GGUF and the model_type whose tree they have; the second where there are experts.
_TYPES = {
    "llama": ("llama", "mixtral"), "qwen2": ("qwen2", None), "qwen3": ("qwen3", None), "gemma": ("gemma", None),
    "gemma2": ("gemma2", None), "gemma3": ("gemma3_text", None), "phi3": ("phi3", None), "gpt2": ("gpt2", None),
    "starcoder2": ("starcoder2", None), "stablelm": ("stablelm", None), "olmo2": ("olmo2", None),
    "granite": ("granite", None), "smollm3": ("smollm3", None), "qwen3moe": (None, "qwen3_moe"),
    "qwen2moe": (None, "qwen2_moe"), "gpt-oss": (None, "gpt_oss"), "glm4": ("glm4", None), "exaone": ("exaone", None),
}  # fmt: skip

# Stored beside the weights, and no parameters of the model.
_TABLES = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


def with_arch(table: TensorTable) -> TensorTable:
    """The table with its architecture, or with the reason why there is none."""
    kind = str(table.metadata.get("general.architecture", ""))
    config = hf_config(table, kind)
    if config is None:
        return replace(table, arch_missing=f"no family is known for the architecture {kind[:40] or '(unnamed)'}")
    try:
        arch = read_hf_config(config, table.name, f"{table.name}: metadata")
    except ConfigError as problem:
        return replace(table, arch_missing=f"the metadata do not describe a model: {problem.faults[0].sentence()}")
    held = sum(tensor.elements for tensor in table.tensors if tensor.name not in _TABLES)
    if arch.params_total != held:
        reason = f"the {kind} of the metadata has {arch.params_total:,} parameters, the file {held:,}"
        return replace(table, arch_missing=reason)
    return replace(table, arch=arch)


def hf_config(table: TensorTable, kind: str) -> dict[str, Any] | None:
    """The config.json that says what the metadata say; None for an architecture not known here."""
    experts = _of(table.metadata, kind, "expert_count")
    model_type = _TYPES.get(kind, (None, None))[1 if experts else 0]
    if model_type is None:
        return None
    config = {key: _of(table.metadata, kind, name) for key, name in _KEYS.items()}
    names = {tensor.name: tensor for tensor in table.tensors}
    config["model_type"] = model_type
    config["tie_word_embeddings"] = "output.weight" not in names
    biased = "blk.0.attn_q.bias" in names
    config["attention_bias"] = biased if model_type not in ("qwen2", "gpt2") else None
    if "token_embd.weight" in names:
        config["vocab_size"] = names["token_embd.weight"].shape[-1]
    if experts:
        config |= {"num_local_experts": experts, "num_experts": experts}
        config |= {name: _of(table.metadata, kind, key) for key, name in _EXPERTS.items()}
        if model_type in ("qwen3_moe", "mixtral"):
            config.pop("num_local_experts" if model_type == "qwen3_moe" else "num_experts")
    if kind == "gpt2":
        config |= {new: config.pop(old) for old, new in _GPT2.items()}
    return {key: value for key, value in config.items() if value is not None}


def _of(metadata: Mapping[str, Any], kind: str, name: str) -> Any:
    """A metadata value; of a list with one entry a layer the value they share, else the list."""
    value = metadata.get(f"{kind}.{name}")
    if isinstance(value, list) and value and all(item == value[0] for item in value):
        return value[0]
    return value
