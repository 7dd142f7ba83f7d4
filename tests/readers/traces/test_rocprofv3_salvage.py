"""JSON of rocprofv3 that is cut or broken: what is whole is read in its place, what is lost is counted."""

from __future__ import annotations

import gzip
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import UnreadableFileError
from suanli.nouns.trace import Trace
from suanli.readers.traces import read_trace
from suanli.readers.traces.rocprofv3_mend import salvage_document

from .test_rocprofv3 import CPU, GPU, call, dispatch, process, record

CUT = ("truncated", 1, "the file ends within its records: it was cut, or never finished")
COPY = record(70, 80, 5, kind=2, operation=2, thread_id=1, bytes=4096, src_agent_id={"handle": CPU},
              dst_agent_id={"handle": GPU})  # fmt: skip
RECORDS = {
    "kernel_dispatch": [dispatch(at, at + 9, number) for number, at in enumerate(range(10, 60, 10), 1)],
    "hip_api": [call(at - 5, at, number, 1) for number, at in enumerate(range(10, 60, 10), 1)],
    "hsa_api": [], "marker_api": [call(1, 99, 3, 3)], "rccl_api": [call(60, 65, 9, 4)], "memory_copy": [COPY],
}  # fmt: skip
WHOLE = json.dumps({"rocprofiler-sdk-tool": [process(**RECORDS), process(909, hip_api=[call(3, 4, 1, 1)])]})
RECORD = json.dumps(RECORDS["kernel_dispatch"][2])


def read(folder: Path, text: str) -> Trace:
    path = folder / "1_results.json"
    path.write_text(text, encoding="utf-8")
    return read_trace(path)


def rows(trace: Trace) -> set[tuple[Any, ...]]:
    """What is said of each piece of device work and each span."""
    work, host = trace.work, trace.host
    pieces = {
        ("work", int(work.start_ns[at]), int(work.end_ns[at]), trace.names[work.name[at]], int(work.device[at]))
        for at in range(len(work))
    }
    spans = {
        ("host", int(host.start_ns[at]), int(host.end_ns[at]), trace.names[host.name[at]],
         trace.threads[host.thread[at]])
        for at in range(len(host))
    }  # fmt: skip
    return pieces | spans


def said(trace: Trace) -> list[tuple[str, int, str]]:
    return [(fault.code, fault.count, fault.message) for fault in trace.faults]


def lost(*texts: str) -> tuple[str, int, str]:
    size, pieces = sum(map(len, texts)), "1 piece" if len(texts) == 1 else f"{len(texts)} pieces"
    return ("broken-json", len(texts), f"{pieces} of broken JSON ({size:,} bytes) could not be read")


def test_a_file_cut_within_a_record(tmp_path: Path) -> None:
    """The records before it are read, with the names and devices that stand before them."""
    at = WHOLE.index(RECORD)
    trace = read(tmp_path, WHOLE[: at + 40])
    assert [trace.names[place] for place in trace.work.name] == ["gemm", "gemm"]
    assert trace.devices[0].name == "AMD Instinct MI350X"
    assert said(trace) == [lost(RECORD[:40]), CUT]


def test_a_file_cut_between_records(tmp_path: Path) -> None:
    trace = read(tmp_path, WHOLE[: WHOLE.index(RECORD) - 2])
    assert (len(trace.work), said(trace)) == (2, [CUT])


def test_a_packed_file_that_is_cut(tmp_path: Path) -> None:
    many = json.dumps(
        {"rocprofiler-sdk-tool": [process(kernel_dispatch=[dispatch(at, at + 9, at) for at in range(500)])]}
    )
    packed = gzip.compress(many.encode())
    path = tmp_path / "a.json.gz"
    path.write_bytes(packed[: len(packed) * 4 // 5])
    trace = read_trace(path)
    assert 100 < len(trace.work) < 500
    assert [code for code, _, _ in said(trace)] == ["broken-gzip", "broken-json", "truncated"]


BROKEN = {
    "a record": (RECORD, RECORD.replace(": 30", ": 3x0", 1), 1),
    "half a record": (RECORD, RECORD[:60], 1), "most of a record": (RECORD, RECORD[:-20], 1),
    "a record without a bracket": (RECORD, RECORD[:-3], 1),
    "a number beside a record": (RECORD, f"x3, {RECORD}", 0),
    "the last of a list": (json.dumps(RECORDS["kernel_dispatch"][-1]), '{"start_timestamp": 50 60}', 1),
    "all of a list": (json.dumps(RECORDS["memory_copy"]), '[{"start_timestamp": }]', 1),
    "a number of the process": ('"pid": 908}', '"pid": 9o8, "more": 3}', 6),
    "a text of a table": ('"value": "step 1"', '"value": "step"1"', 1),
    "an agent": ('{"id": {"handle": 102}', '{"id": {"handle" 102}', 0),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_break_costs_itself_alone(tmp_path: Path, case: str) -> None:
    """`lost` rows differ from those of the file as it was."""
    whole, broken, missing = BROKEN[case]
    assert whole in WHOLE
    before, trace = rows(read(tmp_path, WHOLE)), None
    trace = read(tmp_path, WHOLE.replace(whole, broken, 1))
    found = rows(trace)
    if case == "a number of the process":  # of which the process of threads is told
        before, found = ({row[:4] for row in each} for each in (before, found))
        missing = 0
    assert len(before - found) == missing
    assert [(code, count) for code, count, _ in said(trace)] == [("broken-json", 1)]


def test_kinds_of_records_are_known_by_their_places(tmp_path: Path) -> None:
    """One that is lost leaves the names of the others as they were."""
    kind = '{"kind": "NONE", "operations": []}'
    trace = read(tmp_path, WHOLE.replace(kind, kind.replace(":", "", 1), 1))
    assert rows(trace) == rows(read(tmp_path, WHOLE))
    assert said(trace) == [lost(kind.replace(":", "", 1))]


def test_tables_that_stand_behind_the_cut_are_missed_by_name(tmp_path: Path) -> None:
    said_first = json.dumps({"agents": process()["agents"], "buffer_records": RECORDS})
    trace = read(tmp_path, f'{{"rocprofiler-sdk-tool": [{said_first[:-1]}, "kernel_symbols": [{{"kern')
    assert {trace.names[place] for place in trace.work.name} == {"kernel 8", "Memcpy"}
    codes = [(code, count) for code, count, _ in said(trace)]
    assert codes == [("broken-json", 1), ("truncated", 1), ("no-name", 5)]


@pytest.mark.parametrize(
    ("was", "becomes", "count"),
    [
        ('"start_timestamp": 10,', '"start_timestamp": "soon",', 1),
        ('"agents": [', '"agents": [5, ', 1),
        ('"pid": 908', '"pid": 1.5', 1),
        ('"kernel_symbols": [', '"kernel_symbols": 3, "x": [', 1),
        ('"rocprofiler-sdk-tool": [', '"rocprofiler-sdk-tool": [{"x": 1}, "y", ', 2),
    ],
)
def test_values_of_another_form_are_left_out(tmp_path: Path, was: str, becomes: str, count: int) -> None:
    trace = read(tmp_path, WHOLE.replace(was, becomes, 1))
    assert len(trace.work) >= 4
    one = "1 value that is not as rocprofv3 writes it is left out"
    message = one if count == 1 else f"{count} values that are not as rocprofv3 writes them are left out"
    assert said(trace)[0] == ("bad-event", count, message)


def test_only_the_first_document_is_read(tmp_path: Path) -> None:
    trace = read(tmp_path, f"{WHOLE}\n{WHOLE}\n")
    assert rows(trace) == rows(read(tmp_path, WHOLE))
    message = f"{len(WHOLE):,} bytes stand behind the first document of the file: only it was read"
    assert said(trace) == [("more-documents", 1, message)]


@pytest.mark.parametrize(
    "text",
    [
        '{"rocprofiler-sdk-tool": [', '{"rocprofiler-sdk-tool": [{"buffer_records": {"hip_api": [{"start_t',
        '{"rocprofiler-sdk-tool": ' + '{"a": ' * 100_000, '{"rocprofiler-sdk-tool": ' + "[" * 100_000,
        '{"rocprofiler-sdk-tool": {"buffer_records": 3', '{"rocprofiler-sdk-tool": "',
    ],
)  # fmt: skip
def test_where_not_one_record_can_be_read_the_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableFileError, match=r"the file is no JSON of rocprofv3"):
        read(tmp_path, text)


# --- laws -----------------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(st.integers(1, len(WHOLE) - 1))
def test_a_cut_adds_nothing_and_is_said(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "a.json"
    path.write_text(WHOLE)
    before = rows(read_trace(path))
    path.write_text(WHOLE[:-cut])
    try:
        trace = read_trace(path)
    except UnreadableFileError:
        assert len(WHOLE) - cut < WHOLE.index(RECORD)
        return
    assert rows(trace) <= before
    assert CUT in said(trace)
    listed = WHOLE[:-cut].count('"start_timestamp"')
    assert listed - 1 <= len(trace.work) + len(trace.host) <= listed


@given(st.lists(st.tuples(st.integers(0, len(WHOLE)), st.sampled_from('{}[]",: x')), min_size=1, max_size=4))
def test_marks_put_in_anywhere_make_up_no_time(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "a.json"
    path.write_text(WHOLE)
    before = {row[1:3] for row in rows(read_trace(path))}
    text = WHOLE
    for at, put in damage:
        text = text[:at] + put + text[at:]
    path.write_text(text)
    try:
        trace = read_trace(path)
    except UnreadableFileError:
        return
    assert {row[1:3] for row in rows(trace)} <= before
    assert trace.faults or rows(trace)


@given(st.text('{}[]",:x1 ', max_size=60))
def test_any_text_is_read_to_some_end(text: str) -> None:
    try:
        found = salvage_document(text.encode())
    except ValueError:
        return
    assert found.lost_bytes + found.bytes_behind <= len(text)


@pytest.mark.shared
@pytest.mark.parametrize(("part", "dispatches"), [(0.55, 5_130), (0.75, 22_380), (0.999, 43_829)])
def test_the_public_sample_cut(shared: Path, tmp_path: Path, part: float, dispatches: int) -> None:
    content = gzip.decompress((shared / "traces" / "files" / "tl_rocprofv3_908.json.gz").read_bytes())
    path = tmp_path / "a.json"
    path.write_bytes(content[: int(part * len(content))])
    trace = read_trace(path)
    ends = re.findall(rb'"stream_id":\{"handle":\d+\}\}', path.read_bytes())  # the last thing said of a dispatch
    assert len(trace.work) == len(ends) == dispatches
    assert [code for code, _, _ in said(trace)] == ["broken-json", "truncated"]
    assert trace.devices[0].name == "AMD Instinct MI350X"


@pytest.mark.parametrize("end", ["]}}]}", ""], ids=["whole", "cut"])
def test_many_breaks_take_no_longer_each(end: str) -> None:
    """Neither the end of their list nor the lines before them are looked for at each: that would take minutes."""
    sound, broken = json.dumps(RECORDS["kernel_dispatch"][0]), RECORD.replace('"thread_id": ', '"thread_id": :', 1)
    assert broken != RECORD
    records = ", ".join([sound, broken] * 20_000)
    text = f'{{"rocprofiler-sdk-tool": [{{"buffer_records": {{"kernel_dispatch": [{records}{end}'
    started = time.process_time()
    found = salvage_document(text.encode())
    assert time.process_time() - started < 10
    assert (found.lost_pieces, found.lost_bytes) == (20_000, 20_000 * len(broken))


@pytest.mark.parametrize("length", [100, 8_000, 8_150, *range(8_170, 8_200), 20_000])
@pytest.mark.parametrize("value", ["-Infinity", '"\\ud83d\\ude00"', "12345678.5e-3", "true", '"a"', "{}", "[[]]"])
def test_elements_longer_than_what_is_read_first(value: str, length: int) -> None:
    element = f'{{"a": "{"x" * length}", "b": {value}}}'
    found = salvage_document(f'{{"k": [{element}, {{"a": 1}}, '.encode())
    assert found.document == {"k": [json.loads(element, parse_constant=lambda _: None), {"a": 1}]}
    assert (found.lost_pieces, found.cut) == (0, True)
