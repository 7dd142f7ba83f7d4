"""Failures, checkpoints and restarts of a published run: the best interval, the account of the wall time, levers."""

from __future__ import annotations

from dataclasses import replace

from suanli.catalog.failures import find_failures
from suanli.learn.book import Book
from suanli.nouns.goodput import FailureTable, Goodput
from suanli.nouns.lesson import Lesson, Series
from suanli.plan.goodput import Reliability, counted_rate, given_rate, plan_goodput
from suanli.units import DAY, HOUR, MINUTE

TABLE = "llama-3-405b"
SAVE_S, RESTART_S, MFU = 60.0, 10.0 * MINUTE, 0.41  # ours to choose, but for the MFU: arXiv:2407.21783 Table 4
SIZES = (64, 1024, 4096, 16384, 65536)
_HOURS_A_YEAR = 365.25 * DAY / HOUR
_FASTER = 6  # times faster a checkpoint or a restart is made in what is tried
_ENTRIES = ("useful", "checkpoint", "replay", "restart")


def lesson(lang: str) -> Lesson:
    """The lesson."""
    book, table = Book("goodput", lang), find_failures(TABLE)
    run = reliability(table)
    plan = plan_goodput(run, mfu=MFU)
    _failures(book, table, run)
    _interval(book, plan)
    _account(book, plan)
    _levers(book, run, plan)
    assert plan.useful_mfu is not None
    book.say("whole", mfu=MFU, goodput=plan.goodput, useful=plan.useful_mfu)
    book.keep(mtti_s=plan.mtti_s, goodput=plan.goodput, interval_s=plan.interval_s)
    return book.lesson()


def reliability(table: FailureTable) -> Reliability:
    """The run with its failures as counted."""
    assert table.interrupts is not None and table.exposure is not None
    rate = counted_rate(table.interrupts, table.exposure, table.gpus, table.source)
    return Reliability(rate=rate, gpus=table.gpus, restart_s=RESTART_S, save_s=SAVE_S)


def _failures(book: Book, table: FailureTable, run: Reliability) -> None:
    one = table.gpu_hours_per_interrupt
    book.say("failures", gpus=table.gpus, interrupts=table.interrupts, days=table.days, mtti=run.rate.mtti_s, one=one,
             years=one / _HOURS_A_YEAR)  # fmt: skip
    rows = []
    for gpus in SIZES:
        found = plan_goodput(replace(run, gpus=gpus, rate=given_rate(one, gpus, table.source)))
        rows.append((gpus, found.mtti_s, DAY / found.mtti_s, found.goodput, found.interval_s))
        book.keep(**{f"goodput_{gpus}": found.goodput})
    book.table("failures", (",", "seconds", ".2f", "percent", "seconds"), rows)


def _interval(book: Book, plan: Goodput) -> None:
    by = {each.rule: each.interval_s for each in plan.intervals}
    book.say("interval", save=SAVE_S, young=by["young"], daly=by["daly"], exact=by["exact"])
    points = tuple((each.interval_s, each.lost) for each in plan.curve)
    book.plot("interval", ("seconds", "percent1"), [Series(name=book.word("lost"), points=points)], log_y=False)
    book.keep(**{f"interval_{rule}_s": seconds for rule, seconds in by.items()})


def _account(book: Book, plan: Goodput) -> None:
    book.say("account", restart=RESTART_S, goodput=plan.goodput)
    rows = [
        (book.word(f"entry_{each.entry}" if each.entry in _ENTRIES else "entry_other"), each.fraction)
        for each in plan.account if each.fraction
    ]  # fmt: skip
    book.table("account", ("text", "percent"), [*rows, (book.word("total"), sum(value for _, value in rows))])


def _levers(book: Book, run: Reliability, plan: Goodput) -> None:
    book.say("levers")
    rate = run.rate
    tried = (
        (book.word("lever_save", seconds=SAVE_S / _FASTER), replace(run, save_s=SAVE_S / _FASTER)),
        (book.word("lever_restart", seconds=RESTART_S / _FASTER), replace(run, restart_s=RESTART_S / _FASTER)),
        (book.word("lever_mtti"), replace(run, rate=replace(rate, mtti_s=2 * rate.mtti_s))),
    )
    rows = []
    for name, changed in tried:
        found = plan_goodput(changed).goodput
        rows.append((name, found, found - plan.goodput))
    book.table("levers", ("text", "percent", "change"), rows)
