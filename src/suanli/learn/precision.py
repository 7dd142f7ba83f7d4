"""Formats of numbers: how far and how fine, what rounding loses, what fewer bits cost to hold and give in speed."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.catalog.curves import find_curves
from suanli.catalog.devices import find_device
from suanli.count import count
from suanli.formulas.rounding import largest_number, number_step, rounded_number, smallest_number
from suanli.learn.book import Book
from suanli.nouns.lesson import Lesson
from suanli.nouns.workload import Workload
from suanli.readers.model import read_model
from suanli.units import GIBI, KILO, MEBI, TERA


@dataclass(frozen=True)
class Format:
    """Bits of a number, its sign apart."""

    name: str
    exponent: int
    mantissa: int
    all_finite: bool = False

    def rounded(self, value: float) -> float:
        """A number as the format keeps it."""
        return rounded_number(value, self.exponent, self.mantissa)


# IEEE 754; bf16: Intel 2018; fp8: OCP 8-bit floating point specification 1.0
FORMATS = (
    Format("fp32", 8, 23), Format("tf32", 8, 10), Format("bf16", 8, 7), Format("fp16", 5, 10),
    Format("fp8 e5m2", 5, 2), Format("fp8 e4m3", 4, 3, all_finite=True),
)  # fmt: skip
STEP, TIMES = 1e-3, 1000
GRADIENT, SCALE = 1e-8, 65_536
MODEL, SEQ = "llama-3.1-8b", 4096
GPUS = ("v100-32gb-sxm", "a100-80gb-sxm", "h100-sxm", "b200", "mi300x", "mi355x")
DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
PRODUCT, ON = (8192, 8192, 8192), "h100-sxm"
_BY_NAME = {each.name: each for each in FORMATS}


def lesson(lang: str) -> Lesson:
    """The lesson."""
    book = Book("precision", lang)
    _formats(book)
    _lost(book)
    _underflow(book)
    _memory(book)
    _speed(book)
    return book.lesson()


def _formats(book: Book) -> None:
    half, brain = _BY_NAME["fp16"], _BY_NAME["bf16"]
    finer = number_step(brain.mantissa) / number_step(half.mantissa)
    book.say("formats", finer=finer, half_top=largest_number(half.exponent, half.mantissa, half.all_finite))
    rows = [
        (each.name, 1 + each.exponent + each.mantissa, each.exponent, each.mantissa, 1 + number_step(each.mantissa),
         largest_number(each.exponent, each.mantissa, each.all_finite), smallest_number(each.exponent, each.mantissa))
        for each in FORMATS
    ]  # fmt: skip
    book.table("formats", ("text", "d", "d", "d", ".7f", ".5g", ".3g"), rows)


def summed(form: Format, step: float, times: int) -> float:
    """1 and so many steps, rounded after every one."""
    value = 1.0
    for _ in range(times):
        value = form.rounded(value + form.rounded(step))
    return value


def _lost(book: Book) -> None:
    right = 1 + STEP * TIMES
    brain = _BY_NAME["bf16"]
    book.say("lost", step=STEP, times=TIMES, right=right, bf16_next=1 + number_step(brain.mantissa))
    rows = []
    for each in FORMATS:
        found = summed(each, STEP, TIMES)
        rows.append((each.name, found, found - right))
        book.keep(**{f"sum_{each.name.replace(' ', '_')}": found})
    book.table("lost", ("text", ".6f", "+.6f"), rows)


def _underflow(book: Book) -> None:
    half, brain = _BY_NAME["fp16"], _BY_NAME["bf16"]
    book.say("underflow", gradient=GRADIENT, fp16=half.rounded(GRADIENT), bf16=brain.rounded(GRADIENT), scale=SCALE,
             smallest=smallest_number(half.exponent, half.mantissa), scaled=half.rounded(GRADIENT * SCALE))  # fmt: skip


def _memory(book: Book) -> None:
    arch, rule, rows = read_model(MODEL), find_convention(DEFAULT), []
    for dtype in ("fp32", "bf16", "fp8"):
        held = count(arch, Workload(phase="train", seq=SEQ, dtype=dtype), rule).bytes
        cache = count(arch, Workload(phase="decode", seq=1, kv_len=KILO, dtype=dtype), rule).bytes.kv_cache
        assert held.gradients is not None and held.optimizer is not None and held.activations is not None and cache
        states = held.weights + held.gradients + held.optimizer
        sizes = (held.weights, held.gradients, held.optimizer, states, held.activations)
        rows.append((dtype, *(each / GIBI for each in sizes), cache / MEBI))
        book.keep(**{f"bytes_per_param_{dtype}": states / arch.params_total})
    mixed = book.values["bytes_per_param_bf16"]
    book.say("memory", model=MODEL, params=arch.params_total, mixed=mixed)
    book.table("memory", ("text", *(",.1f" for _ in rows[0][1:])), rows)


def _speed(book: Book) -> None:
    book.say("speed")
    rows = []
    for name in GPUS:
        device = find_device(name)
        peaks = [device.peaks_flop_per_s.get(dtype) for dtype in DTYPES]
        by = dict(zip(DTYPES, peaks, strict=True))
        ratio = by["fp8"] / by["bf16"] if by["fp8"] and by["bf16"] else None
        rows.append((device.short_id, *(each and each / TERA for each in peaks), ratio))
    book.table("speed", ("text", *(",.0f",) * len(DTYPES), ".2f"), rows)
    (m, n, k), curves, device = PRODUCT, find_curves(ON), find_device(ON)
    bf16, fp8 = (float(curves.matmul_s(m, n, k, 1, dtype)) for dtype in ("bf16", "fp8"))
    promised = device.peak_flop_per_s("fp8") / device.peak_flop_per_s("bf16")
    book.say("product", m=m, n=n, k=k, gpu=ON, bf16=bf16, fp8=fp8, times=bf16 / fp8, promised=promised)
