"""Backward passes as autograd runs them: by what needs a gradient, with checkpoints, model and hardware apart."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.readers.torch_module import Traced, trace

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

pytestmark = pytest.mark.torch


def passes(traced: Traced) -> tuple[int, int, int]:
    """Forward, backward and recomputed FLOPs."""
    ledger = traced.ledger
    return tuple(ledger.flops(name, "hardware_flops") for name in ("forward", "backward", "recompute"))  # type: ignore[return-value]


class Executed(TorchDispatchMode):  # type: ignore[misc]
    """FLOPs of every product that torch runs, counted here from the operators' own arguments.

    torch's own counter takes a grouped convolution's backward for an ungrouped one and does not know grouped products.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        if name in MATRICES:
            left, right = args[MATRICES[name] : MATRICES[name] + 2]
            self.flops += 2 * prod(left.shape) * right.shape[-1]
        elif name == "_grouped_mm":
            self.flops += 2 * prod(args[0].shape) * args[1].shape[-1]
        elif name == "convolution":
            self.flops += self.conv(args[0], out, args[1], args[6])
        elif name == "convolution_backward":
            self.flops += sum(args[10][:2]) * self.conv(args[1], args[0], args[2], args[7])
        else:
            assert not any(word in name for word in ("mm", "conv", "attention", "lstm", "rnn", "mv", "dot")), name
        return out

    def conv(self, x: Any, out: Any, weight: Any, transposed: bool) -> int:
        """Every kernel element once for each place of the result; of the input where it is transposed."""
        return 2 * prod(weight.shape) * x.shape[0] * prod((x if transposed else out).shape[2:])


MATRICES = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}


def executed(module: Any, *inputs: Any) -> int:
    """FLOPs of forward and backward that torch runs."""
    with Executed() as counter:
        module(*inputs).sum().backward()
    return counter.flops


def test_the_independent_count_agrees_with_torchs_own_where_that_is_right() -> None:
    """And not where it is wrong: 22 times too many for a depthwise convolution's backward."""
    x = torch.zeros(2, 3, 16, device="meta", requires_grad=True)
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(16, 2, 24, batch_first=True)
        depthwise = nn.Conv2d(64, 64, 3, padding=1, groups=64, bias=False)
        picture = torch.zeros(1, 64, 56, 56, requires_grad=True)
    for module, given_, same in ((layer, x, True), (depthwise, picture, False)):
        with FlopCounterMode(display=False) as theirs:
            module(given_).sum().backward()
        assert (executed(module, given_) == theirs.get_total_flops()) == same
    assert executed(depthwise, picture) == 10_838_016


def test_depthwise_convolution() -> None:
    """pytorch 183405: torch's own counter says 238,436,352, as if there were no groups."""
    x = torch.zeros(1, 64, 56, 56, requires_grad=True)
    traced = trace(nn.Conv2d(64, 64, 3, padding=1, groups=64, bias=False), (x,), train=True)
    assert passes(traced) == (3_612_672, 7_225_344, 0)
    assert traced.model_flops == 10_838_016


def test_transposed_convolution() -> None:
    x = torch.zeros(6, 192, 30, 96, requires_grad=True)  # pytorch 119806
    traced = trace(nn.ConvTranspose2d(192, 384, 2, 2, bias=False), (x,), train=True)
    assert traced.model_flops == 30_576_476_160


class Lora(nn.Module):
    """A frozen square matrix with a trained way around it."""

    def __init__(self, width: int = 256, rank: int = 8) -> None:
        super().__init__()
        self.base = nn.Linear(width, width, bias=False).requires_grad_(False)
        self.down, self.up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.up(self.down(x))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_adapters_on_a_frozen_model(device: str) -> None:
    """calflops 30: the first input needs no gradient, so one dx of its three linears is missing."""
    traced = trace(nn.Sequential(*(Lora() for _ in range(3))), (torch.zeros(32, 256),), train=True, device=device)
    base, small = 2 * 32 * 256 * 256, 2 * 32 * 256 * 8
    assert traced.model_flops == 5 * base + (6 + 12 - 1) * small == 23_199_744


class Checkpointed(nn.Module):
    """Linears, some of whose neighbours are run again in backward."""

    def __init__(self, groups: list[list[Any]], reentrant: bool = False, again: list[bool] | None = None) -> None:
        super().__init__()
        self.groups = nn.ModuleList(nn.Sequential(*group) for group in groups)
        self.again = again or [True] * len(groups)
        self.reentrant = reentrant

    def forward(self, x: Any) -> Any:
        for group, again in zip(self.groups, self.again, strict=True):
            x = checkpoint(group, x, use_reentrant=self.reentrant) if again else group(x)
        return x


def linears(n: int) -> list[Any]:
    return [nn.Linear(16, 16, bias=False) for _ in range(n)]


UNIT = 2 * 4 * 16 * 16


def test_checkpointing_stops_early() -> None:
    """Four linears: 4 forward, 8 back, and the last is not run again: 15 where the rule says 16."""
    x = torch.zeros(4, 16, requires_grad=True)
    assert passes(trace(Checkpointed([linears(4)]), (x,), train=True)) == (4 * UNIT, 8 * UNIT, 3 * UNIT)


def test_reentrant_checkpointing_runs_all_again() -> None:
    x = torch.zeros(4, 16, requires_grad=True)
    found = passes(trace(Checkpointed([linears(4)], reentrant=True), (x,), train=True))
    assert found == (4 * UNIT, 8 * UNIT, 4 * UNIT)


def test_a_function_that_is_checkpointed_is_seen_too() -> None:
    class Raw(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.zeros(16, 16)), nn.Parameter(torch.zeros(16, 16))

        def forward(self, x: Any) -> Any:
            return checkpoint(lambda x: (x @ self.a).relu() @ self.b, x, use_reentrant=False)

    traced = trace(Raw(), (torch.zeros(4, 16, requires_grad=True),), train=True)
    assert passes(traced) == (2 * UNIT, 4 * UNIT, UNIT)


def test_attention_that_is_run_again_is_no_model_work() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    x = torch.zeros(2, 6, 32, requires_grad=True)
    plain = trace(layer, (x,), train=True)
    again = trace(Checkpointed([[layer]]), (x,), train=True)
    assert again.model_flops == plain.model_flops
    assert passes(again)[2] == passes(plain)[0]  # all of it: the norm at its end keeps what the last product gives


def test_gradients_belong_to_the_module_they_are_of() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Sequential(nn.ReLU(), nn.Linear(5, 7)))
    rows = trace(model, (torch.zeros(2, 3),), train=True).ledger.rows
    found = {(row.path, row.pass_): row.model_flops for row in rows if row.model_flops}
    assert found == {
        ("0", "forward"): 2 * 2 * 15, ("0", "backward"): 2 * 2 * 15,
        ("1.1", "forward"): 2 * 2 * 35, ("1.1", "backward"): 2 * 2 * 2 * 35,
    }  # fmt: skip


# --- random freezing and checkpoints: equal to what torch executes --------------------------------------------------

WIDTH = 8


def block(kind: str) -> Any:
    makers = {
        "linear": lambda: nn.Linear(WIDTH, WIDTH),
        "mlp": lambda: nn.Sequential(nn.Linear(WIDTH, 12), nn.GELU(), nn.Linear(12, WIDTH, bias=False)),
        "norm": lambda: nn.LayerNorm(WIDTH),
        "lora": lambda: Lora(WIDTH, 2),
        "attention": lambda: nn.TransformerEncoderLayer(WIDTH, 2, 12, batch_first=True, dropout=0.0),
        "lstm": lambda: First(nn.LSTM(WIDTH, WIDTH, 2, batch_first=True)),
        "gru": lambda: First(nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)),
        "rnn": lambda: First(nn.RNN(WIDTH, WIDTH, 2, nonlinearity="relu", batch_first=True)),
        "both ways": lambda: First(nn.LSTM(WIDTH, WIDTH // 2, bias=False, batch_first=True, bidirectional=True)),
        "conv": lambda: Turned(nn.Conv1d(WIDTH, WIDTH, 3, padding=1, groups=2)),
        "depthwise": lambda: Turned(nn.Conv1d(WIDTH, WIDTH, 3, padding=2, dilation=2, groups=WIDTH, bias=False)),
        "transposed": lambda: Turned(nn.ConvTranspose1d(WIDTH, WIDTH, 3, padding=1, groups=4)),
        "self": lambda: Self(nn.MultiheadAttention(WIDTH, 4, batch_first=True)),
        "causal": lambda: Grouped(4, 2, causal=True),
        "grouped": lambda: Grouped(4, 1, causal=False),
        "experts": Experts,
        "contracted": Contracted,
        "projected": lambda: First(nn.LSTM(WIDTH, 12, proj_size=WIDTH, batch_first=True)),
    }
    return makers[kind]()


class First(nn.Module):
    """The first result of a module that gives several."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x)[0]


class Turned(nn.Module):
    """A convolution along the positions."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


class Self(nn.Module):
    """Attention to itself, without the weights being asked for."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x, x, x, need_weights=False)[0]


class Grouped(nn.Module):
    """Attention with fewer keys' heads than queries'."""

    def __init__(self, heads: int, kv_heads: int, causal: bool) -> None:
        super().__init__()
        wide = WIDTH // heads * kv_heads
        self.q, self.k, self.v = (nn.Linear(WIDTH, size) for size in (WIDTH, wide, wide))
        self.causal = causal

    def forward(self, x: Any) -> Any:
        q, k, v = (part(x).unflatten(-1, (-1, 2)).transpose(1, 2) for part in (self.q, self.k, self.v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=True)
        return mixed.transpose(1, 2).flatten(2)


class Experts(nn.Module):
    """Two of four experts for every position, and one that all share."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.shared = nn.Linear(WIDTH, 4, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Parameter(torch.zeros(4, WIDTH, 16))
        self.down = nn.Parameter(torch.zeros(4, 16, WIDTH))

    def forward(self, x: Any) -> Any:
        rows = x.flatten(0, 1)
        weight, chosen = self.router(rows).softmax(-1).topk(2, -1)
        order = chosen.flatten().argsort()
        picked = rows.repeat_interleave(2, 0)[order].bfloat16()
        ends = torch.zeros(4, dtype=torch.int32, device=x.device)
        inner = torch._grouped_mm(picked, self.up.bfloat16(), offs=ends).relu()
        out = torch._grouped_mm(inner, self.down.bfloat16(), offs=ends).to(x.dtype) * weight.flatten()[order][:, None]
        return self.shared(x) + torch.zeros_like(rows).index_add(0, order // 2, out).view_as(x)


class Contracted(nn.Module):
    """A product written as a sum over indices."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, WIDTH // 2, WIDTH))

    def forward(self, x: Any) -> Any:
        return torch.einsum("bthd,hde->bte", x.unflatten(-1, (2, -1)), self.weight)


KINDS = [
    "linear", "mlp", "norm", "lora", "attention", "lstm", "gru", "rnn", "both ways", "conv", "depthwise", "transposed",
    "self", "causal", "grouped", "experts", "contracted", "projected",
]  # fmt: skip


INSIDE = {"projected", "self", "causal", "grouped"}


@st.composite
def models(draw: st.DrawFn, checkpoints: bool) -> tuple[Any, bool]:
    # on meta torch unrolls a projected stack and takes attention apart, and can stop inside; as one kernel each is run
    # again whole
    kinds = [kind for kind in KINDS if kind not in INSIDE] if checkpoints else KINDS
    groups = draw(st.lists(st.lists(st.sampled_from(kinds), min_size=1, max_size=3), min_size=1, max_size=3))
    again = [checkpoints and draw(st.booleans()) for _ in groups]
    with torch.device("meta"):
        model = Checkpointed([[block(kind) for kind in group] for group in groups], again=again)
    for parameter in model.parameters():
        parameter.requires_grad_(draw(st.booleans()))
    return model, draw(st.booleans())


def check_equal_to_torch(model: Any, input_trained: bool) -> None:
    """Hardware FLOPs are those torch executes on the meta device, where it unrolls recurrent stacks."""
    x = torch.zeros(2, 3, WIDTH, device="meta", requires_grad=input_trained)
    if not input_trained and not any(parameter.requires_grad for parameter in model.parameters()):
        return
    traced = trace(model, (x,), train=True)
    assert traced.hardware_flops == executed(model.train(), x)
    plain = Checkpointed([list(group) for group in model.groups], again=[False] * len(model.groups))
    assert traced.model_flops == executed(plain.train(), x)


@given(models(checkpoints=False))
@settings(max_examples=40, deadline=None)
def test_random_freezing(made: tuple[Any, bool]) -> None:
    check_equal_to_torch(*made)


@given(models(checkpoints=True))
@settings(max_examples=40, deadline=None)
def test_random_freezing_and_checkpoints(made: tuple[Any, bool]) -> None:
    check_equal_to_torch(*made)
