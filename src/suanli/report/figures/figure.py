"""What a figure is. A module of its own, so that the modules that make figures and the list of them can both use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Spec = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture. `spec` is Vega-Lite without width, theme or fonts: whoever draws it sets these.

    `words` says in a sentence what is seen: the text in place of the picture. Names of rows and of series that are to
    be translated stand in the fields of `spec["usermeta"]["words"]`; other texts of the data are names and stay.
    """

    name: str
    title: str
    words: str
    spec: Spec
    block: int | None = None
