"""Bytes autograd keeps for backward, module by module: each storage once, parameters and buffers not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from suanli.readers.torch_module.recorder import Recorder


class Kept:
    """What is kept: bytes by the path of the module that kept it first."""

    def __init__(self, recorder: Recorder, module: Any) -> None:
        self.recorder = recorder
        self.bytes: dict[str, int] = {}
        held = [*module.parameters(), *module.buffers()]
        self.seen: dict[int, Any] = {_storage(tensor): tensor for tensor in held}

    def pack(self, tensor: Any) -> Any:
        """Called by autograd for every tensor it keeps."""
        key = _storage(tensor)
        if key not in self.seen:
            self.seen[key] = tensor.detach()  # held, so that no other storage can get the same address
            path = self.recorder.path
            self.bytes[path] = self.bytes.get(path, 0) + _size(tensor)
        return tensor


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata) if "strided" in str(tensor.layout) else id(tensor)


def _size(tensor: Any) -> int:
    if "strided" not in str(tensor.layout):
        return int(tensor.numel() * tensor.element_size())
    return int(tensor.untyped_storage().nbytes())


@contextmanager
def keeping(recorder: Recorder, module: Any) -> Iterator[Kept]:
    """Watch what autograd keeps inside."""
    import torch  # noqa: PLC0415

    kept = Kept(recorder, module)
    with torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda tensor: tensor):
        yield kept
