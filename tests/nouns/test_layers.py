"""The leaves: every count of parameters beside its arithmetic, and convolutions and recurrent nets beside torch."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Scan,
    Similarity,
    StateSpace,
)


def linear(**more: object) -> Linear:
    return Linear(name="x", in_features=3, out_features=5, **more)  # type: ignore[arg-type]


def experts(**more: object) -> Experts:
    given_: dict[str, object] = {"num": 8, "top_k": 2, "hidden": 4, "ffn": 6, **more}
    return Experts(name="x", **given_)  # type: ignore[arg-type]


def conv(**more: object) -> Conv:
    given_: dict[str, object] = {
        "in_channels": 6, "out_channels": 4, "kernel": (3, 5), "in_size": (9, 9), "out_size": (7, 5), **more,
    }  # fmt: skip
    return Conv(name="x", **given_)  # type: ignore[arg-type]


def recurrent(cell: str = "lstm", **more: object) -> Recurrent:
    return Recurrent(name="x", cell=cell, input_size=3, hidden_size=4, **more)  # type: ignore[arg-type]


# layer, parameters held, parameters of one token
PARAMS: list[tuple[Layer, int, int]] = [
    (Layer(name="x"), 0, 0),
    (linear(), 3 * 5, 15),
    (linear(bias=True), 3 * 5 + 5, 20),
    (linear(tied=True), 0, 0),
    (linear(tied=True, bias=True), 5, 5),  # the bias is the head's own
    (Embedding(name="x", num=7, dim=3), 7 * 3, 21),
    (Embedding(name="x", num=7, dim=3, tied=True), 0, 0),
    (Embedding(name="x", num=7, dim=3, role="position"), 21, 21),
    (Norm(name="x", dim=6), 6, 6),  # a scale
    (Norm(name="x", dim=6, bias=True), 12, 12),  # scale and shift
    (Norm(name="x", dim=6, weight=False), 0, 0),
    (Norm(name="x", dim=6, weight=False, bias=True), 6, 6),
    (Norm(name="x", dim=6, per=9), 6, 6),  # applied nine times, held once
    (Elementwise(name="x", op="gelu", width=6), 0, 0),
    (Parameter(name="x", shape=(2, 3, 4)), 24, 24),
    (Parameter(name="x", shape=()), 1, 1),  # a scalar
    (Parameter(name="x", shape=(0, 3)), 0, 0),
    (Buffer(name="x", shape=(2, 3)), 0, 0),  # no parameter
    (Attention(name="x", heads=4, kv_heads=2, qk_dim=8, v_dim=8), 0, 0),
    (LinearAttention(name="x", heads=2, key_dim=3, value_dim=5), 0, 0),
    (Scan(name="x", heads=2, key_dim=3, value_dim=5), 0, 0),
    (StateSpace(name="x", heads=2, key_dim=3, value_dim=5), 0, 0),
    (CausalConv(name="x", channels=6, kernel=4), 6 * 4, 24),  # depthwise
    (CausalConv(name="x", channels=6, kernel=4, groups=2, bias=True), 6 * 3 * 4 + 6, 78),
    (BlockLinear(name="x", in_features=6, out_features=8, blocks=2), 2 * (3 * 4), 24),
    (BlockLinear(name="x", in_features=6, out_features=8, blocks=2, bias=True), 24 + 8, 32),
    (KeptState(name="x", elements=6), 0, 0),
    (Similarity(name="x", dim=8), 0, 0),
    (Opaque(name="x", total=100, active=30), 100, 30),
    (experts(), 8 * (3 * 4 * 6), 2 * 72),  # gate, up, down
    (experts(gated=False), 8 * (2 * 4 * 6), 2 * 48),
    (experts(bias=True), 8 * (72 + 2 * 6 + 4), 2 * 88),  # gate and up 6 each, down 4
    (experts(gated=False, bias=True), 8 * (48 + 6 + 4), 2 * 58),
    (experts(num=3, top_k=5), 3 * 72, 3 * 72),  # no token passes more experts than there are
    (conv(), 6 * 4 * 15 + 4, 364),
    (conv(bias=False), 6 * 4 * 15, 360),
    (conv(groups=2), 3 * 4 * 15 + 4, 184),
    (conv(groups=2, transposed=True), 3 * 4 * 15 + 4, 184),  # 6 in, 4/2 out a group: 6·2·15
    (conv(in_channels=4, groups=4, bias=False), 1 * 4 * 15, 60),  # depthwise
    (recurrent(), 4 * 4 * (3 + 4) + 2 * 16, 144),
    (recurrent(bias=False), 4 * 4 * (3 + 4), 112),
    (recurrent("gru"), 3 * 4 * (3 + 4) + 2 * 12, 108),
    (recurrent("rnn"), 1 * 4 * (3 + 4) + 2 * 4, 36),
    (recurrent(num_layers=3), 144 + 2 * (16 * (4 + 4) + 32), 464),
    (recurrent(bidirectional=True), 2 * 144, 288),
    (recurrent(bidirectional=True, num_layers=2), 2 * (144 + 16 * (8 + 4) + 32), 736),  # 8 = both directions of layer 1
    (recurrent(proj_size=2), 16 * (3 + 2) + 32 + 2 * 4, 120),  # the state fed back is 2 wide, projected by 2·4
    (recurrent(proj_size=2, num_layers=2, bidirectional=True), 2 * (120 + 16 * (4 + 2) + 32 + 8), 512),
]


@pytest.mark.parametrize(
    ("layer", "held", "active"), PARAMS, ids=[f"{n}-{row[0].kind}" for n, row in enumerate(PARAMS)]
)
def test_parameters(layer: Layer, held: int, active: int) -> None:
    assert (layer.params, layer.params_active) == (held, active)


def test_every_kind_of_layer_is_in_the_table() -> None:
    known = {kind for kind in Layer.__subclasses__() if kind.__module__.startswith("suanli.")}
    assert known <= {type(layer) for layer, *_ in PARAMS}


def test_kinds_are_distinct_words() -> None:
    kinds = [layer.kind for layer in Layer.__subclasses__() if layer not in (CausalConv, BlockLinear)]
    assert len(set(kinds)) == len(kinds)
    assert (CausalConv.kind, BlockLinear.kind) == (Conv.kind, Linear.kind)  # the same to a reader of the table
    assert "layer" not in kinds  # each says its own


def test_weight_of_a_tied_matrix_is_known_though_not_held() -> None:
    assert linear(tied=True).weight_params == 15


def test_elements_of_buffers() -> None:
    assert Buffer(name="x", shape=(2, 3, 4)).elements == 24
    assert Buffer(name="x", shape=()).elements == 1


def test_state_of_linear_attention() -> None:
    assert LinearAttention(name="x", heads=2, key_dim=3, value_dim=5).state_elements == 2 * 3 * 5
    normalised = LinearAttention(name="x", heads=2, key_dim=3, value_dim=5, rule="mlstm")
    assert normalised.state_elements == 2 * 3 * (5 + 1)


def test_heads_may_share_keys_and_queries() -> None:
    assert LinearAttention(name="x", heads=4, key_dim=3, value_dim=5).read_width == 4 * (3 + 3 + 5)
    assert StateSpace(name="x", heads=4, key_dim=3, value_dim=5, groups=2).read_width == 2 * (3 + 3) + 4 * 5


@pytest.mark.parametrize(("gated", "matrices"), [(True, 3), (False, 2)])
def test_matrices_of_an_expert(gated: bool, matrices: int) -> None:
    assert experts(gated=gated).matrices == matrices
    assert experts(gated=gated).params_per_expert == matrices * 4 * 6


# cell, proj_size, bidirectional, layers: input widths of the stack
DEPTHS = [
    ("lstm", 0, False, 1, [3]),
    ("lstm", 0, False, 3, [3, 4, 4]),
    ("lstm", 0, True, 3, [3, 8, 8]),
    ("lstm", 2, False, 2, [3, 2]),
    ("lstm", 2, True, 2, [3, 4]),
]


@pytest.mark.parametrize(("cell", "proj", "both", "layers", "widths"), DEPTHS)
def test_input_widths_of_a_recurrent_stack(cell: str, proj: int, both: bool, layers: int, widths: list[int]) -> None:
    assert recurrent(cell, proj_size=proj, bidirectional=both, num_layers=layers).depth_inputs() == widths


@pytest.mark.torch
@pytest.mark.parametrize(
    ("cell", "proj"), [("lstm", 0), ("lstm", 2), ("gru", 0), ("rnn", 0)]
)  # torch projects LSTMs only
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_recurrent_parameters_are_torchs(cell: str, proj: int, both: bool, bias: bool, layers: int) -> None:
    torch = pytest.importorskip("torch")
    more = {"proj_size": proj} if proj else {}
    kind = getattr(torch.nn, cell.upper())
    model = kind(3, 5, num_layers=layers, bidirectional=both, bias=bias, device="meta", **more)
    ours = Recurrent(
        name="x", cell=cell, input_size=3, hidden_size=5, num_layers=layers, bidirectional=both, bias=bias,
        proj_size=proj,
    )  # fmt: skip
    assert ours.params == sum(each.numel() for each in model.parameters())


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("bias", [False, True])
def test_convolution_parameters_are_torchs(rank: int, transposed: bool, groups: int, bias: bool) -> None:
    torch = pytest.importorskip("torch")
    kernel = (2, 3, 5)[:rank]
    kind = getattr(torch.nn, f"Conv{'Transpose' if transposed else ''}{rank}d")
    model = kind(8, 12, kernel, groups=groups, bias=bias, device="meta")
    sizes = (7,) * rank
    ours = conv(
        in_channels=8, out_channels=12, kernel=kernel, groups=groups, bias=bias, transposed=transposed, in_size=sizes,
        out_size=sizes,
    )  # fmt: skip
    assert ours.params == sum(each.numel() for each in model.parameters())


WIDTH = st.integers(1, 40)


@given(WIDTH, WIDTH, st.integers(1, 20), st.integers(1, 20), st.booleans(), st.booleans())
def test_active_experts_are_a_share_of_all(hidden: int, ffn: int, num: int, k: int, gated: bool, bias: bool) -> None:
    layer = experts(num=num, top_k=k, hidden=hidden, ffn=ffn, gated=gated, bias=bias)
    assert layer.params_active * num == layer.params * min(k, num)


@given(st.sampled_from(["lstm", "gru", "rnn"]), WIDTH, WIDTH, st.integers(1, 4), st.booleans())
def test_a_deeper_stack_holds_one_more_layer_each_time(
    cell: str, width: int, hidden: int, layers: int, both: bool
) -> None:
    def params(depth: int) -> int:
        return Recurrent(
            name="x", cell=cell, input_size=width, hidden_size=hidden, num_layers=depth, bidirectional=both
        ).params

    ways = 2 if both else 1
    one_more = Recurrent(
        name="x", cell=cell, input_size=ways * hidden, hidden_size=hidden, bidirectional=both
    ).params  # reads both directions of the layer below
    assert params(layers + 1) - params(layers) == one_more


def test_layers_never_change() -> None:
    for layer, *_ in PARAMS:
        with pytest.raises(FrozenInstanceError):
            layer.name = "y"  # type: ignore[misc]


# what a layer is unless it is said otherwise
DEFAULTS: list[tuple[Layer, dict[str, object]]] = [
    (Layer(name="x"), {"trainable": True, "shares_input": False}),
    (linear(), {"bias": False, "tied": False, "role": "matmul", "trainable": True}),
    (Embedding(name="x", num=1, dim=1), {"role": "token", "tied": False}),
    (Norm(name="x", dim=2), {"weight": True, "bias": False, "per": 1}),
    (Elementwise(name="x", op="gelu", width=2), {"saved": 0, "mask_bytes": 0}),
    (
        Attention(name="x", heads=1, kv_heads=1, qk_dim=1, v_dim=1),
        {"mask": "causal", "window": None, "chunk": None, "key_stream": None, "latent_dim": None, "dropout": False},
    ),
    (experts(), {"gated": True, "bias": False}),
    (conv(), {"groups": 1, "bias": True, "transposed": False}),  # as torch's
    (recurrent(), {"num_layers": 1, "bidirectional": False, "proj_size": 0, "bias": True}),  # as torch's
]


@pytest.mark.parametrize(("layer", "values"), DEFAULTS, ids=[type(layer).__name__ for layer, _ in DEFAULTS])
def test_defaults(layer: Layer, values: dict[str, object]) -> None:
    assert {name: getattr(layer, name) for name in values} == values
