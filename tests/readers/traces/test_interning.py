"""Places are given in the order in which keys come, in every process."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from suanli.readers.traces.interning import Places


def test_places_follow_the_first_sight_of_a_key() -> None:
    places = Places(str.upper)
    assert places.of(["b", "a", "b", "c"]).tolist() == [0, 1, 0, 2]
    assert places.of(["c", "d"]).tolist() == [2, 3]
    assert places.values_made == ["B", "A", "C", "D"]


def test_keys_that_have_a_place() -> None:
    places = Places()
    places |= {"nothing": -1}
    assert places.of(["b", "nothing", "a"]).tolist() == [0, -1, 1]
    assert places.keys_made == ["b", "a"]


@given(st.lists(st.text(max_size=3)), st.lists(st.text(max_size=3)))
def test_texts_in_two_parts_have_the_places_of_one(first: list[str], second: list[str]) -> None:
    """A set's order would differ from process to process; that of the keys does not."""
    parts, whole = Places(), Places()
    found = [*parts.of(first).tolist(), *parts.of(second).tolist()]
    assert found == whole.of(first + second).tolist()
    assert parts.values_made == list(dict.fromkeys(first + second))
