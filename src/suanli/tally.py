"""`count` for what is no tree of layers: a program's operations, and the tensors of a weight file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from suanli.count import count, grouped_rows
from suanli.nouns.convention import Convention
from suanli.nouns.counts import Count
from suanli.nouns.graph import Graph, Stored
from suanli.nouns.ledger import RECOMPUTE_PASS, Ledger
from suanli.nouns.partial import PartialBytes, PartialCount, PartialFlops, PartialParams, PartialRow
from suanli.nouns.tensors import Tensor, TensorTable
from suanli.nouns.workload import Workload
from suanli.units import FLOPS_PER_MAC

NO_IDEAL = {"2n": None, "6n": None, "8n": None}
CONVENTION = "full"  # a program multiplies every pair that it does not leave out itself


def count_graph(graph: Graph, by: str) -> PartialCount:
    """The books of a program. Raises UnknownNameError for a grouping that is none."""
    ledger = Ledger(graph.rows, CONVENTION)
    model, hardware = ledger.model_flops, ledger.hardware_flops
    again = ledger.flops(RECOMPUTE_PASS, "hardware_flops")
    reasons = {"units": "a program has fixed shapes and no tokens", "backward": "a program is one pass as it stands"}
    if graph.params is None:
        reasons["params"] = "a function does not say which of its arguments are parameters"
    weights = sum(stored.bytes for stored in graph.stored.values()) if graph.stored else None
    return PartialCount(
        model=graph.name,
        title=f"{graph.name} ({graph.format})",
        unit="pass",
        params=PartialParams(total=graph.params),
        flops=PartialFlops(forward=hardware - again, recompute=again, model=model, hardware=hardware),
        macs=model // FLOPS_PER_MAC,
        ideal=NO_IDEAL,
        bytes=PartialBytes(weights=weights, by_dtype=graph.stored, reasons=_NO_TRAINING),
        by=by,
        rows=tuple(
            PartialRow(
                name=row.name, kind=", ".join(row.formulas), times=row.times, params=row.params or None,
                model_flops=row.model_flops, hardware_flops=row.hardware_flops, read_bytes=row.read_bytes,
                write_bytes=row.write_bytes,
            )
            for row in grouped_rows(ledger, by)
        ),
        lower_bound=bool(graph.missing),
        without_formula=graph.missing,
        reasons=reasons,
    )  # fmt: skip


_NO_TRAINING = dict.fromkeys(
    ("gradients", "optimizer", "activations", "kv_cache"), "a program or a weight file does not say what is kept"
)


def count_table(table: TensorTable, workload: Workload, convention: Convention) -> PartialCount:
    """The books of a weight file: parameters and bytes as stored, FLOPs where its metadata describe the model."""
    books = None if table.arch is None else count(table.arch, workload, convention)
    stored = _by_dtype(table.tensors)
    return PartialCount(
        model=table.name,
        title=f"{table.name} ({table.format}, {len(table.tensors):,} tensors)",
        unit="token",
        units=None if books is None else books.units,
        params=_params(table, books),
        flops=PartialFlops() if books is None else _flops(books),
        flops_per_token=None if books is None else books.flops_per_token,
        macs=None if books is None else books.macs,
        ideal=NO_IDEAL if books is None else books.ideal,
        bytes=_bytes(table, books, stored),
        by="tensor",
        rows=tensor_rows(table.tensors),
        lower_bound=False,
        reasons={} if books is not None else {"flops": table.arch_missing},
    )


def _params(table: TensorTable, books: Count | None) -> PartialParams:
    if books is None:
        return PartialParams(total=table.elements)
    found = books.params
    return PartialParams(
        total=found.total, active=found.active, embedding=found.embedding, trainable=found.trainable,
        buffers=table.elements - found.total,
    )  # fmt: skip


def _flops(books: Count) -> PartialFlops:
    flops = books.flops
    return PartialFlops(
        forward=flops.forward, backward=flops.backward, recompute=flops.recompute, model=flops.model,
        hardware=flops.hardware,
    )  # fmt: skip


def _bytes(table: TensorTable, books: Count | None, stored: dict[str, Stored]) -> PartialBytes:
    if books is None:
        return PartialBytes(weights=table.nbytes, by_dtype=stored, reasons=_NO_TRAINING)
    memory = books.bytes
    return PartialBytes(
        weights=table.nbytes, by_dtype=stored, gradients=memory.gradients, optimizer=memory.optimizer,
        activations=memory.activations, kv_cache=memory.kv_cache, reasons=memory.reasons,
    )  # fmt: skip


def _by_dtype(tensors: Iterable[Tensor]) -> dict[str, Stored]:
    found: dict[str, tuple[int, int]] = {}
    for tensor in tensors:
        elements, size = found.get(tensor.dtype, (0, 0))
        found[tensor.dtype] = (elements + tensor.elements, size + tensor.nbytes)
    ordered = sorted(found.items(), key=lambda item: -item[1][1])
    return {dtype: Stored(elements=elements, bytes=size) for dtype, (elements, size) in ordered}


_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


def tensor_rows(tensors: Iterable[Tensor]) -> tuple[PartialRow, ...]:
    """Tensors that differ only in numbers of their names, added up: `layers.*.mlp.up.weight`."""
    groups: dict[tuple[str, str, str], list[Tensor]] = {}
    for tensor in tensors:
        shape = "×".join(map(str, tensor.shape)) or "scalar"
        groups.setdefault((_NUMBER.sub("*", tensor.name), tensor.dtype, shape), []).append(tensor)
    return tuple(
        PartialRow(
            name=name, kind=dtype, shape=shape, times=len(group), params=sum(tensor.elements for tensor in group),
            stored_bytes=sum(tensor.nbytes for tensor in group),
        )
        for (name, dtype, shape), group in groups.items()
    )  # fmt: skip


def integer_note(table: TensorTable) -> tuple[str, ...]:
    """A sentence where elements are integers, which may be indices or packed weights."""
    elements = sum(tensor.elements for tensor in table.tensors if tensor.integer)
    if not elements:
        return ()
    return (f"{elements:,} elements are integers: packed weights hold several parameters each, indices none",)
