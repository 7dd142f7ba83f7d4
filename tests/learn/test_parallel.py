"""Ways to share a model: bytes by hand, the planner's own figures, and a page of a made-up plan word by word."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import pytest

import suanli
from suanli.catalog.lessons import LANGUAGES
from suanli.learn import teach
from suanli.learn.cluster import BATCH, GPU, GPUS, MIXTURE, MODEL, SEQ, WAYS, Traffic, best, planned
from suanli.nouns.lesson import Boxes, Grid, Lesson
from suanli.nouns.plans import PlannedLayout
from suanli.nouns.result import Result
from suanli.nouns.step import Entry
from suanli.report.lesson_pages import learn_document
from suanli.report.text import document_text
from suanli.units import GIBI

N = 8_030_261_248  # parameters of Llama 3.1 8B
PARTS = (GPUS - 1) / GPUS  # of a tensor that a ring sends
ACTIVATION = 4096 * 4096 * 2  # one sequence, width 4096, bf16

# way → bytes one GPU sends in a step, by hand; gradients in 4 bytes, weights and activations in 2
SENT = {
    "dp": 2 * PARTS * 4 * N,  # an all-reduce
    "zero1": PARTS * 4 * N + PARTS * 2 * N,  # gradients scattered, weights gathered
    "zero3": 2 * PARTS * 2 * N + PARTS * 4 * N,  # weights gathered twice, gradients scattered
    "tp": 8 * 32 * 4 * 2 * PARTS * ACTIVATION,  # micro-batches · layers · places · (scatter and gather)
    "pp": 8 * 2 * ACTIVATION,  # micro-batches, on and back
    "kv": 8 * 32 * 3 * PARTS * (4096 * 8 * 2 * 128 * 2),  # sequences · layers · passes · (8 heads, keys and values)
}


@cache
def taught() -> Lesson:
    return teach("parallel", "en")


@pytest.mark.parametrize("way", SENT)
def test_bytes_by_hand(way: str) -> None:
    assert getattr(Traffic(MODEL), way) == pytest.approx(SENT[way], rel=1e-12)


def test_context_parallel_sums_gradients_too() -> None:
    traffic = Traffic(MODEL)
    assert traffic.cp == traffic.kv + traffic.dp


def test_experts_by_hand() -> None:
    """Qwen3-30B-A3B: 48 layers of 128 experts, 8 of a token, width 2048, experts of 768, three matrices."""
    traffic = Traffic(MIXTURE)
    assert traffic.experts == (128, 8, 48 * 128 * 3 * 2048 * 768)
    assert traffic.tokens == pytest.approx(48 * 4 * PARTS * 8 * (4096 * 2048 * 2))
    dense = suanli.count(MIXTURE).params.total - traffic.experts[2]
    assert traffic.ep == pytest.approx(traffic.tokens + 2 * PARTS * 4 * dense)


@pytest.mark.parametrize("way", ["dp", "zero3", "tp", "pp"])
def test_figures_are_those_of_the_verb_layout(way: str) -> None:
    pins = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "etp": 1, "micro_batch": 1, "zero": 0, "recompute": "none"} | WAYS[way]
    verb = suanli.layout(MODEL, gpu=GPU, gpus=GPUS, global_batch=BATCH, seq=SEQ, pin=pins, top=1,
                         memory_limit="1000GB").layouts[0]  # fmt: skip
    assert taught().values[f"{way}_step_s"] == verb.step_time_s
    assert taught().values[f"{way}_total_bytes"] == verb.memory_bytes["total"]


def test_the_free_choice_fits_and_is_fastest() -> None:
    free = best(80_000_000_000)
    assert free.memory_bytes["total"] <= 80_000_000_000
    fitting = [planned(MODEL, pins) for way, pins in WAYS.items() if way != "ep"]
    assert all(free.step_time_s <= each.step_time_s for each in fitting if each.memory_bytes["total"] <= 80_000_000_000)


def test_memory_and_sends_of_every_way_are_shown() -> None:
    held, sent = [block for block in taught().blocks if isinstance(block, Grid)]
    names = ["DP", "ZeRO-1", "ZeRO-2", "ZeRO-3", "TP", "PP", "CP", "EP"]
    assert [row[0] for row in held.rows] == [row[0] for row in sent.rows] == names
    for row in held.rows:
        assert sum(row[1:6]) == pytest.approx(row[6])
        assert row[7] == ("yes" if row[6] * GIBI <= 80e9 else "no")
    at = {row[0]: row for row in held.rows}
    assert at["ZeRO-1"][3] == pytest.approx(at["DP"][3] / 8, rel=1e-3)  # optimizer states cut in 8
    assert at["ZeRO-2"][2] == pytest.approx(at["DP"][2] / 8, rel=1e-3)
    assert at["CP"][4] == pytest.approx(at["DP"][4] / 8, rel=1e-3)  # activations of an eighth of the positions


def test_only_the_pipeline_has_a_bubble() -> None:
    rows = [block for block in taught().blocks if isinstance(block, Grid)][1].rows
    assert [row[0] for row in rows if row[3] is not None] == ["PP"]


def test_every_entry_of_an_account_is_work_or_waiting() -> None:
    """A new entry of the planner's has to be told which it is."""
    work = {"matmul", "attention", "experts", "memory-bound", "recompute", "launch", "optimizer", "fixed", "bubble"}
    waits = set(import_module("suanli.learn.parallel")._WAITS) | {"tensor parallel across nodes"}
    for way in ("dp", "pp"):
        assert {entry.entry for entry in planned(MODEL, WAYS[way]).account} <= work | waits


def test_every_drawing_has_the_whole_cluster() -> None:
    drawings = [block for block in taught().blocks if isinstance(block, Boxes)]
    assert len(drawings) == 7
    assert all([box.name for box in block.boxes] == [f"GPU {i}" for i in range(GPUS)] for block in drawings)
    pipeline, context, experts = drawings[4:]
    assert [box.lines[0] for box in pipeline.boxes][:2] == ["L 1–4", "L 5–8"]
    assert context.boxes[-1].lines == ("W all", "s 3584", " –4095")
    assert experts.boxes[-1].lines == ("E 112", " –127", "x 7")


def made_up(model: str, pins: dict[str, Any]) -> PlannedLayout:
    """A plan with round figures: fitted profiles change, the page does not."""
    entries = (
        ("matmul", 0.4),
        ("tensor parallel", 0.05),
        ("bubble", 0.1 if "pp" in pins else 0.0),
        ("optimizer", 0.02),
    )
    account = tuple(Entry(name, seconds) for name, seconds in entries)
    memory = {"weights": 10, "gradients": 20, "optimizer": 60, "activations": 15, "logits": 4, "buffers": 1}
    held = {name: size * GIBI // (2 if pins else 1) for name, size in memory.items()}
    axes = {"tp": 1, "pp": 1, "dp": 8, "cp": 1, "ep": 1, "etp": 1, "vpp": 1, "micro_batch": 1, "zero": 0,
            "recompute": "none", "sp": False, "schedule": "1f1b"} | pins  # fmt: skip
    step = sum(seconds for _, seconds in entries)
    return PlannedLayout(
        **axes, gpus=8, step_time_s=step, closed_form_step_time_s=step, played=True,
        step_time_interval_s=(step, step), mfu=0.4, tokens_per_second_per_gpu=1.0,
        memory_bytes={**held, "total": sum(held.values())}, fullest_stage=0, largest_term="optimizer", margin_bytes=0,
        account=account,
    )  # fmt: skip


@pytest.mark.parametrize("lang", LANGUAGES)
def test_page_word_by_word(lang: str, golden: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("suanli.learn.parallel")
    monkeypatch.setattr(module, "planned", made_up)
    monkeypatch.setattr(module, "best", lambda capacity: made_up(MODEL, {"tp": 2, "dp": 4, "zero": 2}))
    found = Result(kind="learn", inputs={}, result=teach("parallel", lang))
    golden(f"learn_parallel_{lang}.txt", document_text(learn_document(found), 80))
