"""A lesson as it is written: sections of its text in one language, with numbers filled in as they are computed."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from suanli.catalog.lessons import SHARED, lesson_file, paragraphs, part
from suanli.nouns.lesson import Block, Box, Boxes, Grid, Lesson, Plot, Series, Shades, Value, Words
from suanli.units import format_as


class _Filled(string.Formatter):
    """`{x:flops}` as the units print it; other formats are Python's."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return format_as(value, format_spec)


_FILLED = _Filled()


def filled(text: str, values: Mapping[str, Value]) -> str:
    """A text with its numbers. A name that has no value is a mistake of ours."""
    return _FILLED.vformat(text, (), values)


def numbers_of(text: str) -> frozenset[tuple[str, str]]:
    """Names and formats of the numbers a text asks for."""
    return frozenset((name, spec or "") for _, name, spec, _ in string.Formatter().parse(text) if name is not None)


class Book:
    """Blocks of one lesson, in order. Every `section` is one of the lesson's text file."""

    def __init__(self, topic: str, lang: str) -> None:
        self.topic, self.lang = topic, lang
        self.words = lesson_file(SHARED) | lesson_file(topic)
        self.blocks: list[Block] = []
        self.values: dict[str, Value] = {}

    def word(self, section: str, **values: Value) -> str:
        """The text of a section as one line: a name in a table or a picture."""
        return filled(part(self.words[section], "text", self.lang), values)

    def title(self, section: str) -> str:
        """The heading of a section, empty where it has none."""
        return str(part(self.words[section], "title", self.lang))

    def say(self, section: str, **values: Value) -> None:
        """Paragraphs with their numbers."""
        text = part(self.words[section], "text", self.lang)
        used = {name for name, _ in numbers_of(text)}
        assert used == set(values), f"{self.topic}.{section}: {used ^ set(values)}"
        said = tuple(filled(each, values) for each in paragraphs(text))
        self.blocks.append(Words(title=self.title(section), paragraphs=said, values=values))

    def table(self, section: str, formats: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
        """Rows under the section's columns; its text, where it has one, is said by `say`."""
        columns = tuple(part(self.words[section], "columns", self.lang))
        cells = tuple(tuple(row) for row in rows)
        assert {len(columns)} == {len(formats)} | {len(row) for row in cells}, f"{self.topic}.{section}"
        self.blocks.append(Grid(title=self._own(section), columns=columns, formats=tuple(formats), rows=cells))

    def plot(self, section: str, formats: tuple[str, str], series: Iterable[Series], *, log_y: bool = True) -> None:
        """Curves; the section's columns name x and y."""
        x_name, y_name = part(self.words[section], "columns", self.lang)
        self.blocks.append(
            Plot(title=self._own(section), series=tuple(series), x_name=x_name, y_name=y_name, x_format=formats[0],
                 y_format=formats[1], log_y=log_y)
        )  # fmt: skip

    def shades(self, section: str, rows: Sequence[str], columns: Sequence[str], values: Any) -> None:
        """A matrix of values from 0 to 1 as a picture."""
        cells = tuple(tuple(float(each) for each in row) for row in values)
        self.blocks.append(Shades(title=self._own(section), rows=tuple(rows), columns=tuple(columns), values=cells))

    def boxes(self, section: str, boxes: Iterable[tuple[str, Sequence[str]]], per_row: int, between: str = " ") -> None:
        """A drawing of boxes, row by row."""
        drawn = tuple(Box(name=name, lines=tuple(lines)) for name, lines in boxes)
        self.blocks.append(Boxes(title=self._own(section), boxes=drawn, per_row=per_row, between=between))

    def keep(self, **values: Value) -> None:
        """Main results of the lesson, for whoever reads it as data."""
        self.values |= values

    def _own(self, section: str) -> str:
        """The section's heading, unless its text was said under it just before."""
        title = self.title(section)
        said = [block.title for block in self.blocks if isinstance(block, Words) and block.title]
        return "" if said and said[-1] == title else title

    def lesson(self) -> Lesson:
        """The lesson as it stands."""
        return Lesson(
            topic=self.topic, lang=self.lang, title=self.title("lesson"), blocks=tuple(self.blocks), values=self.values
        )
