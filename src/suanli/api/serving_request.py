"""Reads a request of `infer`: lengths, load, targets, layout, money, ways of serving. All faults are collected."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suanli.api.request import Request
from suanli.catalog.devices import find_device
from suanli.catalog.schemes import find_scheme
from suanli.errors import UnknownNameError, shown
from suanli.nouns.arch import Arch
from suanli.nouns.formats import Scheme
from suanli.nouns.hardware import PRICE_KINDS, Device
from suanli.nouns.stored import StoredScheme
from suanli.plan.serving import weight_bytes
from suanli.plan.serving.cache import needs_encoder_tokens
from suanli.plan.serving.given import difference, stored_scheme, told
from suanli.plan.serving.load import Requests
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.search import Targets
from suanli.plan.serving.stages import MODEL, StageAsked
from suanli.plan.serving.ways import Draft
from suanli.readers.served import GivenModel, read_served
from suanli.units import format_bytes, parse

DEFAULT_ISL, DEFAULT_OSL = 1024, 1024
DEGREES = ("tp", "pp", "ep", "dp_attention", "cp")
# Above these nothing is a request: products of a few still fit a float.
MOST = {"isl": 10**8, "osl": 10**8, "gpus": 10**6, "concurrency": 10**9, "batch": 10**9, "chunk": 10**8,
        "draft_tokens": 64, **dict.fromkeys(DEGREES, 4096)}  # fmt: skip
_MOST_RATE, _MOST_WORKERS, _MOST_USD = 1e9, 10**6, 1e9
MOST_LINK = 1e15
_STAGES = "NAME=TIME:WORKERS with commas, like pre=5ms:4,post=2ms:4"


def whole(request: Request, name: str, value: Any, default: int | None = None) -> int | None:
    """A whole number of at least 1 and at most what makes sense of it."""
    found = request.whole(name, value, default, low=1)
    if found is not None and found > MOST[name]:
        request.fault(f"bad_{name}", f"{name} is not possible", name, got=shown(value),
                      expected=f"at most {MOST[name]:,}")  # fmt: skip
        return None
    return found


def read_requests(request: Request, isl: Any, osl: Any, arch: Arch | None = None) -> Requests | None:
    """Lengths of prompt and answer; half of the model's positions each where it has fewer than the defaults together.
    What an encoder of any length takes is the prompt, and the decoder begins with one token."""
    half = max((arch.max_positions or 2 * DEFAULT_ISL) // 2, 1) if arch is not None else DEFAULT_ISL
    prompt = whole(request, "isl", isl, min(DEFAULT_ISL, half))
    answered = whole(request, "osl", osl, min(DEFAULT_OSL, half))
    if prompt is None or answered is None:
        return None
    if arch is not None and arch.decodes and needs_encoder_tokens(arch):
        return Requests(isl=1.0, osl=float(answered), encoded=float(prompt))
    return Requests(isl=float(prompt), osl=float(answered))


def read_decoder(request: Request, model: Any) -> Arch | None:
    """The model, which has to generate tokens."""
    found = read_given(request, model)
    return None if found is None else found.arch


def read_given(request: Request, model: Any) -> GivenModel | None:
    """The model, which has to generate tokens, with its weights' header where it was given."""
    found = request.attempt(lambda: read_served(model))
    if found is not None and (not found.arch.decodes or found.arch.unit != "token"):
        request.fault("no_decoder", "the model generates no tokens", "model", got=found.arch.name,
                      expected="a model that decodes one token after another")  # fmt: skip
        return None
    return found


def read_devices(request: Request, gpu: str | None) -> list[Device]:
    """One GPU kind, or several with commas, each once."""
    if gpu is None:
        request.fault("missing_option", "an answer is for a device", "gpu", expected="--gpu h100-sxm")
        return []
    names = list(dict.fromkeys(part.strip() for part in str(gpu).split(",") if part.strip()))
    if len(names) < 2:
        names = [str(gpu)]
    request.given["gpu"] = gpu
    read = [request.attempt(lambda name=name: _device(name)) for name in names]  # type: ignore[misc]
    return [each for each in read if each is not None]


def _device(name: str) -> Device:
    """The device of that name; a peak alone, which other verbs would take instead, serves nobody."""
    try:
        return find_device(name)
    except UnknownNameError as problem:
        raise UnknownNameError(
            *(replace(fault, hint="`suanli gpus` lists them.") if fault.code == "unknown_device" else fault
              for fault in problem.faults)
        ) from None  # fmt: skip


def read_load(request: Request, concurrency: Any, rate: Any, batch: Any = None) -> dict[str, float]:
    """`users`, `rate` or `batch`; one user where none is given."""
    typed = {"concurrency": concurrency, "rate": rate, "batch": batch}
    loads = [f"--{name}" for name, value in typed.items() if value is not None]
    if len(loads) > 1:
        request.fault("contradiction", f"{'two' if len(loads) == 2 else 'three'} loads are given", loads[-1][2:],
                      got=" and ".join(loads), expected="one")  # fmt: skip
    if batch is not None:
        together = whole(request, "batch", batch)
        return {} if together is None else {"batch": float(together)}
    if rate is not None:
        request.given["rate"] = rate
        found = request.attempt(lambda: parse(str(rate).removesuffix("/s"), "factor", "--rate"))
        if found is not None and not 0 < found <= _MOST_RATE:
            request.fault("bad_rate", "rate is not possible", "rate", got=shown(rate),
                          expected="requests a second, above 0 and at most 1e9")  # fmt: skip
            return {}
        return {"rate": float(found)} if found else {}
    users = whole(request, "concurrency", concurrency, 1)
    return {} if users is None else {"users": float(users)}


def read_targets(request: Request, ttft: Any, tpot: Any, rate: float | None) -> Targets | None:
    """What has to be met; None where nothing was asked."""
    if ttft is None and tpot is None:
        return None
    typed = {"ttft": ttft, "tpot": tpot}
    limits = {name: request.quantity(name, value, "latency") for name, value in typed.items()}
    for name, value in limits.items():
        if value is not None and not value > 0:
            request.fault(f"bad_{name}", "no time at all", name, got=shown(typed[name]), expected="above 0, like 50ms")
    return Targets(rate=rate, ttft_s=limits["ttft"], tpot_s=limits["tpot"])


def read_degrees(request: Request, typed: Mapping[str, Any]) -> dict[str, int]:
    """The degrees of the layout that were given."""
    found = {name: whole(request, name, value) for name, value in typed.items()}
    return {name: value for name, value in found.items() if value is not None}


def read_precision(
    request: Request, given: GivenModel | None, dtype: str | None, kv_dtype: str | None
) -> Precision | None:
    """Scheme of the weights, format of the cache. Without a scheme by name weights are as the header has them, else as
    the config says, else bf16."""
    scheme = request.attempt(lambda: _scheme(request, given, dtype))
    cache = request.word("kv_dtype", kv_dtype, "bf16")
    whole = request.attempt(lambda: Precision.of("bf16", cache))
    return None if scheme is None or whole is None else Precision.of(scheme, cache)


def _scheme(request: Request, given: GivenModel | None, dtype: str | None) -> Scheme:
    if dtype is not None or given is None:
        return find_scheme(request.word("dtype", dtype, "bf16"))
    if given.table is not None:
        request.assumed["dtype"] = f"as stored in {given.file}"
        return stored_scheme(given.table, given.arch, given.file, said=given.scheme)
    if given.unknown_scheme is not None:
        raise given.unknown_scheme
    if given.scheme is not None:
        request.assumed["dtype"] = f"{given.scheme.name} (quantization_config)"
        return given.scheme
    return find_scheme(request.word("dtype", None, "bf16"))


def given_notes(given: GivenModel, precision: Precision, dtype: str | None) -> tuple[str, ...]:
    """What of the weights as given differs from what is taken, or is not here."""
    notes, scheme = list(given.notes), precision.scheme
    if isinstance(scheme, StoredScheme):
        notes += difference(scheme, given.arch)
    elif given.table is not None:
        size = format_bytes(given.table.nbytes)
        notes.append(f"weights are as --dtype {dtype} says, not as stored in {given.file} ({size})")
    elif given.total is not None:
        ours = weight_bytes(given.arch, scheme).total
        notes += told(ours, given.total, f"{given.arch.name} in {scheme.name}", f"the tensors of {given.file}")
    return tuple(notes)


def read_money(request: Request, typed: Mapping[str, Any]) -> dict[str, Any]:
    """`price` of a GPU-hour as typed, dollars or a kind, and what `Service` takes: sell, utilisation, pue, carbon."""
    kind = _price_kind(request, typed["price"])
    typed = {**typed, "price": None} if kind is not None else typed
    kinds = {"price": "usd", "sell": "usd", "utilisation": "fraction", "pue": "factor", "carbon": "carbon"}
    found = {name: request.quantity(name, typed[name], kind) for name, kind in kinds.items()}
    bounds = {"price": (0, _MOST_USD, "dollars, above 0"), "sell": (0, _MOST_USD, "dollars, above 0"),
              "utilisation": (0, 1, "above 0 and at most 100%")}  # fmt: skip
    for name, (low, high, expected) in bounds.items():
        value = found[name]
        if value is not None and not low < value <= high:
            request.fault(f"bad_{name}", f"{name} is not possible", name, got=shown(typed[name]), expected=expected)
    if found["pue"] is not None and not 1 <= found["pue"] <= 10:
        request.fault("bad_pue", "pue is not possible", "pue", got=shown(typed["pue"]), expected="1 to 10")
    service = {"sell": found["sell"], "utilisation": found["utilisation"] or 1.0, "pue": found["pue"] or 1.0,
               "carbon": found["carbon"]}  # fmt: skip
    return {"price": found["price"] if kind is None else kind, "service": service}


def _price_kind(request: Request, price: Any) -> str | None:
    """`spot` and the like: the catalogue's price of that kind."""
    word = price.strip().lower() if isinstance(price, str) else ""
    if word not in PRICE_KINDS:
        return None
    request.given["price"] = word
    return word


def read_draft(request: Request, draft_tokens: Any, acceptance: Any, draft_model: Any) -> Draft | None:
    """Drafted tokens with their acceptance; neither has a default, for both decide everything."""
    if draft_tokens is None and acceptance is None and draft_model is None:
        return None
    for name, value in (("draft_tokens", draft_tokens), ("acceptance", acceptance)):
        if value is None:
            request.fault("missing_option", "drafts need their number and their acceptance", name,
                          expected="--draft-tokens 3 --acceptance 0.7")  # fmt: skip
    tokens = whole(request, "draft_tokens", draft_tokens)
    taken = request.quantity("acceptance", acceptance, "fraction")
    if taken is not None and taken > 1:
        request.fault("bad_acceptance", "acceptance is not possible", "acceptance", got=shown(acceptance),
                      expected="0 to 1")  # fmt: skip
        return None
    arch = None
    if draft_model is not None:
        drafts = Request()  # a fault of the draft model names its own option
        arch = read_decoder(drafts, draft_model)
        request.given["draft_model"] = str(draft_model)
        request.errors += drafts.errors
    return None if tokens is None or taken is None else Draft(tokens=tokens, acceptance=float(taken), arch=arch)


def read_pools(request: Request, text: Any) -> tuple[int, int] | None:
    """`P:D`, GPUs of prefill and of decode."""
    if text is None:
        return None
    request.given["disaggregate"] = text
    parts = str(text).split(":")
    found = [int(part) if part.strip().isdecimal() and len(part.strip()) < 7 else 0 for part in parts]
    if len(found) != 2 or not all(found):
        request.fault("bad_disaggregate", "these are no two pools", "disaggregate", got=shown(text),
                      expected="GPUs of prefill and of decode, like 4:8")  # fmt: skip
        return None
    return found[0], found[1]


def read_link(request: Request, link: Any) -> float | None:
    """Bytes a second of one GPU's link, one direction."""
    found = request.quantity("link", link, "bytes_per_s")
    if found is not None and not 0 < found <= MOST_LINK:
        request.fault("bad_link", "link is not possible", "link", got=shown(link),
                      expected="above 0, like 50GB/s, and at most 1 PB/s")  # fmt: skip
        return None
    return None if found is None else float(found)


def read_stages(request: Request, text: Any) -> tuple[StageAsked, ...]:
    """`NAME=TIME:WORKERS`, several with commas."""
    if text is None:
        return ()
    request.given["stages"] = text
    read = [_stage(request, part.strip()) for part in str(text).split(",")]
    found = [each for each in read if each is not None]
    names = [each.name for each in found]
    for name in dict.fromkeys(names):
        if names.count(name) > 1 or name == MODEL:
            request.fault("bad_stages", "a stage has another's name", "stages", got=name,
                          expected=f"each name once, and not {MODEL}")  # fmt: skip
    return tuple(found)


def _stage(request: Request, part: str) -> StageAsked | None:
    name, _, rest = part.partition("=")
    time, _, workers = rest.rpartition(":")
    seconds = None
    if name.strip() and time and workers.strip().isdecimal() and len(workers.strip()) < 8:
        seconds = request.attempt(lambda: parse(time, "latency", "--stages"))
        if seconds is None:
            return None
    if seconds is None or not 0 < seconds < math.inf or not 0 < int(workers) <= _MOST_WORKERS:
        request.fault("bad_stages", "a stage cannot be read", "stages", got=shown(part), expected=_STAGES)
        return None
    return StageAsked(name=name.strip(), service_s=float(seconds), workers=int(workers))
