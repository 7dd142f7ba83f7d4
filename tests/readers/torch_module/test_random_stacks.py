"""Random layers with every option: formula (a layer expression), trace (the torch module), and arithmetic by hand."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.nouns.workload import Workload
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
    if made["rank"] > 1:  # of one number in brackets the grammar makes no tuple
        assert formula(text, batch=made["batch"]) == expected


@given(
    st.sampled_from(["lstm", "gru", "rnn"]), small, st.integers(2, 6), st.integers(1, 3), st.booleans(), st.booleans(),
    st.booleans(), small, small, st.sampled_from(["cpu", "meta"]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_recurrent_stacks(
    cell: str, wide: int, hidden: int, layers: int, both: bool, bias: bool, project: bool, batch: int, seq: int,
    device: str,
) -> None:  # fmt: skip
    proj = hidden - 1 if project and cell == "lstm" else 0
    gates, sides, out = {"lstm": 4, "gru": 3, "rnn": 1}[cell], 1 + both, proj or hidden
    options = {"proj_size": proj} if cell == "lstm" else {}
    module = getattr(nn, cell.upper())(wide, hidden, layers, bias=bias, batch_first=True, bidirectional=both, **options)
    text = f"{cell}({wide}, {hidden}, layers={layers}, bidirectional={word(both)}, bias={word(bias)}"
    widths = [wide] + [sides * out] * (layers - 1)
    weights = sides * sum(gates * hidden * (width + out) + proj * hidden for width in widths)
    expected = (weights + (sides * layers * 2 * gates * hidden if bias else 0), 2 * batch * seq * weights)
    assert formula(text + (f", proj={proj})" if proj else ")"), batch=batch, seq=seq) == expected
    found = trace(module, (torch.zeros(batch, seq, wide),), device=device)
    assert (found.params.total, found.model_flops) == expected


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
