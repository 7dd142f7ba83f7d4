"""`suanli verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Json, Output, Text, text_option
from suanli.cli.progress import progress_bar
from suanli.cli.run import run
from suanli.nouns.result import Result

_SECTIONS = "articles, runs, models, predictions, scaling, serving; or traces, which needs data. Default: all but that."
Only = Annotated[Text, text_option("--only", _SECTIONS, metavar="SECTION")]
Full = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Print every claim, not only what does not simply hold; of models, try default configs too.",
    ),
]

Types = Annotated[
    Text,
    text_option("--types", "With --only models: of the model types of transformers, only these.", metavar="TYPE,…"),
]

Data = Annotated[
    Text,
    text_option("--data", "With --only serving or traces: their folder. Default: SUANLI_DATA or ../shared/data.",
                metavar="DIR"),
]  # fmt: skip


def command(
    only: Only = None, all_: Full = False, types: Types = None, data: Data = None, json: Json = False,
    output: Output = None,
) -> None:  # fmt: skip
    """Reproduce published numbers; print the agreement by source. Exit code 1 when a claim that should hold does not.

    Example: suanli verify --only runs
    """

    def asked() -> Result:
        with progress_bar("checking") as progress:  # gone before the report is printed
            return api.verify(only, every=all_, types=types, data=data, progress=progress)

    run(asked, as_json=json, output=output, failed=lambda result: not result.ok)
