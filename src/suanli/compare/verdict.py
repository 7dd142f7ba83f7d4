"""Puts a comparison together: the right number, what each counter says, and why it differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from suanli.compare.closed import Closed
from suanli.compare.explain import explain
from suanli.compare.peers import MACS, NOTHING, Peer
from suanli.compare.places import Place
from suanli.nouns.comparison import Cause, Counter, Right
from suanli.nouns.coverage import ScanCounts
from suanli.units import FLOPS_PER_MAC

FORWARD, TRAIN = "forward", "train"
SHOWN_CAUSES = 3


def right_of_pass(formula: int | None, trace: int | None, note: str = "") -> Right:
    """The right number of a forward pass, by both ways where both are."""
    equal = None if formula is None or trace is None else formula == trace
    return Right(phase=FORWARD, flops=formula if trace is None else trace, formula=formula, trace=trace, equal=equal,
                 note=note)  # fmt: skip


def scan_sentence(scans: ScanCounts) -> str:
    """Why a trace of scans is not the formula, with what makes the difference."""
    ways = scans.fallback - scans.recurrence
    parts = [("padding of convolutions", scans.padding), ("triangular systems solved", scans.solved)]
    beside = "".join(f", {what} ({flops:+,})" for what, flops in parts if flops)
    if not ways:
        return f"the trace runs more than the formula needs{beside}"
    return f"the formula takes scans as recurrences, the trace runs transformers' fallback ({ways:+,}){beside}"


def tool_counter(
    peer: Peer, answer: Mapping[str, Any], places: Mapping[str, Place], right: int | None, batch: int
) -> Counter:
    """What a tool said, or the reason why it said nothing."""
    if "reason" in answer or answer.get("total") is None or right is None:
        return _silent(peer, answer)
    times = FLOPS_PER_MAC if peer.unit == MACS else 1
    flops = times * answer["total"]
    entries = [(path, operator, times * amount) for path, operator, amount in answer["entries"]]
    causes, unexplained = explain(places, entries, flops, right, batch)
    return _counter(
        peer, FORWARD, right, flops=flops, reported=answer["total"], causes=causes, unexplained=unexplained,
        version=answer["version"], device=answer["device"], params=answer["params"], seconds=answer["seconds"],
        peak_bytes=answer["peak_bytes"],
    )  # fmt: skip


def formula_counter(peer: Peer, closed: Closed, right: int) -> Counter:
    """What a formula of a training step says."""
    if closed.flops is None:
        return _empty(peer, TRAIN, reason=closed.reason or "no number")
    return _counter(
        peer, TRAIN, right, flops=closed.flops, reported=closed.flops, causes=closed.causes,
        unexplained=closed.unexplained,
    )  # fmt: skip


def _silent(peer: Peer, answer: Mapping[str, Any]) -> Counter:
    """A counter without a number of FLOPs: it failed, or gives parameters alone."""
    reason = answer.get("reason")
    if reason is None:
        reason = "gives parameters alone" if peer.unit == NOTHING else "there is no right number to hold it against"
    kept = {name: answer.get(name) for name in ("version", "device", "params", "seconds", "peak_bytes")}
    return _empty(peer, FORWARD, reason=reason, **kept)


def _empty(peer: Peer, phase: str, *, reason: str, **known: Any) -> Counter:
    blank = {"version": None, "device": None, "params": None, **known}
    return Counter(
        name=peer.name, title=peer.title, phase=phase, reported=None, unit=peer.unit, says=peer.says, flops=None,
        ratio=None, difference=None, explanation="", reason=reason, **blank,
    )  # fmt: skip


def _counter(peer: Peer, phase: str, right: int, *, flops: int, causes: tuple[Cause, ...], unexplained: int | None,
             **known: Any) -> Counter:  # fmt: skip
    blank = {"version": None, "device": None, "params": None, **known}
    return Counter(
        name=peer.name, title=peer.title, phase=phase, unit=peer.unit, says=peer.says, flops=flops,
        ratio=flops / right if right else None, difference=flops - right, causes=causes, unexplained=unexplained,
        explanation=sentence(causes, unexplained, flops == right), **blank,
    )  # fmt: skip


def sentence(causes: Iterable[Cause], unexplained: int | None, equal: bool) -> str:
    """The largest causes as one line."""
    listed = list(causes)
    if not listed and not unexplained:
        return "the same" if equal else ""
    parts = [f"{cause.cause} ({cause.flops:+,})" for cause in listed[:SHOWN_CAUSES]]
    rest = listed[SHOWN_CAUSES:]
    if rest:
        parts.append(f"{len(rest)} more ({sum(cause.flops for cause in rest):+,})")
    if unexplained:
        parts.append(f"unexplained ({unexplained:+,})")
    return "; ".join(parts)
