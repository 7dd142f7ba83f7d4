"""The few pieces all HTML of a report is made of: escaped text, tags, data inside a script."""

from __future__ import annotations

import json
from html import escape
from typing import Any


def esc(text: str) -> str:
    """Text that may stand between tags and inside quotes."""
    return escape(text, quote=True)


def tag(name: str, inner: str, **attributes: str | None) -> str:
    """An element around what is HTML already; attributes are escaped, `class_` is `class`, `data_x` is `data-x`."""
    given = (
        f' {key.rstrip("_").replace("_", "-")}="{esc(value)}"' for key, value in attributes.items() if value is not None
    )
    return f"<{name}{''.join(given)}>{inner}</{name}>"


def json_script(value: Any, **attributes: str) -> str:
    """Data for a script. `<` is written as an escape of JSON: no text in it can end the element or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return tag("script", text.replace("<", "\\u003c"), type="application/json", **attributes)
