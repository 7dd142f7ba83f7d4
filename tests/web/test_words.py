"""Every word of the page has its 中文, and no translation is left over."""

from __future__ import annotations

import re
import tomllib
from importlib import resources

import pytest

from suanli.web.forms import GROUPS, entries
from suanli.web.pages import FILES
from suanli.web.words import said

HAN = re.compile(r"[\u4e00-\u9fff]")
SAME = {"GPU", "MFU", "HFU", "TFLOP/s", "PUE", "GPUs"}  # as they are in both languages


def of_forms() -> set[str]:
    """Titles, leads, labels, alternatives and help."""
    found = set(GROUPS)
    for each in entries().values():
        found |= {each.title, each.lead, each.start}
        for field in each.fields:
            found |= {field.label, field.help}
            found |= {field.either[1]} if field.either else set()
    return found - {""}


def of_templates() -> set[str]:
    """What the templates give to `_`."""
    folder = resources.files("suanli.web") / "templates"
    texts = [each.read_text(encoding="utf-8") for each in folder.iterdir()]
    return {word for text in texts for word in re.findall(r"_\('([^']+)'\)", text)}


def of_pages() -> set[str]:
    """What pages.py hands to the templates."""
    return {words for words, _ in FILES.values()} | {"In a terminal", "In Python", "From another program"}


ALL = of_forms() | of_templates() | of_pages()


@pytest.mark.parametrize("text", sorted(ALL))
def test_a_word_is_translated(text: str) -> None:
    chinese = said(text, "zh")
    assert HAN.search(chinese) or text in SAME
    assert said(text, "en") == text


def test_nothing_is_left_over() -> None:
    table = tomllib.loads((resources.files("suanli.web") / "words_zh.toml").read_text(encoding="utf-8"))
    known = {text for part in table.values() for text in part}
    assert known - ALL == set()


def test_what_has_no_translation_stays_english() -> None:
    assert said("no such words", "zh") == "no such words"


@pytest.mark.parametrize("text", sorted(of_forms()))
def test_options_and_numbers_survive_translation(text: str) -> None:
    """Examples like 15.6T and names like torch.profiler are the same in both."""
    for example in re.findall(r"\b\d+(?:\.\d+)?(?:T|B|M|GB|ms|min|d|h|kg/kWh|TFLOPS)\b", text):
        assert example in said(text, "zh")
