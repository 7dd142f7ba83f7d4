"""The tiny transformer: its own book against `count`, cache on and off, against torch, and what the lesson says."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suanli
from suanli.errors import InputError
from suanli.learn import teach
from suanli.learn.bpe import Tokeniser
from suanli.learn.tiny import (
    DTYPE,
    FFN,
    HEADS,
    LAYERS,
    POSITIONS,
    WIDTH,
    Tiny,
    arch_of,
    cache_bytes,
    config,
    generate,
    softmax,
)
from suanli.learn.transformer import MERGES, NEW_TOKENS, PROMPT, Shown, step_of
from suanli.nouns.lesson import Grid, Lesson, Shades

VOCAB = 300
TOKENS = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=40)


@cache
def lesson(lang: str = "en") -> Lesson:
    return teach("transformer", lang)


def tables(found: Lesson) -> list[Grid]:
    return [block for block in found.blocks if isinstance(block, Grid)]


# --- the model against `count` ------------------------------------------------------------------------------------


def counted(phase: str, **lengths: int) -> int:
    return suanli.count(config(VOCAB), phase=phase, convention="full", dtype=DTYPE, **lengths).flops.model


@given(TOKENS)
@settings(max_examples=15)
def test_every_product_that_numpy_makes_is_counted(tokens: list[int]) -> None:
    model = Tiny(VOCAB)
    model.run(tokens)
    assert model.flops.total() == counted("prefill", seq=len(tokens))


@given(TOKENS, st.integers(1, 4))
@settings(max_examples=10)
def test_decoding_costs_what_count_says(tokens: list[int], more: int) -> None:
    model, kept = Tiny(VOCAB), []
    model.run(tokens, kept)
    for place in range(more):
        model.flops.clear()
        model.run([place], kept)
        assert model.flops.total() == counted("decode", kv_len=len(tokens) + place + 1)


def test_steps_by_hand() -> None:
    """Eleven tokens through two layers of width 64."""
    model = Tiny(VOCAB)
    model.run(list(range(11)))
    assert model.flops == {
        "qkv": LAYERS * 2 * 11 * 64 * 192,
        "attention": LAYERS * 2 * (2 * 11 * 11 * 64),  # scores and context, every pair
        "out": LAYERS * 2 * 11 * 64 * 64,
        "mlp": LAYERS * 2 * (2 * 11 * 64 * 256),
        "head": 2 * 1 * 64 * VOCAB,  # the last position alone
    }
    assert model.shapes["attention"] == (HEADS, 11, 11) and model.shapes["head"] == (1, VOCAB)


@given(TOKENS)
@settings(max_examples=10)
def test_the_cache_holds_the_bytes_that_count_says(tokens: list[int]) -> None:
    model, kept = Tiny(VOCAB), []
    model.run(tokens, kept)
    found = suanli.count(config(VOCAB), phase="decode", kv_len=len(tokens), dtype=DTYPE)
    assert cache_bytes(kept) == found.bytes.kv_cache
    assert found.bytes.kv_cache == LAYERS * len(tokens) * 2 * WIDTH * 4  # keys and values in fp32


def test_parameters_are_those_of_the_config() -> None:
    """numpy's weights, and what GPT-2 has beside them: biases and norms, zero and one here."""
    weights = sum(each.size for each in Tiny(VOCAB).weights.values())
    biases = LAYERS * (3 * WIDTH + WIDTH + FFN + WIDTH)
    norms = (2 * LAYERS + 1) * 2 * WIDTH
    assert arch_of(VOCAB).params_total == weights + biases + norms


# --- what it computes ---------------------------------------------------------------------------------------------


@given(TOKENS, st.integers(0, 5))
@settings(max_examples=15)
def test_with_and_without_cache_the_logits_are_the_same(tokens: list[int], seed: int) -> None:
    model = Tiny(VOCAB, seed)
    whole = model.run(tokens)
    kept: list = []
    for token in tokens:
        last = model.run([token], kept)
    np.testing.assert_allclose(last, whole, rtol=2e-3, atol=2e-3)


def test_the_same_tokens_come_out() -> None:
    tokens = list(range(10))
    with_, without = (generate(Tiny(VOCAB), tokens, 8, cached=each) for each in (True, False))
    assert with_ == without and len(with_) == 8


@given(TOKENS)
@settings(max_examples=10)
def test_attention_looks_back_only_and_adds_up_to_one(tokens: list[int]) -> None:
    model = Tiny(VOCAB)
    model.run(tokens)
    assert len(model.attention) == LAYERS
    for weights in model.attention:
        assert weights.shape == (HEADS, len(tokens), len(tokens))
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
        assert np.all(np.triu(weights, 1) == 0)


def test_a_seed_is_a_model() -> None:
    one, same, other = (Tiny(VOCAB, seed).run([1, 2, 3]) for seed in (0, 0, 1))
    assert np.array_equal(one, same) and not np.allclose(one, other)


def test_softmax_by_hand() -> None:
    assert softmax(np.log(np.array([1.0, 2.0, 5.0]))) == pytest.approx([1 / 8, 2 / 8, 5 / 8])
    assert softmax(np.array([1000.0, 1000.0])) == pytest.approx([0.5, 0.5])  # no overflow


@pytest.mark.torch
def test_torch_computes_the_same_logits() -> None:
    """GPT-2 of transformers with these weights, its scores sharpened as here."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from suanli.learn.tiny import _SHARP

    model = Tiny(VOCAB)
    given_ = {name: value for name, value in config(VOCAB).items() if name != "model_type"}
    peer = GPT2LMHeadModel(GPT2Config(**given_, activation_function="gelu_new")).eval()
    state = peer.state_dict()
    with torch.no_grad():
        for name, value in state.items():
            value.zero_() if name.endswith("bias") else value.fill_(1.0)
        state["transformer.wte.weight"].copy_(torch.from_numpy(model.weights["wte"]))
        state["transformer.wpe.weight"].copy_(torch.from_numpy(model.weights["wpe"]))
        for layer in range(LAYERS):
            names = {"c_attn": "attn.c_attn", "c_proj": "attn.c_proj", "c_fc": "mlp.c_fc", "mlp": "mlp.c_proj"}
            for own, theirs in names.items():
                weight = torch.from_numpy(model.weights[f"{layer}.{own}"].copy())
                if own == "c_attn":
                    weight[:, :WIDTH] *= _SHARP  # queries
                state[f"transformer.h.{layer}.{theirs}.weight"].copy_(weight)
        tokens = [5, 17, 3, 250, 9]
        theirs = peer(torch.tensor([tokens])).logits[0, -1].numpy()
    np.testing.assert_allclose(model.run(tokens), theirs, rtol=1e-3, atol=1e-3)


# --- the lesson ---------------------------------------------------------------------------------------------------


def test_flops_equal_count() -> None:
    found = lesson()
    for convention in ("full", "causal"):
        other = suanli.count(config(found.values["vocab"]), phase="prefill", seq=found.values["tokens"], dtype=DTYPE,
                             convention=convention)  # fmt: skip
        assert found.values[f"flops_{convention}"] == other.flops.model
    assert found.values["flops_made"] == found.values["flops_full"]


def test_the_steps_add_up_to_the_total() -> None:
    steps = tables(lesson())[1]
    *rows, total = steps.rows
    assert [sum(row[place] for row in rows) for place in (2, 3)] == [total[2], total[3]]
    assert [row[0] for row in rows][:3] == ["embed", "position", "queries, keys, values"]
    assert [row[1] for row in rows if row[1]] == [
        f"{lesson().values['tokens']}×{WIDTH}", f"{lesson().values['tokens']}×{WIDTH}",
        f"{lesson().values['tokens']}×{3 * WIDTH}", f"{HEADS}×{lesson().values['tokens']}×{lesson().values['tokens']}",
        f"{lesson().values['tokens']}×{WIDTH}", f"{lesson().values['tokens']}×{FFN}", f"1×{lesson().values['vocab']}",
    ]  # fmt: skip


def test_prefill_against_decode() -> None:
    prefill, decode = tables(lesson())[3].rows
    assert prefill[4] > decode[4]  # FLOPs for each byte
    found = suanli.count(config(lesson().values["vocab"]), phase="decode", kv_len=prefill[1] + 1, dtype=DTYPE)
    assert decode[2] == found.flops.model


def test_the_cache_saves_what_it_says() -> None:
    rows = tables(lesson())[4].rows
    vocab, length = lesson().values["vocab"], lesson().values["tokens"]
    one = suanli.count(config(vocab), phase="prefill", seq=length, dtype=DTYPE).flops.model
    two = suanli.count(config(vocab), phase="prefill", seq=length + 1, dtype=DTYPE).flops.model
    step = suanli.count(config(vocab), phase="decode", kv_len=length + 1, dtype=DTYPE).flops.model
    assert rows[0][1:3] == (one, one)
    assert rows[1][1:3] == (one + step, one + two)
    assert len(rows) == NEW_TOKENS
    assert [row[2] / row[1] for row in rows] == sorted(row[2] / row[1] for row in rows)


def test_the_picture_is_of_the_tokens() -> None:
    picture = next(block for block in lesson().blocks if isinstance(block, Shades))
    assert len(picture.rows) == lesson().values["tokens"] == len(picture.columns)
    assert all(sum(row) == pytest.approx(1, rel=1e-5) for row in picture.values)


def test_the_prompt_comes_back_from_its_tokens() -> None:
    rows = tables(lesson())[0].rows
    assert sum(row[2] for row in rows) == len(PROMPT.encode())
    assert lesson().values["vocab"] == 256 + MERGES


def test_another_prompt_seed_and_length() -> None:
    found = teach("transformer", "zh", {"prompt": "每个数字", "seed": 7, "new_tokens": 2})
    assert found.values["tokens"] == sum(1 for _ in tables(found)[0].rows)
    assert len(tables(found)[4].rows) == 2
    assert found.values["text_out"] != lesson().values["text_out"]


def test_a_long_prompt_shows_its_beginning() -> None:
    found = teach("transformer", "en", {"prompt": "字" * 100})
    assert found.values["tokens"] == 100 and len(tables(found)[0].rows) == 24


@pytest.mark.parametrize(("prompt", "new", "got"), [("", 8, "0 tokens, and 8"), ("字" * 128, 8, "128 tokens, and 8"),
                                                   ("字", POSITIONS, "1 tokens, and 128")])  # fmt: skip
def test_a_prompt_that_does_not_fit(prompt: str, new: int, got: str) -> None:
    with pytest.raises(InputError) as problem:
        teach("transformer", "en", {"prompt": prompt, "new_tokens": new})
    assert str(problem.value) == (
        f"the prompt does not fit the model in --prompt; got {got} to put out; expected 1 to 128 together."
    )


def test_every_leaf_belongs_to_a_step() -> None:
    for placed in arch_of(VOCAB).leaves():
        assert step_of(placed.path)
    with pytest.raises(StopIteration):
        step_of("no.such.leaf")


@given(st.integers(0, 255))
def test_labels_are_short_and_can_be_printed(token: int) -> None:
    label = Shown(Tokeniser(()), "", 0, 1).label(token)
    assert 1 <= len(label) <= 10 and label.isprintable()
