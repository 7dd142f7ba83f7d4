"""The public surface is what it says it is."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import suanli

VERBS = {
    "calibrate", "compare", "count", "diff", "explain", "goodput", "gpus", "infer", "layout", "learn", "mfu",
    "models", "rerun", "scale", "summarise", "train", "verify", "why",
}  # fmt: skip


def test_public_names() -> None:
    assert set(suanli.__all__) == VERBS | {"__version__"}
    assert all(callable(getattr(suanli, verb)) for verb in VERBS)


def test_a_verb_is_a_function_even_where_a_module_has_its_name() -> None:
    import suanli.compare.session
    import suanli.count
    import suanli.explain.whole
    import suanli.learn.book
    import suanli.verify
    import suanli.why

    assert all(inspect.isfunction(getattr(suanli, verb)) for verb in VERBS)


def test_every_verb_says_what_it_does_and_raises() -> None:
    for verb in VERBS - {"gpus", "models"}:
        assert "Raises" in (getattr(suanli, verb).__doc__ or "") or verb == "mfu"


def test_one_version() -> None:
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["version"]["path"] == "src/suanli/version.py"
    assert f"## {suanli.__version__}" in (root / "CHANGELOG.md").read_text(encoding="utf-8").replace("[", "").replace(
        "]", ""
    )
