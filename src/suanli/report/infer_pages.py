"""The report of `infer`."""

from __future__ import annotations

from collections.abc import Sequence

from suanli.nouns.infer import Choice, Inference
from suanli.nouns.result import Result
from suanli.nouns.step import Entry
from suanli.report.common import NOT_GIVEN, closing, exact, share
from suanli.report.document import Block, Document, Facts, Table
from suanli.report.infer_ways_pages import calibration_facts, layout_words, neighbours_table, way_blocks
from suanli.units import format_bytes, format_percent, format_seconds, format_usd

FRONT_SHOWN = 10


def infer_document(result: Result) -> Document:
    """Times beside the ideal, memory, where a step goes, capacity, money and energy, choices."""
    found: Inference = result.result
    first = NOT_GIVEN if found.ttft_s is None else format_seconds(found.ttft_s)
    where = f"{found.gpus:,} × {found.gpu} ({layout_words(found.layout)}), {found.preset}"
    headline = (
        f"{found.model} on {where}: first token {first}, then {format_seconds(found.tpot_s)} a token, "
        f"{found.tokens_per_second:,.0f} tokens/s"
    )
    blocks: tuple[Block, ...] = (
        _times(found),
        _entries("One decode step" if found.speculation is None else "One step, drafts and their check", found.decode),
        _entries("One prompt's prefill", found.prefill),
        *way_blocks(found),
        _percentiles(found),
        _memory(found),
        _cache(found),
        _pages(found),
        _money(found),
        neighbours_table(found),
        calibration_facts(found),
        _choices(
            "The same on each GPU, cheapest tokens first"
            if not found.front
            else "Cheapest layouts that meet the targets",
            found.choices,
        ),
        _choices("Latency against throughput: none of these is beaten in both", _thinned(found.front)),
        *closing(result),
    )
    return Document(headline, blocks)


def _time(seconds: float | None) -> str:
    return NOT_GIVEN if seconds is None else format_seconds(seconds)


def _times(found: Inference) -> Facts:
    load, ideal = found.load, found.ideal
    token = "at the data sheet's rates " + format_seconds(ideal.tpot_s)
    if found.tpot_interval_s is not None:
        low, high = found.tpot_interval_s
        token = f"80 %: {format_seconds(low)} to {format_seconds(high)}; {token}"
    wait = "grows without end: more requests come than are finished" if load.queue_s is None else _waits(found)
    most = found.saturation
    each = "sequences" if found.replicas == 1 else f"sequences on each of {found.replicas:,} replicas"
    rows = (
        ("first token", _time(found.ttft_s), wait),
        ("further tokens", format_seconds(found.tpot_s), token),
        ("one user", f"{1 / found.tpot_s:,.1f}", "tokens/s"),
        ("throughput", f"{found.tokens_per_second:,.0f}", f"output tokens/s; ideal {ideal.tokens_per_second:,.0f}"),
        ("decoded together", f"{load.concurrency:,.1f}", each),
        ("most at once", exact(found.max_concurrency), "sequences of prompt and answer that the caches hold"),
        ("saturation", f"{most.requests_per_s * found.replicas:,.3g}",
         f"requests/s, {most.tokens_per_s * found.replicas:,.0f} tokens/s; limit: {most.limit}"),
        ("communication", format_percent(found.communication_fraction, 1), "of a decode step"),
    )  # fmt: skip
    return Facts("Times", rows)


def _waits(found: Inference) -> str:
    load = found.load
    return f"queue {_time(load.queue_s)} + schedule {_time(load.schedule_s)} + prefill {_time(load.prefill_s)}"


def _entries(title: str, entries: Sequence[Entry]) -> Facts:
    total = sum(each.seconds for each in entries)
    rows = tuple((each.entry, format_seconds(each.seconds), share(each.seconds, total)) for each in entries)
    return Facts(title, (*rows, ("total", format_seconds(total), "")))


def _percentiles(found: Inference) -> Table:
    if found.percentiles is None:
        return Table("Percentiles", (), ())
    each = found.percentiles
    rows = tuple(
        (f"{percent} %", *(format_seconds(column[percent]) for column in (each.ttft_s, each.tpot_s, each.total_s)))
        for percent in each.ttft_s
    )
    return Table(f"Percentiles: {each.arrivals}", ("", "first token", "further tokens", "whole answer"), rows)


def _memory(found: Inference) -> Facts:
    memory, weights = found.memory, found.weights
    parts = ", ".join(f"{name} {format_bytes(size)}" for name, size in weights.parts.items() if size)
    rows = (
        ("weights", format_bytes(weights.total), f"{weights.scheme}: {parts}"),
        ("… fullest GPU", format_bytes(memory.weights), f"of {format_bytes(memory.total)}"),
        ("activations", format_bytes(memory.activations), "with the engine's reserve"),
        ("left for caches", format_bytes(memory.cache), f"{exact(memory.cache_tokens)} positions of a replica"),
    )
    return Facts("Memory", rows)


def _cache(found: Inference) -> Table:
    cache = found.kv_cache
    rows = tuple(
        (
            line.kind, exact(line.layers), format_bytes(line.bytes_per_token), format_bytes(line.bytes_constant),
            NOT_GIVEN if line.window is None else exact(line.window), format_bytes(line.bytes_per_token_per_rank),
        )
        for line in cache.lines
    )  # fmt: skip
    sequence = found.kv_bytes_per_sequence
    title = (
        f"KV cache in {cache.dtype}: {exact(cache.bytes_per_token)} B a token; a sequence of {exact(cache.tokens)}: "
        f"{format_bytes(sequence.ideal)}, in {cache.engine}'s pages {format_bytes(sequence.paged)}"
    )
    return Table(title, ("kind", "layers", "a token", "fixed", "window", "a token, one GPU"), rows)


def _pages(found: Inference) -> Facts:
    """One sequence exactly and as each engine keeps it; of latents what they save."""
    rows = [("nothing rounded", format_bytes(found.kv_bytes_per_sequence.ideal), "")]
    rows += [(name, format_bytes(size), "") for name, size in found.kv_paged_by_engine.items()]
    if found.kv_expanded_bytes_per_token is not None:
        whole = found.kv_expanded_bytes_per_token
        rows.append(("keys and values", f"{exact(whole)} B", "a token, where an engine keeps no latents"))
    return Facts("One sequence in the pages of", tuple(rows))


def _money(found: Inference) -> Facts:
    rows: list[tuple[str, str, str]] = []
    if found.cost is not None:
        cost = found.cost
        rows.append(("1M output tokens", format_usd(cost.usd_per_million_output_only), f"all of it; {cost.price_said}"))
        for name, value in (("… input", cost.usd_per_million_input), ("… output", cost.usd_per_million_output),
                            ("… blended", cost.usd_per_million_blended)):  # fmt: skip
            if value is not None:
                rows.append((name, format_usd(value), "" if name != "… input" else "prefill's part of the time"))
        hour = format_usd(cost.usd_per_hour * found.gpus / cost.gpus)
        rows.append(("an hour", hour, f"{format_percent(cost.utilisation, 0)} of it with this load"))
        if cost.margin is not None:
            rows.append(("margin", format_percent(cost.margin, 1), "of the selling price"))
    if found.energy is not None and found.energy.joules_per_output_token is not None:
        energy = found.energy
        rows.append(
            ("an output token", f"{energy.joules_per_output_token:,.3g} J", f"GPUs, PUE {energy.pue:g}, at this load")
        )
        if energy.kwh_per_day is not None:
            rows.append(("a day", f"{energy.kwh_per_day * found.replicas:,.1f} kWh", "at this load"))
        if energy.co2_kg_per_day is not None:
            rows.append(("… carbon", f"{energy.co2_kg_per_day * found.replicas:,.1f} kg", "CO₂"))
    said = {"usd_per_million_tokens": "1M output tokens", "joules_per_token": "an output token"}
    rows += [(said.get(name, name), NOT_GIVEN, why) for name, why in found.reasons.items()]
    return Facts("Cost and energy", tuple(rows))


def _thinned(front: Sequence[Choice]) -> Sequence[Choice]:
    """A few of a long front, its ends among them."""
    if len(front) <= FRONT_SHOWN:
        return front
    steps = [round(at * (len(front) - 1) / (FRONT_SHOWN - 1)) for at in range(FRONT_SHOWN)]
    return [front[at] for at in steps]


def _choices(title: str, choices: Sequence[Choice]) -> Table:
    rows = tuple(
        (
            each.gpu, layout_words(each.layout), exact(each.gpus), f"{each.concurrency:,.0f}",
            format_seconds(each.ttft_s), format_seconds(each.tpot_s), f"{each.tokens_per_s_per_gpu:,.0f}",
            NOT_GIVEN if each.usd_per_million_tokens is None else format_usd(each.usd_per_million_tokens),
        )
        for each in choices
    )  # fmt: skip
    columns = ("GPU", "replica", "GPUs", "users", "first", "token", "tokens/s a GPU", "1M tokens")
    return Table(title, columns, rows, (False, False, True, True, True, True, True, True))
