"""The benchmark of `infer`: what is compared, what a peer is asked, ratios by hand, and a peer that is not there."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_infer", FOLDER / "infer.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_infer"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def nothing_outside(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "outside_data", lambda _: None)


@pytest.mark.usefixtures("nothing_outside")
def test_without_measured_data_the_points_that_ship_are_compared(bench: ModuleType) -> None:
    points, mine, how = bench.ours(None)
    assert how == "fitted to these points: they are those that ship"
    assert len(points) == len(mine) > 20
    assert {point.preset for point in points} == set(bench.MODELS)
    assert {point.dtype for point in points} <= set(bench.DTYPES)
    asked = bench.as_point(points[0])
    assert set(asked) == {"model", "gpu", "tp", "dtype", "engine", "isl", "osl", "users"}
    assert asked["engine"] in ("trtllm", "vllm", "sglang")


@pytest.mark.shared
def test_with_measured_data_the_fold_is_left_out(bench: ModuleType, shared: Path) -> None:
    points, mine, how = bench.ours(str(shared / "data"))
    assert how == "architecture and GPU left out of the fit"
    errors = [abs(own / point.tpot_s - 1) for own, point in zip(mine, points, strict=True)]
    assert len(points) > 100 and sum(errors) / len(errors) < 0.15


def test_ratios_by_hand(bench: ModuleType) -> None:
    """Measured 10 ms twice: theirs 5 ms and none, ours 9 and 10; 50 % to 10 %, 200 ms to 10 ms."""

    class Point:
        tpot_s = 0.010

    answers = {"up_s": 3.0, "answers": [{"tpot_s": 0.005, "took_s": 0.2}, {"why": "does not fit"}]}
    found = bench.compared(answers, [Point(), Point()], [0.009, 0.010], 0.010)
    assert (found["n"], found["up_s"]) == (1, 3.0)
    assert found["error"] == pytest.approx(0.5) and found["our_error"] == pytest.approx(0.1)
    assert found["error_ratio"] == pytest.approx(5) and found["time_ratio"] == pytest.approx(20)
    nothing = bench.compared({"up_s": 1.0, "answers": [{"why": "E"}]}, [Point()], [0.01], 0.01)
    assert nothing == {"skipped": "E"}


def test_a_peer_that_is_not_there_is_skipped(bench: ModuleType, tmp_path: Path) -> None:
    said = {"skipped": "not installed: pip install --target DIR, then --genz DIR"}
    assert bench.peer("genz", None, []) == bench.peer("genz", tmp_path / "nowhere", []) == said
    assert "GenZ" in bench.peer("genz", tmp_path, [])["skipped"]  # a folder without it: the import says so


def test_a_peer_answers_point_by_point(tmp_path: Path) -> None:
    """A GenZ of the test's own, which fails on one model."""
    (tmp_path / "GenZ.py").write_text(
        "def decode_moddeling(**asked):\n"
        "    if '70B' in asked['model']: raise ValueError('does not fit')\n"
        "    return {'Latency': 8.0}\n"
        "def prefill_moddeling(**asked):\n"
        "    return {'Latency': 16.0}\n"
    )
    point = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "tp": 1, "dtype": "bf16", "isl": 1024, "osl": 512, "users": 64}
    done = subprocess.run(
        [sys.executable, str(FOLDER / "infer_peers.py"), "genz"], text=True, capture_output=True, check=True,
        input=json.dumps([point, {**point, "model": "llama-3.1-70b"}]), env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    first, second = json.loads(done.stdout)["answers"]
    assert first["tpot_s"] == pytest.approx(0.008 + 64 / 512 * 0.016)
    assert second == {"why": "ValueError: does not fit"}


def test_times_are_medians(bench: ModuleType) -> None:
    wall, own = bench.median_s(lambda: sum(range(1000)), 3)
    assert 0 < own < 0.1 and 0 < wall < 1
