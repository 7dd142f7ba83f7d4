"""The width of predicted runs' intervals is what the held-out steps say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from suanli.catalog.run_spread import run_spread

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.xdist_group("published steps")  # judged once, being slow
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fit_run_spread.py"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("fit_run_spread", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_set_weighs_the_same(script: Any) -> None:
    """Ten small errors in one set, one large in another: half of the weight is the large one's."""
    assert script.ninety_over_eighty([np.full(10, 0.5), np.array([3.0])]) == 3.0
    assert script.ninety_over_eighty([np.arange(1.0, 11.0)]) == 9.0  # nine tenths of ten


def test_what_ships_is_what_the_steps_say(script: Any) -> None:
    """All sets, each step predicted without its fold."""
    sets = [script.widths(script.judge(each)) for each in script.SETS]
    assert run_spread().ninety_over_eighty == pytest.approx(script.ninety_over_eighty(sets), abs=1e-3)
    assert (run_spread().steps, run_spread().sets) == (sum(map(len, sets)), len(sets))
    assert run_spread().ninety_over_eighty > 1.2816**-1 * 1.6449  # wider than a normal distribution's
