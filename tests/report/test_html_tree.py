"""The tree of modules: sums close at every branch, names are whole, what unfolds is a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_html import Parsed
from made_results import made

from suanli.nouns.ledger import Ledger, Op
from suanli.report.html_blocks import Setting
from suanli.report.html_tree import Branch, module_tree, tree_of

AT = Setting("en", lambda *_: False)


def op(path: str, flops: int = 1, params: int = 1, pass_: str = "forward") -> Op:
    return Op(path=path, kind="linear", pass_=pass_, model_flops=flops, hardware_flops=flops, read_bytes=3,
              write_bytes=4, params=params, times=2, formula="linear_flops")  # fmt: skip


def check_sums(branch: Branch) -> None:
    if branch.parts:
        assert sum(each.flops for each in branch.parts.values()) <= branch.flops
        for each in branch.parts.values():
            check_sums(each)


PATHS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(".".join), min_size=1, max_size=20)


@given(PATHS)
def test_sums_close(paths: list[str]) -> None:
    root = tree_of(Ledger(tuple(op(path) for path in paths), "causal"))
    assert (root.flops, root.params, root.moved) == (len(paths), len(paths), 7 * len(paths))
    check_sums(root)


@pytest.mark.parametrize("name", ["count_train", "count_by_kind", "count_image"])
def test_the_whole_is_the_model(name: str) -> None:
    books = made(name).result
    root = tree_of(books.ledger)
    assert (root.params, root.flops) == (books.ledger.params, books.flops.hardware)


def test_a_module_with_one_part_is_written_with_it() -> None:
    root = tree_of(Ledger((op("model.layers.0.a"), op("model.layers.0.b"), op("head.proj")), "causal"))
    assert [each.name for each in root.parts.values()] == ["model.layers.0", "head.proj"]


def test_passes_of_a_module_are_one_row() -> None:
    root = tree_of(Ledger((op("a.x", 5), op("a.x", 10, 0, "backward"), op("b.y")), "causal"))
    assert [(each.name, each.flops, each.params) for each in root.parts.values()] == [("a.x", 15, 1), ("b.y", 1, 1)]


def test_the_tree_unfolds_by_itself_and_with_one_button() -> None:
    found = Parsed(module_tree(made("count_train"), AT))
    assert found.all("section")[0].attributes["data-block"] == "Modules"
    assert found.all("button", "unfold")[0].attributes["aria-pressed"] == "false"
    assert len(found.all("details")) == len(found.all("summary")) > 1
    assert "open" in found.all("details")[0].attributes
    names = [each.text for each in found.all("span", "name")]
    assert any(" × 32" in name for name in names)
    assert [each.text.strip() for each in found.all("span", "unseen")].count("parameters") > 5


@pytest.mark.parametrize("name", ["mfu", "count_like", "count_expression"])
def test_nothing_where_there_are_no_modules(name: str) -> None:
    assert module_tree(made(name), AT) == ""
