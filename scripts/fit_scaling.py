"""Finds what is usual among the published scaling series: `python scripts/fit_scaling.py` writes scaling_usual.toml.

Two numbers, which `suanli scale` uses for series with few sizes and for its intervals. Their error is held out by
`suanli verify --only scaling`, where neither is taken from the series tested.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from suanli.catalog.scaling import USUAL, projectable, published_series, slope_of
from suanli.plan.scale_check import agreement, projections, width_of
from suanli.report.files import write_text

PLACE = Path(__file__).resolve().parents[1] / "src" / "suanli" / "catalog" / USUAL
HEAD = "# Made by scripts/fit_scaling.py from scaling.csv: what is usual among the published series.\n"


def main() -> None:
    """Fit, write, and print the held-out errors."""
    series = published_series()
    found = projections(series)
    lines = (
        f"slope_per_doubling = {slope_of(series):.6f}  # median change of log(rate of one GPU)",
        f"interval_units = {width_of(found):.6f}  # half width of a 90 % interval, in the projection's unit of error",
        f"series = {len(projectable(series))}",
        f'date = "{datetime.now(UTC).date().isoformat()}"',
    )
    write_text(PLACE, HEAD + "\n".join(lines) + "\n")
    sys.stdout.write("\n".join((*lines, str(agreement(found)))) + "\n")


if __name__ == "__main__":
    main()
