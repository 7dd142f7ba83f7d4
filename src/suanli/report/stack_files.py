"""Fitted profiles as TOML: a calibrated stack for `--stack FILE`, and the profiles that ship."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from suanli.nouns.calibrated import Calibrated, CalibratedKernels, Origin
from suanli.nouns.profile import StackProfile
from suanli.nouns.result import Result

DIGITS, WIDTH_DIGITS = 5, 4
FORMAT = 1
OWN = "# Written by suanli calibrate; read by `suanli layout … --stack FILE`. Calibrate again instead of editing.\n"
SHIPPED = "# Written by `suanli calibrate --shipped all`: fit again instead of editing.\n"


def stack_toml(result: Result) -> str:
    """The TOML of a result of `calibrate`: the calibrated stack, or the shipped profiles fitted again."""
    origin: Origin = result.asked["origin"]
    if isinstance(result.result, Calibrated | CalibratedKernels):
        return own_stack(result.result.profile, origin)
    return shipped_profiles([each.profile for each in result.result.stacks], origin)


def own_stack(stack: StackProfile, origin: Origin) -> str:
    """A stack that `--stack FILE` reads."""
    head = {
        "format": FORMAT, "name": stack.name, "base": stack.shipped, "data": origin.data,
        "data_sha256": origin.data_sha256, "command": origin.command, "date": origin.date, "rows": stack.rows,
        "routed_rows": stack.routed_rows, "devices": stack.devices, "sources": stack.sources, "untold": stack.untold,
        "half_width": round(stack.half_width, WIDTH_DIGITS),
        "routed_half_width": round(stack.routed_half_width, WIDTH_DIGITS),
    }  # fmt: skip
    return "\n".join([OWN, "[stack]", *_keys(head), "", "[numbers]", *_numbers(asdict(stack.numbers))]) + "\n"


def shipped_profiles(stacks: Sequence[StackProfile], origin: Origin) -> str:
    """The text of catalog/profiles.toml."""
    return SHIPPED + "".join(_shipped(stack, origin) for stack in stacks)


def _shipped(stack: StackProfile, origin: Origin) -> str:
    head = {
        "rows": stack.rows, "routed_rows": stack.routed_rows, "sources": stack.sources, "devices": stack.devices,
        "half_width": round(stack.half_width, WIDTH_DIGITS),
        "routed_half_width": round(stack.routed_half_width, WIDTH_DIGITS),
        "command": origin.command, "date": origin.date,
    }  # fmt: skip
    lines = [f"\n[{stack.name}]", *_keys(head), f"[{stack.name}.numbers]", *_numbers(asdict(stack.numbers))]
    for label, values in stack.labels.items():
        lines += [f"[{stack.name}.labels.{json.dumps(label)}]", *_numbers(values)]
    return "\n".join(lines) + "\n"


def _numbers(values: Mapping[str, float]) -> list[str]:
    return [f"{name} = {rounded(value)!r}" for name, value in values.items()]


def rounded(value: float) -> float:
    """A number as the file has it."""
    return float(f"{value:.{DIGITS}g}")


def _keys(values: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in values.items()]


def _value(value: Any) -> str:
    """A TOML value: a basic string is written as JSON writes it."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
