"""The answer of `suanli.infer`: read, answered or searched, told."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from suanli.api import serving_request as reading
from suanli.api.parts import as_asked, assumed_line
from suanli.api.request import Request
from suanli.api.serving_search import NODE, price_of, search, side_by_side
from suanli.catalog.serving_points import serving_points
from suanli.catalog.serving_presets import find_serving_preset, power_profile
from suanli.nouns.hardware import Device
from suanli.nouns.infer import Inference
from suanli.nouns.result import Result
from suanli.nouns.serving import ServingLayout
from suanli.nouns.serving_profile import ServingPreset
from suanli.nouns.serving_ways import Calibration, Neighbour
from suanli.nouns.stored import StoredScheme
from suanli.plan.serving import catalogue_price
from suanli.plan.serving.answer import Service, answer
from suanli.plan.serving.check import can_cut
from suanli.plan.serving.links import device_notes
from suanli.plan.serving.neighbours import Asked, nearest
from suanli.plan.serving.own_points import calibrate as drawn_to
from suanli.plan.serving.search import Targets
from suanli.plan.serving.stages import MODEL
from suanli.readers.preset import read_named_preset
from suanli.readers.serving_points import read_serving_points
from suanli.units import format_percent

DEFAULT_PRESET = "vllm"
FORMULAS = (
    "decode and prefill: rooflines of a rank's operators with an engine's fitted numbers (docs/serving.md)",
    "waiting: Pollaczek–Khinchine for constant service (M/D/1), Little's law",
)
STAGES = "stages: Erlang C (M/M/c), the least capacity of all"
_WAYS = ("draft", "chunk", "pools")
_read = functools.cache(read_named_preset)


def infer_model(model: Any, typed: Mapping[str, Any]) -> Result:
    """The answer of `infer`: `typed` holds its options by keyword, None where not given."""
    request = Request()
    asked = _read_all(request, model, typed)
    at, found = _answered(request, asked)
    found = replace(found, neighbours=_neighbours(at, found), calibration=asked.calibration)
    preset_source = f"preset {at.preset.name}: {at.preset.source}"
    return Result(
        kind="infer",
        inputs={"model": as_asked(model), **request.given, "assumed": request.assumed},
        result=found,
        uncounted=(),
        sources=(*at.arch.sources, *_weights_source(at), preset_source, *FORMULAS, *((STAGES,) if at.stages else ())),
        notes=(*assumed_line(request), *asked.notes, *_notes(at, found)),
        asked={"service": at},
    )


@dataclass(frozen=True, kw_only=True)
class _Read:
    """A request that was read without a fault; `service` lacks GPU kind, layout and price."""

    service: Service
    kinds: list[Device]
    targets: Targets | None
    number: int | None
    degrees: dict[str, int]
    price: float | str | None
    calibration: Calibration | None
    notes: tuple[str, ...] = ()


def _read_all(request: Request, model: Any, typed: Mapping[str, Any]) -> _Read:
    """Every option read, and all faults raised together."""
    given = reading.read_given(request, model)
    arch = None if given is None else given.arch
    lengths = reading.read_requests(request, typed["isl"], typed["osl"], arch)
    kinds = reading.read_devices(request, typed["gpu"])
    load = reading.read_load(request, typed["concurrency"], typed["rate"], typed["batch"])
    targets = reading.read_targets(request, typed["ttft"], typed["tpot"], load.get("rate"))
    precision = reading.read_precision(request, given, typed["dtype"], typed["kv_dtype"])
    engine = request.attempt(lambda: find_serving_preset(request.word("preset", typed["preset"], DEFAULT_PRESET)))
    degrees = reading.read_degrees(request, {name: typed[name] for name in reading.DEGREES})
    number = reading.whole(request, "gpus", typed["gpus"])
    money = reading.read_money(request, typed)
    ways = _ways(request, typed)
    chance = request.whole("seed", typed["seed"]) or 0
    engine, calibration = _calibrated(request, engine, typed["calibrate"])
    _apart(request, ways, number, load.get("batch"), searched=targets is not None or len(kinds) > 1)
    request.check()
    assert (
        given is not None and arch is not None and engine is not None and precision is not None and lengths is not None
    )
    service = Service(
        arch=arch, device=kinds[0], gpus=number or 1, layout=ServingLayout(), precision=precision, preset=engine,
        requests=lengths, engine=engine.name.split("-offline")[0].split("-chat")[0], users=load.get("users"),
        rate=load.get("rate"), batch=load.get("batch"), power=power_profile(), seed=chance, **ways, **money["service"],
    )  # fmt: skip
    return _Read(service=service, kinds=kinds, targets=targets, number=number, degrees=degrees, price=money["price"],
                 calibration=calibration, notes=reading.given_notes(given, precision, typed["dtype"]))  # fmt: skip


def _ways(request: Request, typed: Mapping[str, Any]) -> dict[str, Any]:
    """What `Service` takes beside one engine that does everything."""
    pools = reading.read_pools(request, typed["disaggregate"])
    return {
        "draft": reading.read_draft(request, typed["draft_tokens"], typed["acceptance"], typed["draft_model"]),
        "chunk": reading.whole(request, "chunk", typed["chunk"]),
        "pools": pools, "link_bytes_per_s": reading.read_link(request, typed["link"]),
        "stages": reading.read_stages(request, typed["stages"]),
    }  # fmt: skip


def _answered(request: Request, asked: _Read) -> tuple[Service, Inference]:
    """A search for targets, several kinds side by side, or one set-up."""
    at, kinds = asked.service, asked.kinds
    if asked.targets is not None or (len(kinds) > 1 and at.rate is not None):
        return search(request, at, kinds, asked.targets, asked.number, asked.degrees, asked.price)
    at = _placed(request, at, asked.degrees, asked.number)
    if len(kinds) > 1:
        return side_by_side(at, kinds, asked.price)
    if isinstance(asked.price, str):
        request.attempt(lambda: catalogue_price(at.device, str(asked.price)))  # the kind that was asked for, or a fault
        request.check()
    at = replace(at, price=price_of(at.device, asked.price))
    return at, answer(at)


def _calibrated(
    request: Request, engine: ServingPreset | None, path: str | Path | None
) -> tuple[ServingPreset | None, Calibration | None]:
    """The preset, drawn to the user's own points where there are some."""
    if path is None or engine is None:
        return engine, None
    request.given["calibrate"] = str(path)
    found = request.attempt(lambda: drawn_to(engine, read_serving_points(Path(path)), _read))
    return (engine, None) if found is None else found


def _apart(request: Request, ways: dict[str, Any], number: int | None, batch: float | None, *, searched: bool) -> None:
    """What does not go together."""
    names = {"draft": "draft_tokens", "chunk": "chunk", "pools": "disaggregate"}
    given = [names[way] for way in _WAYS if ways[way] is not None]
    if searched and given:
        request.fault("contradiction", "a search over layouts or GPUs takes engines as they are", given[0],
                      got=", ".join(f"--{name.replace('_', '-')}" for name in given),
                      expected="one --gpu and a layout, without --ttft and --tpot")  # fmt: skip
    if batch is not None:
        given = [*given, *(["stages"] if ways["stages"] else [])]
        if given or searched:
            request.fault("contradiction", "a static batch is one engine's, prompts whole", "batch",
                          got=", ".join(f"--{name.replace('_', '-')}" for name in given) or "a search",
                          expected="--batch with one --gpu and a layout")  # fmt: skip
    if ways["pools"] is not None and ways["chunk"] is not None:
        request.fault("contradiction", "pools of their own need no chunks", "chunk", got="--chunk and --disaggregate",
                      expected="one of them")  # fmt: skip
    if ways["pools"] is not None and number not in (None, sum(ways["pools"])):
        request.fault("contradiction", "the pools are another number of GPUs", "gpus", got=f"{number:,}",
                      expected=f"{sum(ways['pools']):,}, or none given")  # fmt: skip


def _placed(request: Request, at: Service, degrees: dict[str, int], number: int | None) -> Service:
    """The layout as given; where tp is not, as many ranks of a node as cut the model, said as assumed."""
    known = dict(degrees)
    if "tp" not in known:
        rest = known.get("pp", 1) * known.get("dp_attention", 1)
        each = number or 1 if at.pools is None else min(at.pools)
        known["tp"] = _usual_tp(at, known, each, max(min(each, NODE * known.get("pp", 1)) // rest, 1))
        request.assumed["tp"] = known["tp"]
    layout = ServingLayout(**known)
    gpus = sum(at.pools) if at.pools is not None else number or layout.gpus
    for many in at.pools or (gpus,):
        if many % layout.gpus:
            request.fault("not_divisible", "GPUs do not make whole replicas", "disaggregate" if at.pools else "gpus",
                          got=f"{many:,} for replicas of {layout.gpus:,}",
                          expected=f"a multiple of {layout.gpus:,}")  # fmt: skip
    request.check()
    return replace(at, gpus=gpus, layout=layout)


def _usual_tp(at: Service, known: dict[str, int], gpus: int, most: int) -> int:
    """The largest tp up to `most` that cuts the model and makes whole replicas; `most` where none does: then its faults
    are told."""
    for tp in range(most, 0, -1):
        layout = ServingLayout(**{**known, "tp": tp})
        if gpus % layout.gpus == 0 and can_cut(at.arch, layout):
            return tp
    return most


def _neighbours(at: Service, found: Inference) -> tuple[Neighbour, ...]:
    """The nearest points that ship, and what this preset says of them."""
    asked = Asked(
        arch=at.arch, device=at.device, gpus=at.layout.gpus, bits=float(at.precision.scheme.bits), engine=at.engine,
        isl=at.requests.prompt, osl=at.requests.osl, concurrency=max(found.load.concurrency, 1.0),
    )  # fmt: skip
    return nearest(asked, at.preset, serving_points(), _read)


# --- saying -------------------------------------------------------------------------------------------------------


def _weights_source(at: Service) -> tuple[str, ...]:
    """Where bytes of weights come from that no catalogue has."""
    scheme = at.precision.scheme
    if isinstance(scheme, StoredScheme):
        return (f"weights: {scheme.source}",)
    return (f"weights: {scheme.source}",) if "quant_method" in scheme.source else ()


def _notes(at: Service, found: Inference) -> tuple[str, ...]:
    notes = [*found.kv_cache.notes, *device_notes(at.device, at.layout.gpus, at.link_bytes_per_s)]
    if at.preset.rows and at.device.short_id not in at.preset.gpus:
        seen = ", ".join(at.preset.gpus)
        notes.append(f"preset {at.preset.name} was fitted on {seen}: on {at.device.short_id} it extrapolates")
    if at.batch is not None and at.batch > found.load.concurrency * at.replicas:
        room = found.load.concurrency * at.replicas
        notes.append(f"the caches hold {room:,.0f} of a batch of {at.batch:,.0f}: the figures are of those")
    if found.load.waiting:
        notes.append(
            f"{found.load.waiting:,.0f} users of a replica wait for room in the cache: more GPUs, or fewer users"
        )
    if found.load.saturated:
        most = found.saturation.requests_per_s * found.replicas
        notes.append(f"more requests come than the {most:.3g} a second that are finished: the queue grows without end")
    return (*notes, *_notes_of_ways(at, found))


def _notes_of_ways(at: Service, found: Inference) -> tuple[str, ...]:
    notes = []
    if found.speculation is not None:
        notes.append("acceptance is as given; measured ones fall with every further token drafted")
        notes.append("the interval is that of decoding without drafts")
        if at.draft is not None and at.draft.arch is None:
            notes.append("drafts by one more layer of the model: its weights and cache are not in the memory shown")
        if found.speculation.speed_up < 1:
            notes.append(f"at this batch drafts cost more than they bring: {found.speculation.speed_up:.2f} times")
    if found.disaggregation is not None:
        notes.append("pools apart: a cache travels whole after its prompt; no percentiles, no energy")
    staged = found.service
    if staged is not None and staged.limit != MODEL and staged.requests_per_s < staged.offered_per_s:
        most = staged.limit_per_s
        notes.append(f"stage {staged.limit} finishes {most:,.3g} requests a second at most, and all wait for it")
    if found.calibration is not None:
        own = found.calibration
        before, after = (format_percent(value, 1) for value in (own.error_before, own.error_after))
        notes.append(f"preset {at.preset.name} drawn to {own.points} points of {at.engine}: off by {before} before, "
                     f"{after} after, {format_percent(own.error_held_out, 1)} with each left out")  # fmt: skip
    return tuple(notes)
