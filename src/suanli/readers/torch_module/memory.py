"""Bounds of memory off the meta device: of one tensor before it is made, and of all that are alive together."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from suanli.errors import Fault, InputError
from suanli.units import MEGA

if TYPE_CHECKING:
    from suanli.readers.torch_module.recorder import Recorder


class Held:
    """Memory of the tensors a run has made and not let go. Raises InputError past the bound."""

    def __init__(self, bound: int) -> None:
        self.bound, self.total = bound, 0
        self.alive: dict[int, tuple[Any, int]] = {}

    def add(self, out: Any, recorder: Recorder) -> None:
        """Take the results of a call in; what has been let go is looked for only when the bound is reached."""
        from torch.multiprocessing import reductions  # noqa: PLC0415

        watch: Any = reductions.StorageWeakRef

        for tensor in out if isinstance(out, list | tuple) else (out,):
            if not hasattr(tensor, "layout") or "strided" not in str(tensor.layout) or tensor.is_nested:
                continue
            storage = tensor.untyped_storage()
            self.alive[storage._cdata] = (watch(storage), storage.nbytes())
            self.total += storage.nbytes()
        if self.total > self.bound:
            self.alive = {key: each for key, each in self.alive.items() if not each[0].expired()}
            self.total = sum(size for _, size in self.alive.values())
            if self.total > self.bound:
                raise too_large(self.total, self.bound, recorder.path)


def refuse_huge(recorder: Recorder, func: Any, args: Any, tensors: list[Any]) -> None:
    """Raise before a tensor is made that passes the bound: of a given size, broadcast, or expanded and copied."""
    name = func._schema.name.partition("::")[2]
    if name in ("expand", "view", "as_strided", "broadcast_to", "_unsafe_view", "permute", "transpose", "detach"):
        return
    widths = [tensor.element_size() for tensor in tensors] or [4]
    elements = max((tensor.numel() for tensor in tensors), default=0)
    sizes = [value for value in args if isinstance(value, list | tuple) and value and isinstance(value[0], int)]
    if name.startswith(("empty", "zeros", "ones", "full", "rand", "new_", "randn")) and sizes:
        elements = max(elements, prod(sizes[0]))
    if name == "repeat" and sizes:
        elements = max(elements, tensors[0].numel() * prod(sizes[0]))
    if _is_pointwise(func) and len(tensors) > 1:
        elements = max(elements, _broadcast(tensors))
    if name in ("bmm", "mm") and len(tensors) > 1:
        elements = max(elements, prod(tensors[0].shape[:-1]) * tensors[1].shape[-1])
    bound = recorder.held.bound if recorder.held else 0
    if elements * max(widths) > bound:
        raise too_large(elements * max(widths), bound, recorder.path)


def _is_pointwise(func: Any) -> bool:
    return any("pointwise" in str(tag) for tag in func.tags)


def _broadcast(tensors: list[Any]) -> int:
    rank = max(tensor.dim() for tensor in tensors)
    shapes = [(1,) * (rank - tensor.dim()) + tuple(tensor.shape) for tensor in tensors]
    return prod(max(sizes) for sizes in zip(*shapes, strict=True)) if rank else 1


def too_large(size: int, bound: int, path: str) -> InputError:
    """The error of memory that would pass the bound."""
    return InputError(
        Fault(
            code="too_large",
            message="the module asks for too much memory",
            where=f"module {path or '(root)'}",
            got=f"{size // MEGA:,} MB",
            expected=f"at most {bound // MEGA:,} MB outside the meta device",
            hint="Trace it on the meta device (device='meta'), where memory costs nothing.",
        )
    )
