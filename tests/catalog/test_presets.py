"""Model presets: complete, findable by any reasonable spelling, unambiguous, and each readable."""

from __future__ import annotations

import json
import re
import time
from importlib.resources import files

import pytest

from suanli.catalog.presets import Preset, find_preset, presets
from suanli.errors import AmbiguousNameError, UnknownNameError
from suanli.readers.preset import read_preset, with_image

ALL = list(presets().values())
TASKS = {
    "audio-text-to-text", "autoencoder", "causal-lm", "class-to-image", "contrastive", "encoder",
    "image-classification", "image-text-to-text", "masked-lm", "seq2seq-lm", "speech-seq2seq", "text-to-image",
    "text-to-video",
}  # fmt: skip
FORMATS = {"hf", "diffusers", "decoder", "encoder-decoder", "estimate", "expression"}


def test_there_are_many() -> None:
    assert len(ALL) >= 250
    assert len({preset.family for preset in ALL}) >= 25
    assert {preset.format for preset in ALL} == FORMATS


def test_every_row_of_every_file_is_a_preset() -> None:
    """No name is given twice, no key is misspelled."""
    rows: list[dict[str, object]] = []
    for path in files("suanli.catalog").joinpath("models").iterdir():
        rows += json.loads(path.read_text(encoding="utf-8"))["models"]
    assert sorted(str(row["name"]) for row in rows) == sorted(presets())
    assert {key for row in rows for key in row} <= set(Preset.__dataclass_fields__) - {"family"}


@pytest.mark.parametrize("preset", ALL, ids=lambda preset: preset.name)
def test_each_reads_and_counts_its_params(preset: Preset) -> None:
    arch = read_preset(preset)
    assert re.fullmatch(r"[a-z0-9.-]+", preset.name)
    assert preset.title and preset.config
    assert preset.task in TASKS
    assert preset.source.strip()
    assert (arch.name, arch.title, arch.task) == (preset.name, preset.title, preset.task)
    assert arch.sources == (preset.source,)
    assert not preset.notes or preset.notes in arch.notes
    assert arch.params_total == preset.params or preset.params is None
    assert 0 < arch.params_active <= arch.params_total
    assert preset.date is None or re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", preset.date)


def test_all_are_read_quickly() -> None:
    start = time.perf_counter()
    for preset in ALL:
        read_preset(preset)
    assert time.perf_counter() - start < 3


def test_every_name_and_alias_means_one_preset() -> None:
    owner: dict[str, str] = {}
    for preset in ALL:
        for spelling in (preset.name, *preset.aliases):
            assert find_preset(spelling) is preset
            assert find_preset(spelling.upper()) is preset
            key = re.sub(r"[-_\s]+", "", spelling.lower())
            assert owner.setdefault(key, preset.name) == preset.name


SPELLINGS = [
    ("llama-3.1-405b", "llama-3.1-405b"),
    ("Llama 3.1 405B", "llama-3.1-405b"),
    ("LLAMA_3.1_405B", "llama-3.1-405b"),
    ("llama3.1-405b", "llama-3.1-405b"),
    ("meta-llama/Llama-3.1-405B", "llama-3.1-405b"),
    ("Llama-3.1-405B", "llama-3.1-405b"),
    ("  llama-3.1-8b ", "llama-3.1-8b"),
    ("llama31-8b", "llama-3.1-8b"),
    ("llama3-8b", "llama-3-8b"),
    ("Llama2-7B", "llama-2-7b"),
    ("Mixtral 8x7B", "mixtral-8x7b"),
    ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"),
    ("DeepSeek V3", "deepseek-v3"),
    ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
    ("Qwen2.5-7B", "qwen2.5-7b"),
    ("qwen25-7b", "qwen2.5-7b"),
    ("GPT-2", "gpt2"),
    ("BERT base", "bert-base"),
    ("resnet50", "resnet-50"),
    ("ResNet 50", "resnet-50"),
    ("AlexNet", "alexnet"),
    ("gpt3-1.3b", "gpt3-1.3b"),
    ("gpt3-13b", "gpt3-13b"),  # the dot tells them apart
]


@pytest.mark.parametrize(("spelling", "name"), SPELLINGS)
def test_spellings(spelling: str, name: str) -> None:
    assert find_preset(spelling).name == name


AMBIGUOUS = [("llama", 10), ("llama-70b", 3), ("qwen2.5", 5), ("resnet", 3), ("megatron", 5)]


@pytest.mark.parametrize(("name", "least"), AMBIGUOUS)
def test_names_that_fit_several_list_them(name: str, least: int) -> None:
    with pytest.raises(AmbiguousNameError) as caught:
        find_preset(name)
    (fault,) = caught.value.faults
    found = int(re.search(r"fits (\d+) presets", fault.message)[1])  # type: ignore[index]
    assert found >= least
    assert set(fault.nearest) <= set(presets())
    assert len(fault.nearest) == min(found, 8)
    assert ("more" in str(fault.expected)) is (found > 8)


UNKNOWN = [
    ("lama-3.1-8b", "llama-3.1-8b"),
    ("mixtrall-8x7b", "mixtral-8x7b"),
    ("reznet-50", "resnet-50"),
    ("deepsek-v3", "deepseek-v3"),
    ("alexnett", "alexnet"),
]


@pytest.mark.parametrize(("name", "nearest"), UNKNOWN)
def test_unknown_names_show_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_preset(name, where="--model")
    (fault,) = caught.value.faults
    assert nearest in fault.nearest
    assert fault.where == "--model"
    assert str(caught.value) == (
        f"unknown model {name!r} in --model; expected one of {len(ALL)} presets, a config.json, a folder with one, "
        f"or a layer expression; nearest: {', '.join(fault.nearest)}. `suanli models` lists the presets."
    )


@pytest.mark.parametrize("name", ["", "   ", "-", "🧮", "x" * 100_000, "../../etc/passwd", "-1e309", "\0", "nan"])
def test_hostile_names_are_unknown_at_once(name: str) -> None:
    start = time.perf_counter()
    with pytest.raises((UnknownNameError, AmbiguousNameError)) as caught:
        find_preset(name)
    assert time.perf_counter() - start < 1
    assert len(str(caught.value)) < 1000


def test_pictures_of_another_size() -> None:
    config = {"image_size": 224, "vision_config": {"image_size": 224, "x": 1}}
    assert with_image(config, (10, 20)) == {"image_size": [10, 20], "vision_config": {"image_size": [10, 20], "x": 1}}
    assert with_image(config, None) is config
    small, large = (read_preset(find_preset("resnet-50"), size) for size in ((112, 112), (448, 448)))
    assert small.params_total == large.params_total
    assert "picture 448x448" in large.notes
