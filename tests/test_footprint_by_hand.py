"""Bytes kept by each kind of layer, by hand: caches, activations under every policy, roundings of narrow dtypes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suanli.footprint import activations, cache_product, footprint, kv_cache, optimizer_states
from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Placed, Stream
from suanli.nouns.convention import Convention
from suanli.nouns.layers import (
    Attention,
    BlockLinear,
    Buffer,
    CausalConv,
    Conv,
    Elementwise,
    Embedding,
    Experts,
    KeptState,
    Layer,
    Linear,
    LinearAttention,
    Norm,
    Opaque,
    Parameter,
    Recurrent,
    Similarity,
)
from suanli.nouns.workload import OPTIMIZER_MOMENTS, Workload
from suanli.work import Setting

FRAMES = "frames"
STREAMS = (Stream(name=TOKENS, decodes=True), Stream(name=FRAMES, length=7))
MASK = Convention(name="-", doc="", source="")
T = 10  # two sequences of five


def arch(*children: Module | Layer, streams: tuple[Stream, ...] = STREAMS) -> Arch:
    return Arch(name="net", root=Module(name="", children=children), streams=streams)


def workload(**more: object) -> Workload:
    return Workload(**{"seq": 5, "batch": 2, "phase": "train", **more})  # type: ignore[arg-type]


ATTENTION = Attention(name="x", heads=4, kv_heads=2, qk_dim=3, v_dim=6)

# layer: elements of bf16 that one copy keeps for ten positions; further bytes
KEPT: list[tuple[Layer, int, int]] = [
    (Linear(name="x", in_features=3, out_features=8), T * 3, 0),  # its input
    (Linear(name="x", in_features=3, out_features=8, shares_input=True), 0, 0),  # kept by q already
    (Linear(name="x", in_features=3, out_features=8, role="lm_head"), T * 3, T * 8 * 4),  # logits in fp32 for the loss
    (Linear(name="x", in_features=3, out_features=8, role="router"), T * 3, 0),
    (Norm(name="x", dim=3), T * 3, 0),
    (Norm(name="x", dim=3, per=4), T * 12, 0),
    (Elementwise(name="x", op="gelu", width=7, saved=21), T * 21, 0),
    (Elementwise(name="x", op="dropout", width=7, mask_bytes=7), 0, T * 7),  # a byte of mask an element
    (Experts(name="x", num=8, top_k=2, hidden=3, ffn=4), T * 2 * (3 + 4), 0),  # each expert's two inputs
    (
        Conv(name="x", in_channels=4, out_channels=6, kernel=(3, 3), in_size=(8, 8), out_size=(6, 6)),
        T * 4 * 64,
        0,
    ),
    (LinearAttention(name="x", heads=2, key_dim=3, value_dim=5), T * 2 * (3 + 3 + 5), 0),
    (CausalConv(name="x", channels=6, kernel=4), T * 6, 0),
    (BlockLinear(name="x", in_features=6, out_features=8, blocks=2), T * 6, 0),
    (KeptState(name="x", elements=6), 0, 0),
    # input 3; four gates and the state of 4
    (Recurrent(name="x", cell="lstm", input_size=3, hidden_size=4), T * (3 + 5 * 4), 0),
    (
        Recurrent(name="x", cell="gru", input_size=3, hidden_size=4, num_layers=2, bidirectional=True),
        T * (3 + 8 + 2 * 2 * (3 + 1) * 4),
        0,
    ),
    (Embedding(name="x", num=9, dim=3), 0, 0),  # an index is not an activation
    (Parameter(name="x", shape=(3,)), 0, 0),
    (Buffer(name="x", shape=(3,)), 0, 0),
    (Opaque(name="x", total=9, active=9), 0, 0),
    (Similarity(name="x", dim=3), 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "elements", "more"), KEPT, ids=[f"{n}-{row[0].kind}" for n, row in enumerate(KEPT)])
def test_what_a_layer_keeps(layer: Layer, elements: int, more: int) -> None:
    outside = activations(arch(layer), workload())
    assert set(outside.values()) == {2 * elements + more}  # no policy changes what lies outside the blocks
    stack = Module(name="s", children=(layer,), block=True, indices=range(3))
    inside = activations(arch(stack), workload())
    assert inside["none_unfused"] == inside["none"] == inside["selective"] == 3 * (2 * elements + more)
    assert inside["full"] == 3 * 2 * elements  # the input alone; masks and logits are made again


# attention of 4 query heads and 2 key heads; q 4·3, k 2·3, v 2·6 of a position
Q, KV = 12, 18
ATTENTIONS = [
    # layer, keys of a sequence: kept without scores; scores and their dropout; log-sum-exp
    (ATTENTION, 5, 2 * (T * Q + 2 * 5 * KV), T * 5 * 4 * 2, T * 4 * 4),
    (replace(ATTENTION, dropout=True), 5, 2 * (T * Q + 2 * 5 * KV), T * 5 * 4 * (2 + 1 + 2), T * 4 * 4),
    (replace(ATTENTION, key_stream=FRAMES), 7, 2 * (T * Q + 2 * 7 * KV), T * 7 * 4 * 2, T * 4 * 4),
]


@pytest.mark.parametrize(("layer", "keys", "kept", "scores", "statistics"), ATTENTIONS)
def test_what_attention_keeps(layer: Attention, keys: int, kept: int, scores: int, statistics: int) -> None:
    found = activations(arch(Module(name="s", children=(layer,), block=True, indices=range(3))), workload())
    assert found == {
        "none_unfused": 3 * (kept + scores),
        "none": 3 * (kept + statistics),
        "selective": 3 * kept,
        "full": 0,  # a block whose first leaf keeps nothing of its input here
    }


# dtype, bytes of an element kept: narrow ones are kept in whole bytes
@pytest.mark.parametrize(
    ("dtype", "size"), [("fp64", 8), ("fp32", 4), ("bf16", 2), ("fp8", 1), ("fp6", 1), ("int4", 1)]
)
def test_whole_bytes_of_activations(dtype: str, size: int) -> None:
    layer = Linear(name="x", in_features=3, out_features=8, role="lm_head")
    assert activations(arch(layer), workload(dtype=dtype))["none"] == T * (3 * size + 8 * 4)


def test_full_recompute_keeps_each_blocks_first_input() -> None:
    """Two blocks of three copies: the norm's input of 6; then a matrix's of 3, behind an embedding that keeps none."""
    first = Module(
        name="a", block=True, indices=range(3),
        children=(Norm(name="n", dim=6), Linear(name="l", in_features=6, out_features=3)),
    )  # fmt: skip
    second = Module(
        name="b", block=True, indices=range(2),
        children=(
            Embedding(name="bias", num=9, dim=2, role="bias"),
            Linear(name="l", in_features=3, out_features=6),
            Linear(name="m", in_features=6, out_features=6),
        ),
    )  # fmt: skip
    found = activations(arch(first, second, Norm(name="n", dim=6)), workload())
    assert found["full"] == 2 * T * (3 * 6 + 2 * 3 + 6)
    assert found["none"] == 2 * T * (3 * (6 + 6) + 2 * (3 + 6) + 6)


def test_positions_of_other_streams() -> None:
    """Two samples of seven frames, two of one vector."""
    layer = Linear(name="x", in_features=3, out_features=8)
    for stream, positions in ((FRAMES, 14), (SAMPLE, 2)):
        module = Module(name="m", stream=stream, children=(layer,), block=True)
        assert activations(arch(module), workload())["none"] == 2 * positions * 3
        assert activations(arch(module), workload())["full"] == 2 * positions * 3


# --- caches -------------------------------------------------------------------------------------------------------

# layer: bytes of bf16 for two sequences of nine keys
CACHES: list[tuple[Layer, int]] = [
    (ATTENTION, 2 * 9 * KV * 2),
    (replace(ATTENTION, window=4), 2 * 4 * KV * 2),
    (replace(ATTENTION, window=40), 2 * 9 * KV * 2),
    (replace(ATTENTION, chunk=3), 2 * 3 * KV * 2),
    (replace(ATTENTION, latent_dim=7), 2 * 9 * 7 * 2),
    (replace(ATTENTION, key_stream=FRAMES, mask="full"), 2 * 7 * KV * 2),  # the frames, kept once
    (LinearAttention(name="x", heads=2, key_dim=3, value_dim=5), 4 * 2 * 2 * 3 * 5),  # a state in fp32
    (Linear(name="x", in_features=3, out_features=8), 0),
    (Norm(name="x", dim=3), 0),
]


@pytest.mark.parametrize(("layer", "size"), CACHES, ids=[f"{n}-{row[0].kind}" for n, row in enumerate(CACHES)])
def test_cache(layer: Layer, size: int) -> None:
    assert kv_cache(arch(layer), workload(phase="decode", kv_len=9)) == size
    stack = Module(name="s", children=(layer,), indices=range(3))
    assert kv_cache(arch(stack), workload(phase="decode", kv_len=9)) == 3 * size
    if not isinstance(layer, LinearAttention):
        fp8 = workload(phase="decode", kv_len=9, kv_dtype="fp8", dtype="fp32")
        assert kv_cache(arch(layer), fp8) == size // 2


def test_the_cache_of_a_forward_is_that_of_its_sequence() -> None:
    assert kv_cache(arch(ATTENTION), workload(phase="forward")) == 2 * 5 * KV * 2


def test_bits_are_rounded_up_a_layer() -> None:
    """One sequence of one key, 18 numbers of 6 bits: 13.5 bytes."""
    assert kv_cache(arch(ATTENTION), workload(phase="decode", kv_len=1, batch=1, kv_dtype="fp6")) == 14


def test_an_encoders_attention_keeps_nothing_between_tokens() -> None:
    module = Module(name="m", stream=FRAMES, children=(ATTENTION,))
    assert kv_cache(arch(module), workload(phase="decode", kv_len=9)) == 0
    assert kv_cache(arch(ATTENTION, streams=(Stream(name=TOKENS),)), workload()) is None


def test_the_products_name_their_formulas() -> None:
    at = Setting(arch(), workload(phase="decode", kv_len=9), MASK)
    found = cache_product(Placed("x", ATTENTION, 1, TOKENS), at)
    assert found is not None
    assert (found.formula, found.inputs) == ("kv_cache_bytes", {"batch": 2, "keys": 9, "width": KV, "bits": 16})
    state = cache_product(Placed("x", LinearAttention(name="x", heads=2, key_dim=3, value_dim=5), 1, TOKENS), at)
    assert state is not None and state.formula == "state_bytes"
    assert cache_product(Placed("x", Norm(name="x", dim=3), 1, TOKENS), at) is None


# --- the whole footprint ------------------------------------------------------------------------------------------

FROZEN = arch(
    Linear(name="a", in_features=3, out_features=5, trainable=False), Linear(name="b", in_features=5, out_features=3)
)


def test_frozen_weights_have_neither_gradient_nor_states() -> None:
    found = footprint(FROZEN, workload(recompute="selective"))
    assert (found.weights, found.gradients, found.optimizer) == (30 * 2, 15 * 2, 15 * 12)
    assert found.activations == found.activations_by_recompute["selective"] == 2 * T * (3 + 5)  # type: ignore[index]
    assert found.kv_cache == 0
    assert found.reasons == {}


def test_reasons_outside_training() -> None:
    found = footprint(arch(ATTENTION, streams=(Stream(name=TOKENS),)), workload(phase="forward"))
    assert (found.gradients, found.optimizer, found.activations, found.activations_by_recompute) == (None,) * 4
    held = "held only in training (--phase train)"
    assert found.reasons == {
        "gradients": held, "optimizer": held, "activations": held, "kv_cache": "the model does not decode",
    }  # fmt: skip


def test_narrow_weights_are_rounded_up_once() -> None:
    assert footprint(FROZEN, workload(dtype="fp6")).weights == 23  # 180 bits: 22.5 bytes
    assert footprint(FROZEN, workload(dtype="fp6")).gradients == 12  # 90 bits


@pytest.mark.parametrize("optimizer", OPTIMIZER_MOMENTS)
@pytest.mark.parametrize(("dtype", "narrow"), [("fp64", 0), ("fp32", 0), ("tf32", 0), ("bf16", 4), ("fp8", 4)])
def test_a_master_copy_where_weights_are_narrower_than_fp32(optimizer: str, dtype: str, narrow: int) -> None:
    master = 0 if optimizer == "none" else narrow
    expected = 1000 * (OPTIMIZER_MOMENTS[optimizer] + master)
    assert optimizer_states(1000, workload(optimizer=optimizer, dtype=dtype)) == expected
