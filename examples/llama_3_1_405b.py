"""The account of a real run: Llama-3.1-405B, 15.6 T tokens on 16,384 H100, ours beside what was published.

Run it with `make run`. Every figure comes from a verb (`count`, `mfu`, `train`) or a registered formula.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from rich.console import Console

import suanli
from suanli.formulas.articles import ratio
from suanli.nouns.result import Result
from suanli.report import Document, Lines, Table, document_of
from suanli.report.document import Block
from suanli.report.text import print_document
from suanli.units import format_count, format_percent

MODEL, GPU, GPUS = "llama-3.1-405b", "h100-sxm", 16_384
TOKENS, SEQ, GLOBAL_BATCH = "15.6T", 8192, 2048

# What was printed, and where.
PAPER, CARD = "arXiv:2407.21783", "model card of Llama 3.1"
PARAMS, FLOPS, TFLOPS_PER_GPU, MFU, GPU_HOURS, EFFECTIVE = 405e9, 3.8e25, 400, 0.41, 30.84e6, 0.90

RULE = "full"  # a convention the published hours fit, as the table of `candidates` shows
FIT = (
    "Which convention the 400 is counted in is not printed. More than 90 % of the time was effective, which the hours "
    "paid agree with under full and palm, and not under causal or 6n-all: full is taken from here on."
)
CANDIDATES = ("causal", "full", "palm", "6n-all")


def planned(convention: str, goodput: float | None = None) -> Result:
    """The whole run at the printed rate of a GPU."""
    return suanli.train(
        MODEL, tokens=TOKENS, gpu=GPU, gpus=GPUS, seq=SEQ, tflops_per_gpu=TFLOPS_PER_GPU, convention=convention,
        goodput=goodput,
    )  # fmt: skip


def blocks(result: Result, **titles: str) -> list[Block]:
    """Blocks of a verb's report under titles of our own; a keyword is the first word of the block's title."""
    found = {block.title.split(" ")[0]: block for block in document_of(result).blocks}
    return [replace(found[word], title=title) for word, title in titles.items()]


def candidates() -> Table:
    """What each convention makes of the printed rate, and of the GPU-hours paid."""
    rows = []
    for name in CANDIDATES:
        plan = planned(name)
        useful = ratio(plan.gpu_hours, GPU_HOURS)
        rows.append((name, f"{plan.tokens_per_second_per_gpu:,.1f}", f"{plan.gpu_hours:,.0f}", format_percent(useful)))
    columns = ("convention", "tokens/s a GPU", "productive GPU-hours", "of the 30.84 M paid")
    return Table(f"{TFLOPS_PER_GPU} TFLOP/s a GPU, and how much of the hours paid it explains", columns, tuple(rows))


def beside(books: Result, run: Result, plan: Result) -> Table:
    """Ours beside published."""
    ideal, counted = plan.ideal["6n"], plan.flops
    rows = (
        _row("parameters", books.params.total, PARAMS, f"{PAPER} Table 3", format_count),
        _row("FLOPs of the run, 6N·tokens", ideal, FLOPS, f"{PAPER} §1", "{:.4g}".format),
        _row(f"FLOPs of the run, {RULE}", counted, FLOPS, f"{PAPER} §1", "{:.4g}".format),
        _row("MFU at 400 TFLOP/s", run.mfu, MFU, f"{PAPER} Table 4, rounded", format_percent),
        _row("GPU-hours at goodput 90 %", plan.gpu_hours_paid, GPU_HOURS, CARD, format_count),
        _bound("goodput that gives them", ratio(plan.gpu_hours, GPU_HOURS), EFFECTIVE, f"{PAPER} §3.3.4"),
    )
    return Table("Ours beside published", ("figure", "ours", "published", "off", "published in"), rows,
                 (False, True, True, True, False))  # fmt: skip


def _row(what: str, ours: float, published: float, source: str, form: Callable[[float], str]) -> tuple[str, ...]:
    return what, form(ours), form(published), f"{(ratio(ours, published) - 1) * 100:+.2f} %", source


def _bound(what: str, ours: float, least: float, source: str) -> tuple[str, ...]:
    """A figure of which only a lower bound is printed."""
    return what, format_percent(ours), f"> {least:.0%}", "agrees" if ours > least else "below", source


def report() -> Document:
    """The whole account."""
    books = suanli.count(MODEL, seq=SEQ, batch=GLOBAL_BATCH, phase="train")
    run = suanli.mfu(MODEL, gpu=GPU, gpus=GPUS, seq=SEQ, tflops_per_gpu=TFLOPS_PER_GPU, convention=RULE)
    plan = planned(RULE, EFFECTIVE)
    step = f"One step: {GLOBAL_BATCH:,} sequences of {SEQ:,} tokens, convention {books.convention} [FLOPs]"
    return Document(
        f"Llama-3.1-405B: {TOKENS} tokens on {GPUS:,} H100 SXM",
        (
            *blocks(books, Parameters="The model", FLOPs=step),
            candidates(),
            Lines("", (FIT,)),
            *blocks(run, The=f"The same rate under each convention ({TFLOPS_PER_GPU} TFLOP/s under {RULE})"),
            *blocks(plan, Time=f"The whole run at that rate, {EFFECTIVE:.0%} of wall time useful", Bill="Its bill"),
            beside(books, run, plan),
            *blocks(plan, Notes="Assumed", Sources="Sources"),
            Lines("Next", _hints()),
        ),
    )


def _hints() -> tuple[str, ...]:
    return (
        f"suanli why flops.model {MODEL} --seq {SEQ} --phase train",
        f"suanli why mfu {MODEL} --gpu {GPU} --gpus {GPUS} --seq {SEQ} --tflops-per-gpu {TFLOPS_PER_GPU}",
        f"suanli why gpu_hours {MODEL} --tokens {TOKENS} --gpu {GPU} --gpus {GPUS} --mfu 41%",
        "suanli verify --only runs",
    )


def main() -> None:
    """Print it, 100 columns wide where there is no terminal."""
    print_document(report(), Console(width=None if sys.stdout.isatty() else 100, highlight=False))


if __name__ == "__main__":
    main()
