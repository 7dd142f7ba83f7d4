"""How each leaf is cut: Megatron's way for every kind of block, and the law that parts make the whole."""

from __future__ import annotations

import pytest

from suanli.catalog.presets import presets
from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Attention, Elementwise, Experts, Linear, Norm
from suanli.plan.pieces import CUTS, Parts, Piece, parts_of
from suanli.readers.model import read_model

C, R, H, E, W = "column", "row", "heads", "experts", "whole"
LLAMA = "input_layernorm:W q_proj:C k_proj:C v_proj:C attention:H* o_proj:R* post_attention_layernorm:W"
MLP = "gate_proj:C up_proj:C act:W* down_proj:R*"
MLA = ("input_layernorm:W q_a_proj:W q_a_layernorm:W q_b_proj:C kv_a_proj_with_mqa:W kv_a_layernorm:W kv_b_proj:C "
       "attention:H* o_proj:R* post_attention_layernorm:W")  # fmt: skip
T5 = "layer_norm:W q:C k:C v:C attention:H* o:R* dropout:W"
T5_MLP = "layer_norm:W wi:C act:W* wo:R* dropout:W"

# model, kind of block, its leaves in order; * where the width is cut over tp and positions are whole
BLOCKS = [
    ("llama-3-8b", 0, f"{LLAMA} {MLP}"),
    ("gpt3-175b", 0, "ln_1:W c_attn:C attention:H* c_proj:R* dropout:W ln_2:W c_fc:C act:W* c_proj:R* dropout:W"),
    ("mixtral-8x7b", 0, f"{LLAMA} gate:W experts:E act:E"),
    ("deepseek-v3", 0, f"{MLA} {MLP}"),
    ("deepseek-v3", 1, f"{MLA} gate:W experts:E act:E e_score_correction_bias:W {MLP}"),  # shared experts: an MLP
    ("olmo-2-7b", 0, "q_proj:C k_proj:C v_proj:C q_norm:W* k_norm:W* attention:H* o_proj:R* "
                     f"post_attention_layernorm:W {MLP} post_feedforward_layernorm:W"),
    ("t5-small", 1, f"{T5} {T5_MLP}"),
    ("t5-small", 3, f"{T5} {T5} {T5_MLP}"),
    ("falcon-7b", 0, "input_layernorm:W query_key_value:C attention:H* dense:R* "
                     "dense_h_to_4h:C act:W* dense_4h_to_h:R*"),
    ("gpt-j-6b", 0, "ln_1:W q_proj:C k_proj:C v_proj:C attention:H* out_proj:R* dropout:W "
                    "fc_in:C act:W* fc_out:R* dropout:W"),
    ("mamba-130m", 0, "norm:W in_proj:C conv1d:H* x_proj:R* dt_proj:C A_log:H* D:H* scan:H* act:W* out_proj:R*"),
    ("mamba2-130m", 0, "norm:W in_proj:C conv1d:H* dt_bias:H* A_log:H* D:H* scan:H* act:W* norm:W* out_proj:R*"),
    ("minimax-text-01", 0, "input_layernorm:W qkv_proj:C attention:H* norm:W* output_gate:C out_proj:R* "
                           "post_attention_layernorm:W gate:W experts:E act:E"),  # linear attention with a gate
    ("minimax-text-01", 1, f"{LLAMA} gate:W experts:E act:E"),
    ("gpt-oss-20b", 0, LLAMA.replace("attention:H*", "sinks:H* attention:H*", 1) + " router:W experts:E act:E"),
    ("qwen3-8b", 0, LLAMA.replace("v_proj:C", "v_proj:C q_norm:W* k_norm:W*") + f" {MLP}"),
]  # fmt: skip


def said(piece: Piece) -> str:
    return f"{piece.path.rsplit('.', 1)[-1]}:{piece.cut[0].upper()}{'*' if piece.inner else ''}"


@pytest.mark.parametrize(("model", "kind", "leaves"), BLOCKS)
def test_cuts(model: str, kind: int, leaves: str) -> None:
    pieces = parts_of(read_model(model)).blocks[kind].pieces
    assert " ".join(said(piece) for piece in pieces) == leaves


OUTSIDE = [
    ("llama-3-8b", "embed_tokens:V", "norm:W lm_head:V"),
    ("gpt3-175b", "wte:V wpe:W", "ln_f:W lm_head:V"),
    ("t5-small", "shared:V", "final_layer_norm:W embed_tokens:V final_layer_norm:W lm_head:V"),
]


@pytest.mark.parametrize(("model", "before", "after"), OUTSIDE)
def test_what_lies_outside_the_blocks(model: str, before: str, after: str) -> None:
    parts = parts_of(read_model(model))
    assert (" ".join(map(said, parts.before)), " ".join(map(said, parts.after))) == (before, after)


GROUPED = [  # model, leaf, key/value heads, outputs that are theirs
    ("llama-3-8b", "k_proj", 8, 1024),
    ("llama-3-8b", "q_proj", None, 0),
    ("falcon-7b", "query_key_value", 1, 128),  # one head: key and value of 64 each
    ("falcon-40b", "query_key_value", 8, 1024),
    ("gpt3-175b", "c_attn", None, 0),  # as many key heads as query heads: cut like any other
    ("deepseek-v3", "kv_b_proj", None, 0),
]


@pytest.mark.parametrize(("model", "leaf", "groups", "features"), GROUPED)
def test_key_and_value_heads(model: str, leaf: str, groups: int | None, features: int) -> None:
    piece = next(p for p in parts_of(read_model(model)).blocks[0].pieces if p.path.endswith("." + leaf))
    assert (piece.groups, piece.grouped) == (groups, features)


# model, layers, how many blocks of each kind three chunks of a pipeline hold
COUNTS = [
    ("deepseek-v3", 61, (30, 30, 1), [(3, 27), (0, 30), (0, 1)]),
    ("gpt-oss-20b", 24, (3, 20, 1), [(2, 1), (10, 10), (0, 1)]),  # every other layer has a window
    ("t5-small", 12, (6, 1, 5), [(1, 5, 0, 0), (0, 0, 1, 0), (0, 0, 0, 5)]),  # the decoder goes on where it ended
    ("llama-3-8b", 32, (30, 1, 1), [(30,), (1,), (1,)]),
]


@pytest.mark.parametrize(("model", "layers", "sizes", "counts"), COUNTS)
def test_chunks(model: str, layers: int, sizes: tuple[int, ...], counts: list[tuple[int, ...]]) -> None:
    parts = parts_of(read_model(model))
    assert parts.num_layers == layers
    assert parts.counts(sizes) == counts


def test_the_first_and_the_last_of_a_chunk() -> None:
    parts = parts_of(read_model("gpt-oss-20b"))
    assert parts.counts((12, 12), first=3) == [(2, 1), (2, 1)]
    assert parts.counts((12, 12), first=99) == [(6, 6), (6, 6)]
    assert parts.counts((12, 12), since=21) == [(0, 0), (1, 2)]


# --- laws over every preset ---------------------------------------------------------------------------------------

NAMES = sorted(preset.name for preset in (presets().values() if isinstance(presets(), dict) else presets()))


def all_pieces(parts: Parts) -> list[Piece]:
    return [*parts.before, *(piece for block in parts.blocks for piece in block.pieces), *parts.after]


def test_parts_make_the_whole() -> None:
    """Every leaf is in one part; blocks times their layers hold every parameter; the kinds number all layers once."""
    for name in NAMES:
        arch = read_model(name)
        parts = parts_of(arch)
        pieces = all_pieces(parts)
        assert sorted(piece.path for piece in pieces) == sorted(placed.path for placed in arch.leaves()), name
        outside = sum(p.placed.held * p.layer.params for p in (*parts.before, *parts.after))
        inside = sum(
            len(block.layers) * (piece.placed.held // len(block.layers)) * piece.layer.params
            for block in parts.blocks
            for piece in block.pieces
        )
        assert outside + inside == arch.params_total, name
        assert len(parts.kinds) == parts.num_layers
        assert {piece.cut for piece in pieces} <= set(CUTS)


def test_rows_close_what_columns_open() -> None:
    """In every block a row's input is as wide as what the columns before it made, and never follows a row."""
    for name in NAMES:
        for block in parts_of(read_model(name)).blocks:
            opened = False
            for piece in block.pieces:
                if piece.cut == R:
                    assert opened, (name, piece.path)
                    opened = False
                opened = opened or piece.cut in (C, H)


def test_a_leaf_alone_is_cut_by_what_it_is() -> None:
    """A linear before a norm that another reads is whole; without the reader it is cut."""
    low = Linear(name="a", in_features=64, out_features=16)
    norm, up = Norm(name="n", dim=16), Linear(name="b", in_features=16, out_features=64)
    attention = Attention(name="x", heads=4, kv_heads=4, qk_dim=16, v_dim=16)
    back = Linear(name="o", in_features=64, out_features=64)
    assert cuts(low, norm, up, attention, back) == [W, W, C, H, R]
    assert cuts(low, norm, attention) == [C, W, H]
    gate = Linear(name="g", in_features=48, out_features=64)  # of another width than what was made: it reads the block
    assert cuts(up, attention, gate, back) == [C, H, C, R]
    experts = Experts(name="e", num=4, top_k=2, hidden=64, ffn=8)
    assert cuts(experts, Elementwise(name="act", op="gated", width=16)) == [E, E]
    assert cuts(Linear(name="r", in_features=64, out_features=4, role="router")) == [W]


def cuts(*leaves: object) -> list[str]:
    block = Module(name="layers", children=leaves, indices=range(2), block=True)  # type: ignore[arg-type]
    return [piece.cut for piece in parts_of(Arch(name="net", root=Module(name="", children=(block,)))).blocks[0].pieces]
