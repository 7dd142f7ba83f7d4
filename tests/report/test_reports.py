"""Every page of every verb, word by word: golden files, written anew by `pytest --update-golden`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from made_trace import EXAMPLE

import suanli
from suanli.nouns.plans import Counts, FrontPoint, Lever, PlannedLayout
from suanli.nouns.result import Result
from suanli.nouns.step import Entry
from suanli.plan.difference import difference
from suanli.plan.launch import Launch
from suanli.plan.layout import LayoutPlan
from suanli.report import document_of
from suanli.report.document import Document, Facts, Lines, Table
from suanli.report.files import WRITERS, as_csv, as_markdown
from suanli.report.pages import PAGES
from suanli.report.text import document_text
from suanli.units import GIBI


def layout_plan() -> Result:
    """A plan with made-up figures: fitted profiles change, the page does not."""
    account = (Entry("matmul", 6.0), Entry("bubble", 1.5), Entry("optimizer", 0.5), Entry("launch", 1e-6))
    axes: dict[str, Any] = {
        "tp": 8, "pp": 4, "dp": 2, "cp": 1, "ep": 1, "etp": 1, "vpp": 1, "micro_batch": 1, "zero": 1,
        "recompute": "none", "sp": True, "schedule": "1f1b", "gpus": 64,
    }  # fmt: skip
    first = PlannedLayout(
        **axes, step_time_s=8.000001, step_time_interval_s=(7.0, 9.0), played_step_time_s=8.2, mfu=0.45,
        tokens_per_second_per_gpu=512.25, account=account, usd_per_step=0.43, fullest_stage=0,
        largest_term="activations",
        memory_bytes={"weights": 10 * GIBI, "activations": 50 * GIBI, "logits": 0, "total": 60 * GIBI},
        margin_bytes=20 * GIBI,
    )  # fmt: skip
    second = replace(
        first, recompute="full", step_time_s=9.5, account=(*account[:3], Entry("recompute", 1.5)),
        played_step_time_s=None,
        memory_bytes={"weights": 10 * GIBI, "activations": 5 * GIBI, "logits": 0, "total": 15 * GIBI},
        margin_bytes=65 * GIBI, step_time_interval_s=(8.0, 11.0), usd_per_step=None,
    )  # fmt: skip
    plan = LayoutPlan(
        model="gpt-9", stack="megatron-core", fabric="hgx-h100, infiniband", layouts=(first, second), evaluated=1200,
        search_s=0.25, refine_s=0.05,
        counts=Counts(enumerated=34_000, by_rule={"degrees divide the GPUs": 32_800}, legal=1200, fit=900, timed=80),
        front=(
            FrontPoint(layout=first.short, gpus=64, step_time_s=8.0, memory_bytes=60 * GIBI, usd_per_step=0.43),
            FrontPoint(layout=second.short, gpus=64, step_time_s=9.5, memory_bytes=15 * GIBI, usd_per_step=None),
        ),
        memory_limit_bytes=80 * GIBI,
        advice=(
            Lever(lever="interleave", change="vpp 1 → 2, schedule 1f1b → interleaved", layout="tp8 pp4 vpp2",
                  step_time_s=7.2, gain_fraction=0.1, memory_bytes=70 * GIBI, fits=True),
            Lever(lever="larger micro-batch", change="micro_batch 1 → 2", layout="tp8 pp4 mb2", step_time_s=8.4,
                  gain_fraction=-0.05, memory_bytes=110 * GIBI, fits=False),
        ),
        why=difference(first, second),
        emit=Launch(tool="megatron", version="Megatron-LM, core 0.20", text="--bf16 \\\n--tensor-model-parallel-size 8",
                    notes=("data parallelism is what is left of 64 GPUs: 2",)),
    )  # fmt: skip
    return Result(kind="layout", inputs={}, result=plan, convention="causal", notes=("memory limit 80 GB a GPU",),
                  sources=("peak: catalogue",))  # fmt: skip


PAGES_SHOWN: dict[str, Callable[[], Any]] = {
    "count_train": lambda: suanli.count(
        "gpt3-175b-megatron", seq=2048, batch=1, phase="train", convention="megatron-full"
    ),
    "count_mixture": lambda: suanli.count("mixtral-8x7b", seq=4096, phase="train", recompute="full", by="kind"),
    "count_decode": lambda: suanli.count("llama-3.1-8b", phase="decode", kv_len=8192, batch=32),
    "count_resnet": lambda: suanli.count("resnet-50", by="layer"),
    "count_like": lambda: suanli.count("mixtral-8x7b", seq=2048, like="megatron"),
    "compare_formulas": lambda: suanli.compare("bert-base", seq=128, tools="megatron,electra,hf-trainer,palm,6nd"),
    "mfu": lambda: suanli.mfu("llama-3-8b", gpu="h100-sxm", seq=8192, tokens_per_second=8000, memory_used="71GB"),
    "mfu_above_peak": lambda: suanli.mfu("llama-3-8b", gpu="a100-80gb-sxm", seq=8192, tokens_per_second=16000),
    "train": lambda: suanli.train(
        "gpt3-175b", params="175B", tokens="300B", gpu="a100-80gb-sxm", gpus=1000, mfu=0.462, price=2, carbon=0.4
    ),
    "train_deadline": lambda: suanli.train(
        "llama-3.1-70b", tokens="15T", gpu="h100-sxm", deadline="60d", mfu=0.4, goodput=0.9, pue=1.2, seq=8192
    ),
    "train_rule": lambda: suanli.train(
        params="175B", tokens="300B", gpus=1024, tflops_per_gpu=140, recompute="full"
    ),
    "scale": lambda: suanli.scale(
        points="3072:23.66,6144:12.21,8192:9.23,12288:6.34", metric="time", global_batch=6144, project="16384,32768"
    ),
    "goodput": lambda: suanli.goodput(
        gpus=16384, failures="llama-3-405b", restart="10min", checkpoint_save="60s", days=46, mfu="41.5%"
    ),
    "goodput_async": lambda: suanli.goodput(
        gpus=512, mtbf_node="6400h", detect="2min", restart="8min", checkpoint_save="40s", checkpoint_mode="async",
        checkpoint_stall="3s", spares=2, repair="3d", stragglers="1%", maintenance="4h/14d",
    ),
    "explain": lambda: suanli.explain(EXAMPLE, gpu="h200-sxm"),
    "gpus": lambda: suanli.gpus(filter="nvidia hopper"),
    "gpu": lambda: suanli.gpus("mi250x"),
    "models": lambda: suanli.models(filter="gpt2", sort="params"),
    "model": lambda: suanli.models("mixtral-8x7b"),
    "why_flops": lambda: suanli.why("flops.forward", "llama-3-8b", seq=8192),
    "why_mfu": lambda: suanli.why("mfu", "llama-3-8b", gpu="h100-sxm", seq=8192, tokens_per_second=8000),
    "why_formula": lambda: suanli.why("gpt_model_flops"),
    "layout": layout_plan,
    "verify_articles": lambda: suanli.verify("articles"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES_SHOWN)
def test_page(name: str, golden: Any) -> None:
    golden(f"{name}.txt", document_text(document_of(PAGES_SHOWN[name]())))


def test_every_kind_of_result_has_a_page() -> None:
    assert {call().kind for call in PAGES_SHOWN.values()} == set(PAGES)


def test_a_narrow_terminal_loses_no_number() -> None:
    """At 80 columns every figure of the page is still there, whole."""
    found = suanli.count("gpt3-175b-megatron", seq=2048, phase="train")
    text = document_text(document_of(found), width=80)
    for number in (found.flops.model, found.params.total, found.bytes.optimizer):
        assert f"{number:,}" in text


def test_markup_in_names_is_printed_as_it_is() -> None:
    document = Document("[bold]x[/bold]", (Facts("t", (("[red]a", "[b]", "[/c]"),)), Lines("", ("[link=x]y",))))
    text = document_text(document)
    assert "[red]a" in text and "[/c]" in text and "[link=x]y" in text and "[bold]x[/bold]" in text


def test_markdown_escapes_and_aligns() -> None:
    result = suanli.models("gpt2")
    odd = replace(result, notes=("a | b\nc",))
    text = as_markdown(odd)
    assert "- a \\| b c" in text
    assert "| ---: |" in text or "---:" in text


def test_csv_is_a_table() -> None:
    lines = as_csv(suanli.count("gpt2")).splitlines()
    assert "module,parameters,hardware FLOPs,,bytes moved" in lines
    assert any(line.startswith('transformer.h.0-11.mlp,"56,669,184"') for line in lines)


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("name", ["count_train", "mfu", "train", "gpus", "models", "why_flops", "verify_articles"])
def test_every_writer_writes_every_page(suffix: str, name: str) -> None:
    assert WRITERS[suffix](PAGES_SHOWN[name]())


def test_empty_blocks_are_left_out() -> None:
    text = document_text(Document("h", (Table("nothing here", ("a",), ()), Lines("none", ()))))
    assert text == "h\n"


# least entry of an account of 8 s → whether `others` is a row, beside 6 + 1.5 + 0.5
@pytest.mark.parametrize(("least", "shown"), [(1e-6, True), (9e-9, True), (7e-9, False), (3e-15, False), (0.0, False)])
def test_rounding_is_no_row_of_the_account(least: float, shown: bool) -> None:
    made = layout_plan()
    first = made.result.layouts[0]
    account = (*first.account[:3], Entry("launch", least))
    best = replace(first, account=account, step_time_s=8 + least)
    text = document_text(document_of(replace(made, result=replace(made.result, layouts=(best,)))))
    assert ("  others " in text) is shown


def test_one_gpu_is_not_several() -> None:
    made = layout_plan()
    best = replace(made.result.layouts[0], tp=1, pp=1, dp=1, gpus=1)
    text = document_text(document_of(replace(made, result=replace(made.result, layouts=(best,)))))
    assert text.startswith("gpt-9 on 1 GPU: ")
