"""`suanli rerun`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Json, Output
from suanli.cli.run import run

File = Annotated[
    Path, typer.Argument(help="A report written by -o (.html, .json) or by --json.", show_default=False, metavar="FILE")
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the code a report names as its model (torch:, jax:, keras:).")
]


def command(file: File, trust: Trust = False, json: Json = False, output: Output = None) -> None:
    """Repeat a report under this version and tell which numbers moved. Exit code 1 where one did.

    Example: suanli rerun report.html
    """
    run(lambda: api.rerun(file, trust=trust), as_json=json, output=output, failed=lambda result: not result.ok)
