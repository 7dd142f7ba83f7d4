"""The article's price of a thousand tokens: the utilisation it hides, and what ten per cent more of it would do."""

from __future__ import annotations

from suanli.catalog.claims import article_claims
from suanli.formulas.articles import (
    gross_margin,
    unit_cost_change_by_points,
    unit_cost_change_by_ratio,
    usd_per_thousand_tokens,
)
from suanli.learn.book import Book
from suanli.nouns.lesson import Lesson, Series
from suanli.units import KILO, format_percent
from suanli.verify import claim_inputs

UTILISATIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
_LAST_DIGIT = 1e-4  # the article prints the cost to a hundredth of a cent


def lesson(lang: str) -> Lesson:
    """The lesson."""
    book = Book("cost", lang)
    claims = {claim.id: claim for claim in article_claims()}
    start = claim_inputs("price-1000")
    raw = claims["price-1000"].inputs["price"]
    mfu, printed = start["mfu"], claims["price-1000"].article
    assert printed is not None
    without = {name: value for name, value in start.items() if name != "mfu"}
    at_one = usd_per_thousand_tokens(**without, mfu=1)  # the cost goes as 1/u
    exact, beside = at_one / printed, claim_inputs("price-1000-214")
    book.say("example", params=claims["price-1000"].inputs["flops_per_token"]["params"], gpus=raw["denominator"],
             hourly=raw["numerator"], price=start["price"], per_token=start["flops_per_token"],
             peak=start["peak_flop_per_s"], printed=printed, low=at_one / (printed + _LAST_DIGIT / 2),
             high=at_one / (printed - _LAST_DIGIT / 2), exact=exact, mfu=mfu,
             at_mfu=usd_per_thousand_tokens(**start), next=beside["mfu"],
             at_next=usd_per_thousand_tokens(**beside))  # fmt: skip
    sold = claim_inputs("gross-margin")["price"]
    _table(book, without, sold, mfu, exact)
    _ten(book, mfu)
    book.keep(utilisation=exact, usd_per_thousand=usd_per_thousand_tokens(**start),
              usd_at_214=usd_per_thousand_tokens(**beside))  # fmt: skip
    return book.lesson()


def _table(book: Book, run: dict[str, float], sold: float, mfu: float, exact: float) -> None:
    rows = []
    for each in sorted({*UTILISATIONS, mfu, exact}):
        cost = usd_per_thousand_tokens(**run, mfu=each)
        rows.append((each, cost, cost * KILO, gross_margin(cost, sold)))
    book.say("table", sold=sold)
    book.table("table", ("percent", ".6f", ".2f", "percent1"), rows)
    points = tuple((row[0], row[1]) for row in rows)
    book.plot("curve", ("percent1", ".4f"), [Series(name=book.word("cost"), points=points)])


def _ten(book: Book, mfu: float) -> None:
    points, relative = claim_inputs("cost-points")["points"], claim_inputs("cost-relative")["relative"]
    by_points, by_ratio = unit_cost_change_by_points(mfu, points), unit_cost_change_by_ratio(relative)
    to, to_relative = mfu / (1 + by_points), mfu / (1 + by_ratio)
    claimed = {claim.id: claim.article for claim in article_claims()}["cost-points"]
    assert claimed is not None
    book.say(
        "ten",
        relative=relative,
        said=-claimed,
        from_=mfu,
        to=to,
        to_relative=to_relative,
        by_points=by_points,
        by_ratio=by_ratio,
    )
    rows = [
        (format_percent(each, 1), unit_cost_change_by_points(each, points), by_ratio) for each in (mfu, 0.3, 0.4, 0.5)
    ]
    book.table("ten", ("text", "change", "change"), rows)
    book.keep(by_points=by_points, by_ratio=by_ratio)
