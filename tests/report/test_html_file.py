"""One file of HTML: the whole result inside, nothing outside, the policy that holds it to that."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_html import Parsed
from made_results import REQUESTS, made

from suanli.errors import InputError, MissingExtraError
from suanli.report import html_file as module
from suanli.report.about import about, typed
from suanli.report.files import as_markdown, check_suffix, write_result
from suanli.report.html_file import asset, html_file
from suanli.report.html_notes import Notes, note_html
from suanli.report.whys import WhyNote
from suanli.report.words import spoken_in
from suanli.version import VERSION

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&<!--"
LONG = 100_000  # characters: the bundle that draws


def parsed(name: str, lang: str = "en") -> Parsed:
    return Parsed(html_file(made(name), lang))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", REQUESTS)
def test_the_json_inside_is_the_result(name: str, lang: str) -> None:
    found = parsed(name, lang)
    (inside,) = [each for each in found.all("script") if each.attributes.get("id") == "suanli-result"]
    assert json.loads(inside.text) == json.loads(json.dumps(made(name).to_dict()))


def test_hostile_text_of_a_result_stays_text() -> None:
    result = replace(made("mfu"), notes=(HOSTILE,), inputs={"model": HOSTILE})
    found = Parsed(html_file(result))
    (inside,) = [each for each in found.all("script") if each.attributes.get("id") == "suanli-result"]
    assert json.loads(inside.text)["notes"] == [HOSTILE]
    assert not found.all("img")
    assert [each.text for each in found.all("td")].count(HOSTILE) == 1


@pytest.mark.parametrize("name", ["count_train", "layout", "gpu", "models"])
def test_nothing_is_fetched(name: str) -> None:
    for each in parsed(name).elements:
        assert not {"src", "href", "srcset", "action", "poster", "data"} & set(each.attributes), each
        assert not [key for key in each.attributes if key == "style" or key.startswith("on")], each
    styles = asset("report.css") + asset("file.css")
    assert "url(" not in styles and "@import" not in styles and "http" not in styles


def test_the_policy_lets_run_what_is_inside_and_nothing_else() -> None:
    found = parsed("layout")
    (policy,) = [each.attributes["content"] for each in found.all("meta")
                 if each.attributes.get("http-equiv") == "Content-Security-Policy"]  # fmt: skip
    rules = dict(part.split(" ", 1) for part in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data: blob:"
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    run = [each.text for each in found.all("script") if "type" not in each.attributes]
    assert rules["script-src"].split() == [sha256(text) for text in run]
    assert rules["style-src"].split() == [sha256(each.text) for each in found.all("style")]


def sha256(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_what_draws_comes_only_with_pictures() -> None:
    assert len(html_file(made("layout"))) > LONG > len(html_file(made("model")))


def test_the_head_says_what_it_is() -> None:
    found = parsed("mfu", "zh")
    assert found.all("html")[0].attributes["lang"] == "zh-Hans"
    assert found.all("title")[0].text == found.all("h1")[0].text
    assert len(found.all("h1")) == 1
    names = {each.attributes.get("name"): each.attributes.get("content") for each in found.all("meta")}
    assert names["generator"] == f"Suanli {VERSION}"
    assert names["viewport"] == "width=device-width, initial-scale=1"


# --- what a report says of itself ---------------------------------------------------------------------------------


def test_version_convention_and_the_whole_request_are_told() -> None:
    rows = {label: (value, remark) for label, value, remark in about(made("count_train")).rows}
    assert rows["version"] == (f"Suanli {VERSION}", "")
    assert rows["convention"] == ("causal", "")
    assert rows["--seq"] == ("4Ki", "as given")
    assert rows["--optimizer"] == ("adamw", "assumed")


@pytest.mark.parametrize(("value", "text"), [
    (16384, "16,384"), ("4Ki", "4Ki"), ({"tp": 8, "pp": 4}, "tp=8, pp=4"), (["1", "2"], "1, 2"), (0.4, "0.4"),
    (True, "True"),
])  # fmt: skip
def test_values_as_one_would_type_them(value: object, text: str) -> None:
    assert typed(value) == text


@pytest.mark.parametrize("name", ["count_train", "layout_why", "scale", "goodput"])
def test_markdown_says_the_same(name: str) -> None:
    text = as_markdown(made(name))
    assert "## This report" in text and f"| version | Suanli {VERSION} |" in text
    assert "## Sources" in text or not made(name).sources
    for label, value, _ in about(made(name)).rows:
        assert f"| {label} | {value} |" in text


def test_markdown_in_another_language() -> None:
    with spoken_in("zh"):
        text = as_markdown(made("mfu"))
    assert "## 利用率" in text and "## 本报告" in text


# --- notes --------------------------------------------------------------------------------------------------------

NOTE = WhyNote(title="MFU", doc="a < b", formula="X/P", legend=(("X", "achieved"),), values=(("X", "41 <TFLOP/s>"),),
               source="arXiv:2204.02311")  # fmt: skip


def test_notes_lie_in_the_file_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suanli.report.html_notes.reason_of", lambda *key: NOTE if key[1] == "Work" else None)
    found = Parsed(html_file(made("train")))
    buttons = found.all("button", "why")
    keys = ["|".join(each.attributes[f"data-{part}"] for part in ("block", "label", "column")) for each in buttons]
    templates = {each.attributes["data-why"]: each for each in found.all("template")}
    assert set(templates) == set(keys) != set()
    first, *others = found.all("template")
    assert first.attributes["id"] == "why-1" and "a < b" in first.text
    assert {each.attributes["data-same"] for each in others} == {"why-1"}


def test_a_note_has_formula_numbers_and_source() -> None:
    found = Parsed(note_html(NOTE, "en"))
    assert [each.text for each in found.all("h3")] == ["MFU"]
    assert found.all("p", "formula")[0].text == "X/P"
    assert [each.text for each in found.all("dd")] == ["41 <TFLOP/s>", "achieved"]
    assert found.all("p", "source")[0].text == "source: arXiv:2204.02311"
    assert found.all("button", "close")[0].attributes["aria-label"] == "close"


def test_a_note_is_titled_in_the_language() -> None:
    assert Parsed(note_html(replace(NOTE, title="Time: goodput"), "zh")).all("h3")[0].text == "时间：有效训练时间占比"
    assert Parsed(note_html(replace(NOTE, title="Time: goodput"), "en")).all("h3")[0].text == "Time: goodput"


@pytest.mark.parametrize(
    ("title", "chinese"),
    [
        # a label may hold a colon of its own
        ("Idle: fewer launches: CUDA graphs, torch.compile, fused optimizers: at most",
         "空闲：减少启动：CUDA 计算图、torch.compile、融合的优化器：最多"),
        ("Idle: a thing: never named: at most", "空闲：a thing：never named：最多"),
    ],
)  # fmt: skip
def test_a_title_is_translated_part_by_part(title: str, chinese: str) -> None:
    assert Parsed(note_html(replace(NOTE, title=title), "zh")).all("h3")[0].text == chinese
    assert Parsed(note_html(replace(NOTE, title=title), "en")).all("h3")[0].text == title


def test_a_formula_in_words_is_in_the_language() -> None:
    note = replace(NOTE, formula="union of the spans of that kind")
    assert Parsed(note_html(note, "zh")).all("p", "formula")[0].text == "该类区间的并集"
    assert Parsed(note_html(NOTE, "zh")).all("p", "formula")[0].text == "X/P"


def test_numbers_nothing_is_known_of_are_no_buttons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suanli.report.html_notes.reason_of", lambda *_: None)
    notes = Notes(made("mfu"))
    assert not notes.asked("a", "b", "") and notes.html("en") == ""


# --- writing ------------------------------------------------------------------------------------------------------


def test_a_file_is_written(tmp_path: Path) -> None:
    write_result(made("mfu"), tmp_path / "r.HTML")
    assert (tmp_path / "r.HTML").read_text(encoding="utf-8").startswith('<!doctype html>\n<html lang="en">')
    assert [each.name for each in tmp_path.iterdir()] == ["r.HTML"]


def test_without_what_draws_it_is_told_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError) as caught:
        check_suffix(Path("r.html"), "layout")
    assert str(caught.value) == (
        "vl-convert is needed to draw pictures and is not installed in --output. pip install 'suanli[report]'"
    )


def test_the_language_of_the_command_is_that_of_the_file() -> None:
    with spoken_in("zh"):
        assert '<html lang="zh-Hans">' in html_file(made("gpu"))
    assert '<html lang="en">' in html_file(made("gpu"))
    with pytest.raises(InputError, match="unknown language 'xx' in --lang"):
        html_file(made("gpu"), "xx")


def test_scripts_and_styles_can_stand_in_html() -> None:
    for text in (asset("report.css"), asset("file.css"), asset("report.js"), module.vega_bundle()):
        assert not re.search(r"</(script|style)|<!--", text, re.IGNORECASE)
