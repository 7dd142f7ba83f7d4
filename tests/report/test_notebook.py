"""A result in a notebook: asked as Jupyter asks, without Jupyter."""

from __future__ import annotations

import re
import sys

import pytest
from made_html import Parsed
from made_results import REQUESTS, made

from suanli.nouns import result as module
from suanli.nouns.result import Result, show_by
from suanli.report.words import spoken_in


@pytest.mark.parametrize("name", [name for name in REQUESTS if name.split("_")[0] == name])
def test_a_result_shows_itself(name: str) -> None:
    text = made(name)._repr_html_()
    assert text is not None
    found = Parsed(text)
    assert found.all("p", "headline")[0].text
    assert not found.all("script")[1:] and not found.all("button", "why")


def test_pictures_are_drawn() -> None:
    found = Parsed(made("layout")._repr_html_() or "")
    assert len(found.all("svg")) == len(found.all("figure")) >= 3


def test_styles_stay_inside() -> None:
    (style,) = [each.text for each in Parsed(made("mfu")._repr_html_() or "").all("style")]
    assert not re.search(r":root|\b(body|html)\b", style)


def test_without_what_draws_there_are_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    found = Parsed(made("scale")._repr_html_() or "")
    assert not found.all("svg") and len(found.all("p", "failed")) == len(found.all("figure")) > 0


def test_in_the_language_that_is_spoken() -> None:
    with spoken_in("zh"):
        assert "统计口径" in (made("mfu")._repr_html_() or "")


def test_a_layer_above_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_shown_by", [])
    result = Result(kind="mfu", inputs={}, result=None)
    assert result._repr_html_() is None
    show_by(lambda each: f"<p>{each.kind}</p>")
    assert result._repr_html_() == "<p>mfu</p>"


def test_other_ways_of_a_notebook_are_not_there() -> None:
    for name in ("_repr_png_", "_ipython_display_", "_repr_mimebundle_", "_repr_svg_"):
        assert getattr(made("mfu"), name, None) is None
