"""The strip of a step: exact where work is sparse, merged and bounded where it is dense, nothing invented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_trace import GEMM, NCCL, as_text, training_trace

import suanli
from suanli.explain.strip import MOST_SPANS, MOST_STREAMS
from suanli.nouns.explained import Strip


def strip_of(tmp_path: Path, events: list[dict]) -> Strip:
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_000_000_000}],
        "baseTimeNanoseconds": 0, "traceEvents": events,
    }  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    strip = suanli.explain(path).result.strip
    assert strip is not None
    return strip


def kernel(name: str, ts: float, dur: float, stream: int = 7) -> dict:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": ts, "dur": dur,
            "args": {"device": 0, "stream": stream, "correlation": int(ts * 8) + stream}}  # fmt: skip


def test_of_a_training_step_every_piece_is_there(tmp_path: Path) -> None:
    path = tmp_path / "step.json"
    path.write_text(as_text(training_trace(3)))
    found = suanli.explain(path).result
    strip, step = found.strip, found.steps[1]
    assert (strip.name, strip.start_ns, strip.end_ns) == (step.name, step.start_ns, step.end_ns)
    assert len(strip.spans) == strip.work == step.work
    products = [each for each in strip.spans if each.kind == "matmul"]
    assert [each.end_s - each.start_s for each in products] == pytest.approx([1150e-6, 1100e-6])
    assert {each.kind for each in strip.spans} == {"matmul", "compute", "communication", "copies"}
    assert all(each.busy_s == pytest.approx(each.end_s - each.start_s) and each.work == 1 for each in strip.spans)


def test_dense_work_is_merged_and_no_time_invented(tmp_path: Path) -> None:
    """2,000 kernels on one stream with gaps between them: first products, then a pause, then communication."""
    events = [kernel(GEMM, 10 + place, 0.75) for place in range(1000)]
    events += [kernel(NCCL, 3010 + place, 0.5) for place in range(1000)]
    strip = strip_of(tmp_path, events)
    assert len(strip.spans) <= MOST_SPANS and strip.work == 2000
    assert [each.kind for each in strip.spans] == ["matmul", "communication"]
    assert sum(each.work for each in strip.spans) == 2000
    first, second = strip.spans
    assert first.busy_s == pytest.approx(750e-6, rel=1e-3) and second.busy_s == pytest.approx(500e-6, rel=1e-3)
    assert (first.start_s, second.end_s) == pytest.approx((0, 3999.5e-6))
    assert first.end_s < second.start_s, "the pause stays"
    assert first.name == GEMM and second.name == NCCL


def test_many_streams_share_a_lane(tmp_path: Path) -> None:
    events = [kernel(GEMM, 10.0 + place, 5.0 + place, stream=place + 1) for place in range(MOST_STREAMS + 3)]
    strip = strip_of(tmp_path, events)
    streams = {each.stream for each in strip.spans}
    assert None in streams and len(streams) == MOST_STREAMS + 1
    assert sum(each.work for each in strip.spans if each.stream is None) == 3, "those of least work"


def test_spans_lie_within_the_step(tmp_path: Path) -> None:
    path = tmp_path / "step.json"
    path.write_text(as_text(training_trace(2)))
    strip = suanli.explain(path).result.strip
    length = (strip.end_ns - strip.start_ns) / 1e9
    assert all(0 <= each.start_s < each.end_s <= length + 1e-12 for each in strip.spans)


def test_a_file_without_device_work_has_none(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}]}))  # fmt: skip
    assert suanli.explain(path).result.strip is None
