"""The default utilisation: published runs on the same GPU, nearest in size, named."""

from __future__ import annotations

import pytest

from suanli.catalog.conventions import find_convention
from suanli.catalog.devices import find_device
from suanli.catalog.runs import published_runs
from suanli.errors import InputError
from suanli.plan.typical import NEAREST, typical_mfu

CAUSAL = find_convention("causal")


def test_median_of_named_runs() -> None:
    found = typical_mfu(405_853_388_800, find_device("h100-sxm"), "bf16", CAUSAL, 16_384)
    assert len(found.runs) == NEAREST
    assert found.low <= found.mfu <= found.high
    assert 0.35 < found.mfu < 0.55  # Llama 3 reports 0.41 there
    rows = {run.id: run for run in published_runs()}
    assert all("H100" in rows[id_].gpu for id_ in found.runs)
    assert "published runs nearest in size and GPUs on H100" in found.sentence


def test_small_models_have_small_neighbours() -> None:
    rows = {run.id: run for run in published_runs()}
    found = typical_mfu(7 * 10**9, find_device("a100-80gb-sxm"), "bf16", CAUSAL)
    sizes = [rows[id_].params_total_b or 0 for id_ in found.runs]
    assert max(sizes) < 30


def test_never_from_another_gpu() -> None:
    with pytest.raises(InputError) as caught:
        typical_mfu(10**9, find_device("rtx-4090-d"), "bf16", CAUSAL)
    assert "no bf16 training run on rtx-4090-d is published with a rate and a shape" in str(caught.value)
    assert "never from another" in str(caught.value)
