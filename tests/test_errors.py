"""The shape of errors: what they say, in which order, and that hostile input cannot flood them."""

from __future__ import annotations

import inspect
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli import errors
from suanli.errors import Fault, FaultList, SuanliError, nearest_names, shown, unknown_name

ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SuanliError)]

BUILTINS = [
    (errors.InputError, ValueError),
    (errors.UnknownNameError, LookupError),
    (errors.AmbiguousNameError, ValueError),
    (errors.QuantityError, ValueError),
    (errors.ConfigError, ValueError),
    (errors.UnreadableFileError, OSError),
    (errors.MissingExtraError, ImportError),
]


@pytest.mark.parametrize(("error", "builtin"), BUILTINS)
def test_each_error_is_ours_and_a_builtin(error: type, builtin: type) -> None:
    assert issubclass(error, SuanliError)
    assert issubclass(error, builtin)


def test_the_tree_at_the_top_of_the_file_names_every_error() -> None:
    assert errors.__doc__ is not None
    for error in ERRORS:
        assert error.__name__ in errors.__doc__


SENTENCES = [
    (Fault(code="x", message="bad thing"), "bad thing."),
    (Fault(code="x", message="bad thing", where="file:key"), "bad thing in file:key."),
    (Fault(code="x", message="bad thing", got="3"), "bad thing; got 3."),
    (Fault(code="x", message="bad thing", hint="Do this."), "bad thing. Do this."),
    (
        Fault(
            code="x",
            message="bad thing",
            where="--gpu",
            got="'a'",
            expected="one of 2",
            nearest=("b", "c"),
            hint="Do.",
        ),
        "bad thing in --gpu; got 'a'; expected one of 2; nearest: b, c. Do.",
    ),
]


@pytest.mark.parametrize(("fault", "sentence"), SENTENCES)
def test_a_fault_is_one_sentence_in_a_fixed_order(fault: Fault, sentence: str) -> None:
    assert fault.sentence() == sentence


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_lists_all_its_faults(error: type[SuanliError]) -> None:
    problem = error(Fault(code="a", message="one"), Fault(code="b", message="two", where="w"))
    assert str(problem) == "one.\ntwo in w."
    assert problem.exit_code == 2
    assert problem.to_dict() == {
        "ok": False,
        "error": problem.faults[0].to_dict(),
        "errors": [problem.faults[0].to_dict(), problem.faults[1].to_dict()],
    }


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_survives_the_way_out_of_a_worker(error: type[SuanliError]) -> None:
    problem = error(Fault(code="a", message="one"), Fault(code="b", message="two", nearest=("c",)))
    again = pickle.loads(pickle.dumps(problem))
    assert type(again) is error
    assert again.faults == problem.faults
    assert str(again) == str(problem)


def test_an_error_must_say_something() -> None:
    with pytest.raises(AssertionError, match="must say at least one thing"):
        SuanliError()


def test_a_fault_as_json() -> None:
    assert Fault(code="c", message="m", nearest=("n",)).to_dict() == {
        "code": "c",
        "message": "m",
        "where": None,
        "got": None,
        "expected": None,
        "nearest": ["n"],
        "hint": None,
    }


def test_shown_cuts_long_values() -> None:
    assert shown("abc") == "'abc'"
    assert len(shown("x" * 10_000)) == 60
    assert shown("x" * 10_000).endswith("…")
    assert shown([1, 2], limit=4) == "[1,…"


def test_shown_survives_a_hostile_repr() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert shown(Hostile()) == "<unprintable Hostile: RuntimeError>"
    assert shown(10**5000) == "<unprintable int: ValueError>"  # Python refuses to print it


def test_nearest_names_ignores_case_and_keeps_the_spelling() -> None:
    assert nearest_names("h100-SXN", ["H100-sxm", "a100", "H100-pcie"])[0] == "H100-sxm"
    assert nearest_names("KWh", ["kW", "KW"]) == ("kW",)
    assert nearest_names("zzz", ["h100"]) == ()
    assert nearest_names("", ["h100"]) == ()


@given(st.text(max_size=500), st.lists(st.text(max_size=20), max_size=20))
def test_nearest_names_are_known_names(name: str, known: list[str]) -> None:
    near = nearest_names(name, known)
    assert len(near) <= 3
    assert set(near) <= set(known)


def test_unknown_name_word_by_word() -> None:
    problem = unknown_name("price kind", "spott", iter(["spot", "reserved"]), where="--kind", hint="See docs.")
    assert isinstance(problem, errors.UnknownNameError)
    assert str(problem) == "unknown price kind 'spott' in --kind; expected one of 2 known; nearest: spot. See docs."
    assert problem.faults[0].code == "unknown_price_kind"


def test_fault_list_raises_all_or_nothing() -> None:
    faults = FaultList(errors.ConfigError)
    faults.raise_if_any()
    faults.add(code="a", message="one")
    faults.add(code="b", message="two")
    with pytest.raises(errors.ConfigError, match=r"one\.\ntwo\."):
        faults.raise_if_any()
