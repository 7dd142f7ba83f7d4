"""A rank's leaves and what they keep: against the whole model, and against the tables of arXiv:2205.05198."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.presets import presets
from suanli.errors import InputError
from suanli.footprint import activations
from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Experts, Linear
from suanli.nouns.layout import Layout
from suanli.nouns.workload import Workload
from suanli.plan.pieces import COLUMN, EXPERTS, HEADS, ROW, VOCAB, Piece, parts_of
from suanli.plan.sharding import (
    Degrees,
    Held,
    Kept,
    Storage,
    check_layout,
    degrees_of,
    held,
    kept,
    positions_of,
    rank_leaf,
)
from suanli.readers.hf import read_hf_config
from suanli.readers.model import read_model

PLAIN = Storage(size=2, matmul_size=2)
NAMES = sorted(preset.name for preset in (presets().values() if isinstance(presets(), dict) else presets()))


def whole(arch: Arch, workload: Workload, recompute: str, flash: bool) -> int:
    """What all leaves keep on one rank, by the functions that a rank's part is counted with."""
    parts, positions = parts_of(arch), positions_of(arch, workload)
    at, outside = Degrees(micro_batch=workload.batch), "none" if recompute == "none" else "scores"
    total = 0
    for pieces in (parts.before, parts.after):
        found = kept(pieces, positions, at, PLAIN)
        total += found.policy(outside, flash) + found.logits
    for block in parts.blocks:
        found = kept(block.pieces, positions, at, PLAIN, len(block.layers))
        logits = 0 if recompute == "full" else found.logits
        total += len(block.layers) * (found.policy(recompute, flash) + logits)
    return total


POLICIES = {"none_unfused": ("none", False), "none": ("none", True), "selective": ("scores", True),
            "full": ("full", True)}  # fmt: skip


def test_one_rank_keeps_what_the_model_keeps() -> None:
    """Over every preset and policy: tp = cp = ep = 1 is the footprint, to the byte."""
    for name in NAMES:
        arch = read_model(name)
        workload = Workload(phase="train", seq=min(256, arch.max_positions or 256), batch=3)
        expected = activations(arch, workload)
        assert {policy: whole(arch, workload, *how) for policy, how in POLICIES.items()} == expected, name


# --- arXiv:2205.05198 table 2 -------------------------------------------------------------------------------------


def gpt(layers: int, hidden: int, heads: int, seq: int) -> Arch:
    config = {"model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads, "vocab_size": 512,
              "n_positions": seq}  # fmt: skip
    return read_hf_config(config, "gpt")


def block_of(arch: Arch, seq: int, at: Degrees) -> Kept:
    block = parts_of(arch).blocks[0]
    return kept(block.pieces, positions_of(arch, Workload(phase="train", seq=seq)), at, PLAIN, len(block.layers))


@given(t=st.sampled_from([1, 2, 4, 8]), k=st.integers(1, 4), width=st.integers(1, 16), s=st.integers(1, 16),
       b=st.integers(1, 4))  # fmt: skip
def test_table_2(t: int, k: int, width: int, s: int, b: int) -> None:
    """Activations per layer: none, tensor, tensor and sequence parallel; with selective and full recompute."""
    a = 8 * k
    h, s = a * width, 8 * s
    found = block_of(gpt(2, h, a, s), s, Degrees(tp=t, micro_batch=b))
    sbh, scores = s * b * h, 5 * a * s * s * b // t
    assert found.policy("none", False) == 10 * sbh + 24 * sbh // t + scores  # sbh(10 + 24/t + 5as/ht)
    assert found.policy("scores", False) == 10 * sbh + 24 * sbh // t
    assert found.policy("full", False) == 2 * sbh
    if t > 1:
        found = block_of(gpt(2, h, a, s), s, Degrees(tp=t, micro_batch=b, sp=True))
        assert found.policy("none", False) == 34 * sbh // t + scores  # sbh/t (34 + 5as/h)
        assert found.policy("scores", False) == 34 * sbh // t
        assert found.policy("full", False) == 2 * sbh // t


# --- parameters ---------------------------------------------------------------------------------------------------


def gathered(piece: Piece, ranks: int) -> int:
    """Parameters of all ranks' parts of a leaf put together: what is whole on each counts once."""
    part = rank_leaf(piece, Degrees(tp=ranks, ep=ranks))
    if piece.cut == ROW:
        bias = part.out_features if part.bias else 0  # type: ignore[attr-defined]
        return ranks * (part.params - bias) + bias
    copied = piece.grouped * (0 if piece.groups is None else max(0, ranks // piece.groups - 1))
    if piece.cut in (COLUMN, HEADS, EXPERTS, VOCAB) or piece.inner:
        each = piece.layer.in_features + int(piece.layer.bias) if isinstance(piece.layer, Linear) else 0
        return ranks * part.params - copied * each
    return part.params


WHOLES = [("llama-3-8b", 8), ("llama-3-8b", 16), ("gpt3-175b-megatron", 8), ("mixtral-8x7b", 8), ("deepseek-v3", 32),
          ("olmo-2-7b", 4), ("t5-small", 4), ("falcon-40b", 8), ("falcon-40b", 16), ("gpt-j-6b", 8), ("mamba-130m", 8),
          ("gpt-oss-20b", 4), ("qwen3-8b", 4), ("minimax-text-01", 8), ("llama-3.1-405b", 8)]  # fmt: skip


@pytest.mark.parametrize(("model", "ranks"), WHOLES)
def test_parts_of_parameters_sum_to_the_whole(model: str, ranks: int) -> None:
    parts = parts_of(read_model(model))
    for piece in [*parts.before, *(p for block in parts.blocks for p in block.pieces), *parts.after]:
        expected = piece.layer.params
        if piece.inner and getattr(piece.layer, "per", 1) > 1:  # a norm of heads: the same weight on every rank
            expected *= ranks
        assert gathered(piece, ranks) == expected, piece.path


def test_key_heads_below_tp_are_copied() -> None:
    """Llama-3-8B on tp 16: each rank makes 2 query heads, and one key and value head of the 8, twice over."""
    piece = parts_of(read_model("llama-3-8b")).blocks[0].pieces[2]
    assert rank_leaf(piece, Degrees(tp=16)).out_features == 128  # type: ignore[attr-defined]
    assert rank_leaf(piece, Degrees(tp=8)).out_features == 128  # type: ignore[attr-defined]
    falcon = parts_of(read_model("falcon-40b")).blocks[0].pieces[2]  # 8,192 query features, 8 heads of 64 twice
    assert rank_leaf(falcon, Degrees(tp=16)).out_features == 512 + 128  # type: ignore[attr-defined]


def test_latent_attention_on_8_ranks() -> None:
    """DeepSeek-V3's ranks are whole, its heads are cut (Megatron-LM #1475). 7168·1536 + 1536·24576/8 + 7168·576
    + 512·32768/8 + 16384·7168/8, and norms of 1536 and 512."""
    pieces = [piece for piece in parts_of(read_model("deepseek-v3")).blocks[0].pieces if "self_attn" in piece.path]
    expected = 11_010_048 + 4_718_592 + 4_128_768 + 2_097_152 + 14_680_064 + 2048
    assert held(pieces, Degrees(tp=8), 3).dense == expected


def test_experts_are_cut_by_ep_and_etp_not_by_tp() -> None:
    """Megatron-LM #4050: Mixtral's 8 experts of 3·4096·14336 a layer."""
    pieces = parts_of(read_model("mixtral-8x7b")).blocks[0].pieces
    each = 3 * 4096 * 14336
    for degrees, experts in (({"tp": 8}, 8), ({"tp": 8, "ep": 4, "dp": 4}, 2), ({"ep": 8, "dp": 8}, 1)):
        assert held(pieces, Degrees(**degrees), 32).experts == experts * each
    assert held(pieces, Degrees(tp=8, etp=8), 32).experts == each
    assert Degrees(tp=8, dp=4, ep=4).expert_state_ranks == 8  # replicas of an expert share its states
    assert Degrees(tp=8, dp=4, ep=4).state_ranks == 4
    assert Degrees(tp=8, dp=4, ep=4, shards=2).expert_state_ranks == 2


def test_a_tied_head_is_held_once_or_copied() -> None:
    parts = parts_of(read_model("t5-small"))  # two tied tables after the blocks: one copy where another rank has it
    assert held(parts.after, Degrees()).dense == 2 * 512
    assert held(parts.after, Degrees(), untied=True).dense == 32128 * 512 + 2 * 512


def test_frozen_weights_and_sums() -> None:
    frozen = Linear(name="a", in_features=3, out_features=5, trainable=False)
    experts = Experts(name="e", num=2, top_k=1, hidden=3, ffn=4)
    block = Module(name="b", children=(frozen, experts), block=True)
    pieces = parts_of(Arch(name="net", root=Module(name="", children=(block,)))).blocks[0].pieces
    found = held(pieces, Degrees())
    assert found == Held(dense=15, experts=72, trained_dense=0, trained_experts=72, matrices=15 + 72)
    assert found.times(2) + found == Held(45, 216, 0, 216, 261)


# --- positions and refusals ---------------------------------------------------------------------------------------


def test_what_cannot_be_cut_is_told_together() -> None:
    parts = parts_of(read_model("llama-3-8b"))
    with pytest.raises(InputError) as problem:
        check_layout(parts, Layout(tp=3, cp=5, dp=2, ep=2), 2048)
    assert [fault.sentence() for fault in problem.value.faults] == [
        "attention heads cannot be cut evenly in --tp; got 32 attention heads over 3; expected a divisor of 32.",
        "key and value heads cannot be cut or copied evenly in --tp; got 8 heads over 3; "
        "expected a divisor or a multiple of 8.",
        "a sequence cannot be cut evenly in --cp; got 2,048 positions over 5; expected a divisor of the length.",
        "the model has no experts to spread in --ep; got 2; expected 1.",
    ]
    check_layout(parts, Layout(tp=8, cp=4, dp=2), 2048)
    with pytest.raises(InputError, match="key and value heads cannot be cut or copied evenly"):
        check_layout(parts_of(read_model("phi-4")), Layout(tp=4), 2048)  # 40 heads, 10 of keys
    with pytest.raises(InputError, match="experts cannot be cut evenly"):
        check_layout(parts_of(read_model("mixtral-8x7b")), Layout(dp=6, ep=3), 2048)


def test_degrees_of_a_layout() -> None:
    at = degrees_of(Layout(tp=4, dp=8, cp=2, sp=True, zero=2, micro_batch=3), vocab_multiple=128, imbalance=1.5)
    assert (at.tp, at.cp, at.zero, at.micro_batch, at.vocab_multiple, at.imbalance) == (4, 2, 2, 3, 128, 1.5)
    assert (at.outer_cut, at.state_ranks, at.expert_state_ranks) == (8, 16, 64)
    assert Degrees(tp=4, cp=2).outer_cut == 2


def test_op_level_recompute_keeps_every_second_product() -> None:
    """A Llama block of 4,096 positions: input, attention's result and fp32 statistics; q, v, gate and down."""
    arch = read_model("llama-3-8b")
    found = kept(parts_of(arch).blocks[0].pieces, positions_of(arch, Workload(phase="train", seq=4096)), Degrees(),
                 PLAIN, 32)  # fmt: skip
    assert found.policy("attention", True) == 4096 * (2 * 4096 + 2 * 4096 + 4 * 32)
    assert found.products == 4096 * 2 * (4096 + 1024 + 14336 + 4096)


def test_a_fused_gate_keeps_two_of_three() -> None:
    arch = read_model("llama-3-8b")
    block, positions = parts_of(arch).blocks[0], positions_of(arch, Workload(phase="train", seq=8))
    plain, fused = (
        kept(block.pieces, positions, Degrees(), Storage(size=2, matmul_size=2, fused_gate=gate), 32).linear
        for gate in (False, True)
    )
    assert plain - fused == 8 * 2 * 14336


def test_quantised_inputs_are_narrower() -> None:
    """A Llama block's matmul inputs in 8 bits: q (with k and v), o, gate (with up), down."""
    arch = read_model("llama-3-8b")
    block, positions = parts_of(arch).blocks[0], positions_of(arch, Workload(phase="train", seq=8))
    wide, narrow = (
        kept(block.pieces, positions, Degrees(), Storage(size=2, matmul_size=size), 32).linear for size in (2, 1)
    )
    assert wide - narrow == 8 * (4096 + 4096 + 4096 + 14336)


def test_light_recompute() -> None:
    """DeepSeek-V3's block of experts, in 8-bit matmul inputs: norms of 7168 (two), 1536, 512 in 16 bits; o_proj's
    input of 16384; experts' of 8·7168; gates of 8·2048 and 2048, twice; attention's statistics of 128 heads."""
    arch = read_model("deepseek-v3")
    narrow = Storage(size=2, matmul_size=1)
    found = kept(parts_of(arch).blocks[1].pieces, positions_of(arch, Workload(phase="train", seq=64)), Degrees(),
                 narrow, 58)  # fmt: skip
    norms, inputs = 2 * (2 * 7168 + 1536 + 512), 16384 + 8 * 7168
    assert found.policy("light", True) == 64 * (norms + inputs + 2 * (8 * 2048 + 2048) + 4 * 128)


def test_light_recompute_of_a_plain_block() -> None:
    """Llama keeps queries, keys and values, for it has no compressed ones to make them from."""
    arch = read_model("llama-3-8b")
    found = kept(parts_of(arch).blocks[0].pieces, positions_of(arch, Workload(phase="train", seq=8)), Degrees(),
                 PLAIN, 32)  # fmt: skip
    assert found.policy("light", True) == 8 * (2 * (2 * 4096 + 4096 + 2 * 1024 + 4096 + 2 * 14336) + 4 * 32)
