"""`suanli infer` of a model given with its weights: the header's bytes, their source, and what is said beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import made_weights as made
import pytest

import suanli
from suanli.errors import SuanliError

ASKED: dict[str, Any] = {"gpu": "h100-sxm", "isl": 100, "osl": 100}
FP8 = {**made.CONFIG, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}


def test_a_safetensors_file_gives_its_own_bytes(tmp_path: Path) -> None:
    folder = made.folder(tmp_path / "m", made.llama("F8_E4M3"), FP8)
    for given in (folder, folder / "model.safetensors"):
        found = suanli.infer(str(given), **ASKED, gpus=2)
        assert found.weights_bytes == made.nbytes(made.llama("F8_E4M3"))
        many = len(made.llama("F8_E4M3"))
        assert f"weights: sum of tensors in model.safetensors's header ({many} tensors)" in found.sources
        assert found.inputs["assumed"]["dtype"] == "as stored in model.safetensors"
        assert not any(note.startswith("weights:") for note in found.notes)
        assert found.memory.weights == found.weights.per_rank < found.weights_bytes


def test_the_config_alone_says_the_same(tmp_path: Path) -> None:
    folder = made.folder(tmp_path / "m", made.llama("F8_E4M3"), FP8)
    stored, said = (suanli.infer(str(each), **ASKED, gpus=2) for each in (folder, folder / "config.json"))
    assert said.inputs["assumed"]["dtype"] == "fp8-block (quantization_config)"
    assert "weights: config.json: quantization_config, quant_method fp8" in said.sources
    assert said.weights_bytes == stored.weights_bytes
    assert said.tpot_s == pytest.approx(stored.tpot_s, rel=0.01)


def test_a_gguf_file(tmp_path: Path) -> None:
    found = suanli.infer(str(made.gguf(tmp_path / "t.gguf", made.gguf_llama(), made.GGUF_METADATA)), **ASKED)
    assert found.weights_bytes == sum(made.gguf_bytes(*each) for each in made.gguf_llama().values())
    assert found.weights.scheme == "Q4_K, Q6_K, F32"
    assert any(line.startswith("weights: sum of tensors in t.gguf's header") for line in found.sources)


def test_fewer_bytes_are_read_faster(tmp_path: Path) -> None:
    wide = made.folder(tmp_path / "a", made.llama())
    narrow = made.folder(tmp_path / "b", made.llama("F8_E4M3"), FP8)
    assert suanli.infer(str(narrow), **ASKED).tpot_s < suanli.infer(str(wide), **ASKED).tpot_s


def test_a_difference_from_the_config_is_told(tmp_path: Path) -> None:
    found = suanli.infer(str(made.folder(tmp_path / "m", made.llama(layers=5))), **ASKED)
    assert found.weights_bytes == made.nbytes(made.llama(layers=5))
    assert any(note.startswith("weights: by its config m in bf16 is") for note in found.notes)


def test_a_scheme_by_name_goes_before_the_header(tmp_path: Path) -> None:
    found = suanli.infer(str(made.folder(tmp_path / "m", made.llama())), **ASKED, dtype="awq-4bit-128")
    assert found.weights_bytes < made.nbytes(made.llama()) / 2
    said = [note for note in found.notes if note.startswith("weights are as --dtype awq-4bit-128 says")]
    size = f"{made.nbytes(made.llama()) / 2**20:.3f} MiB"
    assert said == [f"weights are as --dtype awq-4bit-128 says, not as stored in model.safetensors ({size})"]


def test_shards_that_are_elsewhere(tmp_path: Path) -> None:
    folder = made.sharded(tmp_path / "m", made.llama(), total=2 * made.nbytes(made.llama()))
    for shard in folder.glob("*.safetensors"):
        shard.unlink()
    found = suanli.infer(str(folder), **ASKED)
    assert found.weights_bytes == made.nbytes(made.llama())
    assert found.notes[1].startswith("2 of the 2 files that model.safetensors.index.json names are not here")
    assert found.notes[2].endswith("100.0 % more")


def test_every_layout_and_gpu_takes_the_header(tmp_path: Path) -> None:
    folder = made.folder(tmp_path / "m", made.llama("F8_E4M3"), FP8)
    found = suanli.infer(str(folder), gpu="h100-sxm,l40s", tpot="20ms", isl=100, osl=100)
    assert {each.gpu for each in found.choices} == {"h100-sxm", "l40s"}
    drafted = suanli.infer(str(folder), **ASKED, draft_tokens=2, acceptance=0.5, draft_model="smollm-135m")
    assert drafted.speculation.draft == "smollm-135m"


def test_a_header_that_cannot_be_true_is_one_clear_error(tmp_path: Path) -> None:
    folder = made.folder(tmp_path / "m", made.llama())
    (folder / "model.safetensors").write_bytes(b"\xff" * 16)
    with pytest.raises(SuanliError) as caught:
        suanli.infer(str(folder), **ASKED)
    assert [fault.sentence() for fault in caught.value.faults] == [
        f"the header is too large in {folder}/model.safetensors; got 18,446,744,073,709,551,615 bytes; expected at "
        "most 100 MB."
    ]


def test_an_unknown_method_is_refused_only_where_nothing_else_says(tmp_path: Path) -> None:
    config = {**made.CONFIG, "quantization_config": {"quant_method": "magic"}}
    folder = made.folder(tmp_path / "m", made.llama(), config)
    assert suanli.infer(str(folder), **ASKED).weights_bytes == made.nbytes(made.llama())
    (folder / "model.safetensors").unlink()
    assert suanli.infer(str(folder), **ASKED, dtype="bf16").weights_bytes == made.nbytes(made.llama())
    with pytest.raises(SuanliError, match="unknown method of quantisation 'magic'"):
        suanli.infer(str(folder), **ASKED)


def test_too_large_a_file_is_refused(tmp_path: Path) -> None:
    """80 GB of embeddings, whatever the config says."""
    tensors = {**made.llama(), "model.embed_tokens.weight": ("BF16", [40_000, 10**6])}
    words = r"the weights of m in BF16 do not fit in --gpu h100-sxm --gpus 1; got 80\.0 GB"
    with pytest.raises(SuanliError, match=words):
        suanli.infer(str(made.folder(tmp_path / "m", tensors)), **ASKED)


def test_json_is_the_same_shape(tmp_path: Path) -> None:
    found = suanli.infer(str(made.folder(tmp_path / "m", made.llama())), **ASKED)
    assert json.loads(found.to_json())["result"]["weights"]["source"].startswith("sum of tensors in model.safetensors")
