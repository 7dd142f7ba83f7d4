"""The command `suanli`."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from suanli.cli import (
    calibrate,
    catalogues,
    compare,
    count,
    diff,
    explain,
    goodput,
    infer,
    layout,
    learn,
    mfu,
    rerun,
    scale,
    summarise,
    train,
    verify,
    web,
    why,
)
from suanli.cli.run import show_error
from suanli.errors import Fault, InputError, SuanliError
from suanli.units import units_as
from suanli.version import VERSION


class _Verbs(TyperGroup):
    """The verbs with the whole of their sentence, over lines where it is long."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(limit=_WHOLE)) for name, each in found if each])


_WHOLE = 1000  # characters: no sentence is cut

app = typer.Typer(
    name="suanli",
    cls=_Verbs,
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


Lang = Annotated[
    str | None,
    typer.Option("--lang", help="Language of reports: en (default) or zh; before the verb.", metavar="LANG",
                 show_default=False),
]  # fmt: skip
Units = Annotated[
    str | None,
    typer.Option("--units", help="Sizes in GiB (iec, default) or GB (si), or every digit (exact); before the verb.",
                 metavar="SYSTEM", show_default=False),
]  # fmt: skip


@app.callback()
def _root(
    context: typer.Context,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
    lang: Lang = None,
    units: Units = None,
) -> None:
    """Options of the command itself."""
    if lang is None and units is None:
        return
    from suanli.report.words import spoken_in  # noqa: PLC0415  only where another language or unit is asked for

    try:
        context.with_resource(spoken_in(lang))
        context.with_resource(units_as(units))
    except SuanliError as problem:
        show_error(problem, as_json="--json" in sys.argv[1:])
        raise typer.Exit(problem.exit_code) from problem


app.command("count")(count.command)
app.command("compare")(compare.command)
app.command("mfu")(mfu.command)
app.command("layout")(layout.command)
app.command("calibrate")(calibrate.command)
app.command("summarise")(summarise.command)
app.command("train")(train.command)
app.command("scale")(scale.command)
app.command("goodput")(goodput.command)
app.command("infer")(infer.command)
app.command("explain")(explain.command)
app.command("gpus")(catalogues.gpus_command)
app.command("models")(catalogues.models_command)
app.command("why")(why.command)
app.command("verify")(verify.command)
app.command("learn")(learn.command)
app.command("rerun")(rerun.command)
app.command("diff")(diff.command)
app.command("web")(web.command)


def main() -> None:
    """Run the command. A closed pipe is no error; output that cannot be written is one, told in a line."""
    _prepare_output()
    try:
        code = app(standalone_mode=False)
    except BrokenPipeError:
        _silence()
        raise SystemExit(0) from None
    except OSError as problem:  # a full disk, a closed stream
        _silence()
        sys.stderr.write(f"error: the output cannot be written: {problem.strerror or type(problem).__name__}.\n")
        raise SystemExit(2) from None
    except typer.Abort:
        raise SystemExit(130) from None
    except Exception as problem:
        if not hasattr(problem, "format_message"):  # not a fault of the command line
            raise
        _show_usage(problem)
        raise SystemExit(2) from None
    raise SystemExit(code if isinstance(code, int) else 0)


def _show_usage(problem: Any) -> None:
    """A command line that cannot be read: as the parser tells it, or as the JSON error where JSON was asked for."""
    if "--json" not in sys.argv[1:]:
        problem.show()
        return
    context = getattr(problem, "ctx", None)
    command = context.command_path if context is not None else "suanli"
    fault = Fault(
        code="bad_usage",
        message=problem.format_message().rstrip("."),
        where="the command line",
        hint=f"`{command} --help` lists what it takes.",
    )
    show_error(InputError(fault), as_json=True)


def _prepare_output() -> None:
    """Print what the terminal's encoding can hold, and something in place of what it cannot; no stream is a sink."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _silence() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not fail on it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
