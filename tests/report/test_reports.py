"""Every page of every verb, word by word: golden files, written anew by `pytest --update-golden`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_trace import EXAMPLE

import suanli
from suanli.nouns.calibrated import (
    Calibrated,
    NumberFit,
    Origin,
    RunFit,
    ShippedFit,
    ShippedFits,
    ShippedNumber,
)
from suanli.nouns.plans import Counts, FrontPoint, Lever, PlannedLayout
from suanli.nouns.profile import StackProfile
from suanli.nouns.repeated import Changes, Moved, Reworded, Side
from suanli.nouns.result import Result
from suanli.nouns.scaling import Figure, PlannedSize, Planner, Series, Size
from suanli.nouns.step import Entry
from suanli.nouns.summarised import Summarised, SummaryFile
from suanli.plan.difference import difference
from suanli.plan.launch import Launch
from suanli.plan.layout import LayoutPlan
from suanli.plan.scale import analyse
from suanli.report import document_of
from suanli.report.document import Document, Facts, Lines, Table
from suanli.report.files import WRITERS, as_markdown
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
        **axes, step_time_s=8.000001, step_time_interval_s=(7.0, 9.0), closed_form_step_time_s=7.9, played=True,
        mfu=0.45,
        tokens_per_second_per_gpu=512.25, account=account, usd_per_step=0.43, fullest_stage=0,
        largest_term="activations",
        memory_bytes={"weights": 10 * GIBI, "activations": 50 * GIBI, "logits": 0, "total": 60 * GIBI},
        margin_bytes=20 * GIBI,
    )  # fmt: skip
    second = replace(
        first, recompute="full", step_time_s=9.5, account=(*account[:3], Entry("recompute", 1.5)),
        closed_form_step_time_s=9.5, played=False,
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


def scale_planned() -> Result:
    """A series that the planner explains but for a factor; its steps are made up: fitted profiles change."""
    rows = {64: 8.0, 128: 4.2, 256: 2.3, 512: 1.4}
    sizes = tuple(Size(gpus=gpus, figures={"step_time_s": Figure(value=1.1 * seconds)}, global_batch=512)
                  for gpus, seconds in rows.items())  # fmt: skip
    plan = Planner(sizes=tuple(
        PlannedSize(gpus=gpus, global_batch=512, layout=f"tp8 dp{gpus // 8} mb1 zero1 recompute none sp",
                    step_time_s=seconds, tokens_per_second_per_gpu=1.0, mfu=0.4)
        for gpus, seconds in (rows | {1024: 1.0}).items()
    ))  # fmt: skip
    found = analyse(Series(name="made up", sizes=sizes), by=None, project=(1024,), slope=-0.016, planner=plan)
    return Result(kind="scale", inputs={}, result=found)


def calibrated() -> Result:
    """Runs and numbers made up, one run that does not fit."""
    matmul = NumberFit(name="matmul", unit="", meaning="products", before=1.1, after=1.21, spread_before=0.08,
                       spread_after=0.02, told=True)  # fmt: skip
    launch = NumberFit(name="launch_s", unit="s", meaning="host time of a kernel launch", before=6e-6, after=9e-6,
                       spread_before=0.7, spread_after=0.3, told=True)  # fmt: skip
    untold = replace(matmul, name="gather", meaning="ZeRO 3", after=1.1, spread_after=0.08, told=False)
    run = RunFit(id="a", layout="tp2 dp4 mb1 zero1 recompute none sp", gpus=8, global_batch=64, step_s=6.8,
                 before_s=6.3, held_out_s=6.75, error_before_fraction=-0.0735, error_held_out_fraction=-0.0074,
                 memory_bytes=60 * GIBI, fits=True)  # fmt: skip
    runs = (run, replace(run, id="b", memory_bytes=90 * GIBI, fits=False), replace(run, id="a long name", fits=None))
    found = Calibrated(
        name="mine", base="nemo", device="h100-sxm bf16", numbers=(matmul, launch, untold), runs=runs,
        half_width_before=0.12, half_width_after=0.06, narrower_fraction=0.5, mean_error_before_fraction=0.0735,
        mean_error_held_out_fraction=0.0074, extrapolates=("more than 8 GPUs",), warnings=("b does not fit",),
        profile=StackProfile(name="mine", base="nemo"),
    )  # fmt: skip
    return Result(kind="calibrate", inputs={}, result=found, notes=("assumed: cp 1",), sources=("runs: runs.csv",),
                  asked={"origin": ORIGIN})  # fmt: skip


def shipped() -> Result:
    """A profile fitted again, one number of which ships otherwise."""
    rows = (
        ShippedNumber(name="matmul", believed=1.1, shipped=1.1577, fitted=1.15771, difference_fraction=8.6e-6),
        ShippedNumber(name="h100-sxm bf16: matmul", believed=1.0, shipped=None, fitted=1.02, difference_fraction=None),
        ShippedNumber(name="memory", believed=1.2, shipped=1.25, fitted=1.2, difference_fraction=-0.04),
    )  # fmt: skip
    stack = ShippedFit(
        stack="llama3", rows=5, own_rows=3, sources=("2407.21783 T4",), numbers=rows, kept=("experts", "gather"),
        half_width_shipped=0.2351, half_width_fitted=0.24, largest_difference_fraction=0.04,
        profile=StackProfile(name="llama3"),
    )  # fmt: skip
    found = ShippedFits(stacks=(stack,), largest_difference_fraction=0.04)
    return Result(kind="calibrate", inputs={}, result=found, sources=("llama3: 2407.21783 T4",),
                  asked={"origin": ORIGIN})  # fmt: skip


ORIGIN = Origin(command="suanli calibrate runs.csv", date="2026-11-30", data="runs.csv", data_sha256="0" * 64)


def drawn_to_own_points() -> Any:
    """An answer drawn to two points of one's own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.csv"
        path.write_text(
            "model,hw,n_gpus,tp,precision,framework,isl,osl,concurrency,ttft_ms,tpot_ms,source\n"
            "meta-llama/Llama-3.1-70B,h100_sxm,8,8,fp8,vllm 0.9,1024,1024,16,100,13.0,mine\n"
            "meta-llama/Llama-3.1-70B,h100_sxm,8,8,fp8,vllm 0.9,1024,1024,64,200,18.0,mine\n"
        )
        return suanli.infer("llama-3.1-70b", gpu="h100-sxm", gpus=8, dtype="fp8", concurrency=64, price=3,
                            calibrate=path)  # fmt: skip


def summaries() -> Result:
    """Made-up sizes: they differ with the version of pyarrow, the page does not."""
    made = SummaryFile(path="job/rank7.json.gz", output="out/4b2c.parquet", rank=7, devices=1, steps=5, work=7747,
                       trace_bytes=1_384_658, summary_bytes=35_143)  # fmt: skip
    failed = SummaryFile(path="job/rank9.json.gz", reasons={"output": "no trace of a profiler, got text"})
    files = (made, replace(made, path="x.sqlite", rank=None, reused=True), failed)
    return Result(kind="summarise", inputs={}, result=Summarised(files=files, ignored=("job/log.txt",)))


def changed(kind: str) -> Result:
    """Two reports made up, of two versions."""
    first = Side(file="plans/june.html", kind="train", version="0.9.0", convention="causal")
    second = Side(file="" if kind == "rerun" else "july.json", kind="train", version="1.0.0", convention="palm")
    found = Changes(
        first=first, second=second, equal=False, compared=57,
        inputs=(Reworded(key="gpus", old=1024, new=2048), Reworded(key="pue", old=None, new=1.2)) * (kind == "diff"),
        numbers=(
            Moved(key="days", old=80.0, new=78.4, change=-1.6, fraction=-0.02),
            Moved(key="cost_usd", old=12_000_000, new=11_760_000, change=-240_000, fraction=-0.02),
            Moved(key="energy_kwh", old=0, new=1500, change=1500, fraction=None),
        ),
        texts=(Reworded(key="reasons.mfu", old=None, new="predicted"),), gone=("ideal.8n",), added=("spreads[0]",),
    )  # fmt: skip
    return Result(kind=kind, inputs={}, result=found, convention="causal", ok=kind == "diff")


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
    "train_sure": lambda: suanli.train(
        "llama-3.1-405b", tokens="15.6T", gpu="h100-sxm", gpus=16384, seq=8192, failures="llama-3-405b",
        restart="10min", checkpoint_save="60s", mfu="38%..43%",
    ),
    "train_hours": lambda: suanli.train(
        "llama-3.1-405b", tokens="15.6T", gpu="h100-sxm", gpus=16384, seq=8192, gpu_hours="30.84M"
    ),
    "train_rule": lambda: suanli.train(
        params="175B", tokens="300B", gpus=1024, tflops_per_gpu=140, recompute="full"
    ),
    "scale": lambda: suanli.scale(
        points="3072:23.66,6144:12.21,8192:9.23,12288:6.34", metric="time", global_batch=6144, project="16384,32768"
    ),
    "scale_planned": scale_planned,
    "goodput": lambda: suanli.goodput(
        gpus=16384, failures="llama-3-405b", restart="10min", checkpoint_save="60s", days=46, mfu="41.5%"
    ),
    "infer": lambda: suanli.infer(
        "llama-3.1-70b", gpu="h100-sxm", gpus=8, dtype="fp8", rate=3, isl=4096, chunk=1024, price=2.5, sell=4, pue=1.2,
        carbon="0.4kg/kWh", stages="pre=5ms:4,post=2ms:4",
    ),
    "infer_drafts": lambda: suanli.infer(
        "deepseek-v3", gpu="h200", gpus=8, dtype="fp8-block", concurrency=16, draft_tokens=1, acceptance=0.85,
        preset="sglang", price=3.5,
    ),
    "infer_pools": lambda: suanli.infer(
        "llama-3.1-70b", gpu="h100-sxm", dtype="fp8", tp=4, disaggregate="4:8", concurrency=64, price=2.5
    ),
    "infer_search": lambda: suanli.infer(
        "llama-3.1-70b", gpu="h100-sxm,h200,b200", dtype="fp8", rate=20, tpot="30ms", ttft="1s", price=3
    ),
    "infer_calibrated": lambda: replace(drawn_to_own_points(), notes=()),
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
    "calibrate": calibrated,
    "calibrate_shipped": shipped,
    "summarise": summaries,
    "verify_articles": lambda: suanli.verify("articles"),
    "learn": suanli.learn,
    "rerun": lambda: changed("rerun"),
    "diff": lambda: changed("diff"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES_SHOWN)
def test_page(name: str, golden: Any) -> None:
    golden(f"{name}.txt", document_text(document_of(PAGES_SHOWN[name]())))


@pytest.mark.parametrize("name", ["infer", "infer_search"])
def test_a_page_in_a_narrow_terminal(name: str, golden: Any) -> None:
    golden(f"{name}_80.txt", document_text(document_of(PAGES_SHOWN[name]()), width=80))


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


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize(
    "name", ["count_train", "mfu", "train", "gpus", "models", "why_flops", "verify_articles", "rerun", "diff"]
)
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
    best = replace(made.result.layouts[0], tp=1, pp=1, dp=1, zero=0, sp=False, gpus=1)
    text = document_text(document_of(replace(made, result=replace(made.result, layouts=(best,)))))
    assert text.startswith("gpt-9 on 1 GPU: ")
