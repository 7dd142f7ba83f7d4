"""The pages of rerun and diff, word by word."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_results import made

import suanli
from suanli.nouns.repeated import Changes, Moved, Reworded, Side
from suanli.nouns.result import Result
from suanli.report.pages import document_of
from suanli.report.repeated_pages import MOST, printed
from suanli.report.text import document_text

OLD = Side(file="old/report.html", kind="train", version="1.0.0", convention="causal")
NOW = Side(file="", kind="train", version="1.1.0", convention="causal")
MOVED = (
    Moved(key="days", old=80.0, new=78.0, change=-2.0, fraction=-0.025),
    Moved(key="mtti_s", old=0, new=3600, change=3600, fraction=None),
    Moved(key="bytes.weights", old=2**30, new=2**31, change=2**30, fraction=1.0),
)


def changes(**more: object) -> Changes:
    parts: dict[str, object] = {
        "first": OLD, "second": NOW, "equal": False, "compared": 40, "inputs": (), "numbers": MOVED, "texts": (),
        "gone": (), "added": (),
    }  # fmt: skip
    return Changes(**(parts | more))  # type: ignore[arg-type]


def page(kind: str, found: Changes) -> str:
    return document_text(document_of(Result(kind=kind, inputs={}, result=found)))


def test_a_rerun() -> None:
    assert page("rerun", changes()) == (
        "report.html: 3 of 40 numbers differ, version 1.1.0, made under 1.0.0\n\n"
        "Reports\n"
        "  then  old/report.html  train, version 1.0.0, convention causal\n"
        "  now   made now         train, version 1.1.0, convention causal\n\n"
        "Numbers that differ\n"
        "  key                 then        now      change    percent\n"
        "  days                  80         78          -2    -2.50 %\n"
        "  mtti_s               0 s  60.00 min  +60.00 min        n/a\n"
        "  bytes.weights  1.000 GiB  2.000 GiB  +1.000 GiB  +100.00 %\n"
    )


def test_the_same() -> None:
    text = page("rerun", changes(equal=True, numbers=(), second=NOW.__class__(**(vars(NOW) | {"version": "1.0.0"}))))
    assert text.startswith("report.html: the same result, 40 numbers, version 1.0.0\n")


def test_a_difference_names_inputs_and_other_values() -> None:
    found = changes(
        inputs=(Reworded(key="seq", old=512, new=None), Reworded(key="pin", old={"tp": 8}, new="tp=4")),
        texts=(Reworded(key="layout", old="x" * 100, new=True),), gone=("rows[a]",), added=("rows[b]",),
        second=Side(file="b.json", kind="train", version="", convention=None),
    )  # fmt: skip
    text = page("diff", found)
    assert text.startswith("report.html and b.json: 3 of 40 numbers differ, 3 other values too\n")
    for line in ("  seq  512        n/a", '  pin  {"tp": 8}  tp=4', "  rows[a]", "  rows[b]", "train, version n/a"):
        assert line in text
    assert "x" * 59 + "…" in text and "x" * 60 not in text


def test_long_lists_are_cut_and_say_so() -> None:
    many = tuple(Moved(key=f"k{place}", old=1, new=2, change=1, fraction=1.0) for place in range(MOST + 5))
    keys = tuple(f"k{place}" for place in range(MOST + 1))
    texts = tuple(Reworded(key=key, old="a", new="b") for key in keys)
    text = page("diff", changes(numbers=many, gone=keys, texts=texts))
    assert "… 5 more" in text and text.count("… 1 more") == 2


PRINTED = [
    ("layouts[tp8].step_time_s", 1.5, "1.500 s"),
    ("account[x].seconds", 0.002, "2.000 ms"),
    ("mfu", 0.4162, "41.620 %"),
    ("flops.model", 2_000_000, "2.000 MFLOPs"),
    ("peak_flop_per_s", 989.4e12, "989.4 TFLOP/s"),
    ("days", 25.29, "25.29"),
    ("memory_bytes.total", 2**30, "1.000 GiB"),
    ("cost_usd", -1234.0, "-$1,234"),
    ("rows[a].times", 3, "3"),
    ("goodput", 0.9, "90.000 %"),
    ("params.total", 124_439_808, "124,439,808"),
]


@pytest.mark.parametrize(("key", "value", "text"), PRINTED)
def test_numbers_are_printed_in_the_unit_of_their_key(key: str, value: float, text: str) -> None:
    assert printed(key, value) == text
    assert printed(key, abs(value), signed=True) == "+" + text.lstrip("-").replace("%", "points")


def test_real_reports(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(made("train").to_json())
    (tmp_path / "b.json").write_text(made("train_hours").to_json())
    text = document_text(document_of(suanli.diff(tmp_path / "a.json", tmp_path / "b.json")))
    assert "Inputs that differ" in text and "mfu" in text
