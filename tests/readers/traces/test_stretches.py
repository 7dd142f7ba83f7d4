"""Stretches of a content laid end to end are the content, wherever it is divided and however it comes in blocks."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.readers.traces import stretches
from suanli.readers.traces.json_stream import texts_of
from suanli.readers.traces.stretches import NoBorderError, stretch

EVENTS = [{"ph": "X", "name": f"k{number}", "args": {"Input Dims": [[number], []]}} for number in range(40)]
BODY = ",\n ".join(json.dumps(event) for event in EVENTS).encode()
CONTENT = b"[" + BODY + b"], tail"


def blocks(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def part(low: int | None, high: int | None, size: int = 100) -> bytes:
    at = 1 if low is None else low
    return b"".join(stretch(iter(blocks(CONTENT[at:], size)), at, low, high))


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that holds a border and little more."""
    monkeypatch.setattr(stretches, "WINDOW", 200)


@given(places=st.lists(st.integers(2, len(BODY) - 200), max_size=4), size=st.integers(1, 3000))
def test_stretches_laid_end_to_end(places: list[int], size: int) -> None:
    borders = [None, *sorted(set(places)), None]
    try:
        parts = [part(low, high, size) for low, high in pairwise(borders)]
    except NoBorderError:  # two places in one event: the part between them would hold none
        assert min(after - before for before, after in pairwise(sorted({1, *places}))) < 100
        return
    texts = [json.loads(b"[" + each + b"]") for each in parts[:-1]]
    last, _, tail = parts[-1].rpartition(b"]")
    assert [event for text in (*texts, json.loads(b"[" + last + b"]")) for event in text] == EVENTS
    assert tail == b", tail"


def test_a_place_is_the_border_behind_it() -> None:
    second = BODY.index(b'{"ph": "X", "name": "k2"') + 1
    first = part(None, second - 5)
    assert json.loads(b"[" + first + b"]") == EVENTS[:2]
    assert part(second - 5, None).startswith(b'{"ph": "X", "name": "k2"')
    assert json.loads(b"[" + part(None, second) + b"]") == EVENTS[:3]  # its own border stands before it


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (None, len(CONTENT) - 8),  # behind the last border
        (len(CONTENT) - 8, None),
        (None, len(CONTENT) + 50),  # behind the content
        (len(CONTENT) + 50, None),
        (200, 201),  # before the part begins
        (None, 0),
    ],
)
def test_where_the_content_cannot_be_divided(low: int | None, high: int | None) -> None:
    with pytest.raises(NoBorderError):
        part(low, high)


def test_a_window_without_a_border(narrow: None) -> None:
    content = b'{"ph": "X"}, {"ph": "X", "name": "%b"}, {"ph": "X"}]' % (b"x" * 500)
    with pytest.raises(NoBorderError):
        list(stretch(iter([content]), 0, None, 100))
    assert b"".join(stretch(iter([content]), 0, None, 400)).endswith(b'x"}')  # within the window there
    assert b"".join(stretch(iter([content[400:]]), 400, 400, None)) == b'{"ph": "X"}]'


@pytest.mark.parametrize("size", [1, 7, 150, 1000])
def test_blocks_of_any_size_are_divided_alike(narrow: None, size: int) -> None:
    for place in range(150, 1500, 131):
        assert part(None, place, size) == part(None, place, 10**6)
        assert part(place, None, size) == part(place, None, 10**6)


def test_texts_of_a_stretch_are_closed() -> None:
    texts = list(texts_of(stretch(iter(blocks(CONTENT[1:], 300)), 1, None, 900), closed=True))
    assert len(texts) > 2
    assert [event for text in texts for event in json.loads(text)] == EVENTS[: sum(len(json.loads(t)) for t in texts)]
