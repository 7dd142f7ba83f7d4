"""Diffusion models as users ask for them: presets, files, pipelines, dicts; sizes; a trace beside the formula."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.errors import ConfigError, InputError, MissingExtraError, UnreadableFileError
from suanli.nouns.result import Result

SMALL = {
    "_class_name": "FluxTransformer2DModel", "num_attention_heads": 3, "attention_head_dim": 8, "num_layers": 2,
    "num_single_layers": 2, "joint_attention_dim": 20, "pooled_projection_dim": 18, "in_channels": 12,
    "axes_dims_rope": [2, 4, 2],
}  # fmt: skip


def said(result: Result, start: str) -> bool:
    return any(note.startswith(start) for note in result.notes)


def test_a_dict_a_file_and_a_pipeline_are_one_model(tmp_path: Path) -> None:
    folder = tmp_path / "a-pipeline"
    (folder / "transformer").mkdir(parents=True)
    (folder / "model_index.json").write_text("{}")
    (folder / "transformer" / "config.json").write_text(json.dumps(SMALL))
    asked = [SMALL, folder, str(folder), folder / "transformer", folder / "transformer" / "config.json"]
    found = [suanli.count(model, image="64x96", seq=7) for model in asked]
    assert len({each.flops.model for each in found}) == 1
    assert [each.title for each in found] == ["FluxTransformer2DModel"] + ["a-pipeline"] * 4


def test_a_folder_of_a_pipeline_without_a_denoiser_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text("{}")
    with pytest.raises(UnreadableFileError, match=r"the folder holds no config\.json"):
        suanli.count(tmp_path)


def test_what_was_assumed_is_printed() -> None:
    found = suanli.count("flux.1-dev")
    assert found.inputs["assumed"]["seq"] == 512
    assert said(found, "picture 1024x1024 (assumed) = latent 128x128, an autoencoder of 8x8 assumed, = 64x64 patches")
    assert said(found, "one forward is one denoising step")
    assert said(found, "guidance is an input of the model")
    assert (found.unit, found.units) == ("patch", 4096)
    assert said(suanli.count("sd3-medium"), "with classifier-free guidance a step is two forwards")


def test_a_picture_and_a_clip_of_another_size() -> None:
    small, large = (suanli.count("wan2.1-t2v-1.3b", image="480x832", frames=frames) for frames in (1, 81))
    assert (small.units, large.units) == (30 * 52, 21 * 30 * 52)
    assert large.inputs["frames"] == 81
    assert said(large, "clip 81x480x832 = latent 21x60x104")
    assert suanli.count("sd3-medium", image=512).units == 32 * 32


IDLE = [
    ("sd3-medium", {"frames": 9}, "--frames changes nothing: sd3-medium makes no clip"),
    ("gpt2", {"frames": 9}, "--frames changes nothing: gpt2 makes no clip"),
    ("dit-xl-2-256", {"seq": 9}, "--seq changes nothing: the positions of dit-xl-2-256 are fixed by its input"),
    ("flux.1-schnell", {"seq": 512}, "seq 512 is past the model's 256 positions"),
]


@pytest.mark.parametrize(("model", "options", "note"), IDLE, ids=[row[2] for row in IDLE])
def test_options_that_change_nothing_are_told(model: str, options: dict[str, Any], note: str) -> None:
    assert said(suanli.count(model, **options), note)


def test_a_picture_option_is_never_called_idle_where_it_is_used() -> None:
    for model in ("flux.1-dev", "qwen-image", "ltx-video-2b"):  # that cut patches by no convolution
        assert not any("--image changes nothing" in note for note in suanli.count(model, image="512x512").notes)


WRONG = [
    ("wan2.1-t2v-1.3b", {"frames": 80}, "the frames do not divide into latent frames"),
    ("wan2.1-t2v-1.3b", {"frames": 0}, "frames is not possible"),
    ("wan2.1-t2v-1.3b", {"frames": "x"}, "--frames"),
    ("flux.1-dev", {"image": "100x100"}, "does not divide into patches"),
    ("flux.1-dev", {"image": "1x2x3"}, "image_size is not height and width"),
    ("flux.1-dev", {"phase": "decode"}, "flux.1-dev does not decode"),
    ("flux.1-dev", {"convention": "megatron-t"}, "convention"),
    ("flux.1-dev", {"trace": True, "kv_len": 5}, "a trace takes no such option"),
    ("flux.1-dev", {"trace": True, "recompute": "full", "phase": "train"}, "a module is traced with the checkpointing"),
    ("gpt2", {"trace": True, "frames": 5}, "only a model of diffusers takes frames"),
]


@pytest.mark.parametrize(("model", "options", "message"), WRONG, ids=[f"{m} {o}" for m, o, _ in WRONG])
def test_requests_that_cannot_be(model: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        suanli.count(model, **options)


def test_why_and_mfu_take_a_clip() -> None:
    found = suanli.why("flops.model", "wan2.1-t2v-1.3b", frames=5, image="64x64")
    assert found.value == suanli.count("wan2.1-t2v-1.3b", frames=5, image="64x64").flops.model
    run = suanli.mfu("wan2.1-t2v-1.3b", frames=5, image="64x64", gpu="h100-sxm", tokens_per_second=1000)
    assert run.inputs["frames"] == 5


def test_lora_finds_the_matrices_of_attention() -> None:
    found = suanli.count(SMALL, image="64x96", trainable="lora:r=2,targets=to_q+to_v", phase="train")
    assert 0 < found.params.trainable < found.params.total / 2


# --- by trace -----------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_a_trace_of_a_config_is_the_formula() -> None:
    pytest.importorskip("diffusers")
    for phase in ("forward", "train"):
        asked = {"image": "64x96", "seq": 7, "batch": 2, "phase": phase, "convention": "full"}
        formula, trace = suanli.count(SMALL, **asked), suanli.count(SMALL, trace=True, **asked)
        assert (formula.params.total, formula.flops.model) == (trace.params.total, trace.flops.model)
    assert trace.title == "FluxTransformer2DModel"


KEPT = [("dit-xl-2-256", {}, 0.01), ("pixart-alpha-xl-2-512", {}, 0.01), ("stable-diffusion-1.5", {}, 0.05)]


@pytest.mark.torch
@pytest.mark.parametrize(("name", "options", "tolerance"), KEPT, ids=[row[0] for row in KEPT])
def test_activations_are_near_what_autograd_keeps(name: str, options: dict[str, Any], tolerance: float) -> None:
    """Modulation keeps the norm's result and what a gate scales, beside what a plain block keeps."""
    pytest.importorskip("diffusers")
    formula, trace = (suanli.count(name, phase="train", trace=each, **options) for each in (False, True))
    assert formula.bytes.activations == pytest.approx(trace.bytes.activations, rel=tolerance)


@pytest.mark.torch
def test_a_class_without_a_formula_is_traced_on_inputs_given() -> None:
    pytest.importorskip("diffusers")
    config = {"_class_name": "UNet2DModel", "block_out_channels": [8, 16], "norm_num_groups": 4, "sample_size": 8,
              "down_block_types": ["DownBlock2D"] * 2, "up_block_types": ["UpBlock2D"] * 2}  # fmt: skip
    with pytest.raises(ConfigError, match="unknown _class_name 'UNet2DModel'"):
        suanli.count(config)
    with pytest.raises(InputError) as caught:
        suanli.count(config, trace=True)
    expected = "inputs of UNet2DModel must be given in --input; expected sample=SHAPE, timestep=SHAPE."
    assert str(caught.value) == expected
    found = suanli.count(config, trace=True, input="sample=1x3x8x8:fp32,timestep=1:fp32", dtype="fp32")
    assert found.flops.model > 0 and not found.lower_bound


@pytest.mark.torch
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"_class_name": "FluxTransfomer2DModel"}, "diffusers has no such class of models"),
        ({"_class_name": "FluxPipeline"}, "diffusers has no such class of models"),
        ({"_class_name": "os.system"}, "diffusers has no such class of models"),
        (SMALL | {"auto_map": {"AutoModel": "evil.py"}}, "names code of its own, which is never run"),
        (SMALL | {"axes_dims_rope": [3, 5]}, "axes_dims_rope|in module|cannot build"),
    ],
    ids=lambda part: str(part)[:40],
)
def test_what_cannot_be_traced_is_refused(config: dict[str, Any], message: str) -> None:
    pytest.importorskip("diffusers")
    with pytest.raises(InputError, match=message):
        suanli.count(config, trace=True, image="64x96", seq=7)


@pytest.mark.torch
def test_without_diffusers_the_trace_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'suanli\[diffusers\]'"):
        suanli.count(SMALL, trace=True)
    assert suanli.count(SMALL).params.total > 0  # the formula needs it not
