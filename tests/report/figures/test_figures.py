"""Figures of every verb: each kind has some, they compile, their data are the result's, names cannot break them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import vl_convert
from drawn_results import NAMES, drawn_result

import suanli
from suanli.report.drawn import VERSION
from suanli.report.figures import FIGURES, Figure, figures_of
from suanli.report.figures.parts import MOST_MARKS, NARROW, SCHEMA
from suanli.report.pages import PAGES
from suanli.report.theme import themed

NO_PICTURE = {"why", "rerun", "diff"}  # kinds that are words and tables
WITHOUT = {"mfu_above_peak", "model"}  # results of which nothing is to be drawn
CASES = [name for name in NAMES if name not in WITHOUT]


def parts_of(node: Any) -> Iterator[dict[str, Any]]:
    """Every mapping of a specification, data left out."""
    if isinstance(node, dict):
        yield node
        for key, value in node.items():
            if key != "data":
                yield from parts_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from parts_of(value)


def rows_of(figure: Figure) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = figure.spec["data"]["values"]
    return values


def by_name(name: str) -> dict[str, Figure]:
    return {each.name: each for each in figures_of(drawn_result(name))}


def test_every_kind_has_figures_or_is_words() -> None:
    assert set(FIGURES) == set(PAGES) - NO_PICTURE
    assert {drawn_result(name).kind for name in CASES} == set(FIGURES)


@pytest.mark.parametrize("name", CASES)
def test_figures_are_whole(name: str) -> None:
    """Named once, titled, described, with data, bounded, plain JSON without NaN; drawn at any width."""
    figures = figures_of(drawn_result(name))
    assert figures
    assert len({each.name for each in figures}) == len(figures)
    for each in figures:
        assert each.title and each.words and rows_of(each), each.name
        assert each.spec["$schema"] == SCHEMA and "width" not in each.spec and "config" not in each.spec
        assert sum(len(part["data"]["values"]) for part in parts_of(each.spec) if "data" in part) <= MOST_MARKS
        assert each.spec["height"] > 0
        assert json.loads(json.dumps(each.spec, allow_nan=False)) == each.spec


@pytest.mark.parametrize("name", CASES)
def test_every_field_is_there(name: str) -> None:
    """No field of an encoding or a filter is misspelled: all are in the data or made by a transform."""
    for each in figures_of(drawn_result(name)):
        known = {
            field for part in parts_of(each.spec) if "data" in part for row in part["data"]["values"] for field in row
        }
        known |= {part["as"] for part in parts_of(each.spec) if "as" in part}
        used = {part["field"] for part in parts_of(each.spec) if "field" in part}
        words = " ".join(str(part.get(key, "")) for part in parts_of(each.spec) for key in ("calculate", "filter"))
        assert used | set(re.findall(r"datum\.(\w+)", words)) <= known, each.name
        assert set(each.spec["usermeta"]["words"]) <= known, each.name


@pytest.mark.parametrize("name", CASES)
def test_figures_are_drawn(name: str) -> None:
    """Compiled and drawn on a light and a dark ground: nothing undefined, every kind of mark there."""
    for place, each in enumerate(figures_of(drawn_result(name))):
        spec = json.dumps(themed(each.spec, dark=bool(place % 2), width=600))
        svg = vl_convert.vegalite_to_svg(spec, vl_version=VERSION)
        assert not re.search(r">(undefined|null|NaN)<|NaN", svg), each.name
        assert svg.count("<path") + svg.count("<rect") + svg.count("<text") > len(rows_of(each)[:20]), each.name


@pytest.mark.parametrize("name", CASES)
def test_expressions_hold_nothing_from_outside(name: str) -> None:
    """Names are data: expressions are numbers, fields and our own words."""
    allowed = re.compile(
        r"(datum\.\w+|isValid|format|replace|max|min|abs|containerSize|'[^'<>]{0,10}'|[-\d.e+*/%?:!=<>&|(),\[\] ])*"
    )
    for each in figures_of(drawn_result(name)):
        found = [part[key] for part in parts_of(each.spec) for key in ("calculate", "filter", "expr", "labelExpr")
                 if isinstance(part.get(key), str)]  # fmt: skip
        for text in found:
            assert allowed.fullmatch(text), text
            assert "datum" in text or text.startswith(NARROW)


HOSTILE = "</script><img src=x onerror=alert(1)>\"'{{7*7}}\u202e\x00\n" + "x" * 500


def test_hostile_names_are_data() -> None:
    """A model, an operator or a file named to break a page is cut, in one line, and written as text."""
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 100, "n_positions": 64,
              "_name_or_path": HOSTILE}  # fmt: skip
    for each in figures_of(suanli.count(config, seq=32)):
        text = json.dumps(each.spec)
        assert "\\u0000" not in text and "x" * 200 not in text
    measured = by_name("goodput_measured")["downtime"]
    assert '<script>network & "switch"' in {row["cause"] for row in rows_of(measured)}
    svg = vl_convert.vegalite_to_svg(json.dumps(themed(measured.spec, width=600)), vl_version=VERSION)
    assert "<script>" not in svg and "&lt;script&gt;" in svg


# --- the numbers are the result's ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "figure", "whole"), [
    ("mfu", "peak_to_achieved", lambda found: found.peak_flop_per_s),
    ("train", "gpu_hours", lambda found: found.gpu_hours_paid),
    ("explain", "waterfall", lambda found: found.peak_s),
    ("explain_folder", "waterfall", lambda found: found.peak_s),
    ("goodput", "wall_time", lambda found: 1.0),
    ("goodput_measured", "wall_time", lambda found: 1.0),
])  # fmt: skip
def test_a_waterfall_closes(name: str, figure: str, whole: Any) -> None:
    """From the whole to its last part, each bar where the one before ended, and the parts add up."""
    first, *rest = rows_of(by_name(name)[figure])
    expected = whole(drawn_result(name).result)
    assert first["value"] == first["end"] == pytest.approx(expected, rel=1e-9) and first["begin"] == 0
    assert sum(row["value"] for row in rest) == pytest.approx(expected, rel=1e-9)
    for above, row in zip([first["end"], *(row["begin"] for row in rest)], rest, strict=False):
        assert row["end"] == pytest.approx(above, rel=1e-9, abs=1e-9 * expected)
    assert rest[-1]["begin"] == 0


@pytest.mark.parametrize(("name", "figure", "total"), [
    ("layout", "account", lambda found: found.layouts[0].step_time_s),
    ("infer", "decode", lambda found: sum(each.seconds for each in found.decode)),
    ("infer", "first_token", lambda found: found.ttft_s),
    ("infer_users", "prefill", lambda found: sum(each.seconds for each in found.prefill)),
])  # fmt: skip
def test_an_account_adds_up(name: str, figure: str, total: Any) -> None:
    *entries, last = rows_of(by_name(name)[figure])
    assert sum(row["value"] for row in entries) == pytest.approx(total(drawn_result(name).result), rel=1e-9)
    assert last["value"] == pytest.approx(total(drawn_result(name).result), rel=1e-9)


def summed(rows: list[dict[str, Any]], by: str, value: str) -> dict[Any, float]:
    found: dict[Any, float] = {}
    for row in rows:
        found[row[by]] = found.get(row[by], 0) + row[value]
    return found


def test_stacks_sum_to_totals() -> None:
    plan = drawn_result("layout").result
    totals = list(summed(rows_of(by_name("layout")["memory"]), "layout", "bytes").values())
    assert totals == [each.memory_bytes["total"] for each in plan.layouts]
    steps = list(summed(rows_of(by_name("layout")["accounts"]), "layout", "seconds").values())
    assert steps == pytest.approx([each.step_time_s for each in plan.layouts])
    trace = drawn_result("explain").result
    steps = list(summed(rows_of(by_name("explain")["steps"]), "label", "seconds").values())
    assert steps == pytest.approx([each.account.peak_s for each in trace.steps])


def test_stages_are_those_of_the_first_layout() -> None:
    plan = drawn_result("layout_pipeline").result
    totals = summed(rows_of(by_name("layout_pipeline")["stages"]), "stage", "bytes")
    assert totals == {f"{each.stage}": each.total for each in plan.stages}
    assert max(totals.values()) == plan.layouts[0].memory_bytes["total"]
    assert len(plan.stages) == plan.layouts[0].pp


@pytest.mark.parametrize("name", ["count_train", "count_by_kind", "count_image"])
def test_rows_of_a_count_add_up(name: str) -> None:
    books = drawn_result(name).result
    assert sum(row["value"] for row in rows_of(by_name(name)["rows_flops"])) == books.flops.hardware
    assert sum(row["value"] for row in rows_of(by_name(name)["rows_params"])) == books.ledger.params


def test_memory_of_a_count_is_by_recompute_policy() -> None:
    books = drawn_result("count_train").result
    rows = rows_of(by_name("count_train")["memory"])
    kept = {row["policy"]: row["bytes"] for row in rows if row["term"] == "activations"}
    assert kept == dict(books.bytes.activations_by_recompute)
    assert {row["bytes"] for row in rows if row["term"] == "optimizer"} == {books.bytes.optimizer}


def test_the_chosen_convention_is_marked() -> None:
    found = drawn_result("mfu").result
    rows = {row["convention"]: row for row in rows_of(by_name("mfu")["mfu_by_convention"])}
    assert [name for name, row in rows.items() if row["which"] == "chosen"] == [found.convention]
    assert {name: row["mfu"] for name, row in rows.items()} == {n: v.mfu for n, v in found.by_convention.items()}


def test_intervals_are_the_plan_s() -> None:
    plan = drawn_result("train").result
    rows = {row["quantity"]: (row["low"], row["value"], row["high"]) for row in rows_of(by_name("train")["intervals"])}
    assert rows["days"] == (plan.days_interval[0], plan.days, plan.days_interval[1])
    assert rows["GPU-hours paid"][1] == plan.gpu_hours_paid


def test_the_front_and_the_first_of_the_ranking() -> None:
    plan = drawn_result("layout").result
    rows = rows_of(by_name("layout")["front"])
    assert [row["layout"] for row in rows if row["which"] == "first of the ranking"] == [plan.layouts[0].short]
    on_front = {(row["layout"], row["step_s"], row["bytes"]) for row in rows if row["at"] is not None}
    assert on_front == {(each.layout, each.step_time_s, each.memory_bytes) for each in plan.front}


def test_two_plans_side_by_side() -> None:
    why = drawn_result("layout_why").result.why
    rows = rows_of(by_name("layout_why")["why_step"])
    assert summed(rows, "plan", "value") == pytest.approx(
        {"first": why.first.step_time_s, "second": why.second.step_time_s}
    )


def test_scaling_measured_and_projected() -> None:
    found = drawn_result("scale").result
    rows = rows_of(by_name("scale")["speedup"])
    assert [(row["gpus"], row["speedup"]) for row in rows if row["which"] == "measured"] == [
        (each.gpus, each.speedup) for each in found.sizes]  # fmt: skip
    projected = [row for row in rows if row["which"] == "projected"]
    assert [row["gpus"] for row in projected] == [512, 1024]
    assert all(row["low_speedup"] <= row["speedup"] <= row["high_speedup"] for row in projected)


def test_the_best_interval_is_on_the_curve() -> None:
    found = drawn_result("goodput").result
    spec = by_name("goodput")["interval"].spec
    marks = next(part["data"]["values"] for part in spec["layer"] if "data" in part)
    best = next(each for each in found.intervals if each.rule == "exact")
    assert [(row["interval_s"], row["lost"]) for row in marks if row["rule"] == "best"] == [
        (best.interval_s, best.lost)
    ]
    assert min(row["lost"] for row in rows_of(by_name("goodput")["interval"])) >= best.lost - 1e-6


def test_loads_from_one_user_to_as_many_as_fit() -> None:
    found = drawn_result("infer_users").result
    assert [each.concurrency for each in found.curve[:4]] == [1, 2, 4, 8]
    assert found.curve[-1].concurrency == found.max_concurrency
    own = next(each for each in found.curve if each.concurrency == 16)
    assert own == found.load
    rows = rows_of(by_name("infer_users")["loads"])
    assert [row["user"] for row in rows if row["which"] == "this load"] == [pytest.approx(1 / found.tpot_s)]


def test_a_front_of_a_search_is_all_there() -> None:
    found = drawn_result("infer_search").result
    rows = rows_of(by_name("infer_search")["front"])
    assert {(row["gpu"], row["per_gpu"]) for row in rows} >= {(c.gpu, c.tokens_per_s_per_gpu) for c in found.front}


def test_memory_of_a_serving_gpu_adds_up() -> None:
    memory = drawn_result("infer").result.memory
    rows = rows_of(by_name("infer")["memory"])
    assert sum(row["bytes"] for row in rows) == pytest.approx(memory.total)
    most = rows_of(by_name("infer")["capacity"])[-1]
    assert most["sequences"] == memory.max_concurrency and most["bytes"] <= memory.cache


def test_the_strip_is_the_step_in_the_middle() -> None:
    trace = drawn_result("explain").result
    step = trace.steps[len(trace.steps) // 2]
    assert (trace.strip.name, trace.strip.start_ns, trace.strip.end_ns) == (step.name, step.start_ns, step.end_ns)
    assert "strip" not in drawn_result("explain").to_dict()["result"]
    rows = rows_of(by_name("explain")["strip"])
    assert {row["kind"] for row in rows} == {"matmul", "compute", "communication", "copy"}
    assert all(0 <= row["start"] < row["stop"] <= step.seconds + 1e-9 for row in rows)


def test_points_are_under_the_roof() -> None:
    spec = by_name("explain")["roofline"].spec
    roof = spec["layer"][0]["data"]["values"]
    assert max(row["rate"] for row in roof) == drawn_result("explain").result.devices[0].peaks_flop_per_s["bf16"]
    assert all(row["rate"] <= max(each["rate"] for each in roof) for row in rows_of(by_name("explain")["roofline"]))


def test_ranks_against_the_median() -> None:
    fleet = drawn_result("explain_folder").result
    figures = by_name("explain_folder")
    assert {"waterfall", "heat", "ranks"} <= set(figures)
    assert len({row["rank"] for row in rows_of(figures["heat"])}) == len(fleet.ranks)
    assert any(row["over"] > 0 for row in rows_of(figures["heat"]))
    skew = {row["median"]: row["most"] for row in rows_of(figures["skew"])}
    assert skew == {each.skew_median_s: each.skew_max_s for each in fleet.collectives}


def test_what_a_catalogue_has() -> None:
    devices = suanli.gpus().result.devices
    rows = {row["device"]: row for row in rows_of(by_name("gpus_all")["bandwidth_peak"])}
    assert len(rows) > len(devices) / 2
    for each in devices:
        if each.short_id in rows:
            assert rows[each.short_id]["bytes_per_s"] == each.memory_bytes_per_s
            assert rows[each.short_id]["flop_per_s"] == each.peaks_flop_per_s[rows[each.short_id]["dtype"]]
    assert len(rows_of(by_name("models_all")["params_active"])) == len(suanli.models().result.models)


def test_claims_are_all_counted() -> None:
    found = drawn_result("verify").result
    assert sum(row["claims"] for row in rows_of(by_name("verify")["claims"])) == len(found.claims)
    errors = rows_of(by_name("verify_more")["errors"])
    held = {row["error"] for row in errors if row["which"] == "held out"}
    assert held >= {row.median_held_out for row in drawn_result("verify_more").result.summary
                    if row.section == "scaling" and row.median_held_out is not None}  # fmt: skip


def test_figures_of_a_lesson_know_their_blocks() -> None:
    lesson = drawn_result("learn").result
    for each in figures_of(drawn_result("learn")):
        assert each.block is not None
        assert each.name == f"block_{each.block}" and lesson.blocks[each.block].kind in ("plot", "shades", "boxes")
    plot = next(each for each in lesson.blocks if each.kind == "plot")
    rows = rows_of(figures_of(drawn_result("learn"))[-1])
    assert [(row["x"], row["y"]) for row in rows] == list(plot.series[0].points)


def test_words_that_come_twice_have_a_place_each() -> None:
    shades = next(each for each in drawn_result("learn_transformer").result.blocks if each.kind == "shades")
    (figure,) = figures_of(drawn_result("learn_transformer"))
    rows = rows_of(figure)
    assert len({(row["row"], row["column"]) for row in rows}) == len(rows) == len(shades.rows) * len(shades.columns)
    assert [row["value"] for row in rows[: len(shades.columns)]] == list(shades.values[0])


def test_calibration_before_and_after() -> None:
    found = drawn_result("calibrate").result
    rows = rows_of(by_name("calibrate")["errors"])
    assert [row["error"] for row in rows if row["which"] == "as it was"] == [
        each.error_before_fraction for each in found.runs][:24]  # fmt: skip
