"""The report of `count`."""

from __future__ import annotations

from collections.abc import Iterator

from suanli.nouns.comparison import Likeness
from suanli.nouns.counts import Count
from suanli.nouns.partial import PartialCount
from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN, closing, exact, off_by, plural, share
from suanli.report.compare_pages import likeness_document
from suanli.report.document import Document, Facts, Lines, Table
from suanli.report.partial_pages import partial_document
from suanli.units import format_bytes, format_count, format_flops

_MEMORY = (("weights", "weights"), ("gradients", "gradients"), ("optimizer states", "optimizer"),
           ("activations", "activations"), ("KV cache", "kv_cache"))  # fmt: skip
_POLICIES = {
    "none_unfused": "none, scores kept (unfused)",
    "none": "none (fused attention)",
    "selective": "selective (scores again)",
    "full": "full (layers again)",
}


def count_document(result: Result) -> Document:
    """Parameters, FLOPs, memory, rows and what was left out."""
    if isinstance(result.result, PartialCount):
        return partial_document(result)
    if isinstance(result.result, Likeness):
        return likeness_document(result)
    books: Count = result.result
    units = books.unit if books.units == 1 else plural(books.unit)
    bound = ", LOWER BOUND" if books.lower_bound else ""
    return Document(
        f"{books.title} — {books.units:,} {units}, convention {result.convention}{bound}",
        (
            _parameters(books),
            _flops(books),
            _by_policy(books),
            _ideal(books),
            _memory(books),
            _activations(books),
            _rows(books),
            *_symbolic(books),
            *_sweep(books),
            _left_out(result),
            *closing(result),
        ),
    )


def _parameters(books: Count) -> Facts:
    params = books.params
    rows = [
        ("total", exact(params.total), format_count(params.total)),
        ("active", exact(params.active), "all" if params.active == params.total else format_count(params.active)),
        ("embedding", exact(params.embedding), share(params.embedding, params.total)),
        ("trainable", exact(params.trainable), share(params.trainable, params.total)),
    ]
    if params.buffers:
        rows.append(("buffers", exact(params.buffers), "saved in checkpoints, no parameters"))
    if books.formula_params is not None:
        rows.append(
            ("by formula", exact(books.formula_params), "12Lh²(1 + 13/12h + (V+s)/12Lh), arXiv:2104.04473 eq. 2")
        )
    return Facts("Parameters", tuple(rows))


def _flops(books: Count) -> Facts:
    flops, train = books.flops, books.flops.backward > 0
    rows = [("forward", exact(flops.forward), format_flops(flops.forward))]
    if train:
        rows.append(("backward", exact(flops.backward), format_flops(flops.backward)))
        if flops.recompute:
            rows.append(("recompute", exact(flops.recompute), format_flops(flops.recompute)))
    rows += [
        ("model", exact(flops.model), format_flops(flops.model)),
        ("hardware", exact(flops.hardware), format_flops(flops.hardware)),
        (f"model per {books.unit}", exact(books.flops_per_token), format_flops(books.flops_per_token)),
        ("MACs", exact(books.macs), "model FLOPs / 2"),
    ]
    return Facts("FLOPs (lower bound)" if books.lower_bound else "FLOPs", tuple(rows))


def _by_policy(books: Count) -> Table:
    policies = books.flops.hardware_by_recompute or {}
    rows = tuple(
        (policy, exact(flops), format_flops(flops), f"{flops / books.flops.model:.4f}")
        for policy, flops in policies.items()
    )
    return Table("Hardware FLOPs by recompute policy", ("policy", "FLOPs", "", "hardware/model"), rows)


def _ideal(books: Count) -> Facts:
    names = {"2n": "2N (inference)", "6n": "6N (training)", "8n": "8N (full recompute)"}
    rows = tuple(
        (names[key], exact(flops), f"{format_flops(flops)}  {off_by(books.ideal_error[key])}".rstrip())
        for key, flops in books.ideal.items()
    )
    if books.params.active != books.params.total and books.ideal_params == books.params.active:
        times = books.params.total / books.params.active
        rows = (*rows, ("with all experts", f"{times:.3f} ×", "what 6 × all parameters would say of a mixture"))
    return Facts(f"Ideal forms, N = {exact(books.ideal_params)}", rows)


def _memory(books: Count) -> Facts:
    rows = []
    for label, name in _MEMORY:
        value = getattr(books.bytes, name)
        reason = books.bytes.reasons.get(name, "")
        rows.append((label, NOT_GIVEN, reason) if value is None else (label, exact(value, "B"), format_bytes(value)))
    return Facts("Memory of the whole model, in one piece", tuple(rows))


def _activations(books: Count) -> Table:
    kept = books.bytes.activations_by_recompute or {}
    rows = tuple((_POLICIES[name], exact(value, "B"), format_bytes(value)) for name, value in kept.items())
    return Table("Activations kept, by recompute policy", ("policy", "bytes", ""), rows)


def _rows(books: Count) -> Table:
    total = books.flops.hardware
    rows = tuple(
        (
            row.name,
            exact(row.params),
            exact(row.hardware_flops),
            share(row.hardware_flops, total),
            format_bytes(row.read_bytes + row.write_bytes),
        )
        for row in books.rows
        if row.hardware_flops or row.params
    )
    closing_row = ("total", exact(books.ledger.params), exact(total), share(total, total), "")
    return Table(f"By {books.by}", (books.by, "parameters", "hardware FLOPs", "", "bytes moved"), (*rows, closing_row))


def _symbolic(books: Count) -> Iterator[Facts]:
    if books.polynomials is not None:
        rows = tuple(
            (quantity.quantity.replace("_", " ") if not place else "", piece.polynomial, _where(piece.where))
            for quantity in books.polynomials
            for place, piece in enumerate(quantity.pieces)
        )
        title = "As polynomials: batch B, sequence length S" + (", keys K" if _has_keys(books) else "")
        yield Facts(title, rows, right=False)


def _where(where: str) -> str:
    return "" if where == "everywhere" else where


def _has_keys(books: Count) -> bool:
    return any("K" in piece.polynomial for each in books.polynomials or () for piece in each.pieces)


def _sweep(books: Count) -> Iterator[Table]:
    if books.sweep is None:
        return
    keys = books.sweep[0].kv_len is not None
    columns = ("batch", "seq", *(("keys",) if keys else ()), "model FLOPs", "hardware FLOPs", "KV cache", "activations")
    rows = tuple(
        (
            exact(point.batch), exact(point.seq), *((exact(point.kv_len),) if point.kv_len is not None else ()),
            exact(point.model_flops), exact(point.hardware_flops), _held(point.kv_cache), _held(point.activations),
        )
        for point in books.sweep
    )  # fmt: skip
    yield Table(f"Sweep, {len(rows):,} {plural('point') if len(rows) > 1 else 'point'}", columns, rows)


def _held(value: int | None) -> str:
    return NOT_GIVEN if value is None else format_bytes(value)


def _left_out(result: Result) -> Lines:
    lines = tuple(
        f"{item.what}: {item.operations:,} calls on {'; '.join(item.shapes)} ({item.why})"
        if item.missing
        else f"{item.what}: {item.operations:,} ({item.why})"
        for item in result.uncounted
    )
    return Lines("Not counted", lines)
