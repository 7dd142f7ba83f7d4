"""The table of pages: every page is of a verb, every field is an option of it, every example is answered."""

from __future__ import annotations

import inspect

import pytest

from suanli import api
from suanli.errors import UnknownNameError
from suanli.web.call import call
from suanli.web.forms import GROUPS, KINDS, LISTS, SCALES, Entry, Field, entries, entry, grouped, option_help
from suanli.web.state import example, given, read_state
from suanli.web.verbs import verbs

ALL = list(entries().values())
FIELDS = [(each.verb, field) for each in ALL for field in each.fields]
names = [f"{verb}-{field.name}" for verb, field in FIELDS]
QUICK = ["count", "mfu", "train", "infer", "scale", "goodput", "gpus", "models", "learn", "why"]


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.verb)
def test_a_page_is_of_a_verb_and_its_fields_are_options(each: Entry) -> None:
    assert each.names <= set(verbs()[each.verb].by_name)
    assert set(each.example) <= each.names
    assert each.group in GROUPS
    assert hasattr(api, each.verb)
    assert each.lead.endswith(".")


def test_every_verb_but_one_has_a_page() -> None:
    """`summarise` makes files for another command: a browser has no use for them."""
    assert set(verbs()) - set(entries()) == {"summarise"}


@pytest.mark.parametrize(("verb", "field"), FIELDS, ids=names)
def test_a_field_can_be_drawn_and_says_what_it_is(verb: str, field: Field) -> None:
    assert field.kind in KINDS
    assert field.help.strip(), "help comes from the command"
    assert not (field.kind == "choice" and not field.choices)
    assert len(set(field.choices)) == len(field.choices)
    if field.slider:
        assert field.slider.by in SCALES
        assert field.slider.low < field.slider.high
        assert field.slider.by == "linear" or field.slider.low > 0, "a ratio of two values needs both above nothing"
    if field.when:
        assert field.when[0] in entry(verb).names


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.verb)
def test_options_left_out_are_few_and_named(each: Entry) -> None:
    """A new option of a command must be put on its page, or here."""
    left = {
        "count": {"params", "strict", "trace"}, "mfu": set(), "compare": set(), "infer": {"calibrate", "seed"},
        "verify": {"types"}, "calibrate": {"name", "shipped", "rows"}, "train": set(), "layout": set(),
        "why": {"batch", "kv_len", "image", "frames", "dtype", "kv_dtype", "optimizer", "trainable", "recompute",
                "params", "step_time", "global_batch", "tflops_per_gpu", "peak", "hfu", "deadline", "power", "pue"},
    }.get(each.verb, set())  # fmt: skip
    assert set(verbs()[each.verb].by_name) - each.names - {"lang", "progress"} == left


@pytest.mark.parametrize("verb", QUICK)
def test_a_page_opens_with_an_answer(verb: str) -> None:
    each = entry(verb)
    result = call(verb, given(each, read_state(each, [])))
    assert result.kind == verb


def test_the_lesson_opens_with_the_articles_own_numbers() -> None:
    """Filled in, so that they can be changed; the same answer as without them."""
    filled = call("learn", {name: values[0] for name, values in example(entry("learn")).items()})
    assert filled.result == call("learn", {"topic": "backprop"}).result


def test_help_is_the_commands() -> None:
    assert option_help("layout")["gpus"] == "GPUs of the run; several numbers are compared: 512,1024."
    assert entry("layout").fields[2].help == "GPUs of the run; several numbers are compared: 512,1024."


def test_an_unknown_page_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        entry("layuot")
    assert caught.value.faults[0].nearest[0] == "layout"


def test_groups_hold_every_page_once() -> None:
    assert [each.verb for _, pages in grouped() for each in pages] == list(entries())
    assert [group for group, _ in grouped()] == list(GROUPS)


@pytest.mark.parametrize("name", LISTS)
def test_lists_come_from_the_catalogue(name: str) -> None:
    found = LISTS[name]()
    assert len(found) > 3
    assert all(isinstance(each, str) for each in found)


def test_first_choices_of_segments_are_the_defaults() -> None:
    """The page leaves them out of the address."""
    for verb, field in FIELDS:
        if field.segmented:
            assert f"{field.choices[0]} (default)" in field.help, (verb, field.name)


def test_fields_of_either_stand_together() -> None:
    for each in ALL:
        groups = [field.either[0] if field.either else "" for field in each.fields if not field.more]
        runs = [name for place, name in enumerate(groups) if name and (place == 0 or groups[place - 1] != name)]
        assert len(runs) == len(set(runs)), each.verb


def test_a_table_with_a_wrong_key_is_refused() -> None:
    with pytest.raises(TypeError, match="wdith"):
        Field(name="a", kind="text", label="A", wdith=3)  # type: ignore[call-arg]
    assert "verb" in inspect.signature(Entry).parameters
