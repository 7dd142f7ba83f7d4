"""Narrow records and wide ones read the same of any file: laid out, escaped, odd, cut and broken in whatever way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from decimal import ROUND_HALF_EVEN, Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import UnreadableFileError
from suanli.nouns.trace import Trace
from suanli.readers.traces import kineto_salvage, source
from suanli.readers.traces.kineto import read_kineto
from suanli.readers.traces.kineto_events import OP_CATS, RUNTIME_CATS, WORK_CATS, KinetoDecoder, Width

KEPT_HOST = (*OP_CATS, *RUNTIME_CATS)
CATS = st.sampled_from(["kernel", "Memcpy", "gpu_memset", "cpu_op", "user_annotation", "cuda_runtime", "ac2g", "new"])
NAMES = st.sampled_from(
    ["aten::mm", "k<float>", 'a"b', "back\\slash", "üñí", "tab\t", '}, {"ph": ', "ProfilerStep#3", ""]
)
TIMES = st.one_of(
    st.integers(1, 10**15).map(str),
    st.integers(1, 10**18).map(lambda ns: f"{ns // 1000}.{ns % 1000:03}"),
    st.integers(1, 10**18).map(lambda ns: f"{Decimal(ns).scaleb(-3):f}"),
    st.sampled_from(["2251799813685248.4", "1712195495519689.047", "1.0005", "12.0", "1e3"]),
)
ODD = st.sampled_from(
    ["null", "0.0005", '"12.5"', '"x"', "-3", "0", "-0.5", "9" * 40, "true", "[1]", "1e99", str(2**63 - 1)]
)
IDS = st.one_of(st.integers(-2, 9).map(str), st.sampled_from(["null", '"7"', '"stream 7"', "1.5", str(2**64), "[]"]))
ARGS = st.dictionaries(
    st.sampled_from(["External id", "device", "stream", "correlation", "bytes", "Fwd thread id", "Sequence number"]),
    IDS,
)
TEXTS = st.dictionaries(
    st.sampled_from(["Input Dims", "Input type", "grid", "kind", "Collective name", "kernel_backend", "direction"]),
    st.sampled_from(["[[8, 4], []]", '["float"]', '"HtoD"', "3", '{"ph": "X", "cat": "kernel"}', '[{"name": "}"}]']),
)
PHASES = st.sampled_from([*['"X"'] * 9, '"B"', "3"])
LAYOUTS = st.sampled_from([(": ", ", ", ""), (":", ",", ""), (": ", ",\n    ", "\n    "), (" :\t", " , ", " ")])


@st.composite
def events(draw: st.DrawFn, odd: bool = True) -> dict[str, Any]:
    """The fields of an event as JSON texts, in some order."""
    times = st.one_of(TIMES, ODD) if odd else TIMES
    said: dict[str, Any] = {
        "ph": draw(PHASES) if odd else '"X"', "cat": json.dumps(draw(CATS)), "name": json.dumps(draw(NAMES)),
        "pid": draw(IDS) if odd else "4515", "tid": draw(st.integers(1, 3)), "ts": draw(times), "dur": draw(times),
        "args": draw(ARGS) | draw(TEXTS) if odd else draw(TEXTS),
    }  # fmt: skip
    return {key: said[key] for key in draw(st.permutations(list(said)))[: None if not odd else draw(st.integers(5, 8))]}


def written(said: Any, layout: tuple[str, str, str]) -> str:
    """The JSON text of an event in a layout."""
    if not isinstance(said, Mapping):
        return str(said)
    colon, comma, inner = layout
    body = comma.join(f"{json.dumps(key)}{colon}{written(value, layout)}" for key, value in said.items())
    return f"{{{inner}{body}{inner}}}"


def file_of(rows: list[dict[str, Any]], layout: tuple[str, str, str]) -> bytes:
    listed = layout[1].join(written(row, layout) for row in rows)
    return f'{{"baseTimeNanoseconds": 7, "traceEvents": [{listed}], "distributedInfo": {{"rank": 3}}}}'.encode()


def damaged(text: bytes, data: st.DataObject, *more: bytes) -> bytes:
    """The text, or with a piece taken out and something, or `more`, put in its place."""
    if not data.draw(st.booleans(), label="damaged"):
        return text
    at, drop = data.draw(st.integers(0, len(text))), data.draw(st.sampled_from([0, 1, 5, 10**6]))
    put = data.draw(st.sampled_from([b"", b'"', b"}", b",", b"\\", b"\xff", b"\0", *more]))
    return text[:at] + put + text[at + drop :]


def seen(path: Path, width: Width, block: int) -> Any:
    """Everything a trace says, read with records that begin at a width; or why it is refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kineto_salvage, "KinetoDecoder", partial(KinetoDecoder, width))
        patch.setattr(source, "BLOCK_BYTES", block)
        try:
            return plain(read_kineto(path))
        except UnreadableFileError as refused:
            return str(refused)


def plain(trace: Trace) -> dict[str, Any]:
    said = {field.name: getattr(trace, field.name) for field in fields(trace)}
    for table in ("work", "host"):
        columns = said.pop(table)
        said |= {f"{table}.{each.name}": getattr(columns, each.name).tolist() for each in fields(columns)}
    return said


@settings(max_examples=100)
@given(st.lists(events(), max_size=12), LAYOUTS, st.sampled_from([150, 700, 10**6]), st.data())
def test_narrow_records_read_what_wide_ones_do(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], layout: tuple[str, str, str], block: int,
    data: st.DataObject,
) -> None:  # fmt: skip
    text = damaged(file_of(rows, layout), data)
    path = tmp_path_factory.mktemp("widths", numbered=True) / "trace.json"
    path.write_bytes(text)
    expected = seen(path, Width.ANY, block)
    assert seen(path, Width.WHOLE, block) == expected
    assert seen(path, Width.DECIMAL, block) == expected


def by_hand(text: bytes, cats: Any) -> list[tuple[Any, ...]]:
    """What stands in a sound file, by the parser of the standard library and decimals."""
    rows = json.loads(text, parse_float=Decimal)["traceEvents"]
    found = []
    for row in rows:
        if row["cat"] in cats:
            start, length = (
                int((Decimal(row[key]) * 1000).to_integral_value(ROUND_HALF_EVEN)) for key in ("ts", "dur")
            )
            found += [(start + 7, start + 7 + length, row["name"])]
    return sorted(found)


@settings(max_examples=60)
@given(st.lists(events(odd=False), min_size=1, max_size=12), LAYOUTS, st.sampled_from([200, 10**6]))
def test_a_sound_file_is_what_its_texts_say(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], layout: tuple[str, str, str], block: int
) -> None:
    """Against json and Decimal: no time moves by a nanosecond, no event goes missing, whatever the layout."""
    text = file_of(rows, layout)
    path = tmp_path_factory.mktemp("sound", numbered=True) / "trace.json"
    path.write_bytes(text)
    work, host = by_hand(text, WORK_CATS), by_hand(text, KEPT_HOST)
    if not work and not host:
        return
    said = seen(path, Width.WHOLE, block)
    for table, expected in (("work", work), ("host", host)):
        columns = (said[f"{table}.start_ns"], said[f"{table}.end_ns"], said[f"{table}.name"])
        assert sorted((a, b, said["names"][name]) for a, b, name in zip(*columns, strict=True)) == expected
    assert said["events"] == len(rows)


def test_a_file_that_turns_to_decimals_keeps_what_came_before(tmp_path: Path) -> None:
    row = '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": %s, "dur": 2, "args": {"device": %s}}'
    texts = [row % (20 * k, 0) for k in range(1, 9)] + [row % ("500.125", 0), row % ("600.5", '"1"'), row % (700, 0)]
    path = tmp_path / "rank0.json"
    path.write_text(f'{{"traceEvents": [{", ".join(texts)}]}}')
    said = seen(path, Width.WHOLE, 300)
    assert sorted(said["work.start_ns"]) == [*(20_000 * k for k in range(1, 9)), 500_125, 600_500, 700_000]
    assert (said["events"], sum(said["work.device"])) == (11, 1)
    assert said == seen(path, Width.ANY, 300)


def test_threads_are_numbered_in_the_order_of_the_file(tmp_path: Path) -> None:
    row = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": %s, "tid": %s, "ts": 9, "dur": 2}'
    path = tmp_path / "rank0.json"
    pairs = [("9", "5"), ("1", "2"), ('"9"', '"5"'), ("1", "02"[1:])]
    path.write_text(f'{{"traceEvents": [{", ".join(row % pair for pair in pairs)}]}}')
    for block in (100, 10**6):
        said = seen(path, Width.WHOLE, block)
        assert said["threads"] == (("9", "5"), ("1", "2"))
        assert np.bincount(said["host.thread"]).tolist() == [2, 2]
