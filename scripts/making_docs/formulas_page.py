"""docs/formulas.md: every formula with its letters and its source."""

from __future__ import annotations

import inspect
import sys

from making_docs.markdown import MADE
from suanli.formulas import all_formulas
from suanli.formulas.registry import Formula


def formulas_page() -> str:
    """docs/formulas.md."""
    parts = [
        "# Formulas\n",
        f"{len(all_formulas())} formulas, one function a quantity. `suanli why ID` prints any of them, and with a "
        "model the numbers put in.\n",
    ]
    module = ""
    for formula in all_formulas().values():
        if formula.function.__module__ != module:
            module = formula.function.__module__
            doc = (inspect.getdoc(sys.modules[module]) or "").split("\n\n")[0].replace("\n", " ")
            parts.append(f"## {module.rpartition('.')[2].capitalize()}\n\n{doc}\n")
        parts.append(_formula(formula))
    return MADE + "\n".join(parts)


def _formula(formula: Formula) -> str:
    letters = "".join(f"\n- `{name}`: {text}" for name, text in formula.legend.items())
    unit = f" [{formula.unit}]" if formula.unit else ""
    expression = f"```text\n{formula.expression}{unit}\n```"
    return f"### `{formula.id}`\n\n{formula.doc}\n\n{expression}\n\nSource: {formula.source}.\n{letters}\n"
