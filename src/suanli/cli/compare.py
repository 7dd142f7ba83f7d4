"""`suanli compare`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Batch, Json, Model, Output, Seq, Text, text_option
from suanli.cli.run import never, run

Tools = Annotated[
    Text, text_option("--tools", "Some counters only: calflops,thop,megatron. Default: all.", metavar="NAMES")
]
Device = Annotated[
    Text,
    text_option(
        "--device", "auto (default: meta, and where a tool fails there the CPU), meta or cpu.", metavar="WHERE"
    ),
]
TimeLimit = Annotated[
    Text, text_option("--time-limit", "Longest run of one counter, loading left out. Default 120 s.", metavar="TIME")
]
MemoryLimit = Annotated[
    Text, text_option("--memory-limit", "Most memory of one counter (address space). Default 8 GiB.", metavar="SIZE")
]
Input = Annotated[
    list[str] | None,
    typer.Option("--input", help="What a module is run on: 1x3x224x224, 1x128:int64, name=SHAPE.", metavar="SHAPE",
                 show_default=False),
]  # fmt: skip


def command(
    model: Model,
    seq: Seq = None,
    batch: Batch = None,
    input: Input = None,
    device: Device = None,
    tools: Tools = None,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Run a model through every other FLOP counter installed, side by side, and say why each differs.

    Example: suanli compare bert-base --seq 128
    """
    with _progress() as progress:
        run(
            lambda: api.compare(
                model, seq=seq, batch=batch, input=",".join(input) if input else None, device=device, tools=tools,
                time_limit=time_limit, memory_limit=memory_limit, progress=progress,
            ),
            as_json=json,
            output=output,
            failed=never,
        )  # fmt: skip


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on stderr where that is a terminal; it is gone before the report is printed."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("loading torch", total=None)

        def tell(what: str, done: int, all_: int) -> None:
            bar.update(task, description=what, completed=done, total=all_)
            if done == all_:
                bar.stop()

        yield tell
