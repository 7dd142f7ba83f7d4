"""Building blocks: names, order, shapes and parameters of what each function returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Attention, Buffer, Elementwise, Experts, Layer, Linear, Norm, Parameter
from suanli.readers.blocks import (
    AttentionNames,
    AttentionSpec,
    LatentSpec,
    MoeSpec,
    Node,
    attention,
    dotted,
    dropped,
    latent_attention,
    mlp,
    moe,
    norm,
    renamed,
    stack,
)

# 4 query heads and 2 key heads of 3: q 12 wide, k and v 6; width 8
SPEC = {"hidden": 8, "heads": 4, "kv_heads": 2, "head_dim": 3}


def shown(nodes: Sequence[Node]) -> list[tuple[str, int, int, bool, bool]]:
    """(name, in, out, bias, reads what the one before read) of the matrices."""
    return [
        (node.name, node.in_features, node.out_features, node.bias, node.shares_input)
        for node in nodes
        if isinstance(node, Linear)
    ]


def params(nodes: Sequence[Node]) -> int:
    return Arch(name="x", root=Module(name="", children=tuple(nodes))).params_total


@pytest.mark.parametrize(("at", "name", "path"), [("a", "b", "a.b"), ("", "b", "b"), ("a.b", "c", "a.b.c")])
def test_dotted(at: str, name: str, path: str) -> None:
    assert dotted(at, name) == path


@pytest.mark.parametrize(("kind", "vectors"), [("rms", 1), ("layer", 2), ("layer_no_bias", 1), ("plain", 0)])
def test_norms(kind: str, vectors: int) -> None:
    found = norm("n", 5, kind, per=3)
    assert (found.params, found.dim, found.per) == (5 * vectors, 5, 3)
    assert norm("n", 5) == Norm(name="n", dim=5, weight=True, bias=False, per=1)


# --- attention ----------------------------------------------------------------------------------------------------


def test_projections() -> None:
    assert shown(attention(AttentionSpec(**SPEC))) == [
        ("self_attn.q_proj", 8, 12, False, False),
        ("self_attn.k_proj", 8, 6, False, True),
        ("self_attn.v_proj", 8, 6, False, True),
        ("self_attn.o_proj", 12, 8, False, False),
    ]


def test_fused_projections_are_one_matrix() -> None:
    names = AttentionNames(at="attn", fused="c_attn", o="c_proj")
    assert shown(attention(AttentionSpec(**SPEC, names=names, qkv_bias=True))) == [
        ("attn.c_attn", 8, 12 + 2 * 6, True, False),
        ("attn.c_proj", 12, 8, False, False),
    ]


# options: biases of q, k, v, o
BIASES = [
    ({}, (False, False, False, False)),
    ({"qkv_bias": True}, (True, True, True, False)),
    ({"o_bias": True}, (False, False, False, True)),
    ({"qkv_bias": True, "k_bias": False}, (True, False, True, False)),  # Whisper
    ({"k_bias": True}, (False, False, False, False)),
]


@pytest.mark.parametrize(("options", "biases"), BIASES)
def test_biases(options: dict[str, bool], biases: tuple[bool, ...]) -> None:
    assert tuple(row[3] for row in shown(attention(AttentionSpec(**SPEC, **options)))) == biases


def test_the_attention_stands_between_projections_and_output() -> None:
    spec = AttentionSpec(**SPEC, window=5, chunk=6, mask="full", dropout=True, sinks=True, qk_norm="head")
    nodes = attention(spec)
    assert [node.name for node in nodes] == [
        f"self_attn.{name}"
        for name in ("q_proj", "k_proj", "v_proj", "q_norm", "k_norm", "sinks", "attention", "o_proj")
    ]
    core = nodes[6]
    assert core == Attention(
        name="self_attn.attention", heads=4, kv_heads=2, qk_dim=3, v_dim=3, mask="full", window=5, chunk=6, dropout=True
    )
    assert nodes[5] == Parameter(name="self_attn.sinks", shape=(4,))  # one a query head


# kind: (dim, per) of the norms of queries and keys
QK_NORMS = [
    ("head", (3, 4), (3, 2)),  # a head's width, once a head
    ("full", (12, 1), (6, 1)),
]


@pytest.mark.parametrize(("kind", "query", "key"), QK_NORMS)
def test_norms_of_queries_and_keys(kind: str, query: tuple[int, int], key: tuple[int, int]) -> None:
    spec = AttentionSpec(**SPEC, qk_norm=kind, qk_norm_kind="layer", qk_norm_names=("a", "b"))
    found = [node for node in attention(spec) if isinstance(node, Norm)]
    assert [(node.name, node.dim, node.per, node.bias) for node in found] == [
        ("self_attn.a", *query, True),
        ("self_attn.b", *key, True),
    ]


def test_across_streams_keys_and_values_pass_with_the_other_stream() -> None:
    nodes = attention(AttentionSpec(**SPEC, key_stream="frames", key_width=5, mask="full"))
    query, crossing, core, out = nodes
    assert isinstance(crossing, Module) and crossing.stream == "frames" and crossing.name == ""
    assert shown(crossing.children) == [
        ("self_attn.k_proj", 5, 6, False, False),  # the first to read the frames
        ("self_attn.v_proj", 5, 6, False, True),
    ]
    assert isinstance(core, Attention) and core.key_stream == "frames"
    assert shown([query, out]) == [
        ("self_attn.q_proj", 8, 12, False, False),
        ("self_attn.o_proj", 12, 8, False, False),
    ]


def test_without_a_width_of_their_own_keys_are_as_wide_as_queries() -> None:
    _, crossing, *_ = attention(AttentionSpec(**SPEC, key_stream="frames"))
    assert isinstance(crossing, Module)
    assert [row[1] for row in shown(crossing.children)] == [8, 8]


def test_an_attention_is_plain_unless_it_is_said_otherwise() -> None:
    spec = AttentionSpec(**SPEC)
    assert (spec.qkv_bias, spec.k_bias, spec.o_bias, spec.sinks, spec.dropout) == (False, True, False, False, False)
    assert (spec.mask, spec.window, spec.chunk, spec.qk_norm, spec.key_stream) == ("causal", None, None, None, None)


@pytest.mark.parametrize(
    "spec",
    [
        AttentionNames(),
        AttentionSpec(**SPEC),
        LatentSpec(hidden=8, heads=3, q_rank=None, kv_rank=5, nope_dim=4, rope_dim=2, v_dim=7),
        MoeSpec(hidden=4, experts=8, top_k=2, ffn=6),
    ],
)
def test_specs_never_change(spec: object) -> None:
    with pytest.raises(FrozenInstanceError):
        spec.at = "x"  # type: ignore[attr-defined]


# --- latent attention ---------------------------------------------------------------------------------------------

LATENT = {"hidden": 8, "heads": 3, "kv_rank": 5, "nope_dim": 4, "rope_dim": 2, "v_dim": 7}


def test_latent_attention_with_compressed_queries() -> None:
    nodes = latent_attention(LatentSpec(**LATENT, q_rank=6, bias=True))
    assert shown(nodes) == [
        ("self_attn.q_a_proj", 8, 6, True, False),
        ("self_attn.q_b_proj", 6, 3 * (4 + 2), False, False),
        ("self_attn.kv_a_proj_with_mqa", 8, 5 + 2, True, False),  # the latent, and one rotary key for all heads
        ("self_attn.kv_b_proj", 5, 3 * (4 + 7), False, False),
        ("self_attn.o_proj", 3 * 7, 8, True, False),
    ]
    assert [(node.name, node.dim) for node in nodes if isinstance(node, Norm)] == [
        ("self_attn.q_a_layernorm", 6),
        ("self_attn.kv_a_layernorm", 5),
    ]
    assert [node for node in nodes if isinstance(node, Attention)] == [
        Attention(name="self_attn.attention", heads=3, kv_heads=3, qk_dim=6, v_dim=7, latent_dim=7)
    ]
    # 8·6 + 6 + 6·18 + 8·7 + 5·33 + 21·8 weights, norms 6 + 5, biases 7 + 8
    assert params(nodes) == 48 + 6 + 108 + 56 + 165 + 168 + 11 + 15


def test_latent_attention_with_plain_queries() -> None:
    nodes = latent_attention(LatentSpec(**LATENT, q_rank=None, at="attn"))
    assert shown(nodes)[0] == ("attn.q_proj", 8, 18, False, False)
    assert len([node for node in nodes if isinstance(node, Norm)]) == 1
    assert params(nodes) == 8 * 18 + 56 + 165 + 168 + 5
    assert all(node.name.startswith("attn.") for node in nodes)


# --- MLPs ---------------------------------------------------------------------------------------------------------

# names: matrices (name, in, out, shares its input); width and saved of the activation
MLPS = [
    (
        ("gate", "up", "down"),
        [("mlp.gate", 4, 6, False), ("mlp.up", 4, 6, True), ("mlp.down", 6, 4, False)],
        ("gated", 6, 18),  # gate, act(gate), up
    ),
    (("gate_up_proj", "down"), [("mlp.gate_up_proj", 4, 12, False), ("mlp.down", 6, 4, False)], ("gated", 6, 18)),
    (("fc1", "fc2"), [("mlp.fc1", 4, 6, False), ("mlp.fc2", 6, 4, False)], ("activation", 6, 6)),
]


@pytest.mark.parametrize(("names", "matrices", "activation"), MLPS)
@pytest.mark.parametrize("bias", [False, True])
def test_mlps(names: tuple[str, ...], matrices: list[tuple[str, int, int, bool]],
              activation: tuple[str, int, int], bias: bool) -> None:  # fmt: skip
    nodes = mlp(4, 6, names=names, bias=bias)
    assert [(name, i, o, shares) for name, i, o, _, shares in shown(nodes)] == matrices
    assert {row[3] for row in shown(nodes)} == {bias}
    assert [node for node in nodes if isinstance(node, Elementwise)] == [
        Elementwise(name="mlp.act", op=activation[0], width=activation[1], saved=activation[2])
    ]
    assert isinstance(nodes[-2], Elementwise)  # before the last matrix


def test_an_mlp_with_dropout_ends_in_it() -> None:
    nodes = mlp(4, 6, at="", names=("fc1", "fc2"), dropout=True)
    assert [node.name for node in nodes] == ["fc1", "act", "fc2", "dropout"]
    assert nodes[-1] == dropped("dropout", 4)[0]


def test_a_dropout_keeps_a_byte_an_element() -> None:
    assert dropped("d", 4) == (Elementwise(name="d", op="dropout", width=4, mask_bytes=4),)


# --- mixtures -----------------------------------------------------------------------------------------------------

MOE = {"hidden": 4, "experts": 8, "top_k": 2, "ffn": 6}

# options: names of what stands in a mixture, its parameters (router 4·8, eight experts of 3·4·6)
MIXTURES = [
    ({}, ["mlp.gate", "mlp.experts", "mlp.experts.act"], 32 + 8 * 72),
    ({"gated": False}, ["mlp.gate", "mlp.experts", "mlp.experts.act"], 32 + 8 * 48),
    ({"bias": True}, ["mlp.gate", "mlp.experts", "mlp.experts.act"], 32 + 8 * (72 + 12 + 4)),
    ({"gate": "router", "gate_bias": True}, ["mlp.router", "mlp.experts", "mlp.experts.act"], 32 + 8 + 576),
    (
        {"shared_ffn": 5},
        ["mlp.gate", "mlp.experts", "mlp.experts.act", "mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj",
         "mlp.shared_experts.act", "mlp.shared_experts.down_proj"],
        608 + 3 * 4 * 5,
    ),
    (
        {"shared_ffn": 5, "gated": False, "shared": "one", "at": "ff"},
        ["ff.gate", "ff.experts", "ff.experts.act", "ff.one.up_proj", "ff.one.act", "ff.one.down_proj"],
        32 + 384 + 2 * 4 * 5,
    ),
    ({"shared_gate": "sg"}, ["mlp.gate", "mlp.experts", "mlp.experts.act", "mlp.sg"], 608 + 4),
    ({"correction_bias": "cb"}, ["mlp.gate", "mlp.experts", "mlp.experts.act", "mlp.cb"], 608),
]  # fmt: skip


@pytest.mark.parametrize(("options", "names", "total"), MIXTURES)
def test_mixtures(options: dict[str, object], names: list[str], total: int) -> None:
    nodes = moe(MoeSpec(**MOE, **options))  # type: ignore[arg-type]
    assert [node.name for node in nodes] == names
    assert params(nodes) == total


def test_parts_of_a_mixture() -> None:
    nodes = moe(MoeSpec(**MOE, gate_bias=True, shared_gate="sg", correction_bias="cb"))
    router, experts, act, buffer, gate = nodes
    assert router == Linear(name="mlp.gate", in_features=4, out_features=8, bias=True, role="router")
    assert experts == Experts(name="mlp.experts", num=8, top_k=2, hidden=4, ffn=6)
    assert act == Elementwise(name="mlp.experts.act", op="gated", width=12, saved=3 * 12)  # two experts of six
    assert buffer == Buffer(name="mlp.cb", shape=(8,))
    assert gate == Linear(name="mlp.sg", in_features=4, out_features=1, role="router")
    plain = moe(MoeSpec(**MOE, gated=False))[2]
    assert plain == Elementwise(name="mlp.experts.act", op="activation", width=12, saved=12)


# --- stacks -------------------------------------------------------------------------------------------------------


def leaf(kind: object) -> tuple[Node, ...]:
    return (Norm(name=f"k{kind}", dim=1),)


# kinds of the layers: label of each module
STACKS = [
    ([0] * 4, ["layers.0-3"]),
    ([0], ["layers.0"]),
    ([0, 1, 0, 1, 0], ["layers.0-4:2", "layers.1-3:2"]),
    ([0, 1, 1, 1], ["layers.0", "layers.1-3"]),
    ([0, 0, 1, 0], ["layers.0,1,3", "layers.2"]),  # unevenly spaced
    ([1, 1, 1, 0, 1, 1, 1, 0], ["layers.0,1,2,4,5,6", "layers.3-7:4"]),
    ([], []),
]


@pytest.mark.parametrize(("kinds", "labels"), STACKS)
def test_stacks(kinds: list[int], labels: list[str]) -> None:
    found = stack("layers", kinds, leaf)
    assert [module.label for module in found] == labels
    assert all(module.block for module in found)
    assert sum(module.times for module in found) == len(kinds)
    assert [module.children for module in found] == [leaf(kind) for kind in dict.fromkeys(kinds)]


def test_a_stack_may_flow_in_another_stream() -> None:
    assert stack("layers", [0], leaf, stream="frames")[0].stream == "frames"


@given(st.lists(st.integers(0, 3), max_size=40))
def test_a_stack_holds_every_layer_once(kinds: list[int]) -> None:
    found = stack("layers", kinds, leaf)
    held = {index: module for module in found for index in module.indices or ()}
    assert sorted(index for module in found for index in module.indices or ()) == list(range(len(kinds)))
    assert all(held[index].children == leaf(kind) for index, kind in enumerate(kinds))
    for module in found:
        steps = {b - a for a, b in zip(module.indices or (), (module.indices or ())[1:], strict=False)}
        assert isinstance(module.indices, range) == (len(steps) <= 1)  # evenly spaced: a range, which holds nothing


def test_renamed() -> None:
    nodes: tuple[Node, ...] = (Norm(name="a", dim=1), Module(name="", children=(Norm(name="b", dim=1),)))
    found = renamed(nodes, "p")
    assert [node.name for node in found] == ["p.a", ""]
    assert isinstance(found[0], Layer) and found[0].params == 1
