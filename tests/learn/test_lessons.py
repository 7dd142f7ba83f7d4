"""Every lesson in both languages: 80 columns without a broken line, the same numbers, quick, without a framework."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from suanli.catalog.lessons import LANGUAGES, SHARED, TOPICS, lesson_file
from suanli.learn import contents, teach
from suanli.learn.book import Book
from suanli.nouns.lesson import Boxes, Grid, Lesson, Plot, Shades, Words
from suanli.nouns.result import Result
from suanli.report.cells import cells
from suanli.report.document import Document, Picture, Prose, Table
from suanli.report.files import WRITERS
from suanli.report.lesson_pages import learn_document
from suanli.report.text import INDENT, document_text, least_width

WIDTH = 80
EVERY = [(topic, lang) for topic in TOPICS for lang in LANGUAGES]
# Of a fitted profile: its numbers change with the fit, so words are held by the golden file of a made-up plan.
PLANNED = "parallel"


@cache
def taught(topic: str, lang: str) -> Lesson:
    return teach(topic, lang)


def result(topic: str, lang: str) -> Result:
    return Result(kind="learn", inputs={}, result=taught(topic, lang))


def page(topic: str, lang: str) -> Document:
    return learn_document(result(topic, lang))


@pytest.mark.parametrize(("topic", "lang"), EVERY)
def test_no_line_is_wider_than_80_cells(topic: str, lang: str) -> None:
    text = document_text(page(topic, lang), WIDTH)
    assert [line for line in text.splitlines() if cells(line) > WIDTH] == []


@pytest.mark.parametrize(("topic", "lang"), EVERY)
def test_no_table_is_folded(topic: str, lang: str) -> None:
    """Every cell on one line: the widest of each column fit beside one another."""
    for block in page(topic, lang).blocks:
        if isinstance(block, Table) and block.rows:
            widest = [max(cells(text) for text in column) for column in zip(block.columns, *block.rows, strict=True)]
            assert sum(widest) + 2 * len(widest) <= WIDTH - INDENT + 2, block.columns
            assert least_width(block) <= WIDTH - INDENT


@pytest.mark.parametrize(("topic", "lang"), EVERY)
def test_every_figure_of_a_table_is_printed_whole(topic: str, lang: str) -> None:
    text = document_text(page(topic, lang), WIDTH)
    for block in page(topic, lang).blocks:
        if isinstance(block, Table):
            for row in block.rows:
                shown = [cell for cell in row if cell]
                assert any(all(cell in line for cell in shown) for line in text.splitlines()), row


@pytest.mark.parametrize(("topic", "lang"), EVERY)
def test_page_word_by_word(topic: str, lang: str, golden) -> None:
    if topic == PLANNED:
        pytest.skip("held by tests/learn/test_parallel.py with a made-up plan: fitted profiles change")
    golden(f"learn_{topic}_{lang}.txt", document_text(page(topic, lang), WIDTH))


@pytest.mark.parametrize("topic", TOPICS)
def test_both_languages_have_the_same_numbers(topic: str) -> None:
    en, zh = (taught(topic, lang) for lang in LANGUAGES)
    assert en.values == zh.values
    assert [type(block) for block in en.blocks] == [type(block) for block in zh.blocks]
    for one, other in zip(en.blocks, zh.blocks, strict=True):
        assert list(_numbers(one)) == list(_numbers(other))
    assert all(block.title for block in en.blocks[:1])


def _numbers(block: object) -> Iterator[object]:
    """Everything of a block that is a number, in order."""
    if isinstance(block, Words):
        yield from sorted((name, value) for name, value in block.values.items() if not isinstance(value, str))
    elif isinstance(block, Grid):
        yield from (value for row in block.rows for value in row if not isinstance(value, str))
    elif isinstance(block, Plot):
        yield from (point for series in block.series for point in series.points)
    elif isinstance(block, Shades):
        yield from block.values


@pytest.mark.parametrize(("topic", "lang"), EVERY)
def test_the_json_holds_every_block_with_its_kind(topic: str, lang: str) -> None:
    found = json.loads(result(topic, lang).to_json())["result"]
    assert (found["topic"], found["lang"]) == (topic, lang)
    kinds = {"text", "table", "plot", "shades", "boxes"}
    assert {block["kind"] for block in found["blocks"]} <= kinds
    assert len(found["blocks"]) == len(taught(topic, lang).blocks) > 4
    assert found["values"].keys() == taught(topic, lang).values.keys()


@pytest.mark.parametrize(("topic", "lang"), EVERY)
@pytest.mark.parametrize("suffix", WRITERS)
def test_every_writer_writes_every_lesson(topic: str, lang: str, suffix: str) -> None:
    text = WRITERS[suffix](result(topic, lang))
    assert text.endswith("\n")
    if suffix == ".md":
        assert text.startswith(f"# {taught(topic, lang).title}\n")
        assert all(paragraph in text for block in page(topic, lang).blocks if isinstance(block, Prose)
                   for paragraph in block.paragraphs)  # fmt: skip
        assert (
            text.count("```text")
            == text.count("\n```\n")
            == sum(isinstance(block, Picture) or type(block).__name__ == "Chart" for block in page(topic, lang).blocks)
        )


@pytest.mark.parametrize("topic", TOPICS)
def test_every_section_of_its_text_is_used(topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word nobody says is not translated for ever."""
    asked: set[str] = set()

    class Watched(dict):
        def __getitem__(self, name: str) -> object:
            asked.add(name)
            return super().__getitem__(name)

    made = Book.__init__

    def watched(self: Book, topic: str, lang: str) -> None:
        made(self, topic, lang)
        self.words = Watched(self.words)

    monkeypatch.setattr(Book, "__init__", watched)
    teach(topic, "en")
    unused = set(lesson_file(topic)) - asked - {"entry_other"}  # a plan may have entries that this one has not
    assert unused == set()
    assert asked <= set(lesson_file(topic)) | set(lesson_file(SHARED))


def test_the_list_of_lessons() -> None:
    for lang in LANGUAGES:
        found = contents(lang)
        assert [each.topic for each in found.topics] == list(TOPICS)
        assert all(each.title == taught(each.topic, lang).title for each in found.topics)
        text = document_text(learn_document(Result(kind="learn", inputs={}, result=found)), WIDTH)
        assert all(cells(line) <= WIDTH for line in text.splitlines())


def test_boxes_and_pictures_are_rectangles() -> None:
    for topic, lang in EVERY:
        for block in taught(topic, lang).blocks:
            if isinstance(block, Shades):
                assert len(block.values) == len(block.rows)
                assert {len(row) for row in block.values} == {len(block.columns)}
            if isinstance(block, Boxes):
                assert block.boxes and 1 <= block.per_row <= 8


HEAVY = ("torch", "transformers", "jax", "keras", "matplotlib", "altair")
CPU_S = 5.0  # cold: the interpreter, numpy, the reading of every table


@pytest.mark.parametrize("topic", TOPICS)
def test_a_lesson_is_quick_cold_and_loads_no_framework(topic: str) -> None:
    code = (
        f"import sys, suanli\nsuanli.learn({topic!r}).to_json()\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout == "[]\n"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < CPU_S


def test_the_package_is_a_function_to_users() -> None:
    import inspect

    import suanli

    assert inspect.isfunction(suanli.learn)
    assert inspect.ismodule(sys.modules["suanli.learn"])
