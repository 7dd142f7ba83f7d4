"""What people mistype: told in a line, never guessed, never a traceback; and nothing given is ignored in silence."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import suanli
from suanli.cli.main import app
from suanli.errors import InputError, SuanliError, UnreadableFileError

RUN = "train llama-3-8b --tokens 1T --gpu h100-sxm --gpus 8"

REFUSED = [
    (f"{RUN} --mfu 0.9 --recompute full", "no machine exceeds its peak in --mfu; got an HFU of 118.0%"),
    ("train llama-3-8b --tokens 1T --gpu h100-sxm --deadline 60", "a number without its unit in --deadline"),
    (f"{RUN} --mfu 0.4 --carbon 400", "a number without its unit in --carbon"),
    (f"{RUN} --mfu 0.4 --power 700", "a number without its unit in --power"),
    (f"{RUN} --mfu 0.4 --params 0", "params is not possible in --params; got '0'; expected at least 1"),
    ("train llama-3-8b --tokens 1T --gpus 8 --mfu 0.4", "a utilisation needs the peak it is of in --gpu"),
    ("train resnet-50 --tokens 1T --gpu h100-sxm --gpus 8", "resnet-50 takes images: a utilisation is needed in --mfu"),
    ("train --tokens 1T --gpus 8 --tflops-per-gpu 100", "a run needs a model or --params in --params"),
    (f"{RUN} --tflops-per-gpu 1e-300", "a number too large or too small in --tflops-per-gpu"),
    ("train --params 1e300 --tokens 1T --tflops-per-gpu 100", "a number too large or too small in --params"),
    ("mfu gpt2 --peak 0TFLOPS --tokens-per-second 5", "a peak of nothing in --peak"),
    ("mfu gpt2 --gpu h100-sxm --step-time 1e-300s --global-batch 1", "a number too large or too small in --step-time"),
    (
        "mfu gpt2 --gpu h100-sxm --step-time 1s --global-batch 1e300",
        "a number too large or too small in --global-batch",
    ),
    ("mfu gpt2 --gpu h100-sxm --tokens-per-second 5 --memory-used 71.2", "a number without its unit in --memory-used"),
    ("mfu gpt2 --gpu h100-sxm --tokens-per-second 5 --dtype banana", "unknown dtype 'banana' in --dtype"),
    ("mfu gpt2 --gpu h100-sxm --tokens-per-second 5 --gpus -5", "got '-5'; expected a number like 8192"),
    ("count gpt2 --convention neox --recompute selective --phase train", "has no selective recompute in --recompute"),
    ("count " + "x" * 300, "unknown model"),
    ("gpus h100-sxm --sort bf16", "one row is neither sorted nor filtered"),
    ("why flops.model gpt2 --gpu h100-sxm", "flops.model comes from `suanli count`, which does not take all options"),
    ("why mfu gpt2 --tokens 15T --gpu h100-sxm", "in --tokens"),
]


def call(line: str) -> Any:
    return CliRunner().invoke(app, line.split())


@pytest.mark.parametrize(("line", "words"), REFUSED, ids=[row[1][:45] for row in REFUSED])
def test_refused_in_a_line(line: str, words: str) -> None:
    done = call(line)
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert "Traceback" not in done.output


SAME = [
    (
        "count gpt2 --phase Train --convention PaLM --dtype BF16",
        "count gpt2 --phase train --convention palm --dtype bf16",
    ),
    ("count gpt2 --dtype bfloat16", "count gpt2 --dtype bf16"),
    ("count vit-b16 --image 384", "count vit-b16 --image 384x384"),
    ("count Llama-3-8B-Instruct", "count llama-3-8b"),
    ("mfu gpt2 --peak 989tflops --tokens-per-second 5", "mfu gpt2 --peak 989TFLOPS --tokens-per-second 5"),
    ("gpus --sort Memory", "gpus --sort memory_bytes"),
    ("gpus --filter W>900", "gpus --filter tdp_w>900"),
]


@pytest.mark.parametrize(("loose", "strict"), SAME, ids=[row[0] for row in SAME])
def test_meant_the_same(loose: str, strict: str) -> None:
    ours, theirs = (json.loads(call(f"{line} --json").stdout) for line in (loose, strict))
    assert ours["result"] == theirs["result"]


IDLE = [
    ("count gpt2 --image 32x32", "--image changes nothing: gpt2 takes no picture"),
    ("count bert-base --kv-dtype fp8", "--kv-dtype changes nothing"),
    ("count gpt2 --kv-len 100 --phase prefill", "--kv-len changes nothing but in --phase decode"),
    ("mfu gpt2 --gpu h100-sxm --tokens-per-second 5 --global-batch 4", "--global-batch changes nothing"),
    (f"{RUN} --mfu 0.4 --global-batch 4", "--global-batch changes nothing"),
    (f"{RUN} --mfu 0.4 --params 8B --convention palm --seq 4096", "--convention changes nothing: --params takes"),
    (f"{RUN} --mfu 0.4 --params 8B --seq 4096", "--seq changes nothing: --params takes 6·N·tokens"),
    ("mfu gpt2 --gpu h100-sxm --tokens-per-second 5 --memory-used 7TB", "is more than the 74.51 GiB of the device"),
]


@pytest.mark.parametrize(("line", "words"), IDLE, ids=[row[1][:45] for row in IDLE])
def test_what_changes_nothing_is_said(line: str, words: str) -> None:
    assert any(words in note for note in json.loads(call(f"{line} --json").stdout)["notes"])


def test_params_stand_for_the_model_and_say_so() -> None:
    found = suanli.train("llama-3-8b", params="70B", tokens="1T", gpu="h100-sxm", gpus=8, mfu=0.4)
    assert found.model == "llama-3-8b as 70,000,000,000 parameters"
    assert found.convention == "6N·tokens (--params)"
    assert not any("assumed: convention" in note for note in found.notes)


def test_fp8_runs_are_measured_against_the_fp8_peak() -> None:
    """The published Llama-3-8B fp8 run on 8 H100 makes 13,812 tokens/s a GPU; twice that is not assumed."""
    found = suanli.train("llama-3-8b", tokens="1T", gpu="h100-sxm", gpus=8, dtype="fp8", seq=8192)
    assert found.mfu < 0.45
    assert 8_000 < found.tokens_per_second_per_gpu < 18_000


def test_prices_of_one_date_are_told_with_their_spread() -> None:
    found = suanli.train("gpt2", tokens="1T", gpu="h100-sxm", gpus=8, mfu=0.4)
    assert any("of that date, $1.49 to $6.16" in note for note in found.notes)


def test_the_default_utilisation_names_every_run() -> None:
    found = suanli.train("llama-3.1-405b", tokens="1T", gpu="h100-sxm", gpus=16384)
    (note,) = [note for note in found.notes if note.startswith("MFU: median of 9")]
    assert len(re.findall(r"[a-z-]+-\d{4}", note)) == 9


@pytest.mark.parametrize(
    "call_",
    [
        lambda: suanli.train("gpt2", tokens=None, gpu="h100-sxm", mfu=0.4),
        lambda: suanli.gpus(filter=3),  # type: ignore[arg-type]
        lambda: suanli.gpus(sort=3),  # type: ignore[arg-type]
        lambda: suanli.mfu("gpt2", peak=0, tokens_per_second=5),
        lambda: suanli.train("gpt2", tokens="1T", gpu="h100-sxm", gpus=8, mfu=1e-310),
    ],
)
def test_python_gets_the_same_errors(call_: Any) -> None:
    with pytest.raises(SuanliError):
        call_()


def test_why_without_arguments_and_by_none() -> None:
    assert "flops.model" in suanli.why().result.values
    assert suanli.count("gpt2", by=None).by == "module"


# --- streams and files --------------------------------------------------------------------------------------------


def spawn(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    source = str(Path(suanli.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, **options.pop("env", {})}
    return subprocess.run([sys.executable, "-m", "suanli", *arguments], env=environment, check=False, **options)


def test_an_output_that_holds_only_ascii() -> None:
    done = spawn("mfu", "gpt2", "--gpu", "h100-sxm", "--tokens-per-second", "5", capture_output=True,
                 env={"PYTHONIOENCODING": "ascii"})  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.isascii() and b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("wb") as full:
        done = spawn("count", "gpt2", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: the output cannot be written")
    assert b"Traceback" not in done.stderr


def test_a_closed_output_is_no_crash() -> None:
    done = spawn("count", "gpt2", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    assert b"Traceback" not in done.stderr


def test_a_price_file_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from suanli.catalog.prices import list_prices

    folder = tmp_path / "suanli"
    folder.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for make in (lambda: os.mkfifo(folder / "prices.toml"), lambda: (folder / "prices.toml").symlink_to("/dev/zero"),
                 lambda: (folder / "prices.toml").symlink_to("prices.toml")):  # fmt: skip
        (folder / "prices.toml").unlink(missing_ok=True)
        make()
        with pytest.raises(UnreadableFileError):
            list_prices()


def test_the_users_price_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suanli").mkdir()
    (tmp_path / "suanli" / "prices.toml").write_text(
        '[[price]]\ndevice = "h100-sxm"\nkind = "on-demand"\nusd_per_gpu_hour = 2.2\ndate = "2026-11"\n'
        'source = "our contract"\n'
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found = suanli.train("gpt2", tokens="1T", gpu="h100-sxm", gpus=8, mfu=0.4)
    assert found.cost_usd == pytest.approx(found.gpu_hours * 2.2)


# --- narrow terminals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_no_number_is_cut(width: int) -> None:
    """Every number of every table is on screen whole, however narrow."""
    import io

    from rich.console import Console

    from suanli.report import document_of
    from suanli.report.document import Table
    from suanli.report.text import print_document

    for result in (suanli.gpus(), suanli.count("deepseek-v3", phase="train", seq=65536), suanli.verify("runs")):
        document = document_of(result)
        out = io.StringIO()
        print_document(document, Console(file=out, width=width, no_color=True))
        shown = out.getvalue()
        numbers = {
            cell
            for block in document.blocks
            if isinstance(block, Table)
            for row in block.rows
            for index, cell in enumerate(row)
            if block.aligned_right(index) and len(cell) < width - 30
        }
        assert [cell for cell in numbers if cell not in shown] == []


def test_a_fault_in_one_place() -> None:
    with pytest.raises(InputError, match="one row is neither sorted nor filtered in --sort and --filter"):
        suanli.models("gpt2", sort="params")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("count", "--json"), "Missing argument 'model'", "`python -m suanli count --help` lists what it takes."),
        (
            ("count", "gpt2", "--sq", "4", "--json"),
            "No such option: --sq (Possible options: --json, --seq)",
            "`python -m suanli count --help` lists what it takes.",
        ),
        (("cnt", "--json"), "No such command 'cnt'. Did you mean 'count'?",
         "`python -m suanli --help` lists what it takes."),
    ],
)  # fmt: skip
def test_a_bad_command_line_is_the_json_error_where_json_was_asked_for(arguments, message, hint) -> None:
    done = spawn(*arguments, capture_output=True)
    error = json.loads(done.stdout)
    assert (done.returncode, done.stderr, error["ok"]) == (2, b"", False)
    assert error["error"]["code"] == "bad_usage"
    assert error["error"]["where"] == "the command line"
    assert error["error"]["hint"] == hint
    assert error["error"]["message"].startswith(message.split("(")[0].strip())


def test_a_bad_command_line_is_told_on_stderr_otherwise() -> None:
    done = spawn("count", capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Missing argument" in done.stderr
