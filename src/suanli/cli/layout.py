"""`suanli layout`."""

from __future__ import annotations

from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Dtype, Gpu, Json, Model, Output, Seq, Text, text_option
from suanli.cli.progress import Bar
from suanli.cli.run import never, run
from suanli.nouns.result import Result

Gpus = Annotated[Text, text_option("--gpus", "GPUs of the run; several numbers are compared: 512,1024.", metavar="N")]
GlobalBatch = Annotated[Text, text_option("--global-batch", "Sequences in one step.", metavar="N")]
Pin = Annotated[
    Text,
    text_option(
        "--pin",
        "What is fixed: tp=8,pp=16, ranges tp=1..8, several values micro_batch=1,2. Axes: tp pp vpp dp cp ep etp "
        "micro_batch zero shards offload recompute recompute_layers sp schedule. What the stack cannot run is searched "
        "only where it is pinned; states stay on the device unless offload=yes.",
        metavar="PINS",
    ),
]
Stack = Annotated[
    Text,
    text_option(
        "--stack", "Training software: megatron-core (default), nemo …, or a FILE.toml of calibrate.", metavar="NAME"
    ),
]
Fabric = Annotated[
    Text,
    text_option("--fabric", "A node of the catalogue, NODE:NETWORK, or typed: 8x450GB/s+400GB/s.", metavar="LINKS"),
]
Top = Annotated[Text, text_option("--top", "Layouts shown, 1 to 1,000. Default 5.", metavar="K")]
Limit = Annotated[Text, text_option("--memory-limit", "Memory of a GPU: 80GB. Default: the device's.", metavar="SIZE")]
Why = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--why", help="Compare two layouts entry by entry: places in the ranking, or pins.", metavar="A B",
        show_default=False,
    ),
]  # fmt: skip
Emit = Annotated[
    Text,
    text_option("--emit", "The first layout as flags of megatron, torchtitan, deepspeed or nemo.", metavar="TOOL"),
]


def command(
    model: Model,
    gpu: Gpu = None,
    gpus: Gpus = None,
    global_batch: GlobalBatch = None,
    seq: Seq = None,
    pin: Pin = None,
    dtype: Dtype = None,
    stack: Stack = None,
    fabric: Fabric = None,
    top: Top = None,
    memory_limit: Limit = None,
    why: Why = None,
    emit: Emit = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Find the best parallel layout of a training run: every legal one, its memory and step time, ranked.

    Example: suanli layout llama-3.1-405b --gpu h100-sxm --gpus 16384 --global-batch 2048 --seq 8192 --pin cp=1
    """

    def asked() -> Result:
        with Bar() as bar:  # gone before the report is printed
            return api.layout(
                model, gpu=gpu, gpus=gpus, global_batch=global_batch, seq=seq, pin=pin, dtype=dtype, stack=stack,
                fabric=fabric, top=top, memory_limit=memory_limit, why=why, emit=emit, progress=bar,
            )  # fmt: skip

    run(asked, as_json=json, output=output, failed=never)
