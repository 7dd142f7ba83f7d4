"""Events written as halves: each becomes what it would be if it were written whole, or is counted."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from suanli.errors import UnreadableFileError
from suanli.nouns.trace import Trace
from suanli.readers.traces import source
from suanli.readers.traces.kineto import read_kineto
from suanli.readers.traces.kineto_pairs import Pairs


def begin(name: str, ts: Any, *, cat: str = "cpu_op", tid: Any = 7, **more: Any) -> dict[str, Any]:
    return {"ph": "B", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, **more}


def end(ts: Any, *, tid: Any = 7, **more: Any) -> dict[str, Any]:
    return {"ph": "E", "pid": 1, "tid": tid, "ts": ts, **more}


def whole(name: str, ts: Any, dur: Any, *, tid: Any = 7, cat: str = "cpu_op", **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, **more}


def read(folder: Path, events: list[Any], **said: Any) -> Trace:
    path = folder / "rank0.json"
    path.write_text(json.dumps({"baseTimeNanoseconds": 0, **said, "traceEvents": events}), encoding="utf-8")
    return read_kineto(path)


def spans(trace: Trace) -> list[tuple[str, int, int]]:
    """Names and times of host and device, by time."""
    rows = [
        (trace.names[name], start, stop)
        for table in (trace.host, trace.work)
        for name, start, stop in zip(
            table.name.tolist(), table.start_ns.tolist(), table.end_ns.tolist(), strict=True
        )
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row[1:])


def said(trace: Trace) -> list[tuple[str, int, str]]:
    return [(fault.code, fault.count, fault.message) for fault in trace.faults]


CASES: dict[str, tuple[list[Any], list[tuple[str, int, int]]]] = {
    "a pair": ([begin("a", 5), end(9)], [("a", 5_000, 9_000)]),
    "one in another": (
        [begin("a", 1), begin("b", 2), end(3), end(8)], [("a", 1_000, 8_000), ("b", 2_000, 3_000)],
    ),
    "one after another": ([begin("a", 1), end(3), begin("b", 3), end(8)], [("a", 1_000, 3_000), ("b", 3_000, 8_000)]),
    "ends that name what they end": (
        [begin("a", 1), begin("b", 2), end(3, name="a"), end(8, name="b")],
        [("a", 1_000, 3_000), ("b", 2_000, 8_000)],
    ),
    "of equal names the inner one ends first": (
        [begin("a", 1), begin("a", 2), end(3, name="a"), end(8, name="a")],
        [("a", 1_000, 8_000), ("a", 2_000, 3_000)],
    ),
    "threads are apart": (
        [begin("a", 1), begin("b", 2, tid=8), end(3), end(8, tid=8)], [("a", 1_000, 3_000), ("b", 2_000, 8_000)],
    ),
    "a thread is one whether quoted or not": ([begin("a", 1), end(3, tid="7")], [("a", 1_000, 3_000)]),
    "beside whole events": (
        [whole("x", 1, 2), begin("a", 4), whole("y", 5, 1), end(8)],
        [("x", 1_000, 3_000), ("a", 4_000, 8_000), ("y", 5_000, 6_000)],
    ),
    "device work": ([begin("k", 5, cat="kernel"), end(9, cat="kernel", name="k")], [("k", 5_000, 9_000)]),
    "frames of Python are ended and not kept": (
        [begin("f", 1, cat="python_function"), begin("a", 2), end(3), end(4)], [("a", 2_000, 3_000)],
    ),
    "names and categories that only the end says": (
        [{"ph": "B", "pid": 1, "tid": 7, "ts": 5}, end(9, cat="cpu_op")], [("", 5_000, 9_000)],
    ),
    "times beyond floats": (
        [begin("a", "1712195495519689.047"), end("1712195495519753")],
        [("a", 1_712_195_495_519_689_047, 1_712_195_495_519_753_000)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_two_halves_are_one_event(tmp_path: Path, case: str) -> None:
    events, expected = CASES[case]
    trace = read(tmp_path, events)
    assert spans(trace) == expected
    assert trace.events == len(events)
    assert {code for code, _, _ in said(trace)} <= {"no-category"}


@pytest.mark.parametrize(
    ("events", "count", "message"),
    [
        ([begin("b", 6)], 1, "halves of events are left out: 1 B without an E, 0 E without a B"),
        ([end(6)], 1, "halves of events are left out: 0 B without an E, 1 E without a B"),
        ([end(6, name="z")], 1, "halves of events are left out: 0 B without an E, 1 E without a B"),
        ([begin("b", 6, tid=9), end(7), end(8)], 3, "halves of events are left out: 1 B without an E, 2 E without a B"),
        (
            [begin("b", at) for at in range(6, 1_206)], 1_200,
            "halves of events are left out: 1,200 B without an E, 0 E without a B",
        ),
    ],
)  # fmt: skip
def test_halves_without_another_are_counted(tmp_path: Path, events: list[Any], count: int, message: str) -> None:
    trace = read(tmp_path, [begin("a", 1), end(5), *events])
    assert spans(trace) == [("a", 1_000, 5_000)]
    assert said(trace) == [("half-event", count, message)]


def test_frames_without_an_end_are_not_missed(tmp_path: Path) -> None:
    """They are not kept when they are whole."""
    frames = [begin("f", 1, cat="python_function"), end(9, cat="python_function", tid=99)]
    assert said(read(tmp_path, [begin("a", 1, tid=8), end(5, tid=8), *frames])) == []


@pytest.mark.parametrize(
    ("times", "code"),
    [((5, 3), "negative-duration"), ((None, 3), "no-time"), ((5, "x"), "no-time"), ((5, None), "no-time")],
)
def test_times_that_cannot_be(tmp_path: Path, times: tuple[Any, Any], code: str) -> None:
    trace = read(tmp_path, [begin("a", times[0]), end(times[1]), whole("x", 1, 2)])
    assert spans(trace) == [("x", 1_000, 3_000)]
    assert [fault[:2] for fault in said(trace)] == [(code, 1)]


def test_arguments_of_both_are_one(tmp_path: Path) -> None:
    """What the end says stands above what the beginning said of the same."""
    first = {"External id": 3, "Input Dims": [[2]], "Sequence number": 1}
    last = {"Sequence number": 8, "Input type": ["float"]}
    trace = read(tmp_path, [begin("a", 1, args=first), end(5, args=last), begin("b", 6, args=[1]), end(7, args="x")])
    assert trace.host.sequence.tolist() == [8, -1]
    (detail,) = trace.details
    assert (detail.dims, detail.types) == (((2,),), ("float",))


def test_a_kernel_in_halves_finds_its_launch(tmp_path: Path) -> None:
    events = [
        begin("launch", 1, cat="cuda_runtime", args={"correlation": 5}), end(2),
        begin("k", 3, cat="kernel", tid=20, args={"device": 0, "stream": 20}), end(9, tid=20, args={"correlation": 5}),
    ]  # fmt: skip
    trace = read(tmp_path, events)
    assert (trace.work.launch.tolist(), trace.work.stream.tolist()) == ([0], [20])


def test_categories_that_are_not_known_count_events_not_halves(tmp_path: Path) -> None:
    rows = [begin("n", 1, cat="npu"), end(2), begin("n", 3, cat="npu"), end(4), {**begin("o", 5), "cat": 3}, end(6)]
    trace = read(tmp_path, [whole("x", 1, 2), *rows])
    assert said(trace) == [
        ("no-category", 1, "1 event without a category is left out"),
        ("unknown-category", 2, "2 events of categories that are not known are left out: npu"),
    ]


def test_a_trace_of_halves_without_categories_is_refused(tmp_path: Path) -> None:
    rows = [{key: value for key, value in begin("a", 1).items() if key != "cat"}, end(2)]
    with pytest.raises(UnreadableFileError, match=r"none of 2 events has a category of torch\.profiler"):
        read(tmp_path, rows)


@pytest.mark.parametrize("block", [60, 150, 10**6])
def test_broken_halves_cost_themselves_alone(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is repaired, a half that cannot be read is lost, and its other half with it."""
    monkeypatch.setattr(source, "BLOCK_BYTES", block)
    rows = [
        json.dumps(row) for row in (begin("a", 1), end(2), begin("b", 3), end(4), begin("c", 5), end(6), end(7, tid=8))
    ]
    rows[2] = rows[2].replace('"b"', '"b "it""')
    rows[5] = rows[5].replace(":", "", 1)
    path = tmp_path / "rank0.json"
    path.write_text(f'{{"traceEvents": [{", ".join(rows)}], "baseTimeNanoseconds": 1000}}')
    trace = read_kineto(path)
    assert spans(trace) == [("a", 2_000, 3_000), ('b "it"', 4_000, 5_000)]
    assert [(code, count) for code, count, _ in said(trace)] == [
        ("broken-json", 1), ("repaired-json", 1), ("half-event", 2),
    ]  # fmt: skip


@pytest.mark.parametrize("key", ["name", "na\udcffme"])
@pytest.mark.parametrize("inside", [True, False])
def test_bytes_that_are_no_text(tmp_path: Path, key: str, inside: bool) -> None:
    """In a key or a value, of the event or its arguments, they cost nothing else."""
    odd = {key: "a\udcffb"}
    rows = [begin("a", 1, args={"External id": 3} | (odd if inside else {})), end(2) | ({} if inside else odd)]
    rows[1].pop("name", None)
    path = tmp_path / "rank0.json"
    text = json.dumps({"traceEvents": [*rows, begin("b", 3), end(4)]}, ensure_ascii=False)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    trace = read_kineto(path)
    assert spans(trace) == [("a", 1_000, 2_000), ("b", 3_000, 4_000)]
    assert [code for code, _, _ in said(trace)] == []


def test_what_stands_outside_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    rows = json.dumps([begin("a", 1), end(2)])
    rank = '{"distributedInfo": {"rank": 3}, "traceEvents": '
    path.write_text(rank + rows + ', "baseTimeNanoseconds": 7000}[1]')
    trace = read_kineto(path)
    assert (trace.rank, trace.base_ns, spans(trace)) == (3, 7_000, [("a", 8_000, 9_000)])
    assert said(trace) == [
        ("more-documents", 1, "3 bytes stand behind the first document of the file: only it was read")
    ]
    path.write_text(rank + rows[:-1])
    assert [fault[0] for fault in said(read_kineto(path))] == ["truncated"]


def test_pairs_hold_no_more_than_what_is_open() -> None:
    """Of a long file only events that have not ended are kept, and those that ended last."""
    pairs = Pairs()
    for at in range(0, 1000, 2):
        made = pairs.complete([json.dumps(each).encode() for each in (begin("a", at), end(at + 1))])
        assert len(made) == (1 if at else 0)  # the one before: an event around it might have ended with it
    assert len(pairs.rest()) == 1
    assert (pairs.rest(), pairs.begins, pairs.ends) == ([], 0, 0)


# --- the law: halves tell what whole events tell --------------------------------------------------------------------


def rows_of(trace: Trace) -> tuple[list[Any], list[Any]]:
    """Everything that is said of device work, and of the spans of each thread in their order."""
    names, host, work = trace.names, trace.host, trace.work
    spans = [
        (
            trace.threads[host.thread[at]], int(host.start_ns[at]), int(host.end_ns[at]), names[host.name[at]],
            int(host.kind[at]), repr(trace.details[host.detail[at]]) if host.detail[at] >= 0 else "",
            int(host.sequence[at]), int(host.correlation[at]), int(host.forward_thread[at]),
        )
        for at in range(len(host))
    ]  # fmt: skip
    pieces = [
        (
            int(work.start_ns[at]), int(work.end_ns[at]), int(work.device[at]), int(work.stream[at]),
            names[work.name[at]], int(work.kind[at]), int(work.correlation[at]), int(work.bytes[at]),
            repr(trace.details[work.detail[at]]) if work.detail[at] >= 0 else "",
            spans[work.launch[at]] if work.launch[at] >= 0 else (), spans[work.op[at]] if work.op[at] >= 0 else (),
        )
        for at in range(len(work))
    ]  # fmt: skip
    # an operator and a call that begin and end together stand in one order or the other, as blocks of the file fall
    return sorted(pieces), sorted(spans, key=lambda row: (row[0], row[1], -row[2], row[4]))


CATS = st.sampled_from(["cpu_op", "cuda_runtime", "user_annotation", "kernel", "gpu_memcpy", "python_function", "npu"])
MOVES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 2), st.sampled_from([0, 0, 1, 250, 1_000]), CATS, st.integers(1, 4)),
    min_size=1, max_size=40,
)  # fmt: skip


def us(ns: int) -> Any:
    return Decimal(ns).scaleb(-3) if ns % 1000 else ns // 1000


def both_ways(moves: Iterable[tuple[bool, int, int, str, int]], named: bool) -> tuple[list[Any], list[Any]]:
    """The same nested events whole, by begin and the longer first, and as halves, in the order of the clock."""
    events: list[Any] = []
    halves: list[Any] = []
    open_: dict[int, list[Any]] = {}
    now = 5_000

    def close(tid: int) -> None:
        event = open_[tid].pop()
        event["dur"] = us(now - event.pop("began"))
        last = {key: event[key] for key in ("ph", "pid", "tid", "name", "cat") if named or key not in ("name", "cat")}
        halves.append(last | {"ph": "E", "ts": us(now), "args": dict(list(event["args"].items())[1:])})

    for opens, tid, step, cat, number in moves:
        now += step
        if opens:
            key = number + 10 * tid  # of two launches at once, on two threads, none is the one
            args = {"External id": key, "correlation": key, "Input Dims": [[number]], "device": 0, "stream": tid}
            event = {"ph": "X", "cat": cat, "name": f"n{number}", "pid": 0, "tid": tid, "ts": us(now), "args": args}
            first = {**event, "ph": "B", "args": {"External id": key, "correlation": -1}}
            events.append(event | {"began": now})
            open_.setdefault(tid, []).append(events[-1])
            halves.append(first)
        elif open_.get(tid):
            close(tid)
    for tid, begun in open_.items():
        while begun:
            now += 250
            close(tid)
    return sorted(events, key=lambda event: (event["ts"], -event["dur"])), halves


def texts(rows: list[Any]) -> str:
    """As JSON, decimals as they are."""
    return json.dumps(rows, default=lambda value: f"@{value}@").replace('"@', "").replace('@"', "")


@settings(max_examples=150)
@given(MOVES, st.booleans(), st.sampled_from([200, 1_000, 10**6]))
@example([(True, 0, 0, "cpu_op", 1), (True, 0, 0, "cpu_op", 2)], False, 200)
@example(
    [(True, 0, 0, "cpu_op", 1), (True, 0, 0, "cpu_op", 2), (False, 0, 1, "npu", 1), (False, 0, 0, "npu", 1)], True, 200
)
@example([(True, 0, 0, "cuda_runtime", 1), (True, 0, 0, "cuda_runtime", 1), (True, 0, 0, "kernel", 1)], False, 200)
def test_halves_tell_what_whole_events_tell(
    tmp_path_factory: pytest.TempPathFactory, moves: list[Any], named: bool, block: int
) -> None:
    path = tmp_path_factory.mktemp("pairs", numbered=True) / "rank0.json"
    found = []
    for rows in both_ways(moves, named):
        path.write_text(f'{{"baseTimeNanoseconds": 5, "traceEvents": {texts(rows)}}}')
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source, "BLOCK_BYTES", block)
            try:
                trace = read_kineto(path)
            except UnreadableFileError as refused:
                found.append(refused.faults[0].got)
                continue
        found.append((rows_of(trace), [fault for fault in said(trace) if fault[0] != "base-time"]))
    assert found[0] == found[1]


@given(MOVES, st.integers(0, 4_000), st.booleans())
def test_a_cut_costs_only_what_had_not_ended(
    tmp_path_factory: pytest.TempPathFactory, moves: list[Any], cut: int, named: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "rank1.json"
    events, halves = both_ways(moves, named)
    path.write_text(texts(events)[:-1])
    try:
        expected = rows_of(read_kineto(path))
        path.write_text(texts(halves)[: -1 - cut])
        found = rows_of(read_kineto(path))
    except UnreadableFileError:
        return
    keys = [{row[:5] for row in rows[0]} | {row[:4] for row in rows[1]} for rows in (found, expected)]
    assert keys[0] <= keys[1]


SMALL = (
    "hta_alexnet_a100_cudasync.json.gz", "hta_mi250_rocm62_toy.json.gz", "tl_h100_bert_small.json.gz",
    "tl_vllm_decode_graph.json.gz", "tl_mi300_compile_triton.json.gz", "kineto_docs_after_fix.json",
)  # fmt: skip


def halved(events: list[Any]) -> list[Any]:
    """The complete events of a sample as halves: inner ones end first, and what crosses says its name."""
    timed = []
    for place, event in enumerate(events):
        if event.get("ph") != "X" or "dur" not in event:
            timed.append(((Decimal(0), 1, 0), event))
            continue
        start, length = Decimal(event["ts"]), Decimal(event["dur"])
        first = {key: value for key, value in event.items() if key != "dur"} | {"ph": "B"}
        last = {key: event[key] for key in ("pid", "tid", "name")} | {"ph": "E", "ts": start + length}
        timed.append(((start, 1, place), first))
        timed.append(((start + length, 0 if length else 2, -place), last))
    return [event for _, event in sorted(timed, key=lambda each: each[0])]


@pytest.mark.shared
@pytest.mark.parametrize("file", SMALL)
def test_a_sample_in_halves_is_the_sample(file: str, shared: Path, tmp_path: Path) -> None:
    raw = (shared / "traces" / "files" / file).read_bytes()
    document = json.loads(gzip.decompress(raw) if file.endswith(".gz") else raw, parse_float=Decimal)
    document["traceEvents"] = sorted(
        document["traceEvents"], key=lambda event: (Decimal(event.get("ts", 0)), -Decimal(event.get("dur", 0)))
    )  # of crossing events of one name it cannot be told which ends first
    found = []
    for events in (document["traceEvents"], halved(document["traceEvents"])):
        path = tmp_path / "rank0.json"
        path.write_text(texts([document | {"traceEvents": events}])[1:-1])
        found.append(read_kineto(path))
    assert rows_of(found[0]) == rows_of(found[1])
    assert said(found[0]) == said(found[1])
    assert len(found[0].host)


@pytest.mark.parametrize("names", ["in order", "never ended"])
def test_many_that_wait_take_no_longer_each(names: str) -> None:
    """Ends in the order of their beginnings, or of other names: a search among all that wait would take minutes."""
    count = 40_000
    texts = [json.dumps(begin(f"a{at}", at)).encode() for at in range(count)]
    other = "a" if names == "in order" else "b"
    texts += [json.dumps(end(count + at, name=f"{other}{at}")).encode() for at in range(count)]
    pairs = Pairs()
    started = time.process_time()
    found = pairs.complete(texts) + pairs.rest()
    assert time.process_time() - started < 10
    assert (len(found), pairs.begins, pairs.ends) == ((count, 0, 0) if other == "a" else (0, count, count))


def test_ends_with_and_without_a_name_among_others() -> None:
    """One that ended by its name is not ended again by an end without one, wherever it stands."""
    events = [begin("a", 1), begin("b", 2), begin("a", 3), end(4, name="b"), end(5), end(6), end(7)]
    pairs = Pairs()
    found = [json.loads(text) for text in pairs.complete(json.dumps(each).encode() for each in events)]
    found += map(json.loads, pairs.rest())
    assert [(each["name"], each["ts"], each["dur"]) for each in found] == [("b", 2, 2), ("a", 3, 2), ("a", 1, 5)]
    assert (pairs.begins, pairs.ends) == (0, 1)
