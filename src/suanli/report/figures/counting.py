"""Figures of `count` and `compare`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from suanli.nouns.comparison import Cause, Comparison, Counter, Likeness
from suanli.nouns.counts import Count
from suanli.nouns.partial import PartialCount
from suanli.nouns.result import Result
from suanli.report.common import exact, share
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row
from suanli.report.figures.scales import Unit
from suanli.units import format_bytes, format_count, format_flops

_TERMS = (("weights", "weights"), ("gradients", "gradients"), ("optimizer", "optimizer"),
          ("activations", "activations"), ("KV cache", "kv_cache"))  # fmt: skip
SWEPT_POINTS = 200
_RIGHT, _COUNTED = "right", "this counter"
_EXPLAINED, _UNEXPLAINED = "difference explained", "not all of it explained"


def count_figures(result: Result) -> tuple[Figure, ...]:
    """FLOPs and parameters by row, memory by term; for a counter's own rules, what makes its difference."""
    found = result.result
    if isinstance(found, Likeness):
        return (*_likeness(found), *causes_of(found.causes))
    if isinstance(found, PartialCount):
        return (*_by_row(found), *_stored(found))
    return (*_by_row(found), *_memory(found), *_by_policy(found), *_sweep(found))


def _by_row(books: Count | PartialCount) -> Iterator[Figure]:
    """Two figures: what the rows compute, what they hold."""
    measures: tuple[tuple[str, str, str, Callable[[Sequence[float]], Unit], Callable[[float], str]], ...] = (
        ("flops", "hardware FLOPs", "hardware_flops", scales.operations, format_flops),
        ("params", "parameters", "params", scales.counts, format_count),
    )
    for name, title, field, unit, write in measures:
        rows = [{"row": row.name, "value": getattr(row, field)} for row in books.rows if getattr(row, field)]
        whole = sum(row["value"] for row in rows)
        rows = parts.top(rows, "value", label="row")
        for row, label in zip(rows, parts.unique(parts.tail_of(row["row"]) for row in rows), strict=True):
            row |= {"label": label, "text": f"{write(row['value'])}, {share(row['value'], whole)}",
                    "exact": exact(row["value"])}  # fmt: skip
        if rows:
            spec = parts.bars(
                rows, label="label", value="value", unit=unit([row["value"] for row in rows]), title=title, text="text",
                hover=(("row", books.by), ("text", title), ("exact", "exactly")),
                colour=colours.BLUE if name == "flops" else colours.GREEN,
            )  # fmt: skip
            yield Figure(name=f"rows_{name}", title=f"{title[0].upper()}{title[1:]} by {books.by}", spec=spec,
                         words=f"A bar for the {title} of each {books.by}.")  # fmt: skip


def _memory(books: Count) -> tuple[Figure, ...]:
    """One bar; in training one for each recompute policy."""
    policies = books.bytes.activations_by_recompute
    given = {"activations": books.bytes.activations}
    kept = [(name, {"activations": size}) for name, size in policies.items()] if policies else [("model", given)]
    rows: list[Row] = [
        {"policy": policy, "term": term, "bytes": size, "text": format_bytes(size), "exact": exact(size, "B")}
        for policy, own in kept for term, field in _TERMS
        if (size := own.get(field, getattr(books.bytes, field)))
    ]  # fmt: skip
    if not rows:
        return ()
    used = {row["term"] for row in rows}
    most = max(sum(row["bytes"] for row in rows if row["policy"] == policy) for policy, _ in kept)
    spec = parts.stack(
        rows, label="policy", part="term", value="bytes", unit=scales.sizes([most]), title="memory",
        colours={name: colour for name, colour in colours.OF_MEMORY.items() if name in used},
        hover=(("policy", "recompute"), ("term", "term"), ("text", "memory"), ("exact", "exactly")),
        words=("term", "policy"), label_title="recompute" if policies else None,
    )  # fmt: skip
    return (Figure(
        name="memory", title="Memory of the whole model, in one piece", spec=spec,
        words="Bars of memory cut into weights, gradients, optimizer states, activations and KV cache.",
    ),)  # fmt: skip


def _by_policy(books: Count) -> tuple[Figure, ...]:
    policies = books.flops.hardware_by_recompute
    if not policies or len(policies) < 2:
        return ()
    rows: list[Row] = [
        {"policy": name, "flops": flops, "text": format_flops(flops), "times": f"{flops / books.flops.model:.4f}"}
        for name, flops in policies.items()
    ]
    spec = parts.bars(
        rows, label="policy", value="flops", unit=scales.operations(policies.values()), title="hardware FLOPs",
        text="text", hover=(("policy", "recompute"), ("text", "hardware FLOPs"), ("times", "hardware/model")),
        label_title="recompute",
    )  # fmt: skip
    return (Figure(name="policies", title="Hardware FLOPs by recompute policy", spec=spec,
                   words="A bar for the hardware FLOPs under each recompute policy."),)  # fmt: skip


_SWEPT = {"batch": "batch", "seq": "positions", "kv_len": "keys"}


def _sweep(books: Count) -> tuple[Figure, ...]:
    """FLOPs over the length that was swept, with the bytes that go with it."""
    swept = books.sweep or ()
    across = next((name for name in _SWEPT if len({getattr(point, name) for point in swept}) > 1), None)
    if across is None:
        return ()
    every = -(-len(swept) // SWEPT_POINTS)
    rows: list[Row] = [
        {"at": getattr(point, across), "length": exact(getattr(point, across)), "which": which, "flops": flops,
         "text": format_flops(flops, 5)}
        for point in (*swept[::every], swept[-1])
        for which, flops in (("hardware FLOPs", point.hardware_flops), ("model FLOPs", point.model_flops))
        if which == "model FLOPs" or flops != point.model_flops
    ]  # fmt: skip
    unit = scales.operations(row["flops"] for row in rows)
    x = parts.measure("at", _SWEPT[across], log=True, zero=False, scale={"nice": False, "padding": 12},
                      axis=parts.log_axis((row["at"] for row in rows), format=","))  # fmt: skip
    y = parts.measure("shown", unit.of("FLOPs"), log=True, zero=False, scale={"nice": False, "padding": 12},
                      axis=parts.log_axis((row["flops"] for row in rows), unit))  # fmt: skip
    paint = {"model FLOPs": colours.BLUE, "hardware FLOPs": colours.ORANGE}
    used = {row["which"] for row in rows}
    colour = parts.coloured("which", {name: colour for name, colour in paint.items() if name in used})
    hover = (("length", _SWEPT[across]), ("which", "which"), ("text", "FLOPs"))
    line = {"mark": "line", "encoding": {"x": x, "y": y, "color": colour}}
    spec = parts.spec_of(rows, parts.HEIGHT, ("which",), transform=[unit.shown("flops", "shown")],
                         layer=[line, parts.points(x, y, colour, hover, size=30)])  # fmt: skip
    return (
        Figure(
            name="sweep",
            title="FLOPs over the length",
            spec=spec,
            words="Model and hardware FLOPs over the length that was swept, both axes logarithmic.",
        ),
    )


def _stored(books: PartialCount) -> tuple[Figure, ...]:
    rows: list[Row] = [{"dtype": parts.name_of(name), "bytes": each.bytes, "text": format_bytes(each.bytes),
             "exact": exact(each.bytes, "B")} for name, each in books.bytes.by_dtype.items() if each.bytes]  # fmt: skip
    if not rows:
        return ()
    spec = parts.bars(
        rows, label="dtype", value="bytes", unit=scales.sizes(row["bytes"] for row in rows), title="stored",
        text="text", hover=(("dtype", "dtype"), ("text", "stored"), ("exact", "exactly")), label_title="dtype",
    )  # fmt: skip
    return (Figure(name="stored", title="Weights by dtype", spec=spec,
                   words="A bar for the bytes of the weights of each dtype."),)  # fmt: skip


def compare_figures(result: Result) -> tuple[Figure, ...]:
    """Every counter against the right number."""
    found: Comparison = result.result
    rows: list[Row] = [_counter(each) for each in found.counters if each.ratio is not None]
    if not rows:
        return ()
    for row, label in zip(rows, parts.unique(row["label"] for row in rows), strict=True):
        row["label"] = label
    used = {row["which"] for row in rows}
    paint = parts.coloured("which", {name: colour for name, colour in (
        (_EXPLAINED, colours.BLUE), (_UNEXPLAINED, colours.ORANGE)) if name in used})  # fmt: skip
    spec = parts.bars(
        rows, label="label", value="ratio", unit=Unit("", 1), title="FLOPs over the right number", text="text",
        colour=paint, words=("which",),
        hover=(("name", "counter"), ("phase", "phase"), ("flops", "FLOPs"), ("difference", "off by"), ("why", "why")),
    )  # fmt: skip
    one = {"data": {"values": [{"one": 1}]}, "mark": {"type": "rule", "strokeDash": [5, 3], "strokeWidth": 2},
           "encoding": {"x": {"field": "one", "type": "quantitative"}}}  # fmt: skip
    spec["layer"].append(one)
    return (Figure(
        name="counters", title="Counters beside the right number", spec=spec,
        words="A bar for each counter's number over the right one, which a line marks; most counters' differences are "
        "explained to the last FLOP.",
    ),)  # fmt: skip


def _counter(each: Counter) -> Row:
    why = parts.name_of(each.explanation, 300) or "the same"
    return {
        "label": parts.name_of(f"{each.title} {each.version or ''}".rstrip()), "name": each.title, "ratio": each.ratio,
        "phase": each.phase, "text": f"{each.ratio:.4f}", "flops": exact(each.flops or 0), "why": why,
        "difference": f"{each.difference or 0:+,}", "which": _UNEXPLAINED if each.unexplained else _EXPLAINED,
    }  # fmt: skip


def _likeness(found: Likeness) -> tuple[Figure, ...]:
    if found.flops is None:
        return ()
    rows: list[Row] = [{"who": who, "flops": flops, "text": format_flops(flops, 5), "exact": exact(flops)}
            for who, flops in ((_COUNTED, found.flops), (_RIGHT, found.right))]  # fmt: skip
    spec = parts.bars(
        rows, label="who", value="flops", unit=scales.operations(row["flops"] for row in rows), title="FLOPs",
        text="text", words=("who",), hover=(("who", "number"), ("text", "FLOPs"), ("exact", "exactly")),
    )  # fmt: skip
    return (Figure(name="likeness", title="As it would be counted, beside the right number", spec=spec,
                   words="Two bars: what this counter would say, and the right number."),)  # fmt: skip


def causes_of(causes: Sequence[Cause]) -> tuple[Figure, ...]:
    """What adds to a number and what takes away."""
    if not causes:
        return ()
    rows: list[Row] = [{"cause": label, "flops": each.flops, "text": f"{each.flops:+,}", "places": exact(each.places),
             "example": parts.name_of(each.example)}
            for each, label in zip(causes, parts.unique(parts.name_of(each.cause) for each in causes), strict=True)
            ][: parts.MOST_BARS]  # fmt: skip
    spec = parts.bars(
        rows, label="cause", value="flops", unit=scales.operations(row["flops"] for row in rows),
        title="less or more than the right number", text="text", colour=colours.RED, words=("cause",),
        hover=(("cause", "why"), ("text", "FLOPs"), ("places", "places"), ("example", "for example")),
    )  # fmt: skip
    return (Figure(name="causes", title="Why it differs", spec=spec,
                   words="A bar for each cause: what it adds to the right number or takes away."),)  # fmt: skip
