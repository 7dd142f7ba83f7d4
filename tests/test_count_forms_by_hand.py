"""Rules of `count` one by one, on nets to add up by hand: groups, N given and ideal, closed forms, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_nets import ATTENTION, CAUSAL, UNIT, T, arch, ledger, square, workload

from suanli.catalog.conventions import find_convention
from suanli.count import (
    GROUPINGS,
    build_ledger,
    check_phase,
    closed_form_values,
    count,
    grouped_rows,
)
from suanli.errors import InputError, UnknownNameError
from suanli.nouns.arch import TOKENS, Arch, Module, Shape, Stream
from suanli.nouns.layers import (
    Norm,
)
from suanli.nouns.ledger import BACKWARD, FORWARD, RECOMPUTE_PASS, Ledger, Op
from suanli.readers.hf import read_hf_config
from suanli.readers.paper import read_estimate, read_paper_decoder
from suanli.work import Setting

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
    with pytest.raises(InputError, match=f"convention {convention} is one formula and has no selective recompute"):
        ledger(SHAPED, rule, recompute="selective")
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
