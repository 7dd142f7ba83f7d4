"""Times are whole nanoseconds of the text itself."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.readers.traces.numbers import (
    LARGEST_NS,
    MISSING,
    NO_TIME,
    decimal_of,
    nanoseconds,
    whole_nanoseconds,
    whole_numbers,
)

CASES = (
    (b"1", 1_000),
    (b"1.5", 1_500),
    (b"12.345", 12_345),
    (b'"12.345"', 12_345),  # old writers put numbers in quotes
    (b"-2.5", -2_500),
    (b"1e3", 1_000_000),
    (b"0.0004", 0),  # 0.4 ns
    (b"0.0005", 0),  # half a nanosecond goes to the even one
    (b"0.0015", 2),
    (b"1712195495519689.047", 1_712_195_495_519_689_047),  # a float64 would be off by 47 ns
    (b"7889238000001.234", 7_889_238_000_001_234),
    (b"", MISSING),
    (b"null", MISSING),
    (b"1.2.3", MISSING),
    (b"1,5", MISSING),
    (b"NaN", MISSING),
    (b"9" * 29, MISSING),
    (b"9" * 10**6, MISSING),
    (b"1e99", MISSING),
    (b"4000000000000000", LARGEST_NS),
    (b"4000000000000001", MISSING),
    (b"4000000000000000.001", MISSING),
    (b"9223372036854775807.123", MISSING),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"12.345", Decimal("12.345")), (b' "12" ', Decimal(12)), (b"1e3", Decimal(1000)), (b"null", None), (b"", None)],
)
def test_a_number_is_a_decimal(text: bytes, expected: Decimal | None) -> None:
    assert decimal_of(text) == expected


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_one_number_alone(text: bytes, expected: int) -> None:
    assert nanoseconds([text]).tolist() == [expected]


@pytest.mark.parametrize("beside", [[b"7"], [b"7.25"], [b"7.125"], [b"7.5", b"8"], [b""]])
@pytest.mark.parametrize(("text", "expected"), CASES)
def test_one_number_beside_others(text: bytes, expected: int, beside: list[bytes]) -> None:
    """The quick ways see columns: a number must not change with its neighbours."""
    assert nanoseconds([*beside, text, *beside])[len(beside)] == expected


def test_none() -> None:
    assert nanoseconds([]).tolist() == []


@given(st.lists(st.integers(0, LARGEST_NS), min_size=1, max_size=20), st.sampled_from(["", "3", "cut"]))
def test_every_nanosecond_comes_back(times: list[int], form: str) -> None:
    texts = [f"{Decimal(time).scaleb(-3):f}" if form else str(time // 1000) for time in times]
    if form == "3":
        texts = [f"{time // 1000}.{time % 1000:03}" for time in times]
    expected = times if form else [time // 1000 * 1000 for time in times]
    assert nanoseconds([text.encode() for text in texts]).tolist() == expected


@given(st.lists(st.one_of(st.integers(), st.integers(-(2**65), 2**65), st.just(int(NO_TIME))), max_size=20))
def test_whole_microseconds_are_what_their_texts_are(times: list[int]) -> None:
    assert whole_nanoseconds(times).tolist() == nanoseconds([b"%d" % time for time in times]).tolist()


@given(st.lists(st.from_regex(r"\A[0-9]{1,20}(\.[0-9]{0,4})?\Z").map(str.encode), min_size=1, max_size=6))
def test_texts_beside_one_another_are_read_as_each_alone(texts: list[bytes]) -> None:
    assert nanoseconds(texts).tolist() == [nanoseconds([text, b""])[0] for text in texts]


def test_ids_of_64_bits_stay_apart() -> None:
    assert whole_numbers([1, 2**63, 2**64 - 1, 2**70, -(2**63)]).tolist() == [1, -(2**63), -1, -1, -(2**63)]
