"""The cheapest way to serve a rate within latency targets: layouts of one replica, how many replicas, which GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from suanli.errors import InputError
from suanli.formulas.serving import usd_per_million_tokens
from suanli.nouns.infer import Choice
from suanli.nouns.serving import ServingLayout
from suanli.plan.serving.load import Requests, tpot_s
from suanli.plan.serving.times import Replica

Array = Any
_SIZES = 48  # batch sizes looked at, evenly spread in their logarithm
_POWERS = (1, 2, 4, 8)


@dataclass(frozen=True, kw_only=True)
class Targets:
    """What has to be met. None: free."""

    rate: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None


def layouts_of(num_experts: int, most_gpus: int, pipelines: Sequence[int] = (1,)) -> Iterator[ServingLayout]:
    """Layouts of one replica inside a node: tp in powers of two, experts on one rank's tp or spread over all, attention
    data-parallel where experts are spread."""
    for tp in _POWERS:
        for pp in pipelines:
            if tp * pp > most_gpus:
                continue
            yield ServingLayout(tp=tp, pp=pp)
            if num_experts and tp > 1 and num_experts % tp == 0:
                yield ServingLayout(tp=tp, pp=pp, ep=tp)
            for groups in _POWERS[1:]:
                if num_experts and tp * pp * groups <= most_gpus and num_experts % (tp * groups) == 0:
                    yield ServingLayout(tp=tp, pp=pp, ep=tp * groups, dp_attention=groups)


def choices(
    build: Callable[[ServingLayout], tuple[Replica, float]],
    layouts: Sequence[ServingLayout],
    requests: Requests,
    targets: Targets,
    usd_per_gpu_hour: float | None = None,
) -> list[Choice]:
    """Every layout at every batch size that memory holds and that meets the targets. `build` gives the replica and the
    most sequences it holds; an InputError of it (does not fit, cannot be cut) leaves that layout out.
    """
    found: list[Choice] = []
    for layout in layouts:
        try:
            replica, most = build(layout)
        except InputError:
            continue
        if most >= 1:
            found += _of_layout(replica, layout, most, requests, targets, usd_per_gpu_hour)
    return found


def _of_layout(
    replica: Replica, layout: ServingLayout, most: float, requests: Requests, targets: Targets, price: float | None
) -> Iterator[Choice]:
    import numpy as np  # noqa: PLC0415

    sizes = np.unique(np.round(np.geomspace(1, most, _SIZES)))
    tokens = np.asarray(tpot_s(replica, sizes, requests))
    firsts = np.asarray(replica.decode_s(sizes, requests.mean_keys)) / 2 + replica.prefill_s(requests.isl, requests.isl)
    good = np.ones(len(sizes), dtype=bool)
    for limit, values in ((targets.tpot_s, tokens), (targets.ttft_s, firsts)):
        good &= limit is None or values <= limit
    for at in np.flatnonzero(good):
        rate = float(sizes[at] * requests.osl / (firsts[at] + (requests.osl - 1) * tokens[at]))
        needed = None if targets.rate is None else max(int(np.ceil(targets.rate * requests.osl / rate)), 1)
        gpus = layout.gpus * (needed or 1)
        hourly = None if price is None else price * gpus
        made = rate if targets.rate is None else targets.rate * requests.osl
        yield Choice(
            gpu=replica.device.short_id, layout=layout, concurrency=float(sizes[at]), ttft_s=float(firsts[at]),
            tpot_s=float(tokens[at]), tokens_per_s=rate, tokens_per_s_per_gpu=rate / layout.gpus, replicas=needed,
            gpus=gpus, usd_per_hour=hourly,
            usd_per_million_tokens=None if price is None else usd_per_million_tokens(price, gpus, made, 1.0),
        )  # fmt: skip


def pareto(found: Sequence[Choice]) -> list[Choice]:
    """Those that no other beats in both time per token and tokens a second of a GPU, fastest for a user first."""
    ordered = sorted(found, key=lambda each: (each.tpot_s, -each.tokens_per_s_per_gpu))
    front: list[Choice] = []
    for each in ordered:
        if not front or each.tokens_per_s_per_gpu > front[-1].tokens_per_s_per_gpu:
            front.append(each)
    return front


def cheapest(found: Sequence[Choice]) -> Choice | None:
    """The least money, or without prices the fewest GPUs; of equal ones the fastest for a user. None: none is left."""
    priced = all(each.usd_per_hour is not None for each in found)
    key = (lambda each: (each.usd_per_hour, each.tpot_s)) if priced else (lambda each: (each.gpus, each.tpot_s))
    return min(found, key=key, default=None)
