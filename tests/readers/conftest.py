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
        yield f"{at}.{node.name}".strip("."), node.params
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


@pytest.fixture(scope="session")
def agrees(
    module_differences: Callable[..., list[str]], traced_flops: Callable[..., int], counted: Callable[..., int]
) -> Callable[..., None]:
    """Asserts that a config counts as its transformers class does: parameters leaf by leaf, FLOPs at each length.

    `inputs` gives the dimensions after the batch, "S" for the sequence: names with `ids` and masks of one dimension
    are whole numbers. `size` are keys that only our reader takes (a picture's or a sound's length).
    """
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from suanli.readers.hf import read_hf_config

    def fed(inputs: dict[str, Any], seq: int, device: str, dtype: Any) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, dims in inputs.items():
            if not isinstance(dims, tuple):
                made[name] = dims
                continue
            shape = (2, *(seq if each == "S" else each for each in dims))
            whole = name.endswith("_ids") or (name.endswith("mask") and len(dims) == 1)
            made[name] = torch.ones(shape, dtype=torch.long if whole else dtype, device=device)
        return made

    def check(
        model_type: str, name: str, values: dict[str, Any], inputs: dict[str, Any], *, size: dict[str, Any],
        lengths: tuple[int, ...], device: str, dtype: str,
    ) -> None:  # fmt: skip
        config = transformers.AutoConfig.for_model(model_type, **values)
        more = {} if device == "meta" else {"attn_implementation": "eager"}
        kind = getattr(torch, dtype)
        with torch.device(device):
            model = getattr(transformers, name)._from_config(config, dtype=kind, **more).eval().requires_grad_(False)
        arch = read_hf_config(config.to_dict() | size, "case")
        names: dict[int, list[str]] = {}
        for full, parameter in model.named_parameters(remove_duplicate=False):
            names.setdefault(id(parameter), []).append(full)
        ours = {path for path, params in _leaves(arch.root, "") if params}
        shared = {found[0]: _known(found, ours) for found in names.values()}  # a tied weight has several names
        assert module_differences(arch, model, lambda full: shared[full]) == []
        assert arch.params_total == sum(parameter.numel() for parameter in model.parameters())
        for seq in lengths:
            with torch.no_grad():
                seen = traced_flops(lambda: model(**fed(inputs, seq, device, kind)))  # noqa: B023
            assert counted(arch, seq=seq, batch=2) == seen

    return check


def _known(names: list[str], leaves: set[str]) -> str:
    """The name, of several for one tensor, that one of our leaves has; the first where none has."""

    def has_leaf(name: str) -> bool:
        parts = name.split(".")
        return any(".".join(parts[:n]) in leaves for n in range(1, len(parts) + 1))

    return next((name for name in names if has_leaf(name)), names[0])
