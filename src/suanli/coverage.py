"""Formula against trace for the model types of transformers: both count a small odd config and the default one.

A trace sees every pair, so formulas count under convention `full`. Scans are counted apart: formulas take them as
recurrences, and transformers without kernels runs them in its own way, which has a formula too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.coverage_memory import check_memory
from suanli.differences import term_differences
from suanli.errors import SuanliError
from suanli.formulas import operators
from suanli.formulas.counting import linear_flops
from suanli.nouns.arch import Arch, Module
from suanli.nouns.coverage import DEFAULT, SMALL, ConfigCheck, Covered, LengthCheck, ScanCounts, status_of
from suanli.nouns.layers import CausalConv, Elementwise, Experts, Layer, Linear, LinearAttention
from suanli.nouns.ledger import Ledger
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config
from suanli.readers.hf_types.configs import Given, given_configs
from suanli.readers.hf_types.mappings import TypeOfTask
from suanli.readers.hf_types.runs import Built, Ran, build, run, sizes
from suanli.work import FALLBACK, KERNEL, RECURRENCE, Setting, causal_conv, scan_counts

LENGTHS = (24, 57)
TERMS_SHOWN = 3
FULL = find_convention("full")


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A difference between what a model needs and what transformers runs, known and said."""

    id: str
    why: str
    flops: Callable[[Arch, Workload], int]


def check_type(task: TypeOfTask, configs: tuple[str, ...] = (SMALL, DEFAULT)) -> Covered:
    """A type's small and default config by formula and by trace."""
    began = time.monotonic()
    checks = tuple(check_config(task, config) for config in configs)
    status, why = status_of(checks, said_of(task))
    return Covered(
        mapping=task.mapping, model_type=task.model_type, class_name=task.class_name, checks=checks, status=status,
        why=why, memory=check_memory(task), seconds=round(time.monotonic() - began, 2),
    )  # fmt: skip


def check_config(task: TypeOfTask, config: str) -> ConfigCheck:
    """The first config of the kind that transformers builds and runs; where it runs none, the last one's reason."""
    found = ConfigCheck(config=config, not_run="no config could be made")
    for given in given_configs(config, task.model_type, task.mapping):
        found = _check(task, config, given)
        if not found.not_run:
            break
    return found


def _check(task: TypeOfTask, config: str, given: Given) -> ConfigCheck:
    found = ConfigCheck(config=config, made=given.made)
    try:
        built = build(task, given.keys)
    except SuanliError as problem:
        return replace(found, not_run=_said(problem))
    found = replace(found, params_torch=built.params)
    for second, seq in enumerate(LENGTHS):
        found = _length(task, found, built, seq, second=bool(second), small=config == SMALL)
        if found.not_run:
            break
    return found


def _said(problem: SuanliError) -> str:
    return problem.faults[0].message


def _length(
    task: TypeOfTask, found: ConfigCheck, built: Built, seq: int, *, second: bool, small: bool
) -> ConfigCheck:  # fmt: skip
    """One more length: the formula where there is one, the trace, and the terms they differ by."""
    keys = sizes(built, seq, second=second)
    arch, why = read(built.values | keys, task.model_type)
    try:
        ran = run(built, seq, keys, arch, second=second, whole=small)
    except SuanliError as problem:
        # a class that takes no second size of picture or sound has been compared at the one it takes
        fixed = second and keys and "image_size" in keys
        return found if fixed else replace(found, not_run=_said(problem), not_read=why)
    if arch is None:
        return _by_trace(found, ran, seq, why)
    if not second:
        found = replace(found, params_formula=arch.params_total)
    workload = Workload(seq=seq)
    check, ledger = count_as_run(task, arch, workload, ran)
    if check.error and not ran.whole:
        ran = run(built, seq, keys, arch, second=second, whole=True)
        check, ledger = count_as_run(task, arch, workload, ran)
    terms = tuple(term.sentence for term in term_differences(ledger, ran.ledger)) if check.error else ()
    return replace(
        found, lengths=(*found.lengths, check), uncounted=ran.missing, terms=(*found.terms, *terms[:TERMS_SHOWN])
    )


def _by_trace(found: ConfigCheck, ran: Ran, seq: int, why: str) -> ConfigCheck:
    check = LengthCheck(seq=seq, of=ran.of, flops_trace=ran.flops)
    return replace(found, lengths=(*found.lengths, check), uncounted=ran.missing, not_read=why)


def read(values: Mapping[str, Any], name: str) -> tuple[Arch | None, str]:
    """The architecture by formula, or why there is none."""
    try:
        return read_hf_config(values, name), ""
    except SuanliError as problem:
        return None, _said(problem)


def count_as_run(task: TypeOfTask, arch: Arch, workload: Workload, ran: Ran) -> tuple[LengthCheck, Ledger]:
    """The formula's count with what transformers does otherwise set beside it."""
    ledger = build_ledger(arch, workload, FULL)
    check = LengthCheck(
        seq=workload.seq, of=ran.of, flops_formula=ledger.hardware_flops, flops_trace=ran.flops,
        scans=scans_of(arch, workload, solves=any(row.kind == "solve" for row in ran.ledger.rows)),
    )  # fmt: skip
    found = declared_of(task)
    if found is not None:
        check = replace(check, declared=found.flops(arch, workload))
    return check, ledger


# --- scans --------------------------------------------------------------------------------------------------------


def scans_of(arch: Arch, workload: Workload, *, solves: bool = False) -> ScanCounts | None:
    """A model's scans in the three ways they are counted, and the padding of the convolutions before them.

    `solves` where the run solved the triangles of delta rules, which are no products but have a price in a trace.
    """
    counts, padding = scan_counts(Setting(arch, workload, FULL)), padding_flops(arch, workload.batch)
    if not counts and not padding:
        return None
    recurrence = counts.get(RECURRENCE, 0)
    return ScanCounts(
        recurrence=recurrence, kernel=counts.get(KERNEL, recurrence), fallback=counts.get(FALLBACK, 0), padding=padding,
        solved=solved_flops(arch, workload) if solves else 0,
    )  # fmt: skip


def solved_flops(arch: Arch, workload: Workload) -> int:
    """FLOPs of the triangular systems that delta rules solve in each chunk, one column a key and a value."""
    found = 0
    for placed in arch.leaves():
        layer = placed.layer
        if isinstance(layer, LinearAttention) and layer.rule == "delta":
            chunks = workload.batch * -(-Setting(arch, workload, FULL).queries(placed.stream) // layer.chunk)
            columns = layer.key_dim + layer.value_dim
            found += placed.times * operators.triangular_solve_flops(chunks * layer.heads, layer.chunk, columns)
    return found


def padding_flops(arch: Arch, batch: int) -> int:
    """FLOPs of the positions that a convolution padded on both sides computes and drops."""
    convs = [(placed.times, placed.layer) for placed in arch.leaves() if isinstance(placed.layer, CausalConv)]
    if any(layer.groups for _, layer in convs):
        return _chained_padding(arch, batch)
    return sum(times * int(causal_conv(layer, batch, layer.kernel - 1).value) for times, layer in convs)


def _chained_padding(arch: Arch, batch: int) -> int:
    """Two convolutions in a row, padded once for both; and a projection of the nothing before the first token."""
    found = {placed.layer.name.rpartition(".")[2]: (placed.times, placed.layer) for placed in arch.leaves()}
    (_, first), (_, second) = found["conv_qk_depthwise"], found["conv_qk_grouped"]
    (_, delayed), layers = found["v_proj_delayed"], sum(p.times for p in arch.leaves() if p.layer.kind == "attention")
    assert isinstance(first, CausalConv)
    assert isinstance(second, CausalConv)
    assert isinstance(delayed, Linear)
    between = int(causal_conv(first, batch, second.kernel - 1).value)
    return layers * (between + 2 * batch * delayed.in_features * delayed.out_features)


# --- declared differences -----------------------------------------------------------------------------------------


def _unrouted_experts(arch: Arch, workload: Workload) -> int:
    """What the experts cost that a token is not routed to."""

    def every(node: Module | Layer) -> Module | Layer:
        if isinstance(node, Module):
            return replace(node, children=tuple(every(child) for child in node.children))
        return replace(node, top_k=node.num) if isinstance(node, Experts) else node

    root = every(arch.root)
    assert isinstance(root, Module)
    ledgers = [build_ledger(each, workload, FULL) for each in (replace(arch, root=root), arch)]
    return ledgers[0].hardware_flops - ledgers[1].hardware_flops


def _fourier(arch: Arch, workload: Workload) -> int:
    """Transforms over positions and width, which a formula of matrices leaves out and a trace prices."""
    found = 0
    for placed in arch.leaves():
        if isinstance(placed.layer, Elementwise) and placed.layer.op == "fft":
            points = workload.seq * placed.layer.width
            found += placed.times * operators.fft_flops(workload.batch, points, 0)
    return found


def _tile_masks(arch: Arch, workload: Workload) -> int:
    """An outer product of the padding of all tiles with itself, which makes their mask."""
    tower = max(stream.length or 0 for stream in arch.streams if stream.name == "patches")
    return linear_flops(workload.batch * tower, 1, tower)


DECLARED: tuple[tuple[frozenset[str], Declared], ...] = (
    (
        frozenset({"llama4", "llama4_text"}),
        Declared(
            id="every-expert",
            why="transformers multiplies every token with every Llama 4 expert and drops what was not routed",
            flops=_unrouted_experts,
        ),
    ),
    (
        frozenset({"fnet"}),
        Declared(
            id="fourier",
            flops=_fourier,
            why="a Fourier transform is no matrix product: the formula leaves it out, the trace prices it",
        ),
    ),
    (
        frozenset({"mllama"}),
        Declared(id="tile-masks", flops=_tile_masks, why="transformers makes the mask of tiles by an outer product"),
    ),
)


def declared_of(task: TypeOfTask) -> Declared | None:
    """The difference declared for a type, if there is one."""
    return next((found for types, found in DECLARED if task.model_type in types), None)


def said_of(task: TypeOfTask) -> str:
    """The same in words."""
    found = declared_of(task)
    return "" if found is None else found.why
