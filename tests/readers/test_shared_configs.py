"""Every config in the wild that the shared data gives: formula, transformers' class and the right answers agree."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config

pytestmark = [pytest.mark.shared, pytest.mark.torch]

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
FILE = DATA / "model_configs.json"
CONFIGS: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {"absent": {}}
COLUMNS = {"full": "fwd_flops_full_attention", "causal": "fwd_flops_causal_or_windowed"}


def described(name: str) -> dict[str, Any]:
    return CONFIGS[name]["config"] | {"architectures": [CONFIGS[name]["cls"]]}


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / "expected_counts.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["model"] == name]


def test_there_are_nineteen() -> None:
    assert len(CONFIGS) == 19


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_parameters_of_formula_class_and_table(name: str) -> None:
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    pytest.importorskip("transformers")
    from suanli.readers.torch_module.hf_meta import build_model

    model = build_model(described(name))
    total = sum(parameter.numel() for parameter in model.parameters())
    assert type(model).__name__ == CONFIGS[name]["cls"]
    assert read_hf_config(described(name), name).params_total == total
    assert {int(row["params"]) for row in rows(name)} == {total}


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_flops_of_formula_and_table(name: str) -> None:
    """The table leaves the scans of state spaces out; we count them as a row of their own."""
    arch = read_hf_config(described(name), name)
    found = rows(name)
    assert found
    for row in found:
        for convention, column in COLUMNS.items():
            if row[column]:
                workload = Workload(seq=int(row["seq"] or 1), batch=int(row["batch"]))
                ledger = build_ledger(arch, workload, find_convention(convention))
                assert ledger.model_flops - ledger.scan_flops == int(row[column])
