"""The tree: labels and copies, parameters counted once, streams, leaves walked once, layers against torch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Stream, index_label, split_first
from suanli.nouns.layers import (
    Attention,
    Buffer,
    Conv,
    Embedding,
    Experts,
    Linear,
    LinearAttention,
    Norm,
    Opaque,
    Parameter,
    Recurrent,
)

LABELS = [
    (range(32), "0-31"),
    (range(1), "0"),
    ((3,), "3"),
    (range(0, 41, 2), "0-40:2"),
    (range(1, 32), "1-31"),
    ((0, 1), "0-1"),
    ((0, 2), "0-2:2"),
    ((0, 3, 7), "0,3,7"),
    ((5, 3, 1), "5-1:-2"),
    (tuple(i for i in range(60) if i % 3), "1,2,4,5,7,8,10,11,13,14,16,17,19,20,2…"),
]


@pytest.mark.parametrize(("indices", "label"), LABELS)
def test_labels(indices: Any, label: str) -> None:
    assert index_label(indices) == label
    assert len(label) <= 40
    module = Module(name="model.layers", children=(), indices=indices)
    assert (module.label, module.times) == (f"model.layers.{label}", len(indices))


def small(tied: bool = True, layers: int = 3) -> Arch:
    """Embedding 10·4, `layers` of a 4·4 linear, a mixture of 5 experts and a norm, a head."""
    layer = (
        Linear(name="proj", in_features=4, out_features=4, bias=True),
        Experts(name="experts", num=5, top_k=2, hidden=4, ffn=6),
        Norm(name="norm", dim=4),
    )
    stack = Module(name="layers", children=layer, indices=range(layers), block=True)
    head = Linear(name="head", in_features=4, out_features=10, role="lm_head", tied=tied)
    root = Module(name="", children=(Embedding(name="embed", num=10, dim=4), stack, head))
    return Arch(name="small", root=root)


def test_params_by_hand() -> None:
    layer = (4 * 4 + 4) + 5 * (3 * 4 * 6) + 4
    assert small().params_total == 10 * 4 + 3 * layer
    assert small(tied=False).params_total == 2 * 10 * 4 + 3 * layer
    assert small().params_active == 10 * 4 + 3 * (layer - 3 * (3 * 4 * 6))
    assert small().params_embedding == 10 * 4
    assert small().params_trainable == small().params_total
    assert small().params_active < small().params_total


def test_paths_times_and_blocks() -> None:
    found = [(placed.path, placed.times, placed.in_block) for placed in small().leaves()]
    assert found == [
        ("embed", 1, False),
        ("layers.0-2.proj", 3, True),
        ("layers.0-2.experts", 3, True),
        ("layers.0-2.norm", 3, True),
        ("head", 1, False),
    ]


def test_copies_multiply_through_nested_modules() -> None:
    inner = Module(name="b", children=(Linear(name="x", in_features=2, out_features=3),), indices=range(5))
    arch = Arch(name="nested", root=Module(name="", children=(Module(name="a", children=(inner,), indices=range(7)),)))
    (placed,) = arch.leaves()
    assert (placed.path, placed.times, arch.params_total) == ("a.0-6.b.0-4.x", 35, 35 * 6)


def test_leaves_are_walked_once_and_not_part_of_equality() -> None:
    arch = small()
    assert arch.leaves() is arch.leaves()
    assert arch == small()


def test_streams_are_inherited_and_overridden() -> None:
    leaf = Linear(name="x", in_features=2, out_features=2)
    pooled = Module(name="", stream=SAMPLE, children=(leaf,))
    children = (leaf, Module(name="pictures", stream="patches", children=(leaf, pooled)))
    streams = (Stream(name=TOKENS, decodes=True), Stream(name="patches", length=50))
    arch = Arch(name="two", root=Module(name="", children=children), streams=streams)
    assert [(placed.path, placed.stream) for placed in arch.leaves()] == [
        ("x", TOKENS), ("pictures.x", "patches"), ("pictures.x", SAMPLE),
    ]  # fmt: skip
    assert arch.stream("patches").length == 50
    assert arch.stream(SAMPLE).length == 1
    assert arch.decodes
    assert not Arch(name="encoder", root=arch.root, streams=(Stream(name=TOKENS),)).decodes


def test_the_first_copy_can_stand_apart() -> None:
    stack = Module(name="layers", children=(), indices=range(1, 9))
    assert [part.label for part in split_first(stack)] == ["layers.1", "layers.2-8"]
    assert split_first(Module(name="x", children=())) == (Module(name="x", children=()),)
    one = Module(name="x", children=(), indices=(4,))
    assert split_first(one) == (one,)


LAYERS = [
    (Linear(name="x", in_features=3, out_features=5), 15),
    (Linear(name="x", in_features=3, out_features=5, bias=True), 20),
    (Linear(name="x", in_features=3, out_features=5, bias=True, tied=True), 5),
    (Embedding(name="x", num=7, dim=3), 21),
    (Embedding(name="x", num=7, dim=3, tied=True), 0),
    (Norm(name="x", dim=6), 6),
    (Norm(name="x", dim=6, bias=True, per=99), 12),
    (Norm(name="x", dim=6, weight=False), 0),
    (Parameter(name="x", shape=(2, 3)), 6),
    (Parameter(name="x", shape=()), 1),
    (Buffer(name="x", shape=(9,)), 0),
    (Attention(name="x", heads=4, kv_heads=2, qk_dim=8, v_dim=8), 0),
    (LinearAttention(name="x", heads=4, key_dim=8, value_dim=8), 0),
    (Experts(name="x", num=3, top_k=1, hidden=4, ffn=6), 3 * (3 * 24)),
    (Experts(name="x", num=3, top_k=1, hidden=4, ffn=6, gated=False), 3 * (2 * 24)),
    (Experts(name="x", num=3, top_k=1, hidden=4, ffn=6, bias=True), 3 * (3 * 24 + 2 * 6 + 4)),
    (Opaque(name="x", total=9, active=4), 9),
    (Conv(name="x", in_channels=6, out_channels=4, kernel=(3, 5), in_size=(9, 9), out_size=(7, 5)), 6 * 4 * 15 + 4),
    (Conv(name="x", in_channels=6, out_channels=4, kernel=(3,), in_size=(9,), out_size=(7,), groups=2, bias=False),
     3 * 4 * 3),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "params"), LAYERS)
def test_layers_by_hand(layer: Any, params: int) -> None:
    assert layer.params == params
    assert 0 <= layer.params_active <= layer.params


def test_no_more_experts_are_active_than_there_are() -> None:
    layer = Experts(name="x", num=2, top_k=9, hidden=4, ffn=6)
    assert layer.params_active == layer.params


def test_buffers_and_frozen_parameters() -> None:
    frozen = Linear(name="a", in_features=3, out_features=5, trainable=False)
    children = (frozen, Linear(name="b", in_features=5, out_features=2), Buffer(name="c", shape=(4, 2)))
    arch = Arch(name="x", root=Module(name="", children=children))
    assert (arch.params_total, arch.params_trainable, arch.buffer_elements) == (25, 10, 8)


@given(st.integers(1, 6), st.integers(1, 9), st.booleans())
def test_active_never_exceeds_total(experts: int, top_k: int, tied: bool) -> None:
    layer = Experts(name="x", num=experts, top_k=top_k, hidden=4, ffn=6)
    head = Linear(name="h", in_features=4, out_features=9, tied=tied)
    arch = Arch(name="x", root=Module(name="", children=(layer, head)))
    assert 0 < arch.params_active <= arch.params_total


@pytest.mark.torch
@pytest.mark.parametrize(("cell", "proj"), [("lstm", 0), ("lstm", 7), ("gru", 0), ("rnn", 0)])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_recurrent_params_are_those_of_torch(cell: str, layers: int, both: bool, bias: bool, proj: int) -> None:
    torch = pytest.importorskip("torch")
    kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[cell]
    with torch.device("meta"):
        module = kind(13, 11, layers, bias=bias, bidirectional=both, **({"proj_size": proj} if proj else {}))
    ours = Recurrent(
        name="x", cell=cell, input_size=13, hidden_size=11, num_layers=layers, bidirectional=both, proj_size=proj,
        bias=bias,
    )  # fmt: skip
    assert ours.params == sum(parameter.numel() for parameter in module.parameters())
