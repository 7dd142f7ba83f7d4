"""Towers of fixed size before a decoder, against transformers on the meta device."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.readers.hf import cross_vision, query_vision, tile_vision, vision_language

pytestmark = pytest.mark.torch

TEXT = {
    "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip
VIT = {
    "hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
CLIP = VIT | {"model_type": "clip_vision_model", "image_size": 28, "patch_size": 7}
SIGLIP = VIT | {"model_type": "siglip_vision_model"}
PIXTRAL = VIT | {"model_type": "pixtral", "num_hidden_layers": 2, "head_dim": 12}
OPT = {
    "model_type": "opt", "vocab_size": 96, "hidden_size": 72, "ffn_dim": 104, "num_hidden_layers": 2,
    "num_attention_heads": 6, "max_position_embeddings": 64, "word_embed_proj_dim": 72,
}  # fmt: skip
T5 = {
    "model_type": "t5", "vocab_size": 96, "d_model": 72, "d_kv": 10, "d_ff": 104, "num_layers": 2,
    "num_decoder_layers": 3, "num_heads": 6, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
}  # fmt: skip
QFORMER = {
    "vocab_size": 50, "hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 60,
    "encoder_hidden_size": 48, "max_position_embeddings": 30,
}  # fmt: skip
BLIP = {"text_config": OPT, "vision_config": VIT, "qformer_config": QFORMER, "num_query_tokens": 5}


def text(kind: str, **more: Any) -> dict[str, Any]:
    return {**TEXT, "model_type": kind, **more}


def floats(model: Any, *shape: int) -> Any:
    import torch

    return torch.zeros(*shape, dtype=torch.bfloat16, device=model.device)


def ones(model: Any, *shape: int, whole: bool = False) -> Any:
    import torch

    return torch.ones(*shape, dtype=torch.long if whole else torch.bfloat16, device=model.device)


def sees(*shape: int, **more: Any) -> Any:
    return lambda model: model.model.get_image_features(floats(model, *shape), **more)


def sees_values(*shape: int) -> Any:
    """Idefics drops pictures that are nothing but zeros."""
    return lambda model: model.model.get_image_features(ones(model, *shape))


def _prompt(model: Any, length: int) -> dict[str, Any]:
    return {name: ones(model, 1, length, whole=True) for name in ("qformer_input_ids", "qformer_attention_mask")}


def _llama4(model: Any) -> Any:
    seen = model.get_image_features(floats(model, 1, 3, 32, 32), vision_feature_select_strategy="default")
    return model.multi_modal_projector(seen.last_hidden_state.view(1, -1, 60))


def _mllama(model: Any) -> Any:
    tiles, ratio = floats(model, 1, 1, 2, 3, 32, 32), ones(model, 1, 1, whole=True)
    seen = model.model.vision_model(tiles, ratio, ones(model, 1, 1, 2, whole=True))
    return model.model.multi_modal_projector(seen.last_hidden_state)


def _states(length: int, width: int, device: str) -> Any:
    import torch

    return torch.zeros(1, length, width, dtype=torch.bfloat16, device=device)


def read_nested(model: Any, seq: int, extra: int, width: int, device: str) -> Any:
    return model.language_model(inputs_embeds=_states(seq + extra, width, device), use_cache=True)


def read_masked(model: Any, seq: int, extra: int, width: int, device: str) -> Any:
    mask = _states(seq + extra, seq + extra, device)[None]
    return model.language_model(inputs_embeds=_states(seq + extra, width, device), attention_mask=mask)


def read_t5(model: Any, seq: int, extra: int, width: int, device: str) -> Any:
    states = _states(seq + extra, width, device)
    return model.language_model(inputs_embeds=states, decoder_input_ids=ones(model, 1, seq, whole=True), use_cache=True)


def read_across(model: Any, seq: int, extra: int, width: int, device: str) -> Any:
    across, mask = _states(2 * 17, width, device), _states(seq, seq, device)[None]
    return model(inputs_embeds=_states(seq, width, device), cross_attention_states=across, attention_mask=mask)


def case(kind: str, see: Any, config: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "see": see, "config": config, **more}


POINTS = [[28, 56], [56, 28], [56, 56]]
CPU = {"device": "cpu"}
CASES = [
    case("llava", sees(1, 3, 28, 28), {"text_config": text("llama"), "vision_config": CLIP}),
    case(
        "llava", sees(1, 3, 32, 32),
        {"text_config": text("mistral", head_dim=10, sliding_window=5), "vision_config": SIGLIP,
         "vision_feature_layer": [-2, 1], "vision_feature_select_strategy": "full", "tie_word_embeddings": True,
         "multimodal_projector_bias": False}, note="layers",
    ),
    case(
        "llava", sees(1, 3, 32, 32, image_sizes=[[32, 32]]),
        {"text_config": text("mistral", head_dim=10), "vision_config": PIXTRAL, "vision_feature_layer": -1,
         "vision_feature_select_strategy": "full"}, note="pixtral", **CPU,
    ),
    case("vipllava", sees(1, 3, 28, 28),
         {"text_config": text("llama"), "vision_config": CLIP, "vision_feature_layers": [-2, 1]}),
    case("video_llava", sees(1, 3, 28, 28), {"text_config": text("llama"), "vision_config": CLIP}),
    case("llava_next", sees(1, 5, 3, 28, 28, image_sizes=[[40, 50]]),
         {"text_config": text("llama"), "vision_config": CLIP, "image_grid_pinpoints": POINTS,
          "image_size": [40, 50]}),
    case("llava_next_video", sees(1, 5, 3, 28, 28, image_sizes=[[56, 50]]),
         {"text_config": text("llama"), "vision_config": CLIP, "image_grid_pinpoints": POINTS,
          "image_size": [56, 50]}),
    case("llava_onevision", sees(1, 17, 3, 32, 32, image_sizes=[[120, 90]]),
         {"text_config": text("qwen2"), "vision_config": SIGLIP | {"vision_use_head": False},
          "image_grid_pinpoints": [[32, 64], [64, 32], [64, 64], [128, 128]], "image_size": [120, 90],
          "vision_aspect_ratio": "anyres_max_4"}),
    case("paligemma", sees(1, 3, 32, 32),
         {"text_config": text("gemma", head_dim=10), "vision_config": SIGLIP | {"projection_dim": 72},
          "projection_dim": 72}),
    *(
        case(kind, sees(1, 3, 64, 64),
             {"text_config": text("gemma3_text", head_dim=10, sliding_window=5, num_hidden_layers=7),
              "vision_config": SIGLIP | {"image_size": 64}, "mm_tokens_per_image": 16})
        for kind in ("gemma3", "shieldgemma2")
    ),
    *(
        case(kind, sees(1, 3, 32, 32),
             {"text_config": text("cohere2"), "vision_config": SIGLIP, "downsample_factor": 2,
              "alignment_intermediate_size": 56})
        for kind in ("aya_vision", "cohere2_vision")
    ),
    case("deepseek_vl", sees(1, 3, 32, 32), {"text_config": text("llama"), "vision_config": SIGLIP}),
    case("internvl", sees(1, 3, 32, 32),
         {"text_config": text("qwen2"),
          "vision_config": VIT | {"model_type": "internvl_vision", "image_size": [32, 32], "patch_size": [8, 8],
                                  "use_qk_norm": True, "norm_type": "rms_norm", "use_mean_pooling": False}}),
    case("qianfan_ocr", sees(1, 3, 32, 32),
         {"text_config": text("qwen3", head_dim=10),
          "vision_config": VIT | {"image_size": [32, 32], "patch_size": [8, 8]}}),
    case("idefics3", sees_values(1, 1, 3, 32, 32), {"text_config": text("llama"), "vision_config": VIT}, **CPU),
    case("smolvlm", sees_values(1, 1, 3, 32, 32),
         {"text_config": text("llama"), "vision_config": VIT, "scale_factor": 4}, **CPU),
    case("llama4", _llama4,
         {"text_config": text("llama4_text", head_dim=12, num_local_experts=4, num_experts_per_tok=1, moe_layers=[],
                              intermediate_size_mlp=120, attention_chunk_size=8),
          "vision_config": VIT | {"intermediate_size": 192, "vision_output_dim": 60, "projector_input_dim": 60,
                                  "projector_output_dim": 60}}, read=read_masked, **CPU),
    case("ovis2", sees(1, 3, 32, 32),
         {"text_config": text("qwen2"), "hidden_size": 72, "vocab_size": 96,
          "vision_config": VIT | {"vocab_size": 50, "hidden_stride": 2, "qkv_bias": True}}),
    case("fuyu", lambda model: model.model.vision_embed_tokens(floats(model, 1, 16, 192)),
         {"text_config": text("persimmon"), "image_size": 32, "patch_size": 8}),
    case("idefics2", sees_values(1, 1, 3, 16, 32),
         {"text_config": text("mistral", head_dim=10), "vision_config": VIT, "image_size": [16, 32],
          "perceiver_config": {"hidden_size": 72, "resampler_n_latents": 7, "resampler_depth": 2,
                               "resampler_n_heads": 4, "resampler_head_dim": 9, "num_key_value_heads": 2}}, **CPU),
    case("aria", sees(1, 3, 32, 32),
         {"text_config": text("aria_text"), "vision_config": VIT, "projector_patch_to_query_dict": {"16": 5}},
         reads_on_cpu=True, **CPU),
    case("blip-2", lambda model: model.get_image_features(floats(model, 1, 3, 32, 32)), BLIP, read=read_nested, **CPU),
    case("blip-2", lambda model: model.get_image_features(floats(model, 1, 3, 32, 32)), BLIP | {"text_config": T5},
         read=read_t5, note="t5", **CPU),
    case("instructblip",
         lambda model, text: model.get_image_features(floats(model, 1, 3, 32, 32), **_prompt(model, text)), BLIP,
         read=read_nested, **CPU),
    case("instructblipvideo",
         lambda model, text: model.get_video_features(floats(model, 1, 1, 3, 32, 32), **_prompt(model, text)), BLIP,
         read=read_nested, **CPU),
    case("mllama", _mllama,
         {"text_config": text("mllama_text_model", num_hidden_layers=4, cross_attention_layers=[1, 3]),
          "vision_config": {"hidden_size": 48, "num_hidden_layers": 3, "num_global_layers": 2, "attention_heads": 4,
                            "intermediate_size": 88, "vision_output_dim": 144, "image_size": 32, "patch_size": 8,
                            "max_num_tiles": 2, "intermediate_layers_indices": [0, 2],
                            "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1]]}},
         read=read_across, own_decoder=True, more=2 * 48 * 48,
         why="transformers makes the mask of tiles by an outer product", **CPU),
]  # fmt: skip
IDS = ["-".join(filter(None, (each["type"], each.get("note")))) for each in CASES]


def test_every_family_has_a_case() -> None:
    modules = (vision_language, tile_vision, query_vision, cross_vision)
    assert {each["type"] for each in CASES} == {kind for module in modules for kind in module.FAMILIES}


@pytest.mark.parametrize("each", CASES, ids=IDS)
def test_parameters_module_by_module(each: dict[str, Any], parameters_agree: Any) -> None:
    parameters_agree(each)


@pytest.mark.parametrize("each", CASES, ids=IDS)
def test_forward_flops(each: dict[str, Any], flops_agree: Any) -> None:
    flops_agree(each)
