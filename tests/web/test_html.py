"""Templates, assets and faults of the page."""

from __future__ import annotations

import re

import jinja2
import pytest

from suanli.errors import Fault, InputError
from suanli.web.forms import entry
from suanli.web.html import ASSETS, asset, asset_address, field_of, problem_html, render

ON = entry("layout")


@pytest.mark.parametrize(
    ("where", "field"),
    [
        ("--global-batch", "global_batch"), ("--gpu", "gpu"), ("MODEL", "model"), ("--pin tp", "pin"),
        ("--pin: tp", "pin"), ("the command line", ""), (None, ""), ("--tokens", ""), ("config.json", ""),
    ],
)  # fmt: skip
def test_a_fault_belongs_to_the_field_its_place_names(where: str | None, field: str) -> None:
    assert field_of(ON, Fault(code="x", message="x", where=where)) == field


@pytest.mark.parametrize(("where", "field"), [("--all", "every"), ("--only", "only")])
def test_an_option_called_otherwise_in_python_is_found_by_its_flag(where: str, field: str) -> None:
    assert field_of(entry("verify"), Fault(code="x", message="x", where=where)) == field


def test_a_problem_lists_every_fault() -> None:
    text = problem_html(
        ON,
        InputError(
            Fault(code="a", message="unknown device 'x'", where="--gpu", nearest=("h100-sxm", "<b>"), hint="Look up."),
            Fault(code="b", message="too much", where="the request", got="9", expected="8"),
        ),
        "zh",
    )
    assert 'data-faults="2"' in text
    assert '<li data-field="gpu">' in text
    assert 'data-set="gpu" data-value="h100-sxm">h100-sxm</button>' in text
    assert "&lt;b&gt;" in text and "<b>" not in text
    assert '<span class="message">未知的设备“x”。</span>' in text
    assert '<span class="message" lang="en">the request：too much；收到：9；应为：8。</span>' in text
    assert '<span class="aid" lang="en">Look up.</span>' in text
    assert "是否想写" in text


def test_a_problem_in_english() -> None:
    fault = Fault(code="b", message="too much", where="the request", got="9", expected="8", hint="Take less.")
    text = problem_html(ON, InputError(fault), "en")
    assert '<span class="message">too much in the request; got 9; expected 8.</span>' in text
    assert '<span class="aid">Take less.</span>' in text


def test_names_are_no_buttons_where_there_is_no_field() -> None:
    text = problem_html(ON, InputError(Fault(code="a", message="no", where="elsewhere", nearest=("gpu",))), "en")
    assert "<button" not in text


@pytest.mark.parametrize("name", ASSETS)
def test_addresses_of_assets_change_with_them(name: str) -> None:
    assert re.fullmatch(rf"/assets/{re.escape(name)}\?v=[\w.]+", asset_address(name))
    assert len(asset(name)) > 200


def test_a_template_without_a_value_fails() -> None:
    with pytest.raises(jinja2.UndefinedError):
        render("start.html", "en")


def test_values_are_escaped() -> None:
    assert "&lt;script&gt;" in render("start.html", "en", text="<script>")
