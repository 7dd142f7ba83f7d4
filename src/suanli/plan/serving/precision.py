"""How many bytes a weight takes and at which peak it is multiplied, by leaf, under a scheme of storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from suanli.catalog.curves import PEAK_OF, find_curves
from suanli.catalog.formats import find_format
from suanli.catalog.schemes import find_scheme
from suanli.errors import Fault, InputError, UnknownNameError
from suanli.nouns.formats import Scheme
from suanli.nouns.hardware import Device
from suanli.nouns.layers import Layer
from suanli.nouns.stored import StoredScheme
from suanli.plan.serving.weights import leaf_bytes, part_of_leaf
from suanli.units import BITS_PER_BYTE

# The peak at which a scheme's matrices are multiplied, by the start of its name; every other scheme unpacks its weights
# to its base format first (GPTQ, AWQ, NF4, ggml: activations stay in 16 bit).
_PEAKS = (("fp8", "fp8"), ("mxfp8", "fp8"), ("int8", "int8"), ("nvfp4", "fp4"), ("mxfp4", "fp4"))
_NARROW = 0.9  # of the base format's bytes: a part of fewer is packed
_WIDER = ("fp8", "bf16", "fp16", "fp32")  # where a device lacks the units: the next wider format it has


@dataclass(frozen=True)
class Stored:
    """Weights of a leaf as they are kept and multiplied."""

    weight_bytes: float = field(metadata={"unit": "B", "doc": "one weight on average, scales included"})
    peak: str = field(metadata={"doc": "catalogue dtype it is multiplied at where the device has it"})


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The scheme of the weights and the format of the cache."""

    scheme: Scheme
    cache: str = "bf16"

    @classmethod
    def of(cls, scheme: str | Scheme = "bf16", cache: str = "bf16") -> Precision:
        """By name. Raises UnknownNameError for a scheme or a format nobody knows."""
        found = find_scheme(scheme) if isinstance(scheme, str) else scheme
        return cls(scheme=found, cache=find_format(cache).name)

    @property
    def cache_bytes(self) -> float:
        """Bytes of one number of the cache, scales included."""
        return float(find_format(self.cache).bits) / BITS_PER_BYTE

    def stored(self, leaf: Layer) -> Stored:
        """How a leaf's weights are kept: by the same count as the weights in memory (`weights.leaf_bytes`)."""
        if isinstance(self.scheme, StoredScheme):
            kept, base = self.scheme.rate(part_of_leaf(leaf)), self.scheme.base
            narrow = kept < float(find_format(base).bits) / BITS_PER_BYTE * _NARROW
            return Stored(kept, self._peak if narrow else base)
        sizes, params = leaf_bytes(leaf, self.scheme), leaf.params or 1
        tied = getattr(leaf, "tied", False)  # counted with the table it shares, read here all the same
        each = float(find_format(self.scheme.base).bits) / BITS_PER_BYTE if tied else sum(sizes.values()) / params
        packed = sizes["scales"] > 0 or each < float(find_format(self.scheme.base).bits) / BITS_PER_BYTE
        return Stored(each, self._peak if packed else self.scheme.base)

    @property
    def _peak(self) -> str:
        return next((peak for start, peak in _PEAKS if self.scheme.name.startswith(start)), self.scheme.base)


def product_flop_per_s(device: Device, peak: str) -> float:
    """Dense peak of one torch device for operands of this dtype: its own where it has one, else the next wider's.

    Where the catalogue has none, what the device's measured kernels were held against. Raises InputError where none is
    known.
    """
    peaks = device.peaks_flop_per_s or _measured_peaks(device)
    wider = _WIDER[_WIDER.index(peak) :] if peak in _WIDER else _WIDER
    for name in (peak, *wider):
        if peaks.get(name):
            return float(peaks[name]) / device.torch_devices_per_package
    message = f"no dense peak of {device.short_id} is known at which {peak} could be multiplied"
    raise InputError(Fault(code="no_peak", message=message, where="--gpu"))


@lru_cache(maxsize=256)
def _measured_peaks(device: Device) -> Mapping[str, float]:
    """Peaks that the curves of a device's own kernels refer to; none where none were measured."""
    try:
        curves = find_curves(device)
    except UnknownNameError:
        return {}
    if curves.extrapolated is not None:
        return {}
    return {PEAK_OF[name]: each.peak_flop_per_s for name, each in curves.file.matmul.items()}
