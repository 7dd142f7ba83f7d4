"""Whole numbers with values, among other tensors without: where a model looks (a grid of patches, which positions are
pictures', how long each sequence is), it looks at whole numbers, and those are small. So they are kept in memory and
really computed, while everything else stays on the meta device, whatever its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

KEPT = 1 << 26  # elements of the largest tensor of whole numbers that is given values


@cache
def _mode() -> Any:
    import torch  # noqa: PLC0415
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415

    special = _special()

    class WholeNumbers(TorchDispatchMode):  # type: ignore[no-untyped-call]
        """Runs on the CPU what only whole numbers (or what came of them) go into, and the rest on meta."""

        supports_higher_order_operators = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if not hasattr(func, "_schema"):
                return func(*args, **kwargs)
            given = list(_tensors((args, kwargs)))
            if any(each.device.type not in ("cpu", "meta") for each in given):
                return func(*args, **kwargs)
            if not given:
                return _made(func, args, kwargs)
            if all(each.device.type == "cpu" for each in given):
                return _known(func, args, kwargs)
            rule = special.get(func._schema.name)
            if rule is not None:
                return rule(func, args, kwargs)
            return func(*_on_meta(args), **_on_meta(kwargs))

    def _made(func: Any, args: Any, kwargs: Any) -> Any:
        """A new tensor: whole numbers get values even where a model asks for them beside its weights."""
        asked = kwargs.get("device")
        out = func(*args, **kwargs)
        if asked is None or torch.device(asked).type != "meta" or not _whole(out):
            return out
        return func(*args, **(kwargs | {"device": "cpu"}))

    def _known(func: Any, args: Any, kwargs: Any) -> Any:
        """All values are there. Moved to meta they are kept if whole; floating ones go."""
        asked = kwargs.get("device")
        if asked is None or torch.device(asked).type != "meta":
            return func(*args, **kwargs)
        kept = func(*args, **(kwargs | {"device": "cpu"}))
        return kept if _whole(kept) else kept.to("meta")

    return WholeNumbers


def _whole(value: Any) -> bool:
    """Whether a tensor holds whole numbers, few enough to keep."""
    plain = hasattr(value, "dtype") and not value.dtype.is_floating_point and not value.dtype.is_complex
    return bool(plain and value.numel() <= KEPT)


def _tensors(value: Any) -> Iterator[Any]:
    if hasattr(value, "layout") and hasattr(value, "device"):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _on_meta(value: Any) -> Any:
    """The same with every tensor on meta."""
    if hasattr(value, "layout") and hasattr(value, "device"):
        return value if value.device.type == "meta" else value.to("meta")
    if isinstance(value, dict):
        return {key: _on_meta(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_on_meta(item) for item in value)
    return value


def _numbered(indices: Any) -> Any:
    """Indices with each mask of known values as the places where it is true."""
    found: list[Any] = []
    for index in indices:
        if index is not None and index.device.type == "cpu" and "bool" in str(index.dtype):
            found.extend(each.to("meta") for each in index.nonzero(as_tuple=True))
        else:
            found.append(_on_meta(index))
    return found


def _special() -> dict[str, Callable[[Any, Any, Any], Any]]:
    """Operators whose result's size hangs on a mask, which is known, and copies to another device."""

    def indexed(func: Any, args: Any, kwargs: Any) -> Any:
        return func(_on_meta(args[0]), _numbered(args[1]), *_on_meta(args[2:]), **_on_meta(kwargs))

    def copied(func: Any, args: Any, kwargs: Any) -> Any:
        """Beside whole numbers, as a model asks, what has no values cannot be: it stays."""
        asked = kwargs.get("device")
        return func(*args, **(kwargs if asked is None else kwargs | {"device": "meta"}))

    def selected(func: Any, args: Any, kwargs: Any) -> Any:
        values, mask = args
        if mask.device.type != "cpu":
            return func(*_on_meta(args), **kwargs)
        return values.new_empty((int(mask.expand(values.shape).sum()),))

    return {
        "aten::index": indexed,
        "aten::index_put": indexed,
        "aten::index_put_": indexed,
        "aten::_index_put_impl_": indexed,
        "aten::masked_select": selected,
        "aten::_to_copy": copied,
    }


def whole_numbers() -> Any:
    """The mode as a context."""
    return _mode()()
