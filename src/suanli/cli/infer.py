"""`suanli infer`."""

from __future__ import annotations

from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Json, Output, Text, complete_gpu, complete_model, text_option
from suanli.cli.run import never, run


def complete_preset(incomplete: str) -> list[str]:
    """Engines that begin so."""
    from suanli.catalog.serving_presets import serving_preset_names  # noqa: PLC0415  read when a name is completed

    return [name for name in serving_preset_names() if name.startswith(incomplete.lower())]


def complete_scheme(incomplete: str) -> list[str]:
    """Weight schemes that begin so."""
    from suanli.catalog.schemes import list_schemes  # noqa: PLC0415

    return [each.name for each in list_schemes() if each.name.startswith(incomplete.lower())]


_MODEL_HELP = (
    "A preset (llama-3.1-70b; see `suanli models`), a config.json, a folder with one, a .safetensors or .gguf file, "
    "whose header then gives the weights, or a hub id org/name."
)
Model = Annotated[str, typer.Argument(help=_MODEL_HELP, autocompletion=complete_model, show_default=False)]
Gpu = Annotated[
    Text, text_option("--gpu", "Device, like h100-sxm; several with commas are compared.", complete=complete_gpu,
                      metavar="NAME")
]  # fmt: skip
Gpus = Annotated[Text, text_option("--gpus", "GPUs in all. Default: one replica's.", metavar="N")]
Isl = Annotated[Text, text_option("--isl", "Tokens of a prompt. Default 1024.", metavar="N")]
Osl = Annotated[Text, text_option("--osl", "Tokens of an answer. Default 1024.", metavar="N")]
Concurrency = Annotated[Text, text_option("--concurrency", "Users who never rest. Default 1.", metavar="N")]
Rate = Annotated[Text, text_option("--rate", "Requests a second, arriving by chance.", metavar="N")]
Batch = Annotated[Text, text_option("--batch", "A static batch: starts together, ends together.", metavar="N")]
Ttft = Annotated[Text, text_option("--ttft", "Find a layout with a first token within: 500ms.", metavar="TIME")]
Tpot = Annotated[Text, text_option("--tpot", "Find a layout with further tokens within: 30ms.", metavar="TIME")]
Tp = Annotated[Text, text_option("--tp", "Tensor parallel ranks. Default: the GPUs of a node.", metavar="N")]
Pp = Annotated[Text, text_option("--pp", "Pipeline stages.", metavar="N")]
Ep = Annotated[Text, text_option("--ep", "Ranks the experts are spread over.", metavar="N")]
Groups = Annotated[Text, text_option("--dp-attention", "Data-parallel groups of the attention.", metavar="N")]
Cp = Annotated[Text, text_option("--cp", "Of the tp ranks, those that share a cache's positions.", metavar="N")]
Dtype = Annotated[
    Text, text_option("--dtype", "Of weights: fp8, awq-4bit-128, q4_k … Default: the file's or config's, else bf16.",
                      complete=complete_scheme)
]  # fmt: skip
KvDtype = Annotated[Text, text_option("--kv-dtype", "How the cache is stored: bf16 (default), fp8, q8_0 …")]
Preset = Annotated[
    Text, text_option("--preset", "Engine: vllm (default), tensorrt-llm, sglang, ideal …", complete=complete_preset,
                      metavar="NAME")
]  # fmt: skip
Calibrate = Annotated[
    Text, text_option("--calibrate", "Measured points of your own as CSV: two or more of this engine.", metavar="FILE")
]
DraftTokens = Annotated[Text, text_option("--draft-tokens", "Tokens drafted before each step.", metavar="N")]
Acceptance = Annotated[Text, text_option("--acceptance", "Chance that a drafted token is taken: 0.7.", metavar="PART")]
DraftModel = Annotated[
    Text, text_option("--draft-model", "What drafts. Default: one more layer (MTP).", metavar="MODEL")
]
Chunk = Annotated[Text, text_option("--chunk", "Prompts go in pieces of so many tokens.", metavar="N")]
Disaggregate = Annotated[
    Text, text_option("--disaggregate", "GPUs of prefill and of decode, each on its own: 4:8.", metavar="P:D")
]
Link = Annotated[
    Text,
    text_option(
        "--link",
        "A GPU's link one way, to the other pool or its replica: 50GB/s. Default: the catalogue's.",
        metavar="RATE",
    ),
]
Stages = Annotated[
    Text,
    text_option("--stages", "Work beside the model, time and workers: pre=5ms:4,post=2ms:4.", metavar="NAME=TIME:N"),
]
Price = Annotated[
    Text, text_option("--price", "Dollars of a GPU-hour, or spot, reserved. Default: on-demand.", metavar="USD")
]
Sell = Annotated[Text, text_option("--sell", "Price a million output tokens sell at, for the margin.", metavar="USD")]
Utilisation = Annotated[Text, text_option("--utilisation", "Part of paid time with this load: 60%.", metavar="PART")]
Pue = Annotated[Text, text_option("--pue", "Facility over IT power. Default 1.", metavar="N")]
Carbon = Annotated[Text, text_option("--carbon", "Of the grid: 0.4kg/kWh.", metavar="N")]
Seed = Annotated[Text, text_option("--seed", "Of the simulation. Default 0.", metavar="N")]


def command(
    model: Model,
    gpu: Gpu = None,
    gpus: Gpus = None,
    isl: Isl = None,
    osl: Osl = None,
    concurrency: Concurrency = None,
    rate: Rate = None,
    batch: Batch = None,
    ttft: Ttft = None,
    tpot: Tpot = None,
    tp: Tp = None,
    pp: Pp = None,
    ep: Ep = None,
    dp_attention: Groups = None,
    cp: Cp = None,
    dtype: Dtype = None,
    kv_dtype: KvDtype = None,
    preset: Preset = None,
    calibrate: Calibrate = None,
    draft_tokens: DraftTokens = None,
    acceptance: Acceptance = None,
    draft_model: DraftModel = None,
    chunk: Chunk = None,
    disaggregate: Disaggregate = None,
    link: Link = None,
    stages: Stages = None,
    price: Price = None,
    sell: Sell = None,
    utilisation: Utilisation = None,
    pue: Pue = None,
    carbon: Carbon = None,
    seed: Seed = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Plan serving: whether a model fits, latency, throughput, users, cost and energy; or the cheapest way to targets.

    Example: suanli infer llama-3.1-70b --gpu h100-sxm --gpus 8 --dtype fp8 --concurrency 64
    """
    run(
        lambda: api.infer(
            model, gpu=gpu, gpus=gpus, isl=isl, osl=osl, concurrency=concurrency, rate=rate, batch=batch, ttft=ttft,
            tpot=tpot, tp=tp, pp=pp, ep=ep, dp_attention=dp_attention, cp=cp, dtype=dtype, kv_dtype=kv_dtype,
            preset=preset,
            calibrate=calibrate, draft_tokens=draft_tokens, acceptance=acceptance, draft_model=draft_model, chunk=chunk,
            disaggregate=disaggregate, link=link, stages=stages,
            price=price, sell=sell, utilisation=utilisation, pue=pue, carbon=carbon, seed=seed,
        ),
        as_json=json,
        output=output,
        failed=never,
    )  # fmt: skip
