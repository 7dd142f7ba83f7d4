"""`suanli why`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from suanli import api
from suanli.cli.count import KvDtype, KvLen, Optimizer, Phase, Recompute, Trainable
from suanli.cli.mfu import GlobalBatch, Peak, StepTime, TokensPerSecond
from suanli.cli.options import (
    Batch,
    Convention,
    Dtype,
    Frames,
    Gpu,
    Gpus,
    Image,
    Json,
    MaybeModel,
    Output,
    Params,
    Seq,
    Text,
    complete_quantity,
    text_option,
)
from suanli.cli.run import never, run
from suanli.cli.train import Deadline, Goodput, Hfu, Mfu, Power, Price, Pue, Tflops

Id = Annotated[
    Text,
    typer.Argument(
        help="A quantity (flops.model, mfu, gpu_hours …) or a formula. Without it, all are listed.",
        autocompletion=complete_quantity,
        show_default=False,
    ),
]

MaybeTokens = Annotated[Text, text_option("--tokens", "Tokens to train on: 15.6T.", metavar="N")]


def command(
    id: Id = None,
    model: MaybeModel = None,
    seq: Seq = None,
    batch: Batch = None,
    phase: Phase = None,
    kv_len: KvLen = None,
    image: Image = None,
    frames: Frames = None,
    dtype: Dtype = None,
    kv_dtype: KvDtype = None,
    optimizer: Optimizer = None,
    trainable: Trainable = None,
    recompute: Recompute = None,
    convention: Convention = None,
    params: Params = None,
    gpu: Gpu = None,
    gpus: Gpus = None,
    step_time: StepTime = None,
    global_batch: GlobalBatch = None,
    tokens_per_second: TokensPerSecond = None,
    tflops_per_gpu: Tflops = None,
    peak: Peak = None,
    tokens: MaybeTokens = None,
    mfu: Mfu = None,
    hfu: Hfu = None,
    goodput: Goodput = None,
    deadline: Deadline = None,
    price: Price = None,
    power: Power = None,
    pue: Pue = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Explain a number: its formula, legend and source, and the numbers put in for a model.

    The options are those of the quantity's verb. Example: suanli why flops.model llama-3-8b --seq 8192 --phase train
    """
    given: dict[str, Any] = {
        "seq": seq, "batch": batch, "phase": phase, "kv_len": kv_len, "image": image, "frames": frames, "dtype": dtype,
        "kv_dtype": kv_dtype, "optimizer": optimizer, "trainable": trainable,
        "recompute": recompute, "convention": convention, "params": params, "gpu": gpu, "gpus": gpus,
        "step_time": step_time, "global_batch": global_batch, "tokens_per_second": tokens_per_second,
        "tflops_per_gpu": tflops_per_gpu, "peak": peak, "tokens": tokens, "mfu": mfu, "hfu": hfu, "goodput": goodput,
        "deadline": deadline, "price": price, "power": power, "pue": pue,
    }  # fmt: skip
    run(lambda: api.why(id, model, **given), as_json=json, output=output, failed=never)
