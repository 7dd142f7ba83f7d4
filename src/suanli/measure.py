"""`mfu`: a measured rate against the peak of the machine, under one convention and beside the common ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from suanli.catalog.conventions import common_conventions
from suanli.count import build_ledger
from suanli.errors import Fault, FaultList, InputError, shown
from suanli.formulas import running
from suanli.nouns.arch import Arch
from suanli.nouns.convention import Convention
from suanli.nouns.hardware import Device
from suanli.nouns.ledger import RECOMPUTE_PASS
from suanli.nouns.measures import Mfu, Peak, Utilisation
from suanli.nouns.workload import Workload, option
from suanli.units import format_flop_per_s

PUBLISHED_SELECTIVE = "selective-published"
SELECTIVE_PUBLISHED_MULTIPLE = 3  # eq. 8 of arXiv:2205.05198 charges three times the recompute it describes
RECOMPUTE_CHOICES = ("none", "selective", PUBLISHED_SELECTIVE, "full")


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What was measured: exactly one of a step time with its batch, tokens a second, or FLOP/s of a GPU."""

    step_time: float | None = None
    global_batch: int | None = None
    tokens_per_second: float | None = None
    tflops_per_gpu: float | None = None

    def check(self) -> None:
        """Raise InputError unless exactly one measurement is given and is a rate at all.

        A rate below zero is let through: it has an MFU, which is then refused with its reason.
        """
        faults = FaultList(InputError)
        given = [n for n in ("step_time", "tokens_per_second", "tflops_per_gpu") if getattr(self, n) is not None]
        options = "--step-time with --global-batch, --tokens-per-second, or --tflops-per-gpu"
        if len(given) != 1:
            got = " and ".join(option(name) for name in given) or "none"
            faults.add(code="bad_rate", message="one measurement is needed", got=got, expected=options)
        if self.step_time is not None and self.global_batch is None:
            faults.add(
                code="missing_option",
                message="a step time needs the global batch",
                where="--step-time",
                expected="--global-batch SEQUENCES",
            )
        for name in given:
            if not math.isfinite(getattr(self, name)) or getattr(self, name) == 0:
                faults.add(
                    code="bad_rate",
                    message=f"{name.replace('_', ' ')} is no measurement",
                    where=option(name),
                    got=shown(getattr(self, name)),
                    expected="a number above 0",
                )
        if self.global_batch is not None and self.global_batch < 1:
            faults.add(
                code="bad_rate",
                message="global batch is not possible",
                where="--global-batch",
                got=shown(self.global_batch),
                expected="at least 1",
            )
        faults.raise_if_any()


@dataclass(frozen=True)
class PerToken:
    """FLOPs of one token in training under a convention."""

    model: float
    hardware: float


def flops_per_token(arch: Arch, workload: Workload, convention: Convention, recompute: str) -> PerToken:
    """Model and hardware FLOPs of one token of the main stream, in a training step of one sequence."""
    policy = "selective" if recompute == PUBLISHED_SELECTIVE else recompute
    one = replace(workload, batch=1, phase="train", recompute=policy)
    ledger = build_ledger(arch, one, convention)
    units = _units(arch, workload)
    again = ledger.flops(RECOMPUTE_PASS, "hardware_flops")
    extra = (SELECTIVE_PUBLISHED_MULTIPLE - 1) * again if recompute == PUBLISHED_SELECTIVE else 0
    return PerToken(ledger.model_flops / units, (ledger.hardware_flops + extra) / units)


def _units(arch: Arch, workload: Workload) -> int:
    """Positions of the main stream in one sequence (1 for a picture)."""
    if arch.main_stream == "sample":
        return 1
    return arch.stream(arch.main_stream).length or workload.seq


def find_peak(device: Device | None, dtype: str, given: float | None) -> Peak:
    """The dense peak: as given, or the catalogue's. Raises InputError without either, never guesses."""
    if given == 0:
        raise InputError(
            Fault(code="bad_peak", message="a peak of nothing", where="--peak", got="0", expected="a rate above 0")
        )
    if given is not None:
        return Peak(flop_per_s=given, dtype=dtype, device=device.short_id if device else None, source="--peak")
    if device is None:
        raise InputError(
            Fault(
                code="missing_option",
                message="a utilisation needs a peak",
                where="--gpu",
                expected="a device of the catalogue, or --peak FLOP/s",
                hint="`suanli gpus` lists the devices.",
            )
        )
    source = f"catalogue row {device.id}, compiled {device.compiled} from {'; '.join(device.sources)}"
    return Peak(flop_per_s=device.peak_flop_per_s(dtype), dtype=dtype, device=device.short_id, source=source)


def mfu(
    arch: Arch,
    workload: Workload,
    rate: Rate,
    peak: Peak,
    convention: Convention,
    *,
    gpus: int = 1,
    device: Device | None = None,
    recompute: str = "none",
    memory_used: int | None = None,
) -> Mfu:
    """MFU and HFU of a run. Over 100 %: None with the reason. Raises InputError for rates that cannot be."""
    rate.check()
    chosen = flops_per_token(arch, workload, convention, recompute)
    tokens = _tokens_per_s(arch, workload, rate, chosen, gpus)
    by = {
        each.name: _utilisation(flops_per_token(arch, workload, each, recompute), tokens, gpus, peak)
        for each in conventions_beside(arch, convention)
    }
    mine = by[convention.name]
    memory = device.memory_bytes_per_torch_device if device else None
    return Mfu(
        mfu=mine.mfu,
        hfu=mine.hfu,
        convention=convention.name,
        recompute=recompute,
        by_convention=by,
        peak_flop_per_s=peak.flop_per_s,
        peak=peak,
        achieved_flop_per_s=running.achieved_flop_per_s(chosen.model, tokens, gpus),
        achieved_hardware_flop_per_s=running.achieved_flop_per_s(chosen.hardware, tokens, gpus),
        tokens_per_second=tokens,
        tokens_per_second_per_gpu=tokens / gpus,
        gpus=gpus,
        unit=arch.unit,
        memory_utilisation=_memory_part(memory_used, memory),
        memory_bytes=memory,
        reason=mine.reason,
    )


def _memory_part(used: int | None, memory: int | None) -> float | None:
    """Memory used over memory; None where either is unknown, or more is used than there is."""
    return used / memory if used is not None and memory and used <= memory else None


def conventions_beside(arch: Arch, convention: Convention) -> list[Convention]:
    """The convention and each common one, those left out that the model has no shape for."""
    others = [each for each in common_conventions() if each.name != convention.name]
    return [each for each in (convention, *others) if each.basis != "closed" or arch.shape is not None]


def _tokens_per_s(arch: Arch, workload: Workload, rate: Rate, chosen: PerToken, gpus: int) -> float:
    """Tokens a second of all GPUs, from whichever was measured."""
    if rate.tokens_per_second is not None:
        return rate.tokens_per_second
    if rate.step_time is not None:
        assert rate.global_batch is not None
        return running.tokens_per_s(rate.global_batch, _units(arch, workload), rate.step_time)
    assert rate.tflops_per_gpu is not None
    return rate.tflops_per_gpu * gpus / chosen.model


def _utilisation(per: PerToken, tokens: float, gpus: int, peak: Peak) -> Utilisation:
    model = running.utilisation(running.achieved_flop_per_s(per.model, tokens, gpus), peak.flop_per_s)
    hardware = running.utilisation(running.achieved_flop_per_s(per.hardware, tokens, gpus), peak.flop_per_s)
    return Utilisation(
        mfu=model if 0 <= model <= 1 else None,
        hfu=hardware if 0 <= hardware <= 1 else None,
        flops_per_token=per.model,
        hardware_flops_per_token=per.hardware,
        reason=_impossible(model, hardware, peak),
    )


def _impossible(model: float, hardware: float, peak: Peak) -> str | None:
    """What is wrong when less than nothing or more than the peak is achieved; None where nothing is."""
    ratio = max(model, hardware)
    if model < 0:
        return f"{model:.3g} times the peak: a rate below zero was measured. Check the sign of what was given"
    if ratio <= 1:
        return None
    return (
        f"{ratio:.3f} times the peak of {format_flop_per_s(peak.flop_per_s)}: no machine exceeds its peak. Check that "
        "--gpus counts all GPUs of the measured rate, that --global-batch is in sequences, and that the GPU and dtype "
        "are those of the run"
    )
