"""The search of `infer`: the cheapest layout and GPU kind for targets, and kinds side by side under one load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from suanli.api.request import Request
from suanli.catalog.devices import find_device
from suanli.errors import Fault, InputError, UnknownNameError
from suanli.nouns.hardware import Device
from suanli.nouns.infer import Choice, Inference
from suanli.nouns.layers import Experts
from suanli.nouns.serving import ServingLayout
from suanli.plan.serving import catalogue_price, check_fits, fits
from suanli.plan.serving.answer import Service, answer, hold, replica_of
from suanli.plan.serving.search import Targets, choices, layouts_of, pareto
from suanli.plan.serving.times import Replica
from suanli.units import format_seconds

NODE = 8
Paid = float | str | None  # dollars of a GPU-hour, or a kind of price
ON_DEMAND = "on-demand"
PIPELINES = (1, 2, 4, 8)  # stages tried until a model fits
_SHOWN = 12  # choices of a search
_TRIED = 24  # cheapest choices answered in full, waits and all, until one meets the targets


def price_of(device: Device, typed: Paid) -> tuple[float, str] | None:
    """$/h of one device: as typed, else the catalogue's of the kind typed, on-demand where none was; None where there
    is none. Raises as `find_price` does for a faulty file of the user's."""
    if typed is not None and not isinstance(typed, str):
        return float(typed), "price as given"
    try:
        return catalogue_price(device, typed or ON_DEMAND)
    except UnknownNameError:
        return None


def search(
    request: Request, at: Service, kinds: list[Device], asked: Targets | None, number: int | None,
    degrees: dict[str, int], price: Paid,
) -> tuple[Service, Inference]:  # fmt: skip
    """The cheapest choice over layouts and GPU kinds, answered in full. Raises InputError where nothing will do."""
    targets = asked or Targets(rate=at.rate)
    every = _found(at, kinds, replace(targets, ttft_s=None, tpot_s=None), number, degrees, price)
    found = [each for each in every if _meets(each.ttft_s, each.tpot_s, targets)]
    ranked = sorted(_best_of_each(found), key=_cost)
    for choice in sorted(found, key=_cost)[: 1 if targets.rate is None else _TRIED]:
        chosen = _service(at, choice, targets, price)
        whole = answer(chosen)
        if targets.rate is None or _meets(whole.ttft_s, whole.tpot_s, targets):
            return chosen, replace(whole, choices=tuple(ranked[:_SHOWN]), front=tuple(pareto(found)))
    if not every:
        _refuse_size(at, kinds, number, degrees)
    _refuse(request, kinds, targets, every)
    raise AssertionError("a fault was recorded")


def _found(
    at: Service,
    kinds: list[Device],
    targets: Targets,
    number: int | None,
    degrees: dict[str, int],
    price: Paid,
) -> list[Choice]:
    """Every choice on every kind."""
    experts = max((p.layer.num for p in at.arch.leaves() if isinstance(p.layer, Experts)), default=0)
    found: list[Choice] = []
    for device in kinds:
        paid = price_of(device, price)
        for stages in (degrees["pp"],) if "pp" in degrees else PIPELINES:
            layouts = _layouts(experts, stages, number, degrees)
            here = choices(_builder(at, device), layouts, at.requests, targets, None if paid is None else paid[0])
            found += here
            if here:  # a longer pipeline is for models that need it
                break
    return [each for each in found if number is None or each.gpus <= number]


def _layouts(experts: int, stages: int, number: int | None, degrees: dict[str, int]) -> list[ServingLayout]:
    """Layouts of so many stages in as many nodes, with the degrees that were given."""
    most = min(number or NODE * stages, NODE * stages)
    wanted = {name: value for name, value in degrees.items() if name != "cp"}
    return [
        replace(each, cp=degrees.get("cp", 1))
        for each in layouts_of(experts, most, (stages,))
        if all(getattr(each, name) == value for name, value in wanted.items())
    ]


def _meets(ttft_s: float | None, tpot_s: float, targets: Targets) -> bool:
    first = targets.ttft_s is None or (ttft_s is not None and ttft_s <= targets.ttft_s)
    return first and (targets.tpot_s is None or tpot_s <= targets.tpot_s)


def _cost(each: Choice) -> tuple[float, float]:
    """Of a rate the money an hour; without one what a million tokens cost, for every choice is one replica."""
    money = each.usd_per_hour if each.replicas is not None else each.usd_per_million_tokens
    return (money if money is not None else each.gpus / (1 if each.replicas else each.tokens_per_s), each.tpot_s)


def _service(at: Service, best: Choice, targets: Targets, price: Paid) -> Service:
    device = find_device(best.gpu)
    return replace(
        at, device=device, gpus=best.gpus, layout=best.layout, price=price_of(device, price),
        users=None if targets.rate else best.concurrency * (best.replicas or 1), rate=targets.rate,
    )  # fmt: skip


def _refuse_size(at: Service, kinds: list[Device], number: int | None, degrees: dict[str, int]) -> None:
    """Raise for the first kind whose memory is too small, saying by how much and what would fit."""
    known = {name: value for name, value in degrees.items() if name != "cp"}
    rest = known.get("pp", 1) * known.get("dp_attention", 1)
    tp = known.get("tp", max(min(number or NODE, NODE) // rest, 1))
    for device in kinds:
        check_fits(at.arch, device, scheme=at.precision.scheme, engine=at.engine,
                   layout=ServingLayout(**{**known, "tp": tp}))  # fmt: skip


def _refuse(request: Request, kinds: list[Device], targets: Targets, every: list[Choice]) -> None:
    """Say that nothing will do, and how near what there is comes."""
    name = "tpot" if targets.tpot_s is not None else "ttft" if targets.ttft_s is not None else "rate"
    near = ""
    if every:
        token, first = (min(every, key=key) for key in (lambda each: each.tpot_s, lambda each: each.ttft_s))
        near = (
            f"The shortest found: a token in {format_seconds(token.tpot_s)} on {token.gpus} × {token.gpu}, a first "
            f"token in {format_seconds(first.ttft_s)} on {first.gpus} × {first.gpu}, waits not counted."
        )
    request.fault("no_layout", "nothing meets the targets" if every else "nothing holds the model", name,
                  got=", ".join(kind.short_id for kind in kinds),
                  expected="a longer time, more or other GPUs, or a narrower --dtype", hint=near)  # fmt: skip
    request.check()


def _best_of_each(found: list[Choice]) -> list[Choice]:
    """Of every layout on every GPU kind its cheapest choice."""
    kept: dict[Any, list[Choice]] = {}
    for each in found:
        kept.setdefault((each.gpu, each.layout), []).append(each)
    return [min(group, key=_cost) for group in kept.values()]


def _builder(at: Service, device: Device) -> Callable[[ServingLayout], tuple[Replica, float]]:
    def build(layout: ServingLayout) -> tuple[Replica, float]:
        scheme = at.precision.scheme
        if not fits(at.arch, device, scheme=scheme, engine=at.engine, layout=layout):  # no remedy is asked for here
            raise InputError(Fault(code="no_fit", message="weights leave no room"))
        here = replace(at, device=device, layout=layout)
        held = hold(here)
        return replica_of(here), float(held.budget.max_concurrency)

    return build


def side_by_side(at: Service, kinds: list[Device], price: Paid) -> tuple[Service, Inference]:
    """The same load and layout on every kind; the answer in full is that of the cheapest tokens, without prices of the
    most. A kind that cannot be used is left out; where all are, their faults are raised."""
    done: list[tuple[Service, Inference]] = []
    refused = Request()
    for device in kinds:
        here = replace(at, device=device, price=price_of(device, price))
        found = refused.attempt(lambda here=here: answer(here))  # type: ignore[misc]
        if found is not None:
            done.append((here, found))
    if not done:
        refused.check()
    priced = all(found.usd_per_million_tokens is not None for _, found in done)

    def rank(each: tuple[Service, Inference]) -> float:
        found = each[1]
        return (found.usd_per_million_tokens or 0.0) if priced else -found.tokens_per_second

    ranked = sorted(done, key=rank)
    chosen, best = ranked[0]
    return chosen, replace(best, choices=tuple(_choice(found) for _, found in ranked))


def _choice(found: Inference) -> Choice:
    each = found.tokens_per_second / found.replicas
    return Choice(
        gpu=found.gpu, layout=found.layout, concurrency=found.load.concurrency, ttft_s=found.ttft_s or 0.0,
        tpot_s=found.tpot_s, tokens_per_s=each, tokens_per_s_per_gpu=found.tokens_per_second / found.gpus,
        replicas=found.replicas, gpus=found.gpus, usd_per_hour=None if found.cost is None
        else found.cost.usd_per_hour * found.gpus / found.cost.gpus,
        usd_per_million_tokens=found.usd_per_million_tokens,
    )  # fmt: skip
