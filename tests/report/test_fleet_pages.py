"""The reports of many ranks, as they are printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suanli.api.folders import explain_folder, summarise
from suanli.nouns.result import Result
from suanli.report import document_of
from suanli.report.files import as_csv, as_markdown
from suanli.report.fleet_pages import fleet_document
from suanli.report.text import document_text


@pytest.fixture(scope="module")
def folder(made_fleet: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page") / "job"
    planted = {"slow": {5: 1.3}, "clocks": {2: 3_500_000_123}, "stages": 2, "stage_layers": {1: 4}}
    received = {k: 1000 * (1 + (k == 6)) for k in range(8)}
    made_fleet.write_job(made_fleet.Job(ranks=8, steps=3, received=received, **planted), folder)
    (folder / "rank3.json").write_text("{broken")
    return folder


@pytest.fixture(scope="module")
def result(folder: Path) -> Result:
    import os

    before = Path.cwd()
    os.chdir(folder.parent)
    try:
        return explain_folder("job", workers=1)
    finally:
        os.chdir(before)


@pytest.mark.parametrize("width", [80, 120])
def test_the_page(result: Result, golden: Callable[[str, str], None], width: int) -> None:
    text = document_text(fleet_document(result), width)
    assert [line for line in text.splitlines() if len(line) > width] == []  # no table falls apart into records
    golden(f"fleet_{width}.txt", text)


def test_its_other_forms_say_the_same(result: Result) -> None:
    from dataclasses import replace

    from suanli.report.files import _markdown

    page = fleet_document(result)
    assert any("rank 5" in line for line in page.blocks[0].lines)  # type: ignore[union-attr]
    assert all(_markdown(block) is not None for block in page.blocks)
    assert replace(result, kind="explain").to_json().count('"waited_for_s"') == 7


def test_without_steps_the_map_is_of_entries(result: Result) -> None:
    from dataclasses import replace

    rows = tuple(replace(row, step_times_s=(), step_computes_s=()) for row in result.ranks)
    page = fleet_document(replace(result, result=replace(result.result, step_names=(), ranks=rows)))
    heat = page.blocks[2]
    assert heat.title.startswith("Ranks by entries: ")
    assert [len(row[1]) for row in heat.rows] == [len(result.account)] * 7  # type: ignore[union-attr]


def test_thousands_of_ranks_fit_the_screen(result: Result) -> None:
    from dataclasses import replace

    rows = tuple(replace(result.ranks[0], rank=k, waited_for_s=float(k)) for k in range(4096))
    text = document_text(fleet_document(replace(result, result=replace(result.result, ranks=rows))), 80)
    assert len(text.splitlines()) < 200
    assert "Ranks: the 32 that others waited for longest" in text and "\n  4095  " in text.replace(
        "     4095", "  4095  "
    )


def test_summaries(folder: Path, tmp_path: Path) -> None:
    made = summarise(folder, tmp_path / "s", workers=1)
    text = document_text(document_of(made), 120)
    assert text.startswith("7 of 8 traces summarised\n")
    assert "Not read\n" in text and "rank3.json: " in text
    assert "| rank0.json | 0 | 1 | 3 |" in as_markdown(made)
    assert "files[].path,files[].output,files[].rank,files[].devices,files[].steps,files[].work," in as_csv(made)
