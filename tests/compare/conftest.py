"""Small modules that other processes can import by name, and calls written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

MODULES = '''
import os, time
import torch
from torch import nn
from torch.nn import functional as F


class Raw(nn.Module):
    """A weight that is no layer's, a product of two activations, fused attention."""

    def __init__(self):
        super().__init__()
        self.own = nn.Parameter(torch.zeros(16, 32))
        self.norm = nn.LayerNorm(16)

    def forward(self, x):  # [2, 8, 32]
        y = self.norm(F.linear(x, self.own))  # [2, 8, 16]
        heads = y.view(2, 8, 2, 8).transpose(1, 2)
        attended = F.scaled_dot_product_attention(heads, heads, heads)
        return F.gelu(torch.matmul(attended, attended.transpose(-1, -2))) + (attended @ attended.transpose(-1, -2))


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(50, 8), nn.Linear(8, 50)

    def forward(self, ids):
        return self.head(self.table(ids)).softmax(-1)


def raw():
    return Raw(), torch.zeros(2, 8, 32)


def tables():
    return Tables(), torch.zeros(1, 6, dtype=torch.int64)


def picture():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.ConvTranspose2d(8, 4, 2, stride=2, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10),
    )
    return net, torch.zeros(2, 3, 8, 8)


def recurrent():
    return nn.LSTM(12, 16, num_layers=2, batch_first=True), torch.zeros(2, 5, 12)


class Sleeps(nn.Module):
    def forward(self, x):
        time.sleep(600)


class Dies(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), 9)


class Raises(nn.Module):
    def forward(self, x):
        raise ValueError("no forward today")


class Hoards(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x) + torch.ones(2**31, device="cpu").sum()


def sleeps():
    return Sleeps(), torch.zeros(1, 2)


def dies():
    return Dies(), torch.zeros(1, 2)


def raises():
    return Raises(), torch.zeros(1, 2)


def hoards():
    return Hoards(), torch.zeros(1, 4)
'''


@pytest.fixture(scope="session")
def modules_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the modules lie."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "compared_modules.py").write_text(MODULES, encoding="utf-8")
    return folder


@pytest.fixture
def modules(modules_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name under which the modules can be imported from the working folder."""
    monkeypatch.chdir(modules_folder)
    return "torch:compared_modules"


def operator(name: str, args: dict[str, Any], out: Any, flops: int = 0, **more: Any) -> dict[str, Any]:
    """An operator call as the record has it."""
    products = [[name, more.pop("kind", "linear"), flops]] if flops else []
    return {
        "height": "operator", "path": "m", "name": name, "args": args, "out": out, "products": products, "times": 1,
        **more,
    }  # fmt: skip


def module(name: str, args: list[Any], out: Any, params: dict[str, list[int]], **more: Any) -> dict[str, Any]:
    """A module call as the record has it."""
    said = more.pop("said", {})
    return {
        "height": "module", "path": "m", "name": name, "plain": True, "leaf": True, "args": args, "out": out,
        "params": params, "said": said, "times": 1, **more,
    }  # fmt: skip
