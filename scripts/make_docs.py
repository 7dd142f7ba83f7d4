"""Makes what the documentation takes from the code: `make docs`. With `--check`, names the files that are stale.

Three kinds of things are made, all of them again and again the same:

- whole files (formulas, conventions, accuracy, catalogue, pictures);
- blocks of hand-written pages between `<!-- generated: NAME -->` and `<!-- end -->`;
- the output under `$ suanli …` where a comment `<!-- shows: TITLE, TITLE:ROWS -->` stands before the console block: the
  command is run, and of its report the blocks with those titles are kept (the first ROWS lines where a number is
  given), `...` standing for what is left out. `headline` is the first line, `all` everything.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from making_docs.accuracy_page import accuracy_page
from making_docs.blocks import DOCS, with_blocks
from making_docs.catalogue_page import catalogue_page
from making_docs.conventions_page import conventions_page
from making_docs.curves_page import curves_page
from making_docs.formulas_page import formulas_page
from making_docs.picture import mfu_picture
from making_docs.shown import ROOT, with_outputs

NOTHING = Path(os.devnull)  # no prices of the user's own in what is published

FILES: dict[str, Callable[[], str]] = {
    "docs/formulas.md": formulas_page,
    "docs/conventions.md": conventions_page,
    "docs/accuracy.md": lambda: accuracy_page().replace("{docs}", "").replace(" See [accuracy](accuracy.md).", ""),
    "docs/catalogue.md": catalogue_page,
    "docs/curves.md": curves_page,
    "docs/img/mfu.svg": mfu_picture,
}


def pages() -> list[Path]:
    """Hand-written pages."""
    found = [ROOT / "README.md", ROOT / "README.zh.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    return [path for path in found if path.exists() and path.relative_to(ROOT).as_posix() not in FILES]


def made() -> dict[Path, str]:
    """What every file should hold."""
    os.environ["XDG_CONFIG_HOME"] = str(NOTHING)
    texts = {ROOT / name: make() for name, make in FILES.items()}
    for path in pages():
        texts[path] = with_outputs(with_blocks(path.read_text(encoding="utf-8"), path))
    return texts


def stale() -> list[str]:
    """Files that do not hold what they should; of a picture the words count, not how they are drawn."""
    found = []
    for path, text in made().items():
        held = path.read_text(encoding="utf-8") if path.exists() else ""
        if _words(path, held) != _words(path, text):
            found.append(path.relative_to(ROOT).as_posix())
    return found


def _words(path: Path, text: str) -> object:
    return re.findall(r"<text[^>]*>(.*?)</text>", text) if path.suffix == ".svg" else text


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or with `--check` name the stale ones and return 1 where there are any."""
    parser = argparse.ArgumentParser(description="Make what the documentation takes from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 with the names of stale files")
    wanted = parser.parse_args(arguments)
    names = stale()
    if wanted.check:
        sys.stdout.write("".join(f"{name} is stale: make docs\n" for name in names))
        return 1 if names else 0
    texts = made()
    for name in names:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(texts[ROOT / name], encoding="utf-8")
        sys.stdout.write(f"wrote {name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
