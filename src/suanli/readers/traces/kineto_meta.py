"""What Kineto says outside its events: devices, rank, groups, base time, switches, and what it dropped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from suanli.nouns.trace import TraceDevice, TraceFault
from suanli.readers.traces.kineto_details import ranks_of
from suanli.readers.traces.sentences import behind
from suanli.units import counted

KEYS = (
    "schemaVersion", "deviceProperties", "computeProperties", "distributedInfo", "baseTimeNanoseconds", "INFO",
    "WARNING", "ERROR", "record_shapes", "with_stack", "with_flops", "with_modules", "profile_memory",
    "cuda_runtime_version", "hip_runtime_version", "cupti_version", "roctracer_version", "displayTimeUnit",
)  # fmt: skip
_SWITCHES = {
    "record_shapes": "shapes", "with_stack": "stacks", "with_flops": "flops", "with_modules": "modules",
    "profile_memory": "memory",
}  # fmt: skip
_VERSIONS = {
    "cuda_runtime_version": "CUDA", "hip_runtime_version": "HIP", "cupti_version": "CUPTI",
    "roctracer_version": "roctracer",
}  # fmt: skip
_RANK = re.compile(r"(?:^|[^a-z])(?:rank|worker)[-_ .=]?(\d{1,7})(?!\d)", re.IGNORECASE)
_DROPPED = re.compile(r"Out-of-range = (\d{1,18})")
_OUTSIDE = "the profiler dropped {count} {events|event} as out of its window (Out-of-range in its log)"
_SECOND_LIST = "a second list of traceEvents stands behind the first: its {count} {events are|event is} left out"
_STOPPED = re.compile(r"CUPTI stopped early\? = [1-9]")
_LARGEST_BASE = 25 * 10**17  # nanoseconds: the year 2049; with it times fit int64
_BLANK = "\ufeff \t\r\n"
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


class KinetoMeta:
    """What the texts before and after the events say. `broken` where they are no JSON and were read key by key.

    `tail_bytes` are those behind the list of events, where `tail` is only the first of them.
    """

    def __init__(self, header: bytes, tail: bytes, tail_bytes: int = 0) -> None:
        before, after = header.decode("utf-8", "replace"), tail.decode("utf-8", "replace")
        self.broken = False
        self.bytes_behind = self.events_behind = 0
        self.said: dict[str, Any] = {}
        if before.strip(_BLANK):
            self.said, _ = self._object(before.strip(_BLANK).rstrip(" ,\t\r\n") + "}")
        if not after.strip(" ,}\0\t\r\n"):
            return
        behind = after
        if before.strip(_BLANK):
            said, behind = self._object("{" + after.lstrip(" ,\t\r\n"))
            again = said.pop("traceEvents", None)
            self.events_behind = len(again) if isinstance(again, list) else 0
            self.said |= said
        behind = behind.lstrip(_BLANK)
        if behind.strip("\0"):
            self.bytes_behind = max(tail_bytes, len(tail)) - len(after.removesuffix(behind).encode())

    def _object(self, text: str) -> tuple[dict[str, Any], str]:
        """The object that a text begins with, and what stands behind it."""
        try:
            value, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            self.broken = True
            return {key: value for key in KEYS for value in _value_after(text, key)}, ""
        return value if isinstance(value, dict) else {}, text[end:]

    @property
    def base_ns(self) -> int | None:
        """What is added to every time; None where the file does not say, or says what is no time."""
        base = self.said.get("baseTimeNanoseconds")
        if isinstance(base, str) and re.fullmatch(r"\d{1,19}", base):
            base = int(base)
        return base if type(base) is int and 0 <= base <= _LARGEST_BASE else None

    @property
    def recorded(self) -> dict[str, bool]:
        """Switches of the profiler that the file states."""
        return {name: bool(self.said[key]) for key, name in _SWITCHES.items() if key in self.said}

    @property
    def producer(self) -> str:
        """Who wrote it and which version."""
        numbers = {key: value for key, value in self.said.items() if type(value) in (int, float)}
        said = [f"{name} {numbers[key]}" for key, name in _VERSIONS.items() if key in numbers]
        return "Kineto" + (f" ({', '.join(said)})" if said else "")

    def rank(self, path: str) -> int | None:
        """The rank by distributedInfo, else by the name of the file: rank-34., rank0, worker3."""
        rank = self._distributed.get("rank")
        if type(rank) is int and rank >= 0:
            return rank
        match = _RANK.search(PurePath(path).name)
        return int(match[1]) if match else None

    @property
    def world_size(self) -> int | None:
        """Ranks of the job."""
        size = self._distributed.get("world_size")
        return size if type(size) is int and size > 0 else None

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """Ranks of each process group that lists them in full."""
        config = self._distributed.get("pg_config")
        found = {}
        for each in config if isinstance(config, list) else ():
            ranks = ranks_of(each.get("ranks")) if isinstance(each, dict) else None
            if ranks is not None and isinstance(each.get("pg_name"), str | int):
                found[str(each["pg_name"])] = ranks
        return found

    @property
    def _distributed(self) -> Mapping[str, Any]:
        said = self.said.get("distributedInfo")
        return said if isinstance(said, dict) else {}

    def devices(self, seen: Iterable[int]) -> tuple[TraceDevice, ...]:
        """Devices described, and seen: where all described are alike, those seen under other numbers are like them."""
        listed = self.said.get("deviceProperties", self.said.get("computeProperties"))
        described = {
            each["id"]: _device(each)
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, dict) and type(each.get("id")) is int
        }
        kinds = {replace(device, id=0) for device in described.values()}
        like = kinds.pop() if len(kinds) == 1 else TraceDevice(id=0)
        for number in seen:
            described.setdefault(number, replace(like, id=number))
        return tuple(described[number] for number in sorted(described))

    def faults(self) -> list[TraceFault]:
        """Dropped events and the like, by what Kineto's own log says."""
        lines = [str(line) for key in ("INFO", "WARNING", "ERROR") for line in _lines(self.said.get(key))]
        dropped = sum(int(number) for line in lines for number in _DROPPED.findall(line))
        found = []
        if self.broken:
            message = "what stands outside the events is no JSON: only keys that could be made out were read"
            found.append(TraceFault(code="broken-json", count=1, message=message))
        if self.bytes_behind:
            found.append(TraceFault(code="more-documents", count=1, message=behind(self.bytes_behind)))
        if self.events_behind:
            count = self.events_behind
            found.append(TraceFault(code="more-documents", count=count, message=counted(count, _SECOND_LIST)))
        if dropped:
            found.append(TraceFault(code="dropped-events", count=dropped, message=counted(dropped, _OUTSIDE)))
        if any(_STOPPED.search(line) for line in lines):
            message = "CUPTI stopped before the end of the window: work after that is missing"
            found.append(TraceFault(code="dropped-events", count=0, message=message))
        return found


def _value_after(text: str, key: str) -> list[Any]:
    """The value of a key in a text that is no JSON as a whole: none or one."""
    match = re.search(rf'"{key}"\s*:\s*', text)
    if match is None:
        return []
    try:
        return [_DECODER.raw_decode(text, match.end())[0]]
    except (ValueError, RecursionError):
        return []


def _lines(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []


def _device(said: Mapping[str, Any]) -> TraceDevice:
    count, memory = said.get("numSms", said.get("multiProcessorCount")), said.get("totalGlobalMem")
    name = said.get("name")
    return TraceDevice(
        id=said["id"],
        name=name if isinstance(name, str) and name else None,
        sm_count=count if type(count) is int and count > 0 else None,
        memory_bytes=memory if type(memory) is int and memory > 0 else None,
    )
