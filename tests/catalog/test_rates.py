"""The rate a published row means: which printed figure comes first, and what each is divided by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from suanli.catalog.runs import measured_rate_per_gpu, rate_per_gpu
from suanli.nouns.run import PublishedRun

BARE = PublishedRun(
    id="x-1", group="x", model="net", task="pretraining", gpu="H100", source="s", check_status="ok", flag=False
)
STEP = {"gpu_count": 8, "seq_len": 100, "gbs_seqs": 16, "step_time_s": 4.0}
DAYS = {"tokens_trained_b": 0.864, "days": 10.0, "gpu_count": 5}

# what is printed: rate while running, rate in any case
RATES: list[tuple[dict[str, Any], float | None, float | None]] = [
    ({}, None, None),
    ({"tokens_per_s_per_gpu": 7.0}, 7.0, 7.0),
    ({"tokens_per_s": 80.0, "gpu_count": 8}, 10.0, 10.0),
    ({"tokens_per_s": 80.0}, None, None),
    (STEP, 16 * 100 / 4 / 8, 50.0),
    ({**STEP, "step_time_s": None}, None, None),
    ({**STEP, "gbs_seqs": None}, None, None),
    ({**STEP, "seq_len": None}, None, None),
    ({**STEP, "gpu_count": None}, None, None),
    ({"samples_per_s": 4.0, "seq_len": 100, "gpu_count": 8}, 50.0, 50.0),
    ({"samples_per_s": 4.0, "gpu_count": 8}, None, None),
    # a programme with its restarts: 0.36e9 tokens in 100 hours of one accelerator
    ({"tokens_trained_b": 0.36, "gpu_hours": 100.0}, None, 1000.0),
    ({"tokens_trained_b": 0.36}, None, None),
    (DAYS, None, 0.864e9 / (10 * 86_400) / 5),
    ({**DAYS, "gpu_count": None}, None, None),
    # the most direct figure comes first
    ({**STEP, "tokens_per_s_per_gpu": 7.0, "tokens_per_s": 80.0}, 7.0, 7.0),
    ({**STEP, "tokens_per_s": 80.0}, 10.0, 10.0),
    ({**STEP, "samples_per_s": 999.0}, 50.0, 50.0),
    ({**STEP, **DAYS, "gpu_count": 8, "gpu_hours": 1.0}, 50.0, 50.0),
    ({**DAYS, "gpu_hours": 240.0}, None, 1000.0),  # hours before days
]


@pytest.mark.parametrize(("printed", "running", "any_case"), RATES)
def test_rates(printed: dict[str, Any], running: float | None, any_case: float | None) -> None:
    row = replace(BARE, **printed)
    assert measured_rate_per_gpu(row) == (None if running is None else pytest.approx(running))
    assert rate_per_gpu(row) == (None if any_case is None else pytest.approx(any_case))


@pytest.mark.parametrize(
    ("used", "bf16", "peak"), [(None, None, None), (None, 989.0, 989.0), (312.0, 989.0, 312.0), (312.0, None, 312.0)]
)
def test_the_peak_a_source_divides_by_comes_first(used: float | None, bf16: float | None, peak: float | None) -> None:
    assert replace(BARE, peak_tflops_used=used, peak_tflops_bf16=bf16).peak_tflops == peak
