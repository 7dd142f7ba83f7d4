"""The roofline of a GPU: one matrix met by more and more tokens, a model's phases, the ridges of other GPUs."""

from __future__ import annotations

from typing import Any

from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.catalog.curves import find_curves
from suanli.catalog.devices import find_device
from suanli.count import build_ledger
from suanli.formulas.counting import linear_flops
from suanli.formulas.memory import weights_bytes
from suanli.formulas.roofline import attainable_flop_per_s, operational_intensity
from suanli.learn.book import Book
from suanli.nouns.hardware import Device
from suanli.nouns.lesson import Lesson, Series
from suanli.nouns.workload import DTYPE_BITS, Workload
from suanli.readers.model import read_model

GPU, DTYPE, WIDTH = "h100-sxm", "bf16", 8192
TOKENS = tuple(4**power for power in range(8))
MODEL, SEQ, BATCH = "llama-3.1-8b", 2048, 64
GPUS = ("a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200", "mi300x")


def rates(device: Device) -> tuple[float, float]:
    """Dense peak and memory rate of one GPU as torch sees it."""
    bandwidth = device.memory_bytes_per_s_per_torch_device
    assert bandwidth is not None
    return float(device.peak_flop_per_s(DTYPE)), float(bandwidth)


def product(tokens: int) -> tuple[int, int]:
    """FLOPs of a product of so many tokens with the square matrix, and bytes: both inputs read, the output written."""
    elements = WIDTH * WIDTH + 2 * tokens * WIDTH
    return linear_flops(tokens, WIDTH, WIDTH), weights_bytes(elements, DTYPE_BITS[DTYPE])


def lesson(lang: str) -> Lesson:
    """The lesson."""
    book, device = Book("roofline", lang), find_device(GPU)
    peak, bandwidth = rates(device)
    ridge = operational_intensity(peak, bandwidth)
    book.say("roof", gpu=GPU, peak=peak, bandwidth=bandwidth, ridge=ridge)
    points = _products(book, peak, bandwidth, ridge)
    _drawn(book, points, peak, bandwidth, ridge)
    _model(book, peak, bandwidth, ridge)
    _ridges(book)
    book.keep(ridge=ridge)
    return book.lesson()


def _bound(book: Book, intensity: float, ridge: float) -> str:
    return book.word("memory" if intensity < ridge else "arithmetic")


def _products(book: Book, peak: float, bandwidth: float, ridge: float) -> list[tuple[float, float]]:
    curves, rows, points = find_curves(GPU), [], []
    for tokens in TOKENS:
        flops, moved = product(tokens)
        intensity = operational_intensity(flops, moved)
        roof = attainable_flop_per_s(intensity, peak, bandwidth)
        attained = flops / float(curves.matmul_s(tokens, WIDTH, WIDTH, 1, DTYPE))
        points.append((intensity, attained))
        rows.append((tokens, flops, moved, intensity, roof, attained, attained / peak, _bound(book, intensity, ridge)))
    one = rows[0]
    book.say("products", n=WIDTH, one=one[3], idle=1 - one[4] / peak)
    shown = [(m, i, r, a, p, b) for m, _, _, i, r, a, p, b in rows]
    book.table("products", (",", ".1f", "flop_per_s", "flop_per_s", "percent1", "text"), shown)
    return points


def _drawn(book: Book, points: list[tuple[float, float]], peak: float, bandwidth: float, ridge: float) -> None:
    ends = [points[0][0], ridge, points[-1][0]]
    roof = tuple((each, attainable_flop_per_s(each, peak, bandwidth)) for each in ends)
    book.plot("drawn", ("g", "flop_per_s"), [
        Series(name=book.word("the_roof"), points=roof),
        Series(name=book.word("attained"), points=tuple(points), line=False),
    ])  # fmt: skip


def phase(workload: Workload) -> tuple[int, int]:
    """FLOPs and bytes moved of a pass of the model, by `count`."""
    ledger = build_ledger(read_model(MODEL), workload, find_convention(DEFAULT))
    return ledger.model_flops, sum(row.read_bytes + row.write_bytes for row in ledger.rows)


def _model(book: Book, peak: float, bandwidth: float, ridge: float) -> None:
    phases: list[tuple[str, Any]] = [(book.word("phase_prefill", seq=SEQ), Workload(phase="prefill", seq=SEQ))]
    phases += [(book.word("phase_decode", batch=batch), Workload(phase="decode", seq=SEQ, kv_len=SEQ, batch=batch))
               for batch in (1, BATCH)]  # fmt: skip
    rows = []
    for name, workload in phases:
        flops, moved = phase(workload)
        intensity = operational_intensity(flops, moved)
        seconds = flops / attainable_flop_per_s(intensity, peak, bandwidth)
        rows.append((name, flops, moved, intensity, seconds, _bound(book, intensity, ridge)))
    prefill, decode, many = (row[3] for row in rows)
    book.say("model", model=MODEL, seq=SEQ, prefill=prefill, decode=decode, batch=BATCH, many=many)
    book.table("model", ("text", "flops", "bytes", ",.1f", "seconds", "text"), rows)
    book.keep(prefill=prefill, decode=decode, decode_many=many)


def _ridges(book: Book) -> None:
    book.say("ridges")
    rows = []
    for name in GPUS:
        device = find_device(name)
        peak, bandwidth = rates(device)
        rows.append((device.short_id, peak, bandwidth, operational_intensity(peak, bandwidth)))
    book.table("ridges", ("text", "flop_per_s", "bytes_per_s", ".0f"), rows)
