"""What a command prints, and the parts of it that a page shows."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import tempfile
from functools import cache
from pathlib import Path

from typer.testing import CliRunner

from suanli.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PLAIN = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None}  # no colours, whatever the environment asks for


@cache
def output_of(command: str) -> str:
    """What `suanli …` prints where the output is no terminal, lines without trailing blanks; files it writes go.

    It runs in an empty folder that has `examples` in it, and copies of the CSV files there. What it printed is kept.
    """
    words = shlex.split(command)
    assert words[0] == "suanli", command
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("examples").symlink_to(ROOT / "examples")
        for file in (ROOT / "examples").glob("*.csv"):
            shutil.copy(file, folder)
        found = CliRunner().invoke(app, words[1:], env={"XDG_CONFIG_HOME": folder, **PLAIN})
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return "\n".join(line.rstrip() for line in found.output.splitlines())


def excerpt(output: str, titles: str) -> str:
    """The blocks of a report with these titles, `...` where something is left out."""
    blocks = output.split("\n\n")
    if titles == "all":
        return output
    parts = [part.strip() for part in titles.split(",")]
    wanted = [part.rpartition(":")[::2] if part[-1:].isdigit() else (part, "") for part in parts]
    kept: list[str] = []
    last = -1
    for title, rows in wanted:
        index = _index(blocks, title or rows)
        lines = blocks[index].splitlines()
        cut = int(rows) if title and rows else len(lines)
        gap = [] if not kept else ["..."] if index > last + 1 else [""]
        kept += [*gap, *lines[:cut], *(["..."] if cut < len(lines) else [])]
        last = index
    whole = last == len(blocks) - 1 or kept[-1] == "..."
    return "\n".join(kept if whole else [*kept, "..."])


def _index(blocks: list[str], title: str) -> int:
    if title == "headline":
        return 0
    found = [index for index, block in enumerate(blocks) if index and block.strip().startswith(title)]
    assert found, f"no block {title!r} among {[block.strip().splitlines()[0] for block in blocks]}"
    return found[0]


_SHOWS = re.compile(r"(<!-- shows: (.+?) -->\n+```console\n\$ (suanli [^\n]*)\n).*?(```)", re.DOTALL)


def with_outputs(text: str) -> str:
    """A page with the output of its commands."""
    return _SHOWS.sub(lambda m: f"{m[1]}{excerpt(output_of(m[3]), m[2])}\n{m[4]}", text)
