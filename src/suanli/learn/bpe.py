"""A byte-level byte-pair encoding, trained on the spot (Sennrich 2016, arXiv:1508.07909; on bytes as in GPT-2).

It starts from the 256 bytes, so that every text can be encoded, and joins the commonest neighbours again and again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

BYTES = 256
_WORDS = re.compile(r" ?[^\W\d_]+| ?\d+| ?[^\w\s]+|\s+|_+")

Pair = tuple[int, int]
Word = tuple[int, ...]


@dataclass(frozen=True)
class Tokeniser:
    """Merges in the order they were learnt; token 256 + i is the i-th."""

    merges: tuple[Pair, ...]

    @property
    def size(self) -> int:
        """Tokens of the vocabulary."""
        return BYTES + len(self.merges)

    def bytes_of(self, token: int) -> bytes:
        """The bytes a token stands for."""
        if token < BYTES:
            return bytes([token])
        first, second = self.merges[token - BYTES]
        return self.bytes_of(first) + self.bytes_of(second)

    def encode(self, text: str) -> list[int]:
        """Tokens of a text: in each word the earliest learnt pair is joined first."""
        ranks = {pair: place for place, pair in enumerate(self.merges)}
        return [token for word in words(text) for token in _encoded(tuple(word.encode()), ranks)]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text again; bytes that are no text, which a model may put out, are shown as such."""
        return b"".join(map(self.bytes_of, tokens)).decode("utf-8", "backslashreplace")


def words(text: str) -> list[str]:
    """Pieces within which tokens are joined; put together again they are the text."""
    return _WORDS.findall(text)


def train(text: str, merges: int) -> Tokeniser:
    """Learn so many merges from a text; fewer where no pair comes twice. Ties go to the smaller pair."""
    counts = Counter(tuple(word.encode()) for word in words(text))
    learnt: list[Pair] = []
    for place in range(merges):
        pairs: Counter[Pair] = Counter()
        for word, times in counts.items():
            for pair in pairwise(word):
                pairs[pair] += times
        best = max(pairs, key=lambda pair: (pairs[pair], -pair[0], -pair[1]), default=None)
        if best is None or pairs[best] < 2:
            break
        learnt.append(best)
        joined: Counter[Word] = Counter()
        for word, times in counts.items():
            joined[_joined(word, best, BYTES + place) if best[0] in word else word] += times
        counts = joined
    return Tokeniser(tuple(learnt))


def _joined(word: Sequence[int], pair: Pair, token: int) -> Word:
    out: list[int] = []
    place = 0
    while place < len(word):
        if tuple(word[place : place + 2]) == pair:
            out.append(token)
            place += 2
        else:
            out.append(word[place])
            place += 1
    return tuple(out)


def _encoded(word: Word, ranks: dict[Pair, int]) -> Word:
    while len(word) > 1:
        best = min(pairwise(word), key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        word = _joined(word, best, BYTES + ranks[best])
    return word
