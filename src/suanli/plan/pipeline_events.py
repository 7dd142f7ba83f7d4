"""A pipeline played out pass by pass: uneven stages, sends between them, what each rank does after its last pass."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suanli.formulas import pipelines
from suanli.plan.pipeline_orders import FORWARD, INPUT, WEIGHT, Pass, Together, orders


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
    work = (sum(map(lengths.__getitem__, own)) for own in score.places)
    return Played(
        span_s=max(end + tail for end, tail in zip(ends, tails, strict=True)),
        busy_s=tuple(busy + tail for busy, tail in zip(work, tails, strict=True)),
        most_held=score.most_held,
    )


# --- the order of passes, with numbers in place of names ----------------------------------------------------------

# Of one pass, or two side by side: the two passes it waits for, the two it makes (NONE: none), place of its length.
Entry = tuple[int, int, int, int, int]
NONE = -1


@dataclass(frozen=True)
class _Score:
    """Orders of all ranks with what each entry waits for and makes as numbers below `made`, and the place of each
    entry's length; equal for layouts of one shape.
    """

    ranks: tuple[tuple[Entry, ...], ...]
    places: tuple[tuple[int, ...], ...]
    lengths: tuple[tuple[tuple[str, int], ...], ...]
    made: int
    most_held: tuple[int, ...]


@functools.lru_cache(maxsize=64)
def _score(schedule: str, pp: int, micro_batches: int, vpp: int) -> _Score:
    found = orders(schedule, pp, micro_batches, vpp)
    numbers = _Numbers(pp * vpp, micro_batches)
    ranks = tuple(tuple(map(numbers.entry, own)) for own in found)
    places = tuple(tuple(each[-1] for each in own) for own in ranks)
    return _Score(ranks, places, tuple(numbers.lengths), numbers.made, tuple(_most_held(own) for own in found))


class _Numbers:
    """Numbers of the passes of `stages` stages (in DualPipe of twice as many: either way) and `count` micro-batches:
    forward passes by stage and micro-batch, then what the gradient of a stage's input comes from.
    """

    def __init__(self, stages: int, count: int) -> None:
        self.stages, self.count = stages, count
        self.back = 2 * stages * count
        self.made = 2 * self.back
        self.lengths: dict[tuple[tuple[str, int], ...], int] = {}

    def entry(self, together: Together) -> Entry:
        """What it waits for of other ranks (its own order is kept anyway), what it makes, place of its length."""
        key = tuple([(kind, stage % self.stages) for kind, stage, _ in together])
        length = self.lengths.setdefault(key, len(self.lengths))
        needed, made = self._of(together[0])
        if len(together) == 1:
            return needed, NONE, made, NONE, length
        also, twin = self._of(together[1])
        return needed, also, made, twin, length

    def _of(self, each: Pass) -> tuple[int, int]:
        """Numbers of the pass that has to be done, and of this one."""
        kind, stage, batch = each
        if kind == WEIGHT:
            return NONE, NONE
        own, within = stage * self.count + batch, stage % self.stages
        if kind == FORWARD:
            return own - self.count if within else NONE, own
        own += self.back
        return own + self.count if within < self.stages - 1 else NONE, own


def _most_held(own: Sequence[Together]) -> int:
    """Micro-batches whose activations are kept at once, each of a stage."""
    most = held = 0
    for together in own:
        for kind, _, _ in together:
            if kind == FORWARD:
                held += 1
                most = max(most, held)
            elif kind != INPUT:
                held -= 1
    return most


def _ends(score: _Score, lengths: Sequence[float], send_s: float) -> list[float]:
    """When each rank ends its last pass: every rank is run as far as what it waits for is done, until all are."""
    done = [-1.0] * (score.made + 1)
    waiting: dict[int, int] = {}
    now, place = [0.0] * len(score.ranks), [0] * len(score.ranks)
    ready = list(range(len(score.ranks)))
    while ready:
        rank = ready.pop()
        own, at, clock = score.ranks[rank], place[rank], now[rank]
        for needed, also, made, twin, length in itertools.islice(own, at, None):
            start, missing = clock, NONE
            if needed >= 0:
                if done[needed] > start:
                    start = done[needed]
                elif done[needed] < 0:
                    missing = needed
            if also >= 0:
                if done[also] > start:
                    start = done[also]
                elif done[also] < 0:
                    missing = also
            if missing >= 0:
                waiting[missing] = rank
                break
            clock = start + lengths[length]
            done[made] = clock + send_s  # of passes nothing waits for, in the last place
            if made in waiting:
                ready.append(waiting.pop(made))
            if twin >= 0:
                done[twin] = clock + send_s
                if twin in waiting:
                    ready.append(waiting.pop(twin))
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
