"""`suanli.verify` as called from Python: what are no names is refused word by word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.errors import InputError

NAMES = "expected names with commas between them, or a list of names."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"only": 3}, f"these are no names in --only; got 3; {NAMES}"),
        ({"only": ["articles", None]}, f"these are no names in --only; got ['articles', None]; {NAMES}"),
        ({"types": 3}, f"these are no names in --types; got 3; {NAMES}"),
        ({"only": "models", "types": [3]}, f"these are no names in --types; got [3]; {NAMES}"),
        ({"only": b"articles"}, f"these are no names in --only; got b'articles'; {NAMES}"),
        ({"types": "gpt2"}, "types are checked with the models in --types; got gpt2. Add --only models."),
    ],
)
def test_what_are_no_names(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        suanli.verify(**given)
    assert str(caught.value) == said


@pytest.mark.parametrize("only", ["articles", " articles ", ["articles"], ("articles",), {"articles"}])
def test_names_in_every_form(only: Any) -> None:
    found = suanli.verify(only)
    assert found.inputs["only"] == ["articles"]
    assert {claim.section for claim in found.claims} == {"articles"}


# --- measured points of serving -----------------------------------------------------------------------------------

FEW = """model,hw,n_gpus,tp,precision,framework,isl,osl,concurrency,ttft_ms,tpot_ms,source
meta-llama/Llama-3.1-70B,h100_sxm,8,8,fp8,vllm 0.9,1024,1024,16,100,11.4,mine
meta-llama/Llama-3.1-8B,h100_sxm,1,1,bf16,vllm 0.9,1024,1024,64,200,13.0,mine
"""


def test_points_are_read_where_the_user_says(tmp_path: Path) -> None:
    (tmp_path / "measured_serving.csv").write_text(FEW)
    found = suanli.verify("serving", data=tmp_path)
    assert found.notes == (f"measured points: {tmp_path}/measured_serving.csv",)
    token = found.result.summary[1]
    assert (token.n, token.fold, len(token.folds)) == (2, "architecture and GPU", 2)
    assert sum(claim.status == "predicted" for claim in found.result.claims) == 2


def test_without_points_the_recorded_errors_are_told_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    from suanli.api import verifying

    monkeypatch.setattr(verifying, "outside_data", lambda _: None)
    found = suanli.verify("serving")
    assert found.ok and found.notes[0].startswith("no measured points were found (measured_serving.csv)")
    assert found.result.summary[1].mape_held_out < 0.15


def test_sections_beside_serving_are_checked_too(tmp_path: Path) -> None:
    (tmp_path / "measured_serving.csv").write_text(FEW)
    found = suanli.verify("articles,serving", data=str(tmp_path))
    assert {claim.section for claim in found.result.claims} == {"articles", "serving"}


@pytest.mark.parametrize(
    ("only", "said"),
    [
        ("serving", "the folder holds no measured points in --data; got '{}'; expected a file measured_serving.csv."),
        (
            "articles",
            "outside data are of a section that needs them in --data; got '{}'. Add --only serving or --only traces.",
        ),
        (
            None,
            "outside data are of a section that needs them in --data; got '{}'. Add --only serving or --only traces.",
        ),
    ],
)
def test_a_folder_that_is_no_use(only: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        suanli.verify(only, data=".")
    assert str(caught.value) == said.format(".")


def test_plain_verify_looks_for_no_points(monkeypatch: pytest.MonkeyPatch) -> None:
    from suanli.api import verifying

    def never(_: object) -> None:
        raise AssertionError("looked for measured points")

    monkeypatch.setattr(verifying, "outside_data", never)
    articles = suanli.verify("articles").result
    monkeypatch.setattr(verifying, "check", lambda _: articles)
    assert suanli.verify().ok
