"""The linear speed-up ratio: its forms on one published run, strong against weak, and the laws behind it."""

from __future__ import annotations

from suanli.catalog.claims import article_claims
from suanli.catalog.scaling import usual
from suanli.formulas.articles import linear_ratio_by_mfu, linear_ratio_by_rate, linear_ratio_by_time
from suanli.formulas.scaling import amdahl
from suanli.learn.book import Book
from suanli.nouns.lesson import Lesson
from suanli.nouns.lesson import Series as Curve
from suanli.nouns.scaling import Figure, Scaling, Series, Size
from suanli.plan.scale import analyse
from suanli.verify import claim_inputs

# arXiv:2402.15627 Table 2: GPUs and seconds of a step at one global batch
STEPS = {3072: 23.66, 6144: 12.21, 8192: 9.23, 12288: 6.34}
BATCH, MORE, HALF_DIGIT = 6144, 16384, 0.005
WANTED, SIZES = 0.9, (64, 1024, 16384)


def analysed() -> Scaling:
    """The run as `suanli scale` takes it apart."""
    sizes = tuple(
        Size(gpus=gpus, figures={"step_time_s": Figure(value=seconds, half_digit=HALF_DIGIT)}, global_batch=BATCH)
        for gpus, seconds in STEPS.items()
    )
    known = usual()
    return analyse(Series(name="MegaScale", sizes=sizes), by=None, project=(MORE,), slope=known.slope_per_doubling,
                   width=known.interval_units)  # fmt: skip


def lesson(lang: str) -> Lesson:
    """The lesson."""
    book, found = Book("scaling", lang), analysed()
    _ratio(book)
    _strong(book, found)
    _laws(book, found)
    _serial(book)
    return book.lesson()


def _ratio(book: Book) -> None:
    time, rate = claim_inputs("megascale-linear-time"), claim_inputs("megascale-linear-rate")
    mfu, mixed = claim_inputs("megascale-linear-mfu"), claim_inputs("megascale-linear-mfu-mixed")
    printed = {claim.id: claim.article for claim in article_claims()}["megascale-linear-time"]
    by_time = linear_ratio_by_time(**time)
    book.say("ratio", batch=BATCH, first=time["gpus_from"], last=time["gpus_to"], by_time=by_time, printed=printed,
             seconds_from=time["seconds_from"], seconds_to=time["seconds_to"])  # fmt: skip
    rows = [
        (book.word("by_time"), time["seconds_from"], time["seconds_to"], by_time),
        (book.word("by_rate"), rate["rate_from"], rate["rate_to"], linear_ratio_by_rate(**rate)),
        (book.word("by_mfu"), mfu["mfu_from"], mfu["mfu_to"], linear_ratio_by_mfu(**mfu)),
        (book.word("by_mixed"), mixed["mfu_from"], mixed["mfu_to"], linear_ratio_by_mfu(**mixed)),
    ]
    book.table("ratio", ("text", "exact", "exact", "percent"), rows)
    book.say("forms")
    book.keep(by_time=by_time, by_rate=rows[1][3], by_mfu=rows[2][3], by_mixed_mfu=rows[3][3])


def _strong(book: Book, found: Scaling) -> None:
    each = [BATCH / row.gpus for row in found.sizes]
    book.say("strong", most=max(each), least=min(each))
    rows = [(row.gpus, share, row.value, row.ratio, row.speedup) for share, row in zip(each, found.sizes, strict=True)]
    book.table("strong", (",", ".2f", ".2f", "percent", ".2f"), rows)


def _laws(book: Book, found: Scaling) -> None:
    assert found.fit is not None
    ahead = found.projection[0]
    law = found.fit.law
    book.say("laws", chosen=law, projected=ahead.ratio, more=ahead.gpus, low=ahead.low, high=ahead.high)
    book.table("laws", ("text", "percent"), [(fit.law, fit.error) for fit in found.fits])
    measured = tuple((float(row.gpus), row.speedup) for row in found.sizes)
    first = found.sizes[0].gpus
    book.plot("curve", ("exact", ".2f"), [
        Curve(name=book.word("linear"), points=((float(first), 1.0), (float(ahead.gpus), ahead.gpus / first))),
        Curve(name=book.word("fitted", law=law), points=tuple((float(p.gpus), p.speedup) for p in found.curve)),
        Curve(name=book.word("measured"), points=measured, line=False),
    ])  # fmt: skip
    book.keep(law=law, projected=ahead.ratio)


def largest_serial(gpus: int, wanted: float) -> float:
    """The part that may stay unshared: where Amdahl's efficiency is just what is wanted."""
    rest_at_all = 1 / amdahl(gpus, 1) - 1  # n − 1: the efficiency falls as 1/(1 + f·rest)
    return (1 / wanted - 1) / rest_at_all


def _serial(book: Book) -> None:
    book.say("serial", wanted=WANTED)
    rows = [(gpus, largest_serial(gpus, WANTED), 1 / largest_serial(gpus, WANTED)) for gpus in SIZES]
    book.table("serial", (",", ".2e", ",.0f"), rows)
