"""What a training stack does with a device's time: facts about it, and the few numbers fitted to step times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any


def _field(unit: str, doc: str, default: Any, spread: float = 0.0) -> Any:
    return field(default=default, metadata={"unit": unit, "doc": doc, "spread": spread})


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Facts of a stack that no step time has to tell."""

    fused_attention: bool = _field("", "attention keeps no scores (flash)", True)
    dropout: bool = _field("", "dropout on scores and hidden states", False)
    fused_loss: bool = _field("", "cross entropy in one pass", True)
    gradient_bytes: int = _field("B", "one gradient as it is accumulated and exchanged", 4)
    weight_bytes: int = _field("B", "one weight or activation as it is sent", 2)
    state_bytes: int = _field("B", "read and written in the optimizer step for one parameter", 30)
    host_bytes_per_s: float = _field("B/s", "optimizer states in the host's memory, a GPU's share of it", 20e9)
    scatter_sends: bool = _field("", "activations between stages are cut over tp, sent and gathered again", True)
    overlaps_data: bool = _field("", "gradients and weights travel while micro-batches run", True)
    scatters: str = _field("", "when gradients that ZeRO shards are scattered, as nouns/stack.py has it", "micro-batch")
    pipeline_scatters: str = _field("", "the same with a pipeline", "micro-batch")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The numbers of a stack on a device. Factors multiply the time of the device's curves; `_exposed` is the share
    of a collective's time that nothing hides, slower collectives than the curve's included.

    The defaults are what is believed before any step time is seen, and `spread` (of the logarithm) is how surely:
    kernels run at 0.8 to 1 of a micro-benchmark's rate in long runs, overlaps and host times differ by factors.
    """

    matmul: float = _field("", "products: sustained clocks against a micro-benchmark's", 1.1, 0.08)
    attention: float = _field("", "attention kernels", 1.1, 0.25)
    experts: float = _field("", "grouped products", 1.2, 0.25)
    memory: float = _field("", "passes over memory: how many are not fused", 1.2, 0.4)
    launch_s: float = _field("s", "host time of a kernel launch", 6e-6, 0.7)
    span_s: float = _field("s", "host time of a collective in a layer whose ranks sit under both sockets", 2e-5, 1.0)
    tensor_exposed: float = _field("", "collectives over tp", 0.9, 0.5)
    context_exposed: float = _field("", "keys and values over cp", 0.3, 0.7)
    expert_exposed: float = _field("", "exchange over ep", 0.8, 0.5)
    send_exposed: float = _field("", "activations between stages, in the steady state", 0.5, 1.0)
    data_exposed: float = _field("", "gradients and weights over dp, where the stack overlaps them", 0.3, 1.0)
    network: float = _field("", "collectives across nodes", 1.2, 0.15)
    gather: float = _field("", "weights and gradients of ZeRO 3", 1.5, 0.5)
    optimizer: float = _field("", "optimizer step against one pass over its states", 1.3, 0.5)
    imbalance: float = _field("", "the busiest expert rank's tokens over the mean; given, never fitted", 1.0)
    micro_s: float = _field("s", "host time of a micro-batch on a stage", 1e-3, 1.0)
    fixed_s: float = _field("s", "host time of a step: data, norms, logging", 0.03, 1.0)

    def scaled(self, factors: Mapping[str, Any]) -> Profile:
        """The same with some numbers multiplied (by numbers, or by arrays with one for each layout)."""
        return replace(self, **{name: getattr(self, name) * factor for name, factor in factors.items()})


LABELS = ("device", "release", "family")
# Sustained clocks and kernels differ by device and dtype.
DEVICE_SPREADS: Mapping[str, float] = {"matmul": 0.06, "attention": 0.15}


def spreads() -> dict[str, float]:
    """Name → spread of what is believed of it, of the numbers that are fitted."""
    return {each.name: each.metadata["spread"] for each in fields(Profile) if each.metadata["spread"]}


UNSEEN = math.log(1.5)  # a stack of which no run was seen: within a factor of 1.5, four times of five


@dataclass(frozen=True, kw_only=True)
class StackProfile:
    """A stack as shipped: its facts, its numbers, what differs by label (a device and dtype, a release), and how far
    predictions with it were off on runs left out of the fit.
    """

    name: str = field(metadata={"doc": "like megatron-core"})
    base: str = field(default="", metadata={"doc": "shipped stack it was calibrated from; empty: it is shipped itself"})
    doc: str = field(default="", metadata={"doc": "which trainer that is"})
    traits: Traits = Traits()
    numbers: Profile = Profile()
    prior: Profile = Profile()
    spreads: tuple[Mapping[str, float], ...] = field(
        default=(DEVICE_SPREADS,), hash=False, metadata={"doc": "what labels of each kind may shift, and how far"}
    )
    labels: Mapping[str, Mapping[str, float]] = field(default_factory=dict, hash=False)
    half_width: float = field(
        default=UNSEEN, metadata={"doc": "of the 80 % interval of the logarithm, from runs left out of the fit"}
    )
    routed_half_width: float = field(default=UNSEEN, metadata={"doc": "the same for models with routed experts"})
    devices: tuple[str, ...] = field(default=(), metadata={"doc": "devices and dtypes it was fitted on"})
    rows: int = field(default=0, metadata={"doc": "runs fitted to"})
    routed_rows: int = field(default=0, metadata={"doc": "of them runs of models with routed experts"})
    sources: tuple[str, ...] = ()
    command: str = ""
    date: str = ""
    untold: tuple[str, ...] = field(default=(), metadata={"doc": "numbers that no own run tells, as in `base`"})

    @property
    def shipped(self) -> str:
        """The shipped stack whose facts it has, in time and in memory."""
        return self.base or self.name

    def at(self, *labels: str) -> Profile:
        """The numbers on a device and dtype, in a release; those of the stack where a label was never seen."""
        found = self.numbers
        for label in labels:
            found = found.scaled(self.labels.get(label, {}))
        return found
