"""A pipeline played out pass by pass: uneven stages, sends between them, what each rank does after its last pass."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suanli.formulas import pipelines
from suanli.plan.pipeline_orders import BACKWARD, FORWARD, INPUT, WEIGHT, Pass, Together, orders


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class StageTimes:
    """Seconds of one micro-batch on one stage. `weight_s` is the part of `backward_s` that makes weights' gradients."""

    forward_s: float = _doc("s", "forward pass")
    backward_s: float = _doc("s", "backward pass, what is made again included")
    weight_s: float = _doc("s", "of the backward pass, gradients of weights", default=0.0)

    def seconds(self, kind: str) -> float:
        """Of one kind of pass."""
        if kind == FORWARD:
            return self.forward_s
        if kind == WEIGHT:
            return self.weight_s
        return self.backward_s - (self.weight_s if kind == INPUT else 0.0)


@dataclass(frozen=True, kw_only=True)
class Played:
    """A pipeline played out. For each rank busy + idle = `span_s`, the tails of ranks included."""

    span_s: float = _doc("s", "from the first pass to the end of the last rank's tail")
    busy_s: tuple[float, ...] = _doc("s", "each rank's passes and tail")
    most_held: tuple[int, ...] = _doc("micro-batches", "on each rank, at most: forward done, gradients not")

    @property
    def idle_s(self) -> tuple[float, ...]:
        """What each rank waits."""
        return tuple(self.span_s - busy for busy in self.busy_s)

    @property
    def bubble_s(self) -> float:
        """What the busiest rank waits: the step less its work."""
        return self.span_s - max(self.busy_s)


def play(
    stages: Sequence[StageTimes],
    *,
    pp: int,
    micro_batches: int,
    schedule: str,
    send_s: float = 0.0,
    tails_s: Sequence[float] = (),
) -> Played:
    """Play `stages` (pp of them, vpp · pp interleaved, in the order of the model) on `pp` ranks.

    `send_s` lies between a pass and the next stage's, and keeps no rank busy; `tails_s` is what each rank does after
    its last pass (gradients over dp, optimizer).
    """
    vpp, rest = divmod(len(stages), pp)
    assert not rest, "stages are whole turns of the ranks"
    score = _score(schedule, pp, micro_batches, vpp)
    lengths = [sum(stages[stage].seconds(kind) for kind, stage in each) for each in score.lengths]
    ends = _ends(score, lengths, send_s)
    tails = tuple(tails_s) or (0.0,) * pp
    work = (sum(lengths[each[2]] for each in own) for own in score.ranks)
    return Played(
        span_s=max(end + tail for end, tail in zip(ends, tails, strict=True)),
        busy_s=tuple(busy + tail for busy, tail in zip(work, tails, strict=True)),
        most_held=score.most_held,
    )


# --- the order of passes, with numbers in place of names ----------------------------------------------------------

Entry = tuple[tuple[int, ...], tuple[int, ...], int]  # what it waits for, what it makes, place of its length


@dataclass(frozen=True)
class _Score:
    """Orders of all ranks with what each entry waits for and makes as numbers; equal for layouts of one shape."""

    ranks: tuple[tuple[Entry, ...], ...]
    lengths: tuple[tuple[tuple[str, int], ...], ...]
    made: int
    most_held: tuple[int, ...]


@functools.lru_cache(maxsize=64)
def _score(schedule: str, pp: int, micro_batches: int, vpp: int) -> _Score:
    found = orders(schedule, pp, micro_batches, vpp)
    stages = pp * vpp
    lengths: dict[tuple[tuple[str, int], ...], int] = {}
    numbers: dict[Pass, int] = {}

    def number(each: Pass) -> int:
        return numbers.setdefault(each, len(numbers))

    def entry(together: Together) -> Entry:
        key = tuple((kind, stage % stages) for kind, stage, _ in together)
        needed = tuple(number(each) for each in (_needed(one, stages) for one in together) if each is not None)
        made = tuple(number(each) for each in (_made(one) for one in together) if each is not None)
        return needed, made, lengths.setdefault(key, len(lengths))

    ranks = tuple(tuple(entry(together) for together in own) for own in found)
    return _Score(ranks, tuple(lengths), len(numbers), tuple(_most_held(own) for own in found))


def _needed(each: Pass, stages: int) -> Pass | None:
    """The pass on another rank that has to be done; what the rank's own order has before is done."""
    kind, stage, batch = each
    if kind == FORWARD:
        return None if stage % stages == 0 else (FORWARD, stage - 1, batch)
    last = stage % stages == stages - 1
    return None if kind == WEIGHT or last else (BACKWARD, stage + 1, batch)


def _made(each: Pass) -> Pass | None:
    kind, stage, batch = each
    return None if kind == WEIGHT else (FORWARD if kind == FORWARD else BACKWARD, stage, batch)


def _most_held(own: Sequence[Together]) -> int:
    """Micro-batches whose activations are kept at once, each of a stage."""
    most = held = 0
    for together in own:
        for kind, _, _ in together:
            held += 1 if kind == FORWARD else 0
            most = max(most, held)
            held -= 1 if kind in (BACKWARD, WEIGHT) else 0
    return most


def _ends(score: _Score, lengths: Sequence[float], send_s: float) -> list[float]:
    """When each rank ends its last pass: every rank is run as far as what it waits for is done, until all are."""
    done = [-1.0] * score.made
    waiting: dict[int, int] = {}
    now, place = [0.0] * len(score.ranks), [0] * len(score.ranks)
    ready = list(range(len(score.ranks)))
    while ready:
        rank = ready.pop()
        own, at, clock = score.ranks[rank], place[rank], now[rank]
        while at < len(own):
            needed, made, length = own[at]
            start, missing = clock, -1
            for each in needed:
                if done[each] > start:
                    start = done[each]
                elif done[each] < 0:
                    missing = each
            if missing >= 0:
                waiting[missing] = rank
                break
            clock = start + lengths[length]
            for each in made:
                done[each] = clock + send_s
                if each in waiting:
                    ready.append(waiting.pop(each))
            at += 1
        place[rank], now[rank] = at, clock
    assert all(at == len(own) for at, own in zip(place, score.ranks, strict=True)), "the passes wait in a circle"
    return now


def closed_form_bubble(schedule: str, stage: StageTimes, pp: int, vpp: int = 1) -> float:
    """Seconds that pp equal stages wait, sends apart; `stage` is a rank's whole work of one micro-batch."""
    forward, backward, weight = stage.forward_s, stage.backward_s, stage.weight_s
    found: Mapping[str, float] = {
        "1f1b": pipelines.bubble_1f1b(pp, forward, backward),
        "interleaved": pipelines.bubble_interleaved(pp, forward, backward, vpp),
        "zero-bubble": pipelines.bubble_zero_bubble(pp, forward, backward, weight),
        "dualpipe": pipelines.bubble_dualpipe(pp, forward, backward, weight),
    }
    return found[schedule]
