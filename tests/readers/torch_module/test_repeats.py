"""Equal layers run once and twice give what all of them give; where they do not just add up, all are run."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.readers.torch_module import Traced, repeats, trace

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = pytest.mark.torch


class Stack(nn.Module):
    """Layers of a list one after another, then a head."""

    def __init__(self, layers: list[Any], order: Any = None) -> None:
        super().__init__()
        self.layers, self.head, self.order = nn.ModuleList(layers), nn.Linear(16, 3), order

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def layer(wide: int = 24, **options: Any) -> Any:
    return nn.TransformerEncoderLayer(16, 2, wide, batch_first=True, **options)


def totals(traced: Traced) -> Any:
    """All that must not depend on how it was run."""
    ledger = traced.ledger
    passes = {name: ledger.flops(name, "hardware_flops") for name in ("forward", "backward", "recompute")}
    moved = sum(row.read_bytes + row.write_bytes for row in ledger.rows)
    calls = sum(row.calls for row in ledger.rows)
    return passes, ledger.model_flops, moved, calls, ledger.params, traced.params, traced.activation_bytes


X = torch.zeros(2, 5, 16)
STACKS = {
    "equal": lambda: [layer() for _ in range(7)],
    "two kinds, mixed": lambda: [layer(24 if index % 3 else 40) for index in range(9)],
    "the first half frozen": lambda: [layer().requires_grad_(index > 7) for index in range(16)],
    "frozen in between": lambda: [layer().requires_grad_(index % 2 == 0) for index in range(16)],
}


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", STACKS)
def test_as_all_of_them(name: str, train: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    shortened: list[bool] = []
    real = repeats.run_repeated

    def spied(stacks: Any, run: Any) -> Any:
        found = real(stacks, run)
        shortened.append(found is not None)
        return found

    monkeypatch.setattr(repeats, "run_repeated", spied)
    model = Stack(STACKS[name]())
    short, whole = trace(model, X, train=train, whole=False), trace(model, X, train=train)
    assert shortened == [True]
    assert totals(short) == totals(whole)
    assert sorted(map(repr, short.ledger.rows)) == sorted(map(repr, whole.ledger.rows))


def test_paths_say_which_layers_they_are_of() -> None:
    rows = trace(Stack(STACKS["equal"]()), X).ledger.rows
    row = next(row for row in rows if row.path == "layers.0-6.linear1" and row.model_flops)
    assert (row.times, row.params, row.model_flops) == (7, 7 * (16 * 24 + 24), 7 * 2 * 10 * 16 * 24)


class Shrinking(nn.Module):
    """Equal weights on ever fewer positions."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: Any) -> Any:
        for each in self.layers:
            x = each(x)[:, ::2]
        return x


class Indexed(nn.Module):
    """Layers asked for by number, the last first: a shortened list fails."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(5))

    def forward(self, x: Any) -> Any:
        return sum(self.layers[index](x) for index in (4, 3, 2, 1, 0))


class Twice(nn.Module):
    """Every layer runs as often as there are layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: Any) -> Any:
        for _ in range(len(self.layers)):
            for each in self.layers:
                x = each(x)
        return x


class Growing(nn.Module):
    """What comes after the list depends on how long it is."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))
        self.head = nn.Linear(16, 2)

    def forward(self, x: Any) -> Any:
        return self.head(torch.cat([each(x) for each in self.layers], 1))


class EveryThird(nn.Module):
    """Something else after every third layer, which the first two do not show."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(6))
        self.between = nn.Linear(16, 16)

    def forward(self, x: Any) -> Any:
        for index, each in enumerate(self.layers):
            x = each(x)
            if index % 3 == 2:
                x = self.between(x)
        return x


def test_a_layer_s_number_may_matter() -> None:
    """Six layers and two between, on 10 positions of 16."""
    assert trace(EveryThird(), X).ledger.model_flops == 8 * 2 * 10 * 16 * 16


@pytest.mark.parametrize("build", [Shrinking, Indexed, Twice, Growing])
def test_layers_that_do_not_add_up_are_all_run(build: Any) -> None:
    model = build()
    assert totals(trace(model, X, train=True, whole=False)) == totals(trace(model, X, train=True))


def test_nothing_of_the_model_is_changed() -> None:
    model = Stack(STACKS["equal"]())
    names = [name for name, _ in model.named_modules()]
    model.eval()
    trace(model, X, train=True)
    assert [name for name, _ in model.named_modules()] == names
    assert not model.training and all(parameter.grad is None for parameter in model.parameters())
