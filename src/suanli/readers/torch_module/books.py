"""What a trace found as rows of a ledger, parameters, and bytes kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.counts import ParamCounts
from suanli.nouns.ledger import FORWARD, RECOMPUTE_PASS, Ledger, Op, Uncounted
from suanli.readers.torch_module.recorder import Entry, Key
from suanli.readers.torch_module.repeats import Merged, Stack, relabelled


@dataclass(frozen=True, kw_only=True)
class Traced:
    """A module's books, under any rule for masks. `ledger` and the FLOP figures take every pair (convention full)."""

    name: str
    params: ParamCounts
    units: int
    unit: str
    weights_bytes: int
    gradients_bytes: int
    kept_bytes: Mapping[str, int]
    entries: Mapping[Key, Entry]
    missing: tuple[Uncounted, ...]
    held: tuple[tuple[str, int, int], ...]  # path, parameters, copies
    leaves: frozenset[str]
    train: bool = False
    notes: tuple[str, ...] = field(default=())

    def ledger_under(self, pairs: str, convention: str) -> Ledger:
        """Rows with attention charged for every pair (`full`) or those a mask is known to leave (`mask`)."""
        rows = tuple(_rows(self, pairs == "mask"))
        return Ledger(rows, convention, self.missing)

    @property
    def ledger(self) -> Ledger:
        """Rows under convention `full`."""
        return self.ledger_under("full", "full")

    @property
    def uncounted(self) -> tuple[Uncounted, ...]:
        """Operators without a formula."""
        return self.missing

    @property
    def lower_bound(self) -> bool:
        """Whether something was called that has no formula."""
        return bool(self.missing)

    @property
    def model_flops(self) -> int:
        """FLOPs the model needs, every pair of positions."""
        return self.ledger.model_flops

    @property
    def hardware_flops(self) -> int:
        """FLOPs executed, recomputation among them, every pair of positions."""
        return self.ledger.hardware_flops

    @property
    def activation_bytes(self) -> int:
        """Bytes autograd keeps for backward."""
        return sum(self.kept_bytes.values())


def _rows(traced: Traced, masked: bool) -> Iterator[Op]:
    """A row an entry; a module's parameters in its first forward row, or in a row of their own."""
    waiting = {path: (params, times) for path, params, times in traced.held if params}
    copies = {path: times for path, _, times in traced.held}
    for (path, kind, pass_, formula), entry in sorted(traced.entries.items(), key=lambda item: item[0][2] != FORWARD):
        flops, extra = (entry.masked, entry.extra_masked) if masked else (entry.flops, entry.extra)
        model = 0 if pass_ == RECOMPUTE_PASS else flops
        params = waiting.pop(path, (0, 0))[0] if pass_ == FORWARD else 0
        yield Op(
            row_path(path, kind, traced.leaves), kind, pass_, model, flops + extra, entry.read_bytes,
            entry.write_bytes, params, copies.get(path, 1), formula, entry.calls,
        )  # fmt: skip
    for path, (params, times) in waiting.items():
        yield Op(row_path(path, "parameter", traced.leaves), "parameter", FORWARD, 0, 0, 0, 0, params, times, "", 0)


def row_path(path: str, kind: str, leaves: frozenset[str]) -> str:
    """A leaf's own path; below a module that has layers of its own, the kind of what it does itself."""
    named = path in leaves or path.rpartition(".")[2] == kind
    return path if named and path else f"{path}.{kind}".lstrip(".")


def books(model: Any, merged: Merged, stacks: list[Stack], inputs: Any, train: bool) -> Traced:
    """The books of a traced module."""
    labels = {path: label for stack in stacks for path, label in stack.labels().items()}
    held: dict[str, list[int]] = {}
    leaves: set[str] = set()
    seen: set[int] = set()
    for name, child in model.named_modules():
        path = relabelled(name, labels)
        if next(child.children(), None) is None:
            leaves.add(path)
        own = [each for each in child.parameters(recurse=False) if id(each) not in seen]
        seen.update(map(id, own))
        entry = held.setdefault(path, [0, 0])
        entry[0] += sum(each.numel() for each in own)
        entry[1] += 1
    params = list(model.parameters())
    return Traced(
        name=type(model).__name__,
        params=param_counts(model),
        units=units_of(inputs)[0],
        unit=units_of(inputs)[1],
        weights_bytes=sum(each.numel() * each.element_size() for each in params),
        gradients_bytes=sum(each.numel() * each.element_size() for each in params if each.requires_grad),
        kept_bytes=merged.kept if train else {},
        entries=merged.entries,
        missing=tuple(_missing(merged)),
        held=tuple((path, count, times) for path, (count, times) in held.items()),
        leaves=frozenset(leaves),
        train=train,
    )


def _missing(merged: Merged) -> Iterator[Uncounted]:
    for name, found in merged.missing.items():
        shapes = tuple(f"{shape or 'no tensor'} ({calls} calls)" if calls > 1 else shape or "no tensor"
                       for shape, calls in found.shapes.items())  # fmt: skip
        yield Uncounted(name, found.calls, "no formula for this operator", shapes, missing=True)


def param_counts(model: Any) -> ParamCounts:
    """Parameters of a module, tied ones once. Of experts held in one tensor all are active: routing is not a shape."""
    import torch  # noqa: PLC0415

    params = list(model.parameters())
    tables = {
        id(weight): weight.numel()
        for child in model.modules()
        if isinstance(child, torch.nn.Embedding | torch.nn.EmbeddingBag)
        for weight in child.parameters(recurse=False)
    }
    total = sum(each.numel() for each in params)
    return ParamCounts(
        total=total,
        active=total,
        embedding=sum(tables.values()),
        trainable=sum(each.numel() for each in params if each.requires_grad),
        buffers=sum(tensor.numel() for tensor in _stored_buffers(model)),
    )


def _stored_buffers(model: Any) -> Iterator[Any]:
    """Buffers a checkpoint holds, each once."""
    seen: set[int] = set()
    for child in model.modules():
        for name, tensor in child.named_buffers(recurse=False):
            if name not in child._non_persistent_buffers_set and id(tensor) not in seen:
                seen.add(id(tensor))
                yield tensor


def units_of(inputs: Any) -> tuple[int, str]:
    """What the FLOPs are for: tokens where whole numbers go in, else samples of the first input."""
    tensors = list(_all_tensors(inputs))
    if not tensors:
        return 1, "call"
    first = tensors[0]
    if not first.dtype.is_floating_point and not first.dtype.is_complex and first.dim() == 2:
        return max(first.numel(), 1), "token"
    return (max(first.shape[0], 1), "sample") if first.dim() else (1, "call")


def _all_tensors(value: Any) -> Iterator[Any]:
    if hasattr(value, "layout"):
        if not value.is_nested:  # sequences of several lengths: no one shape
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _all_tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _all_tensors(item)
