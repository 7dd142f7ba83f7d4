"""The documentation as a site: every page is in it, every link leads somewhere, nothing is fetched from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.xdist_group("site")  # built once


class Page(HTMLParser):
    """What a page links to, what it loads, and the names in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img", "iframe") and found.get("src"):
            self.loads.append(found["src"])
        if tag == "link" and "stylesheet" in (found.get("rel") or ""):
            self.loads.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", folder],
        capture_output=True, text=True, timeout=120, check=False, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}


def test_every_page_of_docs_is_in_the_site(site):
    made = {path.stem for path in site}
    assert {path.stem for path in ROOT.glob("docs/**/*.md")} | {"contributing", "changelog"} <= made


def test_every_link_leads_to_a_page_and_to_a_heading_in_it(site):
    broken = []
    for path, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            found = site.get(target / "index.html" if target.is_dir() else target)
            if found is None and not target.exists():
                broken.append(f"{path.name}: {link}")
            elif found is not None and parts.fragment and unquote(parts.fragment) not in found.names:
                broken.append(f"{path.name}: {link} has no such heading")
    assert not broken, broken[:10]


def test_the_link_test_can_fail(site):
    page = Page('<a href="nowhere.html">x</a><h1 id="top">x</h1>')
    assert page.links == ["nowhere.html"]
    assert page.names == {"top"}


def test_nothing_is_loaded_from_elsewhere(site):
    loads = {load for path, page in site.items() if path.name != "404.html" for load in page.loads}
    assert loads
    assert not [load for load in loads if re.match(r"(https?:)?//", load)]
