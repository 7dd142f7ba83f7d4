"""Counting: ledgers close, known numbers come out to the last FLOP, passes and conventions do what they say."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suanli
from suanli.catalog.conventions import CONVENTIONS, find_convention
from suanli.catalog.presets import find_preset, presets
from suanli.count import GROUPINGS, build_ledger, count
from suanli.errors import InputError
from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Attention, Linear
from suanli.nouns.ledger import BACKWARD, FORWARD, RECOMPUTE_PASS, Ledger
from suanli.nouns.workload import PHASES, RECOMPUTE, Workload
from suanli.readers.layer_expr import read_layer_expression
from suanli.readers.preset import read_preset

OPS = [name for name, convention in CONVENTIONS.items() if convention.basis == "ops"]
PARAMS = [name for name, convention in CONVENTIONS.items() if convention.basis == "params"]
SOME = [
    "llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gpt2", "gemma-2-9b", "gpt-oss-20b", "t5-small", "whisper-small",
    "bert-base", "vit-b16", "clip-vit-b32", "resnet-50", "alexnet", "lstm-512", "minimax-text-01",
]  # fmt: skip


@cache
def model(name: str) -> Arch:
    return read_preset(find_preset(name))


def ledger(name: str, convention: str = "causal", **workload: object) -> Ledger:
    return build_ledger(model(name), Workload(**workload), find_convention(convention))  # type: ignore[arg-type]


# --- against the table of right answers ---------------------------------------------------------------------------

# The table's names where they are not presets; `None`: no reader, said in the reason.
NAMES = {"resnet50": "resnet-50", "resnet152": "resnet-152", "lstm": "lstm-512"}
EXPRESSIONS = {
    "gru": "gru(512, 512, layers=2, bidirectional)",
    "linear8": " -> ".join(["linear(1024, 1024)"] * 8),
}
UNREAD = {"mamba-2.8b", "mamba2-2.7b", "llava-1.5-7b"}  # state spaces and pictures in a decoder are not read yet


def expected_rows() -> list[dict[str, str]]:
    inside = Path(suanli.__file__).parent / "catalog" / "claims" / "expected_counts.csv"
    beside = Path(__file__).resolve().parents[2] / "shared" / "data" / "expected_counts.csv"
    path = inside if inside.exists() else beside
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


EXPECTED = expected_rows()


def test_the_table_of_right_answers_is_here() -> None:
    assert len(EXPECTED) >= 50
    read = {NAMES.get(row["model"], row["model"]) for row in EXPECTED} - UNREAD - set(EXPRESSIONS)
    assert read <= set(presets()) | {alias for preset in presets().values() for alias in preset.aliases}


@pytest.mark.parametrize(
    "row", [row for row in EXPECTED if row["model"] not in UNREAD], ids=lambda row: f"{row['model']}-{row['seq']}"
)
def test_expected_counts(row: dict[str, str]) -> None:
    name = row["model"]
    arch = read_layer_expression(EXPRESSIONS[name]) if name in EXPRESSIONS else model(NAMES.get(name, name))
    workload = Workload(seq=int(row["seq"] or 1), batch=int(row["batch"]))
    assert arch.params_total == int(row["params"])
    for convention, column in (("full", "fwd_flops_full_attention"), ("causal", "fwd_flops_causal_or_windowed")):
        if row[column]:
            assert build_ledger(arch, workload, find_convention(convention)).model_flops == int(row[column])


# Llama-3-8B, 8,192 positions, GFLOP a token in training: reference/meters.md §2.1
METERS = {
    "6n": 45.030, "megatron-2024-02": 46.639, "6n-all": 48.182, "megatron-2023": 49.860, "causal": 51.471,
    "megatron": 51.470, "neox": 53.904, "verl": 54.622, "full": 57.913, "megatron-full": 57.913, "palm-noemb": 57.914,
    "levanter": 57.988, "palm": 61.066, "internevo": 62.745, "hardware": 67.578, "litgpt": 69.656,
}  # fmt: skip


def test_every_convention_has_its_figure() -> None:
    assert set(METERS) == set(CONVENTIONS)


@pytest.mark.parametrize(("convention", "gflop"), METERS.items())
def test_what_each_convention_says_of_one_run(convention: str, gflop: float) -> None:
    flops = ledger("llama-3-8b", convention, seq=8192, phase="train").model_flops
    assert flops / 8192 / 1e9 == pytest.approx(gflop, abs=0.0006)


# --- books that close ---------------------------------------------------------------------------------------------


def phases(arch: Arch) -> list[str]:
    return [phase for phase in PHASES if phase != "decode" or arch.decodes]


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("convention", [*OPS, *PARAMS])
def test_ledgers_close(name: str, convention: str) -> None:
    arch = model(name)
    for phase in phases(arch):
        for recompute in RECOMPUTE if phase == "train" else ("none",):
            books = ledger(name, convention, seq=24, batch=2, phase=phase, recompute=recompute)
            assert books.params == arch.params_total
            assert sum(books.flops(pass_) for pass_ in (FORWARD, BACKWARD, RECOMPUTE_PASS)) == books.model_flops
            assert books.hardware_flops >= books.model_flops > 0
            for row in books.rows:
                figures = (row.model_flops, row.hardware_flops, row.read_bytes, row.write_bytes, row.params)
                assert all(type(figure) is int and figure >= 0 for figure in figures)
            assert (books.flops(BACKWARD) > 0) is (phase == "train")


@pytest.mark.parametrize("by", GROUPINGS)
def test_groupings_keep_the_totals(by: str) -> None:
    books = count(model("mixtral-8x7b"), Workload(seq=64, phase="train"), find_convention("causal"), by=by)
    assert sum(row.model_flops for row in books.rows) == books.flops.model
    assert sum(row.params for row in books.rows) == books.params.total
    assert books.flops.forward + books.flops.backward == books.flops.model
    assert books.macs * 2 == books.flops.model


def test_ledgers_add() -> None:
    one, two = ledger("gpt2", seq=8), ledger("gpt2", seq=16)
    assert (one + two).model_flops == one.model_flops + two.model_flops
    with pytest.raises(AssertionError):
        one + ledger("gpt2", "full", seq=8)


LINEAR_IN_BATCH = [name for name in SOME if not name.startswith("clip")]  # its logits compare samples pairwise


@pytest.mark.parametrize("name", LINEAR_IN_BATCH)
@pytest.mark.parametrize("convention", ["causal", "full", "palm", "hardware"])
def test_flops_grow_with_the_batch(name: str, convention: str) -> None:
    for phase in phases(model(name)):
        one = ledger(name, convention, seq=24, phase=phase).hardware_flops
        assert ledger(name, convention, seq=24, phase=phase, batch=7).hardware_flops == 7 * one


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SOME), st.integers(1, 4096), st.sampled_from(["forward", "train"]))
def test_conventions_keep_their_order(name: str, seq: int, phase: str) -> None:
    """The mask takes pairs away, recompute adds work."""
    causal, full, hardware = (
        ledger(name, convention, seq=seq, phase=phase).model_flops for convention in ("causal", "full", "hardware")
    )
    assert causal <= full
    assert causal <= hardware


# --- inference ----------------------------------------------------------------------------------------------------


MATMUL_8B = 8_030_261_248 - 128_256 * 4096 - 65 * 4096  # less the embedding and 65 norms


def test_decode_of_llama_8b_with_2048_keys() -> None:
    """A forward of one token: 2 × matmul weights, and 4 × 2048 × 32 × 128 a layer for its one row of scores."""
    by_hand = 2 * MATMUL_8B + 32 * 4 * 2048 * 32 * 128
    for convention in ("causal", "full"):
        assert ledger("llama-3.1-8b", convention, phase="decode", kv_len=2048).model_flops == by_hand == 16_083_058_688


def test_decode_rows_are_the_last_row_of_the_triangle() -> None:
    """Forward over s+1 less forward over s is what the last token costs."""
    longer, shorter = (ledger("llama-3.1-8b", seq=seq).model_flops for seq in (101, 100))
    assert longer - shorter == ledger("llama-3.1-8b", phase="decode", kv_len=101).model_flops


def test_a_window_bounds_what_decode_sees() -> None:
    near, far = (ledger("starcoder2-3b", phase="decode", kv_len=kv).model_flops for kv in (4096, 100_000))
    assert near == far
    assert ledger("starcoder2-3b", "full", phase="decode", kv_len=100_000).model_flops > far


def test_prefill_makes_logits_for_the_last_position_only() -> None:
    head = 2 * 4096 * 128_256  # one position
    forward = ledger("llama-3.1-8b", seq=512, batch=3).model_flops
    prefill = ledger("llama-3.1-8b", seq=512, batch=3, phase="prefill").model_flops
    assert forward - prefill == 3 * (512 - 1) * head


def test_only_decoders_decode() -> None:
    for name in ("bert-base", "resnet-50", "vit-b16"):
        with pytest.raises(InputError, match="does not decode"):
            ledger(name, phase="decode")


# --- training -----------------------------------------------------------------------------------------------------


def attention_forward(arch: Arch, books: Ledger) -> int:
    paths = {placed.path for placed in arch.leaves() if isinstance(placed.layer, Attention)}
    return sum(row.model_flops for row in books.rows if row.path in paths and row.pass_ == FORWARD)


def test_selective_recompute_repeats_attention_only() -> None:
    arch, books = model("llama-3.1-8b"), ledger("llama-3.1-8b", seq=2048, phase="train", recompute="selective")
    by_hand = 32 * 4 * (2048 * 2049 // 2) * 32 * 128
    assert books.hardware_flops - books.model_flops == attention_forward(arch, books) == by_hand


def test_full_recompute_repeats_every_block_and_not_the_head() -> None:
    books = ledger("llama-3.1-8b", seq=2048, phase="train", recompute="full")
    head = 2 * 2048 * 4096 * 128_256
    assert books.hardware_flops - books.model_flops == books.flops(FORWARD) - head
    inside = ledger("llama-3.1-8b", "hardware", seq=2048, phase="train")
    assert inside.model_flops == inside.hardware_flops == books.hardware_flops


@pytest.mark.parametrize("name", SOME)
def test_mfu_is_at_most_hfu(name: str) -> None:
    done = [ledger(name, seq=32, phase="train", recompute=policy) for policy in ("none", "selective", "full")]
    assert done[0].model_flops == done[1].model_flops == done[2].model_flops == done[0].hardware_flops
    assert done[0].hardware_flops <= done[1].hardware_flops
    assert done[0].hardware_flops <= done[2].hardware_flops


def test_backward_is_twice_forward_behind_an_embedding() -> None:
    books = ledger("llama-3.1-8b", seq=128, phase="train")
    assert books.flops(BACKWARD) == 2 * books.flops(FORWARD)


def test_the_first_layer_of_a_net_on_pictures_makes_no_input_gradient() -> None:
    """AlexNet's first convolution: 55·55·64·(3·11·11) multiply-adds less in backward."""
    books = ledger("alexnet", phase="train")
    assert 2 * books.flops(FORWARD) - books.flops(BACKWARD) == 2 * 55 * 55 * 64 * 3 * 11 * 11


def test_frozen_layers_make_no_weight_gradient() -> None:
    """Three equal squares of u, the middle one trained: 3u forward; the third's input u, the middle's weight u."""
    layers = tuple(Linear(name=name, in_features=8, out_features=8, trainable=name == "b") for name in ("a", "b", "c"))
    arch = Arch(name="x", root=Module(name="", children=layers))
    books = build_ledger(arch, Workload(seq=5, phase="train"), find_convention("causal"))
    unit = 2 * 5 * 8 * 8
    assert (books.flops(FORWARD), books.flops(BACKWARD)) == (3 * unit, 2 * unit)


def test_frozen_stacks_split_off_their_first_copy() -> None:
    """An untrained stack behind an untrained embedding makes no gradient at all before the first trained layer."""
    frozen = Linear(name="x", in_features=8, out_features=8, trainable=False)
    trained = replace(frozen, name="y", trainable=True)
    stack = Module(name="layers", children=(frozen, trained), indices=range(4))
    arch = Arch(name="x", root=Module(name="", children=(stack,)))
    books = build_ledger(arch, Workload(seq=5, phase="train"), find_convention("causal"))
    unit = 2 * 5 * 8 * 8
    # weights of 4 trained layers; input gradients of all but the first x and the first y
    assert books.flops(BACKWARD) == (4 + 3 + 3) * unit
    assert books.params == arch.params_total == 8 * 64


# --- what is said beside the totals ------------------------------------------------------------------------------


def test_what_is_not_counted_is_listed() -> None:
    found = {item.what: item.operations for item in ledger("llama-3.1-8b", seq=16).uncounted}
    assert found["norms"] == 16 * 4096 * 65
    assert found["embedding lookups"] == 16 * 4096
    assert found["softmax"] == 32 * 32 * (16 * 17 // 2)
    assert set(found) >= {"norms", "softmax", "activations and pooling", "embedding lookups"}


def test_bytes_of_weights_are_read_once_a_pass() -> None:
    """Decode reads every matmul weight, in two bytes each."""
    rows = ledger("llama-3.1-8b", phase="decode", kv_len=1).rows
    weights = sum(row.read_bytes for row in rows if row.kind == "linear")
    assert weights == pytest.approx(2 * MATMUL_8B, rel=0.001)


def test_per_token() -> None:
    books = count(model("llama-3.1-8b"), Workload(seq=128, batch=3), find_convention("causal"))
    assert (books.units, books.flops_per_token) == (384, books.flops.model / 384)
    assert books.ideal["2n"] == 2 * 8_030_261_248 * 384


# --- recompute policies side by side ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("convention", [*OPS, *PARAMS])
@pytest.mark.parametrize("params", [None, 10**9])
def test_policies_beside_one_another_are_those_of_the_ledger(name: str, convention: str, params: int | None) -> None:
    """What `count` shows for every policy is what the ledger of that policy says."""
    rule, work = find_convention(convention), Workload(phase="train", seq=64)
    shown = count(model(name), work, rule, params=params).flops.hardware_by_recompute
    assert shown is not None
    for policy in RECOMPUTE:
        again = build_ledger(model(name), replace(work, recompute=policy), rule, params)
        assert shown[policy] == again.hardware_flops


def test_pixels_need_no_gradient() -> None:
    """The patch convolution of ViT-B/16 runs twice in training, everything behind it three times."""
    found = ledger("vit-b16", "full", phase="train")
    forward, backward = (
        {row.path: row.model_flops for row in found.rows if row.pass_ == name} for name in (FORWARD, BACKWARD)
    )
    patch = "vit.embeddings.patch_embeddings.projection"
    assert backward[patch] == forward[patch] == 2 * 196 * 768 * 3 * 16 * 16
    assert backward["classifier"] == 2 * forward["classifier"]
