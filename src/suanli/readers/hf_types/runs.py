"""A class of transformers built on the meta device (or small on the CPU, where it looks at values) and run once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from suanli.errors import ConfigError, Fault, SuanliError
from suanli.nouns.arch import Arch
from suanli.nouns.ledger import Ledger
from suanli.readers.hf_types.configs import file_values
from suanli.readers.hf_types.mappings import MAPPINGS, TypeOfTask
from suanli.readers.torch_module import hf_meta
from suanli.readers.torch_module.books import Traced
from suanli.readers.torch_module.hf_inputs import Asked, forward_inputs, size_keys
from suanli.readers.torch_module.trace import ModuleError, Options, trace_copy
from suanli.readers.torch_module.whole_numbers import whole_numbers

_FEATURES = re.compile(r"features: (\d+)")
SECONDS = 60.0  # of one run
SMALL_PARAMS = 20_000_000  # of a model that may be run with real weights


@dataclass(frozen=True)
class Built:
    """A model of transformers on meta, its config as a file would hold it, and what it was made from."""

    task: TypeOfTask
    keys: Mapping[str, Any]
    model: Any
    values: dict[str, Any]
    params: int


@dataclass(frozen=True)
class Ran:
    """A forward pass traced."""

    ledger: Ledger
    flops: int
    of: str
    missing: tuple[str, ...]
    whole: bool


def build(task: TypeOfTask, keys: Mapping[str, Any], *, dtype: str = "bfloat16", device: str = "meta") -> Built:
    """The class of a type on the keys given and its own defaults. Raises ConfigError."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    head = MAPPINGS[task.mapping][1]
    config = {**keys, "model_type": task.model_type, "architectures": [task.class_name]}
    try:
        with whole_numbers():
            model = hf_meta.build_model(config, head=head, dtype=dtype, device=device)
    except SuanliError:
        raise
    except Exception as problem:
        raise ConfigError(
            Fault(code="cannot_build", message=f"{type(problem).__name__}: {str(problem)[:200]}", where=task.model_type)
        ) from problem
    model = model.eval().requires_grad_(False)
    values = _described(task, keys, model)
    return Built(task, keys, model, values, sum(each.numel() for each in model.parameters()))


def _described(task: TypeOfTask, keys: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """The whole config, also where the class was built from a part of it."""
    from transformers import AutoConfig  # noqa: PLC0415

    whole = AutoConfig.for_model(task.model_type, **keys)  # the model's own may be a part of it
    return file_values(whole) | {"model_type": task.model_type, "architectures": [type(model).__name__]}


def sizes(built: Built, seq: int, *, second: bool) -> dict[str, Any]:
    """The size of the picture or sound of a run, in the keys of readers."""
    return size_keys(Asked(model=built.model, values=built.values, seq=seq, second=second))


def kept_bytes(built: Built, seq: int, keys: Mapping[str, Any]) -> dict[str, int]:
    """Bytes autograd keeps for backward of one forward pass in training, by module. Raises ModuleError."""
    fed = Asked(model=built.model, values=built.values, seq=seq, keys=keys)
    model = built.model.train().requires_grad_(True)
    hf_meta.drop_cache(model)
    options = Options(train=True, device="meta", no_padding=True, values=True, whole=True, time_limit=SECONDS)
    return dict(trace_copy(model, (), next(forward_inputs(fed)), options).kept_bytes)


@dataclass(frozen=True)
class _Pass:
    """A forward pass that is asked for."""

    seq: int
    keys: Mapping[str, Any]
    extra: int
    second: bool


def run(built: Built, seq: int, keys: Mapping[str, Any], arch: Arch | None, *, second: bool, whole: bool) -> Ran:
    """One forward pass, on meta, and where that cannot be on the CPU. Raises the first way's error."""
    if arch is None:
        return _counted_by_class(built, _Pass(seq, keys, 0, second), whole)
    extra = max((stream.extra for stream in arch.streams), default=0)
    return _on_any(built, _Pass(seq, keys, extra, second), whole)


def _counted_by_class(built: Built, asked: _Pass, whole: bool) -> Ran:
    """A run of a type without a formula: how many tokens its picture makes, the class says when it is given too few."""
    try:
        return _on_any(built, asked, whole)
    except SuanliError as problem:
        told = _FEATURES.search(problem.faults[0].message)
        if told is None:
            raise
        return _on_any(built, replace(asked, extra=int(told[1])), whole)


def _on_any(built: Built, asked: _Pass, whole: bool) -> Ran:
    """Shortened if told, whole, in full precision, with real weights: the first that runs."""
    try:
        return _first_way(built, asked, whole, "meta")
    except SuanliError as problem:
        if not whole:  # a model that picks layers out of the middle runs only whole; the short run left marks on it
            return _on_any(build(built.task, built.keys), asked, True)
        other, device = _other_build(built, problem)
        if other is None:
            raise
        try:
            return _first_way(other, asked, True, device)
        except SuanliError:
            raise problem from None


def _other_build(built: Built, problem: SuanliError) -> tuple[Built | None, str]:
    """The model again as it might run: in full precision, or small with real weights."""
    said = problem.faults[0].message
    if any(word in said for word in ("scalar type", "same dtype", "BFloat16", "float != ", "dtype")):
        return build(built.task, built.keys, dtype="float32"), "meta"
    if getattr(problem, "needs_values", False) and built.params <= SMALL_PARAMS:
        return build(built.task, built.keys, dtype="float32", device="cpu"), "cpu"
    return None, ""


def _first_way(built: Built, asked: _Pass, whole: bool, device: str) -> Ran:
    """The first of the ways to call it that the model takes."""
    fed = Asked(
        model=built.model, values=built.values, seq=asked.seq, second=asked.second, extra=asked.extra, keys=asked.keys
    )
    options = Options(device=device, no_padding=True, values=True, whole=whole, time_limit=SECONDS)
    first: ModuleError | None = None
    for inputs in forward_inputs(fed):
        try:
            traced = hf_meta.run_inputs(built.model, inputs, options)
        except ModuleError as problem:
            first = first or problem
            continue
        return _ran(traced, asked.keys, inputs, whole)
    assert first is not None
    raise first


def _ran(traced: Traced, keys: Mapping[str, Any], inputs: Mapping[str, Any], whole: bool) -> Ran:
    ledger = traced.ledger
    shapes = {name: "x".join(map(str, value.shape)) for name, value in inputs.items() if name in _SENSES}
    of = ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or str(keys or "")
    missing = tuple(each.what for each in traced.missing)
    return Ran(ledger, ledger.hardware_flops, of, missing, whole)


_SENSES = ("pixel_values", "input_features", "input_values", "flattened_patches", "pixel_values_images")
