"""The answer of `explain`: help on every field, entries by name."""

from __future__ import annotations

import dataclasses

import pytest

from suanli.nouns import explained
from suanli.nouns.explained import Account, AccountEntry

NOUNS = [
    each
    for each in vars(explained).values()
    if dataclasses.is_dataclass(each) and each.__module__ == explained.__name__
]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_every_field_says_its_unit_and_what_it_is(noun: type) -> None:
    for field in dataclasses.fields(noun):
        assert field.metadata["doc"], field.name
        assert "unit" in field.metadata, field.name
        if field.name.endswith("_s") or field.name == "seconds":
            assert field.metadata["unit"] in ("s", "B/s", "FLOP/s"), field.name
        if field.name.endswith("fraction"):
            assert field.metadata["unit"] == "fraction", field.name


def test_entries_by_name() -> None:
    entries = (AccountEntry("idle: host-bound", 1.0, 0.25), AccountEntry("idle: synchronisation", 2.0, 0.5),
               AccountEntry("exposed copies", 1.0, 0.25))  # fmt: skip
    account = Account(peak_s=4.0, entries=entries)
    assert account.seconds("exposed copies") == 1.0
    assert account.seconds("recompute") == 0.0
    assert account.idle_s == 3.0


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Account(peak_s=1.0, entries=()).peak_s = 2.0  # type: ignore[misc]
