"""Bytes of weights: published checkpoints to the byte, schemes by hand, ranks, modules left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.schemes import find_scheme, list_schemes
from suanli.errors import InputError, UnknownNameError
from suanli.nouns.formats import Scheme
from suanli.nouns.layers import BlockLinear, Experts, Layer, Linear, Norm
from suanli.nouns.serving import ServingLayout
from suanli.nouns.tensors import Tensor, TensorTable
from suanli.plan.serving.skipped import layer_path, skips
from suanli.plan.serving.stored import stored_weights
from suanli.plan.serving.weights import leaf_bytes, weight_bytes
from suanli.readers.preset import read_named_preset
from suanli.readers.tensor_headers import read_safetensors
from suanli.units import GIGA

# model, scheme: metadata.total_size of the published model.safetensors.index.json
CHECKPOINTS = [
    ("gpt-oss-20b", "mxfp4", 13_761_264_768),
    ("gpt-oss-120b", "mxfp4", 65_248_815_744),
    ("llama-3.1-8b", "bf16", 16_060_522_496),
]


@pytest.mark.parametrize(("name", "scheme", "size"), CHECKPOINTS, ids=[row[0] for row in CHECKPOINTS])
def test_a_published_checkpoint_to_the_byte(name: str, scheme: str, size: int) -> None:
    found = weight_bytes(read_named_preset(name), scheme)
    assert found.total == found.per_rank == sum(found.parts.values()) == size


def test_deepseek_in_fp8_blocks() -> None:
    """671e9 B, a byte more for what stays in bf16 (two tables of 129,280 · 7,168, routers), scales; and with MTP the
    published folder of 688,586,727,753 B, which holds the two tables once more, and 163 headers."""
    arch = read_named_preset("deepseek-v3")
    plain, mtp = weight_bytes(arch, "fp8-block"), weight_bytes(arch, "fp8-block", mtp_layers=1)
    assert plain.parts["embedding"] == plain.parts["head"] == 129_280 * 7168 * 2
    assert plain.total - plain.parts["scales"] == pytest.approx(arch.params_total + 129_280 * 7168 * 2, rel=2e-4)
    assert plain.parts["scales"] == pytest.approx(4 * (671e9 - 2e9) / 128**2, rel=0.005)
    assert mtp.total + 2 * 129_280 * 7168 * 2 == pytest.approx(688_586_727_753, rel=2e-5)
    assert 84e9 <= plain.total / 8 < mtp.total / 8 <= 86e9
    on_eight = weight_bytes(arch, "fp8-block", ServingLayout(tp=8, ep=8), mtp_layers=1)
    assert mtp.total / 8 < on_eight.per_rank < 87e9  # the low ranks of MLA are whole on every rank


def test_405b_in_bf16_is_811_gb() -> None:
    assert int(weight_bytes(read_named_preset("llama-3.1-405b")).total / GIGA) == 811


# a matrix of 256 inputs and 384 outputs under each scheme: weights, scales
MATRIX = Linear(name="x", in_features=256, out_features=384)
BY_HAND = [
    ("bf16", 256 * 384 * 2, 0),
    ("fp8", 256 * 384, 8),
    ("fp8-channel", 256 * 384, 384 * 4),
    ("fp8-block", 256 * 384, 2 * 3 * 4),
    ("int8", 256 * 384, 384 * 2),
    ("gptq-4bit-128", 256 * 384 // 2, 2 * 384 * 2 + 2 * 384 // 2 + 256 * 4),
    ("awq-4bit-128", 256 * 384 // 2, 2 * 384 * 2 + 2 * 384 // 2),
    ("nvfp4", 256 * 384 // 2, 16 * 384 + 8),
    ("nf4", 256 * 384 // 2, 4 * 384),
    ("q4_0", 256 * 384 // 32 * 18, 0),
    ("q8_0", 256 * 384 // 32 * 34, 0),
    ("q4_k", 384 * 144, 0),
    ("q6_k", 384 * 210, 0),
    ("iq1_s", 384 * 50, 0),
]


@pytest.mark.parametrize(("scheme", "weights", "scales"), BY_HAND, ids=[row[0] for row in BY_HAND])
def test_a_matrix_by_hand(scheme: str, weights: int, scales: int) -> None:
    assert leaf_bytes(MATRIX, find_scheme(scheme)) == {"linear": weights, "scales": scales}


LEAVES: list[tuple[Layer, str, dict[str, int]]] = [
    (replace(MATRIX, bias=True), "fp8-block", {"linear": 256 * 384 + 384 * 2, "scales": 24}),
    (replace(MATRIX, role="lm_head"), "fp8-block", {"head": 256 * 384 * 2, "scales": 0}),
    (replace(MATRIX, role="lm_head", tied=True), "q4_0", {"head": 0, "scales": 0}),
    (replace(MATRIX, role="router"), "fp8-block", {"other": 256 * 384 * 2, "scales": 0}),
    (Norm(name="n", dim=256), "fp8-block", {"norms": 512, "scales": 0}),
    (Norm(name="n", dim=256), "q4_k", {"norms": 1024, "scales": 0}),
    (BlockLinear(name="b", in_features=256, out_features=256, blocks=2), "fp8-block",
     {"linear": 2 * 128 * 128, "scales": 2 * 4}),
    (Experts(name="e", num=3, top_k=1, hidden=64, ffn=32, bias=True), "mxfp4",
     {"experts": 3 * 3 * 64 * 32 // 2 + 3 * (32 + 32 + 64) * 2, "scales": 3 * (2 * 2 * 32 + 64)}),
    (MATRIX, "mxfp4", {"linear": 256 * 384 * 2, "scales": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("leaf", "scheme", "sizes"), LEAVES, ids=[f"{row[0].kind}-{row[1]}" for row in LEAVES])
def test_leaves_by_hand(leaf: Layer, scheme: str, sizes: dict[str, int]) -> None:
    assert leaf_bytes(leaf, find_scheme(scheme)) == sizes


# --- ranks --------------------------------------------------------------------------------------------------------


def test_matrices_are_cut_and_norms_are_not() -> None:
    whole = weight_bytes(read_named_preset("llama-3.1-70b"))
    rank = weight_bytes(read_named_preset("llama-3.1-70b"), layout=ServingLayout(tp=8))
    norms = whole.parts["norms"]
    assert rank.per_rank == (whole.total - norms) / 8 + norms
    assert whole.read == whole.total - 128_256 * 8192 * 2
    assert rank.read_per_rank == rank.per_rank - 128_256 * 8192 * 2 / 8


def test_the_fullest_stage() -> None:
    """126 layers on 4 are 31 with the table, 32, 32, and 31 with the head: 32 layers are more."""
    arch = read_named_preset("llama-3.1-405b")
    whole, stage = weight_bytes(arch), weight_bytes(arch, layout=ServingLayout(pp=4))
    layers = whole.total - whole.parts["embedding"] - whole.parts["head"] - 16_384 * 2
    assert stage.per_rank == stage.read_per_rank == layers / 126 * 32
    assert stage.per_rank > layers / 126 * 31 + whole.parts["embedding"]


def test_a_tied_table_is_on_both_ends() -> None:
    arch = read_named_preset("gemma-3-1b")
    table = 262_144 * 1152 * 2
    whole, stages = weight_bytes(arch), weight_bytes(arch, layout=ServingLayout(pp=2))
    assert whole.parts["embedding"] == table and whole.read == whole.total
    assert stages.per_rank > whole.total / 2 and stages.per_rank - table < (whole.total - table) / 2 + 2e7


# layout: experts of one rank of Mixtral (8 of 3 matrices of 4096 · 14,336 in 32 layers)
EXPERTS = [
    (ServingLayout(tp=8), 8), (ServingLayout(tp=8, ep=8), 8), (ServingLayout(tp=4, ep=2), 4),
    (ServingLayout(dp_attention=8, ep=8), 8), (ServingLayout(tp=2, dp_attention=2, ep=1), 4),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "over"), EXPERTS)
def test_experts_are_over_all_ranks(layout: ServingLayout, over: int) -> None:
    arch = read_named_preset("mixtral-8x7b")
    experts = weight_bytes(arch).parts["experts"]
    assert experts == 32 * 8 * 3 * 4096 * 14_336 * 2
    dense = weight_bytes(arch, layout=ServingLayout(tp=layout.tp)).per_rank - experts / layout.tp
    assert weight_bytes(arch, layout=layout).per_rank == dense + experts / over


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([each.name for each in list_schemes()]))
def test_ranks_hold_the_whole_and_what_they_repeat(tp: int, scheme: str) -> None:
    arch = read_named_preset("llama-3.2-1b")
    found = weight_bytes(arch, scheme, ServingLayout(tp=tp))
    assert sum(found.parts.values()) == found.total <= tp * found.per_rank
    assert tp * found.per_rank < found.total * 1.01 + tp * 2e6
    assert found.total <= weight_bytes(arch, "fp32").total * 1.01  # Q8_K and scales of nearly nothing


def test_what_cannot_be() -> None:
    arch = read_named_preset("llama-3.1-8b")
    with pytest.raises(UnknownNameError, match=r"unknown weight scheme 'fp9'.*nearest: .*fp8"):
        weight_bytes(arch, "fp9")
    with pytest.raises(InputError, match="attention heads cannot be cut evenly in --tp; got 32 heads over 5"):
        weight_bytes(arch, layout=ServingLayout(tp=5))


# --- modules left alone -------------------------------------------------------------------------------------------

# entry, path, whether it is skipped
SKIPS = [
    ("lm_head", "lm_head", True),
    ("lm_head", "model.lm_heads", False),
    ("model.layers.3.mlp", "model.layers.3.mlp.up_proj", True),
    ("model.layers.3.mlp", "model.layers.13.mlp.up_proj", False),
    ("self_attn", "model.layers.3.self_attn.q_proj", True),
    ("model.layers.*.self_attn", "model.layers.3.self_attn.q_proj", True),
    ("model.layers.*.mlp.gate", "model.layers.3.mlp.gate_proj", False),
    ("re:.*gate$", "model.layers.3.mlp.gate", True),
    ("re:.*gate$", "model.layers.3.mlp.gate_proj", False),
]


@pytest.mark.parametrize(("entry", "path", "left"), SKIPS)
def test_names_globs_and_patterns(entry: str, path: str, left: bool) -> None:
    assert skips(Scheme(name="x", title="", bits=4, skip=(entry,)), path) == left


def test_a_path_in_one_layer() -> None:
    assert layer_path("model.layers.0-31.mlp.up", "model.layers.0-31", 3) == "model.layers.3.mlp.up"
    assert layer_path("h.0-40:2.mlp", "h.0-40:2", 4) == "h.4.mlp"
    assert layer_path("layer.mlp", "layer", 4) == "layer.mlp"


def test_layers_left_alone_stay_wide() -> None:
    """Of Llama 3.1 8B's 32 layers one keeps its three MLP matrices of 4096 · 14,336 in bf16: a byte more each."""
    arch = read_named_preset("llama-3.1-8b")
    scheme = find_scheme("fp8-channel")
    left = weight_bytes(arch, replace(scheme, skip=("model.layers.7.mlp",)))
    scales = 4 * (2 * 14_336 + 4096)
    assert left.total - weight_bytes(arch, scheme).total == 3 * 4096 * 14_336 - scales
    assert weight_bytes(arch, replace(scheme, skip=("re:.*",))).total == weight_bytes(arch, "bf16").total


# --- from headers -------------------------------------------------------------------------------------------------


def table(*tensors: tuple[str, tuple[int, ...], int]) -> TensorTable:
    found = tuple(Tensor(name, "BF16", shape, size) for name, shape, size in tensors)
    return TensorTable(name="made", format="safetensors", tensors=found)


TABLE = table(
    ("model.embed_tokens.weight", (10, 8), 160),
    ("model.layers.0.self_attn.q_proj.weight", (8, 8), 128),
    ("model.layers.0.self_attn.q_proj.weight_scale_inv", (1, 1), 4),
    ("model.layers.0.mlp.experts.0.up_proj.weight", (8, 8), 64),
    ("model.layers.1.self_attn.kv_a_proj_with_mqa.weight", (8, 8), 128),
    ("model.layers.1.input_layernorm.weight", (8,), 16),
    ("lm_head.weight", (10, 8), 160),
)


def test_a_header_is_added_up_by_part() -> None:
    found = stored_weights(TABLE)
    assert found.total == found.per_rank == 660
    assert found.parts == {"embedding": 160, "linear": 256, "scales": 4, "experts": 64, "norms": 16, "head": 160}
    assert (found.read, found.source) == (500, "safetensors header of made")


def test_a_header_over_ranks() -> None:
    """Two ranks: half of each matrix, the low rank and the norm whole, experts over both groups of attention."""
    assert stored_weights(TABLE, ServingLayout(tp=2)).per_rank == 80 + 64 + 2 + 32 + 128 + 16 + 80
    assert stored_weights(TABLE, ServingLayout(tp=2, dp_attention=2)).per_rank == 80 + 64 + 2 + 16 + 128 + 16 + 80
    assert stored_weights(TABLE, ServingLayout(pp=2)).per_rank == 160 + 128 + 4 + 64


def test_a_file_that_was_written(tmp_path: Path) -> None:
    header = {"w": {"dtype": "F8_E4M3", "shape": [4, 4], "data_offsets": [0, 16]},
              "w_scale": {"dtype": "F32", "shape": [1], "data_offsets": [16, 20]}}  # fmt: skip
    text = json.dumps(header).encode()
    (tmp_path / "m.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(20))
    found = stored_weights(read_safetensors(tmp_path / "m.safetensors"))
    assert (found.total, found.parts, found.scheme) == (20, {"linear": 16, "scales": 4}, "F8_E4M3, F32")
