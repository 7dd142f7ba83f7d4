"""`suanli scale`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suanli import api
from suanli.cli.layout import Fabric, Pin, Stack
from suanli.cli.options import Dtype, Gpu, Json, Output, Seq, Text, text_option
from suanli.cli.run import never, run

File = Annotated[
    list[Path] | None,
    typer.Argument(
        help="A CSV: gpus, and step_time_s, tokens_per_s, tokens_per_s_per_gpu, tflops_per_gpu, mfu_pct …; or several "
        "JSON files of `suanli mfu`.",
        show_default=False, metavar="[FILE.csv]",
    ),
]  # fmt: skip
Points = Annotated[Text, text_option("--points", "Sizes instead of a file: 64:1.0,128:1.9.", metavar="GPUS:FIGURE,…")]
Metric = Annotated[
    Text, text_option("--metric", "What the figures are: step_time_s (or time), tokens_per_s, mfu …", metavar="NAME")
]
Project = Annotated[Text, text_option("--project", "Larger sizes to project to: 4096,8192.", metavar="GPUS,…")]
SeriesName = Annotated[Text, text_option("--series", "One of several series in the file: its name or a part of it.")]
GlobalBatch = Annotated[
    Text, text_option("--global-batch", "Sequences of a step at every size, where they do not say it.", metavar="N")
]
Model = Annotated[
    Text, text_option("--model", "Model of the runs: the planner of layouts is a law too, with --gpu.", metavar="MODEL")
]


def command(
    file: File = None,
    points: Points = None,
    metric: Metric = None,
    project: Project = None,
    series: SeriesName = None,
    global_batch: GlobalBatch = None,
    model: Model = None,
    gpu: Gpu = None,
    pin: Pin = None,
    seq: Seq = None,
    dtype: Dtype = None,
    stack: Stack = None,
    fabric: Fabric = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Tell how near to linear a cluster scales, by which law, and what more GPUs would give.

    Example: suanli scale --points 3072:23.66,12288:6.34 --metric time --global-batch 6144
    """
    run(
        lambda: api.scale(
            (file[0] if len(file) == 1 else file) if file else None,
            points=points, metric=metric, project=project, series=series, global_batch=global_batch, model=model,
            gpu=gpu, pin=pin, seq=seq, dtype=dtype, stack=stack, fabric=fabric,
        ),
        as_json=json,
        output=output,
        failed=never,
    )  # fmt: skip
