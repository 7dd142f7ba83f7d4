"""Puts a way of serving together from what was asked: drafts, chunks, the path of a cache from pool to pool."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from suanli.nouns.arch import Arch
from suanli.nouns.hardware import Device
from suanli.nouns.serving import ServingLayout, ServingRates
from suanli.nouns.serving_profile import ServingProfile
from suanli.nouns.stored import unstored
from suanli.plan.serving.cache import kv_cache
from suanli.plan.serving.chunks import Chunked
from suanli.plan.serving.links import NODE, node_of
from suanli.plan.serving.load import Requests
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.replicas import build_replica
from suanli.plan.serving.speculate import OWN_LAYER, Drafting, Speculating
from suanli.plan.serving.times import Replica
from suanli.units import GIGA

USUAL_LINK = 50 * GIGA  # B/s: an adapter of 400 Gbit/s for each GPU, as H100 and newer nodes have


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Drafts as asked for; `arch` None: one more layer of the model itself."""

    tokens: int
    acceptance: float
    arch: Arch | None = field(default=None, hash=False)


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A prompt's cache on its way."""

    whole_bytes: float
    seconds: float
    link: str


def drafting_of(
    draft: Draft | None, device: Device, layout: ServingLayout, precision: Precision, profile: ServingProfile
) -> Drafting | None:
    """How tokens are drafted on a replica's GPUs; a draft model is laid over them as the model is.

    Raises InputError where the layout cannot cut the draft model.
    """
    if draft is None:
        return None
    plain = replace(precision, scheme=unstored(precision.scheme))
    replica = None if draft.arch is None else build_replica(draft.arch, device, layout, plain, profile)
    name = OWN_LAYER if draft.arch is None else draft.arch.name
    return Drafting(draft_tokens=draft.tokens, acceptance=draft.acceptance, name=name, replica=replica)


def with_drafts(replica: Replica, drafting: Drafting | None) -> ServingRates:
    """The replica, drafting or not."""
    return replica if drafting is None else Speculating(replica=replica, drafting=drafting)


def with_chunks(rates: ServingRates, chunk: float | None) -> ServingRates:
    """The rates, with prompts cut or whole."""
    return rates if chunk is None else Chunked(rates=rates, chunk=chunk)


def transfer_of(
    arch: Arch, replica: Replica, requests: Requests, engine: str, gpus: int, link_bytes_per_s: float | None
) -> Transfer:
    """A prompt's cache from one replica to another, every rank sending its part to its counterpart at once.

    Over a node's own links where both pools are inside one, else over the adapters: `link_bytes_per_s` of a GPU.
    """
    cache = kv_cache(
        arch, math.ceil(requests.isl), dtype=replica.precision.cache, engine=engine, layout=replica.layout,
        encoder_tokens=math.ceil(requests.encoded) or None,
    )  # fmt: skip
    part = float(cache.ideal_bytes_per_rank)
    if link_bytes_per_s is None and gpus <= NODE:
        fabric = node_of(replica.device.id, max(gpus, 2))
        assert fabric is not None, "several GPUs have links"
        seconds = float(replica.curves.collective_s("p2p", part, 2, fabric))
        return Transfer(whole_bytes=float(cache.ideal_bytes), seconds=seconds, link="the node's own links")
    rate = link_bytes_per_s or USUAL_LINK
    said = "as given" if link_bytes_per_s else "assumed: 400 Gbit/s"
    link = f"an adapter of {rate / GIGA:,.4g} GB/s for each GPU, {said}"
    return Transfer(whole_bytes=float(cache.ideal_bytes), seconds=part / rate, link=link)
