"""The tensors of a weight file as its header names them: dtype, shape and bytes, and never a weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from suanli.nouns.arch import Arch


@dataclass(frozen=True, slots=True)
class Tensor:
    """One stored tensor. `integer` dtypes may be indices or packed weights, not parameters as such."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    integer: bool = False

    @property
    def elements(self) -> int:
        """Elements, 1 for a scalar."""
        return prod(self.shape)


@dataclass(frozen=True, kw_only=True)
class TensorTable:
    """A weight file or a set of shards. `arch` is set where metadata describe the model and its count agrees;
    else `arch_missing` says why not.
    """

    name: str
    format: str
    tensors: tuple[Tensor, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    arch: Arch | None = None
    arch_missing: str = ""
    notes: tuple[str, ...] = ()

    @property
    def elements(self) -> int:
        """Elements of all tensors."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors)
