"""The registry of formulas: one function a quantity, with its id, unit, expression, legend and source.

`suanli why ID` and docs/formulas.md are made from what is registered here, so neither can outlive the code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Formula:
    """A registered function. `legend` says for every argument its letter, meaning and unit."""

    id: str
    unit: str
    expression: str
    source: str
    legend: Mapping[str, str]
    function: Callable[..., Any]

    @property
    def doc(self) -> str:
        """First line of the docstring: what the quantity is."""
        return (inspect.getdoc(self.function) or "").split("\n")[0]


_FORMULAS: dict[str, Formula] = {}

# One legend for the whole project; a formula's arguments are looked up here unless it says otherwise.
LEGEND = {
    "batch": "B: sequences in the batch",
    "seq": "s: positions in a sequence",
    "tokens": "T: tokens (positions) in all",
    "queries": "T: query positions of one sequence",
    "keys": "S: key positions of one sequence",
    "pairs": "P: (query, key) pairs attended, over the batch",
    "num_layers": "L: layers",
    "hidden": "h: width of the model",
    "heads": "H: attention heads",
    "kv_heads": "K: key/value heads",
    "head_dim": "d: width of a head",
    "qk_dim": "d_qk: width of a query or key head",
    "v_dim": "d_v: width of a value head",
    "ffn": "f: inner width of the MLP",
    "vocab": "V: vocabulary",
    "params": "N: parameters",
    "in_features": "I: inputs of the matrix",
    "out_features": "O: outputs of the matrix",
    "window": "w: positions a query sees, itself included",
    "chunk": "c: length of an attention chunk",
    "experts_per_token": "k: experts a token passes through",
    "matrices": "m: matrices of the MLP, 3 when gated, else 2",
    "flops": "F: operations [FLOPs]",
    "flop_per_s": "X: achieved rate of one GPU [FLOP/s]",
    "peak_flop_per_s": "P: dense peak of one GPU [FLOP/s]",
    "gpus": "n: GPUs",
    "seconds": "t: time [s]",
    "mfu": "MFU: model FLOPs utilisation, 0..1",
    "goodput": "g: useful part of wall time, 0..1",
    "bytes_per_element": "b: bytes of one number",
}


def formula(
    *, unit: str, expression: str, source: str, legend: Mapping[str, str] | None = None
) -> Callable[[Function], Function]:
    """Register the decorated function under its own name.

    A duplicate id, or an argument that no legend explains, is a mistake of ours and fails at import.
    """

    def register(function: Function) -> Function:
        name = function.__name__
        assert name not in _FORMULAS, f"formula {name} is registered twice"
        words = {**LEGEND, **(legend or {})}
        arguments = list(inspect.signature(function).parameters)
        missing = [argument for argument in arguments if argument not in words]
        assert not missing, f"formula {name}: no legend for {missing}"
        explained = {argument: words[argument] for argument in arguments}
        _FORMULAS[name] = Formula(name, unit, expression, source, explained, function)
        return function

    return register


def all_formulas() -> dict[str, Formula]:
    """Every registered formula by id, in order of registration."""
    return dict(_FORMULAS)
