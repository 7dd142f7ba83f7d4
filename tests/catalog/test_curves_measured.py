"""The shipped curves against the measurements they were fitted to: the errors the files state, got again.

Needs the folder of shared data and pyarrow. Predictions go through `find_curves`, as a plan's do, and not through the
fitting command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suanli.catalog.curves import DeviceCurves, find_curves
from suanli.catalog.fabrics import fabric, node_fabric

parquet = pytest.importorskip("pyarrow.parquet", reason="reads the kernel times with pyarrow: pip install '.[test]'")
pytestmark = pytest.mark.shared

GPUS = {
    "a100_sxm": "a100-80gb-sxm",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200",
    "b300_sxm": "b300",
    "gb200": "gb200",
    "gb300": "gb300",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-server",
}
NAMES = {"bf16": "bfloat16"}
LINKS = {"a100_sxm": 300e9, "h100_sxm": 450e9, "h200_sxm": 450e9, "l40s": 32e9, "rtx_pro_6000_server": 64e9}


def rows(shared: Path, name: str, *columns: str, **where: str) -> list[Any]:
    """Columns of the kernel times whose other columns equal `where`."""
    filters = [(key, "=", value) for key, value in where.items()]
    table = parquet.read_table(shared / "data" / "kernels" / f"{name}.parquet", columns=list(columns), filters=filters)
    return [table[column].to_numpy() for column in columns]


def engine(curves: DeviceCurves, section: str, dtype: str) -> dict[str, str]:
    name, version = getattr(curves.file, section)[dtype].fit.engine.split(" ")
    return {"engine": name, "engine_version": version}


def errors(predicted: Any, seconds: Any) -> Any:
    return np.abs(predicted / seconds - 1)


# Bounds: the best published fit of this form (8.9 % A100, 7.2 % H100) for 16 bits, the same order elsewhere.
PRODUCTS = [
    *((gpu, "bf16", 0.09 if gpu == "a100_sxm" else 0.075) for gpu in GPUS if gpu != "l40s"),
    ("l40s", "bf16", 0.12),
    ("h100_sxm", "fp8", 0.075),
    ("h200_sxm", "fp8", 0.075),
    ("b200_sxm", "fp8", 0.075),
    ("h100_sxm", "fp8_block", 0.075),
    ("b200_sxm", "fp8_block", 0.075),
    ("b200_sxm", "nvfp4", 0.075),
    ("gb200", "nvfp4", 0.075),
]


@pytest.mark.parametrize(("gpu", "dtype", "bound"), PRODUCTS)
def test_products(shared: Path, gpu: str, dtype: str, bound: float) -> None:
    curves = find_curves(GPUS[gpu])
    which = engine(curves, "matmul", dtype) | {"gpu": gpu, "gemm_dtype": NAMES.get(dtype, dtype)}
    m, n, k, ms = rows(shared, "gemm", "m", "n", "k", "milliseconds", **which)
    large = np.minimum(np.minimum(m, n), k) >= 1024
    if gpu == "l40s" and which["engine"] == "trtllm":  # above the memory rate: artefacts of the cache
        large &= 2 * (m * k + k * n + m * n) / (ms * 1e-3) <= 864e9
    if dtype == "fp8_block" and which["engine"] == "vllm":  # timed eagerly
        large &= ms > 2 * np.quantile(ms, 0.01)
    got = errors(curves.matmul_s(*(each[large] * 1.0 for each in (m, n, k)), dtype=dtype), ms[large] * 1e-3)
    fit = curves.file.matmul[dtype].fit
    assert len(got) == fit.n
    assert got.mean() == pytest.approx(fit.mape_fitted, abs=2e-3)
    assert max(got.mean(), fit.mape_held_out) <= bound


ATTENTION = [
    ("a100_sxm", 0.12),
    ("h100_sxm", 0.12),
    ("h200_sxm", 0.12),
    ("b200_sxm", 0.12),
    ("gb200", 0.12),
    ("gb300", 0.12),
]


@pytest.mark.parametrize(("gpu", "bound"), ATTENTION)
def test_attention(shared: Path, gpu: str, bound: float) -> None:
    curves = find_curves(GPUS[gpu])
    which = engine(curves, "attention", "bf16") | {"gpu": gpu, "attn_dtype": "bfloat16", "kv_cache_dtype": "bfloat16"}
    names = ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "window_size", "milliseconds")
    b, t, h, kv, d, w, ms = (each * 1.0 for each in rows(shared, "prefill_attention", *names, **which))
    w = np.nan_to_num(w)
    use = (t >= 1024) & (d <= 256) & ((w <= 0) | (w >= t))
    b, t, h, kv, d, ms = (each[use] for each in (b, t, h, np.where(kv > 0, kv, h), d, ms))
    got = errors(curves.attention_s(b, h, kv, t, t, d, d), ms * 1e-3)
    fit = curves.file.attention["bf16"].fit
    assert len(got) == fit.n
    assert got.mean() == pytest.approx(fit.mape_fitted, abs=2e-3)
    assert max(got.mean(), fit.mape_held_out) <= bound


@pytest.mark.parametrize("dtype", ["bf16", "fp8_block"])
def test_experts(shared: Path, dtype: str) -> None:
    """Two grouped products and the moving of tokens, balanced routing, on one H100."""
    curves = find_curves("h100-sxm")
    which = engine(curves, "experts", dtype) | {"gpu": "h100_sxm", "moe_dtype": NAMES.get(dtype, dtype)}
    names = ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")
    columns = rows(shared, "moe", *names, "milliseconds", **which, distribution="balanced")
    tokens, hidden, inner, choices, experts, tp, ep, ms = (each * 1.0 for each in columns)
    routed, here, inner = tokens * choices / ep, experts / ep, inner / tp
    use = (routed / here >= 128) & (inner >= 512) & (choices != 22) & (hidden != 2688)  # those have no gate
    tokens, hidden, inner, choices, routed, here = (e[use] for e in (tokens, hidden, inner, choices, routed, here))
    both = curves.grouped_matmul_s(routed, here, 2 * inner, hidden, dtype)
    both += curves.grouped_matmul_s(routed, here, hidden, inner, dtype)
    got = errors(both + curves.routing_s(tokens, choices, routed, hidden, inner, dtype), ms[use] * 1e-3)
    fit = curves.file.experts[dtype].fit
    assert len(got) == fit.n
    assert got.mean() == pytest.approx(fit.mape_fitted, abs=2e-3)
    assert max(got.mean(), fit.mape_held_out) <= 0.12


KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gpu", [gpu for gpu in GPUS if gpu != "l40s"])
def test_collectives(shared: Path, gpu: str, kind: str) -> None:
    """16-bit messages of 1 MiB and more inside a node: 10 %, and 11 % on Blackwell, whose protocols change by jumps."""
    curves = find_curves(GPUS[gpu])
    op = {"all_to_all": "alltoall"}.get(kind, kind)
    n, count, ms = rows(
        shared, "nccl", "num_gpus", "message_size", "milliseconds", gpu=gpu, op_name=op, nccl_dtype="half"
    )
    size = count * 2.0
    large = size >= 2**20
    node = fabric(name=gpu, gpus_per_node=8, link_bytes_per_s=LINKS.get(gpu, 900e9), nics_bytes_per_s=None)
    got = errors(curves.collective_s(kind, size[large], n[large] * 1.0, node), ms[large] * 1e-3)
    blackwell = gpu.startswith(("b", "gb"))
    assert got.mean() <= (0.11 if blackwell else 0.10)
    assert curves.file.collectives[kind].fit.mape_held_out <= (0.11 if blackwell else 0.10)


def test_streaming_weights(shared: Path) -> None:
    curves = find_curves("h100-sxm")
    which = {"gpu": "h100_sxm", "engine": "vllm", "gemm_dtype": "bfloat16"}
    m, n, k, ms = rows(shared, "gemm", "m", "n", "k", "milliseconds", **which)
    moved = 2.0 * (m * k + k * n + m * n)
    use = (m <= 16) & (moved >= 2**27)
    got = errors(curves.memory_s(moved[use]), ms[use] * 1e-3)
    assert got.mean() == pytest.approx(curves.file.memory.fit.mape_fitted, abs=2e-3)
    assert got.mean() <= 0.06


# nccl-tests all_reduce on 4 nodes of 8 B200 over EFA (measured_hardware.csv): bytes, bus bandwidth in GB/s
ACROSS = [
    (2**20, 5.37),
    (2**24, 64.43),
    (2**27, 197.94),
    (2**30, 361.99),
    (2**32, 377.34),
    (2**34, 381.8),
]


@pytest.mark.parametrize(("size", "bus"), ACROSS)
def test_an_all_reduce_across_nodes(size: int, bus: float) -> None:
    measured = 2 * size * 31 / 32 / (bus * 1e9)
    got = find_curves("b200").collective_s("all_reduce", size, 32, node_fabric("p6-b200.48xlarge"))
    assert got == pytest.approx(measured, rel=0.25)
