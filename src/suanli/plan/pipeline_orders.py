"""In which order the ranks of a pipeline run their passes: 1F1B, interleaved, zero-bubble, DualPipe.

A pass is (kind, stage, micro-batch). FORWARD makes activations, BACKWARD the gradients of inputs and weights, INPUT
those of inputs only, WEIGHT those of weights only, later.

Orders: 1F1B and interleaved as in arXiv:2104.04473 §2.2, zero-bubble as ZB-H1 of arXiv:2401.10241 §3, DualPipe as in
arXiv:2412.19437 §3.2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

FORWARD, BACKWARD, INPUT, WEIGHT = "F", "B", "b", "W"
Pass = tuple[str, int, int]
Together = tuple[Pass, ...]  # one pass, or two that run side by side


def orders(schedule: str, pp: int, micro_batches: int, vpp: int = 1) -> list[list[Together]]:
    """For each rank its passes in order. Stages are numbered along the model: vpp · pp of them; in DualPipe, where
    micro-batches enter at both ends and a rank holds two stages, s and s + pp are one stage in either direction.
    """
    makers: dict[str, Callable[[int, int, int, int], Iterator[Together]]] = {
        "1f1b": _one_forward_one_backward,
        "interleaved": _interleaved,
        "zero-bubble": _zero_bubble,
        "dualpipe": _dualpipe,
    }
    return [list(makers[schedule](rank, pp, micro_batches, vpp)) for rank in range(pp)]


def _one_forward_one_backward(rank: int, pp: int, count: int, vpp: int) -> Iterator[Together]:
    """Fill until the first gradient comes back, then one forward and one backward in turn."""
    assert vpp == 1
    ahead = min(count, pp - 1 - rank)
    for batch in range(count + ahead):
        if batch < count:
            yield ((FORWARD, rank, batch),)
        if batch >= ahead:
            yield ((BACKWARD, rank, batch - ahead),)


def _interleaved(rank: int, pp: int, count: int, vpp: int) -> Iterator[Together]:
    """Chunks in turn, pp micro-batches each; fills twice as deep as 1F1B and once more for every further chunk."""
    total = count * vpp
    ahead = total if count == pp else min(total, 2 * (pp - 1 - rank) + (vpp - 1) * pp)
    for place in range(total + ahead):
        if place < total:
            chunk, batch = _chunk_of(place, pp, vpp)
            yield ((FORWARD, chunk * pp + rank, batch),)
        if place >= ahead:
            chunk, batch = _chunk_of(place - ahead, pp, vpp)
            yield ((BACKWARD, (vpp - 1 - chunk) * pp + rank, batch),)


def _chunk_of(place: int, pp: int, vpp: int) -> tuple[int, int]:
    group, within = divmod(place, pp * vpp)
    chunk, batch = divmod(within, pp)
    return chunk, group * pp + batch


def _zero_bubble(rank: int, pp: int, count: int, vpp: int) -> Iterator[Together]:
    """1F1B with the weights' gradients apart: put off until as many micro-batches are held as rank 0 holds, and for
    the end, where they fill the time in which 1F1B waits.
    """
    assert vpp == 1
    ahead, done = min(count, pp - 1 - rank), 0
    for batch in range(count + ahead):
        if batch < count:
            yield ((FORWARD, rank, batch),)
        if batch >= ahead:
            yield ((INPUT, rank, batch - ahead),)
        held = min(batch + 1, count) - done
        if batch >= ahead and (held >= pp or batch >= count):
            yield ((WEIGHT, rank, done),)
            done += 1
    for batch in range(done, count):
        yield ((WEIGHT, rank, batch),)


def _dualpipe(rank: int, pp: int, count: int, vpp: int) -> Iterator[Together]:
    """Two streams of micro-batches, one from either end; a forward of one beside a backward of the other."""
    assert vpp == 1
    return _TwoWays(rank, pp, count).run()


class _TwoWays:
    """DualPipe's eight phases on one rank. Way 0 is the stream whose entry is nearer."""

    def __init__(self, rank: int, pp: int, count: int) -> None:
        self.pp, self.count, self.near = pp, count, min(rank, pp - 1 - rank)
        mirrored = rank >= pp // 2
        # along the model: one way the rank is stage `rank`, the other way stage pp − 1 − rank
        ways = (rank, pp + pp - 1 - rank)
        self.stage = ways[::-1] if mirrored else ways
        self.next = {(kind, way): 0 for kind in (FORWARD, BACKWARD, WEIGHT) for way in (0, 1)}
        self.put_off: list[Pass] = []

    def forward(self, way: int) -> Pass:
        return self._number(FORWARD, FORWARD, way)

    def backward(self, way: int, *, split: bool = False) -> Pass:
        found = self._number(BACKWARD, INPUT if split else BACKWARD, way)
        if split:
            self.put_off.append((WEIGHT, found[1], found[2]))
        return found

    def weight(self) -> Pass:
        return self.put_off.pop(0)

    def _number(self, counter: str, kind: str, way: int) -> Pass:
        batch = self.next[counter, way]
        self.next[counter, way] += 1
        return (kind, self.stage[way], batch)

    def run(self) -> Iterator[Together]:
        far = self.pp // 2 - self.near - 1
        for _ in range(2 * far):
            yield (self.forward(0),)
        for _ in range(self.near + 1):
            yield (self.forward(0),)
            yield (self.forward(1),)
        for _ in range(far):
            yield (self.backward(1, split=True),)
            yield (self.weight(),)
            yield (self.forward(1),)
        for turn in range(self.count // 2 - self.pp + self.near + 1):
            if turn == 0 and far == 0:  # in the middle the two would wait for each other
                yield (self.forward(0),)
                yield (self.backward(1),)
            else:
                yield (self.forward(0), self.backward(1))
            yield (self.forward(1), self.backward(0))
        for _ in range(far):
            yield (self.backward(1),)
            yield (self.forward(1), self.backward(0))
        yield from self._drain(far)

    def _drain(self, far: int) -> Iterator[Together]:
        """The last backward passes; the later half of them puts the weights' gradients off to the very end."""
        half, split = (self.near + 1) // 2, False
        for turn in range(self.near + 1):
            split = split or (turn == half and self.near % 2 == 1)
            yield (self.backward(1, split=split),)
            split = split or (turn == half and self.near % 2 == 0)
            yield (self.backward(0, split=split),)
        for _ in range(far):
            yield (self.weight(),)
            yield (self.backward(0, split=True),)
        while self.put_off:
            yield (self.weight(),)
