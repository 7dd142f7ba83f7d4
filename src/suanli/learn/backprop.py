"""One step of training a 2-2-2 network by hand: forward, loss, chain rule, update, and what each phase costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import pairwise
from typing import Any

from suanli.catalog.claims import article_claims
from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.count import build_ledger
from suanli.formulas.backprop import backprop_forward, backprop_gradients, backprop_train
from suanli.formulas.counting import linear_flops
from suanli.learn.book import Book
from suanli.nouns.claim import Claim
from suanli.nouns.lesson import Lesson, Series
from suanli.nouns.workload import Workload
from suanli.readers.model import read_model
from suanli.verify import check_claim

STEPS = 1000
_POINTS_A_DECADE = (1, 2, 3, 5, 7)
_UNITS = ("h1", "h2", "y1", "y2")
_NETWORK = "linear(2, 2) -> sigmoid -> linear(2, 2) -> sigmoid"
_PREFIX = "backprop-"


@dataclass(frozen=True, kw_only=True)
class Network:
    """Everything the example starts from."""

    inputs: tuple[float, ...]
    targets: tuple[float, ...]
    weights: tuple[float, ...]
    hidden_bias: float
    output_bias: float
    learning_rate: float
    steps: int = field(default=STEPS)

    def trained(self, steps: int) -> dict[str, float]:
        """Weights and loss after some steps."""
        return backprop_train(**self.start, learning_rate=self.learning_rate, steps=steps)

    @property
    def start(self) -> dict[str, Any]:
        """What a forward pass takes."""
        names = ("inputs", "targets", "weights", "hidden_bias", "output_bias")
        return {name: getattr(self, name) for name in names}


@cache
def article_network() -> Network:
    """The article's numbers, as its claims hold them."""
    found = next(claim for claim in article_claims() if claim.id == f"{_PREFIX}loss-1000")
    known = {each.name for each in fields(Network)}
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in found.inputs.items() if k in known}
    return Network(**values)


def lesson(lang: str, **given: Any) -> Lesson:
    """The lesson; keywords are fields of `Network`, the article's where not given."""
    own = {each.name: getattr(article_network(), each.name) for each in fields(Network)}
    net, book = Network(**(own | given)), Book("backprop", lang)
    at = backprop_forward(**net.start)
    back = backprop_gradients(**net.start)
    once = net.trained(1)
    _network(book, net, at)
    _forward(book, net, at)
    _backward(book, back)
    _update(book, net, at, back, once)
    _many(book, net)
    _flops(book)
    if net == article_network():
        _article(book)
    book.keep(**{k: v for k, v in (at | back).items() if k != "loss"}, loss_before=at["loss"], loss_after=once["loss"],
              **{f"{name}_after": value for name, value in once.items() if name != "loss"})  # fmt: skip
    return book.lesson()


def _network(book: Book, net: Network, at: Mapping[str, float]) -> None:
    book.say("network", hidden_bias=net.hidden_bias, output_bias=net.output_bias, t1=net.targets[0], t2=net.targets[1],
             rate=net.learning_rate)  # fmt: skip
    w = net.weights
    boxes: list[tuple[str, tuple[str, str]]] = []
    for i in (0, 1):
        boxes.append((f"x{i + 1}", (f"{book.word('drawn')} {net.inputs[i]:g}", "")))
        for unit, out in ((f"h{i + 1}", at[f"out_h{i + 1}"]), (f"y{i + 1}", at[f"y{i + 1}"])):
            first, _ = _into(unit)
            held = ", ".join(f"w{place} = {w[place]:g}" for place in (first, first + 1))
            boxes.append((unit, (held, f"out {out:.8f}")))
    book.boxes("network", boxes, per_row=3, between="═╳═")


def _into(unit: str) -> tuple[int, tuple[str, str]]:
    """First weight of a unit and the names of what flows in."""
    place = _UNITS.index(unit)
    return 2 * place, ("x1", "x2") if place < 2 else ("h1", "h2")


def _forward(book: Book, net: Network, at: Mapping[str, float]) -> None:
    rows = []
    for unit in _UNITS:
        first, (a, b) = _into(unit)
        out = at[f"out_{unit}"] if unit.startswith("h") else at[unit]
        bias = "b_h" if unit.startswith("h") else "b_y"
        rows.append((unit, f"w{first}·{a} + w{first + 1}·{b} + {bias}", at[f"net_{unit}"], out))
    book.say("forward_pass")
    book.table("forward_pass", ("text", "text", ".8f", ".8f"), rows)
    book.say(
        "loss", t1=net.targets[0], t2=net.targets[1], **{name: at[name] for name in ("y1", "y2", "e1", "e2", "loss")}
    )


def _backward(book: Book, back: Mapping[str, float]) -> None:
    book.say("deltas")
    rows = [(f"y{i}", f"(y{i} − t{i})·y{i}·(1 − y{i})", back[f"delta_y{i}"]) for i in (1, 2)]
    rows += [(f"h{i}", f"(δy1·w{3 + i} + δy2·w{5 + i})·h{i}·(1 − h{i})", back[f"delta_h{i}"]) for i in (1, 2)]
    book.table("deltas", ("text", "text", ".8f"), rows)
    boxes = [(unit, (f"δ {back[f'delta_{unit}']:.8f}",)) for pair in (("h1", "y1"), ("h2", "y2")) for unit in pair]
    book.boxes("deltas", boxes, per_row=2, between="◄╳═")


def _update(
    book: Book, net: Network, at: Mapping[str, float], back: Mapping[str, float], once: Mapping[str, float]
) -> None:
    book.say("update")
    rows = []
    for unit in _UNITS:
        first, names = _into(unit)
        for place, name in enumerate(names, first):
            rows.append((f"w{place}", net.weights[place], f"δ{unit}·{name}", back[f"dw{place}"], once[f"w{place}"]))
    book.table("update", ("text", ".8f", "text", ".8f", ".8f"), rows)
    book.say("after", before=at["loss"], after=once["loss"])


def shown_steps(last: int) -> tuple[int, ...]:
    """Steps the curve is drawn at: a few a decade, and the last."""
    found, decade = [], 1
    while decade <= last:
        found += [decade * each for each in _POINTS_A_DECADE if decade * each < last]
        decade *= 10
    return (*found, *([last] if last else []))


def losses(net: Network) -> Iterator[tuple[int, float]]:
    """Steps done and the loss then, going on from point to point."""
    weights = net.weights
    for before, after in pairwise((0, *shown_steps(net.steps))):
        found = backprop_train(
            **(net.start | {"weights": weights}), learning_rate=net.learning_rate, steps=after - before
        )
        weights = tuple(found[f"w{i}"] for i in range(len(weights)))
        yield after, found["loss"]


def _many(book: Book, net: Network) -> None:
    points = tuple(losses(net)) or ((0, backprop_forward(**net.start)["loss"]),)
    steps, last = points[-1]
    book.say("many", steps=steps, last=last)
    drawn = tuple(point for point in points if point[1] > 0)
    if len(drawn) > 1:
        book.plot("many", ("exact", ".0e"), [Series(name=book.word("curve"), points=drawn)])
    book.keep(steps=steps, loss_last=last)


def _flops(book: Book) -> None:
    ledger = build_ledger(read_model(_NETWORK), Workload(phase="train", seq=1), find_convention(DEFAULT))
    forward, backward = ledger.flops("forward"), ledger.flops("backward")
    layer = linear_flops(1, 2, 2)
    rule = 2 * forward  # one product for the weights' gradient, one for the inputs'
    book.say("flops", layer=layer, forward=forward, rule=rule, ratio=rule / forward, counted=backward)
    rows = [(book.word("forward"), forward, forward), (book.word("backward"), rule, backward),
            (book.word("total"), forward + rule, forward + backward)]  # fmt: skip
    book.table("flops", ("text", ",", ","), rows)
    book.keep(forward_flops=forward, backward_flops_by_rule=rule, backward_flops_counted=backward)


def printed_claims() -> list[Claim]:
    """The figures of the example that the article prints."""
    return [
        claim for claim in article_claims() if claim.id.startswith(_PREFIX) and claim.article is not None and claim.key
    ]


def _article(book: Book) -> None:
    rows, off = [], []
    for claim in printed_claims():
        got = check_claim(claim).got
        assert got is not None and claim.article is not None
        agrees = abs(got - claim.article) <= claim.article_tolerance * (1 + 1e-9)
        off += [] if agrees else [(claim.article, got)]
        name = claim.id.removeprefix(_PREFIX)
        rows.append((name, claim.article, got, book.word("yes") if agrees else book.word("no")))
    (slip, computed), *_ = off
    book.say("article", printed=len(rows), right=len(rows) - len(off), wrong=len(off), slip=slip, computed=computed,
             off=abs(slip - computed))  # fmt: skip
    book.table("article", ("text", ".8f", ".8f", "text"), rows)
