"""Closed forms of the papers against their golden values and against the ledger."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.formulas import gpt
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config

L, H, S, V = 96, 12288, 2048, 51200

# Values of 2104.04473 and 2205.05198 for GPT-3 175B, computed apart: name, arguments, value
GOLDEN = [
    ("gpt_params", (L, H, V, S), 174_615_822_336),
    ("gpt_forward_flops", (1, S, L, H, V), 734_851_724_476_416),
    ("gpt_attention_layer_flops", (1, S, H), 2_680_059_592_704),
    ("gpt_mlp_layer_flops", (1, S, H), 4_947_802_324_992),
    ("gpt_logits_flops", (1, S, H, V), 2_576_980_377_600),
    ("gpt_model_flops", (1, S, L, H, V), 2_204_555_173_429_248),
    ("gpt_hardware_flops_full", (1, S, L, H, V), 2_936_829_917_528_064),
    ("gpt_hardware_flops_selective_published", (1, S, L, H, V), 2_263_929_000_000_000),
    ("palm_flops_per_token", (175 * 10**9, L, 96, 128, S), 1_078_991_029_248),
]


@pytest.mark.parametrize(("name", "arguments", "value"), GOLDEN, ids=[row[0] for row in GOLDEN])
def test_golden(name: str, arguments: tuple[int, ...], value: int) -> None:
    got = getattr(gpt, name)(*arguments)
    assert got == value or (abs(got - value) < 0.5e9 * 1000 and str(value).endswith("000000000"))


@pytest.mark.parametrize(
    ("batch", "printed"), [(768, 1.693098e18), (1536, 3.386197e18), (6144, 1.354479e19)]
)  # fmt: skip
def test_iterations_of_several_batches(batch: int, printed: float) -> None:
    assert gpt.gpt_model_flops(batch, S, L, H, V) == pytest.approx(printed, rel=5e-7)


def test_ratios_of_hardware_to_model() -> None:
    model = gpt.gpt_model_flops(1536, S, L, H, V)
    assert gpt.gpt_hardware_flops_full(1536, S, L, H, V) / model == pytest.approx(1.33216, abs=5e-6)
    assert gpt.gpt_hardware_flops_selective_published(1536, S, L, H, V) / model == pytest.approx(1.02693, abs=5e-6)
    assert gpt.gpt_hardware_flops_selective(1536, S, L, H, V) / model == pytest.approx(1.00898, abs=5e-6)


@given(
    layers=st.integers(1, 8), heads=st.integers(1, 8), width=st.integers(1, 16), seq=st.integers(1, 64),
    vocab=st.integers(1, 500), batch=st.integers(1, 4),
)  # fmt: skip
def test_closed_forms_equal_the_ledger_of_any_gpt(
    layers: int, heads: int, width: int, seq: int, vocab: int, batch: int
) -> None:
    """The paper's sums and the ledger's rows are two ways to one number."""
    hidden = heads * width
    config = {
        "model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads, "vocab_size": vocab,
        "n_positions": seq,
    }  # fmt: skip
    arch = read_hf_config(config, "gpt")
    shape = (batch, seq, layers, hidden, vocab)
    for recompute, closed in (
        ("none", gpt.gpt_model_flops),
        ("full", gpt.gpt_hardware_flops_full),
        ("selective", gpt.gpt_hardware_flops_selective),
    ):
        work = Workload(phase="train", batch=batch, seq=seq, recompute=recompute)
        assert build_ledger(arch, work, find_convention("megatron-full")).hardware_flops == closed(*shape)
    assert arch.params_total == gpt.gpt_params(layers, hidden, vocab, seq) + 2 * hidden  # the last norm
