"""Towers for pictures of any size, and for sound, before a decoder, against transformers."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.readers.hf import audio_language, glm_vision, native_vision, omni_vision, packed_vision
from suanli.readers.hf.anyres import Pinpoints

pytestmark = pytest.mark.torch

TEXT = {
    "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip
BLOCKS = {
    "depth": 3, "hidden_size": 48, "num_heads": 4, "intermediate_size": 100, "out_hidden_size": 72, "patch_size": 14,
}  # fmt: skip
WINDOWS = BLOCKS | {"fullatt_block_indexes": [1]}
DEEP = BLOCKS | {"patch_size": 16, "num_position_embeddings": 64, "deepstack_visual_indexes": [0, 2]}
GLM = BLOCKS | {"image_size": 56}
PIXTRAL = {
    "model_type": "pixtral", "hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 2,
    "num_attention_heads": 4, "image_size": 64, "patch_size": 8, "head_dim": 12,
}  # fmt: skip
PACKED = {
    "hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 4, "patch_size": 14,
}  # fmt: skip
EXPERTS = {
    "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
}  # fmt: skip
LATENT = EXPERTS | {
    "num_key_value_heads": 6, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
    "v_head_dim": 6, "n_group": 2,
}  # fmt: skip
AUDIO = {
    "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_mel_bins": 8,
    "max_source_positions": 20,
}  # fmt: skip
AUDIO_BART = {
    "d_model": 48, "encoder_ffn_dim": 88, "encoder_layers": 3, "encoder_attention_heads": 4, "num_mel_bins": 8,
    "max_source_positions": 20,
}  # fmt: skip
EARS = {
    "d_model": 48, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 88, "num_mel_bins": 12,
    "output_dim": 72,
}  # fmt: skip


def text(kind: str, *sections: int, **more: Any) -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": list(sections)}
    if kind == "glm4v_moe_text":
        rope["partial_rotary_factor"] = 0.5
    return {**TEXT, "model_type": kind, **more, **({"rope_parameters": rope} if sections else {})}


def floats(model: Any, *shape: int) -> Any:
    import torch

    return torch.zeros(*shape, dtype=torch.bfloat16, device=model.device)


def whole(*values: Any) -> Any:
    import torch

    return torch.tensor(values, dtype=torch.long)


def sees(rows: int, columns: int, pixels: int, **more: Any) -> Any:
    def see(model: Any) -> Any:
        kept = {name: whole(*value) for name, value in more.items()}
        return model.model.get_image_features(floats(model, rows * columns, pixels), whole([1, rows, columns]), **kept)

    return see


def sees_patches(model: Any) -> Any:
    return model.model.get_image_features(floats(model, 24, 3, 14, 14), whole([1, 4, 6]))


def sees_size(model: Any) -> Any:
    return model.model.get_image_features(floats(model, 1, 3, 48, 32), image_sizes=[[48, 32]])


def _lfm2(model: Any) -> Any:
    return model.model.get_image_features(floats(model, 1, 24, 192), whole([4, 6]), whole([1] * 24))


def hears(model: Any) -> Any:
    return model.model.get_audio_features(floats(model, 1, 8, 40))


def hears_masked(model: Any) -> Any:
    return model.model.get_audio_features(floats(model, 1, 8, 40), whole([1] * 40))


def hears_in_parts(model: Any) -> Any:
    """Tower and projector: what comes between looks at values."""
    masked = {"input_features_mask": whole([1] * 40)} if model.config.model_type == "musicflamingo" else {}
    heard = model.model.audio_tower(floats(model, 1, 8, 40), **masked)
    return model.model.multi_modal_projector(heard.last_hidden_state)


def case(kind: str, see: Any, decoder: dict[str, Any], tower: dict[str, Any], **more: Any) -> dict[str, Any]:
    own = {key: more.pop(key) for key in ("more", "why", "device") if key in more}
    part = "audio_config" if "num_mel_bins" in tower else "vision_config"
    return {
        "type": kind, "see": see, "device": "cpu", **own, "config": {"text_config": decoder, part: tower, **more}
    }  # fmt: skip


SMALL, LARGE, PATCH14, PATCH16 = [56, 84], [280, 168], 2 * 3 * 14 * 14, 2 * 3 * 16 * 16
CONV_ENDS = 3 * 2 * 2 * 72 * 3  # three short convolutions of 3 that run two positions past the end, 72 channels
NATIVE = [
    case("mistral3", sees_size, text("mistral", head_dim=10), PIXTRAL, image_size=[48, 32], tie_word_embeddings=False),
    case("lighton_ocr", sees_size, text("qwen3", head_dim=10), PIXTRAL, image_size=[48, 32]),
    case("qwen2_vl", sees(4, 6, PATCH14), text("qwen2_vl_text", 2, 2, 2),
         {"depth": 3, "embed_dim": 48, "num_heads": 4, "mlp_ratio": 3, "hidden_size": 72, "patch_size": 14},
         image_size=SMALL),
    case("qwen2_5_vl", sees(20, 12, PATCH14), text("qwen2_5_vl_text", 2, 2, 2), WINDOWS, image_size=LARGE),
    case("hyperclovax_vision_v2", sees(20, 12, PATCH14), text("hyperclovax"),
         WINDOWS | {"model_type": "qwen2_5_vl_vision", "out_hidden_size": 64}, image_size=LARGE),
    *(
        case(kind, sees(4, 6, PATCH16), text("qwen3_vl_text", head_dim=10), DEEP, image_size=[64, 96])
        for kind in ("qwen3_vl", "cosmos3_omni")
    ),
    case("qwen3_vl_moe", sees(4, 6, PATCH16),
         text("qwen3_vl_moe_text", head_dim=12, num_local_experts=8, num_experts_per_tok=3, moe_intermediate_size=40),
         DEEP, image_size=[64, 96]),
    *(
        case(kind, sees(4, 6, PATCH14), text("glm4v_text", 2, 2, 2), GLM, image_size=SMALL)
        for kind in ("glm4v", "glm46v", "glmga")
    ),
    case("glm_ocr", sees(4, 6, PATCH14), text("glm_ocr_text", 2, 2, 2), GLM, image_size=SMALL),
    case("glm4v_moe", sees(4, 6, PATCH14), text("glm4v_moe_text", 1, 1, 1, head_dim=12, **EXPERTS), GLM,
         image_size=SMALL),
]  # fmt: skip
SCANNED = [  # their decoders hold scans, which transformers runs in chunks: parameters only
    case(kind, sees(4, 6, PATCH16), text(f"{kind}_text", head_dim=16, num_hidden_layers=4),
         BLOCKS | {"patch_size": 16, "num_position_embeddings": 64}, image_size=[64, 96])
    for kind in ("qwen3_5", "qwen3_5_moe")
]  # fmt: skip
OTHERS = [
    case("video_llama_3", sees(4, 6, 3 * 14 * 14, image_merge_sizes=[1]), text("qwen2"), PACKED, image_size=SMALL),
    case("kimi_k25", sees_patches, text("deepseek_v3", **LATENT), PACKED | {"pos_emb_height": 8, "pos_emb_width": 8},
         projection_hidden_size=48, image_size=SMALL),
    case("paddleocr_vl", sees_patches, text("paddleocr_vl_text"), PACKED | {"image_size": 56}, image_size=SMALL),
    case("exaone4_5", sees(20, 12, PATCH14), text("exaone4"), WINDOWS | {"num_key_value_heads": 2}, image_size=LARGE),
    case("lfm2_vl", _lfm2, text("lfm2", num_hidden_layers=4, full_attn_idxs=[1]),
         PACKED | {"patch_size": 8, "num_patches": 36}, projector_hidden_size=50, image_size=[32, 48], more=CONV_ENDS,
         why="transformers pads short convolutions on both sides and cuts what is past the end"),
    case("qwen2_5_omni_thinker", sees(20, 12, PATCH14), text("qwen2_5_omni_text", 2, 2, 2), WINDOWS, image_size=LARGE,
         audio_config=EARS),
    case("qwen3_omni_moe_thinker", sees(4, 6, PATCH16),
         text("qwen3_omni_moe_text", 2, 2, 2, head_dim=12, num_experts=8, num_experts_per_tok=3,
              moe_intermediate_size=40),
         DEEP, image_size=[64, 96], audio_config=EARS | {"downsample_hidden_size": 20}),
    case("minimax_m3_vl", sees(4, 6, PATCH14),
         text("minimax_m3_vl_text", head_dim=12, num_local_experts=4, num_experts_per_tok=2), PACKED,
         projector_hidden_size=56, image_size=SMALL),
]  # fmt: skip
HEARD = [
    case("voxtral", hears, text("llama"), AUDIO, device="meta"),
    case("glmasr", hears_masked, text("llama"),
         AUDIO | {"intermediate_size": 192, "max_position_embeddings": 20, "num_key_value_heads": 2}),
    case("qwen2_audio", hears_in_parts, text("qwen2"), AUDIO_BART, device="meta"),
    case("audioflamingo3", hears_masked, text("qwen2"), AUDIO, projector_bias=False),
    case("musicflamingo", hears_in_parts, text("qwen2"), AUDIO | {"model_type": "audioflamingo3_encoder"}),
]  # fmt: skip
CASES = [*NATIVE, *OTHERS, *HEARD]


def _name(each: dict[str, Any]) -> str:
    return str(each["type"])


def test_every_family_has_a_case() -> None:
    modules = (native_vision, glm_vision, packed_vision, omni_vision, audio_language)
    assert {each["type"] for each in (*CASES, *SCANNED)} == {kind for module in modules for kind in module.FAMILIES}


@pytest.mark.parametrize("each", [*CASES, *SCANNED], ids=_name)
def test_parameters_module_by_module(each: dict[str, Any], parameters_agree: Any) -> None:
    parameters_agree(each)


@pytest.mark.parametrize("each", CASES, ids=_name)
def test_forward_flops(each: dict[str, Any], flops_agree: Any) -> None:
    flops_agree(each)


# --- pictures -----------------------------------------------------------------------------------------------------

CANVASES = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
SIZES = [(h, w) for h in (1, 100, 335, 336, 500, 672, 999, 2000) for w in (2, 99, 336, 450, 672, 1000, 3000)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_tiles_of_a_picture(size: tuple[int, int]) -> None:
    import torch
    from transformers.models.llava_next import modeling_llava_next as published

    points = Pinpoints(tuple((h, w) for h, w in CANVASES), 336)
    assert points.tiles(size) == published.image_size_to_num_patches(list(size), CANVASES, 336)
    rows, columns = published.get_anyres_image_grid_shape(list(size), CANVASES, 336)
    shown = published.unpad_image(torch.zeros(1, rows * 24, columns * 24), list(size))
    assert points.unpadded(size, 24, None) == tuple(shown.shape[1:])


@pytest.mark.parametrize("rows", [2, 8, 10, 30])
@pytest.mark.parametrize("columns", [2, 6, 8, 34])
def test_windows_of_a_picture(rows: int, columns: int) -> None:
    from transformers.vision_utils import get_vision_window_index

    _, ends = get_vision_window_index(whole([1, rows, columns]), 2, 112, 14)
    lengths = [int(length) for length in ends[1:] - ends[:-1]]
    grid = native_vision.Grid(size=(rows * 14, columns * 14), sides=(rows, columns), merge=2)
    ours = [length for length, times in native_vision.windows(grid, 4) for _ in range(times)]
    assert sorted(ours) == sorted(lengths)
