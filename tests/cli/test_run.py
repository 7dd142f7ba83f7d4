"""What every command does with what its verb gives: stdout, stderr, files and exit codes."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import suanli
from suanli.cli.run import WIDTH_WITHOUT_TERMINAL, never, run, show, show_error, terminal
from suanli.errors import Fault, InputError, MissingExtraError
from suanli.nouns.result import Result
from suanli.report import document_of
from suanli.report.text import document_text

GPUS = suanli.gpus("h100-sxm")
TWO = InputError(
    Fault(code="a", message="one is wrong", where="--one", got="1"), Fault(code="b", message="two is wrong")
)


def failing(error: Exception) -> Callable[[], Result]:
    def verb() -> Result:
        raise error

    return verb


def exit_code(call: Callable[[], Any]) -> int:
    """The exit code a call ends with; 0 where it returns."""
    try:
        call()
    except typer.Exit as problem:
        return problem.exit_code
    return 0


def test_text_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    run(lambda: GPUS, as_json=False, output=None, failed=never)
    out, err = capsys.readouterr()
    assert "H100 SXM5 80GB" in out and not out.startswith("{")
    assert err == ""


def test_one_json_document_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    run(lambda: GPUS, as_json=True, output=None, failed=never)
    out, err = capsys.readouterr()
    assert out == GPUS.to_json() + "\n"
    assert err == ""


def test_a_file_and_where_it_was_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    run(lambda: GPUS, as_json=False, output=path, failed=never)
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"wrote {path}\n")
    assert json.loads(path.read_text(encoding="utf-8")) == GPUS.to_dict()


def test_a_file_and_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With --json nothing but the document is said, the file is written all the same."""
    path = tmp_path / "out.md"
    show(GPUS, as_json=True, output=path)
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] == "gpus"
    assert err == ""
    assert path.read_text(encoding="utf-8").startswith("# ")


def test_a_suffix_is_refused_before_the_verb_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    called: list[int] = []

    def verb() -> Result:
        called.append(1)
        return GPUS

    path = tmp_path / "out.xyz"
    assert exit_code(lambda: run(verb, as_json=False, output=path, failed=never)) == 2
    assert called == []
    assert capsys.readouterr().err.startswith("error: the suffix names no format in --output; got ")
    assert not path.exists()


@pytest.mark.parametrize(("failed", "code"), [(True, 1), (False, 0)])
def test_a_result_that_fails_is_shown_and_exits_with_1(
    failed: bool, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(lambda: run(lambda: GPUS, as_json=True, output=None, failed=lambda _: failed)) == code
    assert json.loads(capsys.readouterr().out)["kind"] == "gpus"


def test_what_failed_is_asked_of_the_result() -> None:
    seen: list[Result] = []

    def failed(result: Result) -> bool:
        seen.append(result)
        return False

    run(lambda: GPUS, as_json=True, output=None, failed=failed)
    assert seen == [GPUS]
    assert never(GPUS) is False


def test_every_fault_is_a_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(lambda: run(failing(TWO), as_json=False, output=None, failed=never)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: one is wrong in --one; got 1.\nerror: two is wrong.\n"


def test_faults_as_json_are_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(lambda: run(failing(TWO), as_json=True, output=None, failed=never)) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == TWO.to_dict()
    assert err == ""


def test_words_beyond_ascii_stay_words(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(InputError(Fault(code="a", message="算力 × 3")), as_json=True)
    assert "算力 × 3" in capsys.readouterr().out


def test_the_exit_code_is_the_errors_own() -> None:
    missing = MissingExtraError(Fault(code="x", message="needs more"))
    assert exit_code(lambda: run(failing(missing), as_json=False, output=None, failed=never)) == missing.exit_code == 2


def test_mistakes_of_ours_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        run(failing(ZeroDivisionError()), as_json=False, output=None, failed=never)


def test_no_terminal_has_a_fixed_width(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe gets the same bytes however wide the user's terminal is, and no colours."""
    monkeypatch.setenv("COLUMNS", "44")
    monkeypatch.setenv("FORCE_COLOR", "1")
    show(GPUS, as_json=False, output=None)
    out = capsys.readouterr().out
    assert out == document_text(document_of(GPUS), WIDTH_WITHOUT_TERMINAL)
    assert "\x1b" not in out
    assert 44 < max(len(line) for line in out.splitlines()) <= WIDTH_WITHOUT_TERMINAL


def test_a_terminal_has_its_own_width(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert terminal().width == 70
    show(GPUS, as_json=False, output=None)
    out = capsys.readouterr().out
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    found, narrow, wide = (
        [line.rstrip() for line in text.splitlines()]
        for text in (plain, *(document_text(document_of(GPUS), width) for width in (70, WIDTH_WITHOUT_TERMINAL)))
    )
    assert found == narrow != wide


@pytest.mark.parametrize("name", ["made.json", "./made.json", "link.json", "hard.json"])
def test_what_was_read_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    step = (Path(__file__).parents[2] / "examples" / "step.json").read_bytes()
    made = Path("made.json")
    made.write_bytes(step)
    Path("link.json").symlink_to("made.json")
    Path("hard.json").hardlink_to("made.json")
    call = functools.partial(run, lambda: suanli.explain("made.json"), as_json=False, failed=never)
    assert exit_code(lambda: call(output=Path(name))) == 2
    assert capsys.readouterr().err == (
        f"error: the file to write is one that was read in --output; got {Path(name).name!r}. Name another file.\n"
    )
    assert made.read_bytes() == step
    assert exit_code(lambda: call(output=Path("other.json"))) == 0
