"""`suanli mfu`."""

from __future__ import annotations

from typing import Annotated

from suanli import api
from suanli.cli.options import (
    Convention,
    Dtype,
    Frames,
    Gpu,
    Gpus,
    Image,
    Json,
    Model,
    Output,
    Seq,
    Text,
    text_option,
)
from suanli.cli.run import run

StepTime = Annotated[Text, text_option("--step-time", "Time of one step: 6.72s, 450ms.", metavar="TIME")]
GlobalBatch = Annotated[Text, text_option("--global-batch", "Sequences in one step, all GPUs together.", metavar="N")]
TokensPerSecond = Annotated[
    Text, text_option("--tokens-per-second", "Tokens a second, all GPUs together.", metavar="N")
]
Tflops = Annotated[Text, text_option("--tflops-per-gpu", "Model TFLOP/s of one GPU.", metavar="N")]
Peak = Annotated[
    Text, text_option("--peak", "Dense peak of one GPU in place of the catalogue's: 989TFLOPS.", metavar="RATE")
]
Recompute = Annotated[
    Text, text_option("--recompute", "none (default), selective, selective-published or full.", metavar="POLICY")
]
MemoryUsed = Annotated[Text, text_option("--memory-used", "Peak memory of one GPU: 71.2GB, 66GiB.", metavar="SIZE")]


def command(
    model: Model,
    gpu: Gpu = None,
    gpus: Gpus = None,
    seq: Seq = None,
    step_time: StepTime = None,
    global_batch: GlobalBatch = None,
    tokens_per_second: TokensPerSecond = None,
    tflops_per_gpu: Tflops = None,
    dtype: Dtype = None,
    peak: Peak = None,
    recompute: Recompute = None,
    convention: Convention = None,
    memory_used: MemoryUsed = None,
    image: Image = None,
    frames: Frames = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Tell MFU and HFU of a measured run, under one convention and beside the common ones.

    Example: suanli mfu llama-3-8b --gpu h100-sxm --seq 8192 --tokens-per-second 8000
    """
    run(
        lambda: api.mfu(
            model, gpu=gpu, gpus=gpus, seq=seq, step_time=step_time, global_batch=global_batch,
            tokens_per_second=tokens_per_second, tflops_per_gpu=tflops_per_gpu, dtype=dtype, peak=peak,
            recompute=recompute, convention=convention, memory_used=memory_used, image=image, frames=frames,
        ),
        as_json=json,
        output=output,
        failed=lambda result: result.mfu is None,
    )  # fmt: skip
