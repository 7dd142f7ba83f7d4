"""What a device of a trace is in the catalogue, and the peaks its kernels stand against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suanli.catalog.devices import find_device, list_devices
from suanli.errors import InputError
from suanli.nouns.hardware import Device
from suanli.nouns.trace import TraceDevice
from suanli.units import format_bytes

_NEAR, _MOST = 0.1, 4  # drivers keep some memory; data sheets mean GB or GiB
_TPU_PEAK = "bf16"  # what the peak that XLA states for a TPU is for


@dataclass(frozen=True, kw_only=True)
class DeviceFacts:
    """A device of a trace with its peaks, of one device as the framework sees it. `reason` says why there are none."""

    device: Device | None = None
    peaks_flop_per_s: Mapping[str, float] = field(default_factory=dict)
    memory_bytes_per_s: float | None = None
    link_bytes_per_s: float | None = None
    reason: str | None = None


def facts_of(seen: TraceDevice, gpu: Device | None = None) -> DeviceFacts:
    """The facts of `gpu` where it is given, else of the catalogue's row for the name in the trace; the file's own
    peak where the catalogue knows none.
    """
    if gpu is not None:
        return _from_catalogue(gpu)
    problem = f"the file does not name the device{_like(seen)}; name it with --gpu"
    if seen.name:
        try:
            found = _from_catalogue(find_device(seen.name, seen.memory_bytes, where="the trace"))
        except InputError as error:
            problem = f"{error.faults[0].message} in the trace{_like(seen)}; name it with --gpu"
        else:
            if found.peaks_flop_per_s:
                return found
            problem = found.reason or ""
    if seen.peak_flop_per_s:
        return DeviceFacts(
            peaks_flop_per_s={_TPU_PEAK: seen.peak_flop_per_s}, memory_bytes_per_s=seen.memory_bytes_per_s
        )
    return DeviceFacts(reason=problem, memory_bytes_per_s=seen.memory_bytes_per_s)


def _like(seen: TraceDevice) -> str:
    """Devices of the catalogue with as many multiprocessors and as much memory, in brackets; empty for none."""
    if seen.sm_count is None or seen.memory_bytes is None:
        return ""
    low, high = (part * seen.memory_bytes for part in (1 - _NEAR, 1 + _NEAR))
    alike = [
        each.short_id for each in list_devices()
        if each.sm_count == seen.sm_count and low <= (each.memory_bytes_per_torch_device or 0) <= high
    ]  # fmt: skip
    if not alike:
        return ""
    return f" ({seen.sm_count} multiprocessors, {format_bytes(seen.memory_bytes)}: like {', '.join(alike[:_MOST])})"


def _from_catalogue(device: Device) -> DeviceFacts:
    peaks = {dtype: float(device.peak_flop_per_s(dtype)) for dtype in device.peaks_flop_per_s}
    rate = device.memory_bytes_per_s_per_torch_device
    return DeviceFacts(
        device=device,
        peaks_flop_per_s=peaks,
        memory_bytes_per_s=None if rate is None else float(rate),
        link_bytes_per_s=None if device.link_bytes_per_s is None else float(device.link_bytes_per_s),
        reason=None if peaks else f"the catalogue has no sourced peak of {device.short_id}",
    )
