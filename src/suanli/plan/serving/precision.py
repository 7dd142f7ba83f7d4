"""How many bytes a weight takes and at which peak it is multiplied, by leaf, under a serving dtype."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.errors import Fault, InputError, unknown_name
from suanli.nouns.hardware import Device
from suanli.nouns.layers import Experts, Layer, Linear

# Bytes of one weight, scales included. Blocks: OCP MX v1.0 (32 values, one byte), NVFP4 (16 values, one byte),
# int4 as GPTQ and AWQ store it with groups of 128 (a 16-bit scale and a 4-bit zero point a group).
WEIGHT_BYTES = {
    "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "mxfp8": 33 / 32, "nvfp4": 9 / 16, "mxfp4": 17 / 32,
    "int4": (4 * 128 + 16 + 4) / 8 / 128,
}  # fmt: skip
_MULTIPLIED = {"mxfp8": "fp8", "nvfp4": "fp4", "mxfp4": "fp4"}  # the peak it runs at where the device has it
_FALLBACK = ("fp8", "bf16", "fp16", "fp32")  # of weights the device cannot multiply as they are stored
_FOUR_BIT = ("nvfp4", "mxfp4", "int4")


@dataclass(frozen=True, kw_only=True)
class Precision:
    """Dtypes of a served model. Of a mixture, 4-bit schemes quantise its experts alone, as published ones do."""

    dtype: str = "bf16"
    cache_bytes: float = 2.0

    def __post_init__(self) -> None:
        """Refuse an unknown dtype, naming the nearest."""
        if self.dtype not in WEIGHT_BYTES:
            raise unknown_name(
                "dtype",
                str(self.dtype),
                tuple(WEIGHT_BYTES),
                where="--dtype",
                hint="Dtypes: " + ", ".join(WEIGHT_BYTES) + ".",
            )

    def stored(self, layer: Layer, *, mixture: bool) -> str:
        """The dtype in which the weights of a leaf are kept."""
        if isinstance(layer, Experts):
            return self.dtype
        dense = isinstance(layer, Linear) and layer.role == "matmul"
        kept_whole = not dense or (mixture and self.dtype in _FOUR_BIT)
        return "bf16" if kept_whole and self.dtype not in ("fp32", "fp16") else self.dtype


def product_flop_per_s(device: Device, stored: str) -> float:
    """Dense peak at which weights of this dtype are multiplied: their own where the device has it, else a wider one's.

    int4 weights are multiplied in 16 bit (activations stay so). Raises InputError where no peak is known.
    """
    peaks = device.peaks_flop_per_s
    first = "bf16" if stored == "int4" else _MULTIPLIED.get(stored, stored)
    wider = _FALLBACK[_FALLBACK.index(first) :] if first in _FALLBACK else _FALLBACK
    for name in (first, *wider):
        if peaks.get(name):
            return float(peaks[name]) / device.torch_devices_per_package
    message = f"no dense peak of {device.short_id} is known at which {stored} could be multiplied"
    raise InputError(Fault(code="no_peak", message=message, where="--gpu"))
