"""Measured goodput: a log of events added up, and the failure rate it shows."""

from __future__ import annotations

from collections.abc import Sequence

from suanli.formulas import reliability
from suanli.nouns.goodput import CauseTime, Loss, MeasuredGoodput
from suanli.plan.goodput import counted_rate
from suanli.readers.events import DOWN, KINDS, REPLAY, USEFUL, Event
from suanli.units import HOUR

NOTHING_FAILED = "nothing failed: no row of kind restart"
NEVER_UP = "no row but restarts: nothing was up that could fail"
UNNAMED = "not said"
UNEXPLAINED = "no row covers it"


def measure_goodput(events: Sequence[Event], gpus: int | None) -> MeasuredGoodput:
    """Wall time by kind, downtime by cause, and the failure rate with its interval (per GPU where `gpus` is known)."""
    wall = events[-1].end_s - events[0].start_s
    spent = {kind: sum(event.seconds for event in events if event.kind == kind) for kind in KINDS}
    down = [event for event in events if event.kind == DOWN]
    up_s = wall - spent[DOWN]
    entries = [("useful", spent[USEFUL], KINDS[USEFUL])]
    entries += [(kind, seconds, KINDS[kind]) for kind, seconds in spent.items() if seconds and kind != USEFUL]
    entries.append(("unexplained", wall - sum(spent.values()), UNEXPLAINED))
    account = tuple(Loss(entry=name, fraction=seconds / wall, why=why) for name, seconds, why in entries)
    counted = bool(down) and up_s > 0
    rate = counted_rate(len(down), up_s / HOUR * (gpus or 1), gpus or 1, "restarts of the log") if counted else None
    mttr = spent[DOWN] / len(down) if down else None
    return MeasuredGoodput(
        gpus=gpus, wall_s=wall, goodput=spent[USEFUL] / wall,
        loss={entry.entry: entry.fraction for entry in account[1:]}, account=account, causes=_causes(events, wall),
        interrupts=len(down), rate=rate, mttr_s=mttr,
        availability=reliability.availability(rate.mtti_s, mttr) if rate and mttr is not None else None,
        reasons=_reasons(bool(down), counted),
    )  # fmt: skip


def _reasons(failed: bool, counted: bool) -> dict[str, str]:
    if not failed:
        return dict.fromkeys(("rate", "mttr_s", "availability"), NOTHING_FAILED)
    return {} if counted else dict.fromkeys(("rate", "availability"), NEVER_UP)


def _causes(events: Sequence[Event], wall: float) -> tuple[CauseTime, ...]:
    """Downtime by cause; what is replayed goes to the cause it names, else to the interrupt before it."""
    down: dict[str, list[float]] = {}
    replayed: dict[str, float] = {}
    last = UNNAMED
    for event in events:
        if event.kind == DOWN:
            last = event.cause or UNNAMED
            down.setdefault(last, []).append(event.seconds)
        elif event.kind == REPLAY:
            cause = event.cause or last
            replayed[cause] = replayed.get(cause, 0.0) + event.seconds
    rows = []
    for cause in dict.fromkeys((*down, *replayed)):
        each, again = down.get(cause, []), replayed.get(cause, 0.0)
        rows.append(CauseTime(cause=cause, count=len(each), seconds=sum(each), replay_s=again,
                              fraction=(sum(each) + again) / wall))  # fmt: skip
    return tuple(sorted(rows, key=lambda row: -row.fraction))
