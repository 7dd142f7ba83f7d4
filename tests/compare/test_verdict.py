"""Why a trace of scans is not the formula, in words: each part with its size."""

from __future__ import annotations

import pytest

from suanli.compare.verdict import scan_sentence
from suanli.nouns.coverage import ScanCounts

FALLBACK = "the formula takes scans as recurrences, the trace runs transformers' fallback"
# recurrence, fallback, padding, solved
SAID = [
    ((100, 60, 0, 0), f"{FALLBACK} (-40)"),
    ((100, 1160, 7, 0), f"{FALLBACK} (+1,060), padding of convolutions (+7)"),
    ((100, 160, 7, 5), f"{FALLBACK} (+60), padding of convolutions (+7), triangular systems solved (+5)"),
    ((0, 0, 7, 0), "the trace runs more than the formula needs, padding of convolutions (+7)"),
]


@pytest.mark.parametrize(("counts", "said"), SAID)
def test_scan_sentence(counts: tuple[int, int, int, int], said: str) -> None:
    recurrence, fallback, padding, solved = counts
    scans = ScanCounts(recurrence=recurrence, kernel=recurrence, fallback=fallback, padding=padding, solved=solved)
    assert scan_sentence(scans) == said
