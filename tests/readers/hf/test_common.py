"""What decoder configs have in common: spellings of widths, kinds of layers, the order in which a layer runs."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.nouns.layers import Attention, Linear, Norm
from suanli.readers.blocks import AttentionNames
from suanli.readers.config import Config
from suanli.readers.hf.common import (
    CHUNKED,
    FULL,
    SLIDING,
    LayerKind,
    Traits,
    Widths,
    all_full,
    dense_mlp,
    layer_kinds,
    never,
    read_widths,
    self_attention,
    standard_decoder,
    standard_layer,
)

WIDTHS = Widths(layers=3, hidden=8, heads=4, kv_heads=2, head_dim=2, ffn=12, vocab=10, max_positions=7)
LLAMA: dict[str, Any] = {
    "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 12, "vocab_size": 10, "max_position_embeddings": 7,
}  # fmt: skip
GPT: dict[str, Any] = {
    "n_embd": 8, "n_layer": 3, "n_head": 4, "num_key_value_heads": 2, "n_inner": 12, "vocab_size": 10,
    "n_positions": 7,
}  # fmt: skip
MPT: dict[str, Any] = {
    "d_model": 8, "n_layers": 3, "n_heads": 4, "num_key_value_heads": 2, "ffn_hidden_size": 12, "vocab_size": 10,
    "max_seq_len": 7,
}  # fmt: skip
OPT: dict[str, Any] = {
    "hidden_size": 8, "num_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "ffn_dim": 12,
    "vocab_size": 10, "n_ctx": 7,
}  # fmt: skip


@pytest.mark.parametrize("values", [LLAMA, GPT, MPT, OPT])
def test_spellings_of_widths(values: dict[str, Any]) -> None:
    assert read_widths(Config(values, "config")) == WIDTHS


def test_widths_a_family_derives_or_does_not_have() -> None:
    config = Config(LLAMA, "config")
    assert read_widths(config, ffn=99).ffn == 99
    assert read_widths(config, kv_heads=1).kv_heads == 1
    assert read_widths(config, grouped=False).kv_heads == 4
    without = Config({key: value for key, value in LLAMA.items() if key != "intermediate_size"}, "config")
    assert read_widths(without, ffn=99).ffn == 99
    assert without.faults.faults == []


def test_every_missing_width_is_named() -> None:
    config = Config({}, "config")
    read_widths(config)
    assert [fault.message.removeprefix("missing key ") for fault in config.faults.faults] == [
        "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
    ]  # fmt: skip


def test_more_heads_than_a_million_are_a_typing_error() -> None:
    config = Config({**LLAMA, "num_attention_heads": 1_000_001}, "config")
    read_widths(config)
    assert config.faults.faults[0].expected == "a whole number from 1 to 1,000,000"


@pytest.mark.parametrize("gated", [False, True])
def test_letters_of_the_formulas(gated: bool) -> None:
    shape = WIDTHS.shape(gated)
    assert (shape.num_layers, shape.hidden, shape.heads, shape.kv_heads, shape.head_dim) == (3, 8, 4, 2, 2)
    assert (shape.ffn, shape.vocab, shape.gated) == (12, 10, gated)


# --- kinds --------------------------------------------------------------------------------------------------------


def kinds(values: dict[str, Any], known: tuple[str, ...] = (FULL, SLIDING)) -> list[tuple[str, bool]]:
    config = Config(values, "config")
    found = layer_kinds(config, WIDTHS, lambda i: SLIDING if i else FULL, lambda i: i == 2, known)
    return [(kind.attention, kind.sparse) for kind in found]


def test_kinds_by_the_familys_pattern() -> None:
    assert kinds({}) == [(FULL, False), (SLIDING, False), (SLIDING, True)]


def test_kinds_as_the_config_says() -> None:
    assert kinds({"layer_types": [SLIDING, FULL, FULL]}) == [(SLIDING, False), (FULL, False), (FULL, True)]


@pytest.mark.parametrize("types", [[SLIDING], [SLIDING, FULL, CHUNKED], "full_attention"])
def test_no_kinds_where_they_cannot_be_read(types: object) -> None:
    assert kinds({"layer_types": types}) == []


def test_the_plain_patterns() -> None:
    assert all_full(5) == FULL == LayerKind().attention
    assert never(5) is False is LayerKind().sparse


# --- attention of a kind ------------------------------------------------------------------------------------------

# kind, window, chunk: what the attention has of them
REACHES = [
    (FULL, 5, 6, None, None),
    (SLIDING, 5, 6, 5, None),
    (CHUNKED, 5, 6, None, 6),
    (SLIDING, None, None, None, None),
]


@pytest.mark.parametrize(("kind", "window", "chunk", "has_window", "has_chunk"), REACHES)
def test_reach(kind: str, window: int | None, chunk: int | None, has_window: int | None, has_chunk: int | None) -> None:
    nodes = self_attention(WIDTHS, Traits(), LayerKind(kind), window, chunk)
    core = next(node for node in nodes if isinstance(node, Attention))
    assert (core.window, core.chunk, core.heads, core.kv_heads, core.qk_dim) == (has_window, has_chunk, 4, 2, 2)


def test_traits_reach_the_attention() -> None:
    traits = Traits(
        qkv_bias=True, o_bias=True, sinks=True, dropout=True, qk_norm="full", qk_norm_kind="layer",
        qk_norm_names=("a", "b"), attention_names=AttentionNames(at="attn", o="out"),
    )  # fmt: skip
    nodes = self_attention(WIDTHS, traits, LayerKind(), None)
    assert [node.name for node in nodes] == [
        f"attn.{name}" for name in ("q_proj", "k_proj", "v_proj", "a", "b", "sinks", "attention", "out")
    ]
    assert all(node.bias for node in nodes if isinstance(node, Linear | Norm))
    assert next(node for node in nodes if isinstance(node, Attention)).dropout


# --- the standard layer -------------------------------------------------------------------------------------------


def test_the_order_of_a_layer() -> None:
    traits = Traits(before=("a", "b"), between=("c",), after=("d",), norm_kind="layer", dropout=True)
    attend, feed = (Linear(name=name, in_features=8, out_features=8) for name in ("attend", "feed"))
    nodes = standard_layer(WIDTHS, traits, (attend,), (feed,))
    assert [node.name for node in nodes] == ["a", "b", "attend", "self_attn.dropout", "c", "feed", "d"]
    assert {node.params for node in nodes if isinstance(node, Norm)} == {16}


def test_an_mlp_by_its_traits() -> None:
    traits = Traits(mlp_names=("up", "down"), mlp_at="ff", mlp_bias=True, dropout=True)
    for ffn, width in ((None, 12), (5, 5)):
        nodes = dense_mlp(WIDTHS, traits, ffn)
        assert [node.name for node in nodes] == ["ff.up", "ff.act", "ff.down", "ff.dropout"]
        assert [node.params for node in nodes if isinstance(node, Linear)] == [8 * width + width, 8 * width + 8]


# --- the standard decoder -----------------------------------------------------------------------------------------

LAYER = 192 + 288 + 16

# traits, more of the config: parameters (lookup 80, three layers, last norm 8, head 80)
DECODERS: list[tuple[Traits, dict[str, Any], int]] = [
    (Traits(), {}, 80 + 3 * LAYER + 8 + 80),
    (Traits(tied=True), {}, 80 + 3 * LAYER + 8),
    (Traits(tied=True), {"tie_word_embeddings": False}, 80 + 3 * LAYER + 88),  # the config has the last word
    (Traits(), {"tie_embeddings": True}, 80 + 3 * LAYER + 8),
    (Traits(final_norm=None), {}, 80 + 3 * LAYER + 80),
    (Traits(final_norm="layer"), {}, 80 + 3 * LAYER + 16 + 80),
    (Traits(norm_kind="layer"), {}, 80 + 3 * (LAYER + 16) + 16 + 80),
    (Traits(head_bias=True), {}, 80 + 3 * LAYER + 8 + 90),
    (Traits(learned_positions=9), {}, 80 + 72 + 3 * LAYER + 88),
]


@pytest.mark.parametrize(("traits", "more", "params"), DECODERS)
def test_decoders(traits: Traits, more: dict[str, Any], params: int) -> None:
    arch = standard_decoder(Config({**LLAMA, **more}, "config"), "net", WIDTHS, traits)
    assert arch.params_total == params
    assert arch.max_positions == 7


@pytest.mark.parametrize(
    ("names", "gated"),
    [(("a", "b", "c"), True), (("gate_up_proj", "down"), True), (("up", "down"), False)],
)
def test_whether_a_shape_is_gated(names: tuple[str, ...], gated: bool) -> None:
    arch = standard_decoder(Config(LLAMA, "config"), "net", WIDTHS, Traits(mlp_names=names))
    assert arch.shape is not None and arch.shape.gated is gated


def test_layers_of_a_kind_are_held_together() -> None:
    arch = standard_decoder(
        Config({**LLAMA, "layer_types": [SLIDING, FULL, SLIDING]}, "config"), "net", WIDTHS, Traits(), window=2
    )  # fmt: skip
    cores = [(p.path, p.layer.window) for p in arch.leaves() if isinstance(p.layer, Attention)]
    assert cores == [
        ("model.layers.0-2:2.self_attn.attention", 2),
        ("model.layers.1.self_attn.attention", None),
    ]


KNOWN = [
    ({}, "full_attention"),
    ({"window": 2}, "full_attention, sliding_attention"),
    ({"chunk": 2}, "full_attention, chunked_attention"),
    ({"attend": lambda kind: ()}, "full_attention, linear_attention"),
]


@pytest.mark.parametrize(("options", "expected"), KNOWN)
def test_only_kinds_the_family_can_build_are_known(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        standard_decoder(
            Config({**LLAMA, "layer_types": ["mamba"] * 3}, "config"), "net", WIDTHS, Traits(), **options
        )  # fmt: skip
    assert str(caught.value) == (
        f"layer_types has an unknown entry in config: layer_types; got 'mamba'; expected {expected}."
    )
