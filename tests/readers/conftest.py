"""What the differential tests share: our leaves by full name, torch's parameters and FLOPs on the meta device."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Layer
from suanli.nouns.workload import Workload

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


def _leaves(node: Module | Layer, at: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, Layer):
        yield f"{at}.{node.name}".lstrip("."), node.params
        return
    for place in [""] if node.indices is None else [f".{index}" for index in node.indices]:
        here = f"{at}.{node.name}{place}".strip(".") if node.name else at
        for child in node.children:
            yield from _leaves(child, here)


def _module_differences(arch: Arch, model: Any, spelled: Callable[[str], str] = lambda name: name) -> list[str]:
    ours: dict[str, int] = {}
    for path, params in _leaves(arch.root, ""):
        if params:
            ours[path] = ours.get(path, 0) + params
    theirs: dict[str, int] = dict.fromkeys(ours, 0)
    wrong = []
    for name, parameter in model.named_parameters():
        parts = spelled(name).split(".")
        prefixes = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
        leaf = next((prefix for prefix in prefixes if prefix in ours), None)
        if leaf is None:
            wrong.append(f"{name} {tuple(parameter.shape)}: no such leaf")
        else:
            theirs[leaf] += parameter.numel()
    return wrong + [f"{path}: ours {n:,}, torch {theirs[path]:,}" for path, n in ours.items() if n != theirs[path]]


@pytest.fixture(scope="session")
def module_differences() -> Callable[..., list[str]]:
    """Every leaf whose parameters are not those of the torch module of the same name; empty when all agree."""
    return _module_differences


@pytest.fixture(scope="session")
def traced_flops() -> Callable[..., int]:
    """FLOPs that torch's dispatcher sees, with the grouped matmul that its registry lacks."""
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    def grouped_mm(a: Any, b: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return 2 * a[0] * a[1] * b[-1]  # every row is multiplied by the matrix of its own expert

    def trace(run: Callable[[], Any]) -> int:
        with FlopCounterMode(display=False, custom_mapping={torch.ops.aten._grouped_mm: grouped_mm}) as counter:
            run()
        return counter.get_total_flops()

    return trace


@pytest.fixture(scope="session")
def counted() -> Callable[..., int]:
    """Our FLOPs under convention `full`."""

    def count(arch: Arch, **workload: Any) -> int:
        return build_ledger(arch, Workload(**workload), find_convention("full")).model_flops

    return count
