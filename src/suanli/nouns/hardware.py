"""What machines are made of: a device, a node, a price. Facts only, which the catalogue fills in.

All fields of a `Device` are for one package (the card, module or chip one buys). Where a package holds
several devices as torch or JAX see them (MI250X: two), `peak_flop_per_s` and the properties named
`…_per_torch_device` divide.
Peaks are dense, with fp32 accumulate for fp16, bf16 and fp8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.errors import Fault, UnknownNameError, shown
from suanli.units import format_usd

DTYPES = ("fp64", "fp64_tc", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int4")
PRICE_KINDS = ("on-demand", "spot", "reserved")
STATUSES = ("ok", "no_figures", "formula")


def _field(unit: str, doc: str, **options: Any) -> Any:
    """A dataclass field that carries its own help."""
    return field(metadata={"unit": unit, "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class Device:
    """One accelerator of the catalogue. None means that no source was found."""

    id: str = _field("", "family-memory-form, like a100-80gb-sxm")
    aliases: tuple[str, ...] = _field("", "shorter ids, where they are unique", default=())
    family: str = _field("", "the part of the id that several memory sizes and forms share")
    name: str = _field("", "name in the catalogue")
    vendor: str = _field("", "who makes it; CPU and Edge are groups")
    device_strings: tuple[str, ...] = _field("", "names that drivers and frameworks report", default=())
    form: str = _field("", "SXM5, PCIe, NVL, OAM, superchip …", default="")
    arch: str = _field("", "architecture", default="")
    peaks_flop_per_s: Mapping[str, int | float] = _field(
        "FLOP/s",
        "dense peak of one package by dtype; operations for int8 and int4",
        default_factory=dict,
        hash=False,
    )
    formulas: Mapping[str, str] = _field(
        "TFLOP/s",
        "peak or bandwidth (GB/s) by dtype, where only a formula is known",
        default_factory=dict,
        hash=False,
    )
    sparse_multiple: float | None = _field("", "what structured sparsity multiplies the peak by", default=None)
    memory_bytes: int | None = _field("B", "device memory of one package, visible where known", default=None)
    usable_memory_bytes: int | None = _field("B", "of it, what a program can have; None where not known", default=None)
    usable_memory_source: str | None = _field("", "where that is from", default=None)
    memory_advertised_gb: float | None = _field("GB or GiB", "the advertised figure", default=None)
    memory_unit: str | None = _field("", "what the advertised figure counts: GB or GiB", default=None)
    memory_options_gb: tuple[float, ...] = _field("GB", "other sizes the part is named or sold with", default=())
    memory_kind: str | None = _field("", "HBM3, GDDR6 …", default=None)
    memory_bytes_per_s: int | float | None = _field("B/s", "peak memory bandwidth of one package", default=None)
    l2_bytes: int | None = _field("B", "last cache shared by all units, binary megabytes", default=None)
    sm_count: int | None = _field("", "streaming multiprocessors or compute units", default=None)
    boost_hz: int | None = _field("Hz", "clock that gives the peak, or the boost clock", default=None)
    link: str | None = _field("", "link between devices of a node", default=None)
    link_bytes_per_s: int | float | None = _field("B/s", "that link, both directions, as advertised", default=None)
    pcie_gen: int | None = _field("", "PCI Express generation", default=None)
    tdp_w: float | None = _field("W", "board power", default=None)
    release: str | None = _field("", "year or month of release", default=None)
    torch_devices_per_package: int = _field("", "devices torch or JAX see in one package", default=1)
    formula_fp16_flop_per_s: int | float | None = _field(
        "FLOP/s", "units × FMA per clock × 2 × clock: a check of the fp16 peak", default=None
    )
    status: str = _field("", "ok; no_figures: no sourced peak; formula: only a formula", default="ok")
    confidence: str = _field("", "high, medium, low, conflict, none, formula", default="")
    sources: tuple[str, ...] = _field("", "keys of catalog/sources.toml", default=())
    compiled: str = _field("", "year and month in which the row was compiled", default="")
    notes: tuple[str, ...] = _field("", "conflicts and traps", default=())

    @property
    def short_id(self) -> str:
        """The shortest id that means this device alone: `h100-sxm`."""
        return self.aliases[0] if self.aliases else self.id

    @property
    def memory_bytes_per_torch_device(self) -> int | None:
        """Memory in bytes of one device as torch sees it."""
        return None if self.memory_bytes is None else self.memory_bytes // self.torch_devices_per_package

    @property
    def usable_bytes_per_torch_device(self) -> int | None:
        """What a program can have of one device as torch sees it; the whole memory where that is not known."""
        if self.usable_memory_bytes is None:
            return self.memory_bytes_per_torch_device
        return self.usable_memory_bytes // self.torch_devices_per_package

    @property
    def memory_bytes_per_s_per_torch_device(self) -> int | float | None:
        """Memory bandwidth in B/s of one device as torch sees it."""
        if self.memory_bytes_per_s is None:
            return None
        return _divided(self.memory_bytes_per_s, self.torch_devices_per_package)

    def peak_flop_per_s(self, dtype: str) -> int | float:
        """Dense peak in FLOP/s of one device as torch sees it.

        Raises UnknownNameError where the row has no sourced peak for `dtype`; there is no default.
        """
        peak = self.peaks_flop_per_s.get(dtype)
        if peak is None:
            raise self._no_peak(dtype)
        return _divided(peak, self.torch_devices_per_package)

    def _no_peak(self, dtype: str) -> UnknownNameError:
        message = f"{self.short_id} has no sourced {shown(dtype)} peak"
        if self.status == "formula":
            texts = ", ".join(f"{key} = {text}" for key, text in self.formulas.items())
            message = f"{self.short_id} has no sourced peak, only a formula ({texts})"
        elif self.status == "no_figures":
            message = f"{self.short_id} has no sourced peak at all"
        known = tuple(self.peaks_flop_per_s)
        return UnknownNameError(
            Fault(
                code="unknown_peak",
                message=message,
                got=shown(dtype),
                expected=f"one of {', '.join(known)}" if known else None,
                hint="MFU cannot be given without a peak; pass the dense one, like --peak 989TFLOPS.",
            )
        )


def _divided(value: float, parts: int) -> int | float:
    """`value / parts`, an int where that is exact."""
    return value // parts if value % parts == 0 else value / parts


@dataclass(frozen=True, kw_only=True)
class Node:
    """One kind of machine that holds several devices. None means that no source was found."""

    id: str = _field("", "like p4d.24xlarge or hgx-h100")
    aliases: tuple[str, ...] = _field("", "other names of the same node", default=())
    name: str = _field("", "name in the catalogue")
    vendor: str = _field("", "who sells or rents it")
    device_ids: tuple[str, ...] = _field("", "ids of the devices it may hold; several where the name fits several")
    devices_per_node: int = _field("", "packages in one node, or in one scale-up domain")
    scaleup_link: str | None = _field("", "link between its devices", default=None)
    scaleup_bytes_per_s: int | float | None = _field("B/s", "that link for one device, both directions", default=None)
    scaleup_topology: str | None = _field("", "how the links join the devices", default=None)
    nics: int | None = _field("", "network adapters of one node", default=None)
    nic_bytes_per_s: int | float | None = _field("B/s", "one adapter, one direction", default=None)
    internode_bytes_per_s: int | float | None = _field("B/s", "all adapters of a node, one direction", default=None)
    sources: tuple[str, ...] = _field("", "keys of catalog/sources.toml", default=())
    compiled: str = _field("", "year and month in which the row was compiled", default="")
    notes: tuple[str, ...] = _field("", "conflicts and traps", default=())


@dataclass(frozen=True, kw_only=True)
class Price:
    """What one device cost to rent for an hour, seen at one date."""

    device: str = _field("", "id of the device")
    kind: str = _field("", "on-demand, spot or reserved")
    usd_per_gpu_hour: int | float = _field("$/h", "price of one package for one hour")
    date: str = _field("", "year, month or day in or before which the price was seen")
    source: str = _field("", "key of catalog/sources.toml, or the user's own words")
    provider: str = _field("", "who rents it out", default="")
    node: str = _field("", "machine it is rented in", default="")
    note: str = _field("", "what the price leaves open", default="")
    origin: str = _field("", "file the price was read from", default="prices.toml")

    def sentence(self) -> str:
        """The price as outputs name it: `$2.99 per GPU-hour, on-demand, Lambda, 2026-03 (costnimbus)`."""
        parts = (f"{format_usd(self.usd_per_gpu_hour)} per GPU-hour", self.kind, self.provider, self.date)
        return f"{', '.join(part for part in parts if part)} ({self.source})"
