"""Random layers with every option: formula (a layer expression), trace (the torch module), and arithmetic by hand."""

from __future__ import annotations

import re
from itertools import pairwise
from math import prod
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.nouns.arch import TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Linear
from suanli.nouns.workload import Workload
from suanli.readers.blocks import AttentionNames, AttentionSpec, MoeSpec, attention, moe
from suanli.readers.layer_expr import read_layer_expression
from suanli.readers.torch_module import trace

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

F = nn.functional
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:LSTM with projections")]
small = st.integers(1, 6)


def formula(text: str, **workload: Any) -> tuple[int, int]:
    """Parameters and forward FLOPs, every pair."""
    arch = read_layer_expression(text)
    return arch.params_total, build_ledger(arch, Workload(**workload), find_convention("full")).model_flops


def traced(module: Any, *inputs: Any) -> tuple[int, int]:
    found = trace(module, inputs)
    assert found.uncounted == ()
    return found.params.total, found.model_flops


def word(value: bool) -> str:
    return "true" if value else "false"


@given(st.lists(small, min_size=2, max_size=5), st.booleans(), small, small)
@settings(max_examples=20, deadline=None)
def test_linears(widths: list[int], bias: bool, batch: int, seq: int) -> None:
    pairs = list(pairwise(widths))
    text = " -> ".join(f"linear({a}, {b}, bias={word(bias)})" for a, b in pairs)
    module = nn.Sequential(*(nn.Linear(a, b, bias) for a, b in pairs))
    params = sum(a * b + (b if bias else 0) for a, b in pairs)
    flops = sum(2 * batch * seq * a * b for a, b in pairs)
    assert formula(text, batch=batch, seq=seq) == (params, flops)
    assert traced(module, torch.zeros(batch, seq, widths[0])) == (params, flops)


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, Any]:
    rank, groups = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    transposed = draw(st.booleans())
    each = st.lists(st.integers(1, 3), min_size=rank, max_size=rank)
    made = {"kernel": draw(each), "stride": draw(each), "dilation": draw(each)}
    made["padding"] = [draw(st.integers(0, size - 1)) for size in made["kernel"]]
    return made | {
        "rank": rank, "groups": groups, "transposed": transposed, "bias": draw(st.booleans()),
        "inner": groups * draw(st.integers(1, 3)), "outer": groups * draw(st.integers(1, 3)),
        "size": [draw(st.integers(7, 11)) for _ in range(rank)], "batch": draw(small),
    }  # fmt: skip


def conv_size(made: dict[str, Any]) -> list[int]:
    """Size of the output of a plain convolution."""
    sides = zip(made["size"], made["kernel"], made["stride"], made["padding"], made["dilation"], strict=True)
    return [(size + 2 * pad - spread * (side - 1) - 1) // step + 1 for size, side, step, pad, spread in sides]


@given(convolutions())
@settings(max_examples=40, deadline=None)
def test_convolutions(made: dict[str, Any]) -> None:
    kind = f"Conv{'Transpose' if made['transposed'] else ''}{made['rank']}d"
    names = ("kernel", "stride", "padding", "dilation")
    options = ", ".join(f"{name}=({', '.join(map(str, made[name]))})" for name in names)
    text = (
        f"{kind.lower()}({made['inner']}, {made['outer']}, {options}, groups={made['groups']}, "
        f"bias={word(made['bias'])}) @ {'x'.join(map(str, made['size']))}"
    )
    given_options = {name: tuple(made[name]) for name in names[1:]}
    module = getattr(nn, kind)(
        made["inner"], made["outer"], tuple(made["kernel"]), groups=made["groups"], bias=made["bias"], **given_options
    )
    positions = prod(made["size"]) if made["transposed"] else prod(conv_size(made))
    weights = made["inner"] * made["outer"] // made["groups"] * prod(made["kernel"])
    expected = (weights + (made["outer"] if made["bias"] else 0), 2 * made["batch"] * positions * weights)
    assert traced(module, torch.zeros(made["batch"], made["inner"], *made["size"])) == expected
    if made["rank"] == 1:  # of one number in brackets the grammar makes no tuple
        text = re.sub(r"\((\d+)\)", r"\1", text)
    assert formula(text, batch=made["batch"]) == expected


@given(
    st.sampled_from(["lstm", "gru", "rnn"]), small, st.integers(2, 6), st.integers(1, 3), st.booleans(), st.booleans(),
    st.booleans(), small, small, st.sampled_from(["cpu", "meta"]), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_recurrent_stacks(
    cell: str, wide: int, hidden: int, layers: int, both: bool, bias: bool, project: bool, batch: int, seq: int,
    device: str, batch_first: bool, train: bool, states: bool,
) -> None:  # fmt: skip
    proj = hidden - 1 if project and cell == "lstm" else 0
    gates, sides, out = {"lstm": 4, "gru": 3, "rnn": 1}[cell], 1 + both, proj or hidden
    options = {"proj_size": proj} if cell == "lstm" else {}
    options |= {"dropout": 0.1 if layers > 1 else 0.0, "batch_first": batch_first}
    module = getattr(nn, cell.upper())(wide, hidden, layers, bias=bias, bidirectional=both, **options)
    text = f"{cell}({wide}, {hidden}, layers={layers}, bidirectional={word(both)}, bias={word(bias)}"
    widths = [wide] + [sides * out] * (layers - 1)
    weights = sides * sum(gates * hidden * (width + out) + proj * hidden for width in widths)
    expected = (weights + (sides * layers * 2 * gates * hidden if bias else 0), 2 * batch * seq * weights)
    assert formula(text + (f", proj={proj})" if proj else ")"), batch=batch, seq=seq) == expected
    x = torch.zeros(batch, seq, wide) if batch_first else torch.zeros(seq, batch, wide)
    state, inner = torch.zeros(sides * layers, batch, out), torch.zeros(sides * layers, batch, hidden)
    given_states = ((state, inner) if cell == "lstm" else state,) if states else ()
    found = trace(module, (x, *given_states), device=device, train=train)
    assert (found.params.total, found.ledger.flops("forward")) == expected
    if not train:
        return
    # twice the forward, but for the first layer's input, and for the state before the first position
    unread = sides * (batch * seq * gates * hidden * wide + layers * batch * gates * hidden * out)
    assert found.ledger.flops("backward") == 2 * expected[1] - 2 * unread


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.sampled_from(["lstm", "gru", "rnn"]), st.booleans())
@settings(max_examples=15, deadline=None)
def test_packed_sequences(lengths: list[int], cell: str, both: bool) -> None:
    """Charged for the positions that are there, as the formula for one sequence of as many."""
    packed = nn.utils.rnn.pack_sequence([torch.zeros(n, 5) for n in sorted(lengths, reverse=True)])
    module = getattr(nn, cell.upper())(5, 4, 2, bidirectional=both)
    text = f"{cell}(5, 4, layers=2, bidirectional={word(both)})"
    for device in ("cpu", "meta"):
        found = trace(module, (packed,), device=device)
        assert (found.params.total, found.model_flops) == formula(text, batch=1, seq=sum(lengths))


@given(
    st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.booleans(), st.booleans(), small, small,
    st.sampled_from(["cpu", "meta"]), st.sampled_from(["none", "mask", "causal"]),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_attention(
    kv_heads: int, per: int, dim: int, bias: bool, train: bool, batch: int, seq: int, device: str, mask: str
) -> None:
    heads = kv_heads * per
    hidden = heads * dim

    class Grouped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.o = nn.Linear(hidden, hidden, bias), nn.Linear(hidden, hidden, bias)
            self.k, self.v = (nn.Linear(hidden, kv_heads * dim, bias) for _ in range(2))

        def forward(self, x: Any) -> Any:
            q, k, v = (f(x).view(*x.shape[:2], -1, dim).transpose(1, 2) for f in (self.q, self.k, self.v))
            bias_ = x.new_zeros(seq, seq) if mask == "mask" else None
            out = F.scaled_dot_product_attention(q, k, v, bias_, is_causal=mask == "causal", enable_gqa=True)
            return self.o(out.transpose(1, 2).reshape(x.shape))

    weights = 2 * hidden * hidden + 2 * hidden * kv_heads * dim
    pairs = 4 * batch * seq * seq * heads * dim
    expected = (weights + (2 * hidden + 2 * kv_heads * dim if bias else 0), 2 * batch * seq * weights + pairs)
    text = f"attention({hidden}, {heads}, kv_heads={kv_heads}, bias={word(bias)}, causal={word(mask == 'causal')})"
    assert formula(text, batch=batch, seq=seq) == expected
    found = trace(Grouped(), (torch.zeros(batch, seq, hidden),), device=device, train=train)
    assert (found.params.total, found.ledger.flops("forward")) == expected
    # back: q, k and v read the input, which needs no gradient; attention's four products; the output both
    back = 2 * batch * seq * (weights + hidden * hidden) + 2 * pairs
    assert found.ledger.flops("backward") == (back if train else 0)


@given(st.integers(1, 4), st.integers(1, 4), small, small, st.integers(1, 20))
@settings(max_examples=15, deadline=None)
def test_mixtures(experts: int, top: int, wide: int, ffn: int, tokens: int) -> None:
    """Routed rows through stacked weights: active by routing, whatever the number held."""
    assume(top <= experts)
    wide, ffn = 8 * wide, 8 * ffn  # the grouped product wants rows of 16 bytes

    class Mixture(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router = nn.Linear(wide, experts, bias=False)
            self.up = nn.Parameter(torch.zeros(experts, wide, ffn))
            self.down = nn.Parameter(torch.zeros(experts, ffn, wide))

        def forward(self, x: Any) -> Any:
            chosen = self.router(x).topk(top, -1).indices.flatten()
            rows = x.repeat_interleave(top, 0)[chosen.argsort()]
            ends = torch.zeros(experts, dtype=torch.int32, device=x.device)
            return torch._grouped_mm(torch._grouped_mm(rows, self.up, offs=ends).relu(), self.down, offs=ends)

    module = Mixture().bfloat16()
    flops = 2 * tokens * wide * experts + 2 * 2 * tokens * top * wide * ffn
    x = torch.zeros(tokens, wide, dtype=torch.bfloat16)
    assert traced(module, x) == (wide * experts + 2 * experts * wide * ffn, flops)


# --- against the architecture's own nouns: what a layer expression cannot say --------------------------------------


def by_nouns(nodes: tuple[Any, ...], streams: tuple[Stream, ...], train: bool, **workload: Any) -> tuple[int, int, int]:
    """Parameters, forward and backward FLOPs, every pair."""
    arch = Arch(
        name="one", root=Module(name="", children=nodes, stream=TOKENS), streams=streams, main_stream=TOKENS,
        task="test", unit="token",
    )  # fmt: skip
    phase = "train" if train else "forward"
    ledger = build_ledger(arch, Workload(phase=phase, **workload), find_convention("full"))
    return arch.params_total, ledger.flops("forward"), ledger.flops("backward")


class Attends(nn.Module):
    """Attention with every option, its mask given as a tensor, as a flag, or not at all."""

    def __init__(self, spec: AttentionSpec, seq: int) -> None:
        super().__init__()
        source, v_dim = spec.key_width or spec.hidden, spec.v_dim or spec.head_dim
        self.q = nn.Linear(spec.hidden, spec.heads * spec.head_dim, spec.qkv_bias)
        self.k = nn.Linear(source, spec.kv_heads * spec.head_dim, spec.qkv_bias and spec.k_bias)
        self.v = nn.Linear(source, spec.kv_heads * v_dim, spec.qkv_bias)
        self.o = nn.Linear(spec.heads * v_dim, spec.hidden, spec.o_bias)
        self.spec, self.seq = spec, seq

    def forward(self, x: Any, other: Any = None) -> Any:
        spec, given_ = self.spec, x if other is None else other
        q = self.q(x).unflatten(-1, (spec.heads, -1)).transpose(1, 2)
        k, v = (part(given_).unflatten(-1, (spec.kv_heads, -1)).transpose(1, 2) for part in (self.k, self.v))
        mask = None
        if spec.window is not None:
            far = torch.arange(self.seq, device=x.device)[:, None] - torch.arange(self.seq, device=x.device)
            mask = (far >= 0) & (far < spec.window)
        causal = mask is None and spec.mask == "causal"
        mixed = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=True)
        return self.o(mixed.transpose(1, 2).flatten(2))


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_attention_of_every_kind(data: st.DataObject) -> None:
    """Heads shared or not, values of another width, biases, causal or in a window, to itself or to another sequence."""
    draw = data.draw
    kv_heads, dim, hidden = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 9))
    cross, seq, batch, words = draw(st.booleans()), draw(small), draw(small), draw(small)
    mask = "full" if cross else draw(st.sampled_from(["full", "causal"]))
    spec = AttentionSpec(
        hidden=hidden, heads=kv_heads * draw(st.integers(1, 3)), kv_heads=kv_heads, head_dim=dim,
        v_dim=draw(st.integers(1, 4)), qkv_bias=draw(st.booleans()), k_bias=draw(st.booleans()),
        o_bias=draw(st.booleans()), mask=mask,
        window=draw(st.sampled_from([None, 1, 2, 3])) if mask == "causal" else None,
        key_stream="words" if cross else None, key_width=draw(st.integers(1, 9)) if cross else None,
        names=AttentionNames(at="attention"),
    )  # fmt: skip
    device, train = draw(st.sampled_from(["cpu", "meta"])), draw(st.booleans())
    keys, source = (words, spec.key_width or hidden) if cross else (seq, hidden)
    v_dim = spec.v_dim or dim
    q, o = hidden * spec.heads * dim, spec.heads * v_dim * hidden
    read = source * kv_heads * (dim + v_dim)
    pairs = 2 * batch * seq * keys * spec.heads * (dim + v_dim)
    forward = 2 * batch * (seq * (q + o) + keys * read) + pairs
    other = torch.zeros(batch, keys, source, requires_grad=True)  # as what an encoder gives
    inputs = (torch.zeros(batch, seq, hidden), *([other] if cross else []))
    found = trace(Attends(spec, seq), inputs, device=device, train=train)
    assert found.uncounted == ()
    assert found.ledger.flops("forward") == forward
    streams = (Stream(name=TOKENS), *([Stream(name="words", length=words)] if cross else []))
    params, forward_by_formula, backward = by_nouns(attention(spec), streams, train, batch=batch, seq=seq)
    assert (params, forward_by_formula) == (found.params.total, forward)
    # the input needs no gradient: q, k and v have their weights' alone, the output both, attention four products
    by_hand = 2 * batch * (seq * (q + 2 * o) + (1 + cross) * keys * read) + 2 * pairs
    assert found.ledger.flops("backward") == backward == (by_hand if train else 0)


class Mixture(nn.Module):
    """Routed experts, gated or not, in one tensor each matrix; one expert shared by all, with a gate of its own."""

    def __init__(self, spec: MoeSpec) -> None:
        super().__init__()
        inner = (2 if spec.gated else 1) * spec.ffn
        self.spec, self.router = spec, nn.Linear(spec.hidden, spec.experts, spec.gate_bias)
        self.up = nn.Parameter(torch.zeros(spec.experts, spec.hidden, inner))
        self.down = nn.Parameter(torch.zeros(spec.experts, spec.ffn, spec.hidden))
        if spec.shared_ffn:
            names = ("gate", "up") if spec.gated else ("up",)
            self.shared = nn.ModuleDict({name: nn.Linear(spec.hidden, spec.shared_ffn, bias=False) for name in names})
            self.back = nn.Linear(spec.shared_ffn, spec.hidden, bias=False)
            self.share = nn.Linear(spec.hidden, 1, bias=False) if spec.shared_gate else None

    def forward(self, x: Any) -> Any:
        spec, rows = self.spec, x.flatten(0, 1)
        weight, chosen = self.router(rows).softmax(-1).topk(spec.top_k, -1)
        order = chosen.flatten().argsort()
        picked = rows.repeat_interleave(spec.top_k, 0)[order]
        ends = torch.zeros(spec.experts, dtype=torch.int32, device=x.device)
        inner = torch._grouped_mm(picked, self.up, offs=ends)
        inner = inner[:, : spec.ffn].contiguous() * inner[:, spec.ffn :] if spec.gated else inner.relu()
        out = torch._grouped_mm(inner, self.down, offs=ends) * weight.flatten()[order][:, None]
        total = torch.zeros_like(rows).index_add(0, order // spec.top_k, out).view_as(x)
        if not spec.shared_ffn:
            return total
        parts = [layer(x) for layer in self.shared.values()]
        always = self.back(parts[0] * parts[1] if spec.gated else parts[0])
        return total + (always if self.share is None else always * self.share(x).sigmoid())


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_mixtures_of_every_kind(data: st.DataObject) -> None:
    """Top-k of any number, gated or not, with a shared expert and its gate or without; forward and backward."""
    draw = data.draw
    experts = draw(st.integers(1, 5))
    shared = draw(st.booleans())
    spec = MoeSpec(
        hidden=8 * draw(st.integers(1, 3)), experts=experts, top_k=draw(st.integers(1, experts)),
        ffn=8 * draw(st.integers(1, 3)), gate_bias=draw(st.booleans()), gated=draw(st.booleans()),
        shared_ffn=draw(st.integers(1, 9)) if shared else 0,
        shared_gate=draw(st.sampled_from([None, "share"])) if shared else None,
    )  # fmt: skip
    batch, seq, train = draw(small), draw(small), draw(st.booleans())
    tokens, hidden, matrices = batch * seq, spec.hidden, 3 if spec.gated else 2
    x = torch.zeros(batch, seq, hidden, dtype=torch.bfloat16)
    module = nn.Sequential(nn.Linear(hidden, hidden), Mixture(spec))
    found = trace(module.bfloat16(), (x,), train=train)
    assert found.uncounted == ()
    routed = hidden * experts + spec.top_k * matrices * hidden * spec.ffn
    always = matrices * hidden * spec.shared_ffn + (hidden if spec.shared_gate else 0)
    forward = 2 * tokens * (hidden * hidden + routed + always)
    backward = 2 * forward - 2 * tokens * hidden * hidden  # the input needs no gradient
    assert (found.ledger.flops("forward"), found.ledger.flops("backward")) == (forward, backward if train else 0)
    nodes = (Linear(name="front", in_features=hidden, out_features=hidden, bias=True), *moe(spec))
    assert by_nouns(nodes, (Stream(name=TOKENS),), train, batch=batch, seq=seq) == (
        found.params.total, forward, backward if train else 0,
    )  # fmt: skip


# --- stacks of all kinds ------------------------------------------------------------------------------------------

LINKS: dict[str, tuple[str, Any]] = {
    "linear": ("linear(8, 8)", lambda: nn.Linear(8, 8)),
    "linear without bias": ("linear(8, 8, bias=false)", lambda: nn.Linear(8, 8, bias=False)),
    "wide": ("linear(8, 20) -> gelu -> linear(20, 8)",
             lambda: nn.Sequential(nn.Linear(8, 20), nn.GELU(), nn.Linear(20, 8))),
    "norm": ("layernorm(8)", lambda: nn.LayerNorm(8)),
    "rms": ("rmsnorm(8)", lambda: nn.RMSNorm(8)),
    "lstm": ("lstm(8, 4, layers=2, bidirectional)", lambda: nn.LSTM(8, 4, 2, bidirectional=True, batch_first=True)),
    "gru": ("gru(8, 8, bias=false)", lambda: nn.GRU(8, 8, bias=False, batch_first=True)),
    "rnn": ("rnn(8, 8)", lambda: nn.RNN(8, 8, batch_first=True)),
    "attention": ("attention(8, 2)", lambda: nn.MultiheadAttention(8, 2, batch_first=True)),
    "attention without bias": ("attention(8, 4, bias=false)",
                               lambda: nn.MultiheadAttention(8, 4, bias=False, batch_first=True)),
}  # fmt: skip


class Chain(nn.Module):
    """Links one after another, each given and giving [B, T, 8]."""

    def __init__(self, links: list[Any]) -> None:
        super().__init__()
        self.links = nn.ModuleList(links)

    def forward(self, x: Any) -> Any:
        for link in self.links:
            out = link(x, x, x, need_weights=False) if isinstance(link, nn.MultiheadAttention) else link(x)
            x = out[0] if isinstance(out, tuple) else out
        return x


@given(st.lists(st.sampled_from(list(LINKS)), min_size=1, max_size=6), small, small, st.sampled_from(["cpu", "meta"]))
@settings(max_examples=50, deadline=None)
def test_stacks_of_all_kinds(names: list[str], batch: int, seq: int, device: str) -> None:
    module = Chain([LINKS[name][1]() for name in names])
    found = trace(module, (torch.zeros(batch, seq, 8),), device=device, whole=False)
    assert found.uncounted == ()
    assert formula(" -> ".join(LINKS[name][0] for name in names), batch=batch, seq=seq) == (
        found.params.total, found.model_flops,
    )  # fmt: skip
