"""What of a layout the user fixes: `tp=8,pp=16`, a range `tp=1..8`, several values `micro_batch=1,2`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from suanli.errors import FaultList, InputError, nearest_names, shown
from suanli.plan.limits import PINS, Space, possible, reason_against

WHERE = "--pin"
WORDS = ("recompute", "schedule")
SWITCHES = ("sp", "offload")
ALL = "all"  # of `shards`: every replica
TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_RANGE = re.compile(r"(\d{1,7})\.\.(\d{1,7})")

Pins = dict[str, tuple[Any, ...]]


def read_pins(given: str | Mapping[str, Any] | None, space: Space) -> Pins:
    """For each axis that is pinned, the values it may take, ascending.

    Raises InputError listing every pin that cannot be read, has an unknown name, or no possible value; with the
    nearest possible one.
    """
    faults = FaultList(InputError)
    found: Pins = {}
    for name, values in _named(given, faults).items():
        axis = name.strip().lower().replace("-", "_")
        if axis not in PINS:
            faults.add(code="unknown_pin", message=f"unknown pin {shown(name)}", where=WHERE,
                       expected="one of " + ", ".join(PINS), nearest=nearest_names(axis, PINS))  # fmt: skip
            continue
        if not values:
            faults.add(code="bad_pin", message=f"{axis} has no value", where=f"{WHERE} {axis}", got="nothing",
                       expected="a value, or several")  # fmt: skip
            continue
        read = [each for value in values for each in _read(axis, value, space, faults)]
        kept = _kept(axis, read, space, faults, single=len(values) == 1 and len(read) == 1)
        if kept:
            found[axis] = kept
    faults.raise_if_any()
    return found


def _named(given: str | Mapping[str, Any] | None, faults: FaultList) -> dict[str, list[Any]]:
    """Names and their values as typed; in a text a part without `=` is one more value of the name before it."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        several = (list, tuple, range, set)
        return {str(name): list(value) if isinstance(value, several) else [value] for name, value in given.items()}
    if not isinstance(given, str):
        faults.add(code="bad_pin", message="pins cannot be read", where=WHERE, got=shown(given),
                   expected="a text like tp=8,pp=1..16, or a mapping of names to values")  # fmt: skip
        return {}
    found: dict[str, list[Any]] = {}
    name = ""
    for part in given.split(","):
        left, equals, right = part.partition("=")
        name = left if equals else name
        value = (right if equals else left).strip()
        if not name or not value:
            faults.add(code="bad_pin", message="a pin cannot be read", where=WHERE, got=shown(part),
                       expected="name=value, like tp=8 or pp=1..16 or micro_batch=1,2")  # fmt: skip
            continue
        found.setdefault(name, []).append(value)
    return found


def _read(axis: str, value: Any, space: Space, faults: FaultList) -> Sequence[Any]:
    """The values a typed one means: one, or those of a range that are possible."""
    text = str(value).strip().lower()
    span = _RANGE.fullmatch(text)
    if axis in WORDS:
        return [text]
    if axis in SWITCHES:
        if text in TRUTHS and isinstance(value, str | bool):
            return [TRUTHS[text]]
    elif axis == "shards" and text == ALL:
        return [0]
    elif span is not None:
        low, high = int(span[1]), int(span[2])
        return [each for each in _wide(space, axis) if low <= each <= high]
    elif text.isdecimal() and len(text) <= 7:
        return [int(text)]
    expected = "yes or no" if axis in SWITCHES else "a whole number or a range like 1..8"
    expected += f", or {ALL}" if axis == "shards" else ""
    faults.add(code="bad_pin", message=f"{axis} cannot be read", where=WHERE, got=shown(value), expected=expected)
    return []


def _wide(space: Space, axis: str) -> Sequence[int]:
    """What a range may hold: it may reach past a node, where the search by itself does not."""
    wide = Space(cuts=space.cuts, gpus=space.gpus, global_batch=space.global_batch, seq=space.seq,
                 per_node=max(space.gpus))  # fmt: skip
    return [int(each) for each in possible(wide, axis)]


def _kept(axis: str, values: Sequence[Any], space: Space, faults: FaultList, *, single: bool) -> tuple[Any, ...]:
    """Values that can be; a fault where none is, or where the one that was asked for is not."""
    if axis in (*WORDS, *SWITCHES, "zero"):
        known = possible(space, axis)
        bad = [value for value in values if value not in known]
        for value in bad:
            faults.add(code=f"unknown_{axis}", message=f"unknown {axis} {shown(value)}", where=f"{WHERE} {axis}",
                       expected="one of " + ", ".join(map(str, known)),
                       nearest=nearest_names(str(value), map(str, known)))  # fmt: skip
        return tuple(dict.fromkeys(value for value in values if value in known))
    against = {
        value: reason_against(space, axis, value) if value or axis == "shards" else "it is nothing" for value in values
    }
    kept = tuple(sorted({value for value, reason in against.items() if reason is None}))
    if kept or (not values and faults.faults):
        return kept
    near = nearest_values(_wide(space, axis), values[0] if values else 1)
    faults.add(code="bad_pin", message=f"{axis} cannot be so", where=f"{WHERE} {axis}",
               got=f"{values[0]:,}: {against[values[0]]}" if single else "a range that holds no possible value",
               expected="a possible value", nearest=tuple(f"{each:,}" for each in near))  # fmt: skip
    return ()


def nearest_values(known: Sequence[int], value: int, count: int = 2) -> tuple[int, ...]:
    """Up to `count` known values nearest to one, ascending."""
    return tuple(sorted(sorted(known, key=lambda each: abs(each - value))[:count]))
