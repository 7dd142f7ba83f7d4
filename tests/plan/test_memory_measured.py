"""Measured peaks against the estimate: SimuMax's B200 rows, torchtitan's, BLOOM's tune-up. Run with -s to see errors.

No row fits a term of the first set; which terms there are was decided with it in view. Two numbers are fitted, and
said to be in `catalog/stacks.toml`: what the allocator reserves, and the context; here they are also fitted without
the row, or the shape of model, that they are tried on.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean, median

import pytest

from suanli.catalog.stacks import find_stack
from suanli.nouns.arch import Arch, Module
from suanli.nouns.estimate import MemoryEstimate, StageMemory
from suanli.nouns.layers import Layer
from suanli.nouns.layout import Layout
from suanli.nouns.workload import Workload
from suanli.plan.memory import memory_estimate
from suanli.readers.model import read_model
from suanli.readers.paper import read_paper_decoder

pytestmark = pytest.mark.shared

GIB, GB = 2**30, 10**9
Row = dict[str, str]


def rows_of(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shallower(arch: Arch, layers: int) -> Arch:
    def cut(node: Module | Layer) -> Module | Layer:
        if not isinstance(node, Module):
            return node
        indices = range(layers) if node.block else node.indices
        return replace(node, children=tuple(map(cut, node.children)), indices=indices)

    root = cut(arch.root)
    assert isinstance(root, Module)
    return replace(arch, root=root)


def told(name: str, errors: dict[str, float]) -> None:
    worst = max(errors, key=lambda row: abs(errors[row]))
    figures = [abs(error) for error in errors.values()]
    text = f"\n{name}: n {len(errors)}, MAPE {mean(figures):.2%}, median {median(figures):.2%}, "
    text += f"bias {mean(errors.values()):+.2%}, worst {errors[worst]:+.2%} ({worst})"
    print(text)  # noqa: T201 (the figures this file is for)


# --- SimuMax ------------------------------------------------------------------------------------------------------


def test_simumax_b200(shared: Path) -> None:
    """31 rows, GiB allocated by the fullest rank: Megatron-core with its cross-entropy fused (`cef` in the names)."""
    errors = {}
    for row in rows_of(shared / "data" / "measured_memory.csv"):
        number = {name: int(row[name]) for name in ("tp", "pp", "cp", "dp", "l", "seq", "mbc", "micro_batch")}
        arch = shallower(read_model({"70b": "llama-3-70b", "405b": "llama-3.1-405b"}[row["model"]]), number["l"])
        degrees = {name: number[name] for name in ("tp", "pp", "cp", "dp", "micro_batch")}
        layout = Layout(**degrees, sp=number["tp"] > 1, zero=1, recompute=row["recompute"])
        found = memory_estimate(
            arch, Workload(phase="train", seq=number["seq"]), layout, find_stack("megatron-core"),
            global_batch=number["mbc"] * number["dp"], fused_loss=True,
        )  # fmt: skip
        most = max(stage.allocated for stage in found.stages) / GIB
        errors[row["id"]] = most / float(row["measured_alloc_GiB"]) - 1
    told("SimuMax B200", errors)
    assert len(errors) == 31
    assert mean(map(abs, errors.values())) < 0.015  # the bar is 3 %
    assert max(map(abs, errors.values())) < 0.02


# --- torchtitan ---------------------------------------------------------------------------------------------------

# model, whether the loss was compiled: it was not in December 2024 (a comment in the trainer of that time says so)
TITAN = {"LLAMA3-70B": ("llama-3-70b", False), "QWEN3-8B": ("qwen3-8b", True)}
TITAN_DTYPES = {"float8": "fp8", "nvfp4 (bf16 tail)": "nvfp4"}


@cache
def torchtitan(path: Path) -> tuple[tuple[str, float, StageMemory], ...]:
    """Rows with pp = 1: id, GiB reserved, estimate."""
    found = []
    for row in rows_of(path):
        if row["group"] != "torchtitan" or not row["mem_peak_gb"] or row["pp"] != "1":
            continue
        model, compiled = TITAN[row["model"]]
        tp, dp = int(row["tp"]), int(row["dp"])
        recompute = {"full": "full", "selective op": "selective"}[row["recompute"]]
        layout = Layout(tp=tp, dp=dp, sp=tp > 1, zero=3, micro_batch=int(row["mbs_seqs"]), recompute=recompute)
        dtype = TITAN_DTYPES.get(row["precision"], row["precision"])
        workload = Workload(phase="train", seq=int(row["seq_len"]), dtype=dtype)
        estimate = memory_estimate(read_model(model), workload, layout, find_stack("torchtitan"),
                                   global_batch=int(row["gbs_seqs"]), fused_loss=compiled)  # fmt: skip
        found.append((row["id"], float(row["mem_peak_gb"]), estimate.stages[0]))
    return tuple(found)


def test_torchtitan_reserved(shared: Path) -> None:
    rows = torchtitan(shared / "data" / "published_runs.csv")
    errors = {name: stage.reserved / GIB / measured - 1 for name, measured, stage in rows}
    told("torchtitan, pp 1", errors)
    assert len(errors) == 5
    assert mean(map(abs, errors.values())) < 0.075  # the bar is 10 %


def test_torchtitan_reserve_without_the_row(shared: Path) -> None:
    """The reserve is the one fitted number: the median of reserved over allocated, of the other rows."""
    rows = torchtitan(shared / "data" / "published_runs.csv")
    ratios = {name: measured * GIB / stage.allocated for name, measured, stage in rows}
    shipped = find_stack("torchtitan").reserve_fraction
    assert abs(median(ratios.values()) - 1 - shipped) < 0.02
    errors = {name: median(ratios[other] for other in ratios if other != name) / ratios[name] - 1 for name in ratios}
    told("torchtitan, reserve fitted without the row", errors)
    assert mean(map(abs, errors.values())) < 0.10


# --- BLOOM --------------------------------------------------------------------------------------------------------


@cache
def bloom(path: Path) -> tuple[tuple[str, str, float, MemoryEstimate], ...]:
    """Tune-up rows with a shape: id, shape, bytes read, estimate."""
    found = []
    for row in rows_of(path):
        if row["group"] != "bigscience" or not row["mem_peak_gb"] or not row["n_layers"]:
            continue
        names = ("n_layers", "hidden", "heads", "ffn", "vocab", "seq_len", "tp", "pp", "dp", "mbs_seqs", "gbs_seqs")
        number = {name: int(row[name]) for name in names}
        arch = read_paper_decoder(
            {
                "num_layers": number["n_layers"], "hidden": number["hidden"], "heads": number["heads"],
                "kv_heads": number["heads"], "head_dim": number["hidden"] // number["heads"], "ffn": number["ffn"],
                "vocab": number["vocab"], "gated": False, "norm": "layernorm", "tied": True, "learned_positions": True,
                "max_positions": number["seq_len"], "attention_bias": True, "mlp_bias": True,
            },
            row["model"],
        )  # fmt: skip
        layout = Layout(tp=number["tp"], pp=number["pp"], dp=number["dp"], zero=1, micro_batch=number["mbs_seqs"],
                        recompute=row["recompute"])  # fmt: skip
        each = layout.dp * layout.micro_batch
        batch = max(1, number["gbs_seqs"] // each) * each  # some global batches are rounded in the log
        workload = Workload(phase="train", seq=number["seq_len"], dtype=row["precision"])
        estimate = memory_estimate(arch, workload, layout, find_stack("deepspeed"), global_batch=batch)
        shape = f"{row['n_layers']} × {row['hidden']} {row['precision']}"
        found.append((row["id"], shape, float(row["mem_peak_gb"]) * GB, estimate))
    return tuple(found)


def test_bloom_tune_up(shared: Path) -> None:
    rows = bloom(shared / "data" / "published_runs.csv")
    errors = {name: estimate.total / measured - 1 for name, _, measured, estimate in rows}
    told("BLOOM tune-up", errors)
    assert len(errors) == 46
    assert median(map(abs, errors.values())) < 0.04  # the bar is 6 %


def test_bloom_allowance_without_the_shape(shared: Path) -> None:
    """Reserve and context fitted on the other shapes of model (layers × width, dtype)."""
    rows = bloom(shared / "data" / "published_runs.csv")
    points = [(shape, max(stage.allocated for stage in e.stages), measured) for _, shape, measured, e in rows]
    errors = {}
    for left_out in {shape for shape, *_ in points}:
        reserve, context = fitted([(mine, theirs) for shape, mine, theirs in points if shape != left_out])
        for (name, shape, measured, _), (_, mine, _) in zip(rows, points, strict=True):
            if shape == left_out:
                errors[name] = (mine * (1 + reserve) + context) / measured - 1
    told("BLOOM tune-up, allowance fitted without the shape", errors)
    assert len(errors) == 46
    assert median(map(abs, errors.values())) < 0.04


def fitted(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Reserve and context of the least mean relative error, on a grid of 1 % and 1/4 GiB."""

    def error(reserve: float, context: float) -> float:
        return mean(abs((mine * (1 + reserve) + context) / theirs - 1) for mine, theirs in points)

    grid = [(each / 100, quarter * GIB / 4) for each in range(31) for quarter in range(33)]
    return min(grid, key=lambda pair: error(*pair))


def test_the_bar_can_be_missed(shared: Path) -> None:
    """Without the allowances the BLOOM rows are off by a sixth, so that the bar means something."""
    rows = bloom(shared / "data" / "published_runs.csv")
    assert median(abs(estimate.fullest.allocated / measured - 1) for _, _, measured, estimate in rows) > 0.15
