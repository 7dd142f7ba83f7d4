"""Gradients added up over micro-batches: how often ZeRO 2 and 3 scatter them, and how much stays whole meanwhile.

Scattered after every micro-batch only shards are kept, and the exchange is repeated; kept whole until the step's end it
is done once, and what ZeRO 1 keeps is kept. Interleaved, the micro-batches of a turn pass a chunk one after another, so
that one chunk's gradients are whole at a time (arXiv:2407.21783 §3.3). Numbers, or arrays of one shape.
"""

from __future__ import annotations

from typing import Any

from suanli.nouns.stack import MICRO_BATCH, STEP, TURN


def scatters(stack: Any, pp: Any, vpp: Any, micro_batches: Any) -> Any:
    """Scatters of a rank's gradients in a step. `stack` says when, without a pipeline and with one."""
    alone, piped = (_count(each, pp, vpp, micro_batches) for each in (stack.scatters, stack.pipeline_scatters))
    return alone + (pp > 1) * (piped - alone)


def _count(when: str, pp: Any, vpp: Any, micro_batches: Any) -> Any:
    if when == STEP:
        return 1 + 0 * micro_batches
    if when == TURN:  # no turns without chunks
        return micro_batches / (1 + (pp - 1) * (vpp > 1))
    assert when == MICRO_BATCH, when
    return micro_batches


def whole_fraction(stack: Any, pp: Any, vpp: Any, micro_batches: Any) -> Any:
    """The part of a rank's gradients that stands whole between micro-batches under ZeRO 2 and 3."""
    alone, piped = (_part(each, vpp) for each in (stack.scatters, stack.pipeline_scatters))
    return (alone + (pp > 1) * (piped - alone)) * (micro_batches > 1)


def _part(when: str, vpp: Any) -> Any:
    if when == TURN:
        return (vpp > 1) / vpp
    return 0 * vpp + (when == STEP)
