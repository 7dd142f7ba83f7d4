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
    assert bench.run("raise ValueError('no such luck')", path) == {"skipped": "ValueError: no such luck"}


def test_the_median_is_by_processor_time_and_a_failure_is_said(bench, monkeypatch, tmp_path):
    runs = iter([{"cpu_s": 99.0}, {"cpu_s": 3.0}, {"cpu_s": 1.0}, {"cpu_s": 2.0}])  # the first only compiles
    monkeypatch.setattr(bench, "run", lambda *_: next(runs))
    assert bench.median("", tmp_path, tmp_path, 3) == {"cpu_s": 2.0}
    runs = iter([{}, {"cpu_s": 3.0}, {"skipped": "out of memory"}, {"cpu_s": 2.0}])
    monkeypatch.setattr(bench, "run", lambda *_: next(runs))
    assert bench.median("", tmp_path, tmp_path, 3) == {"skipped": "out of memory"}
    assert bench.shown("HTA", {"skipped": "out of memory"}) == "HTA      skipped: out of memory"
