"""Low-rank adapters: what is trained, and what backward then needs."""

from __future__ import annotations

import pytest

import suanli
from suanli.adapters import Lora, parse_trainable, with_lora
from suanli.errors import InputError
from suanli.readers.model import read_model


def test_parse() -> None:
    assert parse_trainable("all") is None
    assert parse_trainable("lora:r=8,targets=q_proj+v_proj") == Lora(8, ("q_proj", "v_proj"))
    assert parse_trainable("lora:r=8") == Lora(8, ("all",))
    assert parse_trainable("lora") == Lora(16, ("all",))


@pytest.mark.parametrize(
    "text", ["", "none", "lora:r=0", "lora:r=x", "lora:rank=8", "qlora:r=8", "lora:r=-1", "lora:r=" + "9" * 30]
)
def test_unreadable(text: str) -> None:
    with pytest.raises(InputError, match="what is trainable cannot be read in --trainable; got"):
        parse_trainable(text)


def test_unknown_target_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no linear layer is called 'q_porj'.*nearest: q_proj"):
        with_lora(read_model("llama-3-8b"), Lora(8, ("q_porj",)))


def test_parameters() -> None:
    """q: 4096→r→4096, v: 4096→r→1024, 32 layers, r = 8."""
    found = suanli.count("llama-3-8b", trainable="lora:r=8,targets=q_proj+v_proj")
    added = 32 * 8 * (4096 + 4096 + 4096 + 1024)
    assert found.params.trainable == added
    assert found.params.total == 8_030_261_248 + added


def test_frozen_weights_cost_no_gradient_of_their_own() -> None:
    """r = 16 on every linear layer of Llama-3-8B at 8,192: 36.71 GFLOP/token if every input needed a gradient;
    the first layer's q, k and v (and their A matrices) need none, 50.7 MFLOP a token less."""
    found = suanli.count("llama-3-8b", seq=8192, phase="train", trainable="lora:r=16")
    first = 2 * 4096 * (4096 + 1024 + 1024) + 3 * 2 * 4096 * 16
    assert (found.flops_per_token + first) / 1e9 == pytest.approx(36.71, abs=0.005)
    full = suanli.count("llama-3-8b", seq=8192, phase="train")
    assert found.flops_per_token / full.flops_per_token == pytest.approx(0.713, abs=0.002)


def test_optimizer_holds_only_what_is_trained() -> None:
    found = suanli.count("llama-3-8b", phase="train", trainable="lora:r=8")
    assert found.bytes.optimizer == found.params.trainable * 12
    assert found.bytes.gradients == found.params.trainable * 2


def test_routed_experts_stay_frozen_and_that_is_said():
    """Eight ranks beside q, k, v and o of 32 layers: 8·(2·(4096 + 4096) + 2·(4096 + 1024)) each."""
    found = suanli.count("mixtral-8x7b", trainable="lora:r=8")
    assert found.params.trainable == 32 * 8 * (2 * (4096 + 4096) + 2 * (4096 + 1024))
    assert "LoRA of rank 8 on all; all else frozen, routed experts among it" in found.notes
