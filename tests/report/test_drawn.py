"""`.svg` and `.png`: whole, titled, in both languages, light and dark; what is missing is said before any work."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from made_results import made

import suanli
from suanli.errors import InputError, MissingExtraError
from suanli.report import drawn
from suanli.report.figures import figures_of
from suanli.report.figures.colours import DARK_GROUND, LIGHT_GROUND
from suanli.report.files import check_suffix, write_result

PNG = b"\x89PNG\r\n\x1a\n"


def size_of(png: bytes) -> tuple[int, int]:
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


def test_a_drawing_has_every_figure_under_its_title() -> None:
    result = made("mfu")
    svg = drawn.as_svg(result)
    for each in figures_of(result):
        assert f">{each.title}<" in svg
    assert ">MFU 41.6 % [causal, 989.4 dense bf16 h100-sxm] (palm 49.4 %)<" in svg
    assert LIGHT_GROUND in svg and DARK_GROUND not in svg
    assert DARK_GROUND in drawn.as_svg(result, dark=True)


def test_pictures_of_dots() -> None:
    result = made("scale")
    small, large = drawn.as_png(result, scale=1.0), drawn.as_png(result)
    assert small.startswith(PNG) and large.startswith(PNG)
    (width, height), (wide, high) = size_of(small), size_of(large)
    assert (wide, high) == pytest.approx((2 * width, 2 * height), abs=2)
    assert width > drawn.WIDTH and height > 600


def test_drawings_in_chinese_have_no_english_titles() -> None:
    svg = drawn.as_svg(made("mfu"), lang="zh")
    assert re.search(r"[一-鿿]", svg)
    assert "The same run under each convention" not in svg and "recompute" not in svg


def test_long_headlines_are_broken() -> None:
    document = json.loads(drawn.specification(made("layout")))
    assert len(document["title"]["text"]) > 1
    assert max(map(len, document["title"]["text"])) <= drawn.HEADLINE
    assert [each["title"] for each in document["vconcat"]] == [each.title for each in figures_of(made("layout"))]
    assert all(each["width"] == drawn.WIDTH for each in document["vconcat"])


@pytest.mark.parametrize(("suffix", "begins"), [(".svg", b"<svg"), (".png", PNG), (".SVG", b"<svg")])
def test_files(tmp_path: Path, suffix: str, begins: bytes) -> None:
    target = tmp_path / f"found{suffix}"
    check_suffix(target, "mfu")
    write_result(made("mfu"), target)
    assert target.read_bytes().startswith(begins)
    assert [each.name for each in tmp_path.iterdir()] == [target.name], "no temporary file is left"


def test_a_kind_without_pictures_names_what_works(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        write_result(made("why_formula"), tmp_path / "why.svg")
    assert str(caught.value) == (
        "why has no picture to draw in --output; got 'why.svg'; expected a file ending in .json, .csv, .md, .html."
    )
    with pytest.raises(InputError, match="why has no picture to draw"):
        check_suffix(tmp_path / "why.png", "why")
    with pytest.raises(InputError, match="mfu has no picture to draw"):
        drawn.as_svg(made("mfu_above_peak"))


def test_without_vl_convert_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for suffix in (".svg", ".png"):
        with pytest.raises(MissingExtraError) as caught:
            check_suffix(tmp_path / f"x{suffix}", "mfu")
        assert str(caught.value) == (
            "vl-convert is needed to draw pictures and is not installed in --output. pip install 'suanli[report]'"
        )
    check_suffix(tmp_path / "x.csv", "mfu")


def test_numbers_of_any_size_are_drawn() -> None:
    """FLOPs of a run are beyond 64 bits."""
    assert "YFLOPs" in drawn.as_svg(suanli.train(params="405B", tokens="15.6T", gpu="h100-sxm", gpus=16384, mfu=0.4))
