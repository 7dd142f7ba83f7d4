"""Where measured data is looked for, in which order, and what is said of a folder that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from suanli.errors import InputError
from suanli.readers import outside
from suanli.readers.outside import VARIABLE, outside_data


@pytest.fixture(autouse=True)
def nothing_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working directory and a checkout of the test's own, nothing in the environment."""
    here = tmp_path / "work" / "here"
    (tmp_path / "home" / "checkout" / "src" / "suanli" / "readers").mkdir(parents=True)
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(outside, "__file__", str(tmp_path / "home/checkout/src/suanli/readers/outside.py"))
    return tmp_path


def folder(parent: Path) -> Path:
    made = parent / "shared" / "data"
    made.mkdir(parents=True)
    return made


def test_nowhere_is_none() -> None:
    assert outside_data() is None


def test_what_is_given_comes_first(nothing_beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, named = nothing_beside / "given", nothing_beside / "named"
    given.mkdir()
    named.mkdir()
    folder(nothing_beside / "work")
    monkeypatch.setenv(VARIABLE, str(named))
    assert outside_data(str(given)) == given
    assert outside_data() == named
    monkeypatch.setenv(VARIABLE, "")
    assert outside_data() == nothing_beside / "work" / "shared" / "data"


def test_beside_the_working_directory_comes_before_beside_the_checkout(nothing_beside: Path) -> None:
    far = folder(nothing_beside / "home")
    assert outside_data() is None  # an installed package has no checkout
    (nothing_beside / "home" / "checkout" / "pyproject.toml").touch()
    assert outside_data() == far
    assert outside_data() != (near := folder(nothing_beside / "work"))
    assert outside_data() == near


@pytest.mark.parametrize("how", ["--data", VARIABLE])
def test_a_folder_that_was_named_and_is_none_is_an_error(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == VARIABLE:
        monkeypatch.setenv(VARIABLE, "nowhere")
    with pytest.raises(InputError) as caught:
        outside_data("nowhere" if how == "--data" else None)
    expected = "expected a folder with measured_serving.csv and its neighbours."
    assert str(caught.value) == f"there is no such folder in {how}; got 'nowhere'; {expected}"
