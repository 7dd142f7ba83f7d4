"""Themes: words translated where they are ours, names left; the given specification is not touched."""

from __future__ import annotations

import copy

from made_results import made

from suanli.report.figures import figures_of
from suanli.report.theme import config_of, themed, worded
from suanli.report.words import translate

SPEC = {
    "usermeta": {"words": ["part"]},
    "data": {"values": [{"part": "idle", "name": "idle", "value": 1}, {"part": "recompute", "name": "x", "value": 2}]},
    "mark": "bar",
    "encoding": {
        "y": {"field": "part", "sort": ["idle", "recompute"], "title": None},
        "x": {"field": "value", "title": "memory [GiB]"},
        "color": {"field": "part", "scale": {"domain": ["idle", "recompute"], "range": ["#111111", "#222222"]}},
        "tooltip": [{"field": "name", "title": "memory"}],
    },
}


def test_words_are_translated_and_names_are_not() -> None:
    before = copy.deepcopy(SPEC)
    found = worded(SPEC, "zh")
    assert before == SPEC
    idle, again, memory = (translate(word, "zh") for word in ("idle", "recompute", "memory"))
    assert idle != "idle" and memory != "memory"
    rows = found["data"]["values"]
    assert [row["part"] for row in rows] == [idle, again] and [row["name"] for row in rows] == ["idle", "x"]
    assert found["encoding"]["y"]["sort"] == found["encoding"]["color"]["scale"]["domain"] == [idle, again]
    assert found["encoding"]["color"]["scale"]["range"] == ["#111111", "#222222"]
    assert found["encoding"]["x"]["title"] == f"{memory} [GiB]"
    assert found["encoding"]["tooltip"][0]["title"] == memory


def test_english_stays() -> None:
    assert worded(SPEC, "en") == SPEC and worded(SPEC, "en") is not SPEC


def test_themed_is_ready_to_draw() -> None:
    spec = figures_of(made("mfu"))[0].spec
    light, dark = themed(spec), themed(spec, dark=True, width=500)
    assert light["width"] == "container" and dark["width"] == 500
    assert light["config"] == config_of(False) and dark["config"] == config_of(True)
    assert light["autosize"] == {"type": "fit-x", "contains": "padding"}
    assert "config" not in spec
