"""The words of the lessons: both languages say everything, with the same numbers, and no number is written by hand."""

from __future__ import annotations

import re
from typing import Any

import pytest

from suanli.catalog.lessons import LANGUAGES, SHARED, TOPICS, lesson_file, own_text, paragraphs, part
from suanli.learn.book import numbers_of

PARTS = ("title", "text", "columns")
NAMES = (*TOPICS, SHARED)
SECTIONS = [(name, section) for name in NAMES for section in lesson_file(name)]

# Numbers a text may say by itself: those of formulas, rules, names and references; never a result.
WRITTEN = {
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "12", "16", "24", "72", "90", "100", "1000", "3600",
    "2402.15627", "256", "405",
}  # fmt: skip
# Words with digits in them that are names, not numbers.
NAMED = re.compile(
    r"[A-Za-z_δΣ½·(/]*[A-Za-z][A-Za-z_]*-?\d+(?:\.\d+)?(?:[A-Za-z]\w*)?|[A-Za-z]+\d+|\d+(?:[A-Z]\w*|h²?|Lh²?|BLsh²|Bsh²|Bs²h|BshV)"
)


def texts(section: dict[str, Any], lang: str) -> list[str]:
    """Everything a section says in a language."""
    columns = list(part(section, "columns", lang))
    return [part(section, "title", lang), part(section, "text", lang), *columns]


@pytest.mark.parametrize(("name", "section"), SECTIONS)
def test_every_part_is_in_both_languages(name: str, section: str) -> None:
    found = lesson_file(name)[section]
    assert found and set(found) <= set(PARTS)
    for each in found.values():
        assert set(each) == set(LANGUAGES)
        assert all(said and (not isinstance(said, str) or said.strip()) for said in each.values())
    if "columns" in found:
        assert len(found["columns"]["en"]) == len(found["columns"]["zh"])


@pytest.mark.parametrize(("name", "section"), SECTIONS)
def test_both_languages_ask_for_the_same_numbers(name: str, section: str) -> None:
    found = lesson_file(name)[section]
    en, zh = ([numbers_of(text) for text in texts(found, lang)[:2]] for lang in LANGUAGES)
    assert en == zh
    assert not any(numbers_of(text) for lang in LANGUAGES for text in texts(found, lang)[2:])
    assert not any(numbers_of(part(found, "title", lang)) for lang in LANGUAGES)


@pytest.mark.parametrize(("name", "section"), SECTIONS)
def test_chinese_is_chinese_and_english_is_not(name: str, section: str) -> None:
    found = lesson_file(name)[section]
    assert not re.search(r"[\u4e00-\u9fff]", " ".join(texts(found, "en")))
    assert "—" not in " ".join(texts(found, "en"))


def written_numbers(text: str) -> set[str]:
    """Numbers of a text that are no placeholders and no part of a name or formula."""
    bare = NAMED.sub(" ", re.sub(r"\{[^}]*\}", " ", text))
    return set(re.findall(r"\d+(?:[.,]\d+)*", bare))


@pytest.mark.parametrize(("name", "section"), SECTIONS)
def test_no_result_is_written_by_hand(name: str, section: str) -> None:
    found = lesson_file(name)[section]
    for lang in LANGUAGES:
        said = " ".join(texts(found, lang))
        assert written_numbers(said) - WRITTEN == set()


@pytest.mark.parametrize("text", ["the loss is 0.36982305.", "it takes 41.62 %", "损失为 0.3628"])
def test_the_search_for_written_results_can_fail(text: str) -> None:
    assert written_numbers(text) - WRITTEN


def test_each_lesson_has_a_title_and_nothing_else_in_that_section() -> None:
    assert all(set(lesson_file(topic)["lesson"]) == {"title"} for topic in TOPICS)
    assert len(set(TOPICS)) == len(TOPICS) >= 11


def test_no_lesson_hides_a_shared_word() -> None:
    shared = set(lesson_file(SHARED))
    assert all(not shared & set(lesson_file(topic)) for topic in TOPICS)


# lines as an editor breaks them → the paragraph
JOINED = [
    ("one\ntwo", ("one two",)),
    ("  one  \n two ", ("one two",)),
    ("一\n二", ("一二",)),
    ("一，\ntwo", ("一，two",)),  # beside Chinese punctuation no blank
    ("一\ntwo", ("一 two",)),
    ("two\n一", ("two 一",)),
    ("a\n\nb\nc", ("a", "b c")),
    ("", ()),
]


@pytest.mark.parametrize(("text", "wanted"), JOINED)
def test_paragraphs(text: str, wanted: tuple[str, ...]) -> None:
    assert paragraphs(text) == wanted


def test_the_training_text_holds_both_languages() -> None:
    text = own_text("transformer")
    assert "Inside a transformer" in text and "走进 Transformer" in text
    assert own_text("transformer") == text
