"""Attention kernels: forward two products, backward five, masks, grouped queries, and what no shape tells."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.explain.ops.attention import FUSED, LENGTHS, NO_MASK_FLAG, WINDOWED
from suanli.explain.ops.call import NO_SHAPES, Call, Cost
from suanli.explain.ops.table import cost_of
from suanli.nouns.trace import OpDetail

B, H, T, S, D = 2, 8, 64, 64, 16
HEADS_FIRST, TIME_FIRST = (B, H, T, D), (B, T, H, D)
FORWARD = 4 * B * H * T * S * D  # two products of 2·T·S·D
TRIANGLE = T * (T + 1) // 2


def cost(name: str, causal: str | None, *, shapes: tuple[Any, ...] | None = None, **more: Any) -> Cost:
    """A call with is_causal (or the kind of mask) at its place and every other value left out."""
    places = FUSED[name]
    shape = TIME_FIRST if places.time_first else HEADS_FIRST
    given = shapes or (shape,) * 3
    front = ((),) * places.query
    concrete = None
    if causal is not None:
        concrete = ("",) * places.causal + (causal,)
    detail = OpDetail(dims=(*front, *given), types=("c10::Half",) * 9, concrete=concrete)
    found = cost_of(Call(name, detail, **more))
    assert found is not None
    return found


@pytest.mark.parametrize("name", FUSED)
def test_every_pair_without_a_mask(name: str) -> None:
    found = cost(name, "0" if FUSED[name].kinds else "False")
    products = 5 if FUSED[name].backward else 2
    assert found.flops == products * 2 * B * H * T * S * D
    assert found.formula == ("attention_backward_flops" if FUSED[name].backward else "attention_flops")
    assert found.operands == ("c10::Half", "c10::Half")


@pytest.mark.parametrize("name", FUSED)
def test_a_causal_mask_leaves_the_triangle_with_its_diagonal(name: str) -> None:
    masked = cost(name, "1" if FUSED[name].kinds else "True")
    whole = cost(name, "1" if FUSED[name].kinds else "True", full_pairs=True)
    products = 5 if FUSED[name].backward else 2
    assert masked.flops == products * 2 * B * H * TRIANGLE * D
    assert whole.flops == products * 2 * B * H * T * T * D


@pytest.mark.parametrize("name", FUSED)
def test_without_the_flag_nothing_is_claimed_unless_every_pair_is_charged(name: str) -> None:
    assert cost(name, None).reason == NO_MASK_FLAG
    assert cost(name, None, full_pairs=True).flops


def test_two_queries_on_five_keys_stand_at_the_end_for_flash_and_at_the_start_for_torch() -> None:
    flash = cost("flash_attn::_flash_attn_forward", "True", shapes=((1, 2, 1, 4), (1, 5, 1, 4), (1, 5, 1, 4)))
    torch = cost("aten::scaled_dot_product_attention", "True", shapes=((1, 1, 2, 4), (1, 1, 5, 4), (1, 1, 5, 4)))
    assert flash.flops == 4 * 4 * (4 + 5)
    assert torch.flops == 4 * 4 * (1 + 2)
    last = cost("aten::_efficient_attention_forward", "2", shapes=((1, 2, 1, 4), (1, 5, 1, 4), (1, 5, 1, 4)))
    assert last.flops == flash.flops


def test_grouped_queries_multiply_with_every_query_head() -> None:
    shapes = ((B, 8, T, D), (B, 2, S, D), (B, 2, S, D))
    assert cost("aten::scaled_dot_product_attention", "False", shapes=shapes).flops == FORWARD


def test_values_may_be_wider_than_keys() -> None:
    shapes = ((1, 4, 10, 24), (1, 4, 10, 24), (1, 4, 10, 16))
    forward = cost("aten::scaled_dot_product_attention", "False", shapes=shapes).flops
    assert forward == 2 * 4 * 100 * (24 + 16)
    back = cost("aten::_scaled_dot_product_flash_attention_backward", "False", shapes=shapes).flops
    assert back == 2 * 4 * 100 * (3 * 24 + 2 * 16)  # scores again, dQ, dK; dP, dV


def test_offsets_mean_packed_sequences() -> None:
    dims = (TIME_FIRST, TIME_FIRST, TIME_FIRST, (9,), (9,))
    found = cost_of(Call("aten::_flash_attention_forward", OpDetail(dims=dims, concrete=("",) * 8 + ("False",))))
    assert found is not None
    assert found.reason == LENGTHS


@pytest.mark.parametrize("sides", [("128", "0"), ("128", "-1"), ("-1", "0")])
def test_a_window_skips_pairs_that_are_not_counted(sides: tuple[str, str]) -> None:
    concrete = ("",) * 5 + ("True", *sides)
    call = Call("flash_attn::_flash_attn_forward", OpDetail(dims=(TIME_FIRST,) * 3, concrete=concrete))
    found = cost_of(call)
    assert found is not None
    assert found.reason == WINDOWED


@pytest.mark.parametrize("name", ["vllm::unified_attention", "aiter::mha_batch_prefill", "FlashAttnVarlenFunc"])
def test_lengths_of_packed_sequences_stand_in_no_trace(name: str) -> None:
    found = cost_of(Call(name, OpDetail(dims=((100, 8, 64),) * 3)))
    assert found is not None
    assert (
        found.reason
        == "attention over packed or paged sequences: their lengths are tensors, which a trace does not hold"
    )


def test_without_shapes() -> None:
    found = cost_of(Call("aten::scaled_dot_product_attention", OpDetail(dims=((), (), ()))))
    assert found is not None
    assert found.reason == NO_SHAPES
