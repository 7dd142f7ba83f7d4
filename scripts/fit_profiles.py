"""Fit the time profiles of training stacks to the published runs and write src/suanli/catalog/profiles.toml.

    python scripts/fit_profiles.py

Every number starts from what is believed of its stack (nouns/profile.py, catalog/stack_time.toml); the intervals are
those of predictions with each fold left out (`suanli verify --only predictions`).
"""

from __future__ import annotations

import datetime
from dataclasses import asdict
from pathlib import Path

from suanli.nouns.profile import StackProfile
from suanli.plan.predictions import SETS, fit_stack, judge

FILE = Path(__file__).resolve().parents[1] / "src" / "suanli" / "catalog" / "profiles.toml"
DIGITS = 5


def main() -> None:
    """Fit every stack that has runs and write the file, first under another name."""
    judged = [judge(each) for each in SETS]
    stacks = [fit_stack(name, judged) for name in dict.fromkeys(each.stack for each in SETS)]
    text = "# Written by scripts/fit_profiles.py: fit again instead of editing.\n" + "".join(map(_table, stacks))
    written = FILE.with_suffix(".tmp")
    written.write_text(text, encoding="utf-8")
    written.replace(FILE)


def _table(stack: StackProfile) -> str:
    head = {
        "rows": stack.rows, "routed_rows": stack.routed_rows,
        "sources": list(stack.sources), "devices": list(stack.devices),
        "half_width": round(stack.half_width, 4), "routed_half_width": round(stack.routed_half_width, 4),
        "command": "python scripts/fit_profiles.py", "date": datetime.date.today().isoformat(),
    }  # fmt: skip
    lines = [f"\n[{stack.name}]", *(f"{key} = {_value(value)}" for key, value in head.items())]
    lines += [f"[{stack.name}.numbers]", *_numbers(asdict(stack.numbers))]
    for label, values in stack.labels.items():
        lines += [f'[{stack.name}.labels."{label}"]', *_numbers(values)]
    return "\n".join(lines) + "\n"


def _numbers(values: dict[str, float]) -> list[str]:
    return [f"{name} = {float(f'{value:.{DIGITS}g}')!r}" for name, value in values.items()]


def _value(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(f'"{each}"' for each in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    main()
