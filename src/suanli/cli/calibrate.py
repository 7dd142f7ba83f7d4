"""`suanli calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Gpu, Json, Text, text_option
from suanli.cli.run import never, run

TOML = ".toml"

File = Annotated[
    Path | None,
    typer.Argument(
        help="A CSV of three or more own step times, a run a row: gpus, global_batch, seq, micro_batch, zero, "
        "recompute, step_s, and model or the columns of its shape. Or kernels: the CSV of explain --kernels-csv, or a "
        "trace.",
        show_default=False, metavar="[FILE]",
    ),
]  # fmt: skip
Stack = Annotated[
    Text,
    text_option(
        "--stack", "Training software to start from: megatron-core (default), nemo …, or a stack's FILE.toml.",
        metavar="NAME",
    ),
]  # fmt: skip
Fabric = Annotated[
    Text,
    text_option(
        "--fabric", "Links, where the file has no column fabric: hgx-h100, or 8x450GB/s+400GB/s.", metavar="LINKS"
    ),
]
Name = Annotated[
    Text, text_option("--name", "What the calibrated stack is called. Default: the name of the .toml.", metavar="NAME")
]
Shipped = Annotated[
    Text,
    text_option("--shipped", "Fit a profile that ships again, or all of them, beside what ships.", metavar="STACK"),
]
Rows = Annotated[
    Path | None,
    typer.Option(
        "--rows", help="With --shipped STACK: a CSV of more runs to fit to.", show_default=False, metavar="FILE.csv"
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Write the stack to a .toml for --stack, or the report to a .json, .csv or .md file.",
        show_default=False,
    ),
]  # fmt: skip


def command(
    file: File = None,
    stack: Stack = None,
    gpu: Gpu = None,
    fabric: Fabric = None,
    name: Name = None,
    shipped: Shipped = None,
    rows: Rows = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Fit a stack's step times to your own runs, and say how much surer its predictions are.

    Example: suanli calibrate runs.csv --stack nemo -o mystack.toml
    """
    writes = output is not None and output.suffix.lower() == TOML
    called = output.stem if output is not None and writes and name is None and shipped is None else name
    run(
        lambda: api.calibrate(file, stack=stack, gpu=gpu, fabric=fabric, name=called, shipped=shipped, rows=rows),
        as_json=json,
        output=output,
        failed=never,
        kind="calibrate",
    )
