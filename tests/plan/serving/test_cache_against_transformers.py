"""Cache bytes against the tensors that transformers' own Cache classes hold after a forward of tiny models."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from suanli.nouns.layers import CausalConv
from suanli.plan.serving.cache import kv_cache
from suanli.readers.configs import read_config

pytestmark = pytest.mark.torch
T, FP32 = 9, 4

BASE: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 64, "num_key_value_heads": 2,
}  # fmt: skip
WIDE = BASE | {"head_dim": 16}
CASES: dict[str, dict[str, Any]] = {
    "llama": BASE,
    "mistral": BASE | {"sliding_window": 5},
    "qwen2": BASE | {"num_key_value_heads": 1},
    "qwen3": WIDE,
    "gemma2": WIDE | {"sliding_window": 6},
    "gemma3_text": WIDE | {"num_hidden_layers": 7, "sliding_window": 6},
    "gpt_oss": WIDE | {"sliding_window": 4, "num_local_experts": 4, "num_experts_per_tok": 2},
    "phi3": BASE | {"pad_token_id": 0},
    "mixtral": BASE | {"num_local_experts": 4},
    "gpt2": {"vocab_size": 64, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64},
    "falcon": {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "deepseek_v3": BASE | {
        "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
        "v_head_dim": 8, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
        "moe_intermediate_size": 16, "n_shared_experts": 1, "first_k_dense_replace": 1,
    },
    "mamba": {"vocab_size": 64, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2},
    "mamba2": {
        "vocab_size": 64, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 8,
        "n_groups": 2,
    },
    "qwen3_next": WIDE | {
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    },
    "bamba": BASE | {
        "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 4, "attn_layer_indices": [1, 3],
    },
}  # fmt: skip


def tensors(value: Any) -> Iterator[Any]:
    """Every tensor of more than one element within a cache's layer."""
    import torch

    if torch.is_tensor(value):
        if value.numel() > 1:
            yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors(each)


def held_bytes(config: Any) -> int:
    """Bytes of the cache of one sequence of T tokens, as the model left it."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = model(torch.zeros(1, T, dtype=torch.long), use_cache=True)
    cache = getattr(out, "past_key_values", None) or out.cache_params
    return sum(each.numel() * each.element_size() for layer in cache.layers for each in tensors(vars(layer)))


@pytest.mark.parametrize("model_type", CASES)
def test_the_cache_is_the_tensors_transformers_keeps(model_type: str) -> None:
    """Two known differences: before the next token its windows are one short (the new key makes them whole), and its
    convolutions keep the newest input too."""
    from transformers import AutoConfig

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = AutoConfig.for_model(model_type, **CASES[model_type])
    arch = read_config(config.to_dict(), model_type, model_type)
    cache = kv_cache(arch, T, dtype="fp32", model_dtype="fp32", engine="ideal")
    shorter = sum(line.bytes_per_token for line in cache.lines if line.window and line.window <= T)
    convs = [(p.times, p.layer) for p in arch.leaves() if isinstance(p.layer, CausalConv)]
    newest = FP32 * sum(times * layer.channels for times, layer in convs)
    assert held_bytes(config) == cache.ideal_bytes - shorter + newest
