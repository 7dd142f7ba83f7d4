"""What a worker does for the page: HTML, files and reasons from one answer, worked out once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from made_trace import as_text, training_trace

import suanli
from suanli.errors import InputError, UnknownNameError
from suanli.web import answered
from suanli.web.answered import KEPT, as_file, shown, why_note

MFU = {"model": "gpt2", "gpu": "h100-sxm", "tokens_per_second": "1e5"}
TABLES = re.compile("<script.*?</script>", re.DOTALL)  # data of pictures
EXAMPLE = Path(answered.__file__).parent / "assets" / "example.pt.trace.json"


@pytest.fixture(autouse=True)
def forgotten() -> None:
    answered._answers.clear()


def test_an_answer_as_html() -> None:
    found = shown("mfu", MFU, {}, "en", "iec")
    assert found.headline.startswith("MFU ")
    assert found.html.startswith('<div class="report">')
    assert found.headline.split(" [")[0] in found.html


def test_the_headline_follows_language_and_units() -> None:
    english, chinese = (shown("layout", LAYOUT, {}, lang, "iec").headline for lang in ("en", "zh"))
    assert "GPUs" in english
    assert "个 GPU" in chinese
    asked = {"model": "gpt2"}
    sizes = {units: TABLES.sub("", shown("count", asked, {}, "en", units).html) for units in ("iec", "si")}
    assert "MiB" in sizes["iec"]
    assert "MiB" not in sizes["si"]
    assert "248,879,616 B" in shown("count", asked, {}, "en", "exact").html


LAYOUT = {"model": "gpt2", "gpu": "h100-sxm", "gpus": "8", "global_batch": "64", "seq": "1024", "pin": "tp=1,pp=1,cp=1"}


def test_questions_about_an_answer_do_not_work_it_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = answered.call
    monkeypatch.setattr(answered, "call", lambda *given, **more: calls.append(given) or real(*given, **more))
    shown("mfu", MFU, {}, "en", "iec")
    assert why_note("mfu", MFU, {}, "en", ("Utilisation", "MFU", "")).count("<h3>") == 1
    as_file("mfu", MFU, {}, "en", "iec", "json")
    assert len(calls) == 1
    shown("mfu", MFU | {"tokens_per_second": "2e5"}, {}, "en", "iec")
    assert len(calls) == 2


def test_few_answers_are_remembered() -> None:
    for rate in range(1, KEPT + 4):
        shown("mfu", MFU | {"tokens_per_second": str(rate)}, {}, "en", "iec")
    assert len(answered._answers) == KEPT


def test_nothing_is_known_of_an_unknown_number() -> None:
    assert why_note("mfu", MFU, {}, "en", ("no such block", "", "")) == ""


@pytest.mark.parametrize("suffix", ["json", "csv", "md", "html"])
def test_a_file_is_what_the_command_writes(suffix: str, tmp_path: Path) -> None:
    from suanli.report.files import write_result

    path = tmp_path / f"x.{suffix}"
    write_result(suanli.mfu(**MFU), path)
    assert as_file("mfu", MFU, {}, "en", "iec", suffix) == path.read_bytes()


def test_the_json_is_that_of_the_command() -> None:
    found = json.loads(as_file("mfu", MFU, {}, "zh", "si", "json"))
    assert found["result"] == suanli.mfu(**MFU).to_dict()["result"]


def test_an_unknown_suffix_is_refused() -> None:
    with pytest.raises(InputError, match="the suffix names no format"):
        as_file("mfu", MFU, {}, "en", "iec", "pdf")


def test_the_example_trace_is_the_projects_own() -> None:
    assert EXAMPLE.read_text(encoding="utf-8") == as_text(training_trace())
    assert "40.1 % of peak useful" in shown("explain", {"traces": ["example"]}, {}, "en", "iec").headline


def test_the_example_stands_for_itself_alone() -> None:
    """Beside other files it is a path, and paths are refused."""
    with pytest.raises(InputError, match="never a path"):
        shown("explain", {"traces": ["example", "other"]}, {}, "en", "iec")


def test_faults_come_through() -> None:
    with pytest.raises(UnknownNameError, match="unknown device"):
        shown("mfu", MFU | {"gpu": "h100-smx"}, {}, "en", "iec")


def test_where_an_upload_lies_is_told_nowhere(tmp_path: Path) -> None:
    """Neither in a fault nor in the answer, on the page or in a file of it."""
    folder = tmp_path / "up-1" / "uploaded"
    folder.mkdir(parents=True)
    (folder / "none.html").write_text("")
    with pytest.raises(InputError) as caught:
        shown("rerun", {}, {"file": [folder / "none.html"]}, "en", "iec")
    assert caught.value.faults[0].where == "none.html"
    path = folder / "r.json"
    path.write_text(answered.answer("mfu", MFU, {}).to_json())
    found = shown("rerun", {}, {"file": [path]}, "en", "iec")
    assert "r.json" in found.html and str(tmp_path) not in found.html + found.headline
    for suffix in ("html", "json", "md"):
        content = as_file("rerun", {}, {"file": [path]}, "en", "iec", suffix).decode()
        assert "r.json" in content and str(tmp_path) not in content
