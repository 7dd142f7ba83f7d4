"""docs/conventions.md: the conventions as rows, and one run under each."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import suanli
from making_docs.markdown import MADE, Rows, code, table
from suanli.catalog.conventions import CONVENTIONS
from suanli.nouns.convention import Convention
from suanli.units import GIGA, format_percent

EXAMPLE: dict[str, Any] = {"gpu": "h100-sxm", "seq": 8192, "tokens_per_second": 8000}
EXAMPLE_WORDS = "Llama-3-8B, sequences of 8,192 tokens, 8,000 tokens/s on one H100 SXM (dense bf16 peak 989.4 TFLOP/s)"


def conventions_page() -> str:
    """docs/conventions.md."""
    rows: Rows = [(code(each.name), each.doc, each.source) for each in CONVENTIONS.values()]
    counted = [each for each in fields(Convention) if each.metadata and each.name != "common"]
    meaning: Rows = [(code(each.name), each.metadata["doc"]) for each in counted]
    names = [each.name for each in counted]
    values: Rows = [
        (code(each.name), *(_value(getattr(each, name)) for name in names)) for each in CONVENTIONS.values()
    ]
    return MADE + "\n".join((
        "# Conventions\n",
        "A convention says what a FLOP figure includes. It is data, a row of the table below; the code that counts "
        "reads its fields and never asks for its name. `--convention NAME` chooses one, `causal` is the default, and "
        "every figure names the one it was counted under.\n",
        table(("name", "what is counted", "where it is read"), rows),
        f"\n## One run under each\n\n{EXAMPLE_WORDS}.\n",
        one_run(tuple(CONVENTIONS)),
        "\n## The fields of a convention\n",
        table(("field", "meaning"), meaning),
        "\n## The rows\n",
        table(("name", *(code(name) for name in names)), values),
        "\nThe backward pass is twice the forward pass, but where `exact_backward` is set it is what autograd needs: "
        "no gradient of a frozen weight, and none of an input behind which nothing is trained.",
        "",
    ))  # fmt: skip


def _value(value: object) -> str:
    return {True: "yes", False: "no", None: ""}.get(value, str(value)) if isinstance(value, bool | None) else str(value)


def one_run(names: tuple[str, ...]) -> str:
    """The example run under each convention."""
    rows: Rows = []
    for name in names:
        view = suanli.mfu("llama-3-8b", convention=name, **EXAMPLE).by_convention[name]
        rows.append((code(name), f"{view.flops_per_token / GIGA:,.3f}", format_percent(view.mfu)))
    return table(("convention", "GFLOP/token", "utilisation"), rows, "-rr")
