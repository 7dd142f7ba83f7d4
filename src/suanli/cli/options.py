"""Options that several verbs share, each described once, with completion where names can be completed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _matching(names: list[str], start: str) -> list[str]:
    return [name for name in names if name.startswith(start.lower())]


def complete_model(incomplete: str) -> list[str]:
    """Preset names that begin so."""
    from suanli.catalog.presets import presets  # noqa: PLC0415  read only when a name is completed

    return _matching(list(presets()), incomplete)


def complete_gpu(incomplete: str) -> list[str]:
    """Device ids that begin so."""
    from suanli.catalog.devices import list_devices  # noqa: PLC0415

    return _matching([name for device in list_devices() for name in (device.short_id, device.id)], incomplete)


def complete_convention(incomplete: str) -> list[str]:
    """Conventions that begin so."""
    from suanli.catalog.conventions import CONVENTIONS  # noqa: PLC0415

    return _matching(list(CONVENTIONS), incomplete)


def complete_quantity(incomplete: str) -> list[str]:
    """Ids `why` knows that begin so."""
    from suanli.why import known_ids  # noqa: PLC0415

    return _matching(list(known_ids()), incomplete)


def complete_dtype(incomplete: str) -> list[str]:
    """Dtypes that begin so."""
    from suanli.nouns.workload import DTYPE_BITS  # noqa: PLC0415

    return _matching(list(DTYPE_BITS), incomplete)


MODEL_HELP = (
    "A preset (llama-3.1-405b; see `suanli models`), a config.json or a folder with one, a hub id org/name, "
    'or a layer expression like "linear(4096, 11008)".'
)
Model = Annotated[str, typer.Argument(help=MODEL_HELP, autocompletion=complete_model, show_default=False)]
MaybeModel = Annotated[
    str | None, typer.Argument(help=MODEL_HELP, autocompletion=complete_model, show_default=False, metavar="[MODEL]")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to a .html, .json, .csv or .md file.", show_default=False)
]
Text = str | None


def text_option(flag: str, help_: str, *more: str, complete: object = None, metavar: str = "TEXT") -> object:
    """An option that takes text, parsed by the verb so that it can be told apart in messages."""
    return typer.Option(flag, *more, help=help_, autocompletion=complete, metavar=metavar, show_default=False)  # type: ignore[arg-type]


Seq = Annotated[
    Text, text_option("--seq", "Positions of a sequence: 2048, 8Ki. Default: min(2048, the model's).", metavar="N")
]
Batch = Annotated[Text, text_option("--batch", "Sequences in the batch. Default 1.", metavar="N")]
Gpu = Annotated[
    Text, text_option("--gpu", "Device of the catalogue, like h100-sxm.", complete=complete_gpu, metavar="NAME")
]
Gpus = Annotated[Text, text_option("--gpus", "Number of GPUs.", metavar="N")]
Dtype = Annotated[Text, text_option("--dtype", "bf16 (default), fp16, fp8, fp32 …", complete=complete_dtype)]
Convention = Annotated[
    Text,
    text_option(
        "--convention", "What a FLOP figure includes: causal (default), full, megatron, palm, 6n …",
        complete=complete_convention, metavar="NAME",
    ),
]  # fmt: skip
Params = Annotated[
    Text, text_option("--params", "N of the ideal forms (175B) in place of the model's own.", metavar="N")
]
Image = Annotated[Text, text_option("--image", "Size of the picture, height x width.", metavar="HxW")]
Frames = Annotated[Text, text_option("--frames", "Frames of the clip, where a model makes clips.", metavar="N")]
