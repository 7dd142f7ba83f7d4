"""The list of reports about other tools' reading of traces: every one of them has a test that names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROW = re.compile(r"^\| \d+ \| (?P<issues>[^|]+) \|", re.MULTILINE)
ISSUE = re.compile(r"(?P<tool>[A-Za-z][\w-]*)?(?: PR)? ?#(?P<first>\d+)(?P<more>(?:, #\d+|/#\d+)*)")
FOLDERS = ("api", "explain", "readers/traces", "fleet")
TESTS = Path(__file__).resolve().parent


def named(text: str) -> set[tuple[str, str]]:
    """Tools and numbers in `HTA #122/#208, nsys-ai #246, #247`: a number without a tool is of the tool before it."""
    found, tool = set(), ""
    for match in ISSUE.finditer(text):
        tool = match["tool"] or tool
        found |= {(tool.lower(), number) for number in (match["first"], *re.findall(r"\d+", match["more"]))}
    return found


def test_names() -> None:
    text = "HTA #122/#208; nsys-ai #246/#247, #252; HTA PR #268 + x; nccl-tests #45, #312, DeepSpeed #3898; pytorch#1"
    assert named(text) == {
        ("hta", "122"), ("hta", "208"), ("nsys-ai", "246"), ("nsys-ai", "247"), ("nsys-ai", "252"), ("hta", "268"),
        ("nccl-tests", "45"), ("nccl-tests", "312"), ("deepspeed", "3898"), ("pytorch", "1"),
    }  # fmt: skip


@pytest.mark.shared
def test_every_report_of_the_list_has_a_test_that_names_it(shared: Path) -> None:
    text = (shared / "reference" / "traces.md").read_text(encoding="utf-8")
    rows = [match["issues"] for match in ROW.finditer(text[text.index("\n## 8. ") :])]
    assert len(rows) == 21
    tests = [file.read_text(encoding="utf-8") for folder in FOLDERS for file in (TESTS / folder).rglob("test_*.py")]
    tested = set().union(*map(named, tests))
    wanted = set().union(*map(named, rows))
    assert len(wanted) > len(rows)
    assert wanted - tested == set()
