"""Colours: enough contrast on light and dark, told apart with any eyes, one for every name that figures use."""

from __future__ import annotations

from itertools import combinations

import pytest

from suanli.explain.account import ENTRIES
from suanli.nouns.estimate import TERMS
from suanli.report.figures import colours
from suanli.report.theme import _DARK, _LIGHT, config_of

EVERY = {name: value for name, value in vars(colours).items() if isinstance(value, str) and value.startswith("#")}
DRAWN = sorted(set(EVERY.values()) - {colours.LIGHT_GROUND, colours.DARK_GROUND})

# How colours are seen without red, green or blue cones (Machado, Oliveira, Fernandes 2009, severity 1), linear RGB.
SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


def linear(colour: str) -> tuple[float, ...]:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def luminance(colour: str) -> float:
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


def contrast(one: str, other: str) -> float:
    """WCAG 2.2: (L1 + 0.05) / (L2 + 0.05)."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, seen: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """CIELAB of how a colour is seen."""
    rgb = [sum(a * b for a, b in zip(row, linear(colour), strict=True)) for row in seen]
    matrix = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    xyz = [sum(a * b for a, b in zip(row, rgb, strict=True)) for row in matrix]
    x, y, z = (max(part, 0) / white for part, white in zip(xyz, (0.9505, 1.0, 1.089), strict=True))
    f = [each ** (1 / 3) if each > 0.008856 else 7.787 * each + 16 / 116 for each in (x, y, z)]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def apart(one: str, other: str, seen: str) -> float:
    pairs = zip(lab(one, SEEN[seen]), lab(other, SEEN[seen]), strict=True)
    return sum((a - b) ** 2 for a, b in pairs) ** 0.5


def test_the_measure_itself() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert apart("#ff0000", "#ff0000", "all") == 0


@pytest.mark.parametrize("ground", [colours.LIGHT_GROUND, colours.DARK_GROUND])
@pytest.mark.parametrize("colour", DRAWN)
def test_marks_stand_out_on_both_grounds(colour: str, ground: str) -> None:
    assert contrast(colour, ground) >= 3


@pytest.mark.parametrize("shade", [_LIGHT, _DARK])
def test_text_can_be_read(shade: dict[str, str]) -> None:
    assert contrast(shade["text"], shade["ground"]) >= 7
    assert contrast(shade["dim"], shade["ground"]) >= 4.5


def test_the_first_colours_are_told_apart_by_any_eyes() -> None:
    """Those of the first five series, and of the classes of work: also without red or green cones."""
    for group in (colours.SERIES[:4], (colours.USEFUL, colours.PRODUCTS, colours.COMMUNICATION)):
        for one, other in combinations(group, 2):
            assert min(apart(one, other, seen) for seen in SEEN) > 15, (one, other)


def test_every_entry_and_term_has_a_colour() -> None:
    named = [entry for entry in ENTRIES if not entry.startswith("idle")]
    assert set(named) <= set(colours.OF_TRACE) and set(named) - {"matmul"} <= set(colours.OF_ENTRY)
    assert colours.of_entry("idle: host-bound") == colours.WAITING
    assert set(TERMS) <= set(colours.OF_MEMORY)
    shades = [colours.OF_MEMORY[term] for term in TERMS]
    assert len(set(shades)) == len(shades), "two terms of one stack look the same"


def test_configs_differ_in_shades_alone() -> None:
    light, dark = config_of(False), config_of(True)
    assert light.keys() == dark.keys() and light["background"] != dark["background"]
    assert light["font"] == dark["font"] and "Noto Sans CJK SC" in light["font"]
