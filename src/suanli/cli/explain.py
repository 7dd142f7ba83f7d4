"""`suanli explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Convention, Dtype, Gpu, Json, Output, Seq, Text, complete_model, text_option
from suanli.cli.progress import Bar
from suanli.cli.run import never, run
from suanli.errors import Fault, InputError, shown
from suanli.nouns.result import Result

Traces = Annotated[
    list[Path],
    typer.Argument(
        help="A trace of torch.profiler, Nsight Systems (.sqlite), JAX or rocprofv3; of many ranks a folder or files.",
        show_default=False, metavar="TRACE…",
    ),
]  # fmt: skip
Model = Annotated[
    Text,
    text_option("--model", "The model that ran: its FLOPs against the kernels'.", complete=complete_model,
                metavar="MODEL"),
]  # fmt: skip
Batch = Annotated[Text, text_option("--batch", "With --model: sequences of one step. Default 1.", metavar="N")]
Gpus = Annotated[
    Text, text_option("--gpus", "With --model: devices that share that step. Default: those in the file.", metavar="N")
]
Against = Annotated[
    Path | None,
    typer.Option("--against", help="What `suanli layout --json` printed: the step less its plan.", show_default=False,
                 metavar="FILE"),
]  # fmt: skip
Compare = Annotated[
    Path | None,
    typer.Option("--compare", help="Another trace, to be set beside.", show_default=False, metavar="TRACE"),
]
Steps = Annotated[Text, text_option("--steps", "Steps by their place, from 1: 2..4 or 1,3.", metavar="PLACES")]
Devices = Annotated[Text, text_option("--device", "Devices by their number in the file: 0 or 0,1.", metavar="NUMBERS")]
Engine = Annotated[
    Text, text_option("--engine", "Of many ranks: local (default), ray, or ray://HOST:PORT.", metavar="NAME")
]
Workers = Annotated[Text, text_option("--workers", "Of many ranks: processes of the engine local.", metavar="N")]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", help="Of many ranks: a folder that keeps their summaries.", show_default=False,
                 metavar="FOLDER"),
]  # fmt: skip
Kernels = Annotated[
    Path | None,
    typer.Option("--kernels-csv", help="Write the products, attention and collectives measured, to fit curves to.",
                 show_default=False, metavar="FILE"),
]  # fmt: skip


def command(
    traces: Traces,
    model: Model = None,
    seq: Seq = None,
    batch: Batch = None,
    gpus: Gpus = None,
    gpu: Gpu = None,
    dtype: Dtype = None,
    convention: Convention = None,
    against: Against = None,
    compare: Compare = None,
    steps: Steps = None,
    device: Devices = None,
    engine: Engine = None,
    workers: Workers = None,
    cache: Cache = None,
    kernels_csv: Kernels = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Tell where the time of a trace went: idle, communication, copies, kernels, recompute, useful FLOPs.

    Example: suanli explain rank0.pt.trace.json.gz --gpu h100-sxm
    """

    def asked() -> Result:
        if kernels_csv is not None:
            _check_kernels(kernels_csv, output)  # before the work, not after it
        with Bar("trace") as bar:  # gone before the report is printed
            found = api.explain(
                *traces, model=model, seq=seq, batch=batch, gpus=gpus, gpu=gpu, dtype=dtype, convention=convention,
                against=against, compare=compare, steps=steps, device=device, engine=engine, workers=workers,
                cache=cache, progress=bar,
            )  # fmt: skip
        return _written(found, kernels_csv)

    run(asked, as_json=json, output=output, failed=never)


def _check_kernels(kernels: Path, output: Path | None) -> None:
    """Refuse a file that could not hold the kernels, or is to hold the report too."""
    from suanli.report.kernel_tables import check_kernels_file  # noqa: PLC0415  loaded only where it is asked for

    check_kernels_file(kernels)
    if output is not None and output.absolute() == kernels.absolute():
        raise InputError(Fault(code="named_twice", message="the report and the kernels need a file each",
                               where="--kernels-csv", got=shown(kernels.name), hint="Name another file."))  # fmt: skip


def _written(result: Result, kernels: Path | None) -> Result:
    """The result, its kernels written where a file was named for them."""
    if kernels is not None:
        from suanli.report.kernel_tables import write_kernels  # noqa: PLC0415  loaded only where it is asked for

        write_kernels(result, kernels)
    return result
