"""MODEL that is no tree of layers: a weight file or folder of them, an ONNX file, a JAX function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suanli.nouns.graph import Graph
from suanli.nouns.tensors import TensorTable
from suanli.readers import gate, gguf, jax_function, onnx_model, tensor_headers
from suanli.readers.kinds import INDEX_SUFFIX, ONNX


def read_source(model: str | Path, inputs: Mapping[str, Any]) -> TensorTable | Graph:
    """The tensors or the operations meant. `inputs` binds an ONNX file's dynamic axes. Raises InputError."""
    text = str(model).strip()
    if text.startswith(jax_function.PREFIX):
        gate.check_run(text)
        return jax_function.read_jax_function(text)
    gate.check_path(text, "MODEL")
    path = Path(text).expanduser()
    if text.endswith(ONNX):
        return onnx_model.read_onnx(path, inputs)
    if text.endswith(INDEX_SUFFIX):
        return tensor_headers.read_index(path)
    if text.endswith(".gguf"):
        return gguf.read_gguf(path)
    table = tensor_headers.read_folder(path) if path.is_dir() else None
    return table if table is not None else tensor_headers.read_safetensors(path)
