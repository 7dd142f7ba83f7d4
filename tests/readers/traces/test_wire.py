"""Protobuf's wire format: single messages and many in step give the same, whatever the bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.readers.traces.wire import BYTES, FIXED32, FIXED64, VARINT, Data, fields, rounds, signed, varint

from .xspace_made import number, packed, whole


@pytest.mark.parametrize(
    ("content", "value"),
    [(b"\x00", 0), (b"\x7f", 127), (b"\x80\x01", 128), (b"\xac\x02", 300), (b"\xff" * 9 + b"\x01", 2**64 - 1)],
)
def test_numbers_of_the_specification(content: bytes, value: int) -> None:
    assert varint(content, 0, len(content)) == (value, len(content))


@pytest.mark.parametrize("content", [b"", b"\x80", b"\x80" * 11])
def test_numbers_that_break_off(content: bytes) -> None:
    assert varint(content, 0, len(content)) == (0, -1)


def test_signed_numbers() -> None:
    assert [signed(value) for value in (0, 2**63 - 1, 2**63, 2**64 - 1)] == [0, 2**63 - 1, -(2**63), -1]


def test_every_kind_of_field() -> None:
    content = whole(1, 300) + number(2 << 3 | FIXED64) + (5).to_bytes(8, "little") + packed(3, "abc")
    content += number(4 << 3 | FIXED32) + (6).to_bytes(4, "little")
    breaks: list[int] = []
    found = list(fields(content, 0, len(content), breaks))
    assert [(place, kind) for place, kind, _, _ in found] == [(1, VARINT), (2, FIXED64), (3, BYTES), (4, FIXED32)]
    assert (found[0][2], found[1][2], found[3][2]) == (300, 5, 6)
    assert content[found[2][2] : found[2][3]] == b"abc"
    assert breaks == []


@pytest.mark.parametrize(
    ("content", "known"),
    [
        (packed(1, "abcdef")[:-2], 1),  # bytes come cut
        (whole(2, 7) + b"\x08", 1),  # a number without its value
        (whole(2, 7) + b"\x0b", 1),  # the start of a group, gone from the format
        (whole(2, 7) + number(3 << 3 | FIXED64) + b"\0\0", 1),
        (whole(2, 7) + b"\x00\x05", 1),  # field 0
    ],
)
def test_a_message_that_breaks_off_keeps_what_stands_before(content: bytes, known: int) -> None:
    breaks: list[int] = []
    assert len(list(fields(content, 0, len(content), breaks))) == known
    assert len(breaks) == 1


def in_step(
    content: bytes, starts: list[int], ends: list[int]
) -> tuple[list[list[tuple[int, int, int, int]]], list[bool]]:
    found: list[list[tuple[int, int, int, int]]] = [[] for _ in starts]
    broken = np.zeros(len(starts), dtype=bool)
    columns = np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)
    for each in rounds(Data.of(content), *columns, broken):
        rows = zip(each.record, each.number, each.kind, each.value, each.end, strict=True)
        for record, *rest in rows:
            found[int(record)].append(tuple(int(part) for part in rest))  # type: ignore[arg-type]
    return found, broken.tolist()


MESSAGES = st.lists(
    st.one_of(
        st.builds(whole, st.integers(1, 40), st.integers(-(2**63), 2**63 - 1)),
        st.builds(packed, st.integers(1, 40), st.binary(max_size=200)),
        st.builds(
            lambda place, body: number(place << 3 | FIXED64) + body,
            st.integers(1, 40),
            st.binary(min_size=8, max_size=8),
        ),
        st.builds(
            lambda place, body: number(place << 3 | FIXED32) + body,
            st.integers(1, 40),
            st.binary(min_size=4, max_size=4),
        ),
    ),
    max_size=6,
).map(b"".join)


@given(st.lists(MESSAGES, min_size=1, max_size=8))
def test_in_step_gives_what_one_by_one_gives(messages: list[bytes]) -> None:
    ends = np.cumsum([len(each) for each in messages]).tolist()
    starts = [0, *ends[:-1]]
    content = b"".join(messages)
    found, broken = in_step(content, starts, ends)
    assert broken == [False] * len(messages)
    assert found == [list(fields(content, start, end, [])) for start, end in zip(starts, ends, strict=True)]


@given(st.binary(max_size=120), st.lists(st.integers(0, 120), min_size=2, max_size=6))
def test_any_bytes_end_and_stay_inside(content: bytes, cuts: list[int]) -> None:
    places = sorted(min(cut, len(content)) for cut in cuts)
    starts, ends = places[:-1], places[1:]
    found, broken = in_step(content, starts, ends)
    for record, (start, end) in enumerate(zip(starts, ends, strict=True)):
        breaks: list[int] = []
        expected = list(fields(content, start, end, breaks))
        assert broken[record] == bool(breaks)
        whole_ones = [each for each in expected if each[1] != BYTES or each[3] < end or not breaks]
        assert found[record][: len(whole_ones)] == whole_ones
        assert all(start <= each[3] <= end for each in found[record])
