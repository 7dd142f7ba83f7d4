"""Scans by hand: the recurrence step by step, kernels and fallbacks product by product, published figures."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.catalog.presets import find_preset
from suanli.count import build_ledger, count
from suanli.footprint import footprint
from suanli.formulas import counting, memory, scans
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config
from suanli.readers.preset import read_preset
from suanli.work import FALLBACK, KERNEL, RECURRENCE, Setting, scan_counts

FULL = find_convention("full")


def matmul(batch: int, rows: int, inner: int, columns: int) -> int:
    """Two operations a multiply-add."""
    return 2 * batch * rows * inner * columns


HEADS, KEY, VALUE, CHUNK = 3, 5, 7, 4
SIZES = {"heads": HEADS, "key_dim": KEY, "value_dim": VALUE}


@pytest.mark.parametrize("tokens", [1, 9])
def test_recurrences_step_by_step(tokens: int) -> None:
    write = read = matmul(HEADS, 1, KEY, VALUE)  # k⊗v into the state, q times the state
    assert scans.state_space_flops(tokens=tokens, **SIZES) == tokens * (write + read)
    assert counting.linear_attention_flops(tokens=tokens, **SIZES) == tokens * (write + read)
    assert scans.delta_rule_flops(tokens=tokens, **SIZES) == tokens * (write + 2 * read)  # the old value read as well
    assert scans.selective_fallback_flops(tokens=tokens, **SIZES) == tokens * read


@pytest.mark.parametrize(("seq", "chunks"), [(1, 1), (4, 1), (5, 2), (12, 3)])
def test_ssd_product_by_product(seq: int, chunks: int) -> None:
    batch, groups = 2, 1
    inside = matmul(HEADS, CHUNK, CHUNK, VALUE)
    states = matmul(HEADS, KEY, CHUNK, VALUE) + matmul(HEADS, CHUNK, KEY, VALUE)
    kernel = batch * chunks * (matmul(groups, CHUNK, KEY, CHUNK) + inside + states)
    assert scans.ssd_kernel_flops(batch, seq, groups=groups, chunk=CHUNK, **SIZES) == kernel
    passed = batch * matmul(HEADS, chunks + 1, chunks + 1, KEY * VALUE)  # every start times every end
    fallback = batch * chunks * (matmul(HEADS, CHUNK, KEY, CHUNK) + inside + states) + passed
    assert scans.ssd_fallback_flops(batch, seq, chunk=CHUNK, **SIZES) == fallback


@pytest.mark.parametrize(("seq", "chunks"), [(1, 1), (4, 1), (5, 2), (12, 3)])
def test_delta_rule_product_by_product(seq: int, chunks: int) -> None:
    batch = 2
    keys, values = matmul(HEADS, CHUNK, KEY, CHUNK), matmul(HEADS, CHUNK, CHUNK, VALUE)
    states = 3 * matmul(HEADS, CHUNK, KEY, VALUE)  # what the keys read, what the queries read, what is written
    fallback = batch * chunks * (2 * keys + values + states)
    assert scans.delta_fallback_flops(batch, seq, chunk=CHUNK, **SIZES) == fallback
    assert scans.delta_kernel_flops(batch, seq, chunk=CHUNK, **SIZES) == fallback + batch * chunks * (keys + values)


@pytest.mark.parametrize(("seq", "lengths"), [(3, [3]), (4, [4]), (9, [4, 4, 1])])
def test_linear_attention_in_chunks(seq: int, lengths: list[int]) -> None:
    batch = 2
    pairs = sum(matmul(HEADS, n, KEY, n) + matmul(HEADS, n, n, VALUE) for n in lengths)
    running = 2 * matmul(HEADS, seq, KEY, VALUE)
    assert scans.linear_attention_kernel_flops(batch, seq, chunk=CHUNK, **SIZES) == batch * (pairs + running)
    whole = sum(matmul(HEADS, n, KEY, n) + matmul(HEADS, n, n, VALUE) for n in lengths if n == CHUNK)
    normaliser = matmul(HEADS, seq, KEY, 1)
    assert scans.mlstm_fallback_flops(batch, seq, chunk=CHUNK, **SIZES) == batch * (whole + running + normaliser)


def test_mamba2_at_128_as_published() -> None:
    """Three counts of one scan: 21.5 G, 87.0 G and 172.1 G for Mamba-2 2.7B at 128 positions."""
    at = Setting(read_preset(find_preset("mamba2-2.7b")), Workload(seq=128), FULL)
    found = scan_counts(at)
    assert {name: round(flops / 1e9, 1) for name, flops in found.items()} == {
        RECURRENCE: 21.5, KERNEL: 87.0, FALLBACK: 172.1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "seq", "flops"),
    [("mamba-2.8b", 128, 707060039680), ("mamba-2.8b", 8192, 45251842539520),
     ("mamba2-2.7b", 128, 691647021056), ("mamba2-2.7b", 2048, 11066352336896)],
)  # fmt: skip
def test_total_less_scans_is_what_others_print(name: str, seq: int, flops: int) -> None:
    found = count(read_preset(find_preset(name)), Workload(seq=seq), FULL)
    assert found.flops.forward - found.flops.scan == flops
    rows = [row for row in found.ledger.rows if row.kind == "scan"]
    assert found.flops.scan == sum(row.model_flops for row in rows) > 0
    assert all(row.formula == "state_space_flops" for row in rows)
    assert any(item.what == "decay of scans' states" for item in found.ledger_uncounted)


def test_training_counts_a_scan_three_times() -> None:
    arch = read_preset(find_preset("mamba-130m"))
    forward = count(arch, Workload(seq=64), FULL).flops
    train = count(arch, Workload(seq=64, phase="train"), FULL).flops
    assert (train.model, train.scan) == (3 * forward.model, 3 * forward.scan)


def test_a_decoded_token_is_one_step_whatever_came_before() -> None:
    arch = read_preset(find_preset("mamba2-130m"))
    short, long = (
        build_ledger(arch, Workload(phase="decode", batch=3, kv_len=length), FULL) for length in (10, 100_000)
    )
    assert short.rows == long.rows
    assert short.scan_flops == 3 * 24 * 4 * 24 * 64 * 128  # sequences, layers, products, heads, width, state
    assert set(scan_counts(Setting(arch, Workload(phase="decode", batch=3), FULL))) == {RECURRENCE}


def test_state_is_read_and_written_for_every_token() -> None:
    arch = read_preset(find_preset("mamba2-130m"))
    row = next(row for row in build_ledger(arch, Workload(phase="decode"), FULL).rows if row.kind == "scan")
    state = 24 * 4 * 24 * 64 * 128  # layers, fp32, heads, width, state
    moved = 24 * 2 * (24 * 64 + 2 * 128)  # layers, bf16, x beside one group of B and C
    assert (row.read_bytes, row.write_bytes) == (state + moved, state + 24 * 2 * 24 * 64)


def test_cache_of_a_state_space_model_is_its_states() -> None:
    """Mamba-2 130M: 24 layers of 24·64·128 in fp32, and 3 inputs of 1536 + 256 channels in 16 bit."""
    arch = read_preset(find_preset("mamba2-130m"))
    for length in (1, 1000):
        kept = footprint(arch, Workload(phase="decode", batch=2, kv_len=length)).kv_cache
        assert kept == 2 * 24 * (4 * 24 * 64 * 128 + 2 * 3 * (1536 + 2 * 128))


HYBRID = {
    "model_type": "bamba", "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 4,
    "num_attention_heads": 6, "num_key_value_heads": 2, "attn_layer_indices": [1], "mamba_n_heads": 9,
    "mamba_d_head": 16, "mamba_d_state": 10, "mamba_d_conv": 4, "tie_word_embeddings": False,
}  # fmt: skip


def test_cache_of_a_hybrid_grows_by_its_attention_only() -> None:
    arch = read_hf_config(HYBRID, "small")
    first, later = (footprint(arch, Workload(phase="decode", kv_len=length)).kv_cache for length in (1, 101))
    assert first is not None
    assert later is not None
    assert later - first == 100 * 2 * 2 * 2 * 12  # positions, keys and values, bf16, heads, width
    assert first - 2 * 2 * 2 * 12 == 3 * (4 * 9 * 16 * 10 + 2 * 3 * (144 + 2 * 10))


KEPT: list[tuple[dict[str, Any], int]] = [
    ({"model_type": "rwkv", "vocab_size": 96, "hidden_size": 72, "num_hidden_layers": 3},
     3 * (4 * 3 * 72 + 2 * 2 * 72)),  # numerator, denominator and maximum in fp32, two last inputs
    ({"model_type": "xlstm", "vocab_size": 96, "hidden_size": 256, "num_hidden_layers": 2, "num_heads": 4},
     2 * 4 * 4 * 32 * (64 + 1)),  # layers, fp32, heads, keys, values and the normaliser
]  # fmt: skip


@pytest.mark.parametrize(("config", "kept"), KEPT, ids=["rwkv", "xlstm"])
def test_states_of_recurrent_models(config: dict[str, Any], kept: int) -> None:
    assert footprint(read_hf_config(config, "small"), Workload(phase="decode", kv_len=50)).kv_cache == kept


def test_bytes_of_states() -> None:
    assert memory.conv_state_bytes(batch=2, channels=10, kernel=4, bits=16) == 2 * 10 * 3 * 2
    assert memory.kept_state_bytes(batch=3, elements=5, bits=4) == 8  # 7.5 bytes, rounded up
