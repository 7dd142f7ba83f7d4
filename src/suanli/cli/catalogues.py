"""`suanli gpus` and `suanli models`."""

from __future__ import annotations

from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Json, Output, Text, complete_gpu, complete_model, text_option
from suanli.cli.run import never, run

GpuName = Annotated[Text, typer.Argument(help="One device in full.", autocompletion=complete_gpu, show_default=False)]
ModelName = Annotated[
    Text, typer.Argument(help="One preset in full.", autocompletion=complete_model, show_default=False)
]
GpuSort = Annotated[Text, text_option("--sort", "Field, largest first: bf16, memory, power …", metavar="FIELD")]
GpuFilter = Annotated[Text, text_option("--filter", 'Words a row must hold, or a comparison like "bf16>900".')]
ModelSort = Annotated[Text, text_option("--sort", "Field, largest first: params, active, positions …", metavar="FIELD")]
ModelFilter = Annotated[Text, text_option("--filter", 'Words a row must hold, or a comparison like "params<10B".')]


def gpus_command(
    name: GpuName = None,
    sort: GpuSort = None,
    filter: GpuFilter = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """List accelerators with their dense peaks, or show one with sources and prices.

    Example: suanli gpus --filter "nvidia hopper"
    """
    run(lambda: api.gpus(name, sort=sort, filter=filter), as_json=json, output=output, failed=never)


def models_command(
    name: ModelName = None,
    sort: ModelSort = None,
    filter: ModelFilter = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """List model presets, or show one with its source.

    Example: suanli models --filter qwen --sort params
    """
    run(lambda: api.models(name, sort=sort, filter=filter), as_json=json, output=output, failed=never)
