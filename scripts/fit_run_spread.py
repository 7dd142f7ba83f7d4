"""Finds how much wider a 90 % interval of a predicted step is than its 80 % one: writes catalog/run_spread.toml.

Every step of the published sets is predicted without its fold, as in `suanli verify --only predictions`.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from suanli.catalog.run_spread import FILE
from suanli.plan.predictions import SETS, Judged, judge
from suanli.report.files import write_text

PLACE = Path(__file__).resolve().parents[1] / "src" / "suanli" / "catalog" / FILE
NINETY = 0.9
ROUNDING = 1e-9
HEAD = "# Made by scripts/fit_run_spread.py: a 90 % interval of a predicted step beside the 80 % one it has.\n"
MEANING = "nine of ten held-out steps lie within this times the 80 % half-width, every set weighing the same"


def widths(found: Judged) -> np.ndarray:
    """Errors of held-out predictions in half-widths of their own 80 % interval."""
    return np.asarray(np.abs(np.log(found.held_out_s / found.measured_s)) / found.half_width)


def ninety_over_eighty(sets: list[np.ndarray]) -> float:
    """What nine tenths of the errors stay below where every set weighs the same."""
    errors = np.concatenate(sets)
    weights = np.concatenate([np.full(len(each), 1 / len(each)) for each in sets])
    order = np.argsort(errors)
    part = np.cumsum(weights[order]) / weights.sum()
    return float(errors[order][np.searchsorted(part, NINETY - ROUNDING)])


def main() -> None:
    """Judge every set, write, and print."""
    sets = [widths(judge(each)) for each in SETS]
    lines = (
        f"ninety_over_eighty = {ninety_over_eighty(sets):.4f}  # {MEANING}",
        f"steps = {sum(map(len, sets))}",
        f"sets = {len(sets)}",
        f'date = "{datetime.now(UTC).date().isoformat()}"',
    )
    write_text(PLACE, HEAD + "\n".join(lines) + "\n")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
