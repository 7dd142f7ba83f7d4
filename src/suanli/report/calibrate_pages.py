"""The report of `calibrate`: a stack after own runs, or the profiles that ship fitted again."""

from __future__ import annotations

from math import exp

from suanli.nouns.calibrated import (
    Calibrated,
    CalibratedKernels,
    KernelClass,
    NumberFit,
    RunFit,
    ShippedFit,
    ShippedFits,
    ShippedNumber,
)
from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN, closing, exact
from suanli.report.document import Document, Facts, Lines, Table
from suanli.units import format_bytes, format_bytes_per_s, format_flop_per_s, format_percent, format_seconds

SECONDS = "s"


def calibrate_document(result: Result) -> Document:
    """The page of whichever was asked for."""
    found: Calibrated | CalibratedKernels | ShippedFits = result.result
    if isinstance(found, CalibratedKernels):
        return _kernels(result, found)
    return _own(result, found) if isinstance(found, Calibrated) else _shipped(result, found)


def interval(half_width: float) -> str:
    """An interval of a prediction by the half-width of its logarithm: `-18.1 % to +22.1 %`."""
    return f"{signed(exp(-half_width) - 1)} to {signed(exp(half_width) - 1)}"


def signed(fraction: float) -> str:
    """A difference in percent with its sign."""
    return f"{fraction * 100:+.1f} %"


def _own(result: Result, found: Calibrated) -> Document:
    word = "narrower" if found.narrower_fraction >= 0 else "wider"
    change = f"{format_percent(abs(found.narrower_fraction), 1)} {word}"
    headline = (
        f"{found.name}: {found.base} calibrated to {len(found.runs):,} runs on {found.device}; "
        f"the 80 % interval is {change}"
    )
    return Document(
        headline,
        (
            _before_and_after(found, change),
            Table("Runs, each predicted by the others",
                  ("run", "layout", "measured", "before", "off", "held out", "off", "memory"),
                  tuple(_run(row) for row in found.runs), (False, False, True, True, True, True, True, True)),
            Table("Numbers that the runs tell", ("number", "believed", "±", "fitted", "±", "changed", "what it is"),
                  tuple(_number(row) for row in found.numbers if row.told), (False, *[True] * 5, False)),
            Lines("Numbers that no run tells", _untold(found)),
            Lines("Predictions with it extrapolate to", found.extrapolates),
            Lines("Warnings", found.warnings),
            *closing(result),
        ),
    )  # fmt: skip


def _before_and_after(found: Calibrated, change: str) -> Facts:
    return Facts(
        "Before and after",
        (
            ("mean error before", format_percent(found.mean_error_before_fraction, 1), f"by {found.base} as it is"),
            ("mean error held out", format_percent(found.mean_error_held_out_fraction, 1),
             "every run predicted by what the others give"),
            ("80 % interval before", interval(found.half_width_before), f"of {found.base}"),
            ("80 % interval after", interval(found.half_width_after), change),
        ),
    )  # fmt: skip


def _run(row: RunFit) -> tuple[str, ...]:
    memory = format_bytes(row.memory_bytes) + ("" if row.fits is not False else ", does not fit")
    return (
        row.id, row.layout, format_seconds(row.step_s), format_seconds(row.before_s), signed(row.error_before_fraction),
        format_seconds(row.held_out_s), signed(row.error_held_out_fraction), memory,
    )  # fmt: skip


def _number(row: NumberFit) -> tuple[str, ...]:
    return (
        row.name, _value(row.before, row.unit), _spread(row.spread_before), _value(row.after, row.unit),
        _spread(row.spread_after), signed(row.after / row.before - 1), row.meaning,
    )  # fmt: skip


def _value(value: float, unit: str) -> str:
    return format_seconds(value) if unit == SECONDS else f"{value:.4g}"


def _spread(width: float) -> str:
    return f"{(exp(width) - 1) * 100:.1f} %"


def _untold(found: Calibrated | CalibratedKernels) -> tuple[str, ...]:
    names = [row.name for row in found.numbers if not row.told]
    return (", ".join(names) + f": near {found.base}'s, as believed",) if names else ()


# --- kernels ------------------------------------------------------------------------------------------------------


def _kernels(result: Result, found: CalibratedKernels) -> Document:
    told = ", ".join(f"{row.name} {row.before:.4g} → {row.after:.4g}" for row in found.numbers if row.told)
    runs = sum(row.runs for row in found.classes)
    left = tuple(f"{why}: {count:,}" for why, count in found.left_out.items())
    return Document(
        f"{found.name}: {found.base} calibrated to {exact(runs)} kernels on {found.device}; {told}",
        (
            Table("Kernels beside the device's curves", ("kernel", "sizes", "rows", "runs", "measured", "curve",
                                                        "ratio", "±", "reached", "of peak", "fitted"),
                  tuple(_class(row) for row in found.classes),
                  (False, False, True, True, True, True, True, True, True, True, False)),
            Table("Numbers that the kernels tell", ("number", "believed", "±", "fitted", "±", "changed", "what it is"),
                  tuple(_number(row) for row in found.numbers if row.told), (False, *[True] * 5, False)),
            Lines("Numbers that no kernel tells", _untold(found)),
            Facts("Predictions of steps", (("80 % interval", interval(found.half_width), "as before: no step seen"),)),
            Lines("Left out", left),
            Lines("Warnings", found.warnings),
            *closing(result),
        ),
    )  # fmt: skip


def _class(row: KernelClass) -> tuple[str, ...]:
    rate = NOT_GIVEN
    if row.rate is not None:
        rate = (
            format_flop_per_s(row.rate)
            if row.what.startswith(("product", "attention"))
            else f"{format_bytes_per_s(row.rate)} bus"
        )
    part = NOT_GIVEN if row.peak_fraction is None else format_percent(row.peak_fraction, 1)
    return (
        row.what, row.size, exact(row.rows), exact(row.runs), format_seconds(row.seconds), format_seconds(row.curve_s),
        f"{row.ratio:.3f}", _spread(row.spread), rate, part, "yes" if row.fitted else "no",
    )  # fmt: skip


# --- what ships ---------------------------------------------------------------------------------------------------


def _shipped(result: Result, found: ShippedFits) -> Document:
    unit = "stack" if len(found.stacks) == 1 else "stacks"
    headline = (
        f"{len(found.stacks)} {unit} fitted again: every number that ships within "
        f"{format_percent(found.largest_difference_fraction, 3)} of what is found"
    )
    tables = tuple(block for each in found.stacks for block in _stack(each))
    return Document(headline, (*tables, *closing(result)))


def _stack(fit: ShippedFit) -> tuple[Table, Facts]:
    own = f", {fit.own_rows:,} of them of --rows" if fit.own_rows else ""
    rows = Table(
        f"{fit.stack}: {exact(fit.rows)} runs{own}", ("number", "believed", "ships", "found", "difference"),
        tuple(_again(row) for row in fit.numbers),
    )  # fmt: skip
    facts = [
        ("80 % interval that ships", interval(fit.half_width_shipped), ""),
        ("80 % interval found", interval(fit.half_width_fitted), "from each fold left out"),
    ]
    if fit.kept:
        facts.append(("as believed", str(len(fit.kept)), ", ".join(fit.kept)))
    return rows, Facts("", tuple(facts))


def _again(row: ShippedNumber) -> tuple[str, ...]:
    ships = NOT_GIVEN if row.shipped is None else f"{row.shipped:.5g}"
    off = "not shipped" if row.difference_fraction is None else f"{row.difference_fraction * 100:+.3f} %"
    return row.name, f"{row.believed:.5g}", ships, f"{row.fitted:.5g}", off
