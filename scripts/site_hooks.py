"""MkDocs hooks: the root's CONTRIBUTING.md and CHANGELOG.md as pages of the site, links to and from them turned."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
TAKEN_IN = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Files, config: Any) -> Files:
    """The two files of the root beside the pages of docs/."""
    for name, page in TAKEN_IN.items():
        files.append(File.generated(config, page, content=from_root((ROOT / name).read_text(encoding="utf-8"))))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """`../CONTRIBUTING.md` of a page in docs/ is `contributing.md` of the site."""
    for name, page in TAKEN_IN.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{name}\)", rf"](\g<1>{page})", markdown)
    return markdown


def from_root(markdown: str) -> str:
    """A file of the root as it reads from docs/: `docs/x.md` is `x.md`."""
    for name, page in TAKEN_IN.items():
        markdown = markdown.replace(f"]({name})", f"]({page})")
    return markdown.replace("](docs/", "](")
