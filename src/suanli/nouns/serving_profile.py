"""What a serving engine does with a device's time: a few numbers fitted to measured points, with their spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any


def _field(unit: str, doc: str, default: float, spread: float, pooled: float = 0.0, workload: float = 0.0) -> Any:
    """A number of a profile. Spreads are of its logarithm: `spread` how far it may lie from what is believed before any
    point is seen, `pooled` how far one engine from what all share, `workload` how far an engine under another kind of
    load; 0 where they are not told apart."""
    metadata = {"unit": unit, "doc": doc, "spread": spread, "pooled": pooled, "workload": workload}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class ServingProfile:
    """Factors on the roofline of an operator, and times that no operator explains. The defaults are an ideal engine."""

    weights: float = _field("", "products: time over that of reading the weights", 1.0, 0.25, 0.05, 0.15)
    cache: float = _field("", "attention of decode: time over that of reading the cache", 1.0, 0.35, 0.05, 0.15)
    passes: float = _field("", "norms, activations, rotations: time over one pass over memory", 1.0, 0.5)
    collective: float = _field(
        "", "collectives: time over NCCL's; engines have kernels of their own", 1.0, 0.5, 0.05, 0.15
    )
    layer_s: float = _field("s", "of a layer beside its operators: kernels starting and ending", 0.0, 0.35, 0.15, 0.45)
    step_s: float = _field("s", "of a step beside its layers: scheduling, sampling", 0.0, 0.75, 0.0, 0.35)
    sequence_s: float = _field("s", "of a step for each sequence: bookkeeping, detokenising", 0.0, 0.5, 0.15, 0.45)
    prefill: float = _field(
        "", "products and attention of prefill: time over that at the dense peak", 1.0, 0.25, 0.0, 0.35
    )
    prefill_other: float = _field("", "collectives and passes of prefill: time over NCCL's and one pass", 1.0, 0.25)

    def scaled(self, factors: Mapping[str, float]) -> ServingProfile:
        """The same with some numbers multiplied."""
        return replace(self, **{name: getattr(self, name) * factor for name, factor in factors.items()})

    def least(self, other: ServingProfile) -> ServingProfile:
        """The smaller of each number of two."""
        return ServingProfile(**{name: min(getattr(self, name), getattr(other, name)) for name in NUMBERS})


NUMBERS = tuple(each.name for each in fields(ServingProfile))


@dataclass(frozen=True, kw_only=True)
class ServingPreset:
    """An engine as its profile, what it was fitted to, and how far it is off."""

    name: str = field(metadata={"doc": "ideal, vllm, tensorrt-llm, sglang; with the kind of load where it is another"})
    title: str = field(metadata={"doc": "in words"})
    profile: ServingProfile = field(metadata={"doc": "the numbers"})
    half_width: float = field(
        metadata={"unit": "", "doc": "80 % of held-out points: |ln(predicted/measured)| below it"}
    )
    rows: int = field(metadata={"doc": "points it was fitted to"})
    gpus: tuple[str, ...] = field(metadata={"doc": "devices among them"})
    source: str = field(metadata={"doc": "data, command and date"})


@dataclass(frozen=True, kw_only=True)
class PowerProfile:
    """Power of a GPU as parts of its board power: always, while memory is read, while products are computed."""

    always: float = field(metadata={"unit": "fraction", "doc": "of board power, whatever it does"})
    memory: float = field(metadata={"unit": "fraction", "doc": "more while memory is read at its full rate"})
    products: float = field(metadata={"unit": "fraction", "doc": "more while products run at the 16-bit peak"})
    half_width: float = field(
        metadata={"unit": "", "doc": "80 % of held-out points: |ln(predicted/measured)| below it"}
    )
    rows: int = field(metadata={"doc": "points it was fitted to"})
    source: str = field(metadata={"doc": "data, command and date"})
