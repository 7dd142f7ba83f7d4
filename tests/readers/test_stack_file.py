"""The file of a calibrated stack: what is written is read, and every fault of it at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from suanli.catalog.profiles import find_profile
from suanli.errors import ConfigError, UnreadableFileError
from suanli.nouns.calibrated import Origin
from suanli.nouns.profile import StackProfile
from suanli.readers.stack_file import is_stack_file, read_stack_file
from suanli.report.stack_files import own_stack, rounded

NEMO = find_profile("nemo")
ORIGIN = Origin(
    command="suanli calibrate runs.csv --stack nemo", date="2026-11-30", data='a "b" é.csv', data_sha256="0" * 64
)
MINE = replace(
    NEMO, name="my stack", base="nemo", labels={}, rows=48, routed_rows=3, devices=("h100-sxm bf16",), half_width=0.07,
    routed_half_width=0.3, sources=("one", 'two "quoted"'), untold=("gather", "experts"), command=ORIGIN.command,
    date=ORIGIN.date, numbers=replace(NEMO.numbers, matmul=1.2345678, micro_s=1.5e-5),
)  # fmt: skip


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = read_stack_file(written(tmp_path, own_stack(MINE, ORIGIN)))
    numbers = StackProfile(name="x", numbers=MINE.numbers).numbers
    assert found == replace(MINE, numbers=replace(numbers, matmul=1.2346))  # to five digits
    assert (found.traits, found.shipped, found.prior) == (NEMO.traits, "nemo", NEMO.prior)


def test_the_file_says_where_it_comes_from(tmp_path: Path) -> None:
    text = own_stack(MINE, ORIGIN)
    assert text.startswith("# Written by suanli calibrate; read by `suanli layout … --stack FILE`.")
    for line in ('name = "my stack"', 'base = "nemo"', 'data = "a \\"b\\" é.csv"', f'data_sha256 = "{"0" * 64}"',
                 'command = "suanli calibrate runs.csv --stack nemo"', 'date = "2026-11-30"'):  # fmt: skip
        assert f"\n{line}\n" in text


@pytest.mark.parametrize(
    ("value", "expected"), [(1.2345678, 1.2346), (1.5e-5, 1.5e-5), (0.123449, 0.12345), (2.0, 2.0)]
)
def test_five_digits_are_written(value: float, expected: float) -> None:
    assert rounded(value) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [("mine.toml", True), (" A.TOML ", True), (Path("mine"), True), ("nemo", False), (None, False), (5, False)],
)
def test_what_is_a_file_and_what_a_name(given: object, expected: bool) -> None:
    assert is_stack_file(given) == expected


def test_every_fault_at_once(tmp_path: Path) -> None:
    text = own_stack(MINE, ORIGIN)
    for old, new in (
        ('base = "nemo"', 'base = "nemoo"'), ("format = 1", "format = 2"), ("rows = 48", "rows = -1"),
        ('date = "2026-11-30"', 'date = "yesterday"'), ("half_width = 0.07", "half_width = nan"),
        ('untold = ["gather", "experts"]', 'untold = ["gathr"]'), ("matmul = 1.2346", "matmull = 1.2"),
        ("attention = ", "attention = -"), ('name = "my stack"', 'name = ""'), ("routed_rows = 3\n", ""),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(ConfigError) as problem:
        read_stack_file(written(tmp_path, text + "\n[more]\n"))
    assert [line.split("; expected")[0] for line in str(problem.value).splitlines()] == [
        "unknown table 'more' in mine.toml",
        "format cannot be that in mine.toml: [stack]; got 2",
        "name cannot be that in mine.toml: [stack]; got ''",
        "base cannot be that in mine.toml: [stack]; got 'nemoo'",
        "date cannot be that in mine.toml: [stack]; got 'yesterday'",
        "rows cannot be that in mine.toml: [stack]; got -1",
        "half_width cannot be that in mine.toml: [stack]; got nan",
        "no routed_rows in mine.toml: [stack]",
        "unknown key 'matmull' in mine.toml: [numbers]; nearest: matmul.",
        f"attention cannot be that in mine.toml: [numbers]; got -{rounded(NEMO.numbers.attention)}",
        "no matmul in mine.toml: [numbers]",
        "no number 'gathr' in mine.toml: [stack] untold; nearest: gather.",
    ]
    assert "nearest: nemo." in str(problem.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [("[stack\n", "the file is not TOML"), ("x = [" * 2000, "the file is not TOML"), ("", "the file is empty")],
)
def test_what_is_no_toml(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read_stack_file(written(tmp_path, text))


def test_another_toml_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as problem:
        read_stack_file(written(tmp_path, "[nemo]\nrows = 4\n"))
    wrote = "expected a file that `suanli calibrate FILE.csv -o FILE.toml` wrote."
    assert str(problem.value).splitlines() == [
        "unknown table 'nemo' in mine.toml; expected [stack] and [numbers].",
        f"no table [stack] in mine.toml; {wrote}", f"no table [numbers] in mine.toml; {wrote}",
    ]  # fmt: skip


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="the file cannot be opened"):
        read_stack_file(tmp_path / "none.toml")
