"""Every page as it opens: with an answer, in both languages, at a desk and on a phone, without a fault axe knows."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from suanli.web.forms import entries

# What stands in the first line of the answer a page opens with.
OPENS = {
    "count": "Llama 3.1 8B",
    "mfu": "MFU 41.6 %",
    "explain": "40.1 % of peak useful",
    "train": "73.89 days",
    "layout": "llama-3.1-8b on 64 GPUs",
    "infer": "llama-3.1-70b on 8 × h100-sxm",
    "scale": "93.30 % of linear",
    "goodput": "goodput 85.26 %",
    "gpus": "accelerators",
    "models": "model presets",
    "verify": "all claims hold",
    "learn": "Back-propagation",
}
FEWER = {"gpus": "?filter=h100", "models": "?filter=llama", "verify": "?only=scaling"}  # rows: axe looks at every cell
AT_NIGHT = ("layout", "learn")  # axe looks at every page by day; the colours of the night are those of all pages
CHINESE = {
    "count": "计数", "mfu": "测量", "explain": "剖析", "train": "训练", "layout": "并行布局", "infer": "推理服务",
    "scale": "扩展", "goodput": "有效时间", "gpus": "GPU", "models": "模型", "verify": "验证", "learn": "课程",
}  # fmt: skip


def faults(window: Any) -> list[str]:
    """What axe-core calls serious or critical, with the element."""
    found = Axe().run(window).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:120]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]  # fmt: skip


@pytest.mark.parametrize("verb", OPENS)
def test_a_page_opens_with_an_answer(person: Any, verb: str) -> None:
    person.opens(f"/{verb}{FEWER.get(verb, '')}")
    assert OPENS[verb] in person.headline
    assert person.window.locator("#shown .report .block").count() >= 1
    assert person.is_narrow_enough()
    person.pictures(f"{verb}-desktop")
    assert faults(person.window) == []


@pytest.mark.parametrize("verb", OPENS)
def test_a_page_in_chinese_on_a_phone_at_night(on_phone: Any, verb: str) -> None:
    on_phone.opens(f"/{verb}?lang=zh{FEWER.get(verb, '').replace('?', '&')}")
    assert on_phone.window.locator("h1").inner_text() == CHINESE[verb]
    assert on_phone.window.locator("html").get_attribute("lang") == "zh-CN"
    assert on_phone.is_narrow_enough()
    on_phone.reads_the_answer()
    on_phone.pictures(f"{verb}-phone")
    if verb in AT_NIGHT:
        assert faults(on_phone.window) == []


def test_home_leads_to_every_page(person: Any) -> None:
    person.opens("/")
    cards = person.window.locator(".card")
    leads = [cards.nth(place).get_attribute("href") for place in range(cards.count())]
    assert leads == [f"/{verb}" for verb in entries()]
    person.pictures("home-desktop")
    assert faults(person.window) == []
    person.window.keyboard.press("/")
    person.window.keyboard.press("Enter")
    person.waits()
    assert person.window.locator("h1").inner_text() == "Count"


def test_home_on_a_phone(on_phone: Any) -> None:
    on_phone.opens("/?lang=zh")
    assert on_phone.window.locator("h1").inner_text() == "想知道什么？"
    assert on_phone.is_narrow_enough()
    on_phone.pictures("home-phone")
    on_phone.window.locator(".menu").click()
    on_phone.window.get_by_role("link", name="并行布局").first.click()
    on_phone.waits()
    assert on_phone.query == {"lang": "zh"}
