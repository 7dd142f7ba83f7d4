"""The pages: HTML made here, answers by the verbs in a worker, state in the address. No arithmetic, no reading of files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from suanli.errors import InputError, SuanliError
from suanli.version import VERSION
from suanli.web import elsewhere, names
from suanli.web.answered import Shown, drawn_file, shown, why_note
from suanli.web.forms import Entry, Field, entries, entry, grouped
from suanli.web.html import asset_response, field_of_fault, render
from suanli.web.state import State, example, given, read_state

PINS = (
    ("tp", (1, 2, 4, 8, 16)), ("pp", (1, 2, 4, 8, 16, 32)), ("vpp", (1, 2, 3, 4, 6, 8)), ("cp", (1, 2, 4, 8, 16)),
    ("ep", (1, 2, 4, 8, 16, 32, 64)), ("micro_batch", (1, 2, 4, 8)), ("zero", (0, 1, 2, 3)),
    ("recompute", ("none", "selective", "full")), ("sp", ("yes", "no")), ("schedule", ("1f1b", "interleaved")),
)  # fmt: skip
SUFFIXES = {
    "html": "one file with pictures, works offline", "json": "every number", "csv": "rows for a spreadsheet",
    "md": "text with tables", "svg": "the pictures, sharp at any size", "png": "the pictures",
}  # fmt: skip
TYPES = {
    "html": "text/html; charset=utf-8", "json": "application/json", "csv": "text/csv; charset=utf-8",
    "md": "text/markdown; charset=utf-8", "svg": "image/svg+xml", "png": "image/png",
}  # fmt: skip
EXAMPLES = {"example": "example.pt.trace.json"}  # files of our own that stand for an upload


class Answers(Protocol):
    """What the page needs of the server: work done in a worker, uploads found by token, jobs."""

    async def work(self, do: Any, *args: Any, long: bool = False) -> Any:
        """`do(*args, tell=…)` in a worker. Raises what it raises."""

    def uploaded(self, token: str) -> Path | None:
        """The file of a token; None where it is kept no longer."""

    def begin(self, do: Any, *args: Any) -> str:
        """Start long work; its id."""

    def told(self, id: str) -> Mapping[str, Any]:
        """`state` running, done, failed, cancelled or gone; `part`, `what`, `value`, `error`."""

    def cancel(self, id: str) -> None:
        """Stop long work."""
