"""`--like` against what the real tools said in the shared study of counters, row by row, to the last FLOP."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from suanli.catalog.presets import find_preset
from suanli.compare.like import predict
from suanli.compare.peers import MACS, META, PEERS
from suanli.compare.rules import TABLES
from suanli.compare.runner import Runner
from suanli.units import GIBI

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.shared]

SPELLED = {"fcm": "flop_counter_mode", "ptflops_aten": "ptflops-aten"}
QUICK = ["bert-base", "gpt2", "resnet50"]
LONGER = [
    "t5-small", "llama-2-7b", "llama-3.1-8b", "llama-2-70b", "mistral-7b", "qwen2.5-7b", "gemma-2-9b", "mixtral-8x7b",
    "deepseek-v2", "deepseek-v3", "gpt-oss-20b", "whisper-small", "vit-b16", "resnet152",
]  # fmt: skip
# A traced graph multiplies lengths, where keys are repeated for grouped queries: a few FLOPs that no rule knows.
LENGTHS = ("torchprofile", 512)


def description(model: str, seq: int, shared: Path) -> dict[str, Any]:
    if model.startswith("resnet"):
        config, head = (
            find_preset(model.replace("resnet", "resnet-"), "MODEL").config,
            "AutoModelForImageClassification",
        )
    else:
        told = json.loads((shared / "data" / "model_configs.json").read_text(encoding="utf-8"))[model]
        config, head = {**told["config"], "architectures": [told["cls"]]}, None
    return {"form": "config", "config": dict(config), "head": head, "where": model, "batch": 1, "seq": seq}


def rows_of(model: str, shared: Path) -> list[dict[str, str]]:
    with (shared / "data" / "counter_results.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == model and row["fwd_flops"]]
    return [row for row in rows if SPELLED.get(row["tool"], row["tool"]) in TABLES]


def differences(model: str, shared: Path) -> tuple[list[tuple[str, str, str, int]], int]:
    """Rows that differ, and how many there are."""
    rows = rows_of(model, shared)
    wrong = []
    for seq in {row["seq"] for row in rows}:
        with Runner(description(model, int(seq), shared), 300.0, 8 * GIBI) as runner:
            record = runner.ask("record", META)
        for row in (row for row in rows if row["seq"] == seq):
            tool = SPELLED.get(row["tool"], row["tool"])
            said = predict(tool, record["calls"], row["device"], batch=1)
            off = said.total * (2 if PEERS[tool].unit == MACS else 1) - int(row["fwd_flops"])
            if off:
                wrong.append((tool, row["device"], seq, off))
    return wrong, len(rows)


def check(model: str, shared: Path) -> None:
    wrong, count = differences(model, shared)
    sys.stdout.write(f"{model}: {count - len(wrong)} of {count} rows agree exactly; {wrong}\n")
    assert count >= 7
    assert all(tool == LENGTHS[0] and abs(off) <= LENGTHS[1] for tool, _, _, off in wrong), wrong


@pytest.mark.parametrize("model", QUICK)
def test_the_same_as_the_tools_said(model: str, shared: Path) -> None:
    check(model, shared)


@pytest.mark.full
@pytest.mark.parametrize("model", LONGER)
def test_the_same_as_the_tools_said_of_large_models(model: str, shared: Path) -> None:
    check(model, shared)
