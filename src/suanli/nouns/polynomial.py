"""Polynomials in batch, sequence and key length with exact coefficients, that pass through formulas like numbers.

A `Polynomial` adds, multiplies, divides and compares. A comparison that the lengths decide differently (a window's
edge) is answered by the `Region` under which the polynomial was made; `regions` runs a computation once for every
consistent set of answers, which gives its pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, product
from math import floor, lcm
from typing import Any

MAX_REGIONS = 256  # more pieces than a reader could use
MAX_DEGREE = 12

Number = int | Fraction
Monomial = tuple[tuple[Any, int], ...]  # ((symbol or Floor, power), …), sorted by how it is printed

_POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Floor:
    """⌊p/n⌋ of a polynomial p that n does not always divide: one more symbol."""

    of: Polynomial
    by: int

    def __str__(self) -> str:
        return f"⌊{self.of if len(self.of.terms) == 1 else f'({self.of})'}/{self.by:,}⌋"


def _simple(value: Number) -> Number:
    return int(value) if value.denominator == 1 else value


class Polynomial:
    """A sum of monomials. Comparisons ask the region it belongs to; constants answer by themselves."""

    __slots__ = ("region", "terms")

    def __init__(self, terms: Mapping[Monomial, Number], region: Region) -> None:
        self.terms = {monomial: _simple(value) for monomial, value in terms.items() if value}
        self.region = region

    def _of(self, other: object) -> Polynomial | None:
        if isinstance(other, Polynomial):
            return other
        return Polynomial({(): other}, self.region) if isinstance(other, int | Fraction) else None

    def __add__(self, other: object) -> Polynomial:
        """Sum."""
        right = self._of(other)
        if right is None:
            return NotImplemented
        total = dict(self.terms)
        for monomial, value in right.terms.items():
            total[monomial] = total.get(monomial, 0) + value
        return Polynomial(total, self.region)

    __radd__ = __add__

    def __mul__(self, other: object) -> Polynomial:
        """Product."""
        right = self._of(other)
        if right is None:
            return NotImplemented
        total: dict[Monomial, Number] = {}
        for (a, x), (b, y) in product(self.terms.items(), right.terms.items()):
            key = _joined(a, b)
            total[key] = total.get(key, 0) + x * y
        return Polynomial(total, self.region)

    __rmul__ = __mul__

    def __neg__(self) -> Polynomial:
        return self * -1

    def __sub__(self, other: object) -> Polynomial:
        return self + other * -1 if isinstance(other, int | Fraction | Polynomial) else NotImplemented

    def __rsub__(self, other: object) -> Polynomial:
        return -self + other

    def __truediv__(self, other: object) -> Polynomial:
        return self * Fraction(1, other) if isinstance(other, int) else NotImplemented

    def __pow__(self, power: int) -> Polynomial:
        out = Polynomial({(): 1}, self.region)
        for _ in range(power):
            out = out * self
        return out

    def __floordiv__(self, by: object) -> Polynomial:
        """⌊p/n⌋: p/n itself where that is whole at every whole point, else p's divisible part and a new symbol."""
        if not isinstance(by, int) or by < 1:
            return NotImplemented
        divided = self / by
        if divided.is_whole():
            return divided
        even = {key: value for key, value in self.terms.items() if value.denominator == 1 and value % by == 0}
        rest = Polynomial({key: value for key, value in self.terms.items() if key not in even}, self.region)
        return Polynomial(even, self.region) / by + Polynomial({((Floor(rest, by), 1),): 1}, self.region)

    def __mod__(self, by: object) -> Polynomial:
        return self - self // by * by if isinstance(by, int) else NotImplemented

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __eq__(self, other: object) -> bool:
        right = self._of(other)
        return right is not None and self.terms == right.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __gt__(self, other: Any) -> bool:
        return self.region.positive(self - other)

    def __lt__(self, other: Any) -> bool:
        return self.region.positive(other - self)

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __le__(self, other: Any) -> bool:
        return not self > other

    @property
    def constant(self) -> Number:
        """The term without a symbol."""
        return self.terms.get((), 0)

    def symbols(self) -> dict[Any, int]:
        """Every symbol with its highest power."""
        found: dict[Any, int] = {}
        for monomial in self.terms:
            for symbol, power in monomial:
                found[symbol] = max(power, found.get(symbol, 0))
        return found

    def is_whole(self) -> bool:
        """Whether the value is whole at every whole point: decided by whole values at 0 … degree of each symbol."""
        if all(value.denominator == 1 for value in self.terms.values()):
            return True
        highest = self.symbols()
        if sum(highest.values()) > MAX_DEGREE:
            return False
        grid = product(*(range(power + 1) for power in highest.values()))
        points = (dict(zip(highest, point, strict=True)) for point in grid)
        return all(self._sum(point).denominator == 1 for point in points)

    def _sum(self, values: Mapping[Any, Any], number: Callable[[Number], Any] = _simple) -> Any:
        total: Any = 0
        for monomial, coefficient in self.terms.items():
            term: Any = number(coefficient)
            for symbol, power in monomial:
                term = term * values[symbol] ** power
            total = total + term
        return total

    def at(self, values: Mapping[Any, Any]) -> Any:
        """The value where symbols have these values: an exact int (or Fraction) for ints, float64 for arrays."""
        known = dict(values)
        for symbol in self.symbols():
            if isinstance(symbol, Floor):
                known[symbol] = symbol.of.at(values) // symbol.by
        if all(isinstance(value, int) for value in known.values()):
            return _simple(self._sum(known))
        return self._sum({symbol: value * 1.0 for symbol, value in known.items()}, float)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        ordered = sorted(self.terms.items(), key=lambda item: (-sum(power for _, power in item[0]), _text(item[0])))
        text = " ".join(f"- {_term(-value, key)}" if value < 0 else f"+ {_term(value, key)}" for key, value in ordered)
        return text.removeprefix("+ ")

    __repr__ = __str__


def _joined(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers = dict(a)
    for symbol, power in b:
        powers[symbol] = powers.get(symbol, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))


def _text(monomial: Monomial) -> str:
    return "·".join(str(s) + (str(power).translate(_POWERS) if power > 1 else "") for s, power in monomial)


def _term(value: Number, monomial: Monomial) -> str:
    number = f"{value:,}" if isinstance(value, int) else f"{value.numerator:,}/{value.denominator:,}"
    if not monomial:
        return number
    return _text(monomial) if value == 1 else f"{number}·{_text(monomial)}"


@dataclass
class Region:
    """Where a computation is one polynomial: the answers given so far, as bounds of expressions.

    `script` holds answers fixed beforehand; beyond it the first answer is no, and the other is left `open`.
    """

    script: tuple[bool, ...] = ()
    low: dict[Polynomial, int] = field(default_factory=dict)
    high: dict[Polynomial, int] = field(default_factory=dict)
    taken: list[bool] = field(default_factory=list)
    open: list[tuple[bool, ...]] = field(default_factory=list)

    def symbol(self, name: str) -> Polynomial:
        """A length, 1 or more."""
        return Polynomial({((name, 1),): 1}, self)

    def positive(self, difference: Polynomial) -> bool:
        """Whether `difference` > 0 in this region, which is made narrower where both could be."""
        moving, scale = _normal(difference)
        if moving is None:
            return difference.constant > 0
        edge = Fraction(-difference.constant) / scale  # scale·(moving − edge) > 0, and moving is whole
        bound = floor(edge) if scale > 0 else -floor(-edge)
        low, high = self.low.get(moving, _least(moving)), self.high.get(moving)
        if scale > 0:  # moving > bound
            if low is not None and low > bound:
                return True
            if high is not None and high <= bound:
                return False
        else:  # moving < bound
            if low is not None and low >= bound:
                return False
            if high is not None and high < bound:
                return True
        answer = self._answer()
        above = answer == (scale > 0)
        if above:
            self.low[moving] = bound + 1 if scale > 0 else bound
        else:
            self.high[moving] = bound if scale > 0 else bound - 1
        return answer

    def _answer(self) -> bool:
        place = len(self.taken)
        if place < len(self.script):
            answer = self.script[place]
        else:
            answer = False
            self.open.append((*self.taken, True))
        self.taken.append(answer)
        return answer

    def holds(self, values: Mapping[Any, Any]) -> Any:
        """Whether lengths lie here: a bool for ints, an array of them for arrays."""
        inside: Any = True
        for moving, bound in self.low.items():
            inside = inside & (moving.at(values) >= bound)
        for moving, bound in self.high.items():
            inside = inside & (moving.at(values) <= bound)
        return inside

    @property
    def bounds(self) -> Bounds:
        """Least and largest value of each expression that is bounded here."""
        return {moving: (self.low.get(moving), self.high.get(moving)) for moving in (*self.low, *self.high)}

    def __str__(self) -> str:
        return bounds_text(self.bounds)


Bounds = dict[Polynomial, tuple[int | None, int | None]]


def bounds_text(bounds: Bounds) -> str:
    """`2 ≤ S ≤ 128, B ≤ 7`, or `everywhere`."""
    parts = []
    for moving, (low, high) in sorted(bounds.items(), key=lambda item: str(item[0])):
        left = "" if low is None else f"{low:,} ≤ "
        parts.append(f"{left}{moving}" + ("" if high is None else f" ≤ {high:,}"))
    return ", ".join(parts) or "everywhere"


def united(places: list[Bounds]) -> list[Bounds]:
    """The same places in fewer: two that differ in one expression, and lie side by side there, are one."""
    for first, second in combinations(places, 2):
        differing = [moving for moving in {**first, **second} if first.get(moving) != second.get(moving)]
        if len(differing) != 1 or not all(differing[0] in place for place in (first, second)):
            continue
        low, high = sorted((first[differing[0]], second[differing[0]]), key=lambda ends: ends[0] or 0)
        if low[1] is not None and high[0] == low[1] + 1:
            joined = {**first, differing[0]: (low[0], high[1])}
            if joined[differing[0]] == (None, None):
                del joined[differing[0]]
            rest = [place for place in places if place is not first and place is not second]
            return united([*rest, joined])
    return places


def _normal(difference: Polynomial) -> tuple[Polynomial | None, Fraction]:
    """The part that moves, in whole coefficients with a positive first one, and the factor taken out."""
    terms = {key: Fraction(value) for key, value in difference.terms.items() if key}
    if not terms:
        return None, Fraction(0)
    first = terms[min(terms, key=_text)]
    ratios = {key: value / first for key, value in terms.items()}
    whole = lcm(*(ratio.denominator for ratio in ratios.values()))
    moving = Polynomial({key: ratio * whole for key, ratio in ratios.items()}, difference.region)
    return moving, first / whole


def _least(moving: Polynomial) -> int | None:
    """The least value of a sum of positive terms, lengths being 1 or more and floors 0 or more; None if unknown."""
    if any(value < 0 for value in moving.terms.values()):
        return None
    floors = (key for key in moving.terms if any(isinstance(symbol, Floor) for symbol, _ in key))
    return int(sum(moving.terms.values()) - sum(moving.terms[key] for key in floors))


def regions(compute: Callable[[Region], Any]) -> Iterator[tuple[Region, Any]]:
    """`compute` run once for every region that comparisons cut the lengths into. Raises OverflowError past 256."""
    scripts: list[tuple[bool, ...]] = [()]
    for _ in range(MAX_REGIONS):
        if not scripts:
            return
        region = Region(scripts.pop())
        found = compute(region)
        scripts.extend(region.open)
        yield region, found
    raise OverflowError(f"more than {MAX_REGIONS} pieces")
