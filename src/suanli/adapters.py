"""What is trained: everything, or low-rank adapters beside frozen weights (LoRA, arXiv:2106.09685)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from suanli.errors import Fault, InputError, nearest_names, shown
from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Experts, Layer, Linear

ALL_LINEAR = "all"
MAX_RANK = 1_000_000


@dataclass(frozen=True)
class Lora:
    """Rank and the names of the projections that get adapters (`all`: every linear layer but the head)."""

    rank: int
    targets: tuple[str, ...] = (ALL_LINEAR,)


def parse_trainable(text: str) -> Lora | None:
    """`all` or `lora:r=16,targets=q_proj+v_proj`. Raises InputError."""
    if text == "all":
        return None
    head, _, rest = text.partition(":")
    options = dict(part.partition("=")[::2] for part in rest.split(",") if part)
    unknown = [name for name in options if name not in ("r", "targets")]
    rank = options.get("r", "16")
    if head != "lora" or unknown or not rank.isdecimal() or not 1 <= int(rank[:9]) <= MAX_RANK:
        raise InputError(
            Fault(
                code="bad_trainable",
                message="what is trainable cannot be read",
                where="--trainable",
                got=shown(text),
                expected="all, or lora:r=16,targets=q_proj+v_proj (targets=all for every linear layer)",
            )
        )
    return Lora(int(rank), tuple(options.get("targets", ALL_LINEAR).split("+")))


def with_lora(arch: Arch, lora: Lora) -> Arch:
    """The same model with every weight frozen and adapters beside the targets. Raises InputError for no target."""
    names = {placed.layer.name.split(".")[-1] for placed in arch.leaves() if _can_hold(placed.layer)}
    missing = [target for target in lora.targets if target != ALL_LINEAR and target not in names]
    if missing:
        raise InputError(
            Fault(
                code="unknown_target",
                message=f"no linear layer is called {shown(missing[0])}",
                where="--trainable",
                expected="some of " + ", ".join(sorted(names)),
                nearest=nearest_names(missing[0], names),
            )
        )
    routed = any(isinstance(placed.layer, Experts) for placed in arch.leaves())
    frozen = "all else frozen, routed experts among it" if routed else "all else frozen"
    notes = (*arch.notes, f"LoRA of rank {lora.rank} on {'+'.join(lora.targets)}; {frozen}")
    return replace(arch, root=_adapted(arch.root, lora), notes=notes)


def _can_hold(layer: Layer) -> bool:
    return isinstance(layer, Linear) and layer.role == "matmul"


def _adapted(module: Module, lora: Lora) -> Module:
    children: list[Module | Layer] = []
    for child in module.children:
        if isinstance(child, Module):
            children.append(_adapted(child, lora))
            continue
        children.append(replace(child, trainable=False))
        if _can_hold(child) and (ALL_LINEAR in lora.targets or child.name.split(".")[-1] in lora.targets):
            assert isinstance(child, Linear)
            children.extend(_adapter(child, lora.rank))
    return replace(module, children=tuple(children))


def _adapter(layer: Linear, rank: int) -> tuple[Linear, Linear]:
    down = Linear(name=f"{layer.name}.lora_A", in_features=layer.in_features, out_features=rank, shares_input=True)
    return down, Linear(name=f"{layer.name}.lora_B", in_features=rank, out_features=layer.out_features, role="lora")
