"""What to say when a model's weights do not fit: by how much, and what would hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from suanli.catalog.devices import list_devices
from suanli.errors import Fault, InputError, SuanliError
from suanli.nouns.arch import Arch
from suanli.nouns.engine import Engine
from suanli.nouns.formats import Scheme
from suanli.nouns.hardware import Device
from suanli.nouns.serving import ServingLayout
from suanli.plan.serving.budget import BUDGET_RULES, activation_bytes, asked
from suanli.plan.serving.cache import ONE
from suanli.plan.serving.weights import weight_bytes
from suanli.units import GIGA

DEGREES = (1, 2, 4, 8)
SMALLER = ("bf16", "fp8", "awq-4bit-128")  # from wide to narrow
SHOWN_DEVICES = 4


class DoesNotFitError(InputError):
    """The weights are more than a GPU's memory; `remedy` says what would hold them."""

    def __init__(self, fault: Fault, remedy: Remedy) -> None:
        super().__init__(fault)
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[SuanliError], tuple[Fault, ...]]:
        return (InputError, self.faults)


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What would hold the weights with room for a cache. Empty where nothing of the kind does."""

    layout: ServingLayout | None = field(metadata={"doc": "smallest number of the same GPUs"})
    devices: tuple[tuple[str, int], ...] = field(metadata={"doc": "other GPUs that do at the number asked for, ids"})
    schemes: tuple[str, ...] = field(metadata={"doc": "narrower weights that do on the GPUs asked for"})

    def sentence(self, device: str) -> str:
        """The remedies in words."""
        found = []
        if self.layout is not None:
            pipeline = f" --pp {self.layout.pp}" if self.layout.pp > 1 else ""
            found.append(f"{self.layout.gpus} × {device} (--tp {self.layout.tp}{pipeline})")
        if self.schemes:
            found.append("--dtype " + " or ".join(self.schemes))
        if self.devices:
            found.append("the same number of " + ", ".join(name for name, _ in self.devices))
        return "What would fit: " + "; ".join(found) + "." if found else "Nothing in the catalogue would fit."


def check_fits(
    arch: Arch, device: Device, *, scheme: str | Scheme = "bf16", engine: str | Engine = "vllm",
    layout: ServingLayout = ONE, fraction: float | None = None,
) -> None:  # fmt: skip
    """Raise DoesNotFitError where weights and activations leave a GPU no room for a cache, InputError where the
    catalogue does not know the GPU's memory."""
    left = _left(arch, device, scheme, engine, layout, fraction)
    if left > 0:
        return
    weights = weight_bytes(arch, scheme, layout)
    remedy = _remedy(arch, device, scheme, engine, layout, fraction)
    memory = device.memory_bytes_per_torch_device or 0
    over = weights.per_rank - memory
    beside = f"{-left / GIGA:,.1f} GB too much beside activations and the engine's reserve"
    short = f"{over / GIGA:,.1f} GB more than it has" if over > 0 else beside
    raise DoesNotFitError(
        Fault(
            code="does_not_fit",
            message=f"the weights of {arch.name} in {weights.scheme} do not fit",
            where=f"--gpu {device.short_id} --gpus {layout.gpus}",
            got=f"{weights.total / GIGA:,.1f} GB, {weights.per_rank / GIGA:,.1f} GB on the fullest GPU of "
            f"{memory / GIGA:,.1f} GB: {short}",
            expected="weights, activations and some cache within a GPU's memory",
            hint=remedy.sentence(device.short_id),
        ),
        remedy,
    )


def fits(
    arch: Arch, device: Device, *, scheme: str | Scheme = "bf16", engine: str | Engine = "vllm",
    layout: ServingLayout = ONE, fraction: float | None = None,
) -> bool:  # fmt: skip
    """Whether weights and activations leave room for a cache."""
    return _left(arch, device, scheme, engine, layout, fraction) > 0


def _left(
    arch: Arch, device: Device, scheme: str | Scheme, engine: str | Engine, layout: ServingLayout,
    fraction: float | None,
) -> float:  # fmt: skip
    memory = device.memory_bytes_per_torch_device
    if memory is None:
        raise InputError(
            Fault(code="unknown_memory", message=f"the catalogue does not know the memory of {device.short_id}",
                  where="--gpu", hint="Choose another GPU, or add its memory to the catalogue.")
        )  # fmt: skip
    at = asked(memory, engine, fraction=fraction, layout=layout)
    weights = weight_bytes(arch, scheme, layout).per_rank
    return BUDGET_RULES[at.engine.budget_rule](memory, weights, activation_bytes(arch, at.engine, layout), at.fraction)


def _remedy(
    arch: Arch, device: Device, scheme: str | Scheme, engine: str | Engine, layout: ServingLayout,
    fraction: float | None,
) -> Remedy:  # fmt: skip
    def good(device: Device, scheme: str | Scheme, layout: ServingLayout) -> bool:
        try:
            return _left(arch, device, scheme, engine, layout, fraction) > 0
        except InputError:  # a layout the model cannot be cut by, or a GPU of unknown memory
            return False

    return Remedy(
        layout=next((each for each in _layouts() if good(device, scheme, each)), None),
        devices=_others(device, layout, lambda each: good(each, scheme, layout)),
        schemes=tuple(name for name in SMALLER if name != _name(scheme) and good(device, name, layout)),
    )


def _name(scheme: str | Scheme) -> str:
    return scheme if isinstance(scheme, str) else scheme.name


def _layouts() -> Iterable[ServingLayout]:
    """Layouts by their number of GPUs, tensor parallelism before pipelines."""
    found = [ServingLayout(tp=tp, pp=pp) for tp in DEGREES for pp in DEGREES if pp == 1 or tp == DEGREES[-1]]
    return sorted(found, key=lambda layout: (layout.gpus, layout.pp))


def _others(device: Device, layout: ServingLayout, good: Callable[[Device], bool]) -> tuple[tuple[str, int], ...]:
    """The smallest GPUs that do, by memory, one of a size."""
    found: dict[int, str] = {}
    linked = (each for each in list_devices() if each.link or layout.gpus == 1)
    known = (each for each in linked if each.memory_bytes_per_torch_device and each.vendor in ("NVIDIA", "AMD"))
    for each in sorted(known, key=lambda each: each.memory_bytes_per_torch_device or 0):
        memory = each.memory_bytes_per_torch_device or 0
        if memory > (device.memory_bytes_per_torch_device or 0) and memory not in found and good(each):
            found[memory] = each.short_id
        if len(found) == SHOWN_DEVICES:
            break
    return tuple((name, layout.gpus) for name in found.values())
