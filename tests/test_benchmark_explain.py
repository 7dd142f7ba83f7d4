"""The benchmark of `explain`: the long trace is its sample over and over, and of several runs the median is said."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
FILE = Path(__file__).resolve().parents[1] / "benchmarks" / "explain.py"
EVENT = '{"ph": "X", "cat": "kernel", "name": "k", "ts": 10, "dur": 5, "args": {"correlation": 3, "device": 0}}'


@pytest.fixture
def bench(monkeypatch):
    spec = importlib.util.spec_from_file_location("bench_explain", FILE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_explain", module)
    spec.loader.exec_module(module)
    return module


def test_copies_follow_one_another_with_ids_of_their_own(bench, monkeypatch, tmp_path):
    sample = tmp_path / "sample.json.gz"
    sample.write_bytes(gzip.compress(f'{{"traceEvents": [{EVENT}]}}'.encode()))
    monkeypatch.setattr(bench, "SAMPLE", sample)
    rows = json.loads(bench.build(tmp_path, 3).read_text())["traceEvents"]
    assert [row["ts"] for row in rows] == [10, 10 + bench.SHIFT_US, 10 + 2 * bench.SHIFT_US]
    assert [row["args"]["correlation"] for row in rows] == [3, 3 + bench.SHIFT_ID, 3 + 2 * bench.SHIFT_ID]
    assert {row["dur"] for row in rows} == {5}


def test_a_run_says_its_processor_time_and_its_peak(bench, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(f'{{"traceEvents": [{EVENT}]}}')
    said = bench.run(bench.READ, path)
    assert (said["events"], said["busy_us"]) == (1, 5)
    assert said["mb_per_cpu_s"] == path.stat().st_size / 1e6 / said["cpu_s"]
    assert said["peak_gb"] > 0.01
    held = b"x" * 500_000_000  # what this process holds is not that one's
    assert bench.run(bench.READ, path)["peak_gb"] < len(held) / 1e9
    assert bench.run("raise ValueError('no such luck')", path) == {"skipped": "ValueError: no such luck"}


def test_the_median_is_by_the_clock_and_a_failure_is_said(bench, monkeypatch, tmp_path):
    runs = iter([{"wall_s": 99.0}, {"wall_s": 3.0}, {"wall_s": 1.0}, {"wall_s": 2.0}])  # the first only compiles
    monkeypatch.setattr(bench, "run", lambda *_: next(runs))
    assert bench.median("", tmp_path, tmp_path, 3) == {"wall_s": 2.0}
    runs = iter([{}, {"wall_s": 3.0}, {"skipped": "out of memory"}, {"wall_s": 2.0}])
    monkeypatch.setattr(bench, "run", lambda *_: next(runs))
    assert bench.median("", tmp_path, tmp_path, 3) == {"skipped": "out of memory"}
    assert bench.shown("HTA", {"skipped": "out of memory"}) == "HTA      skipped: out of memory"


def row(cat, name, ts, dur, correlation=None, **args):
    given = args if correlation is None else {"correlation": correlation, **args}
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": given}


def test_of_the_same_work_hta_and_suanli_say_the_same(bench, tmp_path):
    """Two steps; one kernel was launched before the recording, one in each step, and one copy in the last."""
    rows = [
        *(row("user_annotation", f"ProfilerStep#{step}", 100 * step, 90) for step in (1, 2)),
        *(row("cuda_runtime", "cudaLaunchKernel", ts, 2, number) for ts, number in ((110, 1), (200, 2), (220, 3))),
        row("kernel", "before", 100, 40, 9, device=0, stream=7),
        *(row("kernel", "k", ts, 30, number, device=0, stream=8) for ts, number in ((120, 1), (230, 2))),
        row("gpu_memcpy", "Memcpy HtoD", 240, 40, 3, device=0, stream=9),
    ]
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    said = bench.run(bench.SAME, path)
    assert said["kept"] == {"work": 1, "busy_us": 30, "idle_us": 0}
    assert said["linked"] == {"work": 3, "busy_us": 80, "idle_us": 80}
    assert said["all"] == {"work": 4, "busy_us": 100, "idle_us": 80}
    assert bench.same_shown(said, {"busy_us": 28.0}) == (
        "same    busy 30 µs of the 1 pieces of work that HTA keeps, HTA is -2 µs off; "
        "it leaves out 1 (20 µs) without a launch in the file and 2 (50 µs) launched in the last step"
    )
    assert " HTA keeps; it leaves" in bench.same_shown(said, {"skipped": "give --hta PYTHON"})
    assert bench.same_shown({"skipped": "no numpy"}, {}) == "same     skipped: no numpy"


@pytest.mark.shared
def test_why_hta_tells_less_busy_time_of_the_sample(bench, tmp_path):
    """HTA 0.5.0 printed kernel_time 1,016,554 and idle_time 705,853 (µs); the device worked 127,723 µs more."""
    path = bench.build(tmp_path, 1)
    said = bench.run(bench.SAME, path)
    assert said["kept"] == {"work": 5500, "busy_us": 1_016_554 - 705_853, "idle_us": 705_853}
    assert said["linked"]["work"] == 7747 - 872
    assert said["all"] == {"work": 7747, "busy_us": 438_424, "idle_us": 793_037}
    assert bench.run(bench.EXPLAIN, path)["busy_us"] == pytest.approx(438_424)
