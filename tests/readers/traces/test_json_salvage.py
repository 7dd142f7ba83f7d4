"""Events out of broken JSON: what is whole is kept, what is lost is counted, nothing is invented."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.readers.traces.json_salvage import Salvaged, salvage_events

EVENTS: list[dict[str, Any]] = [
    {"ph": "X", "name": f"k{i}", "pid": 1, "tid": 2, "ts": i * 10, "dur": 5, "args": {"in": [{"ph": "x"}]}}
    for i in range(6)
]
WHOLE = json.dumps({"displayTimeUnit": "ns", "traceEvents": EVENTS}).encode()


def salvaged(content: bytes) -> Salvaged:
    found = salvage_events(content)
    assert found is not None
    return found


def test_what_is_whole_is_all_there() -> None:
    assert salvaged(WHOLE) == Salvaged(tuple(EVENTS), 0, 0, False)


def test_a_file_that_was_cut() -> None:
    found = salvaged(WHOLE[: WHOLE.index(b'"k4"')])
    assert found.events == tuple(EVENTS[:4])
    assert (found.lost_pieces, found.cut) == (1, True)
    assert found.lost_bytes == len(b'{"ph": "X", "name": ')


@pytest.mark.parametrize("broken", ['"k"2"', "N/A", '"a\nb\\q"', "", '"k2"}}'])
def test_a_broken_event_costs_itself_alone(broken: str) -> None:
    found = salvaged(WHOLE.replace(b'"k2"', broken.encode()))
    kept = [event["name"] for event in found.events if event.get("name", "").startswith("k") and "ts" in event]
    assert kept == ["k0", "k1", "k3", "k4", "k5"]
    assert found.lost_pieces >= 1


@pytest.mark.parametrize("content", [b"", b"{}", b'{"traceEvents": 3}', b"[]", b"\xff\xfe"])
def test_no_list_of_events(content: bytes) -> None:
    assert salvage_events(content) is None


@pytest.mark.parametrize("odd", [b",", b",,\n", b"3,", b'"text",', b"null, []"])
def test_what_is_no_event_is_stepped_over(odd: bytes) -> None:
    found = salvaged(WHOLE.replace(b'"traceEvents": [', b'"traceEvents": [' + odd))
    assert found.events == tuple(EVENTS)


def test_decimals_stay_decimals() -> None:
    (event,) = salvaged(b'{"traceEvents": [{"ph": "X", "ts": 0.1234567890123456789, "dur": NaN').events or ({},)
    assert event == {}  # the event itself was cut
    found = salvaged(b'{"traceEvents": [{"ph": "X", "ts": 0.1234567890123456789, "dur": NaN}')
    assert found.events[0] == {"ph": "X", "ts": Decimal("0.1234567890123456789"), "dur": None}


@given(st.integers(0, len(WHOLE)), st.binary(max_size=6), st.integers(0, len(WHOLE)))
def test_whatever_stands_there_no_event_is_made_up(at: int, put: bytes, cut: int) -> None:
    found = salvage_events((WHOLE[:at] + put + WHOLE[at:])[: len(WHOLE) - cut])
    if found is not None:
        assert all(isinstance(event, dict) for event in found.events)
        assert len([event for event in found.events if "ts" in event]) <= len(EVENTS) + put.count(b"{")
        assert found.lost_bytes <= 3 * (len(WHOLE) + len(put))  # a byte that is no text becomes three
