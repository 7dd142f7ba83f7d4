"""One server and one browser for the tests of a file; every console error and refused resource fails the test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PICTURES = ROOT / "tests" / "output" / "page"
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PATIENCE_MS, STEP_MS = 15_000, 50


@pytest.hookimpl(tryfirst=True)  # before the tests of a file are made a group
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process drives the browser: two would share one machine's cores for nothing."""
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group("browser"))


def chromium() -> str:
    """The system's Chromium; skips aloud where there is none."""
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        pytest.skip("no Chromium on this machine: `sh scripts/browser.sh` installs Debian's")
    return found


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of the page at a free port."""
    chromium()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "suanli", "web", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        found = re.search(r"http://\S+?(?=/?\s|/?$)", line)
        assert found, f"no address in {line!r}"
        yield found[0]
    finally:
        server.terminate()
        server.wait(20)
        assert server.stdout is not None
        server.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium, driven by Playwright."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield opened
        opened.close()


class Person:
    """Somebody at a window of the page. `wrong` collects what the browser complains of."""

    def __init__(self, window: Any, address: str) -> None:
        self.window, self.address = window, address
        self.wrong: list[str] = []
        self.elsewhere: list[str] = []
        window.set_default_timeout(PATIENCE_MS)
        window.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        window.on("pageerror", lambda problem: self.wrong.append(str(problem)))
        window.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def opens(self, path: str) -> None:
        """Go there and wait for the answer."""
        self.window.goto(self.address + path)
        self.waits()

    def waits(self) -> None:
        """Until the answer is there and its pictures are drawn."""
        if self.window.locator("#ask").count():
            self.window.wait_for_timeout(220)  # the pause after typing
            self.window.wait_for_selector("#answer[aria-busy=false]")
            self.until("[...document.querySelectorAll('#shown .draw')].every(e => e.querySelector('svg, .failed'))")

    def until(self, script: str) -> None:
        """Until a script says true; asked from outside, for the page's policy lets nothing evaluate text inside."""
        for _ in range(PATIENCE_MS // STEP_MS):
            if self.window.evaluate(script):
                return
            self.window.wait_for_timeout(STEP_MS)
        raise AssertionError(f"never true: {script}")

    def types(self, field: str, text: str) -> None:
        """Replace what a field holds, and leave it."""
        place = self.window.locator(f"#f-{field}")
        place.fill(text)
        place.blur()
        self.waits()

    @property
    def headline(self) -> str:
        """The first line of the answer."""
        return str(self.window.locator("#shown .headline").inner_text())

    @property
    def query(self) -> dict[str, str]:
        """The state that the address tells."""
        return dict(self.window.evaluate("[...new URLSearchParams(location.search)]"))

    def sees(self, text: str) -> None:
        """Wait until a text stands in the answer."""
        self.window.locator("#answer").get_by_text(text).first.wait_for()

    def reads_the_answer(self) -> None:
        """Go to it by the line at the foot of a phone's window, where it is not in sight yet."""
        peek = self.window.locator(".peek")
        if peek.is_visible():
            peek.click()

    def is_narrow_enough(self) -> bool:
        """Nothing makes the page itself scroll sideways."""
        return bool(self.window.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))

    def pictures(self, name: str) -> None:
        """Keep what is seen."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.window.screenshot(path=PICTURES / f"{name}.png")


def _person(browser: Any, address: str, **context: Any) -> Iterator[Person]:
    opened = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **context)
    somebody = Person(opened.new_page(), address)
    yield somebody
    opened.close()
    assert somebody.wrong == []
    assert somebody.elsewhere == []


@pytest.fixture
def person(browser: Any, address: str) -> Iterator[Person]:
    """Somebody at a desk; the test fails where the browser complained or asked another machine."""
    yield from _person(browser, address, viewport=DESKTOP)


@pytest.fixture
def on_phone(browser: Any, address: str) -> Iterator[Person]:
    """Somebody with a phone, at night."""
    yield from _person(browser, address, viewport=PHONE, color_scheme="dark", is_mobile=True, has_touch=True)
