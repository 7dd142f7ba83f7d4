"""Where outside data is looked for, in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from suanli.errors import UnreadableFileError
from suanli.readers import outside
from suanli.readers.outside import VARIABLE, outside_data


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of its own with nothing beside it."""
    module = tmp_path / "checkout" / "src" / "suanli" / "readers" / "outside.py"
    module.parent.mkdir(parents=True)
    monkeypatch.setattr(outside, "__file__", str(module))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


def test_given_goes_before_the_variable_and_that_before_what_is_beside(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert outside_data(None) is None
    for name in ("shared", "set", "given"):
        (checkout / name).mkdir()
    assert outside_data(None) == checkout / "shared"
    monkeypatch.setenv(VARIABLE, str(checkout / "set"))
    assert outside_data(None) == checkout / "set"
    assert outside_data(str(checkout / "given")) == checkout / "given"


def test_what_is_named_must_be_there(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = "; got '/nowhere'; expected a folder with traces/INDEX.csv and the files it lists."
    with pytest.raises(UnreadableFileError, match="no such folder in --data") as problem:
        outside_data("/nowhere")
    assert str(problem.value) == "no such folder in --data" + expected
    monkeypatch.setenv(VARIABLE, "/nowhere")
    with pytest.raises(UnreadableFileError) as problem:
        outside_data(None)
    assert str(problem.value) == f"no such folder in {VARIABLE}" + expected
