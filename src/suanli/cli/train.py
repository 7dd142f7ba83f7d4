"""`suanli train`."""

from __future__ import annotations

from typing import Annotated

from suanli import api
from suanli.cli.goodput import Failures
from suanli.cli.options import Convention, Dtype, Gpu, Gpus, Json, MaybeModel, Output, Seq, Text, text_option
from suanli.cli.run import never, run

Tokens = Annotated[str, text_option("--tokens", "Tokens to train on: 15.6T.", metavar="N")]
Params = Annotated[
    Text, text_option("--params", "Plan 6·N·tokens (8·N with full recompute) in place of the exact count.", metavar="N")
]
Deadline = Annotated[Text, text_option("--deadline", "Time to be done in, in place of --gpus: 54d.", metavar="TIME")]
GlobalBatch = Annotated[Text, text_option("--global-batch", "Sequences in one step.", metavar="N")]
Mfu = Annotated[
    Text, text_option("--mfu", "Model FLOPs utilisation: 0.41 or 41%, or a 90 % range 38%..44%.", metavar="PART")
]
Hfu = Annotated[Text, text_option("--hfu", "Hardware FLOPs utilisation.", metavar="PART")]
Tflops = Annotated[
    Text, text_option("--tflops-per-gpu", "Achieved TFLOP/s of one GPU, recompute included.", metavar="N")
]
Recompute = Annotated[Text, text_option("--recompute", "none (default), selective or full.", metavar="POLICY")]
GpuHours = Annotated[
    Text, text_option("--gpu-hours", "GPU-hours paid, in place of a utilisation, which they tell: 30.84M.", metavar="N")
]
Goodput = Annotated[
    Text,
    text_option(
        "--goodput", "Useful part of wall time, or a JSON file of `suanli goodput`. Default 1.", metavar="PART"
    ),
]
Restart = Annotated[
    Text, text_option("--restart", "Time to restart after an interrupt, with --failures.", metavar="TIME")
]
Save = Annotated[Text, text_option("--checkpoint-save", "Time to save a checkpoint, with --failures.", metavar="TIME")]
Price = Annotated[Text, text_option("--price", "USD of a GPU-hour in place of the catalogue's.", metavar="USD")]
Power = Annotated[Text, text_option("--power", "Power of one GPU: 700W. Default: its board power.", metavar="W")]
Pue = Annotated[Text, text_option("--pue", "Facility over IT power. Default 1.", metavar="N")]
Carbon = Annotated[Text, text_option("--carbon", "Carbon intensity: 0.4kg/kWh.", metavar="N")]


def command(
    tokens: Tokens,
    model: MaybeModel = None,
    gpu: Gpu = None,
    gpus: Gpus = None,
    deadline: Deadline = None,
    params: Params = None,
    seq: Seq = None,
    global_batch: GlobalBatch = None,
    mfu: Mfu = None,
    hfu: Hfu = None,
    tflops_per_gpu: Tflops = None,
    recompute: Recompute = None,
    convention: Convention = None,
    dtype: Dtype = None,
    gpu_hours: GpuHours = None,
    goodput: Goodput = None,
    failures: Failures = None,
    restart: Restart = None,
    checkpoint_save: Save = None,
    price: Price = None,
    power: Power = None,
    pue: Pue = None,
    carbon: Carbon = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Plan a training run: FLOPs, GPU-hours, days or GPUs, cost, energy, CO₂.

    Example: suanli train llama-3.1-405b --tokens 15.6T --gpu h100-sxm --gpus 16384 --goodput 0.85
    """
    run(
        lambda: api.train(
            model, tokens=tokens, gpu=gpu, gpus=gpus, deadline=deadline, params=params, seq=seq,
            global_batch=global_batch, mfu=mfu, hfu=hfu, tflops_per_gpu=tflops_per_gpu, recompute=recompute,
            convention=convention, dtype=dtype, gpu_hours=gpu_hours, goodput=goodput, failures=failures,
            restart=restart, checkpoint_save=checkpoint_save, price=price, power=power, pue=pue, carbon=carbon,
        ),
        as_json=json,
        output=output,
        failed=never,
    )  # fmt: skip
