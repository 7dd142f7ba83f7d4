"""Reports in a real browser, opened from a file with the network off: drawn, sorted, unfolded, asked, printed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_html import Parsed
from made_results import made

from suanli.report.html_file import html_file
from suanli.report.whys import WhyNote

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.xdist_group("browser"),
]

PICTURED = ["mfu", "train", "layout_why", "scale", "explain"]
NOTE = WhyNote(title="What it is", doc="d", formula="X / P", values=(("X", "1"),), source="s")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens the report of a request; at the end no request was made and nothing was said on the console."""
    told: list[str] = []
    contexts = []

    def open_(name: str, lang: str = "en", **options: Any) -> Any:
        path = tmp_path / f"{name}_{lang}.html"
        path.write_text(html_file(made(name), lang), encoding="utf-8")
        context = browser.new_context(offline=True, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda problem: told.append(str(problem)))
        page.on("request", lambda request: told.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        page.wait_for_function(
            "[...document.querySelectorAll('figure.chart')].every(f => f.querySelector('svg, .failed'))"
        )
        return page

    yield open_
    for context in contexts:
        context.close()
    assert told == []


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PICTURED)
def test_every_picture_is_drawn_offline(opened: Any, name: str, lang: str) -> None:
    page = opened(name, lang)
    drawn = page.evaluate(
        "[...document.querySelectorAll('figure.chart')].map(f => f.querySelectorAll('svg path').length)"
    )
    assert len(drawn) == len(Parsed(html_file(made(name))).all("figure")) > 0
    assert min(drawn) > 3
    assert page.locator(".failed").count() == 0


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["count_train", "layout_why", "infer", "explain", "gpus", "train"])
def test_nothing_is_wider_than_the_window(opened: Any, name: str, width: int) -> None:
    page = opened(name, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def column(page: Any, block: str, place: int) -> list[str]:
    cells = f'section[data-block="{block}"] tbody tr > :nth-child({place})'
    return [text.strip() for text in page.locator(cells).all_inner_texts()]


def test_a_click_sorts_by_number_with_its_unit(opened: Any) -> None:
    page = opened("gpus")
    block = page.locator("section.table").first.get_attribute("data-block")
    head = page.locator("section.table th.n button.sort").first
    head.click()
    assert page.locator("th[aria-sort=descending]").count() == 1
    place = 1 + page.evaluate("[...document.querySelector('th[aria-sort]').parentNode.children]"
                              ".indexOf(document.querySelector('th[aria-sort]'))")  # fmt: skip
    down = [float(text.replace(",", "")) for text in column(page, block, place) if text not in ("", "n/a")]
    assert down == sorted(down, reverse=True) and len(set(down)) > 1
    head.press("Enter")
    up = [float(text.replace(",", "")) for text in column(page, block, place) if text not in ("", "n/a")]
    assert up == sorted(up) and page.locator("th[aria-sort=ascending]").count() == 1


def test_totals_stay_below_and_units_are_compared_as_sizes(opened: Any) -> None:
    page = opened("count_train")
    page.locator('section[data-block="By module"] button.sort', has_text="bytes moved").click()
    rows = column(page, "By module", 5)
    assert column(page, "By module", 1)[-1] == "total"
    sizes = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
    found = [float(text.split()[0].replace(",", "")) * sizes[text.split()[1]] for text in rows[:-1]]
    assert found == sorted(found, reverse=True) and len(found) > 3


def test_the_tree_unfolds(opened: Any) -> None:
    page = opened("count_train")
    hidden = page.locator(".tree .leaf:visible").count()
    page.get_by_role("button", name="unfold all").click()
    assert page.locator(".tree .leaf:visible").count() > hidden
    page.get_by_role("button", name="unfold all").click()
    assert page.locator(".tree .leaf:visible").count() < page.locator(".tree .leaf").count()


def test_a_number_tells_where_it_comes_from(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suanli.report.html_notes.reason_of", lambda *key: NOTE if key[1] == "Utilisation" else None)
    page = opened("mfu")
    button = page.locator("button.why").nth(1)
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog.note[open] h3").inner_text() == "What it is"
    page.keyboard.press("Escape")
    assert page.locator("dialog.note[open]").count() == 0
    button.click()
    page.locator("dialog.note .close").click()
    assert page.locator("dialog.note[open]").count() == 0


def test_dark_and_light(opened: Any) -> None:
    page = opened("train", color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    text = "getComputedStyle(document.querySelector('figure svg text')).fill"
    dark, dark_text = page.evaluate(ground), page.evaluate(text)
    page.get_by_role("button", name="dark / light").click()
    assert page.evaluate(ground) != dark == "rgb(20, 23, 26)"
    assert page.evaluate(text) != dark_text  # pictures follow without being drawn again


def test_the_json_can_be_saved(opened: Any, tmp_path: Path) -> None:
    page = opened("mfu")
    with page.expect_download() as saved:
        page.get_by_role("button", name="save the JSON").click()
    assert saved.value.suggested_filename == "suanli-mfu.json"
    path = tmp_path / "saved.json"
    saved.value.save_as(path)
    assert json.loads(path.read_text()) == json.loads(made("mfu").to_json())


def test_it_prints_light_and_without_buttons(opened: Any) -> None:
    page = opened("train", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper').trim()") == "#fff"
    assert page.locator(".tools").is_hidden()
    assert page.pdf()[:5] == b"%PDF-"


@pytest.mark.parametrize("name", ["count_train", "layout_why", "infer"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(opened: Any, name: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(name, color_scheme=scheme)
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
