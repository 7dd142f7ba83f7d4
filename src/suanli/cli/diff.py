"""`suanli diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Json, Output
from suanli.cli.run import never, run

_HELP = "A report written by -o (.html, .json) or by --json."
First = Annotated[Path, typer.Argument(help=_HELP, show_default=False, metavar="A")]
Second = Annotated[Path, typer.Argument(help="Another of the same verb.", show_default=False, metavar="B")]


def command(first: First, second: Second, json: Json = False, output: Output = None) -> None:
    """Set two reports beside each other: inputs that differ, numbers that differ and by how much.

    Example: suanli diff before.html after.html
    """
    run(lambda: api.diff(first, second), as_json=json, output=output, failed=never)
