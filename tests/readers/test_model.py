"""MODEL as typed: which reader it goes to, and what is said when none fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suanli.errors import ConfigError, InputError, MissingExtraError, UnknownNameError, UnreadableFileError
from suanli.readers import hub
from suanli.readers.model import read_model

LLAMA = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100, "tie_word_embeddings": False,
}  # fmt: skip
# embeddings and head 2·6,400; a layer q 4,096, k and v 2·2,048, o 4,096, MLP 3·6,144, norms 128; last norm 64
LLAMA_PARAMS = 2 * 6400 + 2 * (4096 + 2 * 2048 + 4096 + 3 * 6144 + 128) + 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    return tmp_path


def test_a_dict() -> None:
    assert read_model(LLAMA).params_total == LLAMA_PARAMS


def test_a_file_a_folder_and_a_path_object(folder: Path) -> None:
    for model in (str(folder / "config.json"), str(folder), folder, folder / "config.json"):
        assert read_model(model).params_total == LLAMA_PARAMS


def test_a_bare_folder_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert read_model(folder.name).params_total == LLAMA_PARAMS


def test_a_preset_wins_over_a_folder_of_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "gpt2").mkdir()
    assert read_model("gpt2").params_total == 124_439_808


def test_a_config_object() -> None:
    class Config:
        model_type = "llama"

        def to_dict(self) -> dict[str, object]:
            return LLAMA

    assert read_model(Config()).params_total == LLAMA_PARAMS


@pytest.mark.torch
def test_a_transformers_config() -> None:
    transformers = pytest.importorskip("transformers")
    assert read_model(transformers.LlamaConfig(**LLAMA)).params_total == LLAMA_PARAMS


def test_an_expression() -> None:
    assert read_model("linear(4096, 11008)").params_total == 4096 * 11008 + 11008


def test_an_arch_passes_through() -> None:
    arch = read_model("gpt2")
    assert read_model(arch) is arch


def test_a_module_is_only_counted_by_running_it() -> None:
    with pytest.raises(ConfigError, match=r"it is counted by running it in MODEL; got 'torch:a\.b:c'"):
        read_model("torch:a.b:c")


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown model 'lama-7b' in MODEL; expected one of \d+ presets"):
        read_model("lama-7b")
    with pytest.raises(InputError, match="no model is named in MODEL; got 0 characters"):
        read_model("  ")
    with pytest.raises(InputError, match="not a model that can be read in MODEL; got int"):
        read_model(3)
    with pytest.raises(InputError):
        read_model("x" * 100_000)
    with pytest.raises(InputError):
        read_model("gpt2\0")


def test_a_missing_path(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError):
        read_model(str(tmp_path / "nothing.json"))


def test_a_hub_id_offline_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    with pytest.raises(UnreadableFileError, match="the config of no-such/model could not be fetched and is not cached"):
        read_model("no-such/model")


def test_a_hub_id_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r'Run `pip install "suanli\[hub\]"`'):
        read_model("no-such/model")


def test_a_hub_id_that_is_cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_fetched", lambda _: folder / "config.json")
    assert read_model("some/model").params_total == LLAMA_PARAMS


def test_a_known_hub_id_is_its_preset() -> None:
    assert read_model("meta-llama/Llama-3.1-405B").name == "llama-3.1-405b"


def test_remote_code_is_never_run() -> None:
    config = {"model_type": "custom", "auto_map": {"AutoConfig": "configuration.Custom"}}
    with pytest.raises(ConfigError, match="names code of its own, which is never run"):
        read_model(config)
