"""Devices whose kernels were measured: their names in the tables, what the catalogue leaves open, their peaks."""

from __future__ import annotations

from dataclasses import dataclass, field

from suanli.catalog.devices import find_device

PEAK_OF = {"bf16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "fp4"}


@dataclass(frozen=True)
class Machine:
    """A measured device: its name in the tables, its id in the catalogue, and what the catalogue leaves open."""

    gpu: str
    device: str
    units: int
    link_bytes_per_s: float | None
    switch_from: int = 0  # smallest group whose all-reduce the switches add up; 0: never seen
    peaks: dict[str, float] = field(default_factory=dict)  # where the catalogue has none


MACHINES = (
    Machine("a100_sxm", "a100-80gb-sxm", 108, 300e9),
    Machine("h100_sxm", "h100-80gb-sxm", 132, 450e9, 5),
    Machine("h200_sxm", "h200-141gb-sxm", 132, 450e9, 5),
    Machine("b200_sxm", "b200-180gb-sxm", 148, 900e9, 6),
    Machine("b300_sxm", "b300-288gb-sxm", 148, 900e9, 6),
    Machine("gb200", "gb200-186gb-superchip", 148, 900e9),
    Machine("gb300", "gb300-288gb-superchip", 148, 900e9),
    Machine("l40s", "l40s-48gb-pcie", 142, 32e9),
    # The workstation edition's peaks; the server edition has no sourced ones.
    Machine(
        "rtx_pro_6000_server",
        "rtx-pro-6000-server-96gb-pcie",
        188,
        64e9,
        peaks={"bf16": 503.8e12, "fp8": 1007.6e12, "fp4": 2015.2e12},
    ),
    Machine("b60", "arc-pro-b60-24gb-pcie", 20, None, peaks={"fp8": 98.3e12}),  # fp8 runs at bf16 speed
)


def peak_of(machine: Machine, dtype: str) -> float:
    """Dense peak [FLOP/s] that efficiencies refer to."""
    name = PEAK_OF[dtype]
    return machine.peaks.get(name) or float(find_device(machine.device).peak_flop_per_s(name))


def memory_rate(machine: Machine) -> float:
    """Peak memory rate [B/s]."""
    return float(find_device(machine.device).memory_bytes_per_s or 0)
