"""Encoders with a masked-language head on one small config: every parameter and FLOP by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.errors import InputError
from suanli.nouns.layers import Attention, Elementwise
from suanli.readers.hf import read_hf_config
from suanli.readers.hf.bert_like import FAMILIES

BERT = {
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 12, "vocab_size": 10,
    "max_position_embeddings": 7,
}  # fmt: skip
DISTIL = {
    "dim": 8, "n_layers": 2, "n_heads": 4, "hidden_dim": 12, "vocab_size": 10, "max_position_embeddings": 7,
}  # fmt: skip

# four squares and biases, norm; two matrices of 8·12 and biases, norm
LAYER = 256 + 32 + 16 + 192 + 20 + 16
EMBEDDINGS = 80 + 56 + 16 + 16  # words, positions, two types, norm
HEAD = 64 + 8 + 16 + 10  # dense, norm, bias of the words; the matrix is the table's
PAIRS = 25 * 4 * 4 * 2  # every position sees every other

# model_type, config: parameters, weights multiplied
CASES: list[tuple[str, dict[str, Any], int, int]] = [
    ("bert", BERT, EMBEDDINGS + 2 * LAYER + HEAD, 2 * 448 + 64 + 80),
    ("bert", {**BERT, "type_vocab_size": 3}, EMBEDDINGS + 8 + 2 * LAYER + HEAD, 1040),
    ("bert", {**BERT, "num_key_value_heads": 2}, EMBEDDINGS + 2 * LAYER + HEAD, 1040),  # has no such thing
    ("roberta", BERT, EMBEDDINGS + 2 * LAYER + HEAD, 1040),
    ("electra", BERT, EMBEDDINGS + 2 * LAYER + HEAD, 1040),
    # tables and head of 4: 40 + 28 + 8 + 8, widened by 4·8 + 8; head 8·4 + 4, norm 8, bias 10
    ("electra", {**BERT, "embedding_size": 4}, 84 + 40 + 2 * LAYER + 36 + 8 + 10, 32 + 2 * 448 + 32 + 40),
    ("distilbert", DISTIL, EMBEDDINGS - 16 + 2 * LAYER + HEAD, 1040),  # no types
]


@pytest.mark.parametrize(
    ("family", "config", "params", "weights"), CASES, ids=[f"{n}-{row[0]}" for n, row in enumerate(CASES)]
)
def test_parameters_and_flops(
    family: str, config: dict[str, Any], params: int, weights: int, reading: Callable[..., Any]
) -> None:
    found = reading({**config, "model_type": family})
    assert found.params == found.active == params
    assert found.forward == 2 * 5 * weights + 2 * PAIRS


def test_every_family_is_in_the_table() -> None:
    assert {row[0] for row in CASES} == set(FAMILIES)


# family: leaves with parameters of a layer, and outside
NAMES = [
    (
        "bert",
        BERT,
        "attention.self.query attention.self.key attention.self.value attention.output.dense "
        "attention.output.LayerNorm intermediate.dense output.dense output.LayerNorm",
        "bert.embeddings.word_embeddings bert.embeddings.position_embeddings bert.embeddings.token_type_embeddings "
        "bert.embeddings.LayerNorm cls.predictions.transform.dense cls.predictions.transform.LayerNorm "
        "cls.predictions.bias",
    ),
    (
        "roberta",
        BERT,
        "attention.self.query attention.self.key attention.self.value attention.output.dense "
        "attention.output.LayerNorm intermediate.dense output.dense output.LayerNorm",
        "roberta.embeddings.word_embeddings roberta.embeddings.position_embeddings "
        "roberta.embeddings.token_type_embeddings roberta.embeddings.LayerNorm lm_head.dense lm_head.layer_norm "
        "lm_head.bias",
    ),
    (
        "distilbert",
        DISTIL,
        "attention.q_lin attention.k_lin attention.v_lin attention.out_lin sa_layer_norm ffn.lin1 ffn.lin2 "
        "output_layer_norm",
        "distilbert.embeddings.word_embeddings distilbert.embeddings.position_embeddings "
        "distilbert.embeddings.LayerNorm vocab_transform vocab_layer_norm vocab_projector.bias",
    ),
    (
        "electra",
        {**BERT, "embedding_size": 4},
        "attention.self.query attention.self.key attention.self.value attention.output.dense "
        "attention.output.LayerNorm intermediate.dense output.dense output.LayerNorm",
        "electra.embeddings.word_embeddings electra.embeddings.position_embeddings "
        "electra.embeddings.token_type_embeddings electra.embeddings.LayerNorm electra.embeddings_project "
        "generator_predictions.dense generator_predictions.LayerNorm generator_lm_head.bias",
    ),
]


@pytest.mark.parametrize(("family", "config", "inside", "outside"), NAMES, ids=[row[0] for row in NAMES])
def test_names_are_those_of_the_published_model(family: str, config: dict[str, Any], inside: str, outside: str) -> None:
    leaves = [p for p in read_hf_config({**config, "model_type": family}, "net").leaves() if p.layer.params]
    assert [placed.layer.name for placed in leaves if placed.in_block] == inside.split()
    assert [placed.path for placed in leaves if not placed.in_block] == outside.split()


def test_an_encoder_sees_both_ways_and_does_not_decode() -> None:
    arch = read_hf_config({**BERT, "model_type": "bert"}, "net")
    cores = [placed.layer for placed in arch.leaves() if isinstance(placed.layer, Attention)]
    assert [(core.mask, core.dropout) for core in cores] == [("full", True)]
    assert (arch.decodes, arch.task, arch.max_positions) == (False, "masked-lm", 7)


def test_dropouts_stand_behind_embeddings_attention_and_mlp() -> None:
    arch = read_hf_config({**BERT, "model_type": "bert"}, "net")
    found = [p.path for p in arch.leaves() if isinstance(p.layer, Elementwise) and p.layer.op == "dropout"]
    at = "bert.encoder.layer.0-1"
    assert found == ["bert.embeddings.dropout", f"{at}.attention.output.dropout", f"{at}.dropout"]


def test_the_bare_encoder_is_noted() -> None:
    """Without the head of 98, with a pooler of 64 + 8."""
    bare = EMBEDDINGS + 2 * LAYER + 72
    assert read_hf_config({**BERT, "model_type": "bert"}, "net").notes == (
        f"masked-LM model; the bare encoder with pooler (BertModel) has {bare:,} parameters",
    )


def test_decode_is_refused(reading: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="net does not decode in --phase"):
        reading({**BERT, "model_type": "bert"}, phase="decode")
