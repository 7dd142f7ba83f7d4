"""Broken and hostile configs through the command: one clear error, exit code 2, under a second, no traceback."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suanli.cli.main import app

GOOD: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100,
}  # fmt: skip


def changed(**values: Any) -> str:
    return json.dumps({**GOOD, **values})


def without(*names: str) -> str:
    return json.dumps({name: value for name, value in GOOD.items() if name not in names})


# what the file holds, and words its error must have
TEXTS: list[tuple[str, str | bytes, str]] = [
    ("negative", changed(hidden_size=-64), "hidden_size is not possible"),
    ("zero", changed(num_hidden_layers=0), "num_hidden_layers is not possible"),
    ("text for a number", changed(vocab_size="many"), "vocab_size is not possible"),
    ("NaN", changed(vocab_size=float("nan")), "NaN is no number of JSON"),
    ("infinity", changed(vocab_size=float("inf")), "Infinity is no number of JSON"),
    ("a number no float holds", '{"model_type": "llama", "vocab_size": 1e999}', "is too large"),
    ("1e30 layers", changed(num_hidden_layers=1e30), "num_hidden_layers is not possible"),
    ("10^400 layers", '{"num_hidden_layers": 1' + "0" * 400 + "}", "is too long"),
    ("half a layer", changed(num_hidden_layers=2.5), "num_hidden_layers is not possible"),
    ("true for a number", changed(hidden_size=True), "hidden_size is not possible"),
    ("a list for a number", changed(hidden_size=[64]), "hidden_size is not possible"),
    ("an object for a number", changed(hidden_size={"a": 1}), "hidden_size is not possible"),
    ("missing keys", without("hidden_size", "vocab_size"), "missing key hidden_size"),
    ("no model_type", without("model_type"), "missing key model_type"),
    ("unknown model_type", changed(model_type="lama"), "unknown model_type 'lama'"),
    ("model_type is a list", changed(model_type=["llama"]), "unknown model_type"),
    ("heads do not divide", changed(num_attention_heads=5, num_key_value_heads=5), "does not divide the width"),
    ("key/value heads do not divide", changed(num_key_value_heads=3), "does not divide the number of heads"),
    ("tie is a word", changed(tie_word_embeddings="yes"), "tie_word_embeddings is not true or false"),
    ("two spellings differ", changed(n_layer=3), "name the same thing and differ"),
    ("layer types too short", changed(layer_types=["full_attention"]), "does not have one entry a layer"),
    ("deep", "[" * 100_000 + "]" * 100_000, "nested too deep"),
    ("deep object", '{"a":' * 5_000 + "1" + "}" * 5_000, "nested too deep"),
    ("a byte order mark", b"\xef\xbb\xbf" + changed().encode(), "starts with a byte order mark"),
    ("UTF-16", changed().encode("utf-16"), "starts with a byte order mark"),
    ("binary", bytes(range(256)) * 10, "is not UTF-8 text"),
    ("not JSON", "hello", "is not JSON"),
    ("truncated", changed()[:-20], "is not JSON"),
    ("empty", "", "is empty"),
    ("a list", "[1, 2]", "no object"),
    ("a number", "42", "no object"),
    ("a key twice", '{"model_type": "llama", "model_type": "gpt2"}', "is given twice"),
    ("code of its own", changed(model_type="x", auto_map={"AutoConfig": "c.C"}), "never run"),
]


def error_of(model: str) -> str:
    """What the command says on stderr; it must exit with 2, quickly, without a traceback and without output."""
    start = time.process_time()
    done = CliRunner().invoke(app, ["count", model])
    assert time.process_time() - start < 1
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert all(line.startswith("error: ") for line in done.stderr.splitlines())
    assert len(done.stderr) < 3000
    return done.stderr


@pytest.mark.parametrize(("name", "content", "words"), TEXTS, ids=[row[0] for row in TEXTS])
def test_one_clear_error(name: str, content: str | bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert words in error_of(str(file))


def test_all_faults_of_a_config_together(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "llama", "hidden_size": -1, "num_attention_heads": "x"}))
    said = error_of(str(file)).splitlines()
    assert len(said) == 5  # two bad values, and layers, ffn and vocabulary missing


def test_200_megabytes(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    with file.open("wb") as stream:
        stream.truncate(200 * 10**6)
    said = error_of(str(file))
    assert "too large for a config" in said and "got 200,000,000 bytes" in said


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    assert "the folder holds no config.json" in error_of(f"{tmp_path}/")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/stdin"])
def test_a_device(device: str) -> None:
    if not Path(device).exists():
        pytest.skip(f"no {device} here")
    assert "error: " in error_of(device)


def test_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    assert "not a regular file in" in error_of(str(pipe))


@pytest.mark.parametrize(
    "model", ["", " ", "\x00", "a" * 50_000, "../../etc/passwd", "linear(", "linear(1e30, 2)", "🙂"]
)
def test_hostile_names(model: str) -> None:
    assert "error: " in error_of(model)
