"""Rules of `count` one by one, on nets to add up by hand: passes, recompute, bytes, the uncounted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_nets import ATTENTION, CAUSAL, UNIT, T, arch, frozen, ledger, square, workload

from suanli.catalog.conventions import find_convention
from suanli.count import (
    backward_multiple,
    placed_layers,
    recomputed,
    uncounted,
)
from suanli.nouns.arch import TOKENS, Module, Placed, Stream
from suanli.nouns.convention import Convention
from suanli.nouns.layers import (
    Buffer,
    Elementwise,
    Embedding,
    Layer,
    Linear,
    LinearAttention,
    Norm,
    Opaque,
    Parameter,
    Similarity,
)
from suanli.nouns.ledger import BACKWARD, FORWARD, RECOMPUTE_PASS
from suanli.work import Setting

MEGATRON, HARDWARE = (find_convention(name) for name in ("megatron", "hardware"))


def backward_units(*children: Module | Layer) -> dict[str, int]:
    """Backward FLOPs of each leaf, in squares of eight."""
    rows = ledger(arch(*children)).rows
    found = {row.path: 0 for row in rows}
    for row in rows:
        if row.pass_ == BACKWARD:
            assert row.model_flops % UNIT == 0
            found[row.path] = row.model_flops // UNIT
    return found


# --- what backward multiplies -------------------------------------------------------------------------------------

LINEAR_ATTENTION = LinearAttention(name="x", heads=2, key_dim=3, value_dim=5)

# layer, whether its input needs a gradient: products backward, counted exactly
MULTIPLES: list[tuple[Layer, bool, int]] = [
    (square("x"), True, 2),  # dL/dx and dL/dW
    (square("x"), False, 1),  # dL/dW
    (frozen("x"), True, 1),  # dL/dx
    (frozen("x"), False, 0),
    (ATTENTION, True, 2),  # dQ, dK of the scores; dP, dV of the context: twice forward
    (ATTENTION, False, 0),
    (LINEAR_ATTENTION, True, 2),
    (LINEAR_ATTENTION, False, 0),
    (Similarity(name="x", dim=3), True, 2),
    (Similarity(name="x", dim=3), False, 0),
    (Opaque(name="x", total=9, active=9), False, 2),  # all that is inside is trained
    (Embedding(name="x", num=9, dim=3), False, 0),  # a table's gradient is scattered, not multiplied
    (Embedding(name="x", num=9, dim=3), True, 1),
]


@pytest.mark.parametrize(("layer", "input_needed", "products"), MULTIPLES)
def test_backward_multiple(layer: Layer, input_needed: bool, products: int) -> None:
    assert backward_multiple(layer, input_needed, CAUSAL) == products
    assert backward_multiple(layer, input_needed, MEGATRON) == 2  # trainers take 2 for everything


def test_the_first_layer_makes_no_input_gradient() -> None:
    assert backward_units(square("a"), square("b")) == {"a": 1, "b": 2}


def test_behind_an_embedding_all_inputs_need_one() -> None:
    assert backward_units(Embedding(name="e", num=9, dim=8), square("a")) == {"e": 0, "a": 2}


def test_behind_a_frozen_embedding_none_does() -> None:
    assert backward_units(Embedding(name="e", num=9, dim=8, trainable=False), square("a"))["a"] == 1


def test_layers_that_share_an_input_share_its_need() -> None:
    """q, k, v read what the frozen embedding gave; the output reads what they made."""
    found = backward_units(
        square("q"), square("k", shares_input=True), square("v", shares_input=True), square("o"),
        square("gate"), square("up", shares_input=True),
    )  # fmt: skip
    assert found == {"q": 1, "k": 1, "v": 1, "o": 2, "gate": 2, "up": 2}


def test_a_trained_bias_or_norm_makes_gradients_flow() -> None:
    norm = Norm(name="n", dim=8)
    assert backward_units(frozen("a"), norm, frozen("b")) == {"a": 0, "n": 0, "b": 1}
    assert backward_units(frozen("a"), replace(norm, trainable=False), frozen("b"))["b"] == 0


def test_one_trained_number_is_enough() -> None:
    """A scale of one element: what lies behind it hands its gradient on."""
    assert backward_units(frozen("a"), Parameter(name="scale", shape=()), frozen("b"))["b"] == 1


def test_nothing_lies_before_the_first_layer() -> None:
    assert backward_units(square("a", shares_input=True)) == {"a": 1}


def test_what_holds_nothing_makes_no_gradient_flow() -> None:
    """A norm without parameters, an activation and a buffer are trainable in name only."""
    for nothing in (
        Norm(name="n", dim=8, weight=False),
        Elementwise(name="n", op="gelu", width=8),
        Buffer(name="n", shape=(3,)),
    ):
        assert backward_units(frozen("a"), nothing, frozen("b"))["b"] == 0


def test_a_tied_weight_is_trained_where_it_is_used() -> None:
    """The head's weight is the table's: what comes behind it needs its gradient, though it holds no parameter."""
    assert backward_units(square("head", tied=True), frozen("b")) == {"head": 1, "b": 1}
    assert backward_units(frozen("head", tied=True), frozen("b")) == {"head": 0, "b": 0}


def test_an_up_projection_of_lora_always_hands_its_gradient_down() -> None:
    """A frozen square, its down (role matmul) and up (role lora): the up's input is the down's output, trained."""
    down, up = square("down", shares_input=True), square("up", role="lora")
    assert backward_units(frozen("w"), down, up) == {"w": 0, "down": 1, "up": 2}


def test_of_a_frozen_stack_only_the_first_copy_stands_before_all_that_is_trained() -> None:
    stack = Module(name="layers", children=(frozen("w"), square("t")), indices=range(3))
    # w of copy 0: nothing; of copies 1, 2: the input's gradient. t: weights thrice, inputs in copies 1 and 2
    found = backward_units(stack)
    assert found == {"layers.0.w": 0, "layers.0.t": 1, "layers.1-2.w": 2, "layers.1-2.t": 4}


def test_stacks_within_stacks_are_split_too() -> None:
    inner = Module(name="inner", children=(frozen("w"), square("t")), indices=range(2))
    outer = Module(name="outer", children=(inner,), indices=range(3))
    paths = [(placed.path, placed.times) for placed in placed_layers(arch(outer))]
    assert paths[::2] == [
        ("outer.0.inner.0.w", 1),
        ("outer.0.inner.1.w", 1),
        ("outer.1-2.inner.0.w", 2),
        ("outer.1-2.inner.1.w", 2),
    ]


def test_a_stack_that_is_trained_whole_stays_whole() -> None:
    stack = Module(name="layers", children=(square("t"),), indices=range(3))
    assert [(placed.path, placed.times) for placed in placed_layers(arch(stack))] == [("layers.0-2.t", 3)]


# --- recompute ----------------------------------------------------------------------------------------------------

INSIDE = Placed("b.x", square("x"), 1, TOKENS, "b")
OUTSIDE = Placed("x", square("x"), 1, TOKENS)
INSIDE_ATTENTION, OUTSIDE_ATTENTION = replace(INSIDE, layer=ATTENTION), replace(OUTSIDE, layer=ATTENTION)

# leaf: again under none, selective, full
AGAIN = [
    (INSIDE, False, False, True),
    (OUTSIDE, False, False, False),
    (INSIDE_ATTENTION, False, True, True),
    (OUTSIDE_ATTENTION, False, True, False),
    (replace(INSIDE, layer=LINEAR_ATTENTION), False, False, True),  # no scores are kept, none made again
]


@pytest.mark.parametrize(("placed", "none", "selective", "full"), AGAIN)
def test_what_is_done_again(placed: Placed, none: bool, selective: bool, full: bool) -> None:
    def at(policy: str, convention: Convention = CAUSAL) -> Setting:
        return Setting(arch(), workload(recompute=policy), convention)

    policies = ("none", "selective", "full")
    assert [recomputed(placed, at(policy)) for policy in policies] == [none, selective, full]
    assert [recomputed(placed, at(policy, HARDWARE)) for policy in policies] == [full] * 3  # its own policy
    palm = find_convention("palm")  # 8N charges all parameters, blocks or not
    assert [recomputed(placed, at(policy, palm)) for policy in policies] == [False, selective, True]


def test_recompute_is_executed_and_not_needed() -> None:
    block = Module(name="b", children=(square("a"),), block=True, indices=range(2))
    books = ledger(arch(block, square("head")), recompute="full")
    again = [row for row in books.rows if row.pass_ == RECOMPUTE_PASS]
    assert [(row.path, row.model_flops, row.hardware_flops, row.params) for row in again] == [
        ("b.0-1.a", 0, 2 * UNIT, 0)
    ]
    figure = ledger(arch(block, square("head")), HARDWARE)
    # forward 3; backward 2 of each copy but the head alike (one product less at the very first input is not split off)
    assert figure.model_flops == figure.hardware_flops
    assert figure.flops(RECOMPUTE_PASS) == 2 * UNIT


def test_no_pass_but_forward_outside_training() -> None:
    for phase in ("forward", "prefill", "decode"):
        books = ledger(arch(square("a")), HARDWARE, phase, recompute="full")
        assert {row.pass_ for row in books.rows} == {FORWARD}


# --- bytes --------------------------------------------------------------------------------------------------------

WIDE = Linear(name="x", in_features=3, out_features=5, bias=True)

# dtype: bytes read and written forward by a [3, 5] matrix on ten positions: (30 + 15) and 50 elements
BYTES = [
    ("fp64", 45 * 8, 50 * 8),
    ("fp32", 45 * 4, 50 * 4),
    ("bf16", 45 * 2, 50 * 2),
    ("fp8", 45, 50),
    ("fp6", 34, 38),  # 270 bits, 300 bits: 33.75 and 37.5 bytes
    ("int4", 23, 25),  # 180 bits: 22.5 bytes
]


@pytest.mark.parametrize(("dtype", "read", "written"), BYTES)
def test_bytes_forward(dtype: str, read: int, written: int) -> None:
    (row,) = ledger(arch(WIDE), phase="forward", dtype=dtype).rows
    assert (row.read_bytes, row.write_bytes) == (read, written)


def test_bytes_are_rounded_up_once_for_all_copies() -> None:
    """Three copies: 540 bits are 67.5 bytes, not 3·23."""
    stack = Module(name="s", children=(WIDE,), indices=range(3))
    (row,) = ledger(arch(stack), phase="forward", dtype="int4").rows
    assert (row.read_bytes, row.write_bytes, row.params, row.times) == (68, 75, 3 * 20, 3)


def test_bytes_of_backward_and_recompute() -> None:
    """Two products, each of the output's gradient with inputs and weights: 2·(50 + 45) read; written 2·30 and the
    weights' gradient 15."""
    block = Module(name="b", children=(WIDE,), block=True)
    rows = ledger(arch(Embedding(name="e", num=9, dim=3), block), recompute="full").rows
    found = {row.pass_: (row.read_bytes, row.write_bytes) for row in rows if row.path == "b.x"}
    assert found == {
        FORWARD: (2 * 45, 2 * 50),
        BACKWARD: (2 * 2 * (50 + 45), 2 * (2 * 30 + 15)),
        RECOMPUTE_PASS: (2 * 45, 2 * 50),
    }


def test_a_norm_has_a_backward_without_products_and_a_parameter_none() -> None:
    rows = ledger(arch(square("a"), Norm(name="n", dim=8), Parameter(name="p", shape=(4,)))).rows
    backward = {row.path: row.model_flops for row in rows if row.pass_ == BACKWARD}
    assert backward == {"a": UNIT, "n": 0}


# --- the uncounted ------------------------------------------------------------------------------------------------

SMALL = arch(
    Embedding(name="embed", num=100, dim=3),
    Embedding(name="place", num=5, dim=3, role="position"),
    Module(
        name="layers",
        indices=range(3),
        block=True,
        children=(
            Norm(name="norm", dim=3),
            replace(ATTENTION, window=2),
            Linear(name="up", in_features=3, out_features=7, bias=True),
            Elementwise(name="act", op="gelu", width=7),
            Linear(name="down", in_features=7, out_features=3),
        ),
    ),
    Norm(name="heads_norm", dim=2, per=4),
    streams=(Stream(name=TOKENS, decodes=True),),
)

UNCOUNTED = [
    ("forward", None, {
        "norms": 3 * T * 3 + T * 2 * 4,
        "activations and pooling": 3 * T * 7,
        "softmax": 3 * 2 * 4 * (1 + 2 + 2 + 2 + 2),  # layers, sequences, heads, pairs of the window
        "embedding lookups": 2 * T * 3,
        "bias additions": 3 * T * 7,
    }),
    ("decode", 9, {
        "norms": 3 * 2 * 3 + 2 * 8,
        "activations and pooling": 3 * 2 * 7,
        "softmax": 3 * 2 * 4 * 2,
        "embedding lookups": 2 * 2 * 3,
        "bias additions": 3 * 2 * 7,
    }),
]  # fmt: skip


@pytest.mark.parametrize(("phase", "kv_len", "sizes"), UNCOUNTED)
def test_sizes_of_the_uncounted(phase: str, kv_len: int | None, sizes: dict[str, int]) -> None:
    found = uncounted(Setting(SMALL, workload(phase, kv_len=kv_len), CAUSAL))
    assert {item.what: item.operations for item in found} == sizes
    everything = uncounted(Setting(SMALL, workload(phase, kv_len=kv_len), find_convention("full")))
    assert everything == found  # the model's own mask, whatever a convention charges


def test_biases_of_a_head_are_added_to_the_logits_that_are_made() -> None:
    """Two sequences prefilled: two rows of five logits, not ten."""
    head = Linear(name="lm_head", in_features=3, out_features=5, bias=True, role="lm_head")
    (found,) = uncounted(Setting(arch(head), workload("prefill"), CAUSAL))
    assert found.operations == 2 * 5


def test_the_uncounted_say_why() -> None:
    found = uncounted(Setting(SMALL, workload("forward"), CAUSAL))
    assert [item.why for item in found] == [
        "elements normalised; no matmul",
        "elements passed through; no matmul",
        "scores exponentiated and summed; no matmul",
        "elements copied; a gather, not a product",
        "one add an element; no matmul",
    ]


def test_what_is_not_there_is_not_listed() -> None:
    assert uncounted(Setting(arch(square("a")), workload(), CAUSAL)) == ()
