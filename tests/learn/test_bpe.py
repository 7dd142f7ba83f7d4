"""Byte pairs: merges by hand, every text comes back, what was seen often is short."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.learn.bpe import BYTES, Tokeniser, train, words

# text → merges by hand: the commonest pair first, ties to the smaller bytes
BY_HAND = [
    ("aaaa", 1, [(97, 97)]),  # aa, aa: twice a pair of two a's (overlaps count three)
    ("abab", 1, [(97, 98)]),  # ab twice, ba once
    ("ab ab ab", 2, [(97, 98), (32, 256)]),  # "ab", " ab", " ab"
    ("ab", 1, []),  # once is no habit
    ("xy zw xy zw", 1, [(32, 122)]),  # xy, zw and blank-z twice each: the smallest wins
    ("", 5, []),
]


@pytest.mark.parametrize(("text", "merges", "wanted"), BY_HAND)
def test_merges_by_hand(text: str, merges: int, wanted: list[tuple[int, int]]) -> None:
    assert list(train(text, merges).merges) == wanted


WORDS = [
    ("two words", ["two", " words"]),
    ("a1b", ["a", "1", "b"]),
    ("w4' = 0.5", ["w", "4", "'", " =", " 0", ".", "5"]),
    ("算力，每个", ["算力", "，", "每个"]),
    ("a_b", ["a", "_", "b"]),
    ("a\n\nb", ["a", "\n\n", "b"]),
]


@pytest.mark.parametrize(("text", "wanted"), WORDS)
def test_words(text: str, wanted: list[str]) -> None:
    assert words(text) == wanted


@given(st.text())
def test_words_put_together_are_the_text(text: str) -> None:
    assert "".join(words(text)) == text


TRAINED = train("low lower lowest slow slower 每个数字都有单位，每个数字都有来源 " * 3, 60)


@given(st.text())
def test_every_text_comes_back(text: str) -> None:
    assert TRAINED.decode(TRAINED.encode(text)) == text


@given(st.text(alphabet="lowers 每个数字"))
def test_tokens_are_never_more_than_bytes(text: str) -> None:
    tokens = TRAINED.encode(text)
    assert len(tokens) <= len(text.encode())
    assert all(0 <= token < TRAINED.size for token in tokens)
    assert b"".join(map(TRAINED.bytes_of, tokens)) == text.encode()


def test_what_was_seen_often_is_one_token() -> None:
    assert len(TRAINED.encode(" low")) == 1
    assert len(TRAINED.encode(" zqx")) == 4


def test_a_character_that_was_not_seen_is_its_bytes() -> None:
    assert len(TRAINED.encode("龘")) == len("龘".encode()) == 3


def test_each_merge_is_the_commonest_of_its_time() -> None:
    """By the definition, slowly: count all pairs, join, count again."""
    text = "the cat and the hat and the bat that sat"
    held = Counter(tuple(word.encode()) for word in words(text))
    for place, learnt in enumerate(train(text, 12).merges):
        pairs: Counter[tuple[int, int]] = Counter()
        for word, times in held.items():
            for pair in pairwise(word):
                pairs[pair] += times
        assert pairs[learnt] == max(pairs.values()) >= 2
        held = Counter({_join(word, learnt, BYTES + place): times for word, times in held.items()})


def _join(word: tuple[int, ...], pair: tuple[int, int], token: int) -> tuple[int, ...]:
    out: list[int] = []
    for each in word:
        if out and (out[-1], each) == pair:
            out[-1] = token
        else:
            out.append(each)
    return tuple(out)


def test_bytes_that_are_no_text_are_shown() -> None:
    assert Tokeniser(()).decode([0xE5, 0x8A]) == "\\xe5\\x8a"
