"""`verify` gets published numbers again, and can fail."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from suanli.catalog.claims import article_claims, run_groups
from suanli.catalog.runs import published_runs
from suanli.errors import UnknownNameError
from suanli.formulas import all_formulas
from suanli.nouns.claim import Claim
from suanli.nouns.result import Result
from suanli.verify import SECTIONS, check_claim, claim_inputs, verify, verify_articles, verify_runs

FACTS = Path(__file__).resolve().parents[2] / "shared" / "reference" / "source_facts.md"


@pytest.fixture(scope="module")
def everything():
    return verify()


def test_everything_that_should_hold_does(everything):
    assert [(claim.id, claim.expected, claim.got) for claim in everything.failed] == []
    assert everything.holds


def test_sections_can_be_picked_and_unknown_ones_are_refused():
    assert {claim.section for claim in verify(["articles"]).claims} == {"articles"}
    assert {claim.section for claim in verify(["articles", "models", "articles"]).claims} == {"articles", "models"}
    assert verify([]).claims == ()
    with pytest.raises(UnknownNameError, match="articles"):
        verify(["article"])


def test_json_has_the_contract_s_keys(everything):
    found = json.loads(Result("verify", {}, everything).to_json())["result"]
    assert {"id", "source", "expected", "got", "error", "status"} <= set(found["claims"][0])
    assert {"source", "n", "mape_fitted", "mape_held_out"} <= set(found["summary"][0])
    fitted = [row["section"] for row in found["summary"] if row["mape_fitted"] is not None]
    assert set(fitted) == {"predictions", "serving"}
    assert all(row["why_not_fitted"] for row in found["summary"])


# --- that it can fail ---------------------------------------------------------------------------------------------


CHECKED = [claim for claim in article_claims() if claim.quantity]


@pytest.mark.parametrize("claim", CHECKED, ids=lambda claim: claim.id)
def test_every_claim_fails_when_its_number_is_moved(claim: Claim):
    away = 3 * max(claim.tolerance, claim.article_tolerance, abs(claim.expected) * 1e-6)
    for moved in (claim.expected + away, claim.expected - away):
        assert check_claim(replace(claim, expected=moved)).failed


def test_a_wrong_article_that_is_right_after_all_fails():
    for claim in CHECKED:
        if claim.verdict == "wrong":
            assert check_claim(replace(claim, article=claim.expected, article_tolerance=claim.tolerance * 2 + 1)).failed


def test_an_article_called_right_that_is_not_fails():
    for claim in CHECKED:
        if claim.verdict == "ok" and claim.article:
            assert check_claim(replace(claim, article=claim.article * 1.5 + claim.article_tolerance * 2)).failed


def test_a_claim_without_its_number_fails():
    assert check_claim(Claim(id="x", source="x", section="x", statement="x")).failed


def test_a_failed_claim_reaches_the_verification():
    broken = replace(CHECKED[0], expected=3)
    verification = verify_articles([*CHECKED[1:], broken])
    assert verification.failed == (check_claim(broken),)
    assert not verification.holds
    assert sum(row.failed for row in verification.summary) == 1


def test_a_run_that_should_come_out_and_does_not_fails():
    runs = [r for r in published_runs() if run_groups()[0].holds(r)][:3]
    assert verify_runs(runs).holds
    slower = replace(runs[0], tokens_per_s_per_gpu=runs[0].tokens_per_s_per_gpu * 0.9)
    assert [claim.id for claim in verify_runs([slower, *runs[1:]]).failed] == [runs[0].id]
    shapeless = replace(runs[0], n_layers=None)
    assert [claim.id for claim in verify_runs([shapeless]).failed] == [runs[0].id]


# --- articles -----------------------------------------------------------------------------------------------------


def _claim(name: str):
    return check_claim(next(claim for claim in article_claims() if claim.id == name))


def test_no_claim_is_without_words():
    for claim in article_claims():
        assert claim.statement and claim.source
        assert claim.verdict == "ok" or claim.why, f"{claim.id} does not say why"
        assert not claim.quantity or claim.quantity in all_formulas()


def test_table_5_has_all_eight_rows_to_its_digits():
    found = {name: _claim(f"table5-{name}") for name in (f"{m}-{k}" for m in ("22b", "175b", "530b", "1t") for k in (
        "full-mfu", "full-hfu", "selective-mfu", "selective-hfu", "selective-hfu-counted"))}  # fmt: skip
    assert f"{found['22b-full-mfu'].got:.4f} {found['1t-selective-hfu'].got:.4f}" == "0.3226 0.5701"
    for name, claim in found.items():
        assert claim.tolerance == pytest.approx(0.00005)
        assert not claim.failed
        if name.endswith(("selective-mfu", "selective-hfu")):
            assert abs(claim.got - claim.article) <= 0.002


def test_the_articles_slips_are_shown_with_both_figures():
    wrong = {c.id: c for c in verify(["articles"]).claims if c.status == "article wrong" and c.got is not None}
    assert wrong["streams-1080"].got == pytest.approx(224.16e12, abs=5e9)
    assert wrong["streams-1080"].article == 265e12
    assert _claim("streams-1280").got == pytest.approx(265.67e12, abs=5e9)
    assert wrong["gpt3-gpu-hours"].got == pytest.approx(607031.86, abs=0.005)
    assert all(claim.article is not None and claim.why for claim in wrong.values())


def test_what_has_no_source_is_listed_as_such():
    counts = verify(["articles"]).by_status()
    assert counts["unsupported"] == 4
    assert counts["rule of thumb"] == 2


@pytest.mark.shared
@pytest.mark.skipif(not FACTS.exists(), reason="the shared reference folder is not beside the checkout")
def test_every_bold_number_of_the_facts_has_a_claim():
    text = FACTS.read_text(encoding="utf-8").split("## 3", 1)[1]
    bold = [float(n) for cell in re.findall(r"\*\*([\d.,e+]+)", text) if (n := cell.replace(",", "").strip("."))]
    claims = [c for c in article_claims() if c.expected is not None]
    scales = (1, 0.01, 1e9, 1e12)
    for number in bold:
        near = [c for c in claims for s in scales if abs(number * s - c.expected) <= abs(c.expected) * 1e-3]
        inputs = [c for c in claims if re.search(rf"\b{number:g}\b", str(dict(c.inputs)))]
        assert near or inputs, f"no claim has {number}"


# --- runs and models ----------------------------------------------------------------------------------------------


def test_runs_agree_by_source(everything):
    rows = {row.source: row for row in everything.summary if row.section == "runs"}
    assert rows["all"].n > 800
    assert rows["all"].median_error < 0.0005
    assert rows["all"].within > 0.97 * rows["all"].n
    for source in ("llm-foundry", "dgxc", "megatron-bridge", "megascale", "megatron-lm", "bigscience", "nemo"):
        assert rows[source].median_error < 0.0015, source
    assert rows["mlperf"].n == 0
    assert sum(rows["mlperf"].not_recomputed.values()) == 102
    assert rows["all"].n + sum(rows["all"].not_recomputed.values()) == len(published_runs())


def test_flagged_runs_are_shown_and_do_not_fail(everything):
    flagged = [claim for claim in everything.claims if claim.status == "flagged"]
    assert any(abs(claim.error) > 0.1 for claim in flagged)
    assert not any(claim.failed for claim in flagged)


def test_megascale_s_own_rows_sit_above_the_printed(everything):
    groups = {group.name: group for group in run_groups()}
    own = groups["MegaScale in its Table 2"]
    ids = {run.id for run in published_runs() if own.holds(run)}
    errors = [claim.error for claim in everything.claims if claim.id in ids and claim.error is not None]
    assert len(errors) >= 5
    assert all(0.0005 < error < 0.008 for error in errors)


def test_models_agree_to_the_last_digit(everything):
    models = [claim for claim in everything.claims if claim.section == "models"]
    assert Counter(claim.status for claim in models)["not counted yet"] == 0
    assert all(claim.error == 0 for claim in models if claim.got is not None)
    assert {claim.id for claim in models if claim.convention == "causal"} > {"flops-llama-3.1-8b-8192-causal"}


def test_sections_are_those_asked_for():
    assert tuple(SECTIONS) == ("articles", "runs", "models", "predictions", "scaling", "serving")


def test_inputs_of_a_claim_are_worked_out():
    """Nested quantities become numbers: 2 · 175e9 FLOPs, an eighth of $19.22."""
    assert claim_inputs("price-1000") == {
        "flops_per_token": 350_000_000_000, "peak_flop_per_s": 312e12, "mfu": 0.213, "price": 19.22 / 8,
    }  # fmt: skip
    with pytest.raises(KeyError):
        claim_inputs("no such claim")
