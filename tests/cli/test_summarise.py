"""`suanli summarise` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suanli.cli.main import app


@pytest.fixture(scope="module")
def job(made_fleet: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "job"
    made_fleet.write_job(made_fleet.Job(ranks=2, steps=1), folder)
    return folder


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(each) for each in ("summarise", *arguments)])


def test_one_trace(job: Path, tmp_path: Path) -> None:
    done = call(job / "rank1.json", "-o", tmp_path / "r.parquet")
    assert done.exit_code == 0 and done.stdout.startswith("1 of 1 traces summarised\n")
    assert (tmp_path / "r.parquet").is_file()


def test_a_folder_as_json(job: Path, tmp_path: Path) -> None:
    done = call(job, "-o", tmp_path / "s", "--workers", 1, "--json")
    files = json.loads(done.stdout)["result"]["files"]
    assert [each["rank"] for each in files] == [0, 1]
    assert len(list((tmp_path / "s").glob("*.parquet"))) == 2


def test_without_a_place(job: Path) -> None:
    done = call(job / "rank1.json")
    assert done.exit_code == 2
    assert done.stderr == (
        "error: a place for the summary is needed in --output; expected -o FILE.parquet. "
        "With several traces: -o FOLDER.\n"
    )


def test_one_of_several_that_cannot_be_read(job: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("nonsense")
    done = call(job, tmp_path / "bad.json", "-o", tmp_path / "s", "--workers", 1)
    assert done.exit_code == 1 and "Not read\n" in done.stdout
