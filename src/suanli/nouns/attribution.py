"""What each piece of device work did for the model: its class, its FLOPs and bytes, as columns beside `DeviceWork`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

Column = Any  # a one-dimensional numpy array; nouns never import numpy


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


class WorkClass(IntEnum):
    """The one class of a piece of device work; the order is who owns an instant that several share."""

    MATMUL = 0  # products, convolutions, attention: what peak FLOP/s are for
    COMPUTE = 1  # every other kernel
    COMMUNICATION = 2  # collectives, dispatch and combine, sends
    PEER_COPY = 3  # copies from device to device of another
    COPY = 4  # copies and sets


@dataclass(frozen=True, kw_only=True, eq=False)
class Attribution:
    """Columns beside the rows of a `DeviceWork`. Where a figure is not known it is 0 and its `known` is False."""

    work_class: Column = _field("", "uint8: WorkClass")
    op: Column = _field("", "int32: row of Host whose formula counts this work; -1: none found")
    formula: Column = _field("", "int16: place in `formulas`; -1: none")
    flops: Column = _field("FLOPs", "float64: this row's share of its op's FLOPs, by time")
    flops_known: Column = _field("", "bool")
    bytes: Column = _field("B", "float64: least bytes moved, inputs and outputs once")
    bytes_known: Column = _field("", "bool")
    dtype: Column = _field("", "int16: place in `dtypes`, of the inputs of a product; -1: not known")
    recompute: Column = _field("", "bool: forward work done once more for the backward pass")
    backward: Column = _field("", "bool: launched by an op of the backward pass, recompute not included")
    formulas: tuple[str, ...] = _field("", "ids in the registry of formulas, or `stated by the profiler`", default=())
    dtypes: tuple[str, ...] = _field("", "as in catalogue peaks: bf16, fp16, tf32, fp32, fp8 …", default=())
    reasons: dict[str, float] = _field("s", "why matmul time has no FLOPs: reason, seconds", default_factory=dict)
