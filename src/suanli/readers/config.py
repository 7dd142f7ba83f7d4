"""Checked access to a model description (a mapping of keys), collecting every fault before raising once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from suanli.errors import ConfigError, FaultList, nearest_names, shown
from suanli.units import GIGA

MAX_WIDTH = GIGA  # wider layers are typing errors
MAX_LAYERS = 100_000
KEYS_COMPARED = 500  # keys of a config that are searched for one spelled like a missing key


class StandIn(int):
    """A harmless number in place of a bad one; contradictions with it are not reported."""


def brief(value: object) -> str:
    """A value as messages show it; containers by their length, so that a huge one costs nothing."""
    if isinstance(value, Mapping):
        return f"a nested description of {len(value):,} keys"
    if isinstance(value, list | tuple):
        return f"a list of {len(value):,}"
    return shown(value[:100] if isinstance(value, str) else value)


class Config:
    """A mapping with typed reads. A read of a bad value records a fault and returns a harmless stand-in;
    `check()` then raises one ConfigError with all of them. Several spellings of one key may be given: the first
    present counts, and two that are present and differ are a contradiction.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values = values
        self.where = where
        self.faults = FaultList(ConfigError)

    def has(self, *names: str) -> bool:
        """Whether any of the spellings is present and not null."""
        return any(self.values.get(name) is not None for name in names)

    def raw(self, *names: str) -> Any:
        """The value under the first spelling present, null counting as absent."""
        found = [(name, self.values[name]) for name in names if self.values.get(name) is not None]
        for name, value in found[1:]:
            if value != found[0][1]:
                self.fault(
                    "contradiction",
                    f"{found[0][0]} and {name} name the same thing and differ",
                    name,
                    got=f"{brief(found[0][1])} and {brief(value)}",
                )
        return found[0][1] if found else None

    def fault(self, code: str, message: str, key: str, **parts: Any) -> None:
        """Record a fault at `key` of this description, once however often the key is read."""
        where = f"{self.where}: {key}"
        if not any(known.where == where and known.message == message for known in self.faults.faults):
            self.faults.add(code=code, message=message, where=where, **parts)

    def need(self, *names: str, low: int = 1, high: int = MAX_WIDTH) -> int:
        """A required whole number in [low, high]; 1 stands in for a bad one until `check`."""
        if not self.has(*names):
            self._missing(names[0])
            return StandIn(1)
        return self._read(names, low, high)

    def _missing(self, name: str) -> None:
        known = (key for key in islice(self.values, KEYS_COMPARED) if isinstance(key, str) and len(key) < 100)
        similar = nearest_names(name, [key for key in known if key not in (name, "model_type")], 2)
        got = "null" if name in self.values else None
        self.fault("missing_key", f"missing key {name}", name, got=got, expected="a whole number", nearest=similar)

    def whole(self, *names: str, default: int, low: int = 1, high: int = MAX_WIDTH) -> int:
        """An optional whole number."""
        return self._read(names, low, high) if self.has(*names) else default

    def maybe(self, *names: str, low: int = 1, high: int = MAX_WIDTH) -> int | None:
        """A whole number or None where the key is absent or null."""
        return self._read(names, low, high) if self.has(*names) else None

    def _read(self, names: tuple[str, ...], low: int, high: int) -> int:
        """The number under the first spelling present, which messages name."""
        return self._whole(self.raw(*names), next(name for name in names if self.has(name)), low, high)

    def _whole(self, value: Any, key: str, low: int, high: int) -> int:
        if isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) <= high:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            expected = f"a whole number from {low:,} to {high:,}"
            self.fault("bad_value", f"{key} is not possible", key, got=brief(value), expected=expected)
            return StandIn(max(low, 1))
        return value

    def flag(self, *names: str, default: bool) -> bool:
        """A true/false value."""
        value = self.raw(*names)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fault("bad_value", f"{names[0]} is not true or false", names[0], got=brief(value))
            return default
        return value

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """One of a few words."""
        value = self.values.get(name)
        if value is None:
            return default
        if value not in allowed:
            expected = "one of " + ", ".join(allowed)
            self.fault("bad_value", f"{name} is not possible", name, got=brief(value), expected=expected)
            return default
        return str(value)

    def names(self, name: str, length: int, allowed: Sequence[str]) -> tuple[str, ...] | None:
        """A list of words, one a layer, or None where absent."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            self.fault("bad_value", f"{name} is not a list of words", name, got=brief(value))
            return None
        if len(value) != length:
            if not isinstance(length, StandIn):
                self.fault(
                    "contradiction", f"{name} does not have one entry a layer", name, got=f"{len(value):,}",
                    expected=f"{length:,}",
                )  # fmt: skip
            return None
        wrong = [item for item in value if item not in allowed]
        if wrong:
            self.fault(
                "bad_value",
                f"{name} has an unknown entry",
                name,
                got=brief(wrong[0]),
                expected=", ".join(allowed),
            )
            return None
        return tuple(value)

    def wholes(self, name: str, *, low: int = 0, high: int = MAX_WIDTH) -> tuple[int, ...] | None:
        """A list of whole numbers, or None where absent."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or len(value) > MAX_LAYERS:
            self.fault("bad_value", f"{name} is not a list of whole numbers", name, got=brief(value))
            return None
        found = []
        for item in value:
            found.append(self._whole(int(item) if isinstance(item, bool) else item, name, low, high))
            if isinstance(found[-1], StandIn):  # one fault a list
                return None
        return tuple(found)

    def part(self, name: str) -> Config:
        """A nested description, sharing the fault list."""
        value = self.values.get(name)
        if not isinstance(value, Mapping):
            self.fault(
                "missing_key",
                f"missing part {name}",
                name,
                got=None if value is None else brief(value),
                expected="a nested description",
            )
            value = {}
        inner = Config(value, f"{self.where}: {name}")
        inner.faults = self.faults
        return inner

    def layers(self, *names: str) -> int:
        """A required number of layers."""
        return self.need(*names, high=MAX_LAYERS)

    def head_dim(self, hidden: int, heads: int) -> int:
        """Width of a head: given, or hidden/heads, which must then divide."""
        given = self.maybe("head_dim")
        if given is not None:
            return given
        if hidden % heads and not isinstance(hidden, StandIn):
            self.fault(
                "contradiction",
                "the number of heads does not divide the width, and no head_dim is given",
                "num_attention_heads",
                got=f"{heads} heads, width {hidden}",
            )
        return max(1, hidden // heads)

    def kv_heads(self, heads: int, *names: str) -> int:
        """Key/value heads: as many as heads unless given; they must divide the heads."""
        kv_heads = self.whole(*(names or ("num_key_value_heads",)), default=heads)
        if heads % kv_heads and not isinstance(heads, StandIn):
            self.fault(
                "contradiction",
                "the number of key/value heads does not divide the number of heads",
                (names or ("num_key_value_heads",))[0],
                got=f"{heads} heads, {kv_heads} key/value heads",
            )
            return heads
        return kv_heads

    def check(self) -> None:
        """Raise one ConfigError with everything found wrong."""
        self.faults.raise_if_any()
