"""What a training stack does with a device's time: facts about it, and the few numbers fitted to step times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _field(unit: str, doc: str, default: Any) -> Any:
    return field(default=default, metadata={"unit": unit, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Facts of a stack that no step time has to tell."""

    fused_attention: bool = _field("", "attention keeps no scores (flash)", True)
    dropout: bool = _field("", "dropout on scores and hidden states", False)
    fused_loss: bool = _field("", "cross entropy in one pass", True)
    gradient_bytes: int = _field("B", "one gradient as it is accumulated and exchanged", 4)
    weight_bytes: int = _field("B", "one weight as it is gathered", 2)
    state_bytes: int = _field("B", "read and written in the optimizer step for one parameter", 30)
    scatter_sends: bool = _field("", "activations between stages are cut over tp, sent and gathered again", True)
    overlaps_data: bool = _field("", "gradients and weights travel while micro-batches run", True)
    head_dtype: str = _field("", "dtype of the lm head's products", "bf16")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The numbers of a stack on a device. Factors multiply the time of the device's curves; `_exposed` is the share
    of a collective's time that nothing hides, slower collectives than the curve's included.
    """

    matmul: float = _field("", "products: sustained clocks against a micro-benchmark's", 1.1)
    attention: float = _field("", "attention kernels", 1.1)
    experts: float = _field("", "grouped products", 1.2)
    memory: float = _field("", "passes over memory: how many are not fused", 1.2)
    launch_s: float = _field("s", "host time of a kernel launch", 6e-6)
    span_s: float = _field("s", "host time of a collective inside a layer whose ranks sit under both sockets", 2e-5)
    tensor_exposed: float = _field("", "collectives over tp", 0.9)
    context_exposed: float = _field("", "keys and values over cp", 0.3)
    expert_exposed: float = _field("", "exchange over ep", 0.8)
    send_exposed: float = _field("", "activations between stages, in the steady state", 0.5)
    data_exposed: float = _field("", "gradients and weights over dp, where the stack overlaps them", 0.3)
    network: float = _field("", "collectives across nodes, against the curve's", 1.2)
    gather: float = _field("", "weights of ZeRO 3 across nodes, against the curve's", 1.5)
    optimizer: float = _field("", "optimizer step against one pass over its states", 1.3)
    imbalance: float = _field("", "the busiest expert rank's tokens over the mean", 1.0)
    micro_s: float = _field("s", "host time of a micro-batch on a stage", 1e-3)
    fixed_s: float = _field("s", "host time of a step: data, norms, logging", 0.03)

    def replaced(self, values: Mapping[str, float]) -> Profile:
        """The same with some numbers others."""
        return Profile(**{**self.__dict__, **values})
