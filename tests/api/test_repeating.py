"""Every report can be made again from itself; what differs is named; what cannot be repeated says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_results import REQUESTS, STEP, made

import suanli
from suanli.api.repeating import repeated_verbs
from suanli.errors import InputError, SuanliError
from suanli.report.files import write_result
from suanli.version import VERSION


def written(folder: Path, document: Any, name: str = "report.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


# --- every verb ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REQUESTS)
def test_a_report_gives_itself_again(name: str, tmp_path: Path) -> None:
    result = made(name)
    again = suanli.rerun(written(tmp_path, result.to_dict()))
    found = again.result
    assert (found.numbers, found.texts, found.gone, found.added, found.inputs) == ((), (), (), (), ())
    assert again.ok and found.equal
    assert again.asked["again"].inputs == json.loads(json.dumps(result.to_dict()["inputs"]))


def test_every_verb_is_repeated_in_two_ways() -> None:
    times = {verb: sum(1 for request in REQUESTS.values() if request[0] == verb) for verb in repeated_verbs()}
    assert min(times.values()) >= 2, times
    assert set(suanli.__all__) - {"__version__", "rerun", "diff", "summarise"} == set(repeated_verbs())


@pytest.mark.parametrize("suffix", [".html", ".json"])
def test_a_written_file_is_a_report(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"r{suffix}"
    write_result(made("mfu"), path)
    found = suanli.rerun(path)
    assert found.ok and found.result.compared > 20
    assert found.result.first.file == str(path) and found.result.second.file == ""


# --- what moved ---------------------------------------------------------------------------------------------------


def tampered(name: str, **changes: Any) -> dict[str, Any]:
    document = json.loads(made(name).to_json())
    for key, value in changes.items():
        document["result"][key] = value
    return document


def test_a_number_that_moved_is_told_with_its_change(tmp_path: Path) -> None:
    now = made("mfu").result.mfu
    found = suanli.rerun(written(tmp_path, tampered("mfu", mfu=now / 2)))
    assert not found.ok
    (moved,) = found.result.numbers
    assert (moved.key, moved.old, moved.new) == ("mfu", now / 2, now)
    assert moved.change == pytest.approx(now / 2) and moved.fraction == pytest.approx(1.0)


def test_rounding_of_a_sum_is_no_change_and_a_whole_number_is_exact(tmp_path: Path) -> None:
    now = made("count_train").result
    same = tampered("count_train", flops_per_token=now.flops_per_token * (1 + 1e-15))
    assert suanli.rerun(written(tmp_path, same)).ok
    assert not suanli.rerun(written(tmp_path, tampered("count_train", macs=now.macs + 1))).ok


def test_texts_and_keys_that_differ(tmp_path: Path) -> None:
    document = tampered("mfu", unit="image", old_figure=3)
    del document["result"]["hfu"]
    found = suanli.rerun(written(tmp_path, document)).result
    assert [(each.key, each.old, each.new) for each in found.texts] == [("unit", "image", "token")]
    assert (found.gone, found.added) == (("old_figure",), ("hfu",))


def test_the_times_of_a_search_are_no_change(tmp_path: Path) -> None:
    assert suanli.rerun(written(tmp_path, tampered("layout", search_s=99.0, refine_s=0.0))).ok


def test_another_version_is_told(tmp_path: Path) -> None:
    document = tampered("mfu") | {"version": "0.0.1"}
    found = suanli.rerun(written(tmp_path, document)).result
    assert (found.first.version, found.second.version) == ("0.0.1", VERSION)


# --- what cannot be repeated --------------------------------------------------------------------------------------


def fault(call: Any) -> Any:
    with pytest.raises(SuanliError) as caught:
        call()
    return caught.value.faults[0]


def test_a_file_that_no_longer_lies_there_is_named(tmp_path: Path) -> None:
    document = json.loads(made("explain").to_json())
    document["inputs"]["trace"] = "/nowhere/gone.json"
    found = fault(lambda: suanli.rerun(written(tmp_path, document)))
    assert found.sentence() == (
        "a file of the request no longer lies there in --trace; got '/nowhere/gone.json'. Put it back, or beside the "
        "report."
    )


def test_a_file_beside_the_report_is_taken(tmp_path: Path) -> None:
    document = json.loads(made("explain").to_json())
    document["inputs"]["trace"] = "/nowhere/step.json"
    (tmp_path / "step.json").write_bytes(STEP.read_bytes())
    found = suanli.rerun(written(tmp_path, document)).result
    assert [each.key for each in found.texts] == ["path"] and not found.numbers


def test_code_of_a_report_runs_only_where_that_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "owned.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    document = json.loads(made("count_train").to_json())
    document["inputs"]["model"] = "torch:owned:make"
    found = fault(lambda: suanli.rerun(written(tmp_path, document)))
    assert (found.code, found.hint) == ("runs_code", "--trust runs it.")


def test_objects_of_a_program_cannot_be_had_again(tmp_path: Path) -> None:
    class Config:
        model_type = "gpt2"

        def to_dict(self) -> dict[str, Any]:
            return {"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 10, "n_positions": 8}

    result = suanli.count(Config())
    assert result.inputs["live"] == ["model"]
    found = fault(lambda: suanli.rerun(written(tmp_path, result.to_dict())))
    assert (found.code, found.got) == ("not_in_the_report", "model")


def test_an_option_of_another_version(tmp_path: Path) -> None:
    document = json.loads(made("mfu").to_json())
    document["inputs"]["colour"] = "blue"
    found = fault(lambda: suanli.rerun(written(tmp_path, document)))
    assert (found.code, found.got) == ("no_such_option", "--colour")


@pytest.mark.parametrize("kind", ["diff", "rerun", "summarise", "nothing"])
def test_reports_that_are_not_repeated(kind: str, tmp_path: Path) -> None:
    document = json.loads(made("mfu").to_json()) | {"kind": kind}
    assert fault(lambda: suanli.rerun(written(tmp_path, document))).code == "not_repeated"


# --- two reports --------------------------------------------------------------------------------------------------


def test_two_reports_of_different_inputs(tmp_path: Path) -> None:
    first = written(tmp_path, suanli.count("gpt2", seq=512).to_dict(), "a.json")
    second = written(tmp_path, suanli.count("gpt2", seq=1024, batch=2).to_dict(), "b.json")
    result = suanli.diff(first, second)
    found = result.result
    assert result.ok and not found.equal
    assert {(each.key, each.old, each.new) for each in found.inputs} == {("seq", 512, 1024), ("batch", 1, 2)}
    moved = {each.key: each for each in found.numbers}
    assert moved["units"].change == 1536 and moved["units"].fraction == 3.0
    assert moved["rows[transformer.h.0-11.mlp].model_flops"].fraction == pytest.approx(3.0)


def test_a_report_and_itself(tmp_path: Path) -> None:
    path = written(tmp_path, made("layout").to_dict())
    found = suanli.diff(path, path).result
    assert found.equal and not found.inputs and found.compared > 50


def test_both_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        suanli.diff(tmp_path / "a.json", tmp_path / "b.json")
    assert [fault.message for fault in caught.value.faults] == [
        "the report A cannot be read", "the report B cannot be read",
    ]  # fmt: skip


def test_reports_of_different_verbs(tmp_path: Path) -> None:
    first, second = (written(tmp_path, made(name).to_dict(), f"{name}.json") for name in ("mfu", "train"))
    with pytest.raises(InputError, match="reports of different verbs have no numbers in common in A, B; got mfu and "):
        suanli.diff(first, second)


@pytest.mark.parametrize("name", ["count_train", "layout", "infer", "explain", "verify"])
def test_what_came_first_and_what_second_only_turns_the_signs(name: str, tmp_path: Path) -> None:
    document = json.loads(made(name).to_json())
    first, second = written(tmp_path, document, "a.json"), tmp_path / "b.json"
    _grow(document["result"])
    written(tmp_path, document, "b.json")
    there, back = suanli.diff(first, second).result, suanli.diff(second, first).result
    assert [each.key for each in there.numbers] == [each.key for each in back.numbers] != []
    assert [each.change for each in there.numbers] == [-each.change for each in back.numbers]


def _grow(node: Any) -> None:
    """Every number of a document one larger, but for those that tell rows apart."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(items):
        if isinstance(value, int | float) and not isinstance(value, bool) and key not in ("gpus", "device", "id"):
            node[key] = value + 1
        else:
            _grow(value)
