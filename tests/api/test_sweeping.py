"""`count --symbolic` and `--sweep`: polynomials as text, and the same numbers that a count of each length gives."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suanli
from suanli.errors import InputError

EXPECTED = "seq=1024:131072:1024 (first:last:step) or batch=1,8,64; at most 100,000 points"


@pytest.mark.parametrize(
    ("phase", "sweep"),
    [
        ("forward", "seq=1:300:37"),
        ("train", "batch=1,3,8"),
        ("decode", "kv-len=1,127,128,129,4Ki"),
        ("decode", "seq=5,200"),
        ("prefill", "seq=128Ki"),
    ],
)
@pytest.mark.parametrize("model", ["gpt-oss-20b", "llama-3.1-8b", "deepseek-v3"])
def test_every_point_is_the_count_at_its_lengths(model: str, phase: str, sweep: str) -> None:
    points = suanli.count(model, phase=phase, seq=64, recompute="selective", sweep=sweep).sweep
    assert points
    for point in points:
        books = suanli.count(
            model, phase=phase, batch=point.batch, seq=point.seq, kv_len=point.kv_len, recompute="selective"
        )
        assert (point.model_flops, point.hardware_flops) == (books.flops.model, books.flops.hardware)
        assert point.read_bytes == sum(row.read_bytes for row in books.rows)
        assert point.write_bytes == sum(row.write_bytes for row in books.rows)
        assert (point.kv_cache, point.activations) == (books.bytes.kv_cache, books.bytes.activations)


def test_the_last_value_of_a_range_is_in_it() -> None:
    points = suanli.count("gpt2", sweep="seq=256:1Ki:256").sweep
    assert [point.seq for point in points] == [256, 512, 768, 1024]
    assert [point.batch for point in points] == [1] * 4


def test_a_thousand_points_in_milliseconds() -> None:
    start = time.process_time()
    points = suanli.count("llama-3.1-405b", phase="train", sweep="seq=1Ki:1000Ki:1Ki").sweep
    assert len(points) == 1000
    assert time.process_time() - start < 1.5  # about 50 ms on a quiet machine; a count a point takes as long as 1,000


def test_polynomials_are_text_with_places() -> None:
    found = {each.quantity: each for each in suanli.count("gpt-oss-20b", symbolic=True).polynomials}
    assert found["flops"].unit == "FLOPs"
    # sinks and windows: 12 of 24 layers see at most 128 keys; 64 heads × (2·64 + 2·64) FLOPs a pair
    below, above = found["flops"].pieces
    assert (below.where, above.where) == ("S ≤ 128", "129 ≤ S")
    assert below.polynomial.startswith(f"{24 * 64 * 256 // 2:,}·B·S² + ")
    assert above.polynomial.startswith(f"{12 * 64 * 256 // 2:,}·B·S² + ")
    assert [piece.where for piece in found["read_bytes"].pieces] == ["8 ≤ B·S", "B·S ≤ 7"]
    assert "activations" not in found


def test_nothing_is_added_where_nothing_was_asked() -> None:
    books = suanli.count("gpt2")
    assert books.polynomials is None
    assert books.sweep is None


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("seq", f"the sweep cannot be read in --sweep; got 'seq'; expected {EXPECTED}; nearest: seq."),
        ("sec=1,2", f"the sweep cannot be read in --sweep; got 'sec=1,2'; expected {EXPECTED}; nearest: seq."),
        ("seq=9:1:1", f"not a sweep of lengths in --sweep; got 'seq=9:1:1'; expected {EXPECTED}."),
        ("seq=1:9:0", f"not a sweep of lengths in --sweep; got 'seq=1:9:0'; expected {EXPECTED}."),
        ("seq=1:9:1:1", f"not a sweep of lengths in --sweep; got 'seq=1:9:1:1'; expected {EXPECTED}."),
        ("seq=0,1", f"not a sweep of lengths in --sweep; got 'seq=0,1'; expected {EXPECTED}."),
        ("seq=1:1T:1", f"not a sweep of lengths in --sweep; got 'seq=1:1T:1'; expected {EXPECTED}."),
        ("seq=1:1e30:1", "not a length in --sweep; got '1e30'; expected a whole number, at most 1,000,000,000,000."),
        ("seq=1,2.5", "not a length in --sweep; got '2.5'; expected a whole number, at most 1,000,000,000,000."),
        ("batch=x", "not a number with a unit in --sweep; got 'x'; expected a number like 8192."),
        ("kv-len=1,2", "keys are of decoding only in --sweep; got 'kv-len=1,2'; expected --phase decode."),
    ],
)
def test_a_sweep_that_cannot_be(sweep: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        suanli.count("gpt2", sweep=sweep)
    assert str(caught.value) == message


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="seqbatchkvln=:,-0123456789KiMT. \0é", max_size=30))
def test_junk_is_an_error_of_ours(text: str) -> None:
    try:
        suanli.count("linear(4, 4)", sweep=text)
    except InputError as problem:
        assert "--sweep" in str(problem)


@pytest.mark.parametrize("more", [{"trace": True}, {"input": "1x4"}])
def test_a_run_has_no_polynomials(more: dict) -> None:
    with pytest.raises(InputError, match=r"polynomials are of formulas in --symbolic, --sweep; got 'gpt2'"):
        suanli.count("gpt2", symbolic=True, **more)
