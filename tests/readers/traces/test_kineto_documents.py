"""What stands around the list of events: its end, other lists, other documents, each said where it is not read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.nouns.trace import Trace
from suanli.readers.traces import source
from suanli.readers.traces.kineto import read_kineto
from suanli.units import counted

BEHIND = "{count} {bytes stand|byte stands} behind the first document of the file: only it was read"

METADATA = {"name": "process_name", "ph": "M", "ts": 0, "pid": 0, "tid": 0, "args": {"name": "python"}}
CUT = "the file ends within its list of events: it was cut, or never finished"


def kernel(name: str, ts: int) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": 5, "args": {"device": 0}}


def listed(*names: str) -> str:
    return json.dumps([kernel(name, 10 * at) for at, name in enumerate(names, 1)])


def read(folder: Path, text: str, block: int = 10**6) -> Trace:
    path = folder / "rank0.json"
    path.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK_BYTES", block)
        return read_kineto(path)


def names(trace: Trace) -> list[str]:
    return [trace.names[place] for place in trace.work.name]


def said(trace: Trace) -> list[tuple[str, int, str]]:
    return [(fault.code, fault.count, fault.message) for fault in trace.faults if fault.code != "base-time"]


# --- the end of a bare list -----------------------------------------------------------------------------------------

LAST: list[list[Any]] = [
    [], [METADATA], [METADATA | {"ph": "i"}, METADATA], [{"ph": "s", "cat": "ac2g", "id": 3, "ts": 1, "name": "ac2g"}],
    [{"ph": "C", "name": "x", "ts": 3, "args": {"v": 1}}], [{"ph": "X", "cat": "npu", "name": "n", "ts": 1, "dur": 1}],
]  # fmt: skip


@pytest.mark.parametrize("block", [150, 10**6])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("last", LAST)
def test_a_bare_list_that_ends_is_whole(tmp_path: Path, last: list[Any], indent: int | None, block: int) -> None:
    """Whatever its last events are: names of processes have no category, and are read another way."""
    text = json.dumps([METADATA, kernel("a", 1), kernel("b", 9), *last], indent=indent)
    for whole in (text, f"{text}\n", f" {text} \r\n\0\0"):
        trace = read(tmp_path, whole, block)
        assert names(trace) == ["a", "b"]
        assert "truncated" not in [code for code, _, _ in said(trace)]
        assert "more-documents" not in [code for code, _, _ in said(trace)]


@pytest.mark.parametrize("block", [150, 10**6])
@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_bare_list_that_is_cut_says_so(tmp_path: Path, last: list[Any], cut: int, block: int) -> None:
    trace = read(tmp_path, json.dumps([METADATA, kernel("a", 1), kernel("b", 90), *last])[:-cut], block)
    assert ("truncated", 1, CUT) in said(trace)
    assert names(trace)[0] == "a"


# --- documents behind the first -------------------------------------------------------------------------------------

FIRST = f'{{"traceEvents": {listed("a")}, "distributedInfo": {{"rank": 3}}}}'
BARE = listed("a")
OTHERS = [
    f'{{"traceEvents": {listed("b", "c")}}}', f'{{"a": "ü{"x" * 300}", "traceEvents": {listed("b", "c")}, "z": 1}}',
    listed("b", "c"), f'{{"traceEvents": {listed("b")[:-9]}', "x", "]", '"',
]  # fmt: skip


@pytest.mark.parametrize("block", [60, 333, 10**6])
@pytest.mark.parametrize("gap", ["", "\n", " \r\n\t"])
@pytest.mark.parametrize("other", OTHERS, ids=["small", "large", "bare", "cut", "x", "bracket", "quote"])
@pytest.mark.parametrize("first", [FIRST, BARE], ids=["document", "list"])
def test_only_the_first_document_is_read_and_that_is_said(
    tmp_path: Path, first: str, other: str, gap: str, block: int
) -> None:
    trace = read(tmp_path, first + gap + other, block)
    assert names(trace) == ["a"]
    size = len(other.encode())
    message = counted(size, BEHIND)
    assert said(trace) == [("more-documents", 1, message)]
    assert trace.rank == (3 if first is FIRST else 0)


@pytest.mark.parametrize("tail", ["", " \n", "\0\0\0", "}", ",}\n"])
def test_padding_is_no_document(tmp_path: Path, tail: str) -> None:
    assert said(read(tmp_path, f'{{"traceEvents": {listed("a")}}}{tail}')) == []


def test_bytes_that_are_not_kept_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from suanli.readers.traces import kineto_salvage

    monkeypatch.setattr(kineto_salvage, "MOST_EVENT", 500)
    other = f'{{"traceEvents": {listed(*"bcdefghijklmnopqrstuvwxyz" * 40)}}}'
    trace = read(tmp_path, FIRST + other, 1_000)
    message = counted(len(other), BEHIND)
    assert said(trace) == [("more-documents", 1, message)]


# --- lists in one document ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [60, 10**6])
@pytest.mark.parametrize(
    "text",
    [
        f'{{"baseTimeNanoseconds": 0, "meta": {{"traceEvents": []}}, "traceEvents": {listed("a", "b")}}}',
        f'{{"meta": {{"traceEvents": {listed("x")}}}, "traceEvents": {listed("a", "b")}, "baseTimeNanoseconds": 0}}',
        f'{{"traceEvents": [], "baseTimeNanoseconds": 0, "traceEvents": {listed("a", "b")}}}',
        f'{{"a": [{{"b": {{"traceEvents": [1]}}}}], "traceEvents": {listed("a", "b")}, "traceEvents": []}}',
        f'{{"traceEvents": {listed("a", "b")}, "meta": {{"traceEvents": {listed("x")}}}}}',
    ],
)
def test_the_list_at_the_top_is_read(tmp_path: Path, text: str, block: int) -> None:
    trace = read(tmp_path, text, block)
    assert names(trace) == ["a", "b"]
    assert said(trace) == []


@pytest.mark.parametrize("block", [60, 10**6])
def test_a_second_list_is_said(tmp_path: Path, block: int) -> None:
    lists = f'"traceEvents": {listed("a", "b")}, "traceEvents": {listed("c", "d", "e")}'
    trace = read(tmp_path, f'{{{lists}, "distributedInfo": {{"rank": 5}}}}', block)
    assert (names(trace), trace.rank) == (["a", "b"], 5)
    message = "a second list of traceEvents stands behind the first: its 3 events are left out"
    assert said(trace) == [("more-documents", 3, message)]


JSON = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a"\\{}[]:, ü'), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.sampled_from(["traceEvents", "traceEvents\\"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=3), st.lists(JSON, max_size=3), st.sampled_from([20, 10**6]))
def test_whatever_stands_around_it_the_list_is_found(
    tmp_path_factory: pytest.TempPathFactory, before: list[Any], behind: list[Any], block: int
) -> None:
    """Nothing in other values is taken for the list, and nothing is said where nothing is wrong."""
    parts = [f'"b{at}": {json.dumps(each, ensure_ascii=False)}' for at, each in enumerate(before)]
    parts += [f'"traceEvents": {listed("a", "b")}']
    parts += [f'"c{at}": {json.dumps(each, ensure_ascii=False)}' for at, each in enumerate(behind)]
    trace = read(tmp_path_factory.getbasetemp(), f"{{{', '.join(parts)}}}", block)
    assert names(trace) == ["a", "b"]
    assert said(trace) == []
