"""Memory of a model: the papers' forms, public KV-cache reports, optimizer states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.footprint import activations, footprint, kv_cache
from suanli.formulas import memory
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config
from suanli.readers.model import read_model


@given(layers=st.integers(1, 6), heads=st.integers(1, 8), width=st.integers(1, 16), seq=st.integers(1, 64),
       batch=st.integers(1, 4))  # fmt: skip
def test_activations_of_a_gpt_are_the_papers(layers: int, heads: int, width: int, seq: int, batch: int) -> None:
    """What layers keep: 34sbh + 5as²b, 34sbh, 2sbh (arXiv:2205.05198); outside them the same under every policy."""
    hidden = heads * width
    config = {"model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads, "vocab_size": 11,
              "n_positions": seq}  # fmt: skip
    kept = activations(read_hf_config(config, "gpt"), Workload(phase="train", seq=seq, batch=batch))
    outside = kept["full"] - memory.gpt_activation_bytes_full(batch, seq, layers, hidden)
    assert kept["none_unfused"] - outside == memory.gpt_activation_bytes(batch, seq, layers, hidden, heads)
    assert kept["selective"] - outside == memory.gpt_activation_bytes_selective(batch, seq, layers, hidden)
    assert outside == seq * batch * (2 * hidden + 2 * hidden + 4 * 11)  # last norm, head's input, logits in fp32


KV = [  # model, keys, bytes: public reports with right answers
    ("llama-3-8b", 1, 131_072),  # 2·8·128·2 bytes × 32 layers
    ("deepseek-v3", 65_536, 61 * 576 * 2 * 65_536),  # latent: 4.29 GiB
    ("gpt-oss-120b", 1, 73_728),  # 36 layers × 2 × 8 × 64 × 2
    ("gpt-oss-120b", 1000, 18 * 2048 * 1000 + 18 * 2048 * 128),  # half of the layers keep 128
]


@pytest.mark.parametrize(("model", "keys", "size"), KV)
def test_kv_cache(model: str, keys: int, size: int) -> None:
    assert kv_cache(read_model(model), Workload(phase="decode", kv_len=keys)) == size


def test_kv_dtype_halves_it() -> None:
    arch = read_model("llama-3-8b")
    assert kv_cache(arch, Workload(kv_dtype="fp8")) == (kv_cache(arch, Workload()) or 0) // 2


def test_cross_attention_keeps_the_encoder() -> None:
    arch = read_model("whisper-small")  # 12 layers, width 768: 448 tokens and 1,500 frames
    assert kv_cache(arch, Workload(phase="decode", kv_len=448)) == 12 * 2 * 768 * 2 * (448 + 1500)


def test_linear_attention_does_not_grow() -> None:
    arch = read_model("minimax-text-01")
    short, long = (kv_cache(arch, Workload(phase="decode", kv_len=keys)) or 0 for keys in (1000, 2000))
    assert long - short == 10 * 1000 * 2 * 8 * 128 * 2  # only the 10 full layers of 80


def test_encoders_have_none_with_a_reason() -> None:
    found = footprint(read_model("bert-base"), Workload())
    assert found.kv_cache is None
    assert found.reasons["kv_cache"] == "the model does not decode"


OPTIMIZERS = [("adamw", "bf16", 12), ("adamw", "fp32", 8), ("sgd", "bf16", 4), ("sgd-momentum", "fp32", 4),
              ("lion", "bf16", 8), ("adamw-8bit", "bf16", 6), ("none", "bf16", 0)]  # fmt: skip


@pytest.mark.parametrize(("optimizer", "dtype", "each"), OPTIMIZERS)
def test_optimizer_states(optimizer: str, dtype: str, each: int) -> None:
    found = footprint(read_model("gpt2"), Workload(phase="train", optimizer=optimizer, dtype=dtype))
    assert found.optimizer == 124_439_808 * each


def test_outside_training_only_weights_and_cache() -> None:
    found = footprint(read_model("gpt2"), Workload())
    assert found.weights == 2 * 124_439_808
    assert found.gradients is None and found.optimizer is None and found.activations is None
    assert set(found.reasons) == {"gradients", "optimizer", "activations"}


@pytest.mark.parametrize(
    "model", ["gpt2", "llama-3-8b", "mixtral-8x7b", "t5-small", "vit-b16", "resnet-50", "lstm-512"]
)
def test_more_recompute_keeps_less(model: str) -> None:
    kept = activations(read_model(model), Workload(phase="train", seq=512))
    assert kept["full"] <= kept["selective"] <= kept["none"]
    assert kept["selective"] <= kept["none_unfused"]
