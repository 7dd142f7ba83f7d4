"""What one change would do to a layout: each lever priced by the model that priced the layout, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from suanli.errors import InputError
from suanli.nouns.layout import Layout
from suanli.nouns.plans import Lever
from suanli.nouns.workload import RECOMPUTE
from suanli.plan.enumerate import enumerate_grid
from suanli.plan.limits import AXES, Space, reason_against

Prices = Callable[[Sequence[Layout]], Sequence[tuple[float, float]]]  # layouts → seconds of a step, bytes
Change = tuple[str, str, Layout]

NUMBERS = tuple(name for name in AXES if name not in ("zero", "offload", "recompute", "sp", "schedule"))
MOST_CHUNKS = 8  # interleaving is tried up to so many chunks a rank


def is_legal(space: Space, layout: Layout) -> bool:
    """Whether a layout is in the grid of a space, by the grid's own rules."""
    values = {name: getattr(layout, name) or 0 for name in AXES}
    if layout.gpus not in space.gpus or any(reason_against(space, name, values[name]) for name in NUMBERS):
        return False
    pins = {name: (value,) for name, value in values.items()}
    some = {} if layout.recompute_layers is None else {"recompute_layers": (layout.recompute_layers,)}
    return enumerate_grid(space, pins | some).legal == 1


def changes(space: Space, layout: Layout) -> Iterator[Change]:
    """Every legal layout one lever away: the lever, from what to what, the layout."""
    for lever, values in _proposals(layout, space):
        try:
            found = replace(layout, **values)
        except InputError:
            continue  # degrees that cannot be together are no lever
        too_wide = found.tp > max(layout.tp, space.per_node)  # past a node only where it is so already
        if found != layout and not too_wide and is_legal(space, found):
            parts = (f"{name} {_said(name, getattr(layout, name))} → {_said(name, value)}"
                     for name, value in values.items() if getattr(layout, name) != value)  # fmt: skip
            yield lever, ", ".join(parts), found


def _said(name: str, value: Any) -> str:
    """A value as `--pin` takes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "all" if value is None and name in ("recompute_layers", "shards") else str(value)


def _recomputes(layout: Layout, space: Space) -> Iterator[tuple[str, dict[str, Any]]]:
    """Other policies; under full recompute half as many layers of a chunk, and one more or less."""
    place = RECOMPUTE.index(layout.recompute)
    for other in RECOMPUTE:
        if other != layout.recompute:
            lever = "less recompute" if RECOMPUTE.index(other) < place else "more recompute"
            yield lever, {"recompute": other, "recompute_layers": None}
    if layout.recompute == RECOMPUTE[-1]:
        most = -(-space.cuts.layers // (layout.pp * layout.vpp))
        now = layout.recompute_layers or most
        for layers in sorted({now // 2, now - 1, now + 1} - {0, now}):
            lever = "less recompute" if layers < now else "more recompute"
            yield lever, {"recompute_layers": layers if layers < most else None}


def _proposals(layout: Layout, space: Space) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from _recomputes(layout, space)
    for chunks in range(2, MOST_CHUNKS + 1):
        yield "interleave", {"vpp": chunks, "schedule": "interleaved"}
    for schedule in ("1f1b", "zero-bubble", "dualpipe"):
        yield "schedule", {"schedule": schedule, "vpp": 1}
    yield "sequence parallelism", {"sp": not layout.sp}
    yield "larger micro-batch", {"micro_batch": 2 * layout.micro_batch}
    yield "smaller micro-batch", {"micro_batch": layout.micro_batch // 2}
    for stage in range(4):
        yield "ZeRO stage", {"zero": stage}
    node = space.per_node // layout.tp
    yield "states shared in a node", {"shards": node if layout.shards is None and node > 1 else None}
    yield "optimizer on the host" if not layout.offload else "optimizer on the device", {"offload": not layout.offload}
    yield from _traded(layout, "tp", "cp", "context for tensor parallelism")
    yield from _traded(layout, "tp", "dp", "data for tensor parallelism")
    yield from _traded(layout, "pp", "dp", "data for pipeline parallelism")
    yield from _traded(layout, "cp", "dp", "data for context parallelism")
    yield from _traded(layout, "pp", "tp", "tensor for pipeline parallelism")
    for ranks in (2 * layout.ep, layout.ep // 2):
        yield "expert parallelism", {"ep": ranks}


def _traded(layout: Layout, less: str, more: str, lever: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Half of one axis for twice of the other, and back."""
    down, up = getattr(layout, less), getattr(layout, more)
    away = {"sp": False} if "tp" in (less, more) and layout.sp else {}
    if down % 2 == 0:
        gone = less == "tp" and down == 2
        flat = {"vpp": 1, "schedule": "1f1b"} if less == "pp" and down == 2 else {}
        yield lever, {less: down // 2, more: 2 * up, **(away if gone else {}), **flat}
    if up % 2 == 0:
        gone = more == "tp" and up == 2
        back = " for ".join(reversed(lever.removesuffix(" parallelism").split(" for "))) + " parallelism"
        yield back, {less: 2 * down, more: up // 2, **(away if gone else {})}


def advise(layout: Layout, found: Sequence[Change], prices: Prices, limit_bytes: float) -> tuple[Lever, ...]:
    """Every lever with what it gains, those that fit first, best first."""
    (now, _), *priced = prices([layout, *(each for _, _, each in found)])
    levers = [
        lever_of(*change, seconds, now, size, limit_bytes)
        for change, (seconds, size) in zip(found, priced, strict=True)
    ]
    return ordered(levers)


def lever_of(
    lever: str, change: str, layout: Layout, seconds: float, now: float, size: float, limit_bytes: float
) -> Lever:
    """One lever from its price and that of the layout as it is."""
    return Lever(
        lever=lever, change=change, layout=layout.short, step_time_s=seconds, gain_fraction=1 - seconds / now,
        memory_bytes=int(size), fits=size <= limit_bytes,
    )  # fmt: skip


def ordered(levers: Sequence[Lever]) -> tuple[Lever, ...]:
    """Those that fit first, then by gain."""
    return tuple(sorted(levers, key=lambda each: (not each.fits, -each.gain_fraction, each.lever, each.change)))
