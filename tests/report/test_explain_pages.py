"""Pages of `explain`, word by word, over traces of our own making; and what a page says where there is little."""

from __future__ import annotations

import json
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_trace import EXAMPLE, as_text, training_trace
from rich.console import Console

import suanli
from suanli.explain.against import EXPLAINED
from suanli.nouns.result import Result
from suanli.report import document_of
from suanli.report.document import Document, Table
from suanli.report.explain_pages import PRODUCTS, attributed, merged
from suanli.report.files import as_csv, as_markdown
from suanli.report.text import document_text, print_document
from suanli.report.trace_differences import signed
from suanli.report.waterfall import BAR

MODEL = {"model": "linear(4096, 11008)", "seq": 2048, "batch": 4}


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "slower.json"
    path.write_text(as_text(training_trace(slower=1.1)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = {"matmul": 2.0e-3, "memory-bound": 3e-4, "data parallel": 2e-4, "fixed": 1e-4}
    rows = [{"entry": name, "seconds": seconds} for name, seconds in entries.items()]
    answer = {"kind": "layout", "result": {"layouts": [{"tp": 1, "pp": 1, "dp": 8, "account": rows}]}}
    path = tmp_path_factory.mktemp("plans") / "layout.json"
    path.write_text(json.dumps(answer), encoding="utf-8")
    return path


def screen(result: Result, width: int) -> str:
    """As a terminal of that width shows it."""
    console = Console(width=width, no_color=True, highlight=False, force_terminal=False)
    with console.capture() as captured:
        print_document(document_of(result), console)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    assert max(map(len, lines)) <= width
    return "\n".join(lines) + "\n"


def page(result: Result, width: int) -> str:
    return document_text(document_of(result), width)


@pytest.mark.parametrize("width", [80, 120])
def test_a_page_with_everything(golden: Callable[[str, str], None], slower: Path, plan: Path, width: int) -> None:
    result = suanli.explain(slower, **MODEL, against=plan, compare=EXAMPLE)
    text = screen(result, width)
    golden(f"explain_{width}.txt", text)
    assert "attributed 100.0 % of matmul time" in text


def test_the_example_is_the_made_trace() -> None:
    assert EXAMPLE.read_text(encoding="utf-8") == as_text(training_trace()), "python tests/made/made_trace.py"


def written(tmp_path: Path, document: dict[str, Any]) -> Path:
    path = tmp_path / "t.json"
    path.write_text(as_text(document), encoding="utf-8")
    return path


def test_without_shapes_nothing_is_claimed(golden: Callable[[str, str], None], tmp_path: Path) -> None:
    document = training_trace()
    for event in document["traceEvents"]:
        event["args"].pop("Input Dims", None)
    text = page(suanli.explain(written(tmp_path, document)), 120)
    golden("explain_no_shapes.txt", text)
    assert "attributed 0.0 % of matmul time" in text
    assert "Record shapes:" in text
    assert "of peak useful" not in text


def test_without_device_work_there_is_a_page(golden: Callable[[str, str], None], tmp_path: Path) -> None:
    document = training_trace()
    work = ("kernel", "gpu_memcpy")
    document["traceEvents"] = [each for each in document["traceEvents"] if each["cat"] not in work]
    golden("explain_no_device.txt", page(suanli.explain(written(tmp_path, document)), 120))


@pytest.mark.parametrize(
    ("name", "without", "head"),
    [
        ("NVIDIA H100 80GB HBM3", "", "t.json: 40.1 % of peak useful, 15.5 % idle"),
        ("NVIDIA H100 80GB HBM3", "aten::mm", "t.json: at least 20.0 % of peak useful, 15.5 % idle"),
        ("Abacus 9", "", "t.json: 15.5 % idle"),  # no peak: nothing is said to be useful, not 0 %
    ],
)
def test_headlines_claim_what_is_known(tmp_path: Path, name: str, without: str, head: str) -> None:
    document = training_trace()
    document["deviceProperties"][0]["name"] = name
    document["traceEvents"] = [each for each in document["traceEvents"] if each["name"] != without]
    assert document_of(suanli.explain(written(tmp_path, document))).headline.startswith(head)


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("Abacus\n9\x1b[31m", r"t.json: 15.5 % idle in 11.19 ms of Abacus\n9\x1b[31m [kineto, rank 0]"),
        ("N" * 1000, f"t.json: 15.5 % idle in 11.19 ms of {'N' * 58}… [kineto, rank 0]"),
    ],
)
def test_a_headline_is_one_line(tmp_path: Path, name: str, head: str) -> None:
    document = training_trace()
    document["deviceProperties"][0]["name"] = name
    assert document_of(suanli.explain(written(tmp_path, document))).headline == head


def test_a_reason_is_said_once(tmp_path: Path) -> None:
    """That a device is not known is why its products have no peak, and why it is not in the catalogue."""
    document = training_trace()
    document["deviceProperties"][0]["name"] = "Abacus 9"
    text = page(suanli.explain(written(tmp_path, document)), 120)
    assert text.count("unknown device 'Abacus 9'") == 1
    document["traceEvents"] = [each for each in document["traceEvents"] if each["cat"] != "kernel"]
    text = page(suanli.explain(written(tmp_path, document)), 120)
    assert "no matmul time" in text
    assert "attributed_fraction" not in text


def test_a_peak_that_is_not_known_has_its_reason_beside_it(tmp_path: Path) -> None:
    options = {"model": "gpt2", "seq": 128, "batch": 1}
    known = page(suanli.explain(written(tmp_path, training_trace()), **options), 120)
    assert "dense bf16 of the device" in known
    document = training_trace()
    document["deviceProperties"][0]["name"] = "Abacus 9"
    text = page(suanli.explain(written(tmp_path, document), **options), 120)
    assert re.search(r"peak +n/a +the device has no sourced peak of bf16; name it with --gpu", text)


def test_many_ranks_have_a_page_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = types.ModuleType("suanli.report.fleet_pages")
    made.fleet_document = lambda result: Document(f"of {result.result}", ())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "suanli.report.fleet_pages", made)
    assert document_of(Result("explain", {}, "many")).headline == "of many"


def test_waterfall_closes_and_its_bars_tile() -> None:
    document = document_of(suanli.explain(EXAMPLE))
    table = next(block for block in document.blocks if isinstance(block, Table) and block.title.startswith("Where"))
    shares = [float(row[2].removesuffix(" %")) for row in table.rows[1:]]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    assert sum(row[3].count("█") for row in table.rows[1:]) == BAR
    assert (table.rows[0][0], table.rows[-1][0]) == ("peak", "useful model FLOPs")


def test_every_flop_figure_has_its_share_beside_it() -> None:
    result = suanli.explain(EXAMPLE)
    titles = [block.title for block in document_of(result).blocks if isinstance(block, Table) and block.rows]
    said = attributed(result.result)
    assert said == "attributed 100.0 % of matmul time"
    assert sum(said in title for title in titles) == 3  # the waterfall, kernels, roofline


def test_files_hold_what_the_page_holds() -> None:
    result = suanli.explain(EXAMPLE)
    for text in (as_csv(result), as_markdown(result)):
        assert "useful model FLOPs" in text and "all-reduce" in text


def test_every_entry_of_products_has_a_part_of_the_steps_column() -> None:
    assert set(PRODUCTS) == {entry for entry, group in EXPLAINED.items() if group == "products"}


def test_idle_parts_are_one_in_the_waterfall() -> None:
    found = suanli.explain(EXAMPLE).result
    rows = dict(merged(found.account))
    assert rows["idle"] == pytest.approx(found.devices[0].usage.idle_s)
    assert sum(rows.values()) == pytest.approx(found.peak_s)


@pytest.mark.parametrize(("seconds", "shown"), [(1e-3, "+1.000 ms"), (-2e-6, "-2.000 µs"), (1e-20, "0 s")])
def test_differences_have_a_sign(seconds: float, shown: str) -> None:
    assert signed(seconds) == shown
