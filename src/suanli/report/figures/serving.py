"""Figures of `infer`: latency against throughput, capacity, where a step and the first token go, cost and energy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from suanli.nouns.infer import Choice, Inference
from suanli.nouns.result import Result
from suanli.nouns.step import Entry
from suanli.report.common import share
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row, Spec
from suanli.report.infer_ways_pages import layout_words
from suanli.units import format_bytes, format_exact, format_seconds, format_usd

_COMMUNICATES = ("collectives", "transfer")
_THIS, _MORE, _MOST = "this load", "other loads", "the most at once"


def infer_figures(result: Result) -> tuple[Figure, ...]:
    """The trade-off first, then capacity, the parts, what it costs."""
    found: Inference = result.result
    return (
        *_front(found),
        *_kinds(found),
        *_loads(found),
        *_first_token(found),
        *_percentiles(found),
        *_entries("decode", "One decode step", found.decode),
        *_entries("prefill", "One prompt's prefill", found.prefill),
        *_memory(found),
        *_capacity(found),
        *_cost(found),
        *_neighbours(found),
    )


def _front(found: Inference) -> tuple[Figure, ...]:
    """What a search found: nothing else is faster for a user and for all users together."""
    if not found.front:
        return ()
    chosen = {id(each) for each in found.choices[:1]}
    every = [*found.front, *(each for each in found.choices if each not in found.front)][: parts.MOST_MARKS]
    rows: list[Row] = [_choice(each) | {"first": id(each) in chosen} for each in every]
    return (_tradeoff(rows, "gpu", list(dict.fromkeys(row["gpu"] for row in rows)), "GPU", Figure(
        name="front", title="Latency against throughput", spec={},
        words="Layouts as points, tokens a second that one user sees across and tokens a second of a GPU up, coloured "
        "by GPU: none of these is beaten in both.",
    )),)  # fmt: skip


def _choice(each: Choice) -> Row:
    usd = each.usd_per_million_tokens
    return {
        "gpu": each.gpu, "user": 1 / each.tpot_s, "per_gpu": each.tokens_per_s_per_gpu,
        "layout": layout_words(each.layout), "users": f"{each.concurrency:,.0f}", "token": format_seconds(each.tpot_s),
        "first_token": format_seconds(each.ttft_s), "rate": f"{each.tokens_per_s_per_gpu:,.0f} tokens/s",
        "gpus": format_exact(each.gpus), "cost": "" if usd is None else format_usd(usd),
    }  # fmt: skip


def _tradeoff(rows: list[Row], by: str, names: Sequence[str], title: str, empty: Figure) -> Figure:
    x = parts.measure("user", "one user [tokens/s]", scale={"nice": True})
    y = parts.measure("per_gpu", "a GPU [tokens/s]", scale={"nice": True}, axis={"format": "~s"})
    colour = parts.coloured(by, list(names), title)
    hover = (
        ("gpu", "GPU"),
        ("layout", "replica"),
        ("gpus", "GPUs"),
        ("users", "users of a replica"),
        ("first_token", "first token"),
        ("token", "further tokens"),
        ("rate", "a GPU"),
        ("cost", "1M tokens"),
    )
    spec = parts.spec_of(rows, parts.HEIGHT, layer=[parts.points(x, y, colour, hover)])
    return Figure(name=empty.name, title=empty.title, words=empty.words, spec=spec)


def _kinds(found: Inference) -> tuple[Figure, ...]:
    """Choices by what their tokens cost, or by what a GPU gives where no price is known."""
    shown = found.choices[: parts.MOST_BARS]
    if not shown:
        return ()
    priced = all(each.usd_per_million_tokens is not None for each in shown)
    rows: list[Row] = [_choice(each) | {"value": each.usd_per_million_tokens if priced else each.tokens_per_s_per_gpu}
            for each in shown]  # fmt: skip
    labels = parts.unique(f"{each.gpu}: {each.gpus:,} × {layout_words(each.layout)}" for each in shown)
    for row, label in zip(rows, labels, strict=True):
        row |= {"label": label, "text": row["cost"] if priced else row["rate"]}
    kinds = list(dict.fromkeys(row["gpu"] for row in rows))
    spec = parts.bars(
        rows, label="label", value="value", unit=scales.Unit("$" if priced else "tokens/s", 1),
        title="1M output tokens" if priced else "a GPU", text="text", colour=parts.coloured("gpu", kinds, "GPU"),
        hover=(("gpu", "GPU"), ("layout", "replica"), ("gpus", "GPUs"), ("users", "users of a replica"),
               ("first_token", "first token"), ("token", "further tokens"), ("rate", "a GPU"), ("cost", "1M tokens")),
    )  # fmt: skip
    return (Figure(name="choices", title="Layouts that meet the targets, cheapest first", spec=spec,
                   words="A bar for each layout that meets the targets, coloured by GPU."),)  # fmt: skip


def _loads(found: Inference) -> tuple[Figure, ...]:
    """This layout from one user to as many as its caches hold."""
    if not found.curve:
        return ()
    gpus = found.gpus / found.replicas
    every = [(each, _MORE) for each in found.curve] + [(found.load, _THIS)]
    rows: list[Row] = [
        {"user": 1 / each.tpot_s, "per_gpu": each.tokens_per_s / gpus, "which": which, "along": which == _MORE,
         "users": f"{each.concurrency:,.1f}",
         "token": format_seconds(each.tpot_s), "rate": f"{each.tokens_per_s / gpus:,.0f} tokens/s",
         "first_token": "" if each.ttft_s is None else format_seconds(each.ttft_s)}
        for each, which in every
    ]  # fmt: skip
    x = parts.measure("user", "one user [tokens/s]", scale={"nice": True})
    y = parts.measure("per_gpu", "a GPU [tokens/s]", scale={"nice": True}, axis={"format": "~s"})
    colour = parts.coloured("which", {_THIS: colours.RED, _MORE: colours.BLUE})
    hover = (("users", "users of a replica"), ("first_token", "first token"), ("token", "further tokens"),
             ("rate", "a GPU"))  # fmt: skip
    line: Spec = {
        "transform": [{"filter": "datum.along"}],
        "mark": {"type": "line", "opacity": 0.5},
        "encoding": {"x": x, "y": y, "color": {"value": colours.BLUE},
                     "order": {"field": "user", "type": "quantitative"}},
    }  # fmt: skip
    spec = parts.spec_of(rows, parts.HEIGHT, ("which",), layer=[line, parts.points(x, y, colour, hover)])
    return (Figure(
        name="loads", title="Latency against throughput of this layout", spec=spec,
        words="Loads as points, tokens a second that one user sees across and tokens a second of a GPU up, from one "
        "user to as many as the caches hold; this load is marked.",
    ),)  # fmt: skip


def _first_token(found: Inference) -> tuple[Figure, ...]:
    """Queue, schedule, prefill."""
    load = found.load
    if load.queue_s is None or load.ttft_s is None:
        return ()
    pieces = [("queue", load.queue_s), ("schedule", load.schedule_s), ("prefill", load.prefill_s)]
    rest = load.ttft_s - sum(value for _, value in pieces)
    if rest > parts.ROUNDING * load.ttft_s:
        pieces.append(("later pieces", rest))
    return (_account("first_token", "To the first token", pieces, "first token",
                     "Bars for queue, schedule and prefill, each where the one before ended.",
                     {"queue": colours.GREY, "schedule": colours.ORANGE, "prefill": colours.BLUE}),)  # fmt: skip


def _entries(name: str, title: str, entries: Sequence[Entry]) -> tuple[Figure, ...]:
    pieces = [(each.entry, each.seconds) for each in entries if each.seconds]
    if not pieces:
        return ()
    paint = {name: colours.RED if name in _COMMUNICATES else colours.BLUE for name, _ in pieces}
    return (_account(name, title, pieces, "total", "The entries of it as bars, each where the one before ended.",
                     paint),)  # fmt: skip


def _account(
    name: str, title: str, pieces: Sequence[tuple[str, float]], total: str, words: str, paint: dict[str, str]
) -> Figure:
    pieces = [(part, value) for part, value in pieces if value]
    whole = sum(value for _, value in pieces)
    rows: list[Row] = [*parts.running(pieces), {"part": total, "value": whole, "begin": 0.0, "end": whole}]
    for row in rows:
        row["text"] = f"{format_seconds(row['value'])}, {share(row['value'], whole)}"
    shades = {row["part"]: paint.get(row["part"], colours.SKY) for row in rows} | {total: colours.GREEN}
    spec = parts.waterfall(rows, label="part", unit=scales.seconds([whole]), title="time", colours=shades,
                           words=("part",), hover=(("part", "entry"), ("text", "time")))  # fmt: skip
    return Figure(name=name, title=title, words=words, spec=spec)


def _percentiles(found: Inference) -> tuple[Figure, ...]:
    """Times that half, nine of ten … of simulated requests stay below."""
    if found.percentiles is None:
        return ()
    each = found.percentiles
    columns = {"first token": each.ttft_s, "further tokens": each.tpot_s, "whole answer": each.total_s}
    rows: list[Row] = [{"percent": f"{percent} %", "what": what, "seconds": seconds, "text": format_seconds(seconds)}
            for what, column in columns.items() for percent, seconds in column.items()]  # fmt: skip
    order = list(dict.fromkeys(row["percent"] for row in rows))
    y = parts.measure("seconds", "time [s]", log=True, zero=False, axis=parts.log_axis(row["seconds"] for row in rows))
    x = {"field": "percent", "type": "nominal", "sort": order, "title": "of requests are below",
         "axis": {"labelAngle": 0}, "scale": {"type": "point", "padding": 0.4}}  # fmt: skip
    colour = parts.coloured("what", {"first token": colours.RED, "further tokens": colours.BLUE,
                                     "whole answer": colours.GREEN})  # fmt: skip
    hover = (("what", "time"), ("percent", "of requests below"), ("text", "time"))
    line = {"mark": "line", "encoding": {"x": x, "y": y, "color": colour}}
    spec = parts.spec_of(rows, parts.HEIGHT - 60, ("what",), layer=[line, parts.points(x, y, colour, hover)])
    return (
        Figure(
            name="percentiles",
            title="Percentiles",
            spec=spec,
            words="Times of first tokens, further tokens and whole answers by percentile, logarithmic.",
        ),
    )


def _memory(found: Inference) -> tuple[Figure, ...]:
    """The fullest GPU: what is taken, what caches have, what the engine leaves."""
    memory, cache = found.memory, found.kv_cache
    used = min(memory.cache, cache.paged_bytes_per_rank * found.load.concurrency / found.layout.dp_attention)
    pieces = (
        ("weights", memory.weights),
        ("activations", memory.activations),
        ("caches in use", used),
        ("room for caches", memory.cache - used),
        ("left to the system", memory.total - memory.usable),
    )
    rows: list[Row] = [{"gpu": found.gpu, "term": name, "bytes": size, "text": format_bytes(size),
             "share": share(size, memory.total)} for name, size in pieces if size > 0]  # fmt: skip
    paint = {"weights": colours.BLUE, "activations": colours.RED, "caches in use": colours.PURPLE,
             "room for caches": colours.GREEN, "left to the system": colours.GREY}  # fmt: skip
    kept = {name: colour for name, colour in paint.items() if any(row["term"] == name for row in rows)}
    spec = parts.stack(
        rows, label="gpu", part="term", value="bytes", unit=scales.sizes([memory.total]), title="memory of a GPU",
        colours=kept, words=("term",), hover=(("term", "term"), ("text", "memory"), ("share", "of the GPU")),
        limit={"value": memory.total, "text": format_bytes(memory.total)},
    )  # fmt: skip
    return (
        Figure(
            name="memory",
            title="Memory of the fullest GPU",
            spec=spec,
            words="One bar of a GPU's memory: weights, activations, caches in use and the room they have.",
        ),
    )


def _capacity(found: Inference) -> tuple[Figure, ...]:
    """KV memory of a GPU over the sequences at once, up to what fits."""
    memory, cache = found.memory, found.kv_cache
    a_sequence, most = cache.paged_bytes_per_rank / found.layout.dp_attention, memory.max_concurrency
    if not a_sequence or not most:
        return ()
    at = sorted({0.0, min(found.load.concurrency, float(most)), float(most)})
    rows: list[Row] = [{"sequences": users, "bytes": a_sequence * users, "text": format_bytes(a_sequence * users),
             "users": f"{users:,.4g}", "which": _MOST if users == most else _THIS} for users in at]  # fmt: skip
    unit = scales.sizes([memory.cache])
    shown = [unit.shown("bytes", "shown")]
    x = parts.measure("sequences", "sequences at once on a replica", scale={"nice": True}, axis={"format": ",d"})
    y = parts.measure("shown", unit.of("KV memory of a GPU"), scale={"nice": True})
    colour = parts.coloured("which", {_THIS: colours.RED, _MOST: colours.PURPLE})
    line = {"mark": "line", "encoding": {"x": x, "y": y, "color": {"value": colours.BLUE}}}
    dots = {"transform": [{"filter": "datum.sequences > 0"}]} | parts.points(
        x, y, colour, (("users", "sequences at once"), ("text", "KV memory"))
    )
    limit = {"data": {"values": [{"limit": memory.cache, "text": format_bytes(memory.cache)}]},
             "transform": [unit.shown("limit", "shown")],
             "mark": {"type": "rule", "strokeDash": [6, 4]},
             "encoding": {"y": {"field": "shown", "type": "quantitative"},
                          "tooltip": parts.tips(("text", "room for caches"))}}  # fmt: skip
    spec = parts.spec_of(rows, parts.HEIGHT - 60, ("which",), transform=shown, layer=[line, dots, limit])
    return (Figure(name="capacity", title="Capacity: KV memory against concurrency", spec=spec,
                   words="The KV memory of a GPU over the sequences served at once, with the room that caches have as "
                   "a line."),)  # fmt: skip


def _cost(found: Inference) -> tuple[Figure, ...]:
    cost = found.cost
    if cost is None:
        return ()
    known = (("all on output", cost.usd_per_million_output_only), ("input", cost.usd_per_million_input),
             ("output", cost.usd_per_million_output), ("blended", cost.usd_per_million_blended))  # fmt: skip
    energy = found.energy
    joules = None if energy is None else energy.joules_per_output_token
    rows: list[Row] = [
        {"tokens": name, "usd": usd, "text": format_usd(usd), "energy": "" if joules is None else f"{joules:,.3g} J"}
        for name, usd in known
        if usd is not None
    ]
    spec = parts.bars(
        rows, label="tokens", value="usd", unit=scales.Unit("$", 1), title="1M tokens", text="text", words=("tokens",),
        colour=colours.GREEN,
        hover=(("tokens", "1M tokens"), ("text", "cost"), ("energy", "energy of an output token")),
    )  # fmt: skip
    return (
        Figure(
            name="cost",
            title="Cost of a million tokens",
            spec=spec,
            words="Bars for a million tokens: all money on output, and split over input and output.",
        ),
    )


def _neighbours(found: Inference) -> tuple[Figure, ...]:
    """Predicted over measured at the nearest points."""
    if not found.neighbours:
        return ()
    shown = found.neighbours[: parts.MOST_BARS]
    labels = parts.unique(parts.name_of(f"{each.model}, {each.gpu}, {each.isl:,.0f}/{each.osl:,.0f}") for each in shown)
    rows: list[Row] = []
    for each, label in zip(shown, labels, strict=True):
        write: Callable[[float], str] = _seconds if each.quantity.startswith("time") else _tokens
        rows.append({"label": label, "ratio": each.ratio, "text": f"{each.ratio:.2f}", "measured": write(each.measured),
                     "ours": write(each.predicted), "quantity": each.quantity,
                     "distance": f"{each.distance:.2f}"})  # fmt: skip
    y = parts.band("label", labels)
    x = parts.measure("ratio", "predicted over measured [×]", zero=False, scale={"nice": True, "padding": 16})
    one = {"data": {"values": [{"ratio": 1}]}, "mark": {"type": "rule", "strokeDash": [5, 3]},
           "encoding": {"x": {"field": "ratio", "type": "quantitative"}}}  # fmt: skip
    dots = {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1, "color": colours.BLUE},
            "encoding": {"y": y, "x": x, "tooltip": parts.tips(
                ("label", "point"), ("quantity", "quantity"), ("measured", "measured"), ("ours", "ours"),
                ("text", "ratio"), ("distance", "distance"))}}  # fmt: skip
    spec = parts.spec_of(rows, parts.Step(parts.BAR_STEP), ("quantity",), layer=[one, dots])
    return (
        Figure(
            name="neighbours",
            title="Nearest measured points",
            spec=spec,
            words="A point for each of the nearest measured points: what the preset predicts over it.",
        ),
    )


def _seconds(value: float) -> str:
    return format_seconds(value, 3)


def _tokens(value: float) -> str:
    return f"{value:,.0f} tokens/s"
