"""`suanli.infer`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from suanli.api.parts import as_asked, assumed_line, read_device, read_model_of
from suanli.api.request import Request
from suanli.catalog.devices import find_device
from suanli.catalog.serving_presets import find_serving_preset, power_profile
from suanli.errors import SuanliError
from suanli.nouns.hardware import Device
from suanli.nouns.infer import Choice, Inference
from suanli.nouns.layers import Experts
from suanli.nouns.result import Result
from suanli.nouns.serving import ServingLayout
from suanli.plan.serving import catalogue_price
from suanli.plan.serving.answer import Service, answer, hold
from suanli.plan.serving.load import Requests
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.replicas import build_replica
from suanli.plan.serving.search import Targets, cheapest, choices, layouts_of, pareto
from suanli.plan.serving.times import Replica
from suanli.units import parse

DEFAULT_ISL, DEFAULT_OSL, DEFAULT_PRESET = 1024, 1024, "vllm"
NODE = 8
_DEGREES = ("tp", "pp", "ep", "dp_attention", "cp")
_SHOWN = 12  # choices of a search
FORMULAS = (
    "decode and prefill: rooflines of a rank's operators with an engine's fitted numbers (docs/serving.md)",
    "waiting: Pollaczek–Khinchine for constant service (M/D/1), Little's law",
)


def infer(
    model: Any,
    *,
    gpu: str | None = None,
    gpus: Any = None,
    isl: Any = None,
    osl: Any = None,
    concurrency: Any = None,
    rate: Any = None,
    ttft: Any = None,
    tpot: Any = None,
    tp: Any = None,
    pp: Any = None,
    ep: Any = None,
    dp_attention: Any = None,
    cp: Any = None,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    preset: str | None = None,
    price: Any = None,
    sell: Any = None,
    utilisation: Any = None,
    pue: Any = None,
    carbon: Any = None,
    seed: Any = None,
) -> Result:
    """Whether a model fits, how fast one user is, how many users, how many tokens a second, at what cost and energy.

    With `concurrency` (users who never rest) or `rate` (requests a second) it answers for that load; with `ttft` and
    `tpot` (seconds) it looks for the cheapest layout, and GPU of those named with commas, that meets them.
    Raises InputError listing every fault of the request; DoesNotFitError where weights leave no room.

    >>> infer("llama-3-8b", gpu="h100-sxm", concurrency=16).kv_bytes_per_token
    131072
    """
    request = Request()
    arch = read_model_of(request, model)
    lengths = _requests(request, isl, osl)
    kinds = _devices(request, gpu)
    load = _load(request, concurrency, rate)
    targets = _targets(request, ttft, tpot, load.get("rate"))
    precision = _precision(request, dtype, kv_dtype)
    engine = request.attempt(lambda: find_serving_preset(request.word("preset", preset, DEFAULT_PRESET)))
    degrees = {name: request.whole(name, value, low=1)
               for name, value in zip(_DEGREES, (tp, pp, ep, dp_attention, cp), strict=True)}  # fmt: skip
    number = request.whole("gpus", gpus, low=1)
    money = _money(request, price, sell, utilisation, pue, carbon)
    chance = request.whole("seed", seed) or 0
    if arch is not None and (not arch.decodes or arch.unit != "token"):
        request.fault("no_decoder", "the model generates no tokens", "model", got=arch.name,
                      expected="a model that decodes one token after another")  # fmt: skip
    request.check()
    assert arch is not None and engine is not None and precision is not None and lengths is not None
    first = Service(
        arch=arch, device=kinds[0], gpus=number or 1, layout=ServingLayout(), precision=precision, preset=engine,
        requests=lengths, engine=engine.name.split("-offline")[0].split("-chat")[0], users=load.get("users"),
        rate=load.get("rate"), power=power_profile(), seed=chance, **money["service"],
    )  # fmt: skip
    if targets is None and len(kinds) == 1:
        at = _placed(request, first, degrees, number)
        at = replace(at, price=_price(at.device, money["price"]))
        found = answer(at)
    else:
        at, found = _search(request, first, kinds, targets or Targets(rate=load.get("rate")), number, money["price"])
    return Result(
        kind="infer",
        inputs={"model": as_asked(model), **request.given, "assumed": request.assumed},
        result=found,
        uncounted=(),
        sources=(*arch.sources, f"preset {engine.name}: {engine.source}", *FORMULAS),
        notes=(*assumed_line(request), *_notes(at, found)),
        asked={"service": at},
    )


# --- reading ------------------------------------------------------------------------------------------------------


def _requests(request: Request, isl: Any, osl: Any) -> Requests | None:
    prompt = request.whole("isl", isl, DEFAULT_ISL, low=1)
    answered = request.whole("osl", osl, DEFAULT_OSL, low=1)
    return None if prompt is None or answered is None else Requests(isl=float(prompt), osl=float(answered))


def _devices(request: Request, gpu: str | None) -> list[Device]:
    """One GPU kind, or several with commas."""
    if gpu is None:
        request.fault("missing_option", "an answer is for a device", "gpu", expected="--gpu h100-sxm")
        return []
    names = [part.strip() for part in str(gpu).split(",") if part.strip()]
    if len(names) < 2:
        found = read_device(request, gpu)
        return [] if found is None else [found]
    request.given["gpu"] = gpu
    read = [request.attempt(lambda name=name: find_device(name)) for name in names]  # type: ignore[misc]
    return [each for each in read if each is not None]


def _load(request: Request, concurrency: Any, rate: Any) -> dict[str, float]:
    if concurrency is not None and rate is not None:
        request.fault("contradiction", "two loads are given", "rate", got="--concurrency and --rate", expected="one")
    if rate is not None:
        request.given["rate"] = rate
        found = request.attempt(lambda: parse(str(rate).removesuffix("/s"), "factor", "--rate"))
        if found is not None and not found > 0:
            request.fault("bad_rate", "no requests come", "rate", got=str(rate), expected="above 0 a second")
        return {"rate": float(found)} if found else {}
    users = request.whole("concurrency", concurrency, 1, low=1)
    return {} if users is None else {"users": float(users)}


def _targets(request: Request, ttft: Any, tpot: Any, rate: float | None) -> Targets | None:
    if ttft is None and tpot is None:
        return None
    limits = {name: request.quantity(name, value, "span") for name, value in (("ttft", ttft), ("tpot", tpot))}
    for name, value in limits.items():
        if value is not None and not value > 0:
            request.fault(f"bad_{name}", "no time at all", name, got=str(value), expected="above 0, like 50ms")
    return Targets(rate=rate, ttft_s=limits["ttft"], tpot_s=limits["tpot"])


def _precision(request: Request, dtype: str | None, kv_dtype: str | None) -> Precision | None:
    scheme, cache = request.word("dtype", dtype, "bf16"), request.word("kv_dtype", kv_dtype, "bf16")
    return request.attempt(lambda: Precision.of(scheme, cache))


def _money(request: Request, price: Any, sell: Any, utilisation: Any, pue: Any, carbon: Any) -> dict[str, Any]:
    paid = request.quantity("price", price, "factor")
    asked = request.quantity("sell", sell, "factor")
    busy = request.quantity("utilisation", utilisation, "fraction")
    overhead = request.quantity("pue", pue, "factor")
    clean = request.quantity("carbon", carbon, "carbon")
    if busy is not None and not 0 < busy <= 1:
        request.fault(
            "bad_utilisation",
            "not a part of the time",
            "utilisation",
            got=str(utilisation),
            expected="above 0, at most 1",
        )
    if overhead is not None and overhead < 1:
        request.fault("bad_pue", "pue is not possible", "pue", got=str(pue), expected="at least 1")
    service = {"sell": asked, "utilisation": busy or 1.0, "pue": overhead or 1.0, "carbon": clean}
    return {"price": paid, "service": service}


def _price(device: Device, typed: float | None) -> tuple[float, str] | None:
    """$/h of one device: as typed, else the catalogue's on-demand price; None where there is none."""
    if typed is not None:
        return float(typed), "price as given"
    try:
        return catalogue_price(device)
    except SuanliError:
        return None


def _placed(request: Request, at: Service, degrees: dict[str, int | None], number: int | None) -> Service:
    """The layout as given; of what is not, all GPUs of a node as tensor parallel ranks, printed as assumed."""
    known = {name: value for name, value in degrees.items() if value is not None}
    if "tp" not in known:
        rest = known.get("pp", 1) * known.get("dp_attention", 1)
        known["tp"] = max(min(number or 1, NODE * known.get("pp", 1)) // rest, 1)
        request.assumed["tp"] = known["tp"]
    layout = ServingLayout(**known)
    gpus = number or layout.gpus
    if gpus % layout.gpus:
        request.fault("not_divisible", "GPUs do not make whole replicas", "gpus",
                      got=f"{gpus} for replicas of {layout.gpus}", expected=f"a multiple of {layout.gpus}")  # fmt: skip
    request.check()
    return replace(at, gpus=gpus, layout=layout)


# --- searching ----------------------------------------------------------------------------------------------------


def _search(
    request: Request, at: Service, kinds: list[Device], targets: Targets, number: int | None, price: float | None
) -> tuple[Service, Inference]:
    """The cheapest choice over layouts and GPU kinds, answered in full. Raises InputError where nothing will do."""
    experts = max((p.layer.num for p in at.arch.leaves() if isinstance(p.layer, Experts)), default=0)
    found: list[Choice] = []
    for device in kinds:
        paid = _price(device, price)
        layouts = list(layouts_of(experts, min(number or NODE, NODE)))
        found += choices(_builder(at, device), layouts, at.requests, targets, None if paid is None else paid[0])
    found = [each for each in found if number is None or each.gpus <= number]
    best = cheapest(found)
    if best is None:
        request.fault("no_layout", "nothing meets the targets", "tpot" if targets.tpot_s else "ttft",
                      got=", ".join(kind.short_id for kind in kinds),
                      expected="a longer time, more or other GPUs, or a narrower --dtype")  # fmt: skip
        request.check()
    assert best is not None
    device = find_device(best.gpu)
    users = best.concurrency * (best.replicas or 1)
    chosen = replace(
        at, device=device, gpus=best.gpus, layout=best.layout, price=_price(device, price),
        users=None if targets.rate else users, rate=targets.rate,
    )  # fmt: skip
    ranked = sorted(_best_of_each(found), key=lambda each: (each.usd_per_hour or each.gpus, each.tpot_s))
    return chosen, replace(answer(chosen), choices=tuple(ranked[:_SHOWN]), front=tuple(pareto(found)))


def _best_of_each(found: list[Choice]) -> list[Choice]:
    """Of every layout on every GPU kind its cheapest choice."""
    kept: dict[Any, list[Choice]] = {}
    for each in found:
        kept.setdefault((each.gpu, each.layout), []).append(each)
    return [best for best in map(cheapest, kept.values()) if best is not None]


def _builder(at: Service, device: Device) -> Callable[[ServingLayout], tuple[Replica, float]]:
    def build(layout: ServingLayout) -> tuple[Replica, float]:
        here = replace(at, device=device, layout=layout)
        held = hold(here)
        replica = build_replica(at.arch, device, layout, at.precision, at.preset.profile)
        return replica, float(held.budget.max_concurrency)

    return build


# --- saying -------------------------------------------------------------------------------------------------------


def _notes(at: Service, found: Inference) -> tuple[str, ...]:
    notes = list(found.kv_cache.notes)
    if at.preset.rows and at.device.short_id not in at.preset.gpus:
        seen = ", ".join(at.preset.gpus)
        notes.append(f"preset {at.preset.name} was fitted on {seen}: on {at.device.short_id} it extrapolates")
    if found.load.waiting:
        notes.append(
            f"{found.load.waiting:,.0f} users of a replica wait for room in the cache: more GPUs, or fewer users"
        )
    if found.load.saturated:
        most = found.saturation.requests_per_s * found.replicas
        notes.append(f"more requests come than the {most:.3g} a second that are finished: the queue grows without end")
    return tuple(notes)
