"""What `learn` answers: a lesson as blocks of text, tables and small pictures, each with the raw numbers behind it.

One renderer a kind of block shows every lesson: in the terminal, in a file, on a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Value = int | float | str | None


def _doc(doc: str, **more: Any) -> Any:
    return field(metadata={"unit": "", "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class Words:
    """Paragraphs with their numbers filled in."""

    kind: str = _doc("text", default="text")
    title: str = _doc("heading, empty where it goes on with the block before")
    paragraphs: tuple[str, ...] = _doc("sentences, in one language")
    values: Mapping[str, Value] = _doc("numbers that stand in them, unrounded", hash=False)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of raw values; each column says how a value of it is printed."""

    kind: str = _doc("table", default="table")
    title: str = _doc("heading")
    columns: tuple[str, ...] = _doc("headers")
    formats: tuple[str, ...] = _doc("`text`, a name of `suanli.units.FORMATS`, or a format of Python")
    rows: tuple[tuple[Value, ...], ...] = _doc("values; None: nothing stands there")


@dataclass(frozen=True, kw_only=True)
class Series:
    """Points of one curve."""

    name: str = _doc("what the curve is")
    points: tuple[tuple[float, float], ...] = _doc("x and y")
    line: bool = _doc("drawn as a line, not as marks", default=True)


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Curves over a logarithmic x."""

    kind: str = _doc("plot", default="plot")
    title: str = _doc("heading")
    series: tuple[Series, ...] = _doc("curves")
    x_name: str = _doc("what x is")
    y_name: str = _doc("what y is")
    x_format: str = _doc("how values of x are printed")
    y_format: str = _doc("how values of y are printed")
    log_y: bool = _doc("whether y is logarithmic too", default=True)


@dataclass(frozen=True, kw_only=True)
class Shades:
    """A matrix as a picture: the larger the value, the darker the cell."""

    kind: str = _doc("shades", default="shades")
    title: str = _doc("heading")
    rows: tuple[str, ...] = _doc("labels")
    columns: tuple[str, ...] = _doc("labels")
    values: tuple[tuple[float, ...], ...] = _doc("from 0 to 1, by row")


@dataclass(frozen=True, kw_only=True)
class Box:
    """One box of a drawing."""

    name: str = _doc("what it is")
    lines: tuple[str, ...] = _doc("what it holds")


@dataclass(frozen=True, kw_only=True)
class Boxes:
    """Boxes in rows: units of a network, GPUs of a cluster."""

    kind: str = _doc("boxes", default="boxes")
    title: str = _doc("heading")
    boxes: tuple[Box, ...] = _doc("row by row")
    per_row: int = _doc("boxes of a row")
    between: str = _doc("what stands between two boxes of a row", default=" ")


Block = Words | Grid | Plot | Shades | Boxes


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A worked lesson in one language."""

    topic: str = _doc("as `learn` takes it")
    lang: str = _doc("en or zh")
    title: str = _doc("what it teaches")
    blocks: tuple[Block, ...] = _doc("in order, each with its `kind`: text, table, plot, shades, boxes")
    values: Mapping[str, Value] = _doc("the lesson's main results by name, the same in every language", hash=False)


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A lesson that there is."""

    topic: str = _doc("as `learn` takes it")
    title: str = _doc("what it teaches")


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The lessons that there are."""

    lang: str = _doc("en or zh")
    topics: tuple[Topic, ...] = _doc("in the order to read them")
