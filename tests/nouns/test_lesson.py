"""Blocks of a lesson as JSON: each with its kind, values unrounded."""

from __future__ import annotations

from dataclasses import fields

import pytest

from suanli.nouns import lesson
from suanli.nouns.lesson import Box, Boxes, Contents, Grid, Lesson, Plot, Series, Shades, Topic, Words
from suanli.nouns.result import plain

BLOCKS = [
    (Words(title="t", paragraphs=("p",), values={"x": 1 / 3}), "text", {"values": {"x": 1 / 3}, "paragraphs": ["p"]}),
    (Grid(title="", columns=("c",), formats=("percent",), rows=((0.5,), (None,))), "table",
     {"rows": [[0.5], [None]], "formats": ["percent"]}),
    (Plot(title="", series=(Series(name="s", points=((1.0, 2.0),)),), x_name="x", y_name="y", x_format="g",
          y_format="g"), "plot", {"series": [{"name": "s", "points": [[1.0, 2.0]], "line": True}], "log_y": True}),
    (Shades(title="", rows=("r",), columns=("c",), values=((0.5,),)), "shades", {"values": [[0.5]]}),
    (Boxes(title="", boxes=(Box(name="b", lines=("l",)),), per_row=1), "boxes",
     {"boxes": [{"name": "b", "lines": ["l"]}], "per_row": 1, "between": " "}),
]  # fmt: skip


@pytest.mark.parametrize(("block", "kind", "parts"), BLOCKS)
def test_a_block_as_json(block: object, kind: str, parts: dict) -> None:
    found = plain(block)
    assert found["kind"] == kind and parts.items() <= found.items()


def test_every_kind_of_block_has_a_case() -> None:
    assert {type(block) for block, _, _ in BLOCKS} == set(lesson.Block.__args__)


@pytest.mark.parametrize("record", [Words, Grid, Series, Plot, Shades, Box, Boxes, Lesson, Topic, Contents])
def test_every_field_is_explained(record: type) -> None:
    assert all(each.metadata["doc"] for each in fields(record))


def test_the_list_of_lessons_as_json() -> None:
    found = Contents(lang="en", topics=(Topic(topic="cost", title="T"),))
    assert plain(found) == {"lang": "en", "topics": [{"topic": "cost", "title": "T"}]}
