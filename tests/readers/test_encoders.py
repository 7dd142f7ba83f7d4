"""Encoders with a masked-language head against transformers: default configs and small odd ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.formulas.counting import band_pairs
from suanli.readers.hf import encoders, encoders_other, encoders_own, encoders_rotary, read_hf_config

pytestmark = pytest.mark.torch

SMALL = {
    "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 6,
    "max_position_embeddings": 64, "type_vocab_size": 3,
}  # fmt: skip
GROUPED = SMALL | {"num_key_value_heads": 2, "pad_token_id": 0}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
MIXED = {"layer_types": ["full_attention", "sliding_attention", "sliding_attention"]}
XLM = {
    "vocab_size": 96, "emb_dim": 72, "n_layers": 3, "n_heads": 6, "max_position_embeddings": 64, "n_langs": 3,
}  # fmt: skip
MOBILE = SMALL | {"embedding_size": 24, "intra_bottleneck_size": 48}
RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}

CLASSES = {
    "albert": "AlbertForMaskedLM", "camembert": "CamembertForMaskedLM", "convbert": "ConvBertForMaskedLM",
    "data2vec-text": "Data2VecTextForMaskedLM", "deberta": "DebertaForMaskedLM", "deberta-v2": "DebertaV2ForMaskedLM",
    "flaubert": "FlaubertWithLMHeadModel", "xlm": "XLMWithLMHeadModel", "mobilebert": "MobileBertForMaskedLM",
    "ernie": "ErnieForMaskedLM", "esm": "EsmForMaskedLM", "esmc": "EsmcForMaskedLM",
    "eurobert": "EuroBertForMaskedLM", "fnet": "FNetForMaskedLM", "gte": "GteForMaskedLM", "ibert": "IBertForMaskedLM",
    "jina_embeddings_v3": "JinaEmbeddingsV3ForMaskedLM", "layoutlm": "LayoutLMForMaskedLM", "luke": "LukeForMaskedLM",
    "megatron-bert": "MegatronBertForMaskedLM", "modernbert": "ModernBertForMaskedLM", "mpnet": "MPNetForMaskedLM",
    "nomic_bert": "NomicBertForMaskedLM", "nystromformer": "NystromformerForMaskedLM",
    "rembert": "RemBertForMaskedLM", "roberta-prelayernorm": "RobertaPreLayerNormForMaskedLM",
    "roc_bert": "RoCBertForMaskedLM", "roformer": "RoFormerForMaskedLM", "squeezebert": "SqueezeBertForMaskedLM",
    "tapas": "TapasForMaskedLM", "ultrabert": "UltrabertForMaskedLM", "xlm-roberta": "XLMRobertaForMaskedLM",
    "xlm-roberta-xl": "XLMRobertaXLForMaskedLM", "xmod": "XmodForMaskedLM", "yoso": "YosoForMaskedLM",
}  # fmt: skip
DEFAULTS: dict[str, dict[str, Any]] = {
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},  # has no vocabulary of its own
    "xmod": {"default_language": "en_XX"},
}
ODD: list[tuple[str, dict[str, Any]]] = [
    ("albert", SMALL | {"num_hidden_layers": 7, "num_hidden_groups": 2, "inner_group_num": 2, "embedding_size": 40}),
    ("camembert", SMALL),
    ("convbert", SMALL | {"embedding_size": 40, "conv_kernel_size": 5}),
    ("data2vec-text", SMALL),
    ("deberta", SMALL),
    ("deberta-v2", SMALL | RELATIVE | {"pos_att_type": ["c2p"]}),
    ("deberta-v2", SMALL | RELATIVE | {
        "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False,
        "conv_kernel_size": 3,
    }),
    ("ernie", SMALL | {"use_task_id": True}),
    ("esm", SMALL | {
        "pad_token_id": 1, "mask_token_id": 32, "position_embedding_type": "rotary", "emb_layer_norm_before": True,
    }),
    ("esmc", SMALL | {"num_key_value_heads": 6, "pad_token_id": 0, "attention_bias": True, "mlp_bias": True}),
    ("eurobert", GROUPED | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 10}),
    ("fnet", SMALL),
    ("gte", SMALL),
    ("ibert", SMALL),
    ("jina_embeddings_v3", SMALL),
    ("layoutlm", SMALL | {"max_2d_position_embeddings": 40}),
    ("luke", SMALL | {"entity_vocab_size": 50, "entity_emb_size": 20}),
    ("megatron-bert", SMALL),
    ("modernbert", SMALL | MIXED | TOKENS | {
        "local_attention": 8, "attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True,
        "tie_word_embeddings": False,
    }),
    ("mpnet", SMALL),
    ("nomic_bert", SMALL),
    ("nystromformer", SMALL | {"num_landmarks": 8, "segment_means_seq_len": 8, "conv_kernel_size": 5}),
    ("rembert", SMALL | {"input_embedding_size": 40, "output_embedding_size": 88}),
    ("roberta-prelayernorm", SMALL),
    ("roc_bert", SMALL | {"pronunciation_embed_dim": 40, "shape_embed_dim": 24}),
    ("roformer", SMALL | {"embedding_size": 40}),
    ("squeezebert", SMALL | {"embedding_size": 72}),
    ("tapas", SMALL | {"type_vocab_sizes": [3, 5, 6, 2, 4, 4, 3]}),
    ("ultrabert", GROUPED | MIXED | {"sliding_window": 4}),
    ("xlm-roberta", SMALL),
    ("xlm-roberta-xl", SMALL),
    ("xmod", SMALL | {"languages": ["a", "b"], "default_language": "a", "adapter_layer_norm": True, "pre_norm": True}),
    ("xlm", XLM),
    ("flaubert", XLM | {"n_langs": 1}),
    ("mobilebert", MOBILE | {"num_feedforward_networks": 2}),
    ("mobilebert", MOBILE | {"use_bottleneck_attention": True, "trigram_input": False}),
    ("mobilebert", MOBILE | {"use_bottleneck": False, "num_feedforward_networks": 1}),
    ("yoso", SMALL),
]  # fmt: skip
FOUR_DIMENSIONS = {
    "squeezebert", "convbert", "ibert", "luke", "megatron-bert", "nystromformer", "rembert", "roformer", "tapas"
}  # fmt: skip
ONES = {"deberta-v2", "layoutlm", "yoso"}
VALUES_SEEN = {"deberta", "flaubert", "xlm", "xmod"}  # these look at values, which meta tensors have not
WIDE = {"deberta", "fnet"}  # these do not run in bfloat16


def check(agrees: Callable[..., None], model_type: str, values: dict[str, Any]) -> None:
    inputs: dict[str, Any] = {"input_ids": ("S",)}
    if model_type in FOUR_DIMENSIONS:
        inputs["attention_mask"] = (1, "S", "S")
    elif model_type in ONES:
        inputs["attention_mask"] = ("S",)
    else:
        inputs["use_cache"] = True
    device = "cpu" if model_type in VALUES_SEEN or "relative_attention" in values else "meta"
    dtype = "float32" if model_type in WIDE or "relative_attention" in values else "bfloat16"
    agrees(model_type, CLASSES[model_type], values, inputs, size={}, lengths=(16, 29), device=device, dtype=dtype)


@pytest.mark.parametrize(("model_type", "values"), ODD, ids=[f"{t}-{i}" for i, (t, _) in enumerate(ODD)])
def test_small_and_odd(model_type: str, values: dict[str, Any], agrees: Callable[..., None]) -> None:
    check(agrees, model_type, values)


@pytest.mark.full
@pytest.mark.parametrize("model_type", sorted(CLASSES))
def test_default_config(model_type: str, agrees: Callable[..., None]) -> None:
    check(agrees, model_type, DEFAULTS.get(model_type, {}))


def test_every_family_has_cases() -> None:
    families = {**encoders.FAMILIES, **encoders_other.FAMILIES, **encoders_own.FAMILIES, **encoders_rotary.FAMILIES}
    assert {model_type for model_type, _ in ODD} == set(CLASSES) == set(families)


@pytest.mark.parametrize(
    ("model_type", "change"),
    [
        ("deberta", {"relative_attention": True}),
        ("yoso", {"use_expectation": False}),
        ("nystromformer", {"num_landmarks": 8, "segment_means_seq_len": 16}),
        ("camembert", {"is_decoder": True}),
        ("luke", {"tie_word_embeddings": False}),
        ("mobilebert", {"tie_word_embeddings": False}),
        ("fnet", {"use_tpu_fourier_optimizations": True}),
    ],
)
def test_what_is_not_read_is_refused(model_type: str, change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"not read|relative|tied"):
        read_hf_config({"model_type": model_type, **SMALL, **change}, "refused")


def test_shared_layers_hold_their_weights_once_and_run_each_time() -> None:
    """ALBERT with 12 layers has the parameters of one, and twelve times its work."""
    one = read_hf_config({"model_type": "albert", **SMALL, "num_hidden_layers": 1}, "one")
    twelve = read_hf_config({"model_type": "albert", **SMALL, "num_hidden_layers": 12}, "twelve")
    assert one.params_total == twelve.params_total
    assert sum(placed.times for placed in twelve.leaves() if placed.layer.kind == "attention") == 12


@pytest.mark.parametrize(("positions", "reach"), [(1, 3), (5, 1), (7, 3), (7, 6), (7, 50)])
def test_pairs_of_a_two_sided_window(positions: int, reach: int) -> None:
    seen = sum(abs(i - j) <= reach for i in range(positions) for j in range(positions))
    assert band_pairs(positions, reach) == seen
