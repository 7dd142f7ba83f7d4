"""One run under every convention: why the same step is 36 % for one program and 49 % for another."""

from __future__ import annotations

from suanli.catalog.conventions import CONVENTIONS, DEFAULT
from suanli.catalog.devices import find_device
from suanli.errors import SuanliError
from suanli.learn.book import Book
from suanli.measure import RECOMPUTE_CHOICES, Rate, find_peak
from suanli.measure import mfu as measured
from suanli.nouns.convention import Convention
from suanli.nouns.lesson import Lesson
from suanli.nouns.measures import Mfu
from suanli.nouns.workload import Workload
from suanli.readers.model import read_model

MODEL, GPU, DTYPE = "llama-3-8b", "h100-sxm", "bf16"
SEQ, TOKENS_PER_SECOND = 8192, 8000


def run(convention: Convention, recompute: str = "none") -> Mfu:
    """The run of the lesson under a convention and a recompute policy."""
    device = find_device(GPU)
    return measured(
        read_model(MODEL), Workload(phase="train", seq=SEQ), Rate(tokens_per_second=TOKENS_PER_SECOND),
        find_peak(device, DTYPE, None), convention, device=device, recompute=recompute,
    )  # fmt: skip


def lesson(lang: str) -> Lesson:
    """The lesson."""
    book = Book("mfu", lang)
    found = run(CONVENTIONS[DEFAULT])
    assert found.mfu is not None
    book.say("run", model=MODEL, seq=SEQ, gpu=GPU, rate=TOKENS_PER_SECOND, dtype=DTYPE, peak=found.peak_flop_per_s)
    common = [(name, each.flops_per_token, each.mfu, each.mfu / found.mfu - 1)
              for name, each in found.by_convention.items() if each.mfu is not None]  # fmt: skip
    low, high = min(common, key=lambda row: row[2]), max(common, key=lambda row: row[2])
    book.say("conventions", least=low[2], least_name=low[0], most=high[2], most_name=high[0])
    book.table("conventions", ("text", "flops", "percent", "change"), common)
    book.say("rules")
    book.table("rules", ("text", "flops", "percent", "change"), _others(found))
    _recompute(book)
    book.say("advice")
    book.keep(**{name: mfu for name, _, mfu, _ in common})
    return book.lesson()


def _others(found: Mfu) -> list[tuple[str, float, float, float]]:
    """The conventions that are not shown beside every run and can count this model."""
    rows = []
    for name, rule in CONVENTIONS.items():
        if name in found.by_convention:
            continue
        try:
            each = run(rule)
        except SuanliError:  # a closed form that is for other models
            continue
        assert each.mfu is not None and found.mfu is not None
        rows.append((name, each.by_convention[name].flops_per_token, each.mfu, each.mfu / found.mfu - 1))
    return rows


def _recompute(book: Book) -> None:
    book.say("recompute")
    rows = []
    for policy in RECOMPUTE_CHOICES:
        each = run(CONVENTIONS[DEFAULT], policy)
        assert each.mfu is not None and each.hfu is not None
        rows.append((policy, each.mfu, each.hfu, each.hfu / each.mfu))
    book.table("recompute", ("text", "percent", "percent", ".4f"), rows)
