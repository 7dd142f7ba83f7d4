"""Fit the serving presets to measured points and write catalog/serving_presets.toml.

    python scripts/fit_serving.py POINTS.csv [--out FILE]

POINTS.csv has the columns of `suanli.readers.serving_points`.
"""

from __future__ import annotations

import argparse
import datetime
import functools
from pathlib import Path

from suanli.catalog import serving_presets
from suanli.nouns.serving_profile import NUMBERS
from suanli.plan.serving.accuracy import ServingCheck, check_points
from suanli.plan.serving.points import Kept, keep_points, label_of
from suanli.readers.preset import read_named_preset
from suanli.readers.serving_points import read_serving_points

TITLES = {
    "vllm": "vLLM, a constant number of users",
    "sglang": "SGLang, a constant number of users",
    "tensorrt-llm": "TensorRT-LLM, a constant number of users",
    "tensorrt-llm/offline": "TensorRT-LLM, as many sequences as fit, no user waiting",
    "vllm/chat": "vLLM under chat traffic, answers of many lengths",
}
ERRORS = ("mean_fitted", "mean_held_out", "median_fitted", "median_held_out", "bias_held_out", "bar_fitted",
          "bar_held_out")  # fmt: skip
_TARGET = Path(__file__).resolve().parents[1] / "src" / "suanli" / "catalog" / serving_presets.FILE


def main() -> None:
    """Read the points, fit, write the file beside its old one and rename it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", type=Path)
    parser.add_argument("--out", type=Path, default=_TARGET)
    given = parser.parse_args()
    kept = keep_points(read_serving_points(given.points), functools.cache(read_named_preset))
    text = rendered(check_points(kept), kept, given.points.name, datetime.date.today())
    temporary = given.out.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(given.out)


def rendered(check: ServingCheck, kept: Kept, name: str, date: datetime.date) -> str:
    """The file's text."""
    source = f"{name}, python scripts/fit_serving.py, {date.isoformat()}"
    lines = ["# Written by scripts/fit_serving.py: fitted numbers, not to be edited by hand.", ""]
    for label, profile in sorted(check.engines.engines.items()):
        width, rows = check.widths[label]
        gpus = sorted({point.gpu or "" for point in kept.points if label_of(point) == label})
        lines += [f'["{label.replace("/", "-")}"]', f'title = "{TITLES[label]}"']
        lines += [f"{number} = {getattr(profile, number):.6g}" for number in NUMBERS]
        listed = ", ".join(f'"{gpu}"' for gpu in gpus)
        lines += [f"half_width = {width:.4f}", f"rows = {rows}", f"gpus = [{listed}]", f'source = "{source}"', ""]
    assert check.power is not None, "the points hold no energy"
    power = check.power
    lines += [
        "[power]",
        *(f"{each} = {getattr(power, each):.4f}" for each in ("always", "memory", "products", "half_width")),
    ]
    lines += [f"rows = {power.rows}", f'source = "{source}"', ""]
    for error in check.errors:
        lines += ["[[error]]", *(f'{name} = "{getattr(error, name)}"' for name in ("quantity", "source", "judged"))]
        lines += [f"n = {error.n}"]
        lines += [f"{name} = {getattr(error, name):.4f}" for name in ERRORS if getattr(error, name) is not None]
        lines += [""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
