"""Picture classifiers against transformers: default configs and small odd ones, pictures that are not square."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.errors import ConfigError
from suanli.nouns.workload import Workload
from suanli.readers.hf import convnets, mixed_nets, ocr_nets, read_hf_config, stages, vit_like

pytestmark = pytest.mark.torch

SEVEN = {"num_labels": 7}
VIT = SEVEN | {
    "hidden_size": 72, "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 104, "patch_size": 8,
}  # fmt: skip
TOWERS = {
    "text_config": {"vocab_size": 96, "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 2,
                    "num_attention_heads": 4, "max_position_embeddings": 64},
    "vision_config": {"hidden_size": 72, "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 6,
                      "image_size": 32, "patch_size": 8},
}  # fmt: skip
STAGES = SEVEN | {"depths": [1, 2], "hidden_sizes": [24, 40]}
SWIN = SEVEN | {
    "depths": [1, 2], "num_heads": [2, 4], "embed_dim": 24, "window_size": 5, "image_size": 72, "mlp_ratio": 3.0,
}  # fmt: skip
PYRAMID = STAGES | {
    "patch_sizes": [5, 3], "strides": [4, 2], "num_attention_heads": [2, 4], "mlp_ratios": [3, 2],
    "num_encoder_blocks": 2, "sr_ratios": [4, 1],
}  # fmt: skip
KERNELS = {"conv_layer_kernel_sizes": [[[3, 3], [1, 3]], [[3, 3], [3, 1]]], "conv_layer_strides": [[1, 2], [2, 1]]}
FOCAL = SEVEN | {
    "embed_dim": 24, "depths": [1, 2], "focal_levels": [2, 1], "focal_windows": [3, 5], "use_conv_embed": True,
    "use_layerscale": True, "use_post_layernorm_in_modulation": True, "image_size": 64, "hidden_sizes": [24, 48],
}  # fmt: skip
BEIT = VIT | {"use_absolute_position_embeddings": True, "layer_scale_init_value": 0.0}

CLASSES = {
    "beit": "BeitForImageClassification", "bit": "BitForImageClassification",
    "convnext": "ConvNextForImageClassification", "convnextv2": "ConvNextV2ForImageClassification",
    "data2vec-vision": "Data2VecVisionForImageClassification", "deit": "DeiTForImageClassification",
    "dinov2": "Dinov2ForImageClassification", "dinov2_with_registers": "Dinov2WithRegistersForImageClassification",
    "donut-swin": "DonutSwinForImageClassification", "efficientnet": "EfficientNetForImageClassification",
    "focalnet": "FocalNetForImageClassification", "hgnet_v2": "HGNetV2ForImageClassification",
    "ijepa": "IJepaForImageClassification", "metaclip_2": "MetaClip2ForImageClassification",
    "mobilenet_v1": "MobileNetV1ForImageClassification", "mobilenet_v2": "MobileNetV2ForImageClassification",
    "poolformer": "PoolFormerForImageClassification", "pp_lcnet": "PPLCNetForImageClassification",
    "pvt": "PvtForImageClassification", "pvt_v2": "PvtV2ForImageClassification",
    "regnet": "RegNetForImageClassification", "segformer": "SegformerForImageClassification",
    "siglip": "SiglipForImageClassification", "swin": "SwinForImageClassification",
    "swinv2": "Swinv2ForImageClassification", "textnet": "TextNetForImageClassification",
    "vit_msn": "ViTMSNForImageClassification", "mobilevit": "MobileViTForImageClassification",
    "mobilevitv2": "MobileViTV2ForImageClassification", "cvt": "CvtForImageClassification",
    "levit": "LevitForImageClassification", "swiftformer": "SwiftFormerForImageClassification",
    "hiera": "HieraForImageClassification",
}  # fmt: skip
DEFAULT_SIZES = {"efficientnet": (600, 600), "textnet": (640, 640), "mobilevit": (256, 256)}
SECOND_SIZES = {  # a picture other than the config's, where the class takes one
    "regnet": (200, 257), "convnext": (192, 256), "poolformer": (200, 256), "mobilenet_v2": (192, 256),
    "segformer": (192, 256), "hgnet_v2": (192, 256), "bit": (192, 256),
}  # fmt: skip
ODD: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("beit", BEIT | {"image_size": 40}, (40, 40)),
    ("data2vec-vision", BEIT | {"image_size": 40}, (40, 40)),
    ("deit", VIT | {"qkv_bias": False, "image_size": [40, 56]}, (40, 56)),
    ("ijepa", VIT | {"image_size": [40, 56]}, (40, 56)),
    ("vit_msn", VIT | {"image_size": [40, 56]}, (40, 56)),
    ("dinov2", VIT | {"mlp_ratio": 3, "qkv_bias": False, "image_size": 40}, (40, 40)),
    ("dinov2_with_registers", VIT | {"mlp_ratio": 3, "num_register_tokens": 3, "image_size": 40}, (40, 40)),
    ("siglip", SEVEN | TOWERS, (32, 32)),
    ("metaclip_2", SEVEN | TOWERS, (32, 32)),
    ("convnext", STAGES | {"num_stages": 2, "layer_scale_init_value": 0.0}, (65, 72)),
    ("convnextv2", STAGES | {"num_stages": 2}, (65, 72)),
    (
        "poolformer",
        STAGES | {"patch_sizes": [5, 3], "strides": [4, 2], "padding": [2, 1], "num_encoder_blocks": 2,
                  "mlp_ratio": 3.0, "use_layer_scale": False},
        (65, 72),
    ),
    ("swin", SWIN | {"use_absolute_embeddings": True, "qkv_bias": False}, (72, 72)),
    ("donut-swin", SWIN, (84, 100)),
    ("swinv2", SWIN, (84, 100)),
    (
        "pvt",
        PYRAMID | {"patch_sizes": [4, 2], "sequence_reduction_ratios": [4, 1], "qkv_bias": False, "image_size": 64},
        (64, 64),
    ),
    ("pvt_v2", PYRAMID | {"qkv_bias": False, "image_size": 64}, (72, 96)),
    ("segformer", PYRAMID, (72, 96)),
    (
        "regnet",
        SEVEN | {"layer_type": "x", "hidden_sizes": [24, 48], "depths": [1, 2], "groups_width": 8,
                 "embedding_size": 16, "downsample_in_first_stage": False},
        (65, 72),
    ),
    (
        "bit",
        SEVEN | {"layer_type": "bottleneck", "hidden_sizes": [64, 96], "depths": [1, 2], "embedding_size": 32,
                 "global_padding": "same", "embedding_dynamic_padding": True, "num_groups": 8},
        (65, 72),
    ),
    (
        "bit", SEVEN | {"hidden_sizes": [64, 96], "depths": [1, 2], "embedding_size": 32, "num_groups": 8}, (65, 70)
    ),
    ("mobilenet_v1", SEVEN | {"depth_multiplier": 0.75, "tf_padding": False}, (65, 72)),
    (
        "mobilenet_v2",
        SEVEN | {"depth_multiplier": 0.35, "tf_padding": False, "first_layer_is_expansion": False},
        (65, 72),
    ),
    ("mobilenet_v2", {"output_stride": 8, "finegrained_output": False}, (97, 72)),
    (
        "efficientnet",
        SEVEN | {"width_coefficient": 1.0, "depth_coefficient": 1.0, "image_size": 224, "hidden_dim": 1280,
                 "depthwise_padding": [16]},
        (240, 200),
    ),
    ("pp_lcnet", SEVEN | {"scale": 0.5}, (65, 72)),
    (
        "textnet",
        SEVEN | KERNELS | {"hidden_sizes": [16, 24, 40], "stem_out_channels": 16, "depths": [2, 2]},
        (65, 72),
    ),
    ("hgnet_v2", SEVEN, (65, 72)),
    ("focalnet", FOCAL, (64, 64)),
    (
        "mobilevit",
        SEVEN
        | {"hidden_sizes": [24, 32, 40], "neck_hidden_sizes": [8, 16, 24, 32, 40, 48, 64], "output_stride": 16,
           "mlp_ratio": 1.5, "qkv_bias": False},
        (72, 100),
    ),
    ("mobilevitv2", SEVEN | {"width_multiplier": 0.5, "n_attn_blocks": [1, 2, 1], "output_stride": 8}, (64, 96)),
    (
        "cvt",
        SEVEN
        | {"depth": [1, 2, 3], "embed_dim": [24, 48, 72], "num_heads": [1, 2, 3], "mlp_ratio": [2.0, 3.0, 2.0],
           "qkv_bias": [True, False, True]},
        (65, 100),
    ),
    (
        "levit",
        SEVEN
        | {"image_size": 96, "hidden_sizes": [64, 96, 128], "num_attention_heads": [2, 3, 4], "depths": [1, 2, 1],
           "key_dim": [16, 16, 16], "mlp_ratio": [3, 2, 2], "attention_ratio": [2, 3, 2]},
        (96, 96),
    ),
    (
        "swiftformer",
        SEVEN
        | {"depths": [2, 1], "embed_dims": [24, 40], "downsamples": [True, True], "mlp_ratio": 3,
           "use_layer_scale": False},
        (65, 100),
    ),
    (
        "hiera",
        SEVEN
        | {"image_size": [64, 128], "depths": [1, 2], "num_heads": [2, 4], "embed_dim": 24, "num_query_pool": 1,
           "masked_unit_size": [4, 4], "masked_unit_attention": [True, False], "mlp_ratio": 3.0},
        (64, 128),
    ),
]  # fmt: skip


def check(agrees: Callable[..., None], model_type: str, values: dict[str, Any], picture: tuple[int, int]) -> None:
    size = {} if "vision_config" in values or model_type in ("siglip", "metaclip_2") else {"image_size": [*picture]}
    agrees(
        model_type, CLASSES[model_type], values, {"pixel_values": (3, *picture)}, size=size, lengths=(16,),
        device="meta", dtype="bfloat16",
    )  # fmt: skip


@pytest.mark.parametrize(("model_type", "values", "picture"), ODD, ids=[f"{t}-{i}" for i, (t, *_) in enumerate(ODD)])
def test_small_and_odd(
    model_type: str, values: dict[str, Any], picture: tuple[int, int], agrees: Callable[..., None]
) -> None:
    check(agrees, model_type, values, picture)


@pytest.mark.full
@pytest.mark.parametrize("model_type", sorted(CLASSES))
def test_default_config(model_type: str, agrees: Callable[..., None]) -> None:
    check(agrees, model_type, {}, DEFAULT_SIZES.get(model_type, (224, 224)))
    if model_type in SECOND_SIZES:
        check(agrees, model_type, {}, SECOND_SIZES[model_type])


STAGED = ["regnet", "bit", "convnext", "efficientnet", "poolformer", "swin", "cvt"]


@pytest.mark.parametrize("model_type", STAGED)
def test_a_training_step(model_type: str) -> None:
    """Only the first convolution reads the picture: in every other the input has a gradient."""
    transformers = pytest.importorskip("transformers")
    from suanli.readers.torch_module.hf_meta import trace_config

    values = next(values for kind, values, _ in ODD if kind == model_type)
    config = transformers.AutoConfig.for_model(model_type, **values).to_dict() | {"image_size": [96, 96]}
    head = "AutoModelForImageClassification"
    seen = trace_config(config, batch=2, train=True, dtype="float32", head=head)
    ledger = build_ledger(read_hf_config(config, "case"), Workload(batch=2, phase="train"), find_convention("full"))
    assert ledger.model_flops == seen.model_flops


def test_every_family_has_cases() -> None:
    families = {**vit_like.FAMILIES, **stages.FAMILIES, **convnets.FAMILIES, **ocr_nets.FAMILIES, **mixed_nets.FAMILIES}
    assert {model_type for model_type, *_ in ODD} == set(CLASSES) == set(families)


@pytest.mark.parametrize(
    ("model_type", "values"),
    [
        ("swin", SWIN | {"image_size": 30, "patch_size": 4}),
        ("beit", BEIT | {"use_relative_position_bias": True}),
        ("dinov2", VIT | {"use_swiglu_ffn": True}),
        ("hgnet_v2", {"use_learnable_affine_block": True}),
        ("pp_lcnet", {"block_configs": [[[3, 16]]]}),
        ("regnet", STAGES | {"groups_width": 11}),
    ],
)
def test_what_is_not_read_is_refused(model_type: str, values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        read_hf_config({"model_type": model_type, **values}, "refused")


GPT = SEVEN | {"vocab_size": 96, "n_embd": 72, "n_layer": 3, "n_head": 6, "n_positions": 64, "n_inner": 104}


@pytest.mark.parametrize("values", [GPT, pytest.param({}, marks=pytest.mark.full)], ids=["small", "default"])
def test_imagegpt_reads_colours_one_after_another(values: dict[str, Any], agrees: Callable[..., None]) -> None:
    agrees(
        "imagegpt", "ImageGPTForImageClassification", values, {"input_ids": ("S",)}, size={}, lengths=(16, 29),
        device="cpu", dtype="bfloat16",
    )  # fmt: skip
