"""Models by the letters of a paper: parameters by hand, names, choices, and every fault word by word."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.errors import ConfigError
from suanli.nouns.arch import Arch
from suanli.nouns.layers import Attention, Embedding, Linear, Norm, Opaque
from suanli.nouns.workload import Workload
from suanli.readers.paper import READERS, read_estimate, read_paper_decoder, read_paper_encoder_decoder

# h = 8, two layers, 4 heads of 2, f = 12, V = 10
DECODER: dict[str, Any] = {"hidden": 8, "num_layers": 2, "heads": 4, "ffn": 12, "vocab": 10}
# a layer: attention 4·64, MLP 2·8·12, two norms of scale and shift 2·16; last norm 16; lookup and head 80 each
LAYER = 256 + 192 + 32
DENSE = 2 * LAYER + 16 + 2 * 80

ROUTED = {"experts": 4, "experts_per_token": 2, "expert_ffn": 5}
# a mixture in place of the MLP: router 8·4, experts of 2·8·5
MIXED = 256 + 32 + (32 + 4 * 80)

DECODERS: list[tuple[dict[str, Any], int, int]] = [
    # what is changed; parameters held, parameters of a token
    ({}, DENSE, DENSE),
    ({"gated": True}, DENSE + 2 * 96, DENSE + 2 * 96),  # a third matrix
    ({"tied": True}, DENSE - 80, DENSE - 80),
    ({"norm": "rmsnorm"}, DENSE - 5 * 8, DENSE - 5 * 8),  # five norms lose their shift
    ({"norm": "layernorm_no_bias"}, DENSE - 5 * 8, DENSE - 5 * 8),
    ({"final_norm": False}, DENSE - 16, DENSE - 16),
    ({"kv_heads": 1}, DENSE - 2 * 2 * 8 * 6, DENSE - 2 * 2 * 8 * 6),  # k and v of 2 in place of 8
    ({"head_dim": 3}, DENSE + 2 * 4 * 8 * 4, DENSE + 2 * 4 * 8 * 4),  # heads together 12 wide, not 8
    ({"attention_bias": True}, DENSE + 2 * 4 * 8, DENSE + 2 * 4 * 8),
    ({"mlp_bias": True}, DENSE + 2 * (12 + 8), DENSE + 2 * (12 + 8)),
    ({"parallel_block": True}, DENSE - 2 * 16, DENSE - 2 * 16),  # one norm a layer
    ({"norms_per_layer": 4}, DENSE + 2 * 2 * 16, DENSE + 2 * 2 * 16),
    ({"norms_per_layer": 3, "parallel_block": True}, DENSE + 2 * 16, DENSE + 2 * 16),
    ({"learned_positions": True, "max_positions": 7}, DENSE + 7 * 8, DENSE + 7 * 8),
    ({"max_positions": 7}, DENSE, DENSE),  # rotary or none
    ({"relative_positions": True}, DENSE + 2 * 64, DENSE + 2 * 64),
    (ROUTED, 2 * MIXED + 176, 2 * (MIXED - 160) + 176),  # two of four experts of 80
    ({**ROUTED, "experts_per_token": 4}, 2 * MIXED + 176, 2 * MIXED + 176),
    ({**ROUTED, "first_dense_layers": 1}, LAYER + MIXED + 176, LAYER + MIXED - 160 + 176),
    ({**ROUTED, "first_dense_layers": 2}, DENSE, DENSE),
    (
        {**ROUTED, "shared_experts": 2, "shared_ffn": 3},
        2 * (MIXED + 2 * 8 * 6) + 176,
        2 * (MIXED - 160 + 96) + 176,
    ),  # one MLP of 6
    ({"experts": 4, "experts_per_token": 2}, 2 * (320 + 4 * 192) + 176, 2 * (320 + 2 * 192) + 176),  # as wide as f
    ({**ROUTED, "gated": True}, 2 * (MIXED + 4 * 40) + 176, 2 * (MIXED - 160 + 2 * 40) + 176),
    ({"first_dense_layers": 1}, DENSE, DENSE),  # means nothing without experts
]


@pytest.mark.parametrize(("changed", "held", "active"), DECODERS, ids=[str(row[0])[:70] for row in DECODERS])
def test_decoders(changed: dict[str, Any], held: int, active: int) -> None:
    arch = read_paper_decoder({**DECODER, **changed}, "net")
    assert (arch.params_total, arch.params_active) == (held, active)


def paths(arch: Arch) -> list[str]:
    return [placed.path for placed in arch.leaves()]


def test_names_of_a_decoder() -> None:
    config = {**DECODER, **ROUTED, "first_dense_layers": 1, "norms_per_layer": 3, "relative_positions": True}
    attention = ["q_proj", "k_proj", "v_proj", "attention", "o_proj", "relative_positions"]
    at = "layers.0"
    assert paths(read_paper_decoder(config, "net")) == [
        "embedding",
        f"{at}.norm_0",
        *(f"{at}.attention.{name}" for name in attention),
        f"{at}.norm_1",
        f"{at}.mlp.up_proj",
        f"{at}.mlp.act",
        f"{at}.mlp.down_proj",
        f"{at}.norm_2",
        "layers.1.norm_0",
        *(f"layers.1.attention.{name}" for name in attention),
        "layers.1.norm_1",
        "layers.1.mlp.gate",
        "layers.1.mlp.experts",
        "layers.1.mlp.experts.act",
        "layers.1.norm_2",
        "final_norm",
        "lm_head",
    ]


def test_what_a_paper_decoder_is() -> None:
    arch = read_paper_decoder({**DECODER, "kv_heads": 2, "gated": True, "max_positions": 7}, "net")
    shape = arch.shape
    assert shape is not None
    assert (shape.num_layers, shape.hidden, shape.heads, shape.kv_heads, shape.head_dim) == (2, 8, 4, 2, 2)
    assert (shape.ffn, shape.vocab, shape.gated) == (12, 10, True)
    assert (arch.name, arch.task, arch.max_positions, arch.notes) == ("net", "causal-lm", 7, ())
    core = next(placed.layer for placed in arch.leaves() if isinstance(placed.layer, Attention))
    assert (core.heads, core.kv_heads, core.qk_dim, core.v_dim, core.mask) == (4, 2, 2, 2, "causal")


def test_relative_positions_are_noted() -> None:
    arch = read_paper_decoder({**DECODER, "relative_positions": True}, "net")
    assert arch.notes == ("products with relative positions are not counted, their weights are",)


def test_flops_of_a_mixture_behind_a_dense_layer() -> None:
    """Three positions, 6 pairs. Weights: two attentions 512, MLP 192, router 32 and two experts 160, head 80."""
    arch = read_paper_decoder({**DECODER, **ROUTED, "first_dense_layers": 1}, "net")
    forward = build_ledger(arch, Workload(seq=3), find_convention("causal")).model_flops
    assert forward == 2 * 3 * (512 + 192 + 32 + 160 + 80) + 2 * (4 * 6 * 4 * 2)


# --- faults -------------------------------------------------------------------------------------------------------

WHOLE = "expected a whole number"
FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({**DECODER, "hidden": None}, [f"missing key hidden in paper: hidden; got null; {WHOLE}."]),
    (
        {**DECODER, "heads": 3},
        [
            "the number of heads does not divide the width, and no head_dim is given in paper: num_attention_heads; "
            "got 3 heads, width 8."
        ],
    ),
    (
        {**DECODER, "kv_heads": 3},
        [
            "the number of key/value heads does not divide the number of heads in paper: kv_heads; "
            "got 4 heads, 3 key/value heads."
        ],
    ),
    (
        {**DECODER, "norm": "batchnorm"},
        [
            "norm is not possible in paper: norm; got 'batchnorm'; "
            "expected one of layernorm, rmsnorm, layernorm_no_bias."
        ],
    ),
    (
        {**DECODER, "learned_positions": True},
        ["learned positions need max_positions in paper: max_positions."],
    ),
    (
        {**DECODER, "experts": 4},
        [f"missing key experts_per_token in paper: experts_per_token; {WHOLE}; nearest: experts."],
    ),
    (
        {**DECODER, **ROUTED, "experts_per_token": 5},
        ["experts_per_token is not possible in paper: experts_per_token; got 5; expected a whole number from 1 to 4."],
    ),
    (
        {**DECODER, "norms_per_layer": 5},
        ["norms_per_layer is not possible in paper: norms_per_layer; got 5; expected a whole number from 1 to 4."],
    ),
    (
        {**DECODER, "gated": "yes", "tied": 1, "num_layers": 0},
        [
            "num_layers is not possible in paper: num_layers; got 0; expected a whole number from 1 to 100,000.",
            "gated is not true or false in paper: gated; got 'yes'.",
            "tied is not true or false in paper: tied; got 1.",
        ],
    ),
]


@pytest.mark.parametrize(("values", "sentences"), FAULTS, ids=[row[1][0][:50] for row in FAULTS])
def test_faults_of_a_decoder(values: dict[str, Any], sentences: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_paper_decoder(values, "net", "paper")
    assert [fault.sentence() for fault in caught.value.faults] == sentences


# --- encoder and decoder ------------------------------------------------------------------------------------------

# h = 8, 4 heads, f = 12, V = 10, two encoder layers and three decoder layers
PAIR: dict[str, Any] = {
    "hidden": 8, "heads": 4, "ffn": 12, "vocab": 10, "encoder_layers": 2, "decoder_layers": 3,
}  # fmt: skip
FEED = 2 * 96 + 12 + 8 + 16  # two matrices, their biases, the norm behind
ENCODER_LAYER = 256 + 16 + FEED
DECODER_LAYER = 2 * (256 + 16) + FEED
TRANSFORMER = 80 + 2 * ENCODER_LAYER + 3 * DECODER_LAYER  # one matrix for both lookups and the output

PAIRS = [
    ({}, TRANSFORMER),
    ({"tied": False}, TRANSFORMER + 2 * 80),
    ({"mlp_bias": False}, TRANSFORMER - 5 * 20),
    ({"attention_bias": True}, TRANSFORMER + 8 * 4 * 8),  # 2 + 2·3 attentions
    ({"norm": "rmsnorm"}, TRANSFORMER - (2 * 2 + 3 * 3) * 8),
    ({"head_dim": 1}, TRANSFORMER - 8 * 128),  # half as wide inside
]


@pytest.mark.parametrize(("changed", "params"), PAIRS)
def test_encoder_decoders(changed: dict[str, Any], params: int) -> None:
    assert read_paper_encoder_decoder({**PAIR, **changed}, "net").params_total == params


def test_what_an_encoder_decoder_is() -> None:
    arch = read_paper_encoder_decoder(PAIR, "net")
    assert [(stream.name, stream.decodes, stream.length) for stream in arch.streams] == [
        ("tokens", True, None),
        ("encoder", False, None),
    ]
    assert arch.shape is not None
    assert (arch.task, arch.shape.num_layers, arch.notes) == (
        "seq2seq-lm", 5, ("encoder and decoder each of --seq positions",),
    )  # fmt: skip
    cores = [
        (p.stream, p.times, p.layer.mask, p.layer.key_stream) for p in arch.leaves() if isinstance(p.layer, Attention)
    ]
    assert cores == [
        ("encoder", 2, "full", None),
        ("tokens", 3, "causal", None),
        ("tokens", 3, "full", "encoder"),
    ]


def test_norms_stand_behind() -> None:
    """Post-norm: attention, norm, MLP, norm."""
    found = [path for path in paths(read_paper_encoder_decoder(PAIR, "net")) if path.startswith("encoder.layers")]
    norms = [path for path in found if path.endswith("_norm")]
    assert norms == ["encoder.layers.0-1.self_attention_norm", "encoder.layers.0-1.mlp_norm"]
    assert found[-1] == norms[-1]


def test_flops_of_an_encoder_decoder() -> None:
    """Three positions a side. Encoder layer 2·3·(256 + 192) and 9 pairs; decoder layer 2·3·(512 + 192), 6 and 9 pairs;
    head 2·3·80. A pair costs 4·4·2 = 32."""
    arch = read_paper_encoder_decoder(PAIR, "net")
    forward = build_ledger(arch, Workload(seq=3), find_convention("causal")).model_flops
    assert forward == 2 * (2688 + 9 * 32) + 3 * (4224 + 15 * 32) + 480


def test_decode_leaves_the_encoder_alone() -> None:
    """One token on four keys and four encoded positions: 2·(512 − 128 + 192) a layer: k and v of the encoder are
    kept; 8 pairs; head 160."""
    arch = read_paper_encoder_decoder(PAIR, "net")
    books = build_ledger(arch, Workload(phase="decode", kv_len=4, seq=4), find_convention("causal"))
    assert books.model_flops == 3 * (2 * 576 + 8 * 32) + 160
    assert sum(row.model_flops for row in books.rows if row.path.startswith("encoder")) == 0


def test_faults_of_an_encoder_decoder_come_together() -> None:
    with pytest.raises(ConfigError) as caught:
        read_paper_encoder_decoder({**PAIR, "encoder_layers": 0, "decoder_layers": None}, "net", "paper")
    assert [fault.sentence() for fault in caught.value.faults] == [
        "encoder_layers is not possible in paper: encoder_layers; got 0; expected a whole number from 1 to 100,000.",
        "missing key decoder_layers in paper: decoder_layers; got null; expected a whole number; "
        "nearest: encoder_layers.",
    ]


# --- estimates ----------------------------------------------------------------------------------------------------

ESTIMATE = {"params_per_expert": 111, "experts": 16, "experts_per_token": 2, "shared_params": 55}


@pytest.mark.parametrize(
    ("changed", "total", "active"),
    [
        ({}, 16 * 111 + 55, 2 * 111 + 55),  # the well-known 1.8T and 277B, in billions
        ({"experts_per_token": 20}, 1831, 1831),  # no more than there are
        ({"shared_params": 0}, 1776, 222),
        ({"params_per_expert": 10**16}, 16 * 10**16 + 55, 2 * 10**16 + 55),
    ],
)
def test_estimates(changed: dict[str, int], total: int, active: int) -> None:
    arch = read_estimate({**ESTIMATE, **changed}, "net")
    assert (arch.params_total, arch.params_active, arch.params_embedding) == (total, active, 0)
    assert all(isinstance(placed.layer, Opaque) for placed in arch.leaves())
    assert arch.shape is None
    assert arch.notes[0].startswith("an unconfirmed estimate of no published shape")


def test_faults_of_an_estimate() -> None:
    with pytest.raises(ConfigError) as caught:
        read_estimate({**ESTIMATE, "params_per_expert": 10**16 + 1, "shared_params": -1}, "net", "paper")
    assert [fault.where for fault in caught.value.faults] == ["paper: params_per_expert", "paper: shared_params"]
    assert caught.value.faults[1].expected == "a whole number from 0 to 10,000,000,000,000,000"


def test_readers_by_format() -> None:
    assert {
        "decoder": read_paper_decoder,
        "encoder-decoder": read_paper_encoder_decoder,
        "estimate": read_estimate,
    } == READERS


def test_leaves_are_what_their_names_say() -> None:
    arch = read_paper_decoder({**DECODER, "learned_positions": True, "max_positions": 7}, "net")
    kinds = {placed.path: type(placed.layer) for placed in arch.leaves()}
    assert kinds["embedding"] is kinds["positions"] is Embedding
    assert kinds["final_norm"] is Norm and kinds["lm_head"] is Linear
