"""`suanli.train`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from suanli.api.doubts import doubted, given_why, predicted_half_width, read_mfu, read_useful
from suanli.api.keeping import keeps_request
from suanli.api.parts import (
    as_asked,
    as_text,
    assumed_line,
    read_convention,
    read_device,
    read_dtype,
    read_model_of,
    read_recompute,
    read_workload,
)
from suanli.api.request import MOST_GPUS, Request
from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.catalog.prices import find_price, price_sentence
from suanli.errors import SuanliError
from suanli.measure import PUBLISHED_SELECTIVE, find_peak
from suanli.nouns.arch import Arch
from suanli.nouns.convention import Convention
from suanli.nouns.hardware import Device
from suanli.nouns.measures import Peak, Source
from suanli.nouns.result import Result
from suanli.nouns.workload import Workload, option
from suanli.plan.spread import Doubt
from suanli.plan.train import UTILISATIONS, Budget
from suanli.plan.train import train as plan_train
from suanli.plan.typical import typical_mfu
from suanli.plan.typical_spread import typical_half_width


@keeps_request
def train(
    model: Any = None,
    *,
    tokens: Any,
    gpu: str | None = None,
    gpus: Any = None,
    deadline: Any = None,
    params: Any = None,
    seq: Any = None,
    global_batch: Any = None,
    mfu: Any = None,
    hfu: Any = None,
    tflops_per_gpu: Any = None,
    recompute: str | None = None,
    convention: str | None = None,
    dtype: str | None = None,
    gpu_hours: Any = None,
    goodput: Any = None,
    failures: str | None = None,
    restart: Any = None,
    checkpoint_save: Any = None,
    price: Any = None,
    power: Any = None,
    pue: Any = None,
    carbon: Any = None,
) -> Result:
    """FLOPs, GPU-hours, days, cost, energy and CO₂ of a training run. Raises InputError listing every fault.

    `params` takes the ideal form 6·N·tokens (8·N·tokens with full recompute) in place of the exact count. `gpu_hours`
    that were paid tell the utilisation. `goodput` is a part of 1, a result of `suanli.goodput` or its JSON file.

    >>> round(train("gpt3-175b", params="175B", tokens="300B", gpu="a100-80gb-sxm", gpus=1000, mfu=0.462).gpu_hours)
    607032
    """
    request = Request()
    n = request.whole("params", params, kind="count", low=1)
    if model is None and params is None:
        request.fault("missing_option", "a run needs a model or --params", "params", expected="MODEL or --params N")
    arch = read_model_of(request, model) if model is not None else None
    ideal = params is not None  # 6·N·tokens asks for no convention and no length
    rule = find_convention(DEFAULT) if ideal else read_convention(request, convention)
    policy = read_recompute(request, recompute)
    if policy == PUBLISHED_SELECTIVE:
        request.fault("bad_recompute", "a printed equation, no policy", "recompute", expected="none, selective, full")
    word = read_dtype(request, dtype)
    device = read_device(request, gpu)
    budget = _budget(
        request, tokens=tokens, gpus=gpus, deadline=deadline, mfu=mfu, hfu=hfu, tflops_per_gpu=tflops_per_gpu,
        gpu_hours=gpu_hours, price=price, power=power, pue=pue, carbon=carbon,
        goodput={"goodput": goodput, "failures": failures, "restart": restart, "checkpoint_save": checkpoint_save},
    )  # fmt: skip
    batch = request.whole("global_batch", global_batch, low=1) if global_batch is not None else 1
    fixed = {"phase": "train", "batch": batch, "recompute": policy if policy != PUBLISHED_SELECTIVE else "none"}
    workload = read_workload(request, None if ideal else arch, {} if ideal else {"seq": seq}, fixed,
                             called={"batch": "global_batch"})  # fmt: skip
    request.check()
    assert rule is not None and workload is not None and budget is not None
    if device is not None and arch is not None and not ideal and global_batch is not None:
        own = workload.recompute if recompute is not None else None
        budget, workload = _forecast(budget, arch, device, replace(workload, dtype=word), rule, own)
    tried = any(each.name in ("MFU", "no prediction") for each in budget.assumed)  # the planner was asked
    budget = _completed(request, budget, device, arch, n, word, rule)
    top = request.attempt(lambda: find_peak(device, word, None)) if device is not None else None
    request.check()
    plan = plan_train(arch, workload, rule, budget, peak=top, params=n, name=_name(arch, n))
    return Result(
        kind="train",
        inputs={"model": as_asked(model) if model is not None else None, **request.given, "assumed": request.assumed},
        convention=rule.name if n is None else "6N·tokens (--params)",
        result=plan,
        sources=_sources(arch, None if ideal else rule, top),
        notes=(
            *assumed_line(request),
            *(f"{each.name}: {each.why}" for each in budget.assumed),
            *(arch.notes if arch else ()),
            *_idle(ideal, convention=convention, seq=seq, global_batch=None if tried else global_batch),
        ),
        asked={"budget": budget},
    )


def _sources(arch: Arch | None, rule: Convention | None, top: Peak | None) -> tuple[str, ...]:
    return (
        *(arch.sources if arch else ()),
        "6·N·tokens: arXiv:2001.08361 §2.1" if rule is None else f"convention {rule.name}: {rule.source}",
        *((f"peak: {top.source}",) if top else ()),
    )


def _budget(request: Request, **typed: Any) -> Budget | None:
    """The budget as typed; what is missing is filled in from the catalogue afterwards."""
    kinds = {
        "deadline": "span", "hfu": "fraction", "gpu_hours": "count", "price": "usd", "power": "power", "pue": "factor",
        "carbon": "carbon",
    }  # fmt: skip
    read = {name: request.quantity(name, typed[name], kind) for name, kind in kinds.items()}
    mfu, half_width = read_mfu(request, typed["mfu"])
    rate = request.quantity("tflops_per_gpu", as_text(typed["tflops_per_gpu"]), "tflop_per_s")
    tokens = request.whole("tokens", typed["tokens"], kind="count", low=1)
    gpus = request.whole("gpus", typed["gpus"], low=1, high=MOST_GPUS)
    if typed["tokens"] is None:
        request.fault("missing_option", "a run needs its tokens", "tokens", expected="--tokens 15.6T")
    useful = read_useful(request, typed["goodput"], gpus)
    if request.errors or tokens is None or useful is None:
        return None
    if read["pue"] is None:
        request.assumed["pue"] = read["pue"] = 1.0
    budget = Budget(
        tokens=tokens, gpus=gpus, deadline_s=read["deadline"], mfu=mfu, hfu=read["hfu"], flop_per_s=rate,
        gpu_hours=read["gpu_hours"], goodput=useful.goodput, price=read["price"], power=read["power"],
        pue=read["pue"] or 0, carbon=read["carbon"], assumed=useful.assumed,
        doubt=Doubt(half_width=half_width, mfu_why=given_why(half_width), failures=useful.failures,
                    goodput_why=useful.why),
    )  # fmt: skip
    request.attempt(budget.check)
    return budget


def _forecast(
    budget: Budget, arch: Arch, device: Device, workload: Workload, rule: Convention, recompute: str | None
) -> tuple[Budget, Workload]:
    """The budget with a predicted utilisation, and GPUs that meet the deadline; as they are where one is given, or
    where the planner lacks what it needs to predict, with the reason.

    Raises InputError where no layout fits, or no number of GPUs meets the deadline: the run cannot be.
    """
    given = (budget.mfu, budget.hfu, budget.flop_per_s, budget.gpu_hours)
    if any(each is not None for each in given) or (budget.gpus is None and budget.deadline_s is None):
        return budget, workload
    from suanli.api.forecasts import forecast_run, is_answer  # noqa: PLC0415  the planner comes with the first prediction

    steps = budget.tokens / (workload.batch * workload.seq)
    seconds = None if budget.deadline_s is None else budget.deadline_s * budget.goodput
    try:
        found = forecast_run(
            arch, device, workload, rule, global_batch=workload.batch, recompute=recompute, gpus=budget.gpus,
            steps=steps, seconds=seconds,
        )  # fmt: skip
    except SuanliError as problem:
        if is_answer(problem):
            raise
        why = Source(name="no prediction", value=None, why=str(problem))
        return replace(budget, assumed=(*budget.assumed, why)), workload
    source = Source(name="MFU", value=found.mfu, why=found.sentence)
    return replace(
        budget, mfu=found.mfu, mfu_interval=found.interval, layout=found.layout.short, gpus=found.gpus, deadline_s=None,
        assumed=(*budget.assumed, source), doubt=doubted(budget, *predicted_half_width(found.interval)),
    ), replace(workload, recompute=found.layout.recompute)  # fmt: skip


def _completed(
    request: Request,
    budget: Budget,
    device: Device | None,
    arch: Arch | None,
    n: int | None,
    dtype: str,
    rule: Convention,
) -> Budget:
    """Utilisation, price and power from the catalogue where none was given; each is named in `assumed`."""
    if device is None:
        return budget
    found: list[Source] = []
    reasons: dict[str, str] = {}
    if all(getattr(budget, name) is None for name in UTILISATIONS):
        if arch is not None and arch.unit != "token":
            what = f"published runs are of tokens, {arch.name} takes {arch.unit}s: a utilisation is needed"
            request.fault("missing_option", what, "mfu", expected="--mfu, --hfu or --tflops-per-gpu")
            return budget
        size = n or (arch.params_active if arch else 0)
        typical = request.attempt(lambda: typical_mfu(size, device, dtype, rule, budget.gpus))
        if typical is None:
            for each in budget.assumed:  # why the planner did not say it either
                if each.value is None:
                    request.fault("no_prediction", f"{each.name}: {each.why}", "global_batch")
        else:
            found.append(Source(name="MFU", value=typical.mfu, why=typical.sentence))
            wide = typical_half_width(size, device, dtype, rule, budget.gpus)
            budget = replace(budget, mfu=typical.mfu, doubt=doubted(budget, *wide))
    if budget.price is None:
        try:
            price = find_price(device)
            found.append(Source(name="price", value=price.usd_per_gpu_hour, why=price_sentence(price)))
            budget = replace(budget, price=price.usd_per_gpu_hour / device.torch_devices_per_package)
        except SuanliError as problem:
            reasons["cost_usd"] = str(problem)
    if budget.power is None and device.tdp_w is not None:
        why = f"board power of {device.short_id}, {device.tdp_w:g} W: an upper bound for the GPU, its host left out"
        found.append(Source(name="power", value=device.tdp_w, why=why))
        budget = replace(budget, power=device.tdp_w / device.torch_devices_per_package)
    return replace(budget, assumed=(*budget.assumed, *found), reasons=reasons)


def _name(arch: Arch | None, n: int | None) -> str:
    """The model, and N where it stands for the model."""
    if n is None:
        return ""
    return f"{arch.name} as {n:,} parameters" if arch else f"{n:,} parameters"


def _idle(ideal: bool, **typed: Any) -> tuple[str, ...]:
    """Options that were given and change nothing."""
    names = ["global_batch"] if not ideal else ["convention", "seq", "global_batch"]
    why = {"global_batch": "the whole run is planned, not a step"}
    reasons = {name: why.get(name, "--params takes 6·N·tokens") for name in names if typed[name] is not None}
    return tuple(f"{option(name)} changes nothing: {reason}" for name, reason in reasons.items())
