"""Checkpoints made for tests: true headers over holes, a small Llama's and whatever else is asked for."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from suanli.catalog.ggml import GGML_TYPES

CONFIG: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 1000, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 2, "tie_word_embeddings": False, "max_position_embeddings": 4096,
}  # fmt: skip
SIZES = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1, "I32": 4}
Described = Mapping[str, tuple[str, list[int]]]


def llama(dtype: str = "BF16", layers: int = 4) -> dict[str, tuple[str, list[int]]]:
    """Tensors of CONFIG: matrices of the layers in `dtype`, the rest in bf16; fp8 with a scale for 128 × 128."""
    found: dict[str, tuple[str, list[int]]] = {
        "model.embed_tokens.weight": ("BF16", [1000, 256]), "lm_head.weight": ("BF16", [1000, 256]),
        "model.norm.weight": ("BF16", [256]),
    }  # fmt: skip
    shapes = {"self_attn.q_proj": [256, 256], "self_attn.k_proj": [64, 256], "self_attn.v_proj": [64, 256],
              "self_attn.o_proj": [256, 256], "mlp.gate_proj": [512, 256], "mlp.up_proj": [512, 256],
              "mlp.down_proj": [256, 512]}  # fmt: skip
    for layer in range(layers):
        for name, shape in shapes.items():
            path = f"model.layers.{layer}.{name}.weight"
            found[path] = (dtype, shape)
            if dtype == "F8_E4M3":
                found[f"{path}_scale_inv"] = ("F32", [-(-side // 128) for side in shape])
        for norm in ("input_layernorm", "post_attention_layernorm"):
            found[f"model.layers.{layer}.{norm}.weight"] = ("BF16", [256])
    return found


def nbytes(tensors: Described) -> int:
    return sum(SIZES[dtype] * prod(shape) for dtype, shape in tensors.values())


def safetensors(path: Path, tensors: Described) -> Path:
    """A file with this header; its data are a hole."""
    header, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        size = SIZES[dtype] * prod(shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + at)
    return path


def folder(path: Path, tensors: Described, config: Mapping[str, Any] | None = CONFIG) -> Path:
    """A folder as the hub has it, its weights in one file."""
    path.mkdir(exist_ok=True)
    if config is not None:
        (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    safetensors(path / "model.safetensors", tensors)
    return path


def sharded(path: Path, tensors: Described, total: int | None = None) -> Path:
    """The same in two files with an index."""
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    names, places = list(tensors), {}
    for number, part in ((1, names[:7]), (2, names[7:])):
        shard = f"model-{number:05d}-of-00002.safetensors"
        safetensors(path / shard, {name: tensors[name] for name in part})
        places |= dict.fromkeys(part, shard)
    index = {"metadata": {"total_size": nbytes(tensors) if total is None else total}, "weight_map": places}
    (path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return path


def gguf_llama(kind: int = 12, wide: int = 14) -> dict[str, tuple[list[int], int]]:
    """Tensors of CONFIG as llama.cpp names them: matrices of ggml type `kind`, values and down projections `wide`."""
    found: dict[str, tuple[list[int], int]] = {
        "token_embd.weight": ([256, 1000], kind), "output.weight": ([256, 1000], 14), "output_norm.weight": ([256], 0),
    }  # fmt: skip
    shapes = {"attn_q": ([256, 256], kind), "attn_k": ([256, 64], kind), "attn_v": ([256, 64], wide),
              "attn_output": ([256, 256], kind), "ffn_gate": ([256, 512], kind), "ffn_up": ([256, 512], kind),
              "ffn_down": ([512, 256], wide), "attn_norm": ([256], 0), "ffn_norm": ([256], 0)}  # fmt: skip
    for layer in range(4):
        found |= {f"blk.{layer}.{name}.weight": shape for name, shape in shapes.items()}
    return found


GGUF_METADATA: dict[str, Any] = {
    "general.architecture": "llama", "llama.block_count": 4, "llama.embedding_length": 256,
    "llama.feed_forward_length": 512, "llama.attention.head_count": 8, "llama.attention.head_count_kv": 2,
    "llama.context_length": 4096,
}  # fmt: skip


def gguf(path: Path, tensors: Mapping[str, tuple[list[int], int]], metadata: Mapping[str, Any]) -> Path:
    """A GGUF file with this header; its data are a hole."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        out += text(key) + (
            struct.pack("<I", 8) + text(value) if isinstance(value, str) else struct.pack("<II", 4, value)
        )
    offset = 0
    for name, (shape, kind) in tensors.items():
        out += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        offset += -(-gguf_bytes(shape, kind) // 32) * 32
    with path.open("wb") as stream:
        stream.write(out)
        stream.truncate(-(-len(out) // 32) * 32 + offset)
    return path


def gguf_bytes(shape: list[int], kind: int) -> int:
    _, block, size = GGML_TYPES[kind]
    return prod(shape) // block * size
