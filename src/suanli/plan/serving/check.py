"""What of a model a serving layout cannot cut, all faults together."""

from __future__ import annotations

from collections.abc import Iterable

from suanli.errors import FaultList, InputError, shown
from suanli.nouns.arch import Arch
from suanli.nouns.layers import Attention, Experts, Scan
from suanli.nouns.serving import ServingLayout
from suanli.plan.pieces import HEADS, Parts, parts_of

MAX_RANKS = 4096
_OPTIONS = {"dp_attention": "--dp-attention"}


def check_layout(parts: Parts, layout: ServingLayout) -> None:
    """Raise InputError listing every degree that is no count, and every one the model cannot be cut by."""
    faults = FaultList(InputError)
    for name in ("tp", "pp", "ep", "dp_attention", "cp"):
        value = getattr(layout, name)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_RANKS:
            faults.add(code=f"bad_{name}", message=f"{name} is no number of ranks", where=_option(name),
                       got=shown(value), expected=f"a whole number from 1 to {MAX_RANKS:,}")  # fmt: skip
    faults.raise_if_any()
    _check_heads(parts, layout, faults)
    _check_experts(parts, layout, faults)
    faults.raise_if_any()


def can_cut(arch: Arch, layout: ServingLayout) -> bool:
    """Whether a layout can cut a model."""
    try:
        check_layout(parts_of(arch), layout)
    except InputError:
        return False
    return True


def _option(name: str) -> str:
    return _OPTIONS.get(name, f"--{name}")


def _check_heads(parts: Parts, layout: ServingLayout, faults: FaultList) -> None:
    leaves = [p.layer for block in parts.blocks for p in block.pieces if p.cut == HEADS]
    for heads in sorted({leaf.heads for leaf in leaves if isinstance(leaf, Attention | Scan)}):
        if heads % layout.tp:
            faults.add(code="not_divisible", message="attention heads cannot be cut evenly", where="--tp",
                       got=f"{heads} heads over {layout.tp}",
                       expected=f"one of {_listed(_divisors(heads))}")  # fmt: skip
    kv_heads = sorted({leaf.kv_heads for leaf in leaves if isinstance(leaf, Attention) and not leaf.latent_dim})
    for heads in (each for each in kv_heads if each):
        if heads % layout.tp and layout.tp % heads:
            faults.add(code="not_divisible", message="key and value heads cannot be cut or copied evenly", where="--tp",
                       got=f"{heads} heads over {layout.tp}",
                       expected=f"a divisor or a multiple of {heads}")  # fmt: skip
            continue
        copies = max(1, layout.tp // heads)
        if layout.cp > copies:
            often = "once" if copies == 1 else f"{copies} times"
            faults.add(code="bad_cp", message="more ranks share positions than hold the same heads", where="--cp",
                       got=f"{layout.cp}, where {heads} heads over {layout.tp} are held {often}",
                       expected=f"at most {copies}")  # fmt: skip
    if layout.tp % layout.cp:
        faults.add(code="not_divisible", message="positions are shared among the tp ranks", where="--cp",
                   got=f"{layout.cp} of {layout.tp}", expected=f"one of {_listed(_divisors(layout.tp))}")  # fmt: skip


def _check_experts(parts: Parts, layout: ServingLayout, faults: FaultList) -> None:
    numbers = sorted({p.layer.num for block in parts.blocks for p in block.pieces if isinstance(p.layer, Experts)})
    ranks = layout.tp * layout.dp_attention
    if layout.ep > 1 and not numbers:
        faults.add(code="no_experts", message="the model has no experts to spread", where="--ep",
                   got=str(layout.ep), expected="1")  # fmt: skip
    for number in numbers:
        if number % layout.ep:
            faults.add(code="not_divisible", message="experts cannot be spread evenly", where="--ep",
                       got=f"{number} experts over {layout.ep}", expected=f"a divisor of {number}")  # fmt: skip
    if numbers and ranks % layout.ep:
        faults.add(code="not_divisible", message="experts are spread over the ranks of tp and dp attention",
                   where="--ep", got=f"{layout.ep} of {ranks}",
                   expected=f"one of {_listed(_divisors(ranks))}")  # fmt: skip


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
