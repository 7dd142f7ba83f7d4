"""Figures of `explain` over one file: from the peak to what was useful, the strip, kernels, the roof, differences."""

from __future__ import annotations

from collections.abc import Sequence

from suanli.explain.short_names import short
from suanli.nouns.explained import Account, AccountEntry, Explained, Strip, TraceDifference
from suanli.nouns.fleet import FleetReport
from suanli.nouns.result import Result
from suanli.report.explain_pages import merged
from suanli.report.figures import colours, fleets, parts, scales
from suanli.report.figures.figure import Figure, Row, Spec
from suanli.report.figures.layouts import beside
from suanli.report.trace_differences import signed
from suanli.units import format_bytes_per_s, format_exact, format_flop_per_s, format_percent, format_seconds

OF_KIND = {"matmul": colours.PRODUCTS, "compute": colours.KERNELS, "communication": colours.COMMUNICATION,
           "copy": colours.COPIES, "peer copy": colours.COPIES}  # fmt: skip
_OVERLAPPED, _EXPOSED = "overlapped", "exposed"
_OTHERS, _COPY = "other streams", {"copies": "copy"}
DIFFERENT = 12  # kernels of a comparison


def explain_figures(result: Result) -> tuple[Figure, ...]:
    """One trace, or many ranks."""
    if isinstance(result.result, FleetReport):
        return fleets.fleet_figures(result.result)
    found: Explained = result.result
    return (
        *waterfall(found.account, found.peak_s), *_strip(found.strip), *_steps(found), *_devices(found),
        *_kernels(found), *_roofline(found), *_collectives(found), *_differences(found),
    )  # fmt: skip


def waterfall(account: tuple[AccountEntry, ...], whole: float) -> tuple[Figure, ...]:
    """Peak → … → useful; the parts close to 100 %."""
    if not whole:
        return ()
    rows: list[Row] = [{"part": "peak", "value": whole, "begin": 0.0, "end": whole},
            *parts.running(merged(account), down_from=whole)]  # fmt: skip
    for row in rows:
        row["text"] = f"{format_seconds(row['value'])}, {format_percent(row['value'] / whole, 1)}"
    paint = {row["part"]: colours.of_entry(row["part"]) for row in rows} | {"peak": colours.BLUE}
    spec = parts.waterfall(rows, label="part", unit=scales.seconds([whole]), title="device time", colours=paint,
                           words=("part",), hover=(("part", "entry"), ("text", "time")))  # fmt: skip
    return (Figure(
        name="waterfall", title="Where the time went", spec=spec,
        words="Bars from the whole time at the peak down to the useful model FLOPs, each where the one before ended.",
    ),)  # fmt: skip


def _strip(strip: Strip | None) -> tuple[Figure, ...]:
    """Lanes of streams over time."""
    if strip is None or not strip.spans:
        return ()
    rows: list[Row] = [
        {"stream": _OTHERS if each.stream is None else f"stream {each.stream}", "kind": _COPY.get(each.kind, each.kind),
         "start": each.start_s, "stop": each.end_s, "name": parts.name_of(short(each.name)),
         "work": format_exact(each.work), "time": format_seconds(each.end_s - each.start_s),
         "busy": format_seconds(each.busy_s), "at": format_seconds(each.start_s)}
        for each in strip.spans[: parts.MOST_MARKS]
    ]  # fmt: skip
    unit = scales.seconds([(strip.end_ns - strip.start_ns) * scales.NANOSECOND])
    order = list(dict.fromkeys(row["stream"] for row in rows))
    used = {row["kind"] for row in rows}
    paint = {name: colour for name, colour in OF_KIND.items() if name in used}
    hover = (("name", "kernel"), ("kind", "kind"), ("at", "from"), ("time", "length"), ("busy", "busy"),
             ("work", "kernels and copies"), ("stream", "stream"))  # fmt: skip
    spec = parts.spec_of(
        rows, parts.Step(34), ("kind",), transform=[unit.shown("start", "left"), unit.shown("stop", "right")],
        mark={"type": "bar", "strokeWidth": 0},
        encoding={"y": parts.band("stream", order), "x": parts.measure("left", unit.of("time")),
                  "x2": {"field": "right"}, "color": parts.coloured("kind", paint), "tooltip": parts.tips(*hover)},
    )  # fmt: skip
    return (Figure(
        name="strip", title="Strip of a step" if strip.name else "Strip of a part of the window", spec=spec,
        words="A lane for each stream of a device over the time of one step, coloured by what ran; neighbours are "
        "merged where they are dense.",
    ),)  # fmt: skip


def _stacked(accounts: Sequence[tuple[str, Account]], name: str, title: str, words: str) -> tuple[Figure, ...]:
    """Accounts side by side, cut into their entries."""
    rows: list[Row] = []
    for label, account in accounts[: parts.MOST_BARS]:
        for entry, seconds in merged(account.entries):
            rows.append({"label": label, "entry": entry, "seconds": seconds, "text": format_seconds(seconds),
                         "share": format_percent(seconds / account.peak_s, 1) if account.peak_s else "",
                         "whole": format_seconds(account.peak_s)})  # fmt: skip
    if len(accounts) < 2 or not rows:
        return ()
    used = dict.fromkeys(row["entry"] for row in rows)
    order = sorted(used, key=lambda entry: -list(colours.OF_TRACE).index(entry) if entry in colours.OF_TRACE else 0)
    unit = scales.seconds(account.peak_s for _, account in accounts)
    spec = parts.stack(
        rows, label="label", part="entry", value="seconds", unit=unit, title="time", words=("entry",),
        colours={entry: colours.OF_TRACE.get(entry, colours.GREY) for entry in order},
        hover=(("label", "which"), ("entry", "entry"), ("text", "time"), ("share", "of it"), ("whole", "whole")),
    )  # fmt: skip
    return (Figure(name=name, title=title, spec=spec, words=words),)


def _steps(found: Explained) -> tuple[Figure, ...]:
    several = len(found.devices) > 1
    labels = parts.unique(parts.name_of(f"{each.name}, device {each.device}" if several else each.name)
                          for each in found.steps)  # fmt: skip
    pairs = [(label, each.account) for label, each in zip(labels, found.steps, strict=True)]
    return _stacked(pairs, "steps", "Steps", "A bar for each step, cut into the entries of its account.")


def _devices(found: Explained) -> tuple[Figure, ...]:
    pairs = [(f"device {each.device}", each.account) for each in found.devices]
    return _stacked(pairs, "devices", "Devices", "A bar for each device, cut into the entries of its account.")


def _kernels(found: Explained) -> tuple[Figure, ...]:
    """Those that own most of the time."""
    several = len(found.devices) > 1
    shown = [each for each in found.kernels if each.owned_s > 0][: parts.MOST_BARS - 4]
    if not shown:
        return ()
    labels = parts.unique((f"{each.device}: " if several else "") + parts.name_of(short(each.name)) for each in shown)
    rows: list[Row] = [
        {"label": label, "kind": each.kind, "owned": each.owned_s, "runs": format_exact(each.count),
         "text": f"{format_seconds(each.owned_s)}, {_percent(each.fraction)}", "name": parts.name_of(each.name, 120),
         "peak": _percent(each.peak_fraction), "roof": _percent(each.roof_fraction)}
        for each, label in zip(shown, labels, strict=True)
    ]  # fmt: skip
    used = {row["kind"] for row in rows}
    spec = parts.bars(
        rows, label="label", value="owned", unit=scales.seconds(row["owned"] for row in rows), title="time owned",
        text="text", words=("kind",),
        colour=parts.coloured("kind", {name: colour for name, colour in OF_KIND.items() if name in used}),
        hover=(("name", "kernel"), ("kind", "kind"), ("runs", "runs"), ("text", "time owned"), ("peak", "of peak"),
               ("roof", "of roof")),
    )  # fmt: skip
    return (Figure(name="kernels", title="Kernels that own most of the time", spec=spec,
                   words="A bar for the time that each of the longest kernels owns, coloured by kind."),)  # fmt: skip


def _percent(value: float | None) -> str:
    return "" if value is None else format_percent(value, 1)


def _roofline(found: Explained) -> tuple[Figure, ...]:
    """Achieved rate over FLOPs a byte, beneath the roofs of the device."""
    rows: list[Row] = [
        {"intensity": each.intensity, "rate": each.achieved_flop_per_s, "dtype": each.dtype or "",
         "op": parts.name_of(each.op or short(each.name)), "seconds": each.seconds, "runs": format_exact(each.count),
         "time": format_seconds(each.seconds), "achieved": format_flop_per_s(each.achieved_flop_per_s),
         "bytes": "" if each.achieved_bytes_per_s is None else format_bytes_per_s(each.achieved_bytes_per_s),
         "roof": _percent(each.roof_fraction), "bound": each.bound or "", "per_byte": f"{each.intensity:,.4g}"}
        for each in found.roofline if each.intensity and each.achieved_flop_per_s
    ][: parts.MOST_MARKS // 2]  # fmt: skip
    device = found.devices[0] if found.devices else None
    if not rows or device is None or not device.memory_bytes_per_s:
        return ()
    dtypes = list(dict.fromkeys(row["dtype"] for row in rows))
    ridges = [peak / device.memory_bytes_per_s for name in dtypes if (peak := device.peaks_flop_per_s.get(name))]
    known = [*(row["intensity"] for row in rows), *ridges]
    ends = min(known) / 4, 4 * max(known)
    roofs = [
        point for dtype in dtypes if (peak := device.peaks_flop_per_s.get(dtype))
        for point in _roof(dtype, peak, device.memory_bytes_per_s, ends)
    ]  # fmt: skip
    rates = [row["rate"] for row in (*rows, *roofs)]
    unit = scales.rates(rates)
    x = parts.measure("intensity", "FLOPs a byte", log=True, zero=False, scale={"nice": False},
                      axis=parts.log_axis(ends, format=","))  # fmt: skip
    y = parts.measure("y", unit.of("rate"), log=True, zero=False, scale={"nice": False, "padding": 10},
                      axis=parts.log_axis(rates, unit))  # fmt: skip
    colour = parts.coloured("dtype", dtypes, "dtype")
    shown = [unit.shown("rate", "y")]
    hover = (("op", "operator"), ("dtype", "dtype"), ("runs", "runs"), ("time", "time"), ("per_byte", "FLOPs a byte"),
             ("achieved", "achieved"), ("bytes", "memory rate"), ("roof", "of roof"), ("bound", "bound"))  # fmt: skip
    line: Spec = {"data": {"values": roofs}, "transform": shown, "mark": {"type": "line"},
                  "encoding": {"x": x, "y": y, "color": colour}}  # fmt: skip
    dots = parts.points(x, y, colour, hover)
    dots["encoding"]["size"] = {"field": "seconds", "type": "quantitative", "legend": None,
                                "scale": {"range": [25, 500]}}  # fmt: skip
    spec = parts.spec_of(rows, parts.HEIGHT + 40, ("bound",), transform=shown, layer=[line, dots] if roofs else [dots])
    return (Figure(
        name="roofline", title="Roofline", spec=spec,
        words="Operators as points, FLOPs a byte across and the rate achieved up, both logarithmic, beneath the roofs "
        "of memory and arithmetic; larger points took longer.",
    ),)  # fmt: skip


def _roof(dtype: str, peak: float, rate: float, ends: tuple[float, float]) -> list[Row]:
    """The roof between two intensities: up along memory, then flat."""
    ridge = peak / rate
    at = sorted({*ends, min(max(ridge, ends[0]), ends[1])})
    return [{"intensity": each, "rate": min(peak, rate * each), "dtype": dtype} for each in at]


def _collectives(found: Explained) -> tuple[Figure, ...]:
    """Communication beside compute and without it."""
    several = len(found.devices) > 1
    shown = found.collectives[: parts.MOST_BARS // 2]
    labels = parts.unique(
        (f"{each.device}: " if several else "") + parts.name_of(f"{short(each.collective)} {each.group or ''}".rstrip())
        for each in shown
    )
    rows: list[Row] = [
        {"label": label, "part": part, "seconds": seconds, "text": format_seconds(seconds),
         "calls": format_exact(each.count), "ranks": "" if each.group_size is None else format_exact(each.group_size),
         "busbw": "" if each.busbw_bytes_per_s is None else format_bytes_per_s(each.busbw_bytes_per_s)}
        for each, label in zip(shown, labels, strict=True)
        for part, seconds in ((_OVERLAPPED, each.overlapped_s), (_EXPOSED, each.exposed_s)) if seconds
    ]  # fmt: skip
    if not rows:
        return ()
    spec = parts.stack(
        rows, label="label", part="part", value="seconds", unit=scales.seconds(row["seconds"] for row in rows),
        title="time", colours={_OVERLAPPED: colours.KERNELS, _EXPOSED: colours.COMMUNICATION}, words=("part",),
        hover=(("label", "collective"), ("ranks", "ranks"), ("calls", "calls"), ("part", "part"), ("text", "time"),
               ("busbw", "busbw")),
    )  # fmt: skip
    return (Figure(name="collectives", title="Communication", spec=spec,
                   words="A bar for each collective and group: time beside compute, and exposed time."),)  # fmt: skip


def _differences(found: Explained) -> tuple[Figure, ...]:
    pairs = ((found.against, "against", "Against the plan", ("planned", "ran")),
             (found.compared, "compared", "Compared with the other trace", ("other", "this")))  # fmt: skip
    figures = [figure for difference, name, title, names in pairs if difference is not None
               for figure in _difference(difference, name, title, names)]  # fmt: skip
    return tuple(figures)


def _difference(found: TraceDifference, name: str, title: str, names: tuple[str, str]) -> tuple[Figure, ...]:
    unit = scales.seconds((found.first_s, found.second_s))
    entries = Figure(
        name=name, title=title, spec=beside(found.rows, names, unit, "time", format_seconds),
        words="Two bars for each entry of the account, one of each side.",
    )  # fmt: skip
    rows: list[Row] = [{"kernel": label, "difference": each.difference, "text": signed(each.difference),
             "first": format_seconds(each.first), "second": format_seconds(each.second)}
            for each, label in zip(found.kernels[:DIFFERENT],
                                   parts.unique(parts.name_of(short(each.entry)) for each in found.kernels[:DIFFERENT]),
                                   strict=True) if each.difference]  # fmt: skip
    if not rows:
        return (entries,)
    spec = parts.bars(
        rows, label="kernel", value="difference", unit=scales.seconds(row["difference"] for row in rows),
        title="difference", text="text",
        hover=(("kernel", "kernel"), ("first", names[0]), ("second", names[1]), ("text", "difference")),
    )  # fmt: skip
    return (entries, Figure(name=f"{name}_kernels", title="Kernels that differ most", spec=spec,
                            words="A bar for the kernels whose time differs most between the two."))  # fmt: skip
