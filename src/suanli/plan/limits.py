"""What a model, a batch and a cluster allow of each parallel degree, each rule by itself and with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from suanli.nouns.layers import Attention, Experts, Linear, Scan
from suanli.nouns.layout import SCHEDULES, ZERO
from suanli.nouns.workload import RECOMPUTE
from suanli.plan.pieces import COLUMN, Parts, Piece

DEGREES = ("tp", "pp", "cp", "ep", "etp")
BLOCK = "block"  # full recompute of the fewest first layers of every chunk that make the layout fit
_CHOICES: dict[str, tuple[Any, ...]] = {
    "zero": ZERO, "recompute": (*RECOMPUTE[:-1], BLOCK, RECOMPUTE[-1]), "sp": (False, True), "schedule": SCHEDULES,
    "offload": (False, True),
}  # fmt: skip
AXES = ("tp", "pp", "vpp", "dp", "cp", "ep", "etp", "micro_batch", "zero", "shards", "offload", "recompute", "sp",
        "schedule")  # fmt: skip
PINS = (*AXES, "recompute_layers")


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """The numbers that degrees must divide, each with what it counts. `groups` are heads that tp may also copy."""

    layers: int
    heads: tuple[tuple[str, int], ...] = ()
    groups: tuple[int, ...] = ()
    experts: tuple[int, ...] = ()
    expert_widths: tuple[int, ...] = ()

    def most_chunks(self, pp: Any) -> Any:
        """Chunks a rank may hold: a layer each, and where that comes out even the embedding and the head as well."""
        return self.layers // pp + ((self.layers + 2) % pp == 0)


@dataclass(frozen=True, kw_only=True)
class Space:
    """The question: these cuts, this many GPUs (one number or several), this batch, nodes of this many GPUs; and what
    a stack can run: ZeRO stages beside a pipeline, and those whose states fewer ranks than all replicas may share.
    """

    cuts: Cuts
    gpus: tuple[int, ...]
    global_batch: int
    seq: int
    per_node: int
    pipeline_zero: tuple[int, ...] = ZERO
    hybrid: tuple[int, ...] = ZERO[1:]


def cuts_of(parts: Parts) -> Cuts:
    """What can be cut of a model: heads and columns over tp, experts over ep, blocks over pp."""
    pieces = [piece for block in parts.blocks for piece in block.pieces]
    experts = [piece.layer for piece in pieces if isinstance(piece.layer, Experts)]
    groups = {piece.layer.kv_heads for piece in pieces if isinstance(piece.layer, Attention)}
    return Cuts(
        layers=parts.num_layers,
        heads=tuple(sorted({found for piece in pieces for found in _over_tp(piece)}, key=lambda each: each[1])),
        groups=tuple(sorted(groups)),
        experts=tuple(sorted({layer.num for layer in experts})),
        expert_widths=tuple(sorted({layer.ffn for layer in experts})),
    )


def _over_tp(piece: Piece) -> Iterable[tuple[str, int]]:
    layer = piece.layer
    if isinstance(layer, Attention | Scan):
        yield "heads", layer.heads
    if isinstance(layer, Linear) and piece.cut == COLUMN and piece.groups is None:
        yield "columns", layer.out_features


def divisors(number: int) -> tuple[int, ...]:
    """Every divisor of a whole number, ascending."""
    small = [each for each in range(1, int(number**0.5) + 1) if number % each == 0]
    return tuple(sorted({*small, *(number // each for each in small)}))


def possible(space: Space, axis: str) -> tuple[Any, ...]:
    """Every value an axis may take whatever the others are, tensor parallelism within a node; `dp` is what is left."""
    if axis in DEGREES:
        found = sorted({each for gpus in space.gpus for each in divisors(gpus)})
        within = [each for each in found if axis not in ("tp", "etp") or each <= space.per_node]
        return tuple(each for each in within if reason_against(space, axis, each) is None)
    if axis == "dp":
        return tuple(sorted({each for gpus in space.gpus for each in divisors(gpus)}))
    if axis == "micro_batch":
        return divisors(space.global_batch)
    if axis == "shards":
        return (0, *(each for each in possible(space, "dp") if each < max(space.gpus)))
    return _CHOICES[axis] if axis in _CHOICES else tuple(range(1, space.cuts.layers + 1))


def node_shards(space: Space) -> tuple[int, ...]:
    """What the search itself tries of `shards`: all replicas (0), and as many as a node holds beside tp."""
    return (0, *(each for each in possible(space, "dp") if 1 < each <= space.per_node and each < max(space.gpus)))


def reason_against(space: Space, axis: str, value: int) -> str | None:
    """Why a degree cannot be, whatever the others are; None where it can."""
    rule = _RULES.get(axis)
    if rule is not None and (why := rule(space, value)) is not None:
        return why
    if axis in (*DEGREES, "dp", "shards") and value and not any(gpus % value == 0 for gpus in space.gpus):
        unit = "GPU" if space.gpus == (1,) else "GPUs"
        return f"{value:,} does not divide {_listed(space.gpus)} {unit}"
    return None


def _listed(numbers: Sequence[int]) -> str:
    return " or ".join(f"{each:,}" for each in numbers)


def _tp(space: Space, value: int) -> str | None:
    for what, number in space.cuts.heads:
        if number % value:
            return f"{number:,} {what} cannot be cut into {value:,}"
    for groups in space.cuts.groups:
        if groups % value and value % groups:
            return f"{groups:,} key/value heads can be neither cut into {value:,} nor copied evenly"
    return None


def _pp(space: Space, value: int) -> str | None:
    layers = space.cuts.layers
    return f"{layers:,} layers are fewer than {value:,} stages" if value > layers else None


def _cp(space: Space, value: int) -> str | None:
    if value > 1 and space.seq % (2 * value):  # each rank takes a piece from either end, so that work is even
        return f"{space.seq:,} positions cannot be cut into 2 · {value:,} equal pieces"
    return None


def _ep(space: Space, value: int) -> str | None:
    if value > 1 and not space.cuts.experts:
        return "the model has no routed experts"
    bad = [number for number in space.cuts.experts if number % value]
    return f"{bad[0]:,} experts cannot be spread over {value:,} ranks" if bad else None


def _etp(space: Space, value: int) -> str | None:
    if value > 1 and not space.cuts.experts:
        return "the model has no routed experts"
    bad = [width for width in space.cuts.expert_widths if width % value]
    return f"experts of width {bad[0]:,} cannot be cut into {value:,}" if bad else None


def _micro_batch(space: Space, value: int) -> str | None:
    batch = space.global_batch
    return f"{value:,} does not divide the global batch of {batch:,} sequences" if batch % value else None


def _recompute_layers(space: Space, value: int) -> str | None:
    layers = space.cuts.layers
    return f"{layers:,} layers are fewer than {value:,}" if value > layers else None


_RULES: dict[str, Callable[[Space, int], str | None]] = {
    "tp": _tp, "pp": _pp, "vpp": _pp, "cp": _cp, "ep": _ep, "etp": _etp,
    "micro_batch": _micro_batch, "dp": _micro_batch, "recompute_layers": _recompute_layers,
}  # fmt: skip
