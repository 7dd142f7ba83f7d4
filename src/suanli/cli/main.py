"""The command `suanli`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from suanli.cli import catalogues, count, mfu, train, verify, why
from suanli.version import VERSION

app = typer.Typer(
    name="suanli",
    help="Suanli (算力) keeps the books of deep-learning compute: count, measure, plan, explain, verify.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"suanli {VERSION}\n")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Options of the command itself."""


app.command("count")(count.command)
app.command("mfu")(mfu.command)
app.command("train")(train.command)
app.command("gpus")(catalogues.gpus_command)
app.command("models")(catalogues.models_command)
app.command("why")(why.command)
app.command("verify")(verify.command)


def main() -> None:
    """Run the command; a closed pipe is no error."""
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
