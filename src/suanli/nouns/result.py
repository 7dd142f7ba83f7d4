"""The envelope every verb returns: the same object in Python, `--json` and the web API."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

SCHEMA = 1


def plain(value: Any) -> Any:
    """Dataclasses, tuples and mappings as JSON values; a trailing underscore of a field name is dropped."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            f.name.rstrip("_"): plain(getattr(value, f.name)) for f in fields(value) if not f.metadata.get("hidden")
        }
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    return value


_shown_by: list[Callable[[Result], str]] = []


def show_by(show: Callable[[Result], str]) -> None:
    """How a notebook shows a result: told by a layer above, which knows reports."""
    _shown_by[:] = [show]


@dataclass(frozen=True)
class Result:
    """What a verb found. Attributes of `result` can be read straight from here: `count(…).params.total`."""

    kind: str
    inputs: dict[str, Any]
    result: Any
    convention: str | None = None
    uncounted: tuple[Any, ...] = ()
    sources: tuple[str, ...] = ()
    ok: bool = True
    notes: tuple[str, ...] = field(default=(), metadata={"doc": "what was assumed, said on screen"})
    asked: dict[str, Any] = field(default_factory=dict, metadata={"doc": "the nouns asked about; not in the JSON"})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "result" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__["result"], name)

    def to_dict(self) -> dict[str, Any]:
        """The JSON envelope."""
        from suanli.version import VERSION  # noqa: PLC0415  one place for it, none needed until asked

        return {
            "ok": self.ok,
            "kind": self.kind,
            "schema": SCHEMA,
            "version": VERSION,
            "inputs": plain(self.inputs),
            "convention": self.convention,
            "result": plain(self.result),
            "uncounted": plain(self.uncounted),
            "sources": list(self.sources),
            "notes": list(self.notes),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The envelope as text. NaN and infinities are refused: no figure of ours may be one."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def _repr_html_(self) -> str | None:
        """The report in a notebook: HTML with its pictures drawn; None where nothing above shows results."""
        return _shown_by[0](self) if _shown_by else None
