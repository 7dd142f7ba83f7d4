"""Segment Anything's towers, codebooks, and captioners with decoders of their own, against transformers."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.readers.hf import caption_vision, sam_vision, vq_vision

pytestmark = pytest.mark.torch

TEXT = {
    "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip
VIT = {
    "hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
SAM = {
    "hidden_size": 48, "output_channels": 20, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 64,
    "patch_size": 8, "window_size": 3, "global_attn_indexes": [1], "mlp_dim": 88,
}  # fmt: skip
BERT = {
    "vocab_size": 96, "hidden_size": 72, "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 104,
    "max_position_embeddings": 64,
}  # fmt: skip
KOSMOS = {
    "vocab_size": 96, "embed_dim": 72, "layers": 3, "attention_heads": 6, "ffn_dim": 104, "max_position_embeddings": 64
}  # fmt: skip
PACKED = {
    "hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 4, "head_dim": 10,
    "max_num_patches": 20, "patch_embed_hidden_size": 192,
}  # fmt: skip


def floats(model: Any, *shape: int) -> Any:
    import torch

    return torch.ones(*shape, dtype=torch.bfloat16, device=model.device)


def _sees(model: Any) -> Any:
    return model.model.get_image_features(floats(model, 1, 3, 64, 64))


def _sees_twice(model: Any) -> Any:
    return model.model.get_image_features(floats(model, 1, 3, 32, 32), floats(model, 1, 3, 64, 64))


def _codes(model: Any) -> Any:
    """What stands before the words: their numbers are looked up on values."""
    return model.model.vqmodel.encode(floats(model, 1, 3, 32, 32)).quantized_last_hidden_state.flatten(2).mT


def _sees_small(model: Any) -> Any:
    return model.model.get_image_features(floats(model, 1, 3, 32, 32))


def _later(tokens: int) -> Any:
    """A family whose whole forward is traced as it reads: the picture is not looked at apart."""
    return lambda model: floats(model, tokens, 1)


def _reads_all(model: Any, seq: int, extra: int, width: int, device: str) -> Any:
    import torch

    words = torch.ones(1, seq, dtype=torch.long, device=device)
    return model(input_ids=words, pixel_values=floats(model, 1, 3, 32, 32), use_cache=False)


def _reads_all_cached(model: Any, seq: int, extra: int, width: int, device: str) -> Any:
    import torch

    words = torch.ones(1, seq, dtype=torch.long, device=device)
    return model(input_ids=words, pixel_values=floats(model, 1, 3, 32, 32))


def _reads_text(model: Any, seq: int, extra: int, width: int, device: str) -> Any:
    return model.text_model(inputs_embeds=floats(model, 1, seq + extra, width))


CODES = {
    "embed_dim": 10, "num_embeddings": 30, "latent_channels": 12, "base_channels": 32, "channel_multiplier": [1, 1, 2],
    "num_res_blocks": 2,
}  # fmt: skip
OWN = {"own_decoder": True, "reads_on_cpu": True, "device": "cpu"}
CASES: list[dict[str, Any]] = [
    *(
        {"type": kind, "see": _sees, "config": {"text_config": TEXT | {"model_type": "qwen2"}, "vision_config": SAM}}
        for kind in ("got_ocr2", "pp_chart2table")
    ),
    {
        "type": "deepseek_vl_hybrid", "see": _sees_twice,
        "config": {
            "text_config": TEXT | {"model_type": "llama"}, "vision_config": VIT | {"model_type": "siglip_vision_model"},
            "high_res_vision_config": SAM | {"model_type": "sam_vision_model"},
        },
    },
    {
        "type": "chameleon", "see": _codes,
        "config": TEXT | {"vq_config": CODES | {"resolution": 32, "attn_resolutions": [16]},
                          "vocabulary_map": {"<image>": 5}},
    },
    {
        "type": "janus", "see": _sees_small,
        "config": {
            "text_config": TEXT | {"model_type": "llama"},
            "vision_config": VIT | {"mlp_ratio": 3.0, "projection_dim": 72, "depth": 3, "num_image_tokens": 16},
            "vq_config": CODES | {"projection_dim": 72, "image_token_embed_dim": 72, "num_hidden_layers": 3},
        },
    },
    {
        "type": "git", "see": _later(17), "read": _reads_all, **OWN,
        "config": BERT | {"vision_config": VIT, "num_image_with_embedding": 2},
    },
    {
        "type": "blip", "see": _later(0), "read": _reads_all_cached, **OWN,
        "config": {"text_config": BERT | {"encoder_hidden_size": 48}, "vision_config": VIT},
    },
    {
        "type": "kosmos-2", "see": lambda model: model.get_image_features(floats(model, 1, 3, 32, 32)),
        "read": _reads_text, **OWN, "config": {"text_config": KOSMOS, "vision_config": VIT, "latent_query_num": 5},
    },
    {
        "type": "kosmos-2.5", "see": lambda model: model.get_image_features(floats(model, 1, 20, 194)),
        "read": _reads_text, **OWN, "config": {"text_config": KOSMOS, "vision_config": PACKED, "latent_query_num": 5},
    },
]  # fmt: skip


def _name(each: dict[str, Any]) -> str:
    return str(each["type"])


def test_every_family_has_a_case() -> None:
    modules = (sam_vision, caption_vision, vq_vision)
    assert {each["type"] for each in CASES} == {kind for module in modules for kind in module.FAMILIES}


@pytest.mark.parametrize("each", CASES, ids=_name)
def test_parameters_module_by_module(each: dict[str, Any], parameters_agree: Any) -> None:
    parameters_agree(each)


@pytest.mark.parametrize("each", CASES, ids=_name)
def test_forward_flops(each: dict[str, Any], flops_agree: Any) -> None:
    flops_agree(each)
