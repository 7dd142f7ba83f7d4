"""A replica from names: a model's architecture, a device, a layout and an engine's profile put together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from suanli.nouns.arch import Arch
from suanli.nouns.curves import Fabric
from suanli.nouns.hardware import Device
from suanli.nouns.serving import ServingLayout
from suanli.nouns.serving_profile import ServingProfile
from suanli.plan.serving.links import node_of, serving_curves
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.rank import RankWork, rank_work
from suanli.plan.serving.times import Replica

_IDEAL = ServingProfile()


def build_replica(
    arch: Arch,
    device: Device,
    layout: ServingLayout,
    precision: Precision,
    profile: ServingProfile = _IDEAL,
    fabric: Fabric | None = None,
    encoded: float = 0.0,
) -> Replica:
    """The replica; links are those of a node of eight where no fabric is given. `encoded`: as in `rank_work`.

    Raises InputError for a device of unknown memory rate, and for one without links that needs them.
    """
    found = fabric or node_of(device.id, layout.gpus)
    return Replica(
        work=_work(arch, layout, precision, encoded), layout=layout, precision=precision, device=device,
        curves=serving_curves(device.id), fabric=found, profile=profile,
    )  # fmt: skip


def with_profile(replica: Replica, profile: ServingProfile) -> Replica:
    """The same replica under another engine."""
    return replace(replica, profile=profile)


def _work(arch: Arch, layout: ServingLayout, precision: Precision, encoded: float) -> RankWork:
    """The terms, kept with the model they are of: a search asks for the same ones again and again."""
    kept: dict[Any, RankWork] = arch.__dict__.setdefault("_rank_work", {})
    key = (layout, precision.scheme, encoded)
    if key not in kept:
        kept[key] = rank_work(arch, layout, precision, encoded)
    return kept[key]
