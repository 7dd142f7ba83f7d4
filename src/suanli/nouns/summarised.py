"""What `summarise` answers. Field names are the JSON keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class SummaryFile:
    """One trace and its summary."""

    path: str = _doc("", "of the trace, as given")
    output: str | None = _doc("", "of the summary; None with a reason", default=None)
    rank: int | None = _doc("", "as the trace says; None: it does not", default=None)
    devices: int = _doc("", "that have work", default=0)
    steps: int = _doc("", "of all devices", default=0)
    work: int = _doc("", "kernels, copies and sets", default=0)
    trace_bytes: int = _doc("B", "of the trace file", default=0)
    summary_bytes: int = _doc("B", "of the summary", default=0)
    reused: bool = _doc("", "it was there already, of the same trace", default=False)
    reasons: Mapping[str, str] = _doc("", "why a field is None", default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Summarised:
    """Summaries of traces."""

    files: tuple[SummaryFile, ...] = _doc("", "by trace, in natural order")
    ignored: tuple[str, ...] = _doc("", "files of folders that are not called like traces", default=())
