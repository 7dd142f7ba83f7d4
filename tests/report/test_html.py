"""The HTML of a report: well-formed, everything escaped, no style or handler in it, parts where they belong."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from made_html import Parsed
from made_results import REQUESTS, made

from suanli.report import html_blocks
from suanli.report.chart import Chart, Curve
from suanli.report.document import Block, Document, Facts, Lines, Picture, Prose, Table
from suanli.report.figures import figures_of
from suanli.report.figures.figure import Figure
from suanli.report.html import _placed, fragment
from suanli.report.html_blocks import Setting, section, without_drawings
from suanli.report.pages import document_of
from suanli.report.translated import translated

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&<!--"
PLAIN = Setting("en", lambda *_: False)
ASKED = Setting("en", lambda *_: True)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_fragment_is_well_formed_and_bare(name: str, lang: str) -> None:
    parsed = Parsed(fragment(made(name), lang=lang))
    for each in parsed.elements:
        assert not [key for key in each.attributes if key == "style" or key.startswith("on")], each
        assert not [key for key in each.attributes if key in ("src", "href", "action", "srcset")], each
        assert each.name not in ("style", "link", "iframe", "img", "object", "base", "form"), each
        if each.name == "script":
            assert each.attributes["type"] == "application/json"
            json.loads(each.text)


@pytest.mark.parametrize("name", REQUESTS)
def test_every_block_and_every_figure_is_there(name: str) -> None:
    result = made(name)
    parsed = Parsed(fragment(result))
    titles = [block.title for block in document_of(result).blocks if not html_blocks.is_empty(block)]
    shown = [each.attributes["data-block"] for each in parsed.all("section")]
    assert [title for title in shown if title != "Modules"] == titles
    assert sorted(each.attributes["data-name"] for each in parsed.all("figure")) == sorted(
        each.name for each in figures_of(result)
    )
    assert parsed.all("p", "headline")[0].text == document_of(result).headline


def test_names_from_outside_are_text() -> None:
    result = made("count_config")
    books = replace(result.result, title=HOSTILE, rows=tuple(replace(r, name=HOSTILE) for r in result.result.rows))
    odd = replace(result, result=books, notes=(HOSTILE,), sources=(HOSTILE,), inputs={"model": HOSTILE})
    text = fragment(odd)
    assert "<script>alert" not in text and "<img" not in text and "<!--" not in text
    parsed = Parsed(text)
    assert [each.text for each in parsed.all("li")].count(HOSTILE) == 2
    assert {each.name for each in parsed.elements} <= {
        "div", "p", "section", "h2", "table", "caption", "tbody", "thead", "tr", "th", "td", "button", "ul", "li",
        "span", "details", "summary", "script", "figure", "figcaption",
    }  # fmt: skip


def test_what_a_hostile_figure_says_stays_in_its_script() -> None:
    figure = Figure(name=HOSTILE, title=HOSTILE, words=HOSTILE, spec={"data": {"values": [{"a": HOSTILE}]}})
    parsed = Parsed(html_blocks.for_script(figure, "en"))
    (script,) = parsed.all("script")
    assert json.loads(script.text)["data"]["values"][0]["a"] == HOSTILE
    assert parsed.all("div", "draw")[0].attributes["aria-label"] == HOSTILE


# --- blocks -------------------------------------------------------------------------------------------------------

CURVE = Curve("c", "●", "", ((1.0, 1.0), (2.0, 2.0)))
CHART = Chart("Curve", (CURVE,), ((1.0, "1"),), ((1.0, "1"),), "x", "y")
BLOCKS: list[tuple[Block, str]] = [
    (Facts("F", (("mass", "12 B", "heavy"),)), '<th scope="row">mass</th><td class="n">12 B</td>'),
    (Table("T", ("name", "size"), (("a", "1"),)), '<th scope="row">a</th><td class="n">1</td>'),
    (Lines("L", ("a < b",)), "<ul><li>a &lt; b</li></ul>"),
    (Lines("L", ("--tp 8", "--pp 2")), '<pre class="code">--tp 8\n--pp 2</pre>'),
    (Prose("P", ("one", "two")), "<p>one</p><p>two</p>"),
    (Picture("D", ("▒▒",)), '<pre class="drawn" role="img" aria-label="D">▒▒</pre>'),
    (CHART, '<pre class="drawn" role="img" aria-label="Curve">'),
]


@pytest.mark.parametrize(("block", "part"), BLOCKS, ids=lambda value: type(value).__name__)
def test_a_block(block: Block, part: str) -> None:
    text = section(block, PLAIN)
    kind = type(block).__name__.lower()
    assert text.startswith(f'<section class="block {kind}" data-block="{block.title}"><h2>{block.title}</h2>')
    assert part in text


def test_tables_have_captions_and_scopes_and_buttons_that_sort() -> None:
    table = Table("Rows", ("name", "", "size"), (("a", "x", "1"), ("total", "", "1")))
    parsed = Parsed(section(table, PLAIN))
    assert parsed.all("caption")[0].text == "Rows"
    assert [each.attributes["scope"] for each in parsed.all("th")] == ["col", "col", "row", "row"]
    assert [each.text for each in parsed.all("button", "sort")] == ["name", "size"]
    assert [each.classes for each in parsed.all("tr")] == [[], [], ["total"]]
    region = parsed.all("div", "scroll")[0].attributes
    assert (region["role"], region["tabindex"], region["aria-label"]) == ("region", "0", "Rows")


def test_numbers_are_buttons_that_name_themselves_in_english() -> None:
    facts = Facts("Time", (("MFU", "41 %", "41 of 100"), ("goodput", "n/a", ""), ("", "3", "")))
    table = Table("Sizes", ("GPUs", "speed-up"), (("8", "7.9"),))
    for lang in ("en", "zh"):
        at = replace(ASKED, lang=lang)
        parsed = Parsed(section(facts, at) + section(table, at))
        keys = [tuple(each.attributes[f"data-{part}"] for part in ("block", "label", "column"))
                for each in parsed.all("button", "why")]  # fmt: skip
        assert keys == [("Time", "MFU", ""), ("Time", "goodput", ""), ("Sizes", "8", "speed-up")]


def test_only_what_can_be_asked_about_is_a_button() -> None:
    facts = Facts("Time", (("MFU", "41 %", ""), ("HFU", "42 %", "")))
    at = Setting("en", lambda _block, label, _column: label == "HFU")
    assert [each.text for each in Parsed(section(facts, at)).all("button")] == ["42 %"]


# --- figures ------------------------------------------------------------------------------------------------------


def figure(title: str) -> Figure:
    return Figure(name=title, title=title, words="w", spec={})


PLACES: list[tuple[str, int | None]] = [
    ("Curve", 1),  # the chart itself
    ("Where the time went", 0),  # a title that says more
    ("Why: the steps of both", 2),  # of the block with the same head
    ("Quite another", None),
]


@pytest.mark.parametrize(("title", "place"), PLACES)
def test_a_figure_stands_with_the_block_it_draws(title: str, place: int | None) -> None:
    blocks: list[Block] = [Table("Where the time went (all)", ("a",), ()), CHART, Facts("Why: a; b", ())]
    placed, loose = _placed(blocks, [figure(title)], [0, 2, 3])
    assert (list(placed), len(loose)) == (([], 1) if place is None else ([place], 0))


def test_a_figure_may_name_its_block() -> None:
    """By the place in the document, empty blocks counted: those of lessons have no titles of their own."""
    placed, loose = _placed([CHART, CHART], [replace(figure("Curve"), block=4)], [1, 4])
    assert (list(placed), loose) == ([1], [])


def test_a_picture_takes_the_place_of_the_chart_in_characters() -> None:
    parsed = Parsed(fragment(made("scale_time")))
    (drawn,) = [each for each in parsed.all("section") if each.attributes["data-block"].startswith("Speed-up over")]
    assert "chart" in drawn.classes and not parsed.all("pre")


def test_bars_in_characters_go_where_a_picture_is() -> None:
    table = Table("T", ("name", "n", "bar"), (("a", "1", "██"), ("b", "2", " █")), (False, True, False))
    assert without_drawings(table) == Table("T", ("name", "n"), (("a", "1"), ("b", "2")), (False, True))
    assert "█" not in fragment(made("explain"))


def test_pictures_without_a_block_come_after_the_first_figures() -> None:
    parsed = Parsed(fragment(made("layout")))
    order = [each.classes for each in parsed.elements if each.name == "section" or "figures" in each.classes]
    assert order[:2] == [["block", "table"], ["figures"]]


# --- languages and units ------------------------------------------------------------------------------------------


def test_what_has_no_translation_is_marked_as_english() -> None:
    result = replace(made("mfu"), notes=("A sentence nobody has put into Chinese.",))
    parsed = Parsed(fragment(result, lang="zh"))
    assert "A sentence nobody has put into Chinese." in [
        each.text for each in parsed.all("span") if each.attributes.get("lang") == "en"
    ]
    assert "统计口径" in parsed.source


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(Exception, match="unknown language 'fr' in --lang; expected one of 2 known"):
        fragment(made("mfu"), lang="fr")


SIZES: list[tuple[str | None, str]] = [(None, "74.51 GiB"), ("iec", "74.51 GiB"), ("si", "80.00 GB")]


@pytest.mark.parametrize(("units", "text"), [*SIZES, ("exact", "80,000,000,000 B")])
def test_units_of_sizes(units: str | None, text: str) -> None:
    assert f"of {text}" in fragment(made("mfu"), units=units)
    assert "of 74.51 GiB" in fragment(made("mfu"))  # as before


def test_a_result_of_every_kind_has_a_fragment() -> None:
    kinds = {made(name).kind for name in REQUESTS}
    from suanli.report.pages import PAGES

    assert kinds | {"summarise", "rerun", "diff"} == set(PAGES)


def test_names_of_options_stay_and_names_in_sentences_are_code() -> None:
    at = Setting("zh", lambda *_: False)
    table = Table("T", ("convention", "kind"), (("full", "full"),))
    assert '<th scope="row">full</th><td class="n">完全</td>' in section(table, at)
    assert translated(Document("", (table,)), "zh").blocks[0] == Table("T", ("统计口径", "类型"), (("full", "完全"),))
    assert "<p>See <code>suanli count</code>, a &lt;b&gt;.</p>" in section(
        Prose("P", ("See `suanli count`, a <b>.",)), Setting("en", lambda *_: False)
    )
