"""`suanli goodput`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Gpus, Json, Output, Text, text_option
from suanli.cli.run import never, run


def complete_failures(incomplete: str) -> list[str]:
    """Failure tables that begin so."""
    from suanli.catalog.failures import failure_tables  # noqa: PLC0415  read only when a name is completed

    return [name for name in failure_tables() if name.startswith(incomplete.lower())]


Mtbf = Annotated[
    Text, text_option("--mtbf", "Mean time between failures of one GPU and its share of the rest: 50000h.",
                      metavar="TIME")
]  # fmt: skip
MtbfNode = Annotated[Text, text_option("--mtbf-node", "The same of a node: 6400h.", metavar="TIME")]
Mtti = Annotated[Text, text_option("--mtti", "Mean time to interrupt of the whole job: 3.09h.", metavar="TIME")]
Failures = Annotated[
    Text, text_option("--failures", "A published failure table, like llama-3-405b.", complete=complete_failures,
                      metavar="NAME")
]  # fmt: skip
PerNode = Annotated[Text, text_option("--gpus-per-node", "GPUs of a node, for --mtbf-node. Default 8.", metavar="N")]
Detect = Annotated[Text, text_option("--detect", "From an interrupt until it is noticed.", metavar="TIME")]
Restart = Annotated[Text, text_option("--restart", "From then until work goes on: 10min.", metavar="TIME")]
Save = Annotated[Text, text_option("--checkpoint-save", "Time to save a checkpoint: 60s.", metavar="TIME")]
Mode = Annotated[Text, text_option("--checkpoint-mode", "blocking (default) or async.", metavar="MODE")]
Stall = Annotated[
    Text, text_option("--checkpoint-stall", "How long an asynchronous save stops training: 5s.", metavar="TIME")
]
Load = Annotated[
    Text, text_option("--checkpoint-load", "Time to load one, where --restart leaves it out.", metavar="TIME")
]
Interval = Annotated[Text, text_option("--interval", "Work between checkpoints. Default: the best.", metavar="TIME")]
Spares = Annotated[Text, text_option("--spares", "Spare nodes, with --repair.", metavar="N")]
Repair = Annotated[Text, text_option("--repair", "Time a failed node is away: 2d.", metavar="TIME")]
Stragglers = Annotated[Text, text_option("--stragglers", "Part lost to the slowest rank: 2%.", metavar="PART")]
Maintenance = Annotated[Text, text_option("--maintenance", "Planned downtime: 4h/14d.", metavar="TIME/TIME")]
Days = Annotated[Text, text_option("--days", "Days of useful work, to simulate the finish.", metavar="N")]
Mfu = Annotated[Text, text_option("--mfu", "MFU while running, for goodput × MFU.", metavar="PART")]
Seed = Annotated[Text, text_option("--seed", "Of the simulation. Default 0.", metavar="N")]
Events = Annotated[
    Path | None,
    typer.Option("--events", help="Measure a log instead: a CSV of start, end, kind, cause.", show_default=False),
]


def command(
    gpus: Gpus = None,
    mtbf: Mtbf = None,
    mtbf_node: MtbfNode = None,
    mtti: Mtti = None,
    failures: Failures = None,
    gpus_per_node: PerNode = None,
    detect: Detect = None,
    restart: Restart = None,
    checkpoint_save: Save = None,
    checkpoint_mode: Mode = None,
    checkpoint_stall: Stall = None,
    checkpoint_load: Load = None,
    interval: Interval = None,
    spares: Spares = None,
    repair: Repair = None,
    stragglers: Stragglers = None,
    maintenance: Maintenance = None,
    days: Days = None,
    mfu: Mfu = None,
    seed: Seed = None,
    events: Events = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Tell how much of a long run is useful: failures, checkpoints, restarts; or measure it from a log.

    Example: suanli goodput --gpus 16384 --failures llama-3-405b --restart 10min --checkpoint-save 60s
    """
    run(
        lambda: api.goodput(
            gpus=gpus, mtbf=mtbf, mtbf_node=mtbf_node, mtti=mtti, failures=failures, gpus_per_node=gpus_per_node,
            detect=detect, restart=restart, checkpoint_save=checkpoint_save, checkpoint_mode=checkpoint_mode,
            checkpoint_stall=checkpoint_stall, checkpoint_load=checkpoint_load, interval=interval, spares=spares,
            repair=repair, stragglers=stragglers, maintenance=maintenance, days=days, mfu=mfu, seed=seed,
            events=events,
        ),
        as_json=json,
        output=output,
        failed=never,
    )  # fmt: skip
