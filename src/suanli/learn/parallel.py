"""DP, ZeRO, TP, PP, CP and EP on one node: who holds what, what is sent, what the planner says a step takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from suanli.catalog.devices import find_device
from suanli.learn.book import Book
from suanli.learn.cluster import BATCH, GPU, GPUS, MIXTURE, MODEL, SEQ, WAYS, Traffic, best, planned, question
from suanli.nouns.estimate import STATES
from suanli.nouns.layout import chunk_sizes
from suanli.nouns.lesson import Lesson
from suanli.nouns.plans import PlannedLayout
from suanli.units import GIBI

_WAITS = ("tensor parallel", "context parallel", "expert parallel", "weight gathers", "gradient scatters", "sends",
          "data parallel")  # fmt: skip
_NAMES = {"dp": "DP", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "ZeRO-3", "tp": "TP", "pp": "PP", "cp": "CP",
          "ep": "EP"}  # fmt: skip
_BETWEEN = ""  # eight boxes fill a line of 80


def lesson(lang: str) -> Lesson:
    """The lesson."""
    book = Book("parallel", lang)
    traffic, mixture = Traffic(MODEL), Traffic(MIXTURE)
    found = {way: planned(MIXTURE if way == "ep" else MODEL, pins) for way, pins in WAYS.items()}
    sent = {"dp": traffic.dp, "zero1": traffic.zero1, "zero2": traffic.zero1, "zero3": traffic.zero3,
            "tp": traffic.tp, "pp": traffic.pp, "cp": traffic.cp, "ep": mixture.ep}  # fmt: skip
    capacity = find_device(GPU).memory_bytes_per_torch_device
    assert capacity is not None
    _cluster(book, traffic, found["dp"], capacity)
    _ways(book, traffic, found, sent)
    _experts(book, mixture, found["ep"], sent["ep"])
    _held(book, found, capacity)
    _sent(book, found, sent)
    free = best(capacity)
    book.say("mix", best=free.short, step=free.step_time_s, total=free.memory_bytes["total"])
    return book.lesson()


def _cluster(book: Book, traffic: Traffic, alone: PlannedLayout, capacity: int) -> None:
    states = sum(alone.memory_bytes[name] for name in STATES)
    book.say("cluster", gpus=GPUS, gpu=GPU, memory=capacity, link=question(MODEL).fabric.link_bytes_per_s, model=MODEL,
             params=traffic.arch.params_total, seq=SEQ, batch=BATCH, states=states)  # fmt: skip


def _drawn(book: Book, way: str, holds: Callable[[int], tuple[str, ...]]) -> None:
    book.boxes(way, [(f"GPU {place}", holds(place)) for place in range(GPUS)], per_row=GPUS, between=_BETWEEN)


def _ways(book: Book, traffic: Traffic, found: dict[str, PlannedLayout], sent: dict[str, float]) -> None:
    every = book.word("every")
    book.say("dp", sent=sent["dp"])
    _drawn(book, "dp", lambda i: (f"W {every}", f"G {every}", f"O {every}", f"x {i}"))
    book.say("zero1", sent=sent["zero1"], weight_bytes=traffic.weight, gradient_bytes=traffic.gradient)
    _drawn(book, "zero1", lambda i: (f"W {every}", f"G {i}", f"O {i}", f"x {i}"))
    book.say("zero3", sent=sent["zero3"])
    _drawn(book, "zero3", lambda i: (f"W {i}", f"G {i}", f"O {i}", f"x {i}"))
    book.say("tp", sent=sent["tp"])
    _drawn(book, "tp", lambda i: (f"W {i}", f"G {i}", f"O {i}", f"x {every}"))
    pipe = found["pp"]
    waiting = {entry.entry: entry.seconds for entry in pipe.account}["bubble"]
    book.say("pp", sent=sent["pp"], micro=BATCH, stages=GPUS, bubble=waiting, step=pipe.step_time_s)
    ends = _layers(traffic.layers)
    _drawn(book, "pp", lambda i: (f"L {ends[i]}", f"x {every}"))
    book.say("cp", kv=traffic.kv, sent=sent["cp"])
    length = SEQ // GPUS
    _drawn(book, "cp", lambda i: (f"W {every}", f"s {i * length}", f" –{(i + 1) * length - 1}"))


def _layers(layers: int) -> list[str]:
    """Which layers each stage has, counted from 1."""
    first, ends = 1, []
    for size in chunk_sizes(layers, GPUS, 1):
        ends.append(f"{first}–{first + size - 1}")
        first += size
    return ends


def _experts(book: Book, mixture: Traffic, with_: PlannedLayout, sent: float) -> None:
    experts, routed, _ = mixture.experts
    without = planned(MIXTURE, {})
    book.say("ep", model=MIXTURE, params=mixture.arch.params_total, active=mixture.arch.params_active, experts=experts,
             routed=routed, tokens=mixture.tokens, sent=sent, before=without.memory_bytes["total"],
             after=with_.memory_bytes["total"], slow=without.step_time_s, fast=with_.step_time_s)  # fmt: skip
    each = experts // GPUS
    _drawn(book, "ep", lambda i: (f"E {i * each}", f" –{(i + 1) * each - 1}", f"x {i}"))


def _held(book: Book, found: dict[str, PlannedLayout], capacity: int) -> None:
    rows: list[tuple[Any, ...]] = []
    for way, plan in found.items():
        shown = [plan.memory_bytes[name] for name in (*STATES, "activations")]
        total = plan.memory_bytes["total"]
        fits = book.word("yes" if total <= capacity else "no")
        rows.append((_NAMES[way], *(each / GIBI for each in (*shown, total - sum(shown), total)), fits))
        book.keep(**{f"{way}_total_bytes": total, f"{way}_step_s": plan.step_time_s})
    book.table("held", ("text", *(".1f" for _ in rows[0][1:-1]), "text"), rows)


def _sent(book: Book, found: dict[str, PlannedLayout], sent: dict[str, float]) -> None:
    rows = []
    for way, plan in found.items():
        took = {entry.entry: entry.seconds for entry in plan.account}
        waits = sum(took.get(name, 0.0) for name in _WAITS)
        rows.append(
            (_NAMES[way], sent[way], waits, took["bubble"] if plan.pp > 1 else None, plan.step_time_s, plan.mfu)
        )
        book.keep(**{f"{way}_sent_bytes": sent[way]})
    book.table("sent", ("text", "bytes", "seconds", "seconds", "seconds", "percent1"), rows)
