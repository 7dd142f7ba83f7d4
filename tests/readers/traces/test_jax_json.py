"""trace.json of JAX: devices by the names of processes, decimals kept, the empty last event."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import UnreadableFileError
from suanli.nouns.trace import HostKind, Trace, TraceDevice, WorkKind
from suanli.readers.traces import jax_json
from suanli.readers.traces.jax_json import read_jax_json


def named(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}


def line(pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def event(pid: int, tid: int, name: str, ts: Any, dur: Any, **args: str) -> dict[str, Any]:
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, **({"args": args} if args else {})}


EVENTS = [
    named(1, "/device:GPU:0"), line(1, 16, "Stream #16(Kernel)"), line(1, 9, "XLA Ops"),
    named(3, "/device:TPU:5"), line(3, 3, "XLA Ops"), line(3, 1, "Steps"),
    named(701, "/host:CPU"), line(701, 44, "python"),
    event(1, 16, "gemm", 67.9, 1.378, correlation_id="8", hlo_op="dot.1", hlo_module="jit_f",
          kernel_details="grid:2,1,1 block:64,1,1"),
    event(1, 9, "dot.1", 60, 20),
    event(3, 3, "fusion.3", 10, 1e-06, hlo_category="loop fusion", flops="640",
          long_name="%fusion.3 = f32[2] fusion()"),
    event(3, 3, "copy-done.1", 11, 2.5, hlo_category="copy-done"),
    event(3, 1, "1", 0, 100),
    event(701, 44, "cuLaunchKernel", 50.25, 3, correlation_id="8"),
    event(701, 44, "train", 0, 99, step_num="2"),
    event(701, 44, "$a.py:1 f", 0, 99),
    {},
]  # fmt: skip


def read(folder: Path, events: list[dict[str, Any]], **more: Any) -> Trace:
    path = folder / "a.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"displayTimeUnit": "ns", **more, "traceEvents": events}).encode()))
    return read_jax_json(path)


def test_devices_lines_and_launches(tmp_path: Path) -> None:
    trace = read(tmp_path, EVENTS)
    names = [trace.names[place] for place in trace.work.name]
    assert names == ["gemm", "fusion.3", "copy-done.1"]
    assert trace.work.device.tolist() == [0, 5, 5]
    assert trace.work.stream.tolist() == [16, 3, 3]
    assert trace.work.kind.tolist() == [WorkKind.KERNEL, WorkKind.KERNEL, WorkKind.COPY]
    # 67.9 µs; 10 µs and 1 ps more; 11 µs
    assert trace.work.start_ns.tolist() == [67_900, 10_000, 11_000]
    assert trace.work.end_ns.tolist() == [69_278, 10_000, 13_500]
    assert [trace.names[trace.host.name[row]] if row >= 0 else None for row in trace.work.launch] == [
        "cuLaunchKernel", None, None,
    ]  # fmt: skip
    assert trace.devices == (TraceDevice(id=0), TraceDevice(id=5))
    assert (trace.format, trace.events, trace.faults) == ("jax-json", 8, ())


def test_what_events_say(tmp_path: Path) -> None:
    trace = read(tmp_path, EVENTS)
    gemm, fusion = (trace.details[place] for place in trace.work.detail[:2])
    assert gemm.hlo == {"op": "dot.1", "module": "jit_f"}
    assert gemm.kernel is not None
    assert gemm.kernel["grid"] == (2, 1, 1)
    assert (fusion.flops, fusion.hlo) == (640, {"category": "loop fusion", "text": "%fusion.3 = f32[2] fusion()"})


def test_host_spans(tmp_path: Path) -> None:
    trace = read(tmp_path, EVENTS)
    found = [(trace.names[name], kind) for name, kind in zip(trace.host.name, trace.host.kind, strict=True)]
    assert found == [("train#2", HostKind.MARK), ("cuLaunchKernel", HostKind.RUNTIME)]
    assert trace.threads == (("/host:CPU", "python"),)


@pytest.mark.parametrize(
    ("ts", "dur", "start", "end"),
    [
        ("0.0005", "0", 1, 1),  # halves go up
        ("0.000499", "0.000001", 0, 1),
        ("4503599627370.497", "0.001", 4_503_599_627_370_497, 4_503_599_627_370_498),  # float64 has 0.4970703125
        ("1e1", "1e-06", 10_000, 10_000),
        ("-3.25", "1", -3250, -2250),
    ],
)
def test_decimals_are_exact(tmp_path: Path, ts: str, dur: str, start: int, end: int) -> None:
    raw = '{"traceEvents": [%s, {"ph": "X", "pid": 7, "name": "a", "ts": %s, "dur": %s}, {}]}'
    trace = read_jax_json(tmp_path / "unused", (raw % (json.dumps(named(7, "/host:CPU")), ts, dur)).encode())
    assert (trace.host.start_ns.tolist(), trace.host.end_ns.tolist()) == ([start], [end])


@pytest.mark.parametrize(
    ("ts", "dur", "code"),
    [(None, 1, "no-time"), (5, -1, "negative-duration"), (1e300, 0, "no-time"), (0, 1e-300, None), (0, None, None)],
)
def test_times_that_cannot_be(tmp_path: Path, ts: Any, dur: Any, code: str | None) -> None:
    trace = read(tmp_path, [named(1, "/host:CPU"), event(1, 1, "a", ts, dur)])
    counted = {fault.code: fault.count for fault in trace.faults if fault.count}
    assert counted == ({code: 1} if code else {})
    assert len(trace.host) == (0 if code else 1)


def test_a_full_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_json, "MOST_EVENTS", len(EVENTS))
    fault = read(tmp_path, EVENTS).faults[0]
    assert (fault.code, fault.message) == ("dropped-events", "the file is full at 17 events: give the .xplane.pb")


@pytest.mark.parametrize(
    "content",
    [b"[]", b"{}", b'{"traceEvents": [', b'{"traceEvents": [{"pid": "x"}]}', b"\xff",
     b'{"traceEvents": [{"tid": 1e30}]}',
     b'{"traceEvents": ' + b"[" * 10_000],
)  # fmt: skip
def test_what_is_no_trace_of_jax(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.trace.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableFileError, match=r"the file is no trace\.json of JAX") as raised:
        read_jax_json(path)
    assert str(raised.value).endswith("Give the .xplane.pb beside it, which can be read as far as it goes.")


@settings(max_examples=60)
@given(data=st.data())
def test_broken_text_is_an_error_or_a_sound_trace(data: st.DataObject) -> None:
    content = bytearray(json.dumps({"traceEvents": EVENTS}).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(32, 126))
    try:
        trace = read_jax_json("unused", bytes(content))
    except UnreadableFileError:
        return
    assert (trace.work.end_ns >= trace.work.start_ns).all()
    assert len(trace.work) + len(trace.host) <= 8


def test_a_file_that_was_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = json.dumps({"displayTimeUnit": "ns", "traceEvents": EVENTS})
    path = tmp_path / "a.trace.json"
    path.write_text(whole[: whole.index('"copy-done.1"')], encoding="utf-8")
    trace = read_jax_json(path)
    assert [trace.names[place] for place in trace.work.name] == ["gemm", "fusion.3"]
    assert trace.work.end_ns.tolist()[0] - trace.work.start_ns.tolist()[0] == 1378  # 1.378 µs, no float between
    assert {fault.code: fault.count for fault in trace.faults} == {"broken-json": 1, "truncated": 1}


def test_a_broken_event_costs_itself_alone(tmp_path: Path) -> None:
    whole = json.dumps({"displayTimeUnit": "ns", "traceEvents": EVENTS}).replace('"fusion.3"', '"fus"ion.3"', 1)
    path = tmp_path / "a.trace.json"
    path.write_text("\ufeff" + whole, encoding="utf-8")
    trace = read_jax_json(path)
    assert [trace.names[place] for place in trace.work.name] == ["gemm", "copy-done.1"]
    (fault,) = trace.faults
    assert (fault.code, fault.count) == ("broken-json", 1)
    assert fault.message.startswith("1 piece of broken JSON (")


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        ("", []),
        (" \n\0", []),
        ('{"traceEvents": []}', [
            ("more-documents", 1, "19 bytes stand behind the first document of the file: only it was read"),
        ]),
        ("ü", [("more-documents", 1, "2 bytes stand behind the first document of the file: only it was read")]),
    ],
)  # fmt: skip
def test_documents_behind_the_first_are_said(tmp_path: Path, behind: str, said: list[Any]) -> None:
    path = tmp_path / "a.trace.json"
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": EVENTS}) + behind, encoding="utf-8")
    trace = read_jax_json(path)
    assert len(trace.work) == 3
    assert [(fault.code, fault.count, fault.message) for fault in trace.faults] == said


def test_what_is_broken_outside_the_events_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.trace.json"
    path.write_text(json.dumps({"traceEvents": EVENTS, "x": 1}).replace('"x": 1', '"x": N/A'), encoding="utf-8")
    trace = read_jax_json(path)
    assert len(trace.work) == 3
    said = [(fault.code, fault.count, fault.message) for fault in trace.faults]
    assert said == [("broken-json", 0, "what stands outside the events is no JSON")]


def test_a_mark_of_utf_8_is_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.trace.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"traceEvents": EVENTS}).encode())
    assert (len(read_jax_json(path).work), read_jax_json(path).faults) == (3, ())
