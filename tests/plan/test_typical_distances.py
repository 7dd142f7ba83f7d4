"""Which published runs count as near: distances by hand, who is comparable, what the sentence says."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median

import pytest

from suanli.catalog.conventions import find_convention
from suanli.catalog.devices import find_device
from suanli.catalog.runs import published_runs
from suanli.errors import InputError
from suanli.nouns.run import PublishedRun
from suanli.plan import typical
from suanli.plan.typical import _comparable, _devices_meant, _distance, _mfu, typical_mfu

CAUSAL = find_convention("causal")
H100, A100 = find_device("h100-sxm"), find_device("a100-80gb-sxm")

# size and GPUs of a run, size and GPUs asked for: distance
DISTANCES = [
    (7e9, None, 7 * 10**9, None, 0.0),
    (14e9, None, 7 * 10**9, None, math.log(2)),
    (7e9, None, 14 * 10**9, None, math.log(2)),  # as far down as up
    (7e9, 64, 7 * 10**9, 64, 0.0),
    (7e9, 64, 7 * 10**9, 1024, math.log(16) / 4),  # sixteen times the GPUs is as far as twice the size
    (7e9, 1024, 7 * 10**9, 64, math.log(2)),
    (14e9, 128, 7 * 10**9, 64, math.log(2) * 1.25),
    (14e9, 128, 7 * 10**9, None, math.log(2)),  # GPUs not asked for
    (14e9, None, 7 * 10**9, 64, math.log(2)),  # GPUs not printed
]


@pytest.mark.parametrize(("size", "count", "params", "gpus", "distance"), DISTANCES)
def test_distances(size: float, count: int | None, params: int, gpus: int | None, distance: float) -> None:
    assert _distance(size, count, params, gpus) == pytest.approx(distance)


RUN = PublishedRun(
    id="x-1", group="x", model="net", task="pretraining", gpu="H100 SXM", source="s", check_status="ok", flag=False,
    precision="BF16", params_total_b=7.0, peak_tflops_bf16=1000.0, gpu_count=8,
)  # fmt: skip

# what is changed of a bf16 pre-training on H100 SXM; device, dtype: whether it may be compared
COMPARABLE = [
    ({}, "h100-sxm", "bf16", True),
    ({"precision": "fp16"}, "h100-sxm", "bf16", True),  # the same peak
    ({"precision": "FP16"}, "h100-sxm", "fp16", True),
    ({"precision": "bf16"}, "h100-sxm", "fp16", True),
    ({"precision": "fp8"}, "h100-sxm", "bf16", False),
    ({"precision": "bf16+fp8"}, "h100-sxm", "bf16", False),
    ({"precision": "bf16+fp8"}, "h100-sxm", "fp8", True),
    ({"precision": "bf16"}, "h100-sxm", "fp8", False),
    ({"precision": "fp32"}, "h100-sxm", "fp32", True),
    ({"precision": None}, "h100-sxm", "bf16", False),
    ({"task": "fine-tuning"}, "h100-sxm", "bf16", False),
    ({"task": "pretrain (continued)"}, "h100-sxm", "bf16", True),
    ({"gpu": "A100 80GB SXM"}, "h100-sxm", "bf16", False),
    ({"gpu": "no such machine"}, "h100-sxm", "bf16", False),
]


@pytest.mark.parametrize(("changed", "device", "dtype", "comparable"), COMPARABLE)
def test_who_is_comparable(changed: dict[str, str], device: str, dtype: str, comparable: bool) -> None:
    assert _comparable(replace(RUN, **changed), find_device(device), dtype) is comparable  # type: ignore[arg-type]


def test_a_name_may_mean_several_devices() -> None:
    assert _devices_meant("H100 SXM") == frozenset({"h100-sxm"})
    assert "h100-sxm" in _devices_meant("H100")
    assert len(_devices_meant("H100")) > 1
    assert _devices_meant("no such machine") == frozenset()


SHAPE = {
    "n_layers": 2, "hidden": 8, "heads": 2, "ffn": 32, "vocab": 16, "seq_len": 4, "params_total_b": 1.968e-6,
    "tokens_per_s_per_gpu": 1e6,
}  # fmt: skip

# what is changed: MFU
UTILISATIONS = [
    ({"mfu_pct": 40.0}, 0.4),  # as printed, where nothing can be counted
    ({"mfu_pct": 40.0, "flag": True}, None),  # a row that contradicts itself
    ({}, None),
    ({"mfu_pct": 40.0, "peak_tflops_bf16": None}, None),
    # counted: 2·(256 + 512) + 128 weights six times, and 2 layers of 10 pairs of four positions at 3·4·8 FLOPs
    (SHAPE, (6 * (2 * 768 + 128) + 3 * 2 * 10 * 4 * 8 / 4) * 1e6 / 1e15),
    ({**SHAPE, "mfu_pct": 40.0}, (6 * 1664 + 480) * 1e6 / 1e15),  # what was counted comes first
    ({**SHAPE, "vocab": None, "mfu_pct": 40.0}, 0.4),
    ({**SHAPE, "tokens_per_s_per_gpu": None, "mfu_pct": 40.0}, 0.4),
]


@pytest.mark.parametrize(("changed", "mfu"), UTILISATIONS)
def test_utilisation_of_a_run(changed: dict[str, object], mfu: float | None) -> None:
    found = _mfu(replace(RUN, **changed), CAUSAL)  # type: ignore[arg-type]
    assert found == (None if mfu is None else pytest.approx(mfu))


def runs(*rows: dict[str, object]) -> tuple[PublishedRun, ...]:
    return tuple(replace(RUN, **row) for row in rows)  # type: ignore[arg-type]


def test_the_median_of_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve runs at 1, 2, … 12 percent, of 1, 2, … 12 billion; at 4 billion the nine nearest by ratio are 2 … 10."""
    rows = [{"id": f"x-{n:02d}", "params_total_b": float(n), "mfu_pct": float(n)} for n in range(1, 13)]
    monkeypatch.setattr(typical, "published_runs", lambda: runs(*rows))
    found = typical_mfu(4 * 10**9, H100, "bf16", CAUSAL)
    ratios = sorted(range(1, 13), key=lambda n: abs(math.log(n / 4)))[:9]
    assert sorted(ratios) == [2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert (found.mfu, found.low, found.high) == (
        pytest.approx(median(ratios) / 100), pytest.approx(0.02), pytest.approx(0.10),
    )  # fmt: skip
    assert found.runs[0] == "x-04"
    assert set(found.runs) == {f"x-{n:02d}" for n in ratios}


def test_active_parameters_are_a_mixtures_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ({"id": "a", "params_active_b": 7.0, "params_total_b": 700.0, "mfu_pct": 30.0},)
    monkeypatch.setattr(typical, "published_runs", lambda: runs(*rows))
    found = typical_mfu(7 * 10**9, H100, "bf16", CAUSAL)
    assert found.sentence == "the only published run on H100: net, 7.000 B on 8 (a)"


TWO = (
    {"id": "a", "mfu_pct": 30.0},
    {"id": "b", "model": "mesh", "params_total_b": 14.0, "gpu_count": 1024, "mfu_pct": 40.0},
)
NEAR = (
    "median of 2 published runs nearest in size and GPUs on H100 "
    "(7.000 B to 14.00 B on 8 to 1,024: {names}; 30.0 % to 40.0 %; {ids})"
)

# parameters asked for, order of the runs, what is added to the sentence
SENTENCES = [
    (7 * 10**9, "net, mesh", "a … b", ""),
    (14 * 10**9, "mesh, net", "b … a", ""),
    (42 * 10**9, "mesh, net", "b … a", ""),  # three times as large: still alike
    (
        43 * 10**9, "mesh, net", "b … a",
        "; none is near in size: the nearest has 14.00 B, so take it with care",
    ),
    (2 * 10**9, "net, mesh", "a … b", "; none is near in size: the nearest has 7.000 B, so take it with care"),
]  # fmt: skip


@pytest.mark.parametrize(("params", "names", "ids", "more"), SENTENCES)
def test_the_sentence_names_everything(
    params: int, names: str, ids: str, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typical, "published_runs", lambda: runs(*TWO))
    found = typical_mfu(params, H100, "bf16", CAUSAL)
    assert found.sentence == NEAR.format(names=names, ids=ids) + more
    assert found.mfu == pytest.approx(0.35)


def test_of_three_runs_the_ends_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose GPUs are not printed ran on at least one; models are named once."""
    three = ({"id": "c", "params_total_b": 8.0, "gpu_count": None, "mfu_pct": 50.0}, *TWO)
    monkeypatch.setattr(typical, "published_runs", lambda: runs(*three))
    assert typical_mfu(7 * 10**9, H100, "bf16", CAUSAL).sentence == (
        "median of 3 published runs nearest in size and GPUs on H100 "
        "(7.000 B to 14.00 B on 1 to 1,024: net, mesh; 30.0 % to 50.0 %; a … b)"
    )


def test_runs_without_a_size_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typical, "published_runs", lambda: runs({"params_total_b": None, "mfu_pct": 30.0}))
    with pytest.raises(InputError, match="no bf16 training run on h100-sxm is published with a rate and a shape"):
        typical_mfu(7 * 10**9, H100, "bf16", CAUSAL)


def test_gpus_break_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": f"x-{n:02d}", "gpu_count": 2**n, "mfu_pct": float(n)} for n in range(1, 15)]
    monkeypatch.setattr(typical, "published_runs", lambda: runs(*rows))
    few, many = (set(typical_mfu(7 * 10**9, H100, "bf16", CAUSAL, gpus).runs) for gpus in (2, 2**14))
    assert few == {f"x-{n:02d}" for n in range(1, 10)}
    assert many == {f"x-{n:02d}" for n in range(6, 15)}
    none = typical_mfu(7 * 10**9, H100, "bf16", CAUSAL).runs
    assert none == tuple(f"x-{n:02d}" for n in range(1, 10))  # all as near: by id


def test_what_is_named_was_run_on_that_gpu() -> None:
    rows = {run.id: run for run in published_runs()}
    for device in (H100, A100):
        found = typical_mfu(70 * 10**9, device, "bf16", CAUSAL, 512)
        assert all(device.short_id in _devices_meant(rows[id_].gpu) for id_ in found.runs)
        assert found.low <= found.mfu <= found.high < 1
        assert found.runs[0] in found.sentence and found.runs[-1] in found.sentence
