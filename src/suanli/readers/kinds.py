"""What kind of thing MODEL is, told before any reader of that kind is loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from suanli.readers import gate
from suanli.readers.files import CONFIG

TORCH, JAX, KERAS = "torch:", "jax:", "keras:"
INDEX_SUFFIX = ".safetensors.index.json"
WEIGHTS = (".safetensors", ".gguf", INDEX_SUFFIX)
ONNX = ".onnx"


def is_module(value: Any) -> bool:
    """Whether a value is a torch module; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "nn") and isinstance(value, torch.nn.Module)


def is_traced(model: Any, input_: Any, asked: bool) -> bool:
    """Whether a model is counted by running it: it is a module, names one, or running it is asked for."""
    return asked or input_ is not None or is_module(model) or (isinstance(model, str) and model.startswith(TORCH))


def is_source(model: Any) -> bool:
    """Whether `read_source` is meant for it; a folder with a config.json is a model."""
    if not isinstance(model, str | Path):
        return False
    text = str(model).strip()
    if text.startswith(JAX) or text.endswith((*WEIGHTS, ONNX)):
        return True
    sound = "\0" not in text and len(text) < 4096 and gate.may_open(text)
    return sound and _is_weights_folder(Path(text).expanduser())


def _is_weights_folder(path: Path) -> bool:
    try:
        return path.is_dir() and not (path / CONFIG).exists() and any(path.glob("*.safetensors"))
    except OSError:
        return False
