"""Bytes kept for backward by trace, against the memory model of the formulas. Where they differ, the term is named."""

from __future__ import annotations

from typing import Any

import pytest

from suanli import count
from suanli.readers.torch_module import trace

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

F = nn.functional
pytestmark = pytest.mark.torch
S, B, H, HEADS = 12, 2, 32, 4


def kept(module: Any, *inputs: Any) -> dict[str, int]:
    return dict(trace(module, inputs, train=True, whole=True).kept_bytes)


def test_a_product_keeps_its_input_and_no_weight() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 4))
    assert kept(model, torch.zeros(3, 8)) == {"0": 3 * 8 * 4, "1": 3 * 16 * 4}


def test_a_tensor_kept_twice_is_counted_once() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            return self.a(x) + self.b(x)

    assert sum(kept(Two(), torch.zeros(3, 8)).values()) == 3 * 8 * 4


class Block(nn.Module):
    """A GPT layer of arXiv:2205.05198 without dropout, its attention fused."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(H), nn.LayerNorm(H)
        self.qkv, self.o = nn.Linear(H, 3 * H), nn.Linear(H, H)
        self.up, self.down = nn.Linear(H, 4 * H), nn.Linear(4 * H, H)

    def forward(self, x: Any) -> Any:
        q, k, v = (t.view(B, S, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.o(out)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def test_a_gpt_layer_by_hand() -> None:
    """In 16 bit, of b·s·h elements: norms 2, qkv 1, q k v 3, output 1 (kept once by attention and by `o`), up 1,
    gelu 4, down 4: 32 bytes; and in fp32 the softmax statistics, mean and deviation of both norms.
    """
    traced = trace(Block().bfloat16(), (torch.zeros(B, S, H, dtype=torch.bfloat16, requires_grad=True),), train=True)
    tokens = B * S
    statistics = 4 * tokens * HEADS
    norms = 2 * 2 * 4 * tokens
    assert traced.activation_bytes == 32 * tokens * H + statistics + norms


SMALL = {
    "vocab_size": 64, "hidden_size": H, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS, "max_position_embeddings": 64, "tie_word_embeddings": False,
}  # fmt: skip


def layer_kept(config: dict[str, Any]) -> tuple[int, int]:
    """Bytes one layer keeps: by trace and by formula, from the difference of two depths (no embedding, no head)."""
    pytest.importorskip("transformers")
    found = []
    for trace_it in (True, False):
        each = []
        for layers in (5, 4):
            model = {**config, next(key for key in config if key.startswith(("num_hidden", "n_layer"))): layers}
            result = count(model, seq=S, batch=B, phase="train", trace=trace_it)
            each.append(result.bytes.activations)
        found.append(each[0] - each[1])
    return found[0], found[1]


def test_a_llama_layer_against_the_memory_model() -> None:
    """Equal but for the two RMS norms, which transformers runs in small steps: its input in fp32, the 16-bit product
    and the root in fp32 are kept, where a fused norm keeps its 16-bit input.
    """
    by_trace, by_formula = layer_kept({"model_type": "llama", **SMALL})
    in_steps, fused = 4 * H + 2 * H + 4, 2 * H
    assert by_trace - by_formula == B * S * 2 * (in_steps - fused)


def test_a_gpt2_layer_against_the_memory_model() -> None:
    """Equal but for: mean and deviation of two norms in fp32; masks of two dropouts that on meta are 16-bit numbers
    and not bytes; and GELU in small steps, which keeps four tensors of 4h where a fused one keeps its input.
    """
    config = {"model_type": "gpt2", "vocab_size": 64, "n_embd": H, "n_layer": 4, "n_head": HEADS, "n_positions": 64}
    by_trace, by_formula = layer_kept(config | {"bos_token_id": 0, "eos_token_id": 0})
    norms, masks, gelu = 2 * 2 * 4, 2 * (2 * H - H), (4 - 1) * 2 * 4 * H
    assert by_trace - by_formula == B * S * (norms + masks + gelu)
