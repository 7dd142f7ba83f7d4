"""One run under every convention: the figures are those of the verb."""

from __future__ import annotations

import pytest

import suanli
from suanli.catalog.conventions import CONVENTIONS
from suanli.learn import teach
from suanli.learn.mfu import GPU, MODEL, SEQ, TOKENS_PER_SECOND
from suanli.nouns.lesson import Grid, Lesson

RUN = {"gpu": GPU, "seq": SEQ, "tokens_per_second": TOKENS_PER_SECOND}


@pytest.fixture(scope="module")
def taught() -> Lesson:
    return teach("mfu", "en")


@pytest.fixture(scope="module")
def tables(taught: Lesson) -> list[Grid]:
    return [block for block in taught.blocks if isinstance(block, Grid)]


def test_common_conventions_are_those_of_the_verb(taught: Lesson, tables: list[Grid]) -> None:
    by = suanli.mfu(MODEL, **RUN).by_convention
    assert {row[0]: (row[1], row[2]) for row in tables[0].rows} == {
        name: (each.flops_per_token, each.mfu) for name, each in by.items()
    }
    assert taught.values == {name: each.mfu for name, each in by.items()}


def test_every_convention_is_there(tables: list[Grid]) -> None:
    shown = [row[0] for block in tables[:2] for row in block.rows]
    assert sorted(shown) == sorted(CONVENTIONS)


@pytest.mark.parametrize("name", ["verl", "neox", "litgpt"])
def test_other_programs_are_those_of_the_verb(tables: list[Grid], name: str) -> None:
    row = {row[0]: row for row in tables[1].rows}[name]
    found = suanli.mfu(MODEL, **RUN, convention=name)
    assert row[2] == found.mfu
    assert row[3] == pytest.approx(found.mfu / suanli.mfu(MODEL, **RUN).mfu - 1)


@pytest.mark.parametrize(("place", "policy"), list(enumerate(["none", "selective", "selective-published", "full"])))
def test_recompute(tables: list[Grid], place: int, policy: str) -> None:
    found = suanli.mfu(MODEL, **RUN, recompute=policy)
    assert tables[2].rows[place] == (policy, found.mfu, found.hfu, found.hfu / found.mfu)


def test_the_ends_are_named(taught: Lesson) -> None:
    said = taught.blocks[1].values
    mfus = {name: value for name, value in taught.values.items() if value is not None}
    assert said["least_name"] == min(mfus, key=mfus.get) and said["most_name"] == max(mfus, key=mfus.get)
    assert (said["least"], said["most"]) == (min(mfus.values()), max(mfus.values()))
