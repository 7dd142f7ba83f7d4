"""Families of the GPT shape on one small config: every parameter and FLOP by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.nouns.layers import Elementwise
from suanli.readers.hf import read_hf_config
from suanli.readers.hf.gpt_like import FAMILIES

# width 8, two layers, four heads of two, vocabulary 10, seven positions
GPT = {"n_embd": 8, "n_layer": 2, "n_head": 4, "vocab_size": 10, "n_positions": 7}
HF = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 10}
NEOX = {**HF, "intermediate_size": 12}
OPT = {**HF, "ffn_dim": 12, "max_position_embeddings": 7}
BLOOM = {"hidden_size": 8, "n_layer": 2, "n_head": 4, "vocab_size": 10}
MPT = {"d_model": 8, "n_layers": 2, "n_heads": 4, "vocab_size": 10}
STAR = {**NEOX, "num_key_value_heads": 2}

ATTENTION, BIASES, NORM = 4 * 64, 4 * 8, 16  # of equal heads; its biases; scale and shift
WIDE, NARROW = 2 * 8 * 32, 2 * 8 * 12  # MLPs of 4h and of 12
WIDE_BIASES, NARROW_BIASES = 32 + 8, 12 + 8
LAYER = ATTENTION + BIASES + WIDE + WIDE_BIASES + 2 * NORM  # 12h² + 13h
SLIM = ATTENTION + BIASES + NARROW + NARROW_BIASES + 2 * NORM
TABLE = 80

PAIR = 4 * 4 * 2
FULL, NEAR = 15, 9

# model_type, config: parameters, weights multiplied, pairs of the two layers
CASES: list[tuple[str, dict[str, Any], int, int, int]] = [
    ("gpt2", GPT, TABLE + 56 + 2 * LAYER + NORM, 2 * 768 + 80, 2 * FULL),
    ("gpt2", {**GPT, "n_inner": 12}, TABLE + 56 + 2 * SLIM + NORM, 2 * 448 + 80, 2 * FULL),
    ("gpt2", {**GPT, "n_inner": None}, TABLE + 56 + 2 * LAYER + NORM, 2 * 768 + 80, 2 * FULL),
    ("gpt2", {**GPT, "tie_word_embeddings": False}, 2 * TABLE + 56 + 2 * LAYER + NORM, 2 * 768 + 80, 2 * FULL),
    ("gptj", GPT, TABLE + 2 * (ATTENTION + WIDE + 40 + NORM) + NORM + TABLE + 10, 2 * 768 + 80, 2 * FULL),
    ("gpt_neox", NEOX, TABLE + 2 * SLIM + NORM + TABLE, 2 * 448 + 80, 2 * FULL),
    ("gpt_neox", {**NEOX, "attention_bias": False}, 2 * TABLE + 2 * (SLIM - BIASES) + NORM, 976, 2 * FULL),
    ("opt", OPT, TABLE + 9 * 8 + 2 * SLIM + NORM, 976, 2 * FULL),  # two spare rows of positions
    ("opt", {**OPT, "do_layer_norm_before": False}, TABLE + 72 + 2 * SLIM, 976, 2 * FULL),  # no last norm
    ("opt", {**OPT, "enable_bias": False}, TABLE + 72 + 2 * (SLIM - BIASES - 20) + NORM, 976, 2 * FULL),
    # a table of 4, a matrix of 4·8 into the model and one out of it
    ("opt", {**OPT, "word_embed_proj_dim": 4}, 40 + 72 + 64 + 2 * SLIM + NORM, 2 * 448 + 64 + 40, 2 * FULL),
    ("opt", {**OPT, "word_embed_proj_dim": 8}, TABLE + 72 + 2 * SLIM + NORM, 976, 2 * FULL),
    ("bloom", BLOOM, TABLE + NORM + 2 * LAYER + NORM, 2 * 768 + 80, 2 * FULL),
    # one key head: 8·(8 + 2·2) and 64; no biases; one norm for both halves
    ("falcon", HF, TABLE + 2 * (160 + WIDE + NORM) + NORM, 2 * 672 + 80, 2 * FULL),
    (
        "falcon",
        {**HF, "multi_query": False, "parallel_attn": False, "bias": True},
        TABLE + 2 * LAYER + NORM,
        2 * 768 + 80,
        2 * FULL,
    ),
    (
        "falcon",
        {**HF, "new_decoder_architecture": True, "num_kv_heads": 2},
        TABLE + 2 * (192 + WIDE + 2 * NORM) + NORM,
        2 * 704 + 80,
        2 * FULL,
    ),
    (
        "falcon",
        {**HF, "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
        TABLE + 2 * (192 + WIDE + NORM) + NORM,
        2 * 704 + 80,
        2 * FULL,
    ),
    ("falcon", {**HF, "new_decoder_architecture": True}, TABLE + 2 * (768 + 32) + NORM, 2 * 768 + 80, 2 * FULL),
    ("falcon", {**HF, "ffn_hidden_size": 12}, TABLE + 2 * (160 + NARROW + NORM) + NORM, 2 * 352 + 80, 2 * FULL),
    ("mpt", MPT, TABLE + 2 * (768 + 2 * 8) + 8, 2 * 768 + 80, 2 * FULL),  # norms without shift
    ("mpt", {**MPT, "expansion_ratio": 2}, TABLE + 2 * (512 + 16) + 8, 2 * 512 + 80, 2 * FULL),
    # two key heads: 192 and biases 24
    ("starcoder2", STAR, TABLE + 2 * (192 + 24 + NARROW + 20 + 32) + NORM, 2 * 384 + 80, 2 * FULL),
    ("starcoder2", {**STAR, "use_bias": False}, TABLE + 2 * (192 + NARROW + 32) + NORM, 848, 2 * FULL),
    ("starcoder2", {**STAR, "sliding_window": 2}, TABLE + 2 * 460 + NORM, 848, 2 * NEAR),
    ("phi", NEOX, TABLE + 2 * (SLIM - NORM) + NORM + TABLE + 10, 976, 2 * FULL),  # one norm, a biased head
    ("phi", {**NEOX, "qk_layernorm": True}, 2 * TABLE + 2 * (SLIM - NORM + 2 * 4) + NORM + 10, 976, 2 * FULL),
    ("phi", {**NEOX, "num_key_value_heads": 2}, 2 * TABLE + 2 * (192 + 24 + NARROW + 20 + NORM) + 26, 848, 2 * FULL),
]


@pytest.mark.parametrize(
    ("family", "config", "params", "weights", "pairs"), CASES, ids=[f"{n}-{row[0]}" for n, row in enumerate(CASES)]
)
def test_parameters_and_flops(
    family: str, config: dict[str, Any], params: int, weights: int, pairs: int, reading: Callable[..., Any]
) -> None:
    found = reading({**config, "model_type": family})
    assert found.params == found.active == params
    assert found.forward == 2 * 5 * weights + pairs * PAIR


def test_every_family_is_in_the_table() -> None:
    assert {row[0] for row in CASES} == set(FAMILIES)


def test_the_layer_of_a_gpt_is_the_papers() -> None:
    assert LAYER == 12 * 8**2 + 13 * 8


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox", "mpt"])
def test_grouped_queries_are_not_of_these_families(family: str, reading: Callable[..., Any]) -> None:
    config = {"gpt2": GPT, "gpt_neox": NEOX, "mpt": MPT}[family]
    assert reading({**config, "model_type": family, "num_key_value_heads": 2}).params == next(
        row[2] for row in CASES if row[0] == family
    )


# family: leaves with parameters of its first layer, and outside the layers
NAMES = [
    (
        "gpt2",
        GPT,
        "ln_1 attn.c_attn attn.c_proj ln_2 mlp.c_fc mlp.c_proj",
        "transformer.wte transformer.wpe transformer.ln_f",
    ),
    (
        "gptj",
        GPT,
        "ln_1 attn.q_proj attn.k_proj attn.v_proj attn.out_proj mlp.fc_in mlp.fc_out",
        "transformer.wte transformer.ln_f lm_head",
    ),
    (
        "opt",
        {**OPT, "word_embed_proj_dim": 4},
        "self_attn_layer_norm self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.out_proj "
        "final_layer_norm fc1 fc2",
        "model.decoder.embed_tokens model.decoder.embed_positions model.decoder.project_in "
        "model.decoder.final_layer_norm model.decoder.project_out",
    ),
    (
        "bloom",
        BLOOM,
        "input_layernorm self_attention.query_key_value self_attention.dense post_attention_layernorm "
        "mlp.dense_h_to_4h mlp.dense_4h_to_h",
        "transformer.word_embeddings transformer.word_embeddings_layernorm transformer.ln_f",
    ),
    (
        "falcon",
        {**HF, "new_decoder_architecture": True},
        "ln_attn ln_mlp self_attention.query_key_value self_attention.dense mlp.dense_h_to_4h mlp.dense_4h_to_h",
        "transformer.word_embeddings transformer.ln_f",
    ),
    (
        "mpt",
        MPT,
        "norm_1 attn.Wqkv attn.out_proj norm_2 ffn.up_proj ffn.down_proj",
        "transformer.wte transformer.norm_f",
    ),
]


@pytest.mark.parametrize(("family", "config", "inside", "outside"), NAMES, ids=[row[0] for row in NAMES])
def test_names_are_those_of_the_published_model(family: str, config: dict[str, Any], inside: str, outside: str) -> None:
    leaves = [
        placed for placed in read_hf_config({**config, "model_type": family}, "net").leaves() if placed.layer.params
    ]
    assert [placed.layer.name for placed in leaves if placed.in_block] == inside.split()
    assert [placed.path for placed in leaves if not placed.in_block] == outside.split()


DROPOUTS = {"gpt2": (GPT, 2), "gptj": (GPT, 2), "bloom": (BLOOM, 2), "falcon": (HF, 0), "mpt": (MPT, 0)}


@pytest.mark.parametrize(("family", "row"), DROPOUTS.items())
def test_dropouts_of_a_layer(family: str, row: tuple[dict[str, Any], int]) -> None:
    """Behind attention and behind the MLP, where the model has any."""
    leaves = read_hf_config({**row[0], "model_type": family}, "net").leaves()
    found = [placed for placed in leaves if isinstance(placed.layer, Elementwise) and placed.layer.op == "dropout"]
    assert len(found) == row[1]
    assert all(placed.in_block and placed.layer.width == 8 for placed in found)


MISSING = [
    ("gpt2", {**GPT, "n_positions": None}, "missing key n_positions"),
    ("opt", {**OPT, "ffn_dim": None}, "missing key ffn_dim"),
    ("opt", {**OPT, "max_position_embeddings": None}, "missing key max_position_embeddings"),
    ("bloom", {**BLOOM, "n_layer": None}, "missing key num_hidden_layers"),
    ("mpt", {**MPT, "d_model": None}, "missing key hidden_size"),
    ("starcoder2", {**STAR, "intermediate_size": None}, "missing key intermediate_size"),
]


@pytest.mark.parametrize(("family", "config", "words"), MISSING)
def test_what_is_missing_is_named(family: str, config: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_hf_config({**config, "model_type": family}, "net")
    assert [fault.message for fault in caught.value.faults] == [words]
