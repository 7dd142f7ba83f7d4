"""MODEL of a server by what it is given as: which header, which architecture, what its config says of the weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import made_weights as made
import pytest

from suanli.errors import ConfigError, InputError, UnreadableFileError
from suanli.readers.served import read_served

FP8 = {**made.CONFIG, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}


def test_a_preset_has_no_header() -> None:
    found = read_served("llama-3.1-8b")
    assert (found.arch.name, found.table, found.scheme, found.file, found.notes) == ("llama-3.1-8b", None, None, "", ())


def test_a_config_says_how_its_weights_are_stored(tmp_path: Path) -> None:
    for given in (FP8, made.folder(tmp_path / "m", made.llama("F8_E4M3"), FP8) / "config.json"):
        found = read_served(given)
        assert found.scheme is not None and found.scheme.name == "fp8-block" and found.table is None


def test_what_model_optimizer_writes_beside_is_read(tmp_path: Path) -> None:
    folder = made.folder(tmp_path / "m", made.llama())
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}}
    (folder / "hf_quant_config.json").write_text(json.dumps(beside), encoding="utf-8")
    found = read_served(folder)
    assert found.scheme is not None and found.scheme.name == "nvfp4"


def test_a_folder_with_one_file(tmp_path: Path) -> None:
    folder = made.folder(tmp_path / "tiny", made.llama())
    for given in (folder, str(folder), folder / "model.safetensors", str(folder / "model.safetensors")):
        found = read_served(given)
        assert found.arch.name == "tiny" and found.file == "model.safetensors"
        assert found.table is not None and found.table.nbytes == made.nbytes(made.llama())


def test_shards_from_any_end(tmp_path: Path) -> None:
    folder = made.sharded(tmp_path / "m", made.llama())
    for given in (folder, folder / "model.safetensors.index.json", folder / "model-00002-of-00002.safetensors"):
        found = read_served(given)
        assert found.file == "model.safetensors.index.json"
        assert found.table is not None and len(found.table.tensors) == len(made.llama())
    (folder / "model.safetensors.index.json").unlink()
    found = read_served(folder / "model-00001-of-00002.safetensors")
    assert found.file == "model-*.safetensors"
    assert found.table is not None and found.table.nbytes == made.nbytes(made.llama())


def test_an_index_whose_files_are_elsewhere(tmp_path: Path) -> None:
    folder = made.sharded(tmp_path / "m", made.llama(), total=12345)
    (folder / "model-00001-of-00002.safetensors").unlink()
    found = read_served(folder)
    assert found.table is None and found.total == 12345
    assert found.notes == (
        "1 of the 2 files that model.safetensors.index.json names are not here: weights by the config",
    )


def test_a_gguf_describes_itself(tmp_path: Path) -> None:
    found = read_served(made.gguf(tmp_path / "tiny.gguf", made.gguf_llama(), made.GGUF_METADATA))
    assert found.arch.name == found.arch.name == "tiny" and found.file == "tiny.gguf"
    sizes = sum(made.gguf_bytes(*each) for each in made.gguf_llama().values())
    assert found.table is not None and found.table.nbytes == sizes


def test_a_split_gguf_from_any_part(tmp_path: Path) -> None:
    tensors = made.gguf_llama()
    names = list(tensors)
    made.gguf(tmp_path / "t-00001-of-00002.gguf", {n: tensors[n] for n in names[:9]}, made.GGUF_METADATA)
    made.gguf(tmp_path / "t-00002-of-00002.gguf", {n: tensors[n] for n in names[9:]}, {"split.no": 1})
    for part in (1, 2):
        found = read_served(tmp_path / f"t-0000{part}-of-00002.gguf")
        assert found.arch.params_total == 2 * 256_000 + 256 + 4 * (2 * 65_536 + 2 * 16_384 + 3 * 131_072 + 512)
        assert found.file == "t-*.gguf"


def test_a_gguf_nobody_knows_takes_the_config_beside_it(tmp_path: Path) -> None:
    path = made.gguf(tmp_path / "m.gguf", made.gguf_llama(), {"general.architecture": "new"})
    with pytest.raises(ConfigError, match="no family is known for the architecture new"):
        read_served(path)
    (tmp_path / "config.json").write_text(json.dumps(made.CONFIG), encoding="utf-8")
    assert read_served(path).table is not None
    assert read_served(tmp_path).file == "m.gguf"


def test_an_unknown_method_is_kept_for_later(tmp_path: Path) -> None:
    config = {**made.CONFIG, "quantization_config": {"quant_method": "magic"}}
    found = read_served(made.folder(tmp_path / "m", made.llama(), config))
    assert found.table is not None and found.scheme is None
    assert found.unknown_scheme is not None and found.unknown_scheme.faults[0].code == "unknown_quant_method"


@pytest.mark.parametrize("adapter", ["adapter_model.safetensors"])
def test_adapters_are_no_weights(tmp_path: Path, adapter: str) -> None:
    folder = made.folder(tmp_path / "m", made.llama())
    (folder / "model.safetensors").unlink()
    made.safetensors(folder / adapter, {"a": ("BF16", [2, 2])})
    assert read_served(folder).table is None


def refused(given: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_served(given)
    return str(caught.value)


def test_what_is_refused(tmp_path: Path) -> None:
    alone = made.folder(tmp_path / "alone", made.llama(), None)
    assert "the weights do not describe their model in" in refused(str(alone / "model.safetensors"))
    one = made.safetensors(tmp_path / "x-00001-of-00003.safetensors", {"a": ("BF16", [2, 2])})
    assert "2 of its 3 files are not beside it" in refused(one)
    assert "x-00002-of-00003.safetensors, x-00003-of-00003.safetensors" in refused(one)
    assert "the file cannot be opened" in refused(str(tmp_path / "absent.gguf"))
    assert "unknown model 'nobody'" in refused("nobody")


HOSTILE = {
    "huge": (b"\xff" * 8, "the header is too large"),
    "longer": ((10**6).to_bytes(8, "little") + b"{}", "the header is longer than the file"),
    "short": (b"\x02", "the file is too short for a header"),
    "text": ((5).to_bytes(8, "little") + b"hello", "the header is no JSON object"),
    "dtype": (b"", "unknown dtype in"), "overlap": (b"", "overlaps 'a'"), "outside": (b"", "outside the file's data"),
}  # fmt: skip
ENTRIES: dict[str, dict[str, Any]] = {
    "dtype": {"a": {"dtype": "Q9", "shape": [1], "data_offsets": [0, 2]}},
    "overlap": {"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
                "b": {"dtype": "BF16", "shape": [1], "data_offsets": [2, 4]}},
    "outside": {"a": {"dtype": "BF16", "shape": [10**9], "data_offsets": [0, 2 * 10**9]}},
}  # fmt: skip


@pytest.mark.parametrize("name", list(HOSTILE))
def test_a_header_that_cannot_be_true_is_one_error(tmp_path: Path, name: str) -> None:
    folder = made.folder(tmp_path / "m", made.llama())
    content, words = HOSTILE[name]
    if not content:
        text = json.dumps(ENTRIES[name]).encode()
        content = len(text).to_bytes(8, "little") + text + bytes(4)
    (folder / "model.safetensors").write_bytes(content)
    for given in (folder, folder / "model.safetensors"):
        with pytest.raises(UnreadableFileError, match=words):
            read_served(given)
