"""Public traces: the share of the time of products that has FLOPs, and FLOPs that can be computed otherwise."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from suanli.explain.attribute import attribute
from suanli.explain.classify import classify
from suanli.explain.roofline import roofline
from suanli.explain.share import AT_REST, BOTH, COMPILED, EAGER, SHAPES, share
from suanli.formulas import counting
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.trace import Trace
from suanli.readers.traces import read_trace

pytestmark = pytest.mark.shared


@lru_cache(maxsize=4)
def found(folder: Path, name: str) -> tuple[Trace, Attribution]:
    trace = read_trace(folder / "traces" / "files" / name)
    return trace, attribute(trace, classify(trace))


# sample, least share in percent (a survey's figures, by kind of trace), advice
SHARES: list[tuple[str, float, tuple[str, ...]]] = [
    ("tl_h100_bert_small.json.gz", 100, ()),
    ("tl_mi300_ddp_resnet18.json.gz", 100, ()),
    ("tl_mi300_compile_triton.json.gz", 100, ()),
    ("hta_mi250_rocm62_toy.json.gz", 100, ()),
    ("tl_mi300_xdit_sd35.json.gz", 99, ()),
    ("tl_sglang_prefilldecode.json.gz", 95, ()),
    ("tl_jax08_gemm.xplane.pb", 100, ()),
    ("tl_jax08_conv.xplane.pb", 100, ()),
    ("tl_jax_conv_legacy.xplane.pb", 100, ()),
    ("tl_h100_qwen05b.json.gz", 69, (AT_REST,)),
    ("tl_mi300_resnet_actckpt.json.gz", 69, (AT_REST,)),
    ("hta_diff_control_a100.json.gz", 94, ()),
    ("hta_sampled_rank0.json.gz", 94, ()),
    ("hta_sampled_rank1.json.gz", 94, ()),
    ("hta_a100_train_rank0.json.gz", 1, (COMPILED, AT_REST)),
    ("hta_diff_test_v100.json.gz", 1, (COMPILED, AT_REST)),
    ("kineto_tb_resnet50_autograd.json.gz", 71, ()),  # convolutions without strides, by their outputs
    ("kineto_tb_resnet50_nw0.json.gz", 71, ()),
    ("kineto_tb_resnet50_nw0_v2.json.gz", 71, ()),
    ("tl_vllm_decode_graph.json.gz", 3, (EAGER,)),
    ("hta_v100_ns_resolution.json.gz", 0, (SHAPES,)),
    ("hta_alexnet_a100_cudasync.json.gz", 0, (SHAPES,)),
    ("param_linear_kineto.json.gz", 0, (SHAPES,)),
    ("tl_mi210_gpu_only.json.gz", 0, (BOTH,)),
]


@pytest.mark.parametrize(("name", "percent", "advice"), SHARES)
def test_the_share_attributed(shared: Path, name: str, percent: float, advice: tuple[str, ...]) -> None:
    trace, columns = found(shared, name)
    known = share(trace, columns)
    assert known.fraction is not None
    assert known.fraction * 100 >= percent - 1e-9
    assert known.advice == advice
    assert sum(seconds for _, seconds in known.reasons) == pytest.approx(known.matmul_s - known.known_s)
    if percent == 0:
        assert known.fraction == 0  # nothing is claimed where nothing is recorded


ALL = [name for name, _, _ in SHARES]


@pytest.mark.parametrize("name", ALL)
def test_laws_of_every_sample(shared: Path, name: str) -> None:
    trace, columns = found(shared, name)
    assert (columns.flops[~columns.flops_known] == 0).all()
    assert (columns.bytes[~columns.bytes_known] == 0).all()
    assert np.isfinite(columns.flops).all()
    assert (columns.flops >= 0).all()
    assert not columns.flops_known[columns.work_class != WorkClass.MATMUL].any()
    assert ((columns.formula >= 0) == columns.flops_known).all()
    assert not (columns.recompute & columns.backward).any()
    groups = roofline(trace, columns)
    assert sum(group.count for group in groups) == len(trace.work)
    whole = (trace.work.end_ns - trace.work.start_ns).sum() * 1e-9
    assert sum(group.seconds for group in groups) == pytest.approx(whole)


@pytest.mark.parametrize("name", ALL)
def test_every_operator_counts_exactly_once(shared: Path, name: str) -> None:
    """The rows of an operator add up to a whole number: that of its formula."""
    _, columns = found(shared, name)
    rows = columns.flops_known & (columns.op >= 0)
    _, group = np.unique(columns.op[rows], return_inverse=True)
    sums = np.bincount(group, weights=columns.flops[rows])
    assert np.allclose(sums, np.round(sums), rtol=1e-12)


# ResNet-50 at 224²: 4.089 G multiply-adds an image forward, its last product 2048 × 1000 included;
# backward twice that less the first layer's input gradient, which nobody needs: 2 · 112² · 64 · 3 · 49
RESNET50_FORWARD = 2 * 4_089_184_256
RESNET50_STEP = 3 * RESNET50_FORWARD - 2 * 112 * 112 * 64 * 3 * 49


@pytest.mark.parametrize(
    "name",
    ["kineto_tb_resnet50_nw0.json.gz", "kineto_tb_resnet50_autograd.json.gz", "kineto_tb_resnet50_nw0_v2.json.gz"],
)
def test_resnet50_by_hand(shared: Path, name: str) -> None:
    """Six steps of 32 images."""
    _, columns = found(shared, name)
    assert columns.flops.sum() == pytest.approx(6 * 32 * RESNET50_STEP, rel=1e-9)


def test_bert_small_by_hand(shared: Path) -> None:
    """141 tokens, 4 layers of 512 and 2048, head 512 → 512 → 30522, 8 heads of 64 over all pairs."""
    _, columns = found(shared, "tl_h100_bert_small.json.gz")
    layer = 4 * counting.linear_flops(141, 512, 512) + 2 * counting.linear_flops(141, 512, 2048)
    layer += counting.attention_flops(141 * 141, 8, 64, 64)
    head = counting.linear_flops(141, 512, 512) + counting.linear_flops(141, 512, 30522)
    assert columns.flops.sum() == pytest.approx(4 * layer + head, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [
        ("tl_h100_bert_small.json.gz", {"bf16"}),
        ("hta_diff_control_a100.json.gz", {"tf32", "fp32"}),
        ("hta_diff_test_v100.json.gz", {"fp32"}),  # no tensor cores for fp32 there
        ("kineto_tb_resnet50_nw0.json.gz", {"fp32"}),
    ],
)
def test_dtypes(shared: Path, name: str, dtypes: set[str]) -> None:
    assert set(found(shared, name)[1].dtypes) == dtypes


def test_nothing_on_h100_or_mi300x_beats_its_peak(shared: Path) -> None:
    """A share above 1 would be a wrong formula or a wrong peak."""
    for name, peak in (
        ("tl_h100_bert_small", 989.4e12),
        ("tl_mi300_xdit_sd35", 1307.4e12),
        ("tl_h100_qwen05b", 989.4e12),
    ):
        trace, columns = found(shared, f"{name}.json.gz")
        seconds = (trace.work.end_ns - trace.work.start_ns) * 1e-9
        known = columns.flops_known & (seconds > 0)
        assert (columns.flops[known] / seconds[known]).max() < peak


# sample, FLOPs of all runs: sizes as in the compiled modules, times runs
XLA_FLOPS = [
    ("tl_jax08_gemm.xplane.pb", 3 * 2 * (16384 * 1024 * 4096 + 8192 * 4096 * 8192 + 4096**3 + 2048 * 8192 * 2048
                                         + 1024**3 + 256**3)),
    ("tl_jax08_conv.xplane.pb", 8 * 5 * 2 * (5120 * 34 * 31 * 53) * (16 * 1 * 2 * 2)),
    ("tl_jax_conv_legacy.xplane.pb", 5 * 2 * (5120 * 34 * 31 * 53) * (16 * 1 * 2 * 2)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "flops"), XLA_FLOPS)
def test_flops_of_xla_on_gpus(shared: Path, name: str, flops: int) -> None:
    _, attribution = found(shared, name)
    assert float(attribution.flops.sum()) == pytest.approx(flops, rel=1e-12)
    assert set(attribution.formulas) <= {"linear_flops", "conv_flops"}
