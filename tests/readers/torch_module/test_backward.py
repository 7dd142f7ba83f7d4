"""Backward passes as autograd runs them: by what needs a gradient, with checkpoints, model and hardware apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.readers.torch_module import Traced, trace

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

pytestmark = pytest.mark.torch


def passes(traced: Traced) -> tuple[int, int, int]:
    """Forward, backward and recomputed FLOPs."""
    ledger = traced.ledger
    return tuple(ledger.flops(name, "hardware_flops") for name in ("forward", "backward", "recompute"))  # type: ignore[return-value]


def executed(module: Any, *inputs: Any) -> int:
    """FLOPs of forward and backward that torch's own counter sees."""
    with FlopCounterMode(display=False) as counter:
        module(*inputs).sum().backward()
    return counter.get_total_flops()


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


KINDS = ["linear", "mlp", "norm", "lora", "attention", "lstm", "gru", "projected"]


@st.composite
def models(draw: st.DrawFn, checkpoints: bool) -> tuple[Any, bool]:
    # torch unrolls a projected stack and can stop inside its last step; as one operator it is run again whole
    kinds = KINDS[:-1] if checkpoints else KINDS
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
@settings(max_examples=25, deadline=None)
def test_random_freezing(made: tuple[Any, bool]) -> None:
    check_equal_to_torch(*made)


@given(models(checkpoints=True))
@settings(max_examples=25, deadline=None)
def test_random_freezing_and_checkpoints(made: tuple[Any, bool]) -> None:
    check_equal_to_torch(*made)
