"""A model as the planner sees it: taken apart once, with its stack, workload and the policies of a layout."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from suanli.formulas.parallel import larger
from suanli.kept import FP32_BYTES
from suanli.nouns.arch import Arch
from suanli.nouns.stack import Stack
from suanli.nouns.workload import DTYPE_BITS, OPTIMIZER_MOMENTS, Workload
from suanli.plan.pieces import Parts, Piece, parts_of
from suanli.plan.sharding import Degrees, Held, Kept, Positions, Storage, held, kept, positions_of, taken
from suanli.units import BITS_PER_BYTE

Kind = TypeVar("Kind")
_WIDE = ("fp64", "fp32", "tf32")  # dtypes that training stores everything in; narrower ones are stored in 16 bits
_SIXTEEN_BIT_BYTES = 2
_MODELS = 8  # under a workload and a stack that are kept with an architecture
_MOST = 4096  # what is known of a model before all of it is forgotten
_SHARE = ("tp", "cp", "ep", "etp", "sp", "micro_batch", "vocab_multiple", "imbalance")  # what a rank keeps depends on


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model under a stack and a workload, taken apart once for all layouts."""

    parts: Parts
    positions: Positions
    stack: Stack
    workload: Workload
    fused_loss: bool | None = None

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What a rank of a single layout keeps and holds, by what it depends on, worked out before."""
        return {}

    @property
    def size(self) -> int:
        """Bytes of a weight as the matrices meet it, and of an activation."""
        wide = self.workload.dtype in _WIDE
        return DTYPE_BITS[self.workload.dtype] // BITS_PER_BYTE if wide else _SIXTEEN_BIT_BYTES

    @property
    def quantised(self) -> bool:
        """Whether matrices are multiplied in fewer than 16 bits."""
        return DTYPE_BITS[self.workload.dtype] < BITS_PER_BYTE * _SIXTEEN_BIT_BYTES

    @property
    def storage(self) -> Storage:
        """How activations are kept."""
        narrow = -(-DTYPE_BITS[self.workload.dtype] // BITS_PER_BYTE)
        matmul = narrow if self.quantised and self.stack.fp8_inputs else self.size
        return Storage(size=self.size, matmul_size=matmul, fused_gate=self.stack.fused_gate)

    @property
    def gradient_bytes(self) -> int:
        """Bytes of gradient held for a parameter."""
        dtype = "bf16" if self.quantised else self.workload.dtype
        return self.stack.gradient_bytes.get(dtype, self.size)

    @property
    def optimizer_bytes(self) -> int:
        """Bytes of optimizer state for a parameter: moments, and a master copy where weights are narrower."""
        wide = self.size >= FP32_BYTES or self.stack.fp32_weights or self.workload.optimizer == "none"
        return OPTIMIZER_MOMENTS[self.workload.optimizer] + (0 if wide else FP32_BYTES)

    @property
    def tail(self) -> int:
        """Last blocks that stay in 16 bits."""
        return math.ceil(self.stack.tail_fraction.get(self.workload.dtype, 0) * self.parts.num_layers)

    @property
    def logit_bytes(self) -> int:
        """Bytes held for a logit at the loss."""
        fused = self.stack.fused_loss if self.fused_loss is None else self.fused_loss
        return self.stack.fused_loss_logit_bytes if fused else self.stack.loss_logit_bytes


def model_of(arch: Arch, workload: Workload, stack: Stack, *, fused_loss: bool | None = None) -> Model:
    """The model ready for `stage_memory`, with all that is known of it from earlier questions."""
    kept: tuple[Model, ...] = arch.__dict__.get("_models", ())
    asked = (workload, stack, fused_loss)
    same = [each for each in kept if (each.workload, each.stack, each.fused_loss) == asked]
    model = same[0] if same else Model(
        parts=parts_of(arch), positions=positions_of(arch, workload), stack=stack, workload=workload,
        fused_loss=fused_loss,
    )  # fmt: skip
    object.__setattr__(arch, "_models", (model, *(each for each in kept if each is not model))[:_MODELS])
    return model


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What of a layout is no degree: recompute, offload, and whether tied tables are copied to the last stage."""

    recompute: str = "none"
    offload: bool = False
    copied: bool = field(default=False, metadata={"doc": "first and last stage are different ranks"})
    micro_batches: Any = 1
    whole: Any = field(default=0, metadata={"doc": "of sharded gradients, the part that stands whole meanwhile"})


@dataclass(frozen=True)
class Rank:
    """A model under degrees (numbers, or arrays): what is the same on every stage, worked out once."""

    model: Model
    at: Degrees

    def _kept(self, pieces: tuple[Piece, ...], copies: int = 1) -> Kept:
        return kept(pieces, self.model.positions, self.at, self.model.storage, copies)

    def _once(self, name: str, make: Callable[[], Kind]) -> Kind:
        """What `make` makes; of a single layout worked out once for all that share what it depends on."""
        if getattr(self.at.tp, "ndim", 0):
            return make()
        key, known = (name, *(getattr(self.at, axis) for axis in _SHARE)), self.model.known
        found: Kind | None = known.get(key)
        if found is None:
            if len(known) >= _MOST:
                known.clear()
            found = known[key] = make()
        return found

    @cached_property
    def blocks(self) -> tuple[Kept, ...]:
        """What one block of each kind keeps."""
        every = self.model.parts.blocks
        return self._once("blocks", lambda: tuple(self._kept(block.pieces, len(block.layers)) for block in every))

    @cached_property
    def outside(self) -> tuple[Kept, Kept]:
        """What lies before and after the blocks keeps."""
        parts = self.model.parts
        return self._once("outside", lambda: (self._kept(parts.before), self._kept(parts.after)))

    @cached_property
    def held_blocks(self) -> tuple[Held, ...]:
        """Parameters of one block of each kind."""
        every = self.model.parts.blocks
        return self._once("held", lambda: tuple(held(block.pieces, self.at, len(block.layers)) for block in every))

    @cached_property
    def held_outside(self) -> tuple[Held, Held]:
        """Parameters before and after the blocks, tied ones once."""
        parts = self.model.parts
        return self._once("ends", lambda: (held(parts.before, self.at), held(parts.after, self.at)))

    @cached_property
    def held_apart(self) -> Held:
        """Parameters after the blocks where the tables they share are on another rank."""
        return held(self.model.parts.after, self.at, untied=True)

    def sharded(self, zero: int) -> Rank:
        """The same under a ZeRO stage, on which none of what is worked out here depends."""
        found = Rank(self.model, replace(self.at, zero=zero))
        found.__dict__.update({name: value for name, value in self.__dict__.items() if name not in ("model", "at")})
        return found

    def take(self, places: Any) -> Rank:
        """Of arrays of degrees some, with what `held_states` asks for taken from what is known."""
        found = Rank(self.model, self.at.take(places))
        before, after = self.held_outside
        found.__dict__["held_outside"] = before.take(places), after.take(places)
        found.__dict__["largest_block"] = taken(self.largest_block, places)
        return found

    @cached_property
    def largest_block(self) -> Any:
        """Parameters of the largest block."""
        most: Any = 0
        for found in self.held_blocks:
            most = larger(most, found.dense + found.experts)
        return most
