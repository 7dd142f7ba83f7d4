"""Broken files: what can be read is read, what is lost is counted, nothing crashes and no time is invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.errors import UnreadableFileError
from suanli.explain.intervals import covered_ns
from suanli.nouns.trace import Trace
from suanli.readers.traces import source
from suanli.readers.traces.kineto import read_kineto
from suanli.readers.traces.kineto_salvage import _end_of_list

ROW = '{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": %s, "dur": 5, "args": {"device": 0%s}}'
GOOD = [ROW % (f"k{number}", 10 * number, "") for number in range(1, 6)]


def read(folder: Path, rows: list[str], head: str = '{"traceEvents": [', tail: str = '], "x": 1}') -> Trace:
    path = folder / "rank0.json"
    path.write_bytes((head + ",\n".join(rows) + tail).encode("utf-8", "surrogateescape"))
    return read_kineto(path)


def names(trace: Trace) -> list[str]:
    return [trace.names[place] for place in trace.work.name]


def codes(trace: Trace) -> dict[str, int]:
    return {fault.code: fault.count for fault in trace.faults if fault.code != "base-time"}


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (ROW % ('operator "<" (x)', 35, ""), 'operator "<" (x)'),  # pytorch#146900
        (ROW % ('say "it"', 35, ""), 'say "it"'),
        (ROW % (r"C:\dir\new", 35, ""), "C:\\dir\new"),  # kineto#336; \n is a line end to any parser
        (ROW % (r"C:\Users\x", 35, ""), "C:\\Users\\x"),
        (ROW % ("a\x01b", 35, ""), "a\x01b"),  # pytorch#136180
        (ROW % ("a\nb", 35, ""), "a\nb"),
        (ROW % ("a\udcffb", 35, ""), "a\ufffdb"),  # one byte FF: no UTF-8
        (ROW % ("k", 35, ', "x": N/A'), "k"),  # kineto#131
        (ROW % ("k", 35, ', "x": NaN, "y": -Infinity'), "k"),
        (ROW % ("k", 35, ', "x": nan, "y": -inf'), "k"),
        (ROW % ("k", 35, ', "stream": "0x0"'), "k"),
        (ROW % ("k", 35, ', "stream": 1e400'), "k"),
        (ROW % ("k", 35, ', "stream": 1' + "0" * 5_000), "k"),
        (ROW % ("k", 35, ', "correlation": [1], "External id": null, "graph id": {}'), "k"),
        (ROW % ("k", 35, ', "a": [{}, {"name": "inner"}]'), "k"),
        (ROW % ("k", 35, ', "a": ' + "[" * 200 + "]" * 200), "k"),
        (ROW % ("k", 35, ', "a": {"ph": 1}, "b": [{"cat": 2}, {"ts": 3}]'), "k"),
        (ROW.replace('"pid": 0', '"pid": 1.5') % ("k", 35, ""), "k"),
        (ROW.replace('"tid": 7', '"tid": null') % ("k", 35, ""), "k"),
        (ROW.replace('"dur": 5', '"dur": "5"') % ("k", '"35"', ""), "k"),
        (ROW.replace('"pid": 0', '"cat": "kernel"') % ("k", "35", ', "x": N/A'), "k"),
    ],
)
def test_one_odd_event_among_good_ones(tmp_path: Path, row: str, name: str) -> None:
    """It is read all the same: its time is known."""
    trace = read(tmp_path, [*GOOD[:3], row, *GOOD[3:]])
    assert names(trace) == ["k1", "k2", "k3", name, "k4", "k5"]
    assert set(codes(trace)) <= {"repaired-json"}
    assert trace.events == 6
    assert (trace.work.end_ns - trace.work.start_ns).tolist() == [5_000] * 6


@pytest.mark.parametrize(
    "row",
    [
        '{"ph": "X", "cat": "kernel", "name": "cut',
        '{"ph": "X", "cat": "kernel", "name": "k", "ts": 35, "dur": 5, "args": {"device": 0',
        '{"ph": "X", "cat": "kernel", "name" "k", "ts": 35, "dur": 5}',
        '{"name": %s' % ("[" * 100_000),
        '{"ph": "X" "cat"}',
        '{"ph": "X", "cat": "kernel", "name": "k", "ts": 35, "ph": "X", "cat": "cpu_op", "dur": 5, "args": {}}',
        '{"ph": "X", "cat": "ac2g", "name": "k", "ts": 35, "ph": "X", "cat": "kernel", "dur": 5, "args": {}}',
        '{"ph": "X", "cat": "new", "name": "k", "ts": 35, "ph": "X", "cat": "kernel", "dur": 5, "args": {}}',
        '{"ph": "X", "cat": "kernel", "name": "k", "ts": 35, "ph": "X", "cat": "new", "dur": 5, "args": {}}',
    ],
)
def test_what_cannot_be_read_is_lost_and_counted(tmp_path: Path, row: str) -> None:
    trace = read(tmp_path, [*GOOD[:3], row, *GOOD[3:]])
    assert names(trace) == ["k1", "k2", "k3", "k4", "k5"]
    assert codes(trace) == {"broken-json": 1}
    (fault,) = [each for each in trace.faults if each.code == "broken-json"]
    assert fault.message == f"1 piece of broken JSON ({len(row):,} bytes) could not be read"


@pytest.mark.parametrize("row", ["null", "5", '"text"', "[1]", "{}", '{"cat": 5, "ph": "M"}', '{"cat": "kernel"}'])
def test_items_that_are_no_events(tmp_path: Path, row: str) -> None:
    assert names(read(tmp_path, [*GOOD[:3], row, *GOOD[3:]])) == ["k1", "k2", "k3", "k4", "k5"]


@pytest.mark.parametrize(
    "tail", ["]}", "] }\n", ",]}", ", ]", '], "x": {"ph": [{"name": 1}, {"name": 2}]}}', '], "x": N/A}']
)
def test_ends(tmp_path: Path, tail: str) -> None:
    trace = read(tmp_path, GOOD, tail=tail)
    assert names(trace) == ["k1", "k2", "k3", "k4", "k5"]
    assert set(codes(trace)) <= {"no-rank"} | ({"broken-json"} if "N/A" in tail else set())


@pytest.mark.parametrize("cut", range(1, 200, 7))
def test_cut_anywhere(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "rank0.json"
    path.write_text(('{"traceEvents": [' + ",".join(GOOD) + "]}")[:-cut])
    trace = read_kineto(path)
    assert names(trace) == [f"k{number}" for number in range(1, 1 + len(trace.work))]
    assert ("truncated" in codes(trace)) == (cut >= 2)
    assert len(trace.work) >= 5 - cut // 90 - 1


def test_metadata_behind_broken_json_is_made_out(tmp_path: Path) -> None:
    """User metadata with a bare quote must not cost the base time and the rank."""
    head = '{"user": "a"b", "distributedInfo": {"rank": 3, "world_size": 4}, "traceEvents": ['
    trace = read(tmp_path, GOOD, head, '], "note": N/A, "baseTimeNanoseconds": 1000, "INFO": ["Out-of-range = 7"]}')
    assert (trace.rank, trace.world_size, trace.base_ns) == (3, 4, 1000)
    assert codes(trace) == {"broken-json": 1, "dropped-events": 7}


def test_no_event_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="no event of the trace can be read: its JSON is broken throughout"):
        read(tmp_path, ["{oh", "no}"])


@pytest.mark.parametrize("block", [50, 130, 300, 1000])
def test_blocks_of_any_size(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A border inside the arguments may be where a text ends: the halves find each other."""
    monkeypatch.setattr(source, "BLOCK_BYTES", block)
    odd = ROW % ("odd", 35, ', "a": [{"x": 1}, {"name": "inner"}, {"name": "inner"}]')
    trace = read(tmp_path, [*GOOD[:3], odd, *GOOD[3:]])
    assert names(trace) == ["k1", "k2", "k3", "odd", "k4", "k5"]
    assert codes(trace) == {}


def test_records_that_say_more_come_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BLOCK_BYTES", 200)
    call = ROW % ("nccl", 99, ', "Collective name": "allreduce", "Group size": 8')
    broken = (ROW % ("cut", 77, ""))[:-9]
    trace = read(tmp_path, [*GOOD[:2], broken, *GOOD[2:], call])
    assert [call.group_size for call in trace.collectives] == [8]
    assert trace.work.collective.tolist() == [-1] * 5 + [0]
    assert (trace.events, codes(trace)) == (6, {"broken-json": 1})


def test_events_of_other_phases_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Async ones, say, or a phase that is no text; once each, also where a text is read again with larger records."""
    rows = [GOOD[0], *(ROW.replace('"X"', phase) % ("k", 35, "") for phase in ('"b"', '"e"', '"b"', "3", '""'))]
    call = ROW % ("nccl", 99, ', "Collective name": "allreduce", "Group size": 8')
    for block in (10**6, 200):
        monkeypatch.setattr(source, "BLOCK_BYTES", block)
        trace = read(tmp_path, [*rows, call])
        assert names(trace) == ["k1", "nccl"]
        said = [(fault.code, fault.count, fault.message) for fault in trace.faults if fault.code != "base-time"]
        message = "5 events that are neither whole nor halves of one are left out: ph '', 'b', 'e'"
        assert said == [("other-phase", 5, message)]


def test_very_many_categories(tmp_path: Path) -> None:
    """Beyond a bound they are not told apart, and still nothing of the device is lost."""
    odd = [f'{{"ph": "X", "cat": "c{number}", "name": "x", "ts": 1, "dur": 1}}' for number in range(400)]
    trace = read(tmp_path, [*odd, *GOOD])
    assert names(trace) == ["k1", "k2", "k3", "k4", "k5"]


# --- laws ---------------------------------------------------------------------------------------------------------

PIECES = st.lists(st.tuples(st.integers(1, 400), st.integers(0, 60), st.integers(0, 2)), min_size=1, max_size=12)


def rows_of(pieces: list[tuple[int, int, int]]) -> list[dict[str, Any]]:
    return [
        {
            "ph": "X", "cat": ("kernel", "gpu_memcpy", "cpu_op")[lane], "name": f"n{lane}", "pid": 0, "tid": lane,
            "ts": start, "dur": length, "args": {"device": 0, "stream": lane, "Input Dims": [[start]]},
        }
        for start, length, lane in pieces
    ]  # fmt: skip


def busy(trace: Trace) -> int:
    return covered_ns(trace.work.start_ns, trace.work.end_ns)


@given(PIECES, st.randoms(use_true_random=False), st.sampled_from([None, 1]))
def test_order_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, int, int]], random: Any, indent: int | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "rank1.json"
    rows, found = rows_of(pieces), []
    for _ in range(2):
        path.write_text(json.dumps({"traceEvents": rows}, indent=indent))
        found.append(read_kineto(path))
        random.shuffle(rows)
    for column in ("start_ns", "end_ns", "device"):
        assert (getattr(found[0].work, column) == getattr(found[1].work, column)).all()
    assert busy(found[0]) == busy(found[1])
    covered = {at for start, length, lane in pieces if lane < 2 for at in range(start, start + length)}
    assert busy(found[0]) == 1000 * len(covered)


BYTES = st.binary(min_size=0, max_size=6) | st.sampled_from(
    [b'"', b"\\", b"{", b"}", b"]", b"[", b",", b"\xff", b"N/A"]
)


@given(PIECES, st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9), BYTES), min_size=1, max_size=4), st.booleans())
def test_corruption_never_crashes(
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[tuple[int, int, int]],
    damage: list[tuple[float, int, bytes]],
    indented: bool,
) -> None:
    """Bytes are cut out and put in anywhere: a trace comes out, or the error of a file."""
    path = tmp_path_factory.getbasetemp() / "rank1.json"
    text = json.dumps(
        {"traceEvents": rows_of(pieces), "baseTimeNanoseconds": 7}, indent=1 if indented else None
    ).encode()
    for place, cut, put in damage:
        at = int(place * len(text))
        text = text[:at] + put + text[at + cut :]
    path.write_bytes(text)
    try:
        trace = read_kineto(path)
    except UnreadableFileError:
        return
    assert (trace.work.end_ns >= trace.work.start_ns).all()
    assert len(trace.work) <= len(pieces)
    assert (np.diff(trace.work.start_ns) >= 0).all()


@given(PIECES, st.floats(0, 1), st.booleans())
def test_a_cut_file_has_no_more_time(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, int, int]], place: float, indented: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "rank1.json"
    text = json.dumps({"traceEvents": rows_of(pieces)}, indent=1 if indented else None).encode()
    path.write_bytes(text)
    whole = read_kineto(path)
    path.write_bytes(text[: int(place * len(text))])
    try:
        cut = read_kineto(path)
    except UnreadableFileError:
        return
    assert busy(cut) <= busy(whole)
    assert set(cut.work.start_ns.tolist()) <= set(whole.work.start_ns.tolist())


@given(PIECES, st.integers(0, 11), st.sampled_from(["name", "args"]), BYTES)
def test_what_is_broken_in_a_name_costs_no_time_and_adds_none(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, int, int]], which: int, key: str, put: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "rank1.json"
    rows = [json.dumps(row).encode() for row in rows_of(pieces)]
    whole = b'{"traceEvents": [%b]}'
    path.write_bytes(whole % b", ".join(rows))
    before = read_kineto(path)
    at = which % len(rows)
    rows[at] = rows[at].replace(b'"n', b'"n' + put, 1)
    path.write_bytes(whole % b", ".join(rows))
    try:
        assert busy(read_kineto(path)) <= busy(before)
    except UnreadableFileError:
        assert len(rows) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=6,
)  # fmt: skip
KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args")
ARGS = (
    "External id", "device", "stream", "correlation", "grid", "Input Dims", "Input type", "Concrete Inputs",
    "Collective name", "Group size", "Process Group Ranks", "kernel_backend", "bytes", "kind", "Fwd thread id",
)  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(KEYS + ARGS), JSON), min_size=1, max_size=4),
    st.sampled_from(["kernel", "cpu_op"]),
)
def test_a_field_of_any_type(tmp_path_factory: pytest.TempPathFactory, wrong: list[tuple[str, Any]], cat: str) -> None:
    """The event is kept where its times are numbers, and the others are as they were."""
    path = tmp_path_factory.getbasetemp() / "rank1.json"
    good, odd = rows_of([(5, 10, 0), (50, 10, 0)]), rows_of([(20, 10, 0)])[0] | {"cat": cat}
    for key, value in wrong:
        (odd if key in KEYS else odd["args"] if isinstance(odd["args"], dict) else {})[key] = value
    path.write_text(json.dumps({"traceEvents": [good[0], odd, good[1]]}))
    trace = read_kineto(path)
    assert {5_000, 50_000} <= set(trace.work.start_ns.tolist())
    if cat == "kernel" and not {"ph", "cat", "ts", "dur"} & {key for key, _ in wrong}:
        assert sorted(trace.work.start_ns.tolist()) == [5_000, 20_000, 50_000]  # it may be of another device


def test_a_mark_inside_a_value_is_no_border_of_values(tmp_path: Path) -> None:
    """Keys of what is kept once are joined by a control character, which a broken file may hold."""
    call = ROW % ("k", 35, ', "Collective name": "a\x1fb", "dtype": "x\x1f", "grid": "\x1f\x1f\x1f\x1f\x1f\x1f"')
    op = (ROW % ("o", 35, ', "Input Dims": [["\x1f"]], "Input type": ["\x1f"]')).replace('"kernel"', '"cpu_op"')
    trace = read(tmp_path, [*GOOD, call, op])
    assert len(trace.work) == 6
    assert len(trace.host) == 1


DIMS = ', "Input Dims": [[2, [3]], []], "x": {"y": [{}]}'


@pytest.mark.parametrize("tail", ['], "distributedInfo": {"rank": 5}}', '\n],\n"distributedInfo": {"rank": 5}\n}\n'])
@pytest.mark.parametrize(
    ("was", "becomes", "sure"),
    [
        ('"ts": ', '"ts": x', True),
        ('"dur": ', '"dur" ', True),
        ('"args": {', '"args": {}}, {', True),
        ('{"device"', '{{"device"', False),  # a bracket more is open, or a quote: none ends the list for sure
        ('"kernel"', '"kernel', False),
    ],
)
def test_what_stands_behind_a_broken_last_event(tmp_path: Path, tail: str, was: str, becomes: str, sure: bool) -> None:
    """A bracket that nothing opened ends the list: then the file is not cut, and says its rank."""
    trace = read(tmp_path, [*GOOD, (ROW % ("k6", 60, DIMS)).replace(was, becomes)], tail=tail)
    assert names(trace)[:5] == ["k1", "k2", "k3", "k4", "k5"]
    assert trace.rank == (5 if sure else 0)  # as the name of the file says
    assert ("truncated" in codes(trace)) == (not sure)
    assert codes(trace)["broken-json"] == 1


@given(st.integers(min_value=0, max_value=len(ROW % ("k", 35, DIMS))), st.booleans())
def test_no_cut_event_ends_the_list(cut: int, broken: bool) -> None:
    row = (ROW % ("k", 35, DIMS)).replace('"ts": ', '"ts": x' if broken else '"ts": ')[:cut]
    assert _end_of_list(row) == len(row)
