"""Equal layers run once and twice, the rest by the difference; where that does not hold exactly, not at all.

Held: every kept layer runs once, on inputs of one shape, and another copy changes nothing outside its stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.arch import index_label
from suanli.readers.torch_module.recorder import Entry, Key, Missing

SHORTEST = 3  # equal layers that are worth a second run
_OWN_PLACE = ("idx", "index", "layer_id", "layer_number", "id")  # attributes that only say which copy it is
_FIELDS = ("flops", "masked", "extra", "extra_masked", "read_bytes", "write_bytes", "calls")


@dataclass
class Stack:
    """A list of layers and its kinds: indices of equal ones."""

    path: str
    module: Any
    kinds: list[list[int]]
    layers: list[Any] = field(default_factory=list)

    def keep(self, indices: list[int]) -> None:
        """Leave only these layers in the list, renumbered."""
        self.module._modules.clear()
        for place, index in enumerate(sorted(indices)):
            self.module._modules[str(place)] = self.layers[index]

    def restore(self) -> None:
        """All layers again."""
        self.keep(list(range(len(self.layers))))

    @property
    def first(self) -> list[int]:
        """The first layer of each kind."""
        return [kind[0] for kind in self.kinds]

    def labels(self) -> dict[str, str]:
        """Path of every layer -> path of its kind."""
        return {
            f"{self.path}.{index}".lstrip("."): f"{self.path}.{index_label(kind)}".lstrip(".")
            for kind in self.kinds
            for index in kind
        }


@dataclass
class Merged:
    """Entries of the whole module, by the labels of its kinds."""

    entries: dict[Key, Entry]
    missing: dict[str, Missing]
    kept: dict[str, int]


def find_stacks(model: Any, train: bool) -> list[Stack]:
    """The outermost lists of layers that hold equal ones often enough."""
    trained_before: dict[str, bool] = {}
    seen = False
    for name, child in model.named_modules() if train else ():
        trained_before[name] = seen
        seen = seen or any(each.requires_grad for each in child.parameters(recurse=False))
    return list(_search(model, "", trained_before))


def _search(module: Any, path: str, trained_before: dict[str, bool]) -> Iterator[Stack]:
    import torch  # noqa: PLC0415

    for name, child in module.named_children():
        here = f"{path}.{name}".lstrip(".")
        if isinstance(child, torch.nn.ModuleList | torch.nn.Sequential):
            stack = _stack(child, here, trained_before)
            if stack is not None:
                yield stack
                continue
        yield from _search(child, here, trained_before)


def _stack(module: Any, path: str, trained_before: dict[str, bool]) -> Stack | None:
    layers = list(module.children())
    plain = list(module._modules) == [str(index) for index in range(len(layers))]
    if len(layers) < SHORTEST or not plain or type(module).forward not in _plain_forwards():
        return None
    kinds: dict[Any, list[int]] = {}
    for index, layer in enumerate(layers):
        kinds.setdefault((signature(layer), trained_before.get(f"{path}.{index}", False)), []).append(index)
    if sum(max(len(kind) - 2, 0) for kind in kinds.values()) < len(layers) // 2:
        return None
    return Stack(path, module, list(kinds.values()), layers)


def _plain_forwards() -> tuple[Any, ...]:
    import torch  # noqa: PLC0415

    return (torch.nn.ModuleList.forward, torch.nn.Sequential.forward)


def signature(layer: Any) -> Any:
    """What makes two layers equal: classes, shapes, dtypes, what is trained, and whole numbers and words they hold."""
    return tuple(
        (name, type(module), _tensors(module), _attributes(module), module.extra_repr())
        for name, module in layer.named_modules()
    )


def _tensors(module: Any) -> Any:
    held = {**module._parameters, **module._buffers}
    return tuple(
        (name, tuple(tensor.shape), tensor.dtype, tensor.requires_grad) if tensor is not None else (name,)
        for name, tensor in held.items()
    )


def _attributes(module: Any) -> Any:
    return tuple(
        (name, value)
        for name, value in vars(module).items()
        if isinstance(value, bool | int | str | tuple | None)
        and not name.startswith("_")
        and not name.endswith(_OWN_PLACE)
        and _is_plain(value)
    )


def _is_plain(value: Any) -> bool:
    return all(isinstance(each, bool | int | str) for each in value) if isinstance(value, tuple) else True


def run_repeated(stacks: list[Stack], run: Callable[[], Any]) -> Merged | None:
    """One run with a layer of each kind, one more for each kind with a second; None where layers do not just add up."""
    try:
        base = _kept_run(stacks, run, None)
        if base is None:
            return None
        labels = {path: label for stack in stacks for path, label in stack.labels().items()}
        merged = merge_labels(base, labels)
        for stack in stacks:
            for kind in stack.kinds:
                if len(kind) > 1:
                    more = _kept_run(stacks, run, (stack, kind[1]))
                    if more is None:
                        return None
                    twice = merge_labels(more, labels)
                    if not _adds_up(merge_labels(base, labels), twice, stack):
                        return None
                    _extrapolate(merged, merge_labels(base, labels), twice, len(kind) - 1)
        return merged
    finally:
        for stack in stacks:
            stack.restore()


def _kept_run(stacks: list[Stack], run: Callable[[], Any], second: tuple[Stack, int] | None) -> Any:
    """A run with some layers; None where it fails or the layers do not run one after another on one shape."""
    for stack in stacks:
        more = [second[1]] if second is not None and second[0] is stack else []
        stack.keep([*stack.first, *more])
    try:
        done = run()
    except Exception as problem:  # noqa: BLE001  the whole module is run instead, and its error is the one to tell
        return _give_up(problem)
    for stack in stacks:
        more = [second[1]] if second is not None and second[0] is stack else []
        calls = [done.recorder.calls.get(f"{stack.path}.{index}", []) for index in (*stack.first, *more)]
        if any(len(each) != 1 for each in calls) or len({each[0] for each in calls}) != 1:
            return None
    return done


def _give_up(problem: Exception) -> None:
    """A shortened module that fails says nothing about the whole one; a bound that was passed does."""
    from suanli.errors import SuanliError  # noqa: PLC0415

    if isinstance(problem, SuanliError) and problem.faults[0].code in ("too_slow", "too_large"):
        raise problem


def merge_labels(done: Any, labels: dict[str, str]) -> Merged:
    """Entries of a run with the paths of layers replaced by those of their kinds."""
    entries: dict[Key, Entry] = {}
    for (path, *rest), entry in done.recorder.entries.items():
        key = (relabelled(path, labels), *rest)
        into = entries.setdefault(key, Entry())
        _add(into, entry, 1)
    kept: dict[str, int] = {}
    for path, size in done.kept.items():
        kept[relabelled(path, labels)] = kept.get(relabelled(path, labels), 0) + size
    missing = {name: Missing(found.calls, dict(found.shapes)) for name, found in done.recorder.missing.items()}
    return Merged(entries, missing, kept)


def relabelled(path: str, labels: dict[str, str]) -> str:
    """A path under a layer, as a path under its kind."""
    parts = path.split(".")
    for n in range(1, len(parts) + 1):
        label = labels.get(".".join(parts[:n]))
        if label is not None:
            return ".".join([label, *parts[n:]])
    return path


def _add(into: Entry, other: Entry, times: int) -> None:
    for name in _FIELDS:
        setattr(into, name, getattr(into, name) + times * getattr(other, name))


def _adds_up(base: Merged, twice: Merged, stack: Stack) -> bool:
    """Whether a second layer adds to its stack alone."""
    inside = tuple(set(stack.labels().values()))
    keys = base.entries.keys() | twice.entries.keys()
    for key in keys:
        before, after = (run.entries.get(key, Entry()) for run in (base, twice))
        if not key[0].startswith(inside) and (before.flops, before.extra) != (after.flops, after.extra):
            return False
        if after.flops < before.flops or after.calls < before.calls:
            return False
    return True


def _extrapolate(merged: Merged, base: Merged, twice: Merged, times: int) -> None:
    """Add what the second layer adds, as often as there are further ones."""
    for key, after in twice.entries.items():
        into = merged.entries.setdefault(key, Entry())
        _add(into, after, times)
        _add(into, base.entries.get(key, Entry()), -times)
    for path, size in twice.kept.items():
        merged.kept[path] = merged.kept.get(path, 0) + times * (size - base.kept.get(path, 0))
    for name, found in twice.missing.items():
        before = base.missing.get(name, Missing())
        into_missing = merged.missing.setdefault(name, Missing(0, {}))
        into_missing.calls += times * (found.calls - before.calls)
        for shapes, calls in found.shapes.items():
            seen = into_missing.shapes.get(shapes, 0)
            into_missing.shapes[shapes] = seen + times * (calls - before.shapes.get(shapes, 0))
