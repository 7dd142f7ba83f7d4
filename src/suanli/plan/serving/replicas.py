"""A replica from names: a model's architecture, a device, a layout and an engine's profile put together."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from suanli.catalog.curves import find_curves
from suanli.catalog.devices import find_device
from suanli.catalog.fabrics import device_fabric
from suanli.nouns.arch import Arch
from suanli.nouns.curves import Fabric
from suanli.nouns.hardware import Device
from suanli.nouns.serving import ServingLayout
from suanli.nouns.serving_profile import ServingProfile
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.rank import RankWork, rank_work
from suanli.plan.serving.times import Replica

_IDEAL = ServingProfile()
NODE = 8  # GPUs of the usual node


def build_replica(
    arch: Arch,
    device: Device,
    layout: ServingLayout,
    precision: Precision,
    profile: ServingProfile = _IDEAL,
    fabric: Fabric | None = None,
) -> Replica:
    """The replica; links are those of a node of eight where no fabric is given.

    Raises UnknownNameError for a device without curves, InputError for one without links that needs them.
    """
    found = fabric or node_of(device.id, layout.gpus)
    return Replica(
        work=_work(arch, layout, precision), layout=layout, precision=precision, device=device,
        curves=find_curves(device), fabric=found, profile=profile,
    )  # fmt: skip


def with_profile(replica: Replica, profile: ServingProfile) -> Replica:
    """The same replica under another engine."""
    return replace(replica, profile=profile)


def _work(arch: Arch, layout: ServingLayout, precision: Precision) -> RankWork:
    """The terms, kept with the model they are of: a search asks for the same ones again and again."""
    kept: dict[Any, RankWork] = arch.__dict__.setdefault("_rank_work", {})
    key = (layout, precision.scheme)
    if key not in kept:
        kept[key] = rank_work(arch, layout, precision)
    return kept[key]


@lru_cache(maxsize=256)
def node_of(device_id: str, gpus: int) -> Fabric | None:
    """Links inside a node of eight or of as many as asked for; None for one GPU alone, which needs none."""
    if gpus == 1:
        return None
    return device_fabric(find_device(device_id), gpus_per_node=max(NODE, gpus), nics_bytes_per_s=None)
