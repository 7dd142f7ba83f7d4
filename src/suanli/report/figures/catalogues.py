"""Figures of `gpus` and `models`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from suanli.nouns.hardware import Device
from suanli.nouns.result import Result
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row
from suanli.units import TERA, format_bytes_per_s, format_count, format_exact, format_flop_per_s

_FIRST = ("bf16", "fp16", "fp32")  # whose dense peak stands for a device: the first that has a source
_OTHERS = "others"
_NAMED_VENDORS = 8  # with a colour of their own
ROOM = {"nice": False, "padding": 14}
_WHOLE = ("int8", "int4")


def gpus_figures(result: Result) -> tuple[Figure, ...]:
    """All devices as points, or the peaks of one."""
    devices = result.result.devices
    if len(devices) == 1:
        return _peaks(devices[0])
    return _bandwidth(devices)


def _bandwidth(devices: Sequence[Device]) -> tuple[Figure, ...]:
    """Peak over memory bandwidth, both logarithmic: how many FLOPs a byte must bring is told by the diagonals."""
    rows: list[Row] = [row for each in devices if (row := _device(each)) is not None][: parts.MOST_MARKS]
    if not rows:
        return ()
    often = [name for name, _ in Counter(row["vendor"] for row in rows).most_common(_NAMED_VENDORS)]
    for row in rows:
        row["group"] = row["vendor"] if row["vendor"] in often else _OTHERS
    groups = [name for name in (*often, _OTHERS) if any(row["group"] == name for row in rows)]
    palette = dict(zip(groups, (*colours.SERIES[: len(groups) - 1], colours.GREY), strict=False))
    x = parts.measure(
        "x",
        "memory bandwidth [GB/s]",
        log=True,
        zero=False,
        scale=ROOM,
        axis=parts.log_axis((row["bytes_per_s"] for row in rows), scales.GIGABYTES_PER_S, format=","),
    )
    y = parts.measure(
        "y",
        "dense peak [TFLOP/s]",
        log=True,
        zero=False,
        scale=ROOM,
        axis=parts.log_axis((row["flop_per_s"] for row in rows), scales.Unit("", TERA), format=","),
    )
    hover = (("device", "device"), ("vendor", "vendor"), ("peak", "dense peak"), ("dtype", "dtype"),
             ("rate", "memory bandwidth"), ("ridge", "FLOPs a byte at the ridge"))  # fmt: skip
    spec = parts.spec_of(
        rows, parts.HEIGHT + 60, ("group",),
        transform=[scales.GIGABYTES_PER_S.shown("bytes_per_s", "x"), scales.Unit("", TERA).shown("flop_per_s", "y")],
        layer=[parts.points(x, y, parts.coloured("group", palette, "vendor"), hover)],
    )  # fmt: skip
    return (Figure(
        name="bandwidth_peak", title="Memory bandwidth against dense peak", spec=spec,
        words="Devices as points, memory bandwidth across and dense peak up, both logarithmic, coloured by vendor.",
    ),)  # fmt: skip


def _device(device: Device) -> Row | None:
    rate = device.memory_bytes_per_s
    dtype = next((name for name in _FIRST if device.peaks_flop_per_s.get(name)), None)
    if not rate or dtype is None:
        return None
    peak = device.peaks_flop_per_s[dtype]
    return {
        "device": device.short_id, "vendor": device.vendor, "flop_per_s": peak, "bytes_per_s": rate, "dtype": dtype,
        "peak": format_flop_per_s(peak), "rate": format_bytes_per_s(rate), "ridge": f"{peak / rate:,.4g}",
    }  # fmt: skip


def _peaks(device: Device) -> tuple[Figure, ...]:
    rows: list[Row] = [
        {
            "dtype": name,
            "rate": peak,
            "text": format_flop_per_s(peak).replace("FLOP", "OP" if name in _WHOLE else "FLOP"),
        }
        for name, peak in device.peaks_flop_per_s.items()
        if peak
    ]
    if not rows:
        return ()
    spec = parts.bars(
        rows, label="dtype", value="rate", unit=scales.rates(row["rate"] for row in rows), title="dense, one package",
        text="text", hover=(("dtype", "dtype"), ("text", "dense peak")), label_title="dtype",
    )  # fmt: skip
    return (Figure(name="peaks", title="Peaks", spec=spec, words="A bar for the dense peak of each dtype."),)


def models_figures(result: Result) -> tuple[Figure, ...]:
    """All presets as points: what they hold and what a token passes."""
    models: Sequence[Any] = result.result.models
    if len(models) < 2:
        return ()
    rows: list[Row] = [
        {"model": each.name, "task": each.task, "params": each.params, "active": each.params_active,
         "total": format_count(each.params), "passed": format_count(each.params_active),
         "exact": format_exact(each.params), "which": "dense" if each.params == each.params_active else "mixture"}
        for each in models[: parts.MOST_MARKS]
    ]  # fmt: skip
    label = {"labelExpr": "replace(format(datum.value, '~s'), 'G', 'B')"}
    axis = parts.log_axis([row[name] for row in rows for name in ("params", "active")]) | label
    x = parts.measure("params", "parameters", log=True, zero=False, scale=ROOM, axis=axis)
    y = parts.measure(
        "active", "parameters that a token passes (2 FLOPs each)", log=True, zero=False, scale=ROOM, axis=axis
    )
    paint = {
        name: colour
        for name, colour in (("dense", colours.BLUE), ("mixture", colours.RED))
        if any(row["which"] == name for row in rows)
    }
    hover = (("model", "model"), ("task", "task"), ("total", "parameters"), ("exact", "exactly"), ("passed", "active"))
    spec = parts.spec_of(rows, parts.HEIGHT + 60, ("which",),
                         layer=[parts.points(x, y, parts.coloured("which", paint), hover, size=50)])  # fmt: skip
    return (Figure(
        name="params_active", title="Parameters against what a token passes", spec=spec,
        words="Models as points, all parameters across and those a token passes up, both logarithmic; mixtures of "
        "experts lie below the diagonal.",
    ),)  # fmt: skip
