"""Rules of `count` one by one, on nets to add up by hand: passes, bytes, groups, closed forms, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suanli.catalog.conventions import find_convention
from suanli.count import (
    GROUPINGS,
    backward_multiple,
    build_ledger,
    check_phase,
    closed_form_values,
    count,
    grouped_rows,
    placed_layers,
    recomputed,
    uncounted,
)
from suanli.errors import InputError, UnknownNameError
from suanli.nouns.arch import TOKENS, Arch, Module, Placed, Shape, Stream
from suanli.nouns.convention import Convention
from suanli.nouns.layers import (
    Attention,
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
from suanli.nouns.ledger import BACKWARD, FORWARD, RECOMPUTE_PASS, Ledger, Op
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config
from suanli.readers.paper import read_estimate, read_paper_decoder
from suanli.work import Setting

CAUSAL, MEGATRON, HARDWARE = (find_convention(name) for name in ("causal", "megatron", "hardware"))
T = 10  # two sequences of five
UNIT = 2 * T * 8 * 8  # FLOPs of a square of eight


def square(name: str, **more: object) -> Linear:
    return Linear(name=name, in_features=8, out_features=8, **more)  # type: ignore[arg-type]


def frozen(name: str, **more: object) -> Linear:
    return square(name, trainable=False, **more)


def arch(*children: Module | Layer, **more: object) -> Arch:
    return Arch(name="net", root=Module(name="", children=children), **more)  # type: ignore[arg-type]


def workload(phase: str = "train", **more: object) -> Workload:
    return Workload(**{"seq": 5, "batch": 2, "phase": phase, **more})  # type: ignore[arg-type]


def ledger(net: Arch, convention: Convention = CAUSAL, phase: str = "train", **more: object) -> Ledger:
    return build_ledger(net, workload(phase, **more), convention)


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

ATTENTION = Attention(name="x", heads=4, kv_heads=2, qk_dim=3, v_dim=6)
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


# --- groups -------------------------------------------------------------------------------------------------------

# path: its name by module, by layer
NAMES = [
    ("model.layers.0-31.mlp.up_proj", "model.layers.0-31.mlp", "model.layers.0-31"),
    ("model.layers.0-40:2.self_attn.q", "model.layers.0-40:2.self_attn", "model.layers.0-40:2"),
    ("stages.0.layers.1-2.conv", "stages.0.layers.1-2", "stages.0.layers.1-2"),
    ("lm_head", "lm_head", "lm_head"),
    ("model.norm", "model", "model.norm"),
    ("conv1d.weight", "conv1d", "conv1d.weight"),  # a digit inside a word is no number of a layer
]


@pytest.mark.parametrize(("path", "module", "layer"), NAMES)
def test_names_of_groups(path: str, module: str, layer: str) -> None:
    row = Op(path, "linear", FORWARD, 1, 1, 1, 1, 1, 1, "f")
    assert GROUPINGS["module"](row) == module
    assert GROUPINGS["layer"](row) == layer
    assert (GROUPINGS["kind"](row), GROUPINGS["pass"](row)) == ("linear", "forward")


def test_groups_add_up_in_order_of_appearance_and_name_their_formulas_once() -> None:
    rows = (
        Op("m.b", "linear", FORWARD, 1, 10, 100, 1000, 5, 3, "second"),
        Op("m.a", "norm", FORWARD, 0, 0, 7, 8, 9, 3, ""),
        Op("a.x", "linear", FORWARD, 2, 20, 200, 2000, 6, 2, "first"),
        Op("m.b", "linear", BACKWARD, 4, 40, 400, 4000, 0, 3, "second"),
        Op("m.c", "attention", BACKWARD, 8, 80, 800, 8000, 0, 3, "third"),
    )
    found = grouped_rows(Ledger(rows, "causal", ()), "module")
    assert [row.name for row in found] == ["m", "a"]
    first = found[0]
    assert (first.params, first.model_flops, first.hardware_flops) == (14, 13, 130)
    assert (first.read_bytes, first.write_bytes, first.times) == (1307, 13_008, 3)
    assert first.formulas == ("second", "third")
    assert found[1].formulas == ("first",)


def test_an_unknown_group_is_named_with_those_there_are() -> None:
    with pytest.raises(UnknownNameError) as caught:
        grouped_rows(Ledger((), "causal", ()), "modul")
    assert str(caught.value) == (
        "unknown grouping 'modul' in --by; expected one of 4 known; nearest: module. Choose module, kind, layer, pass."
    )


# --- N given, N ideal ---------------------------------------------------------------------------------------------


def test_parameters_given_take_the_place_of_the_models_own() -> None:
    """A billion in place of 64 + 64; the products of N become one row a pass, attention stays."""
    net = arch(square("a"), ATTENTION, Module(name="b", children=(square("c"),), block=True))
    n = 10**9
    books = build_ledger(net, workload(recompute="full"), find_convention("palm"), n)
    own = build_ledger(net, workload(recompute="full"), find_convention("palm"))
    given = [row for row in books.rows if row.kind == "given"]
    assert [(row.path, row.pass_, row.model_flops, row.hardware_flops) for row in given] == [
        ("given parameters", FORWARD, 2 * n * T, 2 * n * T),
        ("given parameters", BACKWARD, 4 * n * T, 4 * n * T),
        ("given parameters", RECOMPUTE_PASS, 0, 2 * n * T),
    ]
    assert books.model_flops - 6 * n * T == own.model_flops - 6 * 128 * T
    assert books.hardware_flops - 8 * n * T == own.hardware_flops - 8 * 128 * T
    assert {(row.times, row.params, row.read_bytes, row.write_bytes) for row in given} == {(1, 0, 0, 0)}
    assert books.params == own.params == 128


@pytest.mark.parametrize(
    ("phase", "recompute", "passes"),
    [("forward", "full", [FORWARD]), ("train", "none", [FORWARD, BACKWARD]), ("decode", "none", [FORWARD])],
)
def test_parameters_given_for_other_passes(phase: str, recompute: str, passes: list[str]) -> None:
    books = build_ledger(arch(square("a")), workload(phase, recompute=recompute), find_convention("6n-all"), 1000)
    assert [row.pass_ for row in books.rows if row.kind == "given"] == passes


def test_parameters_given_change_nothing_where_the_convention_counts_products() -> None:
    net = arch(square("a"))
    assert build_ledger(net, workload(), CAUSAL, 10**9) == build_ledger(net, workload(), CAUSAL)


def test_ideal_forms_and_how_far_they_are_off() -> None:
    """Two squares on ten positions: forward 2·128·10; backward one product less, 3 of 4; full recompute 2 more."""
    net = arch(Module(name="b", children=(square("a"), square("c")), block=True))
    books = count(net, workload(), CAUSAL)
    assert books.ideal == {"2n": 2 * 128 * T, "6n": 6 * 128 * T, "8n": 8 * 128 * T}
    assert (books.flops.forward, books.flops.backward) == (2 * UNIT, 3 * UNIT)
    assert books.flops.hardware_by_recompute == {"none": 5 * UNIT, "selective": 5 * UNIT, "full": 7 * UNIT}
    assert books.ideal_error == {"2n": 0.0, "6n": pytest.approx(6 / 5 - 1), "8n": pytest.approx(8 / 7 - 1)}
    forward = count(net, workload("forward"), CAUSAL)
    assert forward.ideal_error == {"2n": 0.0, "6n": None, "8n": None}
    assert forward.flops.hardware_by_recompute is None
    assert (forward.flops.backward, forward.flops.recompute) == (0, 0)


def test_ideal_forms_with_n_given() -> None:
    books = count(arch(square("a")), workload("forward"), CAUSAL, params=100)
    assert (books.ideal_params, books.ideal["2n"], books.ideal_error["2n"]) == (100, 2000, 100 / 64 - 1)
    assert count(arch(square("a")), workload("forward"), CAUSAL).ideal_params == 64


def test_nothing_counted_has_no_error() -> None:
    books = count(arch(Norm(name="n", dim=8)), workload("forward"), CAUSAL)
    assert books.ideal_error["2n"] is None


def test_the_recompute_figure_is_the_chosen_policys() -> None:
    net = arch(Module(name="b", children=(square("a"), square("c")), block=True))
    books = count(net, workload(recompute="full"), CAUSAL)
    assert (books.flops.model, books.flops.recompute, books.flops.hardware) == (5 * UNIT, 2 * UNIT, 7 * UNIT)


def test_title_stands_in_for_a_name_and_the_other_way_round() -> None:
    net = arch(square("a"))
    assert count(net, workload(), CAUSAL).title == "net"
    assert count(replace(net, title="Net I"), workload(), CAUSAL).title == "Net I"
    assert count(net, workload(), CAUSAL).model == "net"


# --- formula of the paper -----------------------------------------------------------------------------------------

GPT = {"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 11, "n_positions": 5}
PAPER = {
    "hidden": 8, "num_layers": 2, "heads": 2, "ffn": 32, "vocab": 11, "learned_positions": True, "max_positions": 5,
}  # fmt: skip
PAPERS = [
    # 12·2·64 + 13·2·8 + (11 + 5)·8 = 1536 + 208 + 128
    (read_hf_config(GPT, "gpt"), 1872),
    (read_paper_decoder(PAPER, "gpt"), 1872),
    (read_paper_decoder({**PAPER, "ffn": 33}, "not 4h"), None),
    (read_paper_decoder({**PAPER, "kv_heads": 1}, "grouped"), None),
    (read_paper_decoder({**PAPER, "gated": True}, "gated"), None),
    (read_paper_decoder({**PAPER, "learned_positions": False}, "rotary"), None),
    (replace(read_hf_config(GPT, "gpt"), task="masked-lm"), None),
    (replace(read_hf_config(GPT, "gpt"), shape=None), None),
]


@pytest.mark.parametrize(("net", "params"), PAPERS, ids=[f"{n}-{row[0].name}" for n, row in enumerate(PAPERS)])
def test_parameters_by_the_papers_formula_where_it_applies(net: Arch, params: int | None) -> None:
    assert count(net, workload("forward"), CAUSAL).formula_params == params


# --- closed forms -------------------------------------------------------------------------------------------------

SHAPE = Shape(num_layers=2, hidden=8, heads=4, kv_heads=2, head_dim=3, ffn=20, vocab=11, gated=True)
SHAPED = arch(square("a"), square("b"), shape=SHAPE)

# FLOPs of one token at s = 5, forward and backward; L = 2, h = 8, H = 4, K = 2, d = 3, f = 20, V = 11, N = 128
CLOSED = [
    # L·(24h² + 4sh) + 1.5hV = 2·(1536 + 160) + 132
    ("neox", 3524, 7048),
    # L·(2h·(10h + 2hK/H) + 4sh) + 2hV = 2·(16·88 + 160) + 176
    ("megatron-2023", 3312, 6624),
    # L·(2h(2h + 2hK/H) + 4hf + 4sh) + 2hV = 2·(16·24 + 640 + 160) + 176
    ("megatron-2024-02", 2544, 5088),
    # L·(6hf + 2h(H + 2K)d + 2h² + 4sHd + 3sH) + 2hV = 2·(960 + 384 + 128 + 240 + 60) + 176
    ("levanter", 3720, 7440),
    # L·(8h² + 6hf + 4sh) + 2hV = 2·(512 + 960 + 160) + 176
    ("internevo", 3440, 6880),
    # 2N + 4Lhs = 256 + 320; twice that and 2·320 more
    ("litgpt", 576, 1792),
]


@pytest.mark.parametrize(("convention", "forward", "backward"), CLOSED)
def test_closed_forms(convention: str, forward: int, backward: int) -> None:
    rule = find_convention(convention)
    books = ledger(SHAPED, rule)
    assert (books.flops(FORWARD), books.flops(BACKWARD)) == (forward * T, backward * T)
    assert books.hardware_flops == books.model_flops
    assert books.params == SHAPED.params_total == 128
    assert [row.params for row in books.rows] == [128, 0]
    assert {row.formula for row in books.rows} == {rule.closed_form}
    assert {(row.path, row.times, row.read_bytes, row.write_bytes) for row in books.rows} == {("model", 1, 0, 0)}
    again = ledger(SHAPED, rule, recompute="full")
    assert again.model_flops == books.model_flops
    assert again.hardware_flops - again.model_flops == forward * T
    assert ledger(SHAPED, rule, recompute="selective") == books
    assert ledger(SHAPED, rule, "forward").model_flops == forward * T


def test_closed_forms_of_decode_take_the_keys_for_s() -> None:
    """neox at nine keys, two tokens: 2·(2·(1536 + 4·9·8) + 132)."""
    assert ledger(
        replace(SHAPED, streams=(Stream(name=TOKENS, decodes=True),)), find_convention("neox"), "decode", kv_len=9
    ).model_flops == 2 * (2 * (1536 + 288) + 132)


def test_letters_of_a_closed_form() -> None:
    at = Setting(SHAPED, workload(), find_convention("levanter"))
    assert closed_form_values(at) == {
        "num_layers": 2, "hidden": 8, "heads": 4, "kv_heads": 2, "head_dim": 3, "ffn": 20, "vocab": 11, "seq": 5,
    }  # fmt: skip
    assert closed_form_values(replace(at, convention=find_convention("litgpt"))) == {
        "params": 128, "num_layers": 2, "hidden": 8, "seq": 5,
    }  # fmt: skip


def test_a_net_without_letters_has_no_closed_form() -> None:
    with pytest.raises(InputError) as caught:
        ledger(arch(square("a")), find_convention("neox"))
    assert str(caught.value) == (
        "convention neox needs a transformer's L, h, H, V; net has none in --convention; "
        "expected causal, full, palm, 6n or 6n-all."
    )


# --- refusals -----------------------------------------------------------------------------------------------------


def test_a_net_that_does_not_decode_says_so() -> None:
    encoder = arch(square("a"), streams=(Stream(name=TOKENS),))
    with pytest.raises(InputError) as caught:
        check_phase(encoder, workload("decode"))
    assert str(caught.value) == (
        "net does not decode in --phase; got decode; expected forward or train. "
        "Only decoders produce one token after another."
    )
    for phase in ("forward", "train", "prefill"):
        check_phase(encoder, workload(phase))


def test_an_estimate_is_counted_by_its_active_parameters() -> None:
    """2·30 + 40 of 8·30 + 40 parameters: 6·100 a token in training."""
    net = read_estimate({"params_per_expert": 30, "experts": 8, "experts_per_token": 2, "shared_params": 40}, "e")
    books = count(net, workload(), CAUSAL)
    assert (books.params.total, books.params.active, books.flops.model) == (280, 100, 600 * T)
