"""`suanli summarise`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Gpu, Json, Text, text_option
from suanli.cli.progress import progress_bar
from suanli.cli.run import run
from suanli.nouns.result import Result

Traces = Annotated[list[Path], typer.Argument(help="Traces of profilers, and folders of them.", show_default=False)]
Target = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="FILE.parquet of one trace; of several, a folder.", show_default=False),
]
Engine = Annotated[
    str, text_option("--engine", "local: a process a core; ray; ray://HOST:PORT of a cluster.", metavar="NAME")
]
Workers = Annotated[Text, text_option("--workers", "Processes of the engine local. Default: one a core.", metavar="N")]


def command(
    traces: Traces,
    gpu: Gpu = None,
    engine: Engine = "local",
    workers: Workers = None,
    json: Json = False,
    output: Target = None,
) -> None:
    """Boil a trace down to its account and its device work, for `suanli explain` over many ranks.

    Example: suanli summarise rank7.json.gz -o summaries/rank7.parquet
    """

    def asked() -> Result:
        with progress_bar("summarising") as told:  # gone before the report is printed
            return api.summarise(traces, output, gpu=gpu, engine=engine, workers=workers, progress=told)

    run(asked, as_json=json, output=None, failed=lambda result: any(each.output is None for each in result.files))
