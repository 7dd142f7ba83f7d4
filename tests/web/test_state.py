"""The state of a page is its address: read, written, refused where it says what no page has."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from suanli.errors import InputError
from suanli.web.forms import entries, entry
from suanli.web.state import LONGEST, State, example, given, read_state

LAYOUT = entry("layout")


def read(verb: str, query: str) -> State:
    return read_state(entry(verb), parse_qsl(query, keep_blank_values=True))


@pytest.mark.parametrize(
    ("verb", "query", "fields"),
    [
        ("layout", "gpus=8&model=gpt2", {"model": ("gpt2",), "gpus": ("8",)}),
        ("layout", "why=1&why=3&model=gpt2", {"model": ("gpt2",), "why": ("1", "3")}),
        ("count", "model=+gpt2+&seq=&batch=%20", {"model": ("gpt2",)}),
        ("explain", "traces=up-1&traces=up-2", {"traces": ("up-1", "up-2")}),
        ("verify", "every=yes", {"every": ("yes",)}),
    ],
)
def test_fields_are_read_in_the_pages_order(verb: str, query: str, fields: dict[str, tuple[str, ...]]) -> None:
    assert list(read(verb, query).fields.items()) == list(fields.items())


@pytest.mark.parametrize("verb", list(entries()))
def test_an_address_that_tells_nothing_opens_the_example(verb: str) -> None:
    assert read(verb, "").fields == example(entry(verb))
    assert read(verb, "lang=zh&units=si").fields == example(entry(verb))


def test_language_and_units_stand_beside_the_fields() -> None:
    state = read("count", "lang=zh&units=si&model=gpt2")
    assert (state.lang, state.units, state.value("model"), state.value("seq")) == ("zh", "si", "gpt2", "")
    assert state.query() == "model=gpt2&lang=zh&units=si"
    assert state.query(lang="en") == "model=gpt2&units=si"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("modle=gpt2", "the page has no field 'modle' in the address; nearest: model, symbolic, like."),
        ("lang=fr", "no such lang in the address; got 'fr'; expected one of en, zh."),
        ("units=imperial", "no such units in the address; got 'imperial'; expected one of iec, si, exact."),
        (f"seq={'9' * (LONGEST + 1)}", "the value is too long in --seq; got 4,001 characters; expected at most 4,000."),
    ],
)
def test_what_no_page_has_is_refused_by_name(query: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read("count", query)
    assert sentence in str(caught.value)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        read("count", "modle=a&lang=fr&sqe=1")
    assert [each.code for each in caught.value.faults] == ["unknown_option", "unknown_lang", "unknown_option"]


def test_a_question_about_a_number_is_no_field() -> None:
    assert read("mfu", "model=gpt2&block=a&label=b&column=c").fields == {"model": ("gpt2",)}


@pytest.mark.parametrize(
    ("verb", "query", "asked"),
    [
        ("layout", "model=gpt2&why=1&why=2&pin=tp%3D8", {"model": "gpt2", "pin": "tp=8", "why": ["1", "2"]}),
        ("verify", "only=runs&every=yes", {"only": "runs", "every": True}),
        ("explain", "traces=example", {"traces": ["example"]}),
        ("learn", "topic=moe&lang=zh", {"topic": "moe", "lang": "zh"}),
        ("scale", "file=up-1", {"file": ["up-1"]}),
    ],
)
def test_the_request_to_the_verb(verb: str, query: str, asked: dict[str, object]) -> None:
    assert given(entry(verb), read(verb, query)) == asked


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)


@drawn(st.dictionaries(st.sampled_from(sorted(LAYOUT.names - {"why"})), TEXT, min_size=1))
def test_what_is_written_is_read_again(values: dict[str, str]) -> None:
    """Copying the address gives the same page."""
    state = read_state(LAYOUT, values.items())
    again = read_state(LAYOUT, parse_qsl(state.query()))
    assert again == state
    assert {name: text.strip() for name, text in values.items()} == {
        name: each[0] for name, each in again.fields.items()
    }
