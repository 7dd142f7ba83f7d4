"""Fit the time profiles of training stacks again and write src/suanli/catalog/profiles.toml.

    python scripts/fit_profiles.py

The same as `suanli calibrate --shipped all -o profiles.toml`, to the place in the package. Every number starts from
what is believed of its stack (nouns/profile.py, catalog/stack_time.toml); the intervals are those of predictions with
each fold left out (`suanli verify --only predictions`).
"""

from __future__ import annotations

from pathlib import Path

import suanli
from suanli.report.files import write_result

FILE = Path(__file__).resolve().parents[1] / "src" / "suanli" / "catalog" / "profiles.toml"

if __name__ == "__main__":
    write_result(suanli.calibrate(shipped="all"), FILE)
