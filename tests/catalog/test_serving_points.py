"""The measured points that ship: few, of sources that may, and what a faulty table is told."""

from __future__ import annotations

from collections import Counter

import pytest

from suanli.catalog.devices import find_device
from suanli.catalog.presets import find_preset
from suanli.catalog.serving_points import COLUMNS, SOURCES, load, serving_points

GOOD = "llama-3.1-8b,h100-sxm,1,1,1,bf16,vllm,vllm 0.9,served,1024,512,8,0.05,0.0074,,aiconfigurator,2025-10"


def table(*rows: str) -> str:
    return "\n".join((",".join(COLUMNS), *rows))


def test_few_ship_and_all_of_sources_under_the_apache_licence() -> None:
    points = serving_points()
    assert 50 <= len(points) <= 120
    assert {point.source for point in points} == set(SOURCES.values())
    assert all("Apache-2.0" in source for source in SOURCES.values())
    assert {point.kind for point in points} == {"served", "offline"}


def test_most_are_of_prompts_and_answers_of_about_1024_tokens() -> None:
    lengths = Counter((point.isl, point.osl) for point in serving_points())
    assert sum(number for (isl, osl), number in lengths.items() if 512 <= isl <= 2048 and 512 <= osl <= 2048) > 80


def test_every_name_is_known_and_what_was_measured_is_there() -> None:
    for point in serving_points():
        assert find_preset(point.preset or "").name == point.preset
        assert find_device(point.gpu or "").short_id == point.gpu
        assert point.layout.gpus == point.gpus <= 8
        assert (point.tpot_s if point.kind == "served" else point.tokens_per_s) is not None
        assert (point.concurrency is None) == (point.kind == "offline")


@pytest.mark.shared
def test_the_rows_are_those_that_the_script_chooses(shared) -> None:  # type: ignore[no-untyped-def]
    """Every row is one of the compilation's, to six digits."""
    from suanli.readers.serving_points import read_serving_points

    every = read_serving_points(shared / "data" / "measured_serving.csv")
    known = {(p.preset, p.gpu, p.layout, p.dtype, p.isl, p.osl, p.concurrency, p.tpot_s and f"{p.tpot_s:.6g}",
              p.tokens_per_s and f"{p.tokens_per_s:.6g}") for p in every}  # fmt: skip
    for p in serving_points():
        found = (p.preset, p.gpu, p.layout, p.dtype, p.isl, p.osl, p.concurrency, p.tpot_s and f"{p.tpot_s:.6g}",
                 p.tokens_per_s and f"{p.tokens_per_s:.6g}")  # fmt: skip
        assert found in known


def test_a_row_is_read() -> None:
    (point,) = load(table(GOOD), "points.csv")
    assert (point.preset, point.gpu, point.concurrency, point.tpot_s) == ("llama-3.1-8b", "h100-sxm", 8.0, 0.0074)
    assert (point.tokens_per_s, point.measured, point.row) == (None, "2025-10", 2)


# a row's change, and the fault it makes
FAULTS = [
    ("0.0074", "", "no tpot_s in points.csv, line 2."),
    (",8,", ",eight,", "concurrency is no number above 0 in points.csv, line 2; got 'eight'."),
    (",8,", ",-8,", "concurrency is no number above 0 in points.csv, line 2; got '-8'."),
    (",1024,", ",,", "no isl in points.csv, line 2."),
    ("served", "guessed", "unknown kind in points.csv, line 2; got 'guessed'; expected served, offline."),
    ("aiconfigurator", "a friend",
     "unknown source in points.csv, line 2; got 'a friend'; expected aiconfigurator, tensorrt-llm-docs."),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), FAULTS, ids=[row[2][:30] for row in FAULTS])
def test_a_faulty_row_is_named(old: str, new: str, said: str) -> None:
    from suanli.errors import ConfigError

    with pytest.raises(ConfigError) as caught:
        load(table(GOOD.replace(old, new)), "points.csv")
    assert said in [fault.sentence() for fault in caught.value.faults]


def test_other_columns_are_refused() -> None:
    from suanli.errors import ConfigError

    with pytest.raises(ConfigError, match=r"other columns than wanted in points\.csv; expected model, gpu"):
        load("a,b\n1,2", "points.csv")


@pytest.mark.shared
def test_the_file_is_what_the_script_writes(shared) -> None:  # type: ignore[no-untyped-def]
    """Chosen again from the compilation, to the last character."""
    import functools
    import importlib.util
    from importlib import resources
    from pathlib import Path

    from suanli.plan.serving.points import keep_points
    from suanli.readers.preset import read_named_preset
    from suanli.readers.serving_points import read_serving_points

    path = Path(__file__).resolve().parents[2] / "scripts" / "thin_serving.py"
    spec = importlib.util.spec_from_file_location("thin_serving", path)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    rows = read_serving_points(shared / "data" / "measured_serving.csv")
    kept = keep_points(rows, functools.cache(read_named_preset)).points
    chosen = script.thinned([point for point in kept if script.source_of(point) and point.kind in script.KINDS])
    text = resources.files("suanli.catalog").joinpath("serving_points.csv").read_text(encoding="utf-8")
    assert script.rendered(chosen) == text
