"""Polynomials in the lengths are equal to the count at every point, whatever the model, phase and convention."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.catalog.conventions import CONVENTIONS
from suanli.catalog.presets import presets
from suanli.count import build_ledger
from suanli.errors import InputError
from suanli.footprint import footprint
from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Attention
from suanli.nouns.polynomial import Polynomial, Region, bounds_text, regions, united
from suanli.nouns.workload import RECOMPUTE, Workload
from suanli.readers.model import read_model
from suanli.symbolic import polynomials

NAMES = sorted(presets())
CAUSAL = CONVENTIONS["causal"]
LENGTH = st.one_of(st.integers(1, 300), st.integers(1, 200_000))


@cache
def of(name: str, phase: str, convention: str, recompute: str):
    arch = read_model(name)
    return arch, polynomials(arch, phase, CONVENTIONS[convention], recompute=recompute)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(NAMES), phase=st.sampled_from(("forward", "train", "prefill", "decode")),
    convention=st.sampled_from(("causal", "full", "megatron", "palm", "6n", "hardware")),
    recompute=st.sampled_from(RECOMPUTE), batch=st.integers(1, 500), seq=LENGTH, keys=LENGTH,
)  # fmt: skip
def test_equal_to_the_ledger(name, phase, convention, recompute, batch, seq, keys) -> None:
    try:
        arch, found = of(name, phase, convention, recompute)
    except InputError:  # no decoding, or no L, h, H, V: the count refuses it too
        with pytest.raises(InputError):
            build_ledger(read_model(name), Workload(phase=phase), CONVENTIONS[convention])
        return
    kv_len = keys if phase == "decode" else None
    workload = Workload(phase=phase, batch=batch, seq=seq, kv_len=kv_len, recompute=recompute)
    ledger, memory = build_ledger(arch, workload, CONVENTIONS[convention]), footprint(arch, workload)
    at = found.at(batch, seq, kv_len)
    assert (at["flops"], at["hardware"]) == (ledger.model_flops, ledger.hardware_flops)
    assert at["read_bytes"] == ledger.flops(column="read_bytes")
    assert at["write_bytes"] == ledger.flops(column="write_bytes")
    assert (at["kv_cache"], at["activations"]) == (memory.kv_cache, memory.activations)
    assert at["params"] == arch.params_total


def _attention(**limits: int) -> Arch:
    layer = Attention(name="a", heads=2, kv_heads=1, qk_dim=8, v_dim=8, **limits)
    return Arch(name="one", root=Module(name="", children=(layer,)))


def test_a_window_is_a_border() -> None:
    found = polynomials(_attention(window=4), "forward", CAUSAL)
    # 2·2·8 FLOPs a pair for scores, as many for context: 64 a pair; pairs S(S+1)/2 up to 4, then 10 + 4·(S−4)
    assert str(found.flops) == "32·B·S² + 32·B·S   [S ≤ 4]\n256·B·S - 384·B   [5 ≤ S]"
    assert [found.flops.at(1, seq) for seq in (1, 4, 5)] == [64, 640, 896]


def test_a_chunk_is_a_floor() -> None:
    found = polynomials(_attention(chunk=4), "forward", CAUSAL)
    assert "⌊S/4⌋" in str(found.flops)
    assert [found.flops.at(1, seq) // 64 for seq in (1, 4, 5, 8, 9)] == [1, 10, 11, 20, 21]


def test_arrays_in_milliseconds() -> None:
    numpy = pytest.importorskip("numpy")
    arch = read_model("gpt-oss-20b")
    found = polynomials(arch, "train", CAUSAL)
    seq = numpy.arange(1, 200_001, 200)
    start = time.process_time()
    swept = found.flops.at(8, seq)
    assert time.process_time() - start < 0.02
    exact = [build_ledger(arch, Workload(phase="train", batch=8, seq=int(s)), CAUSAL).model_flops for s in seq[::50]]
    assert numpy.allclose(swept[::50], numpy.array(exact, dtype=float), rtol=1e-14, atol=0)
    assert found.flops.at(numpy.arange(1, 4)[:, None], seq).shape == (3, 1000)


def test_what_is_printed_is_what_is_meant() -> None:
    flops = polynomials(read_model("llama-3.1-405b"), "train", CAUSAL).flops
    # 3 · 126 layers · 128 heads · (2·128 + 2·128) FLOPs a pair, S²/2 pairs
    assert str(flops).startswith(f"{3 * 126 * 128 * 512 // 2:,}·B·S² + ")


def test_a_count_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="does not decode"):
        polynomials(read_model("resnet-50"), "decode", CAUSAL)


# --- the algebra --------------------------------------------------------------------------------------------------

SMALL = st.integers(-20, 20)


@settings(max_examples=200, deadline=None)
@given(a=SMALL, b=SMALL, c=SMALL, n=st.integers(1, 9), x=st.integers(1, 50), y=st.integers(1, 50))
def test_operations_commute_with_evaluation(a, b, c, n, x, y) -> None:
    def same(s, t):
        p, q = a * s * s + b * t + c, s - 3 * t * n
        return (p + q, p - q, p * q, -p, p // n, p % n, (p * p + p) // 2, (p + 1) ** 2, 5 - p)

    region = Region()
    symbolic = same(region.symbol("x"), region.symbol("y"))
    values = {"x": x, "y": y}
    assert [p.at(values) if isinstance(p, Polynomial) else p for p in symbolic] == list(same(x, y))


@settings(max_examples=200, deadline=None)
@given(a=SMALL, b=SMALL, c=SMALL, x=st.integers(1, 50), y=st.integers(1, 50))
def test_pieces_cover_every_point_once(a, b, c, x, y) -> None:
    def compute(s, t):
        return min(s, 7) + max(t, a * s + b) * (s * t > c) + (b * s >= a)

    values = {"x": x, "y": y}
    found = list(regions(lambda region: compute(region.symbol("x"), region.symbol("y"))))
    here = [piece for region, piece in found if region.holds(values)]
    assert [piece.at(values) if isinstance(piece, Polynomial) else piece for piece in here] == [compute(x, y)]


def test_too_many_pieces_are_refused() -> None:
    layers = tuple(replace(_attention(window=w).root.children[0], name=f"a{w}", key_stream=None) for w in range(2, 400))
    arch = Arch(name="many", root=Module(name="", children=layers))
    with pytest.raises(InputError, match="no closed form in its lengths"):
        polynomials(arch, "forward", CAUSAL)


@settings(max_examples=200, deadline=None)
@given(edges=st.lists(st.tuples(st.booleans(), st.integers(2, 9)), min_size=1, max_size=4, unique=True))
def test_places_united_hold_where_the_pieces_did(edges) -> None:
    """Cut B and S at some edges, unite what lies side by side: the same points lie inside, in no more places."""

    def cut(region: Region) -> tuple[bool, ...]:
        symbols = region.symbol("B"), region.symbol("S")
        return tuple(bool(symbols[second] >= edge) for second, edge in edges)

    pieces = list(regions(cut))
    low = [region for region, answers in pieces if not answers[0]]
    together = united([region.bounds for region in low])
    assert len(together) <= len(low)
    for b in range(1, 11):
        for s in range(1, 11):
            values = {"B": b, "S": s}
            inside = [region.holds(values) for region in low]
            assert any(inside) == any(_holds(place, values) for place in together), (b, s)


def _holds(place, values) -> bool:
    return all(
        (low is None or moving.at(values) >= low) and (high is None or moving.at(values) <= high)
        for moving, (low, high) in place.items()
    )


def test_all_places_together_are_everywhere() -> None:
    pieces = list(regions(lambda region: bool(region.symbol("S") > 4)))
    assert [bounds_text(place) for place in united([region.bounds for region, _ in pieces])] == ["everywhere"]
