"""`suanli why`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from suanli import api
from suanli.cli.options import (
    Batch,
    Convention,
    Dtype,
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

Id = Annotated[
    Text,
    typer.Argument(
        help="A quantity (flops.model, mfu, gpu_hours …) or a formula. Without it, all are listed.",
        autocompletion=complete_quantity,
        show_default=False,
    ),
]
Phase = Annotated[Text, text_option("--phase", "forward, train, prefill or decode.", metavar="PHASE")]
KvLen = Annotated[Text, text_option("--kv-len", "Keys a decoded token sees.", metavar="N")]
Recompute = Annotated[Text, text_option("--recompute", "none, selective or full.", metavar="POLICY")]
StepTime = Annotated[Text, text_option("--step-time", "Time of one step.", metavar="TIME")]
GlobalBatch = Annotated[Text, text_option("--global-batch", "Sequences in one step.", metavar="N")]
Rate = Annotated[Text, text_option("--tokens-per-second", "Tokens a second, all GPUs together.", metavar="N")]
Tflops = Annotated[Text, text_option("--tflops-per-gpu", "TFLOP/s of one GPU.", metavar="N")]
Peak = Annotated[Text, text_option("--peak", "Dense peak of one GPU.", metavar="RATE")]
Tokens = Annotated[Text, text_option("--tokens", "Tokens to train on.", metavar="N")]
Mfu = Annotated[Text, text_option("--mfu", "Model FLOPs utilisation.", metavar="PART")]
Hfu = Annotated[Text, text_option("--hfu", "Hardware FLOPs utilisation.", metavar="PART")]
Goodput = Annotated[Text, text_option("--goodput", "Useful part of wall time.", metavar="PART")]
Deadline = Annotated[Text, text_option("--deadline", "Time to be done in.", metavar="TIME")]
Price = Annotated[Text, text_option("--price", "USD of a GPU-hour.", metavar="USD")]
Power = Annotated[Text, text_option("--power", "Power of one GPU.", metavar="W")]
Pue = Annotated[Text, text_option("--pue", "Facility over IT power.", metavar="N")]


def command(
    id: Id = None,
    model: MaybeModel = None,
    seq: Seq = None,
    batch: Batch = None,
    phase: Phase = None,
    kv_len: KvLen = None,
    image: Image = None,
    dtype: Dtype = None,
    recompute: Recompute = None,
    convention: Convention = None,
    params: Params = None,
    gpu: Gpu = None,
    gpus: Gpus = None,
    step_time: StepTime = None,
    global_batch: GlobalBatch = None,
    tokens_per_second: Rate = None,
    tflops_per_gpu: Tflops = None,
    peak: Peak = None,
    tokens: Tokens = None,
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
        "seq": seq, "batch": batch, "phase": phase, "kv_len": kv_len, "image": image, "dtype": dtype,
        "recompute": recompute, "convention": convention, "params": params, "gpu": gpu, "gpus": gpus,
        "step_time": step_time, "global_batch": global_batch, "tokens_per_second": tokens_per_second,
        "tflops_per_gpu": tflops_per_gpu, "peak": peak, "tokens": tokens, "mfu": mfu, "hfu": hfu, "goodput": goodput,
        "deadline": deadline, "price": price, "power": power, "pue": pue,
    }  # fmt: skip
    if id is None:
        run(api.reasons_known, as_json=json, output=output, failed=never)
        return
    run(lambda: api.why(id, model, **given), as_json=json, output=output, failed=never)
