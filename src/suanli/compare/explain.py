"""Why a counter's number differs: its own books against the right ones, module by module, to the last FLOP.

Every module's difference is taken apart into causes of known size. The causes are found by what the amounts are, not
by which tool wrote them; what no cause fits stays `unexplained`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from suanli.compare.places import Place, Product, Sizes, plain_name
from suanli.nouns.comparison import Cause

MOST_PER_ELEMENT = 24  # FLOPs an element that an elementwise operator may be charged
MOST_BIASES = 4
SINGLE = " of single numbers"  # how the books mark arithmetic of tensors without axes

_FAMILIES = {
    "linear": "linear", "mm": "linear", "addmm": "linear", "nondynamicallyquantizablelinear": "linear",
    "bilinear": "linear", "matmul": "matmul", "bmm": "matmul", "baddbmm": "matmul", "einsum": "matmul",
    "mv": "matmul", "addmv": "matmul", "dot": "matmul", "conv": "conv", "attention": "attention",
    "flashattentionforward": "attention", "efficientattentionforward": "attention", "groupedmm": "experts",
    "lstm": "recurrent", "gru": "recurrent", "rnn": "recurrent", "rnntanh": "recurrent", "rnnrelu": "recurrent",
    "multiheadattention": "whole", "transformerencoderlayer": "whole",
}  # fmt: skip


@dataclass(frozen=True)
class Found:
    """A cause at one place. `words` is what groups it with those of other places."""

    words: str
    flops: int
    path: str


def explain(
    places: Mapping[str, Place], entries: Iterable[tuple[str, str, int]], total: int, right: int, batch: int = 1
) -> tuple[tuple[Cause, ...], int]:
    """Causes, largest first, and what has none; together they are `total` - `right`. All in FLOPs."""
    by_path: dict[str, dict[str, int]] = {}
    for path, operator, flops in entries:
        own = by_path.setdefault(path, {})
        own[operator] = own.get(operator, 0) + flops
    found: list[Found] = []
    for path in {**places, **by_path}:
        found.extend(_at(places.get(path, Place(path)), by_path.get(path, {})))
        found.extend(_around(path, places, by_path.get(path, {})))
    found.extend(_beside(by_path, total, batch))
    return grouped(found), total - right - sum(each.flops for each in found)


def grouped(found: Iterable[Found]) -> tuple[Cause, ...]:
    """Findings of one kind together."""
    groups: dict[str, list[Found]] = {}
    for each in found:
        if each.flops:
            groups.setdefault(each.words, []).append(each)
    causes = [
        Cause(cause=words, flops=sum(each.flops for each in group), places=len({each.path for each in group}),
              example=group[0].path)
        for words, group in groups.items()
    ]  # fmt: skip
    return tuple(sorted(causes, key=lambda cause: -abs(cause.flops)))


def _around(path: str, places: Mapping[str, Place], tool: Mapping[str, int]) -> Iterator[Found]:
    """Products charged to a module that has none: those of a module inside it, once more."""
    if path not in places or places[path].products:
        return
    inner = [place for name, place in places.items() if place.products and name.startswith(f"{path}." if path else "")]
    amount = sum(flops for operator, flops in tool.items() if plain_name(operator) in _FAMILIES)
    for place in inner:
        if amount == place.flops:
            names = " and ".join(each.operator for each in place.products.values())
            yield Found(f"{names} counted once more, by the module around it", amount, path)
            return


def _beside(by_path: Mapping[str, Mapping[str, int]], total: int, batch: int) -> Iterator[Found]:
    """Where a total is not the sum of its books: modules (named by their class) divided by the batch, or everything."""
    rows = [(operator, flops) for own in by_path.values() for operator, flops in own.items()]
    missing = total - sum(flops for _, flops in rows)
    modules = sum(flops for operator, flops in rows if operator[:1].isupper())
    for words, part in (("modules divided by the batch, functions not", modules),
                        ("divided by the batch", sum(flops for _, flops in rows))):  # fmt: skip
        if missing and batch > 1 and part % batch == 0 and part // batch - part == missing:
            yield Found(words, missing, "")
            return


# --- one place ----------------------------------------------------------------------------------------------------


def _at(place: Place, tool: Mapping[str, int]) -> Iterator[Found]:
    """Causes at one module."""
    families = {operator: _family(operator, place) for operator in tool}
    multiplied = {operator: flops for operator, flops in tool.items() if families[operator]}
    if sum(multiplied.values()) != place.flops:
        yield from _products(place, multiplied, families)
    for operator, flops in tool.items():
        if operator.endswith(SINGLE):
            yield Found(f"{operator} charged: lengths of the traced graph among them", flops, place.path)
        elif not families[operator]:
            yield from _elementwise(place, operator, flops)


def _family(operator: str, place: Place) -> str:
    """Which product an entry is of; empty for elementwise work. A class of the model's own is what it multiplies."""
    name = plain_name(operator)
    is_class, family = operator[:1].isupper(), _FAMILIES.get(name, "")
    if is_class and place.products and family not in map(_kind, place.products.values()):
        return "" if name in place.sizes and not family else "whole"
    return family


_UNROLLED = (("attention", "matmul"), ("recurrent", "linear"))  # seen as the products they are made of, one by one


def _products(place: Place, tool: Mapping[str, int], families: Mapping[str, str]) -> Iterator[Found]:
    """Products that are missing, or counted in another way."""
    amounts: dict[str, int] = {}
    entries: dict[str, list[str]] = {}
    for operator, flops in tool.items():
        family = families[operator]
        amounts[family] = amounts.get(family, 0) + flops
        entries.setdefault(family, []).append(operator)
    if "whole" in amounts:
        names = [each.operator for each in place.products.values()]
        yield from _counted(
            place, list(place.products.values()), sum(amounts.values()), " and ".join(names), list(tool)
        )
        return
    groups: dict[str, list[Product]] = {}
    for product in place.products.values():
        groups.setdefault(_kind(product), []).append(product)
    for whole, part in _UNROLLED:
        if whole in groups and part in amounts and part not in groups:
            amounts[whole] = amounts.get(whole, 0) + amounts.pop(part)
            entries.setdefault(whole, []).extend(entries.pop(part))
    for family in {**groups, **amounts}:
        products, amount = groups.get(family, []), amounts.get(family, 0)
        if not amount:
            for product in products:
                yield Found(f"{product.operator} not counted", -product.flops, place.path)
        elif not products:
            yield from _again(place, family, amount)
        else:
            yield from _counted(place, products, amount, products[0].operator, entries[family])


def _kind(product: Product) -> str:
    return _FAMILIES.get(plain_name(product.operator), product.kind)


def _again(place: Place, family: str, amount: int) -> Iterator[Found]:
    """Products charged where there are none of that kind: the same as another product there."""
    for product in place.products.values():
        if amount == product.flops:
            yield Found(f"{product.operator} counted once more, as {family}", amount, place.path)
            return


def _counted(place: Place, products: list[Product], amount: int, operator: str, entries: list[str]) -> Iterator[Found]:
    """Products counted in another way: how, and bias additions beside it. `entries`: what the tool calls them."""
    right = sum(each.flops for each in products)
    for words, base, bias in _ways(place, products, " and as ".join(entries)):
        rest = amount - base
        for size, added in (
            (bias, "bias additions"),
            (sum(each.bias_itself for each in products), "biases themselves"),
        ):
            if rest == 0 or (size and rest % size == 0 and 0 < rest // size <= MOST_BIASES):
                yield Found(f"{operator} {words}", base - right, place.path)
                yield Found(f"{added} charged, {_each(rest, size)} an element", rest, place.path)
                return
    sizes = sum(each.written for each in place.sizes.values())
    for times in (1, 2):
        rest = amount - times * right
        for unit, what in ((place.hidden, "hidden unit and position"), (sizes, "element written there")):
            if unit and rest % unit == 0 and abs(rest // unit) <= 2 * MOST_PER_ELEMENT:
                yield Found(f"{operator} counted twice, as {' and as '.join(entries)}", (times - 1) * right, place.path)
                yield Found(f"{operator}: work beside the products, {_each(rest, unit)} a {what}", rest, place.path)
                return


def _ways(place: Place, products: list[Product], entries: str) -> Iterator[tuple[str, int, int]]:
    """Ways of counting products: in words, FLOPs, and bias elements beside it."""

    def total(name: str) -> int:
        return sum(int(getattr(each, name)) for each in products)

    flops, bias = total("flops"), total("bias")
    yield "counted", flops, bias
    yield f"counted twice, as {entries}", 2 * flops, bias
    yield "with a multiply-add as one FLOP", flops // 2, bias
    yield "with positions dropped", total("first_axis"), total("first_axis_bias")
    yield "taken for a convolution", 2 * place.as_conv, 0
    yield "with kernels used per output, not per input", total("by_output"), bias
    yield "with leading axes of one factor dropped", total("broadcast"), bias
    yield "as parameters × first axes of the result", 2 * (place.weighted + place.weighted_twice), 0


def _each(amount: int, unit: int) -> str:
    """How much of an amount falls to one."""
    return f"{amount // unit if unit else 0} FLOP{'' if unit and amount == unit else 's'}"


# --- elementwise work ---------------------------------------------------------------------------------------------


def _elementwise(place: Place, operator: str, amount: int) -> Iterator[Found]:
    """Work that multiplies no matrices, charged by the element; a lookup charged as a product."""
    name = plain_name(operator)
    if name == "embedding" and amount in (place.tables, place.tables_first_axis):
        whole = amount == place.tables
        words = "lookup charged as a product" if whole else "lookup charged as a product, positions dropped"
        yield Found(words, amount, place.path)
        return
    for sizes in _candidates(place, name):
        words = _per_element(amount, sizes)
        if words:
            yield Found(f"{name} charged {words}", amount, place.path)
            return
    weighted = place.weighted + place.weighted_twice
    if weighted and amount == 2 * weighted:
        yield Found(f"{name} charged as parameters × first axes of the result", amount, place.path)


def _candidates(place: Place, name: str) -> list[Sizes]:
    """Sizes of the operator of that name; else, for a class of the model's own, of each thing it does."""
    if name in place.sizes:
        return [place.sizes[name]]
    similar = [sizes for key, sizes in place.sizes.items() if key in name or name in key]
    return similar or list(place.sizes.values())


def _per_element(amount: int, sizes: Sizes) -> str:
    for size, what in ((sizes.read, "an element"), (sizes.written, "an element written")):
        if size and amount % size == 0 and amount // size <= MOST_PER_ELEMENT:
            return f"{_each(amount, size)} {what}"
    for unit in (1, 2):
        if amount == unit * (sizes.read + sizes.written):
            return f"{_each(unit, 1)} an element read and one written"
        if amount == unit * (3 * sizes.read - sizes.rows):
            return f"{_each(3 * unit, 1)} an element less one a row"
    return ""
