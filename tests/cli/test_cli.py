"""The command line: the same result as Python, one JSON document, exit codes, files whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import suanli
from suanli.cli import options
from suanli.cli.main import app

RUNNER = CliRunner()

# command line, and the same request in Python
SAME: list[tuple[str, Any]] = [
    ("count gpt2", lambda: suanli.count("gpt2")),
    (
        "count gpt3-175b-megatron --seq 2048 --batch 1 --phase train --convention megatron-full",
        lambda: suanli.count("gpt3-175b-megatron", seq="2048", batch="1", phase="train", convention="megatron-full"),
    ),
    (
        "count llama-3-8b --trainable lora:r=8 --by kind",
        lambda: suanli.count("llama-3-8b", trainable="lora:r=8", by="kind"),
    ),
    (
        "mfu llama-3-8b --gpu h100-sxm --seq 8192 --tokens-per-second 8000",
        lambda: suanli.mfu("llama-3-8b", gpu="h100-sxm", seq="8192", tokens_per_second="8000"),
    ),
    (
        "train gpt3-175b --params 175B --tokens 300B --gpu a100-80gb-sxm --gpus 1000 --mfu 0.462",
        lambda: suanli.train("gpt3-175b", params="175B", tokens="300B", gpu="a100-80gb-sxm", gpus="1000", mfu="0.462"),
    ),
    (
        "train --params 175B --tokens 300B --gpus 1024 --tflops-per-gpu 140 --recompute full",
        lambda: suanli.train(params="175B", tokens="300B", gpus="1024", tflops_per_gpu="140", recompute="full"),
    ),
    (
        "infer llama-3.1-70b --gpu h100-sxm --gpus 8 --dtype fp8 --concurrency 64 --chunk 512 --stages pre=5ms:4",
        lambda: suanli.infer(
            "llama-3.1-70b", gpu="h100-sxm", gpus="8", dtype="fp8", concurrency="64", chunk="512", stages="pre=5ms:4"
        ),
    ),
    (
        "infer llama-3.1-8b --gpu h100-sxm,h200 --rate 20 --tpot 20ms",
        lambda: suanli.infer("llama-3.1-8b", gpu="h100-sxm,h200", rate="20", tpot="20ms"),
    ),
    ("gpus h100-sxm", lambda: suanli.gpus("h100-sxm")),
    ("models gpt2", lambda: suanli.models("gpt2")),
    ("why params.total gpt2", lambda: suanli.why("params.total", "gpt2")),
    ("verify --only articles", lambda: suanli.verify("articles")),
    ("learn", suanli.learn),
    (
        "learn backprop --rate 1 --weights 1,2,3,4,5,6,7,8",
        lambda: suanli.learn("backprop", rate="1", weights="1,2,3,4,5,6,7,8"),
    ),
    ("learn cost --lang zh", lambda: suanli.learn("cost", lang="zh")),
]


def call(line: str) -> Any:
    return RUNNER.invoke(app, line.split())


@pytest.mark.parametrize(("line", "verb"), SAME, ids=[row[0][:50] for row in SAME])
def test_json_is_pythons(line: str, verb: Any) -> None:
    done = call(f"{line} --json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(verb().to_json())


@pytest.mark.parametrize(("line", "_"), SAME, ids=[row[0][:50] for row in SAME])
def test_text_is_printed(line: str, _: Any) -> None:
    done = call(line)
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) > 5


EXITS = [
    ("mfu llama-3-8b --gpu a100-80gb-sxm --tokens-per-second=-5", 1, ""),
    ("mfu llama-3-8b --gpu a100-80gb-sxm --seq 8192 --tokens-per-second 16000", 1, ""),
    ("count nobody", 2, "error: unknown model 'nobody' in MODEL"),
    ("count gpt2 --seq -4", 2, "error: a quantity below zero in --seq; got '-4'"),
    ("mfu gpt2 --tokens-per-second 5", 2, "error: a utilisation needs a peak in --gpu"),
    ("mfu gpt2 --gpu h100-ultra --tokens-per-second 5", 2, "error: unknown device 'h100-ultra' in --gpu"),
    ("train gpt2 --tokens 1T --gpu h100-sxm --mfu 41", 2, "error: mfu is not possible in --mfu; got 41"),
    ("infer llama-3.1-405b --gpu h100-sxm", 2, "got 811.7 GB, 811.7 GB on the fullest GPU of 80.0 GB"),
    ("infer llama-3.1-8b", 2, "error: an answer is for a device in --gpu; expected --gpu h100-sxm"),
    ("infer bert-base --gpu h100-sxm", 2, "error: the model generates no tokens in --model; got bert-base"),
    (
        "verify --only articles --data .",
        2,
        "outside data are of a section that needs them in --data; got '.'",
    ),
    ("why nothing", 2, "error: unknown quantity 'nothing' in ID"),
    ("learn backprp", 2, "error: unknown topic 'backprp' in TOPIC"),
    ("learn moe --rate 2", 2, "error: an option of the lesson backprop in --rate"),
    ("verify --only everything", 2, "error: unknown section 'everything' in --only"),
    ("count gpt2 -o out.pdf", 2, "error: the suffix names no format in --output"),
    ("rerun examples.json", 2, "error: the report cannot be read in examples.json"),
    ("count", 2, "Missing argument"),
    ("nothing", 2, "No such command"),
]


@pytest.mark.parametrize(("line", "code", "words"), EXITS, ids=[row[0] for row in EXITS])
def test_exit_codes(line: str, code: int, words: str) -> None:
    done = call(line)
    assert done.exit_code == code
    assert words in done.stderr
    assert "Traceback" not in done.output


def test_errors_as_json() -> None:
    done = call("count nobody --seq -1 --json")
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert found["ok"] is False
    assert [error["code"] for error in found["errors"]] == ["unknown_model", "negative_quantity"]


def test_above_the_peak_in_json_is_null_with_a_reason() -> None:
    done = call("mfu llama-3-8b --gpu a100-80gb-sxm --seq 8192 --tokens-per-second 16000 --json")
    found = json.loads(done.stdout)["result"]
    assert done.exit_code == 1
    assert found["mfu"] is None and "times the peak" in found["reason"]


def test_files_by_suffix(tmp_path: Path) -> None:
    for suffix in ("json", "csv", "md"):
        path = tmp_path / f"out.{suffix}"
        done = call(f"count gpt2 -o {path}")
        assert done.exit_code == 0, done.output
        assert done.stdout == "" and f"wrote {path}" in done.stderr
        assert path.stat().st_size > 200
    assert json.loads((tmp_path / "out.json").read_text())["kind"] == "count"
    assert (tmp_path / "out.md").read_text().startswith("# GPT-2")
    assert "transformer.h.0-11.mlp" in (tmp_path / "out.csv").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.csv", "out.json", "out.md"]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    done = call(f"count gpt2 -o {tmp_path}/nowhere/out.json")
    assert done.exit_code == 2
    assert "error: the file cannot be written" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_failing_verification_exits_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break a number on purpose: the command must notice."""
    from dataclasses import replace

    from suanli import api
    from suanli.api import verifying
    from suanli.verify import check_claim, verify_articles

    real = verify_articles()
    from suanli.catalog.claims import article_claims

    broken = next(claim for claim in article_claims() if claim.expected and claim.quantity and claim.verdict == "ok")
    bad = check_claim(replace(broken, expected=broken.expected * 2))  # type: ignore[operator]
    monkeypatch.setattr(verifying, "check", lambda _: replace(real, claims=(*real.claims, bad)))
    assert api.verify("articles").ok is False
    done = call("verify --only articles")
    assert done.exit_code == 1
    assert "1 claims FAIL" in done.stdout


def test_the_list_of_verbs_cuts_no_sentence() -> None:
    text = " ".join(call("--help").stdout.split())
    assert "..." not in text.partition("Commands:")[2]
    assert "Tell MFU and HFU of a measured run, under one convention and beside the common ones." in text


def test_help_of_every_verb_tells_an_example() -> None:
    for verb in ("count", "mfu", "train", "gpus", "models", "why", "verify"):
        done = call(f"{verb} --help")
        assert done.exit_code == 0
        assert "Example: suanli" in " ".join(done.stdout.split())


SURFACE = {
    "count": "seq batch phase kv-len image frames dtype kv-dtype optimizer recompute convention by trainable params "
    "input trace strict symbolic sweep time-limit like",
    "compare": "seq batch input device tools time-limit memory-limit",
    "layout": "gpu gpus global-batch seq pin dtype stack fabric top memory-limit why emit",
    "calibrate": "stack gpu fabric name shipped rows",
    "rerun": "trust",
    "scale": "points metric project series global-batch model gpu pin seq dtype stack fabric",
    "infer": "gpu gpus isl osl concurrency rate batch ttft tpot tp pp ep dp-attention cp dtype kv-dtype "
    "preset calibrate draft-tokens acceptance draft-model chunk disaggregate link stages price sell "
    "utilisation pue carbon seed",
    "explain": "model seq batch gpus gpu dtype convention against compare steps device engine workers cache "
    "kernels-csv",
    "goodput": "gpus mtbf mtbf-node mtti failures gpus-per-node detect restart checkpoint-save checkpoint-mode "
    "checkpoint-stall checkpoint-load interval spares repair stragglers maintenance days mfu seed events",
    "mfu": "gpu gpus seq step-time global-batch tokens-per-second tflops-per-gpu dtype peak recompute convention "
    "memory-used image frames",
    "train": "tokens gpu gpus deadline params seq global-batch mfu hfu tflops-per-gpu recompute convention dtype "
    "gpu-hours goodput failures restart checkpoint-save price power pue carbon",
    "summarise": "gpu engine workers",
    "gpus": "sort filter",
    "models": "sort filter",
    "why": "seq batch phase kv-len image frames dtype kv-dtype optimizer trainable recompute convention params gpu "
    "gpus step-time global-batch "
    "tokens-per-second tflops-per-gpu peak tokens mfu hfu goodput deadline price power pue",
    "verify": "only all types data",
    "learn": "lang inputs targets weights hidden-bias output-bias rate steps prompt new-tokens seed",
}
NO_ANSWER = {
    "diff": "json output",
    "web": "port host token allow-host max-upload workers time-limit open",
}  # commands that print no result


def test_the_surface_changes_only_on_purpose() -> None:
    import typer

    command = typer.main.get_command(app)
    found = {
        name: " ".join(p.opts[0].lstrip("-") for p in verb.params if p.param_type_name == "option" and p.name != "help")
        for name, verb in command.commands.items()  # type: ignore[attr-defined]
    }
    assert found == {name: f"{options} json output" for name, options in SURFACE.items()} | NO_ANSWER


def test_version() -> None:
    assert call("--version").stdout == f"suanli {suanli.__version__}\n"


def test_completion() -> None:
    assert "llama-3.1-405b" in options.complete_model("llama-3.1")
    assert options.complete_model("LLAMA-3.1-4") == ["llama-3.1-405b"]
    assert "h100-sxm" in options.complete_gpu("h100")
    assert options.complete_convention("pal") == ["palm", "palm-noemb"]
    assert "flops.model" in options.complete_quantity("flops.")
    assert options.complete_dtype("bf") == ["bf16"]


def test_why_alone_lists_what_it_knows() -> None:
    done = call("why")
    assert "flops.model" in done.stdout and "linear_flops" in done.stdout
