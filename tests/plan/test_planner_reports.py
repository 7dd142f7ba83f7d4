"""What users reported of other planners, tried on this one: reports that no test of a part holds already."""

from __future__ import annotations

import pytest

import suanli
from suanli.catalog.fabrics import node_fabric
from suanli.catalog.profiles import find_profile
from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout
from suanli.plan.step_time import Job, features
from suanli.readers.paper import read_paper_decoder

# feed-forward width and key/value heads as they are, each by hand: forward multiply-adds a token of one layer, times 2
WIDTHS = [
    # Llama-2-70B: q and o 8192², k and v 1,024 wide (8 heads of 128), three matrices of 28,672
    ({"hidden": 8192, "heads": 64, "kv_heads": 8, "ffn": 28672, "gated": True},
     2 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672)),
    # the same with as many key/value heads as heads and a feed-forward of four widths: what was assumed
    ({"hidden": 8192, "heads": 64, "ffn": 32768, "gated": False}, 2 * (4 * 8192 * 8192 + 2 * 8192 * 32768)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "expected"), WIDTHS)
def test_real_widths_and_groups_are_counted(shape: dict[str, object], expected: int) -> None:
    """Megatron-LM PR #682: feed-forward width and groups were left out, up to 30 TFLOP/s a GPU off."""
    arch = read_paper_decoder(shape | {"num_layers": 1, "vocab": 32000, "tied": False}, "one layer")
    job = Job(arch=arch, seq=4096, dtype="bf16", curves=_Counted(), fabric=node_fabric("hgx-h100"),
              traits=find_profile("nemo").traits)  # fmt: skip
    found = features(job, Grid.of([Layout()]), 1.0).stages.slowest
    head = 2 * 8192 * 32000
    assert found[0, 0, 0] == pytest.approx(4096 * (expected + head))


class _Counted:
    """A device on which a product takes as many seconds as it has operations, and nothing else takes any."""

    def matmul_s(self, m, n, k, count=1, dtype="bf16"):  # type: ignore[no-untyped-def]
        return 2.0 * m * n * k * count

    def attention_s(self, batch, heads, *rest):  # type: ignore[no-untyped-def]
        return 0.0 * batch * heads

    def memory_s(self, moved):  # type: ignore[no-untyped-def]
        return 0.0 * moved

    def collective_s(self, kind, size, ranks, fabric, near=None):  # type: ignore[no-untyped-def]
        return 0.0 * size * ranks


def test_causal_and_full_attention_are_both_told() -> None:
    """maxtext PR #537, modular #5557: which of the two a rate is of. Llama-3-8B at 8,192: 32 layers of 4,096, forward 4
    multiply-adds' operations a pair and width; half the pairs and the diagonal where causal.
    """
    found = suanli.mfu("llama-3-8b", gpu="h100-sxm", seq=8192, tokens_per_second=8000)
    causal, full = (found.by_convention[name].flops_per_token for name in ("causal", "full"))
    pairs = 8192 - (8192 + 1) / 2
    assert full - causal == pytest.approx(3 * 32 * 4 * 4096 * pairs, rel=1e-3)


def test_confidence_is_stated_for_every_device() -> None:
    """AIConfigurator #1205, #1396: 30 to 45 % off on devices and modes it said nothing about. An interval stands on
    every step, wider where the stack was never seen, and what lies beyond the runs is said.
    """
    asked = {"gpus": 8, "global_batch": 64, "seq": 2048, "top": 1, "pin": "cp=1"}
    seen = suanli.layout("llama-3.1-8b", gpu="h100-sxm", stack="nemo", **asked)
    unseen = suanli.layout("llama-3.1-8b", gpu="b200-sxm", stack="nemo", **asked)
    for plan in (seen, unseen):
        low, high = plan.layouts[0].step_time_interval_s
        assert low < plan.layouts[0].step_time_s < high
    assert not seen.extrapolates
    assert any("b200" in each for each in unseen.extrapolates)
