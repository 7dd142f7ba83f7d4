"""Heads and tables with weights of their own, by hand; and classes that are not what their type is usually."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.nouns.layers import Embedding, Linear
from suanli.readers.hf import read_hf_config

V, H, E = 50, 8, 6
BERT = {
    "vocab_size": V, "hidden_size": H, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
    "max_position_embeddings": 20,
}  # fmt: skip
BART = {
    "vocab_size": V, "d_model": H, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 12, "max_position_embeddings": 20,
}  # fmt: skip
T5 = {"vocab_size": V, "d_model": H, "d_kv": 4, "d_ff": 16, "num_layers": 4, "num_heads": 2, "num_experts": 4}
CASES = [
    # its decoder's weight, and its bias that was the one beside it
    ("bert", BERT, V * H + V), ("roberta", BERT, V * H + V), ("albert", BERT | {"embedding_size": E}, V * E + V),
    # one bias only, which is the head's own
    ("distilbert", {"vocab_size": V, "dim": H, "n_layers": 2, "n_heads": 2, "hidden_dim": 16,
                    "max_position_embeddings": 20}, V * H),
    ("electra", BERT | {"embedding_size": E}, V * E),
    # a table a side and a head; the shared one stays, unused
    ("bart", BART, 3 * V * H), ("mbart", BART, 3 * V * H), ("switch_transformers", T5, 3 * V * H),
    # words on one side only
    ("whisper", BART | {"num_mel_bins": 4, "max_source_positions": 6}, V * H),
]  # fmt: skip


@pytest.mark.parametrize(("family", "config", "more"), CASES, ids=[case[0] for case in CASES])
def test_what_a_model_holds_more_that_ties_nothing(family: str, config: dict[str, Any], more: int) -> None:
    tied = read_hf_config({**config, "model_type": family}, "net")
    own = read_hf_config({**config, "model_type": family, "tie_word_embeddings": False}, "net")
    assert own.params_total - tied.params_total == more
    layers = [placed.layer for placed in own.leaves()]
    assert not any(layer.tied for layer in layers if isinstance(layer, Linear | Embedding))


def test_each_side_looks_up_its_own_table() -> None:
    found = read_hf_config({**BART, "model_type": "bart", "tie_word_embeddings": False}, "net")
    tables = [p.layer.name for p in found.leaves() if isinstance(p.layer, Embedding) and p.layer.role == "token"]
    assert tables == ["model.encoder.embed_tokens", "model.decoder.embed_tokens"]


def test_a_flag_that_is_no_flag_is_a_fault() -> None:
    with pytest.raises(ConfigError, match="tie_word_embeddings is not true or false"):
        read_hf_config({**BERT, "model_type": "bert", "tie_word_embeddings": "no"}, "net")


# --- classes that architectures names -----------------------------------------------------------------------------

WHISPER = BART | {"model_type": "whisper", "num_mel_bins": 4, "max_source_positions": 6, "num_labels": 3}


def test_whisper_as_a_classifier_is_its_encoder_and_two_matrices() -> None:
    """Two convolutions of 3 (4 → 8 → 8), 6 positions, two layers of 4(8² + 8) − 8 + 2·8·16 + 24 + 32, a norm of 16."""
    layer = 4 * (H * H + H) - H + 2 * H * 16 + 24 + 2 * 2 * H
    encoder = (4 * 3 * H + H) + (H * 3 * H + H) + 6 * H + 2 * layer + 2 * H
    heads = (H * 256 + 256) + (256 * 3 + 3)
    found = read_hf_config(WHISPER | {"architectures": ["WhisperForAudioClassification"]}, "net")
    assert found.params_total == encoder + heads
    weighted = read_hf_config(
        WHISPER | {"architectures": ["WhisperForAudioClassification"], "use_weighted_layer_sum": True}, "net"
    )
    assert weighted.params_total == encoder + heads + 3  # a weight for each of two layers and what goes in
    assert (found.task, found.decodes) == ("audio-classification", False)


def test_clip_as_a_classifier_has_no_text_tower() -> None:
    vision = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2,
              "image_size": 8, "patch_size": 4}  # fmt: skip
    text = {"vocab_size": 20, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
            "num_attention_heads": 2, "max_position_embeddings": 10}  # fmt: skip
    config = {"model_type": "clip", "projection_dim": 6, "vision_config": vision, "text_config": text}
    both = read_hf_config(config, "net")
    alone = read_hf_config(config | {"architectures": ["CLIPForImageClassification"], "num_labels": 3}, "net")
    assert both.task == "contrastive"
    assert alone.task == "image-classification"
    assert not any("text" in placed.path for placed in alone.leaves())


def test_a_decoder_without_the_pictures_it_looks_at_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        read_hf_config({"model_type": "mllama", "architectures": ["MllamaForCausalLM"]}, "net")
    assert str(caught.value) == (
        "the text decoder of this type without its pictures is not read by formula in config: architectures. "
        "Name MllamaForConditionalGeneration for the whole, or use --trace."
    )
