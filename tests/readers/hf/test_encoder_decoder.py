"""T5, BART and Whisper on small configs: both sides, what joins them, and decoding, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.nouns.layers import Attention, Conv, Embedding
from suanli.readers.hf import read_hf_config
from suanli.readers.hf.encoder_decoder import FAMILIES

T5 = {
    "model_type": "t5", "d_model": 8, "num_heads": 4, "d_kv": 3, "d_ff": 6, "vocab_size": 10, "num_layers": 2,
    "num_decoder_layers": 1, "relative_attention_num_buckets": 5,
}  # fmt: skip
BART = {
    "model_type": "bart", "d_model": 8, "vocab_size": 10, "max_position_embeddings": 7, "encoder_layers": 2,
    "encoder_attention_heads": 4, "encoder_ffn_dim": 12, "decoder_layers": 1, "decoder_attention_heads": 2,
    "decoder_ffn_dim": 6,
}  # fmt: skip
WHISPER = {
    **{key: value for key, value in BART.items() if key != "max_position_embeddings"}, "model_type": "whisper",
    "num_mel_bins": 4, "max_source_positions": 3, "max_target_positions": 7,
}  # fmt: skip

# T5: attention 4·8·12, MLP 2·8·6, norms of 8; a bias of 5 buckets and 4 heads in the first layer of each side
T5_ENCODER, T5_DECODER = 384 + 96 + 2 * 8, 2 * 384 + 96 + 3 * 8
T5_TOTAL = 80 + 2 * T5_ENCODER + 20 + 8 + T5_DECODER + 20 + 8
# BART: four squares and biases and a norm (304), MLP of 12 or 6 and a norm
SELF = 256 + 32 + 16
BART_ENCODER, BART_DECODER = SELF + 192 + 20 + 16, 2 * SELF + 96 + 14 + 16
BART_TOTAL = 80 + 2 * (72 + 16) + 2 * BART_ENCODER + BART_DECODER  # nine rows of positions and a norm a side
# Whisper: keys without bias; convolutions of 3; frames' positions learned; a last norm a side
WHISPER_TOTAL = (
    (4 * 8 * 3 + 8) + (8 * 8 * 3 + 8) + 3 * 8 + 2 * (BART_ENCODER - 8) + 16
    + 80 + 7 * 8 + BART_DECODER - 2 * 8 + 16
)  # fmt: skip

PARAMS: list[tuple[dict[str, Any], dict[str, Any], int]] = [
    (T5, {}, T5_TOTAL),
    (T5, {"tie_word_embeddings": False}, T5_TOTAL + 80),
    (T5, {"feed_forward_proj": "gated-gelu"}, T5_TOTAL + 3 * 48),  # a third matrix in three layers
    (T5, {"feed_forward_proj": "relu", "is_gated_act": True}, T5_TOTAL + 3 * 48),
    (T5, {"feed_forward_proj": "relu"}, T5_TOTAL),
    (T5, {"num_decoder_layers": None}, T5_TOTAL + T5_DECODER),  # as many as the encoder has
    (T5, {"relative_attention_num_buckets": None}, T5_TOTAL + 2 * 27 * 4),  # 32
    (BART, {}, BART_TOTAL),
    (BART, {"decoder_layers": 3}, BART_TOTAL + 2 * BART_DECODER),
    (WHISPER, {}, WHISPER_TOTAL),
    (WHISPER, {"max_source_positions": 6}, WHISPER_TOTAL + 3 * 8),
    (WHISPER, {"max_target_positions": None}, WHISPER_TOTAL + 441 * 8),  # 448
]


@pytest.mark.parametrize(("config", "changed", "params"), PARAMS)
def test_parameters(config: dict[str, Any], changed: dict[str, Any], params: int, reading: Callable[..., Any]) -> None:
    assert reading({**config, **changed}).params == params


def test_every_family_is_in_the_table() -> None:
    """T5 is read by `t5_like`, with its kin."""
    assert {row[0]["model_type"] for row in PARAMS} == {*FAMILIES, "t5"}


def test_forward_of_t5(reading: Callable[..., Any]) -> None:
    """Five positions a side; a pair costs 4·4·3 = 48."""
    encoder = 2 * (2 * 5 * 480 + 25 * 48)
    decoder = 2 * 5 * (2 * 384 + 96) + 15 * 48 + 25 * 48
    assert reading(T5).forward == encoder + decoder + 2 * 5 * 80


def test_decode_of_t5(reading: Callable[..., Any]) -> None:
    """One token: self-attention 384, q and o across 192, MLP 96, head 80; five keys on either side."""
    assert reading(T5, phase="decode", kv_len=5).forward == 2 * (384 + 192 + 96 + 80) + 5 * 48 + 5 * 48


def test_prefill_of_t5_encodes_and_makes_one_row_of_logits(reading: Callable[..., Any]) -> None:
    assert reading(T5).forward - reading(T5, phase="prefill").forward == 2 * 4 * 80


def test_forward_of_bart(reading: Callable[..., Any]) -> None:
    """A pair costs 4·8 = 32 whatever the heads."""
    encoder = 2 * (2 * 5 * 448 + 25 * 32)
    decoder = 2 * 5 * (2 * 256 + 96) + (15 + 25) * 32
    assert reading(BART).forward == encoder + decoder + 2 * 5 * 80


def test_forward_of_whisper(reading: Callable[..., Any]) -> None:
    """Six waves to three frames: convolutions at six and at three positions; keys and values across at three."""
    waves = 2 * 6 * (4 * 3) * 8 + 2 * 3 * (8 * 3) * 8
    encoder = 2 * (2 * 3 * 448 + 9 * 32)
    decoder = 2 * 5 * (256 + 128 + 96) + 2 * 3 * 128 + (15 + 15) * 32
    assert reading(WHISPER).forward == waves + encoder + decoder + 2 * 5 * 80


def test_decode_of_whisper_hears_nothing_new(reading: Callable[..., Any]) -> None:
    decoded = reading(WHISPER, phase="decode", kv_len=5).forward
    assert decoded == 2 * (256 + 128 + 96 + 80) + 5 * 32 + 3 * 32


@pytest.mark.parametrize("config", [T5, BART, WHISPER], ids=lambda c: c["model_type"])
def test_a_step_of_training_is_three_forwards_but_for_the_first_inputs(
    config: dict[str, Any], reading: Callable[..., Any]
) -> None:
    """Behind a lookup every input needs its gradient; a picture of sound does not."""
    forward, step = reading(config).forward, reading(config, phase="train").forward
    sound = 2 * 6 * (4 * 3) * 8 if config is WHISPER else 0
    assert step == 3 * forward - sound


def test_position_biases_lie_in_the_first_layer_of_each_side() -> None:
    arch = read_hf_config({**T5, "num_decoder_layers": 3}, "net")
    found = [placed.path for placed in arch.leaves() if getattr(placed.layer, "role", "") == "bias"]
    bias = "layer.0.SelfAttention.relative_attention_bias"
    assert found == [f"encoder.block.0.{bias}", f"decoder.block.0.{bias}"]


MASKS = [("encoder", "full", None), ("tokens", "causal", None), ("tokens", "full", "encoder")]


@pytest.mark.parametrize("config", [{**T5, "num_layers": 1}, BART, WHISPER], ids=lambda c: c["model_type"])
def test_who_sees_whom(config: dict[str, Any]) -> None:
    arch = read_hf_config(config, "net")
    cores = [(p.stream, p.layer.mask, p.layer.key_stream) for p in arch.leaves() if isinstance(p.layer, Attention)]
    assert cores == MASKS


def test_keys_across_pass_with_the_encoder() -> None:
    arch = read_hf_config(BART, "net")
    streams = {p.layer.name: p.stream for p in arch.leaves() if p.layer.name.startswith("encoder_attn.")}
    assert streams == {
        "encoder_attn.q_proj": "tokens",
        "encoder_attn.k_proj": "encoder",
        "encoder_attn.v_proj": "encoder",
        "encoder_attn.attention": "tokens",
        "encoder_attn.out_proj": "tokens",
        "encoder_attn.dropout": "tokens",
    }


# whether the norm stands before what it norms
ORDERS = [
    (BART, ["self_attn.q_proj", "self_attn_layer_norm", "encoder_attn.q_proj", "encoder_attn_layer_norm", "fc1",
            "final_layer_norm"]),
    (WHISPER, ["self_attn_layer_norm", "self_attn.q_proj", "encoder_attn_layer_norm", "encoder_attn.q_proj",
               "final_layer_norm", "fc1"]),
]  # fmt: skip


@pytest.mark.parametrize(("config", "order"), ORDERS, ids=["bart", "whisper"])
def test_order_of_norms(config: dict[str, Any], order: list[str]) -> None:
    leaves = read_hf_config(config, "net").leaves()
    found = [p.layer.name for p in leaves if p.path.startswith("model.decoder.layers") and p.layer.name in order]
    assert found == order


def test_convolutions_of_whisper() -> None:
    leaves = read_hf_config(WHISPER, "net").leaves()
    assert [(p.layer.in_size, p.layer.out_size, p.stream) for p in leaves if isinstance(p.layer, Conv)] == [
        ((6,), (6,), "sample"),
        ((6,), (3,), "sample"),
    ]


@pytest.mark.parametrize(
    ("config", "lengths", "notes"),
    [
        (T5, [("tokens", None, True), ("encoder", None, False)], "encoder and decoder each of --seq positions"),
        (BART, [("tokens", None, True), ("encoder", None, False)], "encoder and decoder each of --seq positions"),
        (
            WHISPER,
            [("tokens", None, True), ("encoder", 3, False)],
            "encoder of 3 frames (30 s of sound), decoder of --seq tokens",
        ),
    ],
    ids=["t5", "bart", "whisper"],
)
def test_streams(config: dict[str, Any], lengths: list[tuple[str, int | None, bool]], notes: str) -> None:
    arch = read_hf_config(config, "net")
    assert [(stream.name, stream.length, stream.decodes) for stream in arch.streams] == lengths
    assert arch.notes == (notes,)


def test_bart_keeps_a_buffer_of_logits() -> None:
    assert read_hf_config(BART, "net").buffer_elements == 10


def test_tables_looked_up_twice_are_held_once() -> None:
    tables = [p.layer for p in read_hf_config(BART, "net").leaves() if isinstance(p.layer, Embedding)]
    assert [(table.role, table.tied) for table in tables] == [
        ("token", False), ("position", False), ("token", True), ("position", False),
    ]  # fmt: skip


FAULTS = [
    ({**T5, "feed_forward_proj": 3}, ["feed_forward_proj is not a word in config: feed_forward_proj; got 3."]),
    (
        {**BART, "encoder_attention_heads": 3, "decoder_attention_heads": 5},
        [
            f"the number of heads does not divide the width in config: {side}_attention_heads; "
            f"got {heads} heads, width 8."
            for side, heads in (("encoder", 3), ("decoder", 5))
        ],
    ),
    (
        {**WHISPER, "num_mel_bins": 0},
        ["num_mel_bins is not possible in config: num_mel_bins; got 0; "
         "expected a whole number from 1 to 1,000,000,000."],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("config", "sentences"), FAULTS)
def test_faults(config: dict[str, Any], sentences: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_hf_config(config, "net")
    assert [fault.sentence() for fault in caught.value.faults] == sentences
