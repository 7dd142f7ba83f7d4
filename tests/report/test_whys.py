"""Every number of a report can be asked where it comes from: a table test over a real result of every verb."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.formulas import all_formulas
from suanli.nouns.result import Result
from suanli.report import document_of
from suanli.report.document import Facts, Table
from suanli.report.pages import PAGES
from suanli.report.whys import _table, reason_of, rule_of
from suanli.why import QUANTITIES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RUN = {"gpu": "h100-sxm", "seq": 8192, "tokens_per_second": 8000}
PLAN: dict[str, Any] = {"tokens": "300B", "gpu": "a100-80gb-sxm", "gpus": 1024, "mfu": 0.44}
RESULTS: dict[str, Any] = {
    "count": lambda: suanli.count("llama-3.1-8b", phase="train"),
    "count, a mixture": lambda: suanli.count("mixtral-8x7b", by="kind"),
    "count, swept": lambda: suanli.count("gpt2", symbolic=True, sweep="seq=128:512:128"),
    "count, like": lambda: suanli.count("gpt2", like="megatron", phase="train"),
    "compare": lambda: suanli.compare("gpt2", tools="megatron,palm"),
    "mfu": lambda: suanli.mfu("llama-3-8b", memory_used="60GB", **RUN),
    "train": lambda: suanli.train("gpt3-175b", power="400W", carbon="0.4kg/kWh", **PLAN),
    "train, a range": lambda: suanli.train("gpt3-175b", **{**PLAN, "mfu": "38%..46%"}),
    "layout": lambda: suanli.layout("gpt2", gpu="h100-sxm", gpus=8, global_batch=64, pin="pp=1", why="1 2"),
    "infer": lambda: suanli.infer("llama-3.1-8b", gpu="h100-sxm", concurrency=16),
    "infer, stages": lambda: suanli.infer("llama-3.1-8b", gpu="h100-sxm", rate=2, stages="pre=5ms:4", chunk=512),
    "infer, searched": lambda: suanli.infer("llama-3.1-8b", gpu="h100-sxm,h200", rate=20, tpot="20ms"),
    "scale": lambda: suanli.scale(points="64:1.0,128:1.9,256:3.5,512:6.1", metric="tokens_per_s", project=1024),
    "goodput": lambda: suanli.goodput(gpus=16384, mtbf="50000h", checkpoint_save="30s", restart="5min", days=54),
    "goodput, a preset": lambda: suanli.goodput(
        gpus=16384, failures="llama-3-405b", checkpoint_save="30s", restart="5min"
    ),
    "explain": lambda: suanli.explain(EXAMPLES / "step.json", gpu="h100-sxm"),
    "verify": lambda: suanli.verify("articles"),
    "why": lambda: suanli.why("mfu", "llama-3-8b", **RUN),
    "gpus": lambda: suanli.gpus("h100-sxm"),
    "gpus, many": lambda: suanli.gpus(filter="hopper"),
    "models": lambda: suanli.models("gpt2"),
    "models, many": lambda: suanli.models(filter="gpt2"),
    "calibrate": lambda: suanli.calibrate(EXAMPLES / "runs.csv", stack="nemo"),
    "learn": lambda: suanli.learn("backprop"),
    "rerun": lambda: suanli.rerun(EXAMPLES / "gpt2.json"),
    "diff": lambda: suanli.diff(EXAMPLES / "gpt2.json", EXAMPLES / "gpt2-longer.json"),
}  # fmt: skip
NUMBER = re.compile(r"[-+~$≤≥<>]?\d")


@cache
def result_of(name: str) -> Result:
    found: Result = RESULTS[name]()
    return found


def numbers(result: Result) -> Iterator[tuple[str, str, str]]:
    """Block, label and column of everything that is shown as a number."""
    for block in document_of(result).blocks:
        if isinstance(block, Facts):
            yield from ((block.title, label, "") for label, value, _ in block.rows if NUMBER.match(value))
        elif isinstance(block, Table):
            for row in block.rows:
                yield from (
                    (block.title, row[0], column)
                    for place, (column, cell) in enumerate(zip(block.columns, row, strict=False))
                    if block.aligned_right(place) and NUMBER.match(cell)
                )


@pytest.mark.parametrize("name", RESULTS)
def test_every_number_has_its_note(name: str) -> None:
    result = result_of(name)
    asked = list(dict.fromkeys(numbers(result)))
    assert asked or name in ("why", "rerun")
    missing = [place for place in asked if reason_of(result, *place) is None]
    assert missing == []
    for place in asked:
        note = reason_of(result, *place)
        assert note is not None
        assert note.doc, place
        assert note.formula, place
        assert note.source or result.kind in ("why", "learn", "compare", "verify", "gpus", "calibrate", "diff"), place


def test_every_verb_is_in_the_table() -> None:
    assert set(_table()) == set(PAGES)
    assert {result_of(name).kind for name in RESULTS} >= set(PAGES) - {"summarise"}


def test_the_table_names_what_exists() -> None:
    rules = [
        rule for several in _table().values() for section in several for key, rule in section.items() if key != "block"
    ]
    assert [rule["f"] for rule in rules if "f" in rule and rule["f"] not in all_formulas()] == []
    assert [rule["q"] for rule in rules if "q" in rule and rule["q"] not in QUANTITIES] == []
    assert [rule for rule in rules if not {"d", "p", "q"} & set(rule)] == []
    assert [rule for rule in rules if not {"f", "x", "q"} & set(rule)] == []
    assert {key for rule in rules for key in rule} <= set("dpfqxvs")


def test_every_quantity_of_why_is_told_by_it() -> None:
    rules = [
        rule for several in _table().values() for section in several for key, rule in section.items() if key != "block"
    ]
    assert {rule["q"] for rule in rules if "q" in rule} == set(QUANTITIES)


def test_fields_named_are_there() -> None:
    """A path that a rule names is a field of a real result with its doc, or one of the options."""
    for name in RESULTS:
        result = result_of(name)
        if "," in name:
            continue
        for place in dict.fromkeys(numbers(result)):
            rule = rule_of(result.kind, *place)
            assert rule is not None
            if "p" in rule and "d" not in rule:
                note = reason_of(result, *place)
                assert note is not None and len(note.doc) > 3, (name, place)


def test_share_with_a_registered_formula() -> None:
    """Numbers whose formula is one of the registry, or of suanli.why: most of those that are worked out."""
    found = [(result_of(name).kind, rule_of(result_of(name).kind, *place)) for name in RESULTS
             for place in dict.fromkeys(numbers(result_of(name)))]  # fmt: skip
    worked = [rule for kind, rule in found if kind not in ("learn", "verify", "explain", "why")]
    known = [rule for rule in worked if rule is not None and ({"f", "q"} & set(rule))]
    assert len(known) / len(worked) > 0.5


# number asked about → what its note must say: doc, formula, a value put in, a part of the source
SAID = [
    ("mfu", ("Utilisation", "MFU", ""), "fraction", "X/P", "flop_per_s", ""),
    ("count", ("Parameters", "total", ""), "", "Σ over the layers", "model.embed_tokens", ""),
    ("count", ("Memory of the whole model, in one piece", "weights", ""), "", "N·bits/8", "params", ""),
    ("train", ("Time", "GPU-hours", ""), "", "F/(P·MFU)/3600", "peak_flop_per_s", ""),
    ("goodput", ("Reliability", "availability", ""), "", "M/(M + R)", "mtti_s", ""),
    ("gpus", ("Peaks", "bf16", ""), "dense peak of one package", "as it stands", "name", ""),
]


@pytest.mark.parametrize(
    ("name", "place", "doc", "formula", "value", "source"), SAID, ids=[str(each[1][1]) for each in SAID]
)
def test_what_notes_say(
    name: str, place: tuple[str, str, str], doc: str, formula: str, value: str, source: str
) -> None:
    note = reason_of(result_of(name), *place)
    assert note is not None
    assert note.formula == formula
    assert value in dict(note.values), note.values
    assert note.title == f"{place[0]}: {place[1]}"
    assert doc in note.doc and source in note.source
    assert note.legend or name in ("gpus", "count")


def test_numbers_put_in_are_those_of_the_result() -> None:
    result = result_of("mfu")
    note = reason_of(result, "Utilisation", "MFU")
    assert note is not None
    assert dict(note.values)["peak_flop_per_s"] == f"{result.peak.flop_per_s:,}"


def test_nothing_is_known_of_another_block() -> None:
    assert reason_of(result_of("mfu"), "No such block", "MFU") is None
    assert reason_of(Result(kind="none", inputs={}, result=None), "Times", "x") is None


def test_without_the_nouns_the_formula_is_still_told() -> None:
    result = result_of("mfu")
    bare = Result(kind="mfu", inputs=result.inputs, result=result.result, sources=result.sources)
    note = reason_of(bare, "Utilisation", "MFU")
    assert note is not None
    assert note.formula == "X/P"
