"""Pictures of the page for README and docs, made from the real page: `python scripts/make_screenshots.py`.

A server is started, Debian's Chromium opens each address, and docs/images/page-*.png are written, each at most 150 kB.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
MOST_BYTES = 150_000
PATIENCE_MS = 60_000
DRAWN = "[...document.querySelectorAll('#shown .draw')].every(each => each.querySelector('svg, .failed'))"
DESK, PHONE = (1280, 860), (390, 844)


def _as_it_is(_: Any) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One picture: the address, the window, and what is done before it is taken."""

    name: str
    path: str
    size: tuple[int, int] = DESK
    scheme: str = "light"
    before: Callable[[Any], None] = _as_it_is


def _ask_why(window: Any) -> None:
    window.locator("#shown button.why").first.click()
    window.locator("dialog.note[open]").wait_for()


def _pick_two(window: Any) -> None:
    window.locator(".pickrow").nth(0).click()
    window.locator(".pickrow").nth(4).click()
    _settled(window)


def _to(selector: str) -> Callable[[Any], None]:
    return lambda window: window.locator(selector).first.evaluate("each => each.scrollIntoView({block: 'start'})")


def _search(window: Any) -> None:
    window.locator("#f-model").fill("qwen3")
    window.locator("[role=option]").first.wait_for()


PICTURES = (
    Picture(name="home", path="/"),
    Picture(name="count", path="/count"),
    Picture(name="search", path="/count", before=_search),
    Picture(name="measure", path="/mfu"),
    Picture(name="why", path="/mfu", before=_ask_why),
    Picture(name="train", path="/train"),
    Picture(name="layout", path="/layout"),
    Picture(name="two", path="/layout", before=_pick_two),
    Picture(name="explain", path="/explain"),
    Picture(name="serve", path="/infer"),
    Picture(name="scale", path="/scale"),
    Picture(name="learn", path="/learn"),
    Picture(name="dark", path="/layout", scheme="dark"),
    Picture(name="chinese", path="/train?lang=zh"),
    Picture(name="phone", path="/mfu", size=PHONE),
    Picture(name="phone-answer", path="/train?lang=zh", size=PHONE, scheme="dark", before=_to("#answer")),
)


@contextmanager
def server() -> Iterator[str]:
    """The address of a page served at a free port."""
    command = [sys.executable, "-m", "suanli", "web", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://[\w.:]+", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.wait(30)


def _settled(window: Any) -> None:
    """Until answer and pictures are there."""
    if window.locator("#ask").count():
        window.wait_for_timeout(300)
        window.wait_for_selector("#answer[aria-busy=false]")
    for _ in range(200):
        if window.evaluate(
            "[...document.querySelectorAll('#shown .draw')].every(e => e.querySelector('svg, .failed'))"
        ):
            return
        window.wait_for_timeout(50)


def taken(browser: Any, address: str, picture: Picture) -> bytes:
    """The picture as PNG of few colours."""
    width, height = picture.size
    opened = browser.new_context(viewport={"width": width, "height": height}, color_scheme=picture.scheme)
    window = opened.new_page()
    window.set_default_timeout(PATIENCE_MS)
    window.goto(address + picture.path)
    _settled(window)
    picture.before(window)
    window.wait_for_timeout(300)
    shot = window.screenshot()
    opened.close()
    return smaller(shot)


def smaller(png: bytes) -> bytes:
    """The same picture in as many colours as `MOST_BYTES` hold."""
    from PIL import Image  # noqa: PLC0415  of the test extra

    for colours in (256, 128, 64, 32):
        reduced = Image.open(io.BytesIO(png)).convert("RGB").quantize(colours, dither=Image.Dither.NONE)
        kept = io.BytesIO()
        reduced.save(kept, "PNG", optimize=True)
        if kept.tell() <= MOST_BYTES:
            break
    return kept.getvalue()


def main() -> None:
    """Make the pictures named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *(each.name for each in PICTURES)], help="some pictures only")
    wanted = parser.parse_args().names
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  of the test extra

    path = shutil.which("chromium") or shutil.which("google-chrome")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with server() as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for picture in PICTURES:
            if not wanted or picture.name in wanted:
                (IMAGES / f"page-{picture.name}.png").write_bytes(taken(browser, address, picture))
        browser.close()


if __name__ == "__main__":
    main()
