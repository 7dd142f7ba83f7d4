"""The linear ratio in its forms, laws and projection: the figures are those of the verb and of the source facts."""

from __future__ import annotations

import pytest

import suanli
from suanli.formulas.scaling import amdahl
from suanli.learn import teach
from suanli.learn.scaling import BATCH, MORE, STEPS, largest_serial
from suanli.nouns.lesson import Grid, Lesson, Plot


@pytest.fixture(scope="module")
def taught() -> Lesson:
    return teach("scaling", "en")


@pytest.fixture(scope="module")
def verb():
    points = ",".join(f"{gpus}:{seconds}" for gpus, seconds in STEPS.items())
    return suanli.scale(points=points, metric="time", global_batch=BATCH, project=str(MORE))


def tables(found: Lesson) -> list[Grid]:
    return [block for block in found.blocks if isinstance(block, Grid)]


# source facts §3: 23.66/6.34/4; 1984.0/531.9/4; 55.2/59.1; 55.2/59.0
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("by_time", 23.66 / 6.34 / 4),
        ("by_rate", 1984.0 / 531.9 / 4),
        ("by_mfu", 55.2 / 59.1),
        ("by_mixed_mfu", 55.2 / 59),
    ],
)
def test_the_forms(taught: Lesson, name: str, wanted: float) -> None:
    assert taught.values[name] == pytest.approx(wanted)


def test_what_the_article_prints_is_beside_it(taught: Lesson) -> None:
    said = " ".join(taught.blocks[0].paragraphs)
    assert "93.297 %" in said and "93.29 %" in said and "93.30 %" in said and "3,072" in said


def test_sizes_laws_and_projection_are_the_verb_s(taught: Lesson, verb) -> None:
    assert [row[2:] for row in tables(taught)[1].rows] == [(row.value, row.ratio, row.speedup) for row in verb.sizes]
    assert [row[1] for row in tables(taught)[1].rows] == [BATCH / gpus for gpus in STEPS]
    assert [tuple(row) for row in tables(taught)[2].rows] == [(fit.law, fit.error) for fit in verb.fits]
    assert taught.values["law"] == verb.fit.law
    assert taught.values["projected"] == verb.projection[0].ratio
    said = next(block.values for block in taught.blocks if block.kind == "text" and "low" in block.values)
    assert (said["low"], said["high"]) == (verb.projection[0].low, verb.projection[0].high)


def test_the_curves(taught: Lesson, verb) -> None:
    plot = next(block for block in taught.blocks if isinstance(block, Plot))
    linear, fitted, measured = plot.series
    assert linear.points[-1][1] == pytest.approx(MORE / min(STEPS))
    assert fitted.points == tuple((point.gpus, point.speedup) for point in verb.curve)
    assert measured.points == tuple((row.gpus, row.speedup) for row in verb.sizes) and not measured.line


@pytest.mark.parametrize("gpus", [2, 64, 1024, 16384])
@pytest.mark.parametrize("wanted", [0.5, 0.9, 0.99])
def test_the_largest_unshared_part_gives_what_is_wanted(gpus: int, wanted: float) -> None:
    assert amdahl(gpus, largest_serial(gpus, wanted)) == pytest.approx(wanted)
