"""`suanli count`."""

from __future__ import annotations

from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import (
    Batch,
    Convention,
    Dtype,
    Frames,
    Image,
    Json,
    Model,
    Output,
    Params,
    Seq,
    Text,
    complete_dtype,
    text_option,
)
from suanli.cli.run import run

By = Annotated[Text, text_option("--by", "Rows of the table: module (default), kind, layer or pass.", metavar="WHAT")]
Phase = Annotated[Text, text_option("--phase", "forward (default), train, prefill or decode.", metavar="PHASE")]
KvLen = Annotated[Text, text_option("--kv-len", "Keys a decoded token sees. Default: --seq.", metavar="N")]
KvDtype = Annotated[Text, text_option("--kv-dtype", "Dtype of the KV cache.", complete=complete_dtype)]
Optimizer = Annotated[Text, text_option("--optimizer", "adamw (default), sgd, muon, adamw-8bit …", metavar="NAME")]
Recompute = Annotated[Text, text_option("--recompute", "none (default), selective or full.", metavar="POLICY")]
Trainable = Annotated[Text, text_option("--trainable", "all (default), or lora:r=16,targets=q_proj+v_proj.")]
Input = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        help="What a module is run on: 1x3x224x224, 1x128:int64, name=SHAPE. For an ONNX file: name:SHAPE, axis=4.",
        metavar="SHAPE",
        show_default=False,
    ),
]
Trace = Annotated[bool, typer.Option("--trace", help="Run the model once on torch's meta device; no formula of ours.")]
TimeLimit = Annotated[
    Text,
    text_option("--time-limit", "How long a module or a factory may run: 30s, 5min. Default 300 s.", metavar="TIME"),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit code 1 where an operator had no formula.")]
Like = Annotated[
    Text, text_option("--like", "Count as another counter would: calflops, thop@cpu, megatron, 6nd …", metavar="TOOL")
]

Symbolic = Annotated[
    bool, typer.Option("--symbolic", help="Print every quantity as a polynomial in batch B, length S and keys K.")
]
Sweep = Annotated[
    Text, text_option("--sweep", "The same at many lengths: seq=1Ki:128Ki:1Ki, batch=1,8,64.", metavar="AXIS=…")
]


def command(
    model: Model,
    seq: Seq = None,
    batch: Batch = None,
    phase: Phase = None,
    kv_len: KvLen = None,
    image: Image = None,
    frames: Frames = None,
    dtype: Dtype = None,
    kv_dtype: KvDtype = None,
    optimizer: Optimizer = None,
    recompute: Recompute = None,
    convention: Convention = None,
    by: By = None,
    trainable: Trainable = None,
    params: Params = None,
    input: Input = None,
    trace: Trace = False,
    strict: Strict = False,
    symbolic: Symbolic = False,
    sweep: Sweep = None,
    time_limit: TimeLimit = None,
    like: Like = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Count parameters, FLOPs, MACs and bytes of a model.

    Example: suanli count llama-3.1-8b --seq 8192 --phase train
    Any torch module: suanli count torch:package.module:factory --input 1x3x224x224
    """
    run(
        lambda: api.count(
            model, seq=seq, batch=batch, phase=phase, kv_len=kv_len, image=image, frames=frames, dtype=dtype,
            kv_dtype=kv_dtype, optimizer=optimizer, recompute=recompute, convention=convention, by=by,
            trainable=trainable, params=params, input=input or None, trace=trace, strict=strict, symbolic=symbolic,
            sweep=sweep, time_limit=time_limit, like=like,
        ),
        as_json=json,
        output=output,
        failed=lambda result: not result.ok,
    )  # fmt: skip
