"""What a serving answer needs of a device beside its data sheet: times of passes and collectives, links to its peers.

Products and caches are rooflines of the data sheet, so a device nobody measured can be answered for: passes over memory
and collectives then take the shape of another device's and this one's rates, and a note says whose.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from suanli.catalog.curves import DeviceCurves, find_curves
from suanli.catalog.devices import find_device
from suanli.catalog.fabrics import device_fabric, fabric
from suanli.errors import Fault, InputError, UnknownNameError
from suanli.nouns.curves import Fabric
from suanli.nouns.hardware import Device
from suanli.units import GIGA

NODE = 8  # GPUs of the usual node
# One direction of 16 lanes, as the measured cards' collectives were fitted (scripts/fit_curves.py): PCI-SIG, 8, 16, 32
# and 64 GT/s a lane.
PCIE = {3: 16 * GIGA, 4: 32 * GIGA, 5: 64 * GIGA, 6: 128 * GIGA}
_LINKED, _CARD = (
    "a100-80gb-sxm",
    "l40s-48gb-pcie",
)  # whose shape an unmeasured device takes: with links of its own, without


@lru_cache(maxsize=256)
def serving_curves(device_id: str) -> DeviceCurves:
    """The device's curves, or another's scaled by memory rate and links. Raises InputError where not even the memory
    rate is known."""
    device = find_device(device_id)
    if device.memory_bytes_per_s_per_torch_device is None:
        message = f"the catalogue does not know the memory rate of {device.short_id}"
        raise InputError(Fault(code="unknown_memory_rate", message=message, where="--gpu", hint="Choose another GPU."))
    like = find_curves(_LINKED if device.link_bytes_per_s else _CARD)
    try:
        found = find_curves(device)
    except UnknownNameError:
        return DeviceCurves(
            device=device, file=like.file, extrapolated=like.device.short_id, note="no kernel of its own was measured"
        )
    if "all_reduce" in found.file.collectives:
        return found
    return replace(found, file=replace(found.file, collectives=like.file.collectives))


@lru_cache(maxsize=256)
def node_of(device_id: str, gpus: int, link_bytes_per_s: float | None = None) -> Fabric | None:
    """Links inside a node of eight or of as many as asked for; None for one GPU alone, which needs none.

    `link_bytes_per_s`: one direction of a GPU's link, where it is given. Raises InputError where nothing is known.
    """
    if gpus == 1:
        return None
    device, many = find_device(device_id), max(NODE, gpus)
    if link_bytes_per_s is None and device.link_bytes_per_s is not None:
        return device_fabric(device, gpus_per_node=many, nics_bytes_per_s=None)
    rate = link_bytes_per_s or PCIE.get(device.pcie_gen or 0)
    if rate is None:
        raise InputError(
            Fault(code="no_link", message=f"the links between {device.short_id} are not known", where="--gpu",
                  got=f"{gpus:,} of them in a replica", expected="one GPU a replica, or --link RATE, like 50GB/s")
        )  # fmt: skip
    name = f"{many} × {device.short_id}"
    return fabric(name=name, gpus_per_node=many, link_bytes_per_s=rate, nics_bytes_per_s=None, sources=device.sources)


def device_notes(device: Device, gpus: int, link_bytes_per_s: float | None = None) -> tuple[str, ...]:
    """What of a device's times is another's, and what was assumed of its links."""
    curves, notes = serving_curves(device.id), []
    if curves.extrapolated is not None:
        notes.append(
            f"passes over memory and collectives on {device.short_id} are those of {curves.extrapolated}, scaled: "
            f"{curves.note}"
        )
    if gpus > 1 and device.link_bytes_per_s is None and link_bytes_per_s is None:
        rate = PCIE[device.pcie_gen or 0] / GIGA
        notes.append(
            f"links of {device.short_id} are taken as PCI Express {device.pcie_gen}, {rate:,.0f} GB/s each way: with "
            "bridges give --link"
        )
    return tuple(notes)
