"""Headers of weight files: exact parameters and bytes, and one clear error for each kind of wrong file."""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

import suanli
from suanli.errors import ConfigError, UnreadableFileError
from suanli.readers.gguf import GGML_TYPES, read_gguf
from suanli.readers.tensor_headers import read_folder, read_index, read_safetensors

Described = Mapping[str, tuple[str, list[int], int]]

TENSORS: Described = {
    "layers.0.w": ("BF16", [4, 8], 64), "layers.1.w": ("BF16", [4, 8], 64), "embed": ("F8_E4M3", [3, 5], 15),
    "packed": ("F4", [3, 3], 5), "scale": ("F32", [], 4), "index": ("I64", [2], 16), "empty": ("F16", [0, 7], 0),
}  # fmt: skip


def header(tensors: Described) -> dict[str, object]:
    found, at = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        found[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    return found


def write(path: Path, values: object, data: int, length: int | None = None) -> Path:
    text = values if isinstance(values, bytes) else json.dumps(values).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + bytes(data))
    return path


def test_parameters_and_bytes_by_dtype(tmp_path: Path) -> None:
    found = suanli.count(str(write(tmp_path / "m.safetensors", header(TENSORS), 168)))
    assert found.params.total == 2 * 32 + 15 + 9 + 1 + 2
    assert found.bytes.weights == 2 * 64 + 15 + 5 + 4 + 16
    assert (found.bytes.by_dtype["BF16"].elements, found.bytes.by_dtype["BF16"].bytes) == (64, 128)
    assert found.rows[0].name == "layers.*.w" and (found.rows[0].times, found.rows[0].params) == (2, 64)
    assert "2 elements are integers" in found.notes[0]


def test_flops_are_none_with_a_reason(tmp_path: Path) -> None:
    answer = suanli.count(str(write(tmp_path / "m.safetensors", header(TENSORS), 168))).to_dict()
    assert answer["kind"] == "count" and answer["convention"] is None
    assert set(answer["result"]["flops"].values()) == {None}
    assert answer["result"]["ideal"] == {"2n": None, "6n": None, "8n": None}
    assert "config.json" in answer["result"]["reasons"]["flops"]


def test_the_library_writes_what_is_read(tmp_path: Path) -> None:
    safetensors, numpy = pytest.importorskip("safetensors.numpy"), pytest.importorskip("numpy")
    safetensors.save_file({"a": numpy.zeros((3, 4), "float16"), "b": numpy.zeros(2)}, tmp_path / "x.safetensors")
    table = read_safetensors(tmp_path / "x.safetensors")
    assert {t.name: (t.dtype, t.shape, t.nbytes) for t in table.tensors} == {
        "a": ("F16", (3, 4), 24), "b": ("F64", (2,), 16),
    }  # fmt: skip


def refusal(read, path: Path) -> str:
    start = time.process_time()
    with pytest.raises(UnreadableFileError) as caught:
        read(path)
    assert time.process_time() - start < 1
    return str(caught.value)


def test_every_fault_of_a_header_is_listed(tmp_path: Path) -> None:
    values = {
        "a": {"dtype": "F99", "shape": [2], "data_offsets": [0, 4]},
        "b": {"dtype": "F16", "shape": [-1], "data_offsets": [0, 4]},
        "c": {"dtype": "F16", "shape": [2], "data_offsets": [4, 9]},
        "d": {"dtype": "F16", "shape": [2], "data_offsets": [6, 10]},
        "e": {"dtype": "F16", "shape": [2], "data_offsets": [96, 104]},
        "f": {"dtype": "F16", "shape": [2], "data_offsets": "0"},
        "g": [1],
        "h": {"dtype": "F16", "shape": [2**40, 2**40], "data_offsets": [0, 0]},
    }
    text = refusal(read_safetensors, write(tmp_path / "m.safetensors", values, 100))
    for words in (
        "unknown dtype", "no list of whole numbers", "5 bytes; expected 4 for F16 [2]", "overlaps 'c'",
        "outside the file's data", "no two whole numbers", "not the description of a tensor", "2⁶³",
    ):  # fmt: skip
        assert words in text


@pytest.mark.parametrize(
    ("content", "data", "length", "words"),
    [
        (b"{}", 0, 10**9, "the header is too large"),
        (b"{}", 0, 2**64 - 1, "the header is too large"),
        (b"{}", 0, 1000, "the header is longer than the file"),
        (b"[]", 0, None, "no JSON object"),
        (b"{" * 100_000, 0, None, "cannot be read"),
        (b'{"a":' + b"[" * 100_000, 0, None, "nested too deep"),
        (b'{"a": 1, "a": 2}', 0, None, "a key is given twice"),
        (b'{"\xff": 1}', 0, None, "cannot be read"),
        (b'{"a": ' + b"9" * 5000 + b"}", 0, None, "cannot be read"),
        (b"{}", 8, None, "bytes after the last tensor"),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, content: bytes, data: int, length: int | None, words: str) -> None:
    assert words in refusal(read_safetensors, write(tmp_path / "m.safetensors", content, data, length))


def test_a_header_of_a_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", 10**9))
        stream.truncate(2 * 10**9)  # sparse
    assert "got 1,000,000,000 bytes; expected at most 100 MB" in refusal(read_safetensors, path)


def test_too_many_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suanli.readers.tensor_headers.MAX_TENSORS", 3)
    values = {str(i): {"dtype": "F16", "shape": [0], "data_offsets": [0, 0]} for i in range(4)}
    text = refusal(read_safetensors, write(tmp_path / "m.safetensors", values, 0))
    assert "too many tensors" in text and "got 4; expected at most 3" in text


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.safetensors")
    assert "not a regular file" in refusal(read_safetensors, tmp_path / "p.safetensors")
    assert "cannot be opened" in refusal(read_safetensors, tmp_path / "none.safetensors")
    (tmp_path / "short.safetensors").write_bytes(b"123")
    assert "too short for a header" in refusal(read_safetensors, tmp_path / "short.safetensors")


def shards(folder: Path) -> Path:
    write(folder / "a-1.safetensors", header({"x": ("F16", [2], 4)}), 4)
    write(folder / "a-2.safetensors", header({"y": ("F32", [3], 12)}), 12)
    index = {"metadata": {"total_size": 16}, "weight_map": {"x": "a-1.safetensors", "y": "a-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder / "model.safetensors.index.json"


def test_shards_by_their_index_and_by_their_folder(tmp_path: Path) -> None:
    index = shards(tmp_path)
    for table in (read_index(index), read_folder(tmp_path)):
        assert table is not None and (table.elements, table.nbytes) == (5, 16)
    assert suanli.count(str(tmp_path)).params.total == suanli.count(str(index)).params.total == 5
    index.unlink()
    assert suanli.count(str(tmp_path)).bytes.weights == 16


def test_an_index_that_does_not_agree(tmp_path: Path) -> None:
    index = shards(tmp_path)
    index.write_text(json.dumps({"weight_map": {"x": "a-1.safetensors", "z": "a-1.safetensors"}}))
    assert "named by the index but not in a-1.safetensors" in refusal(read_index, index)
    index.write_text(json.dumps({"weight_map": {"x": "../../etc/passwd", "y": "/etc/passwd.safetensors"}}))
    assert refusal(read_index, index).count("not the name of a file beside the index") == 2
    index.write_text(json.dumps({"weight_map": {"x": "a-1.safetensors"}, "metadata": {"total_size": 5}}))
    assert read_index(index).notes == ("the index says total_size 5 bytes; its shards hold 4",)


def test_a_config_beside_the_weights_wins(tmp_path: Path) -> None:
    shards(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="missing key model_type"):
        suanli.count(str(tmp_path))


# --- GGUF ---------------------------------------------------------------------------------------------------------

LLAMA = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
    "llama.feed_forward_length": 96, "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
    "llama.context_length": 512, "words": ["a"] * 5000, "layers": [1, 2, 3],
}  # fmt: skip
LAYER = {
    "attn_q": [64, 64], "attn_k": [64, 32], "attn_v": [64, 32], "attn_output": [64, 64], "ffn_up": [64, 96],
    "ffn_gate": [64, 96], "ffn_down": [96, 64], "attn_norm": [64], "ffn_norm": [64],
}  # fmt: skip
MODEL = {
    "token_embd.weight": ([64, 100], 8), "output.weight": ([64, 100], 1), "output_norm.weight": ([64], 0),
    "rope_freqs.weight": ([8], 0),
    **{f"blk.{i}.{name}.weight": (shape, 2 if len(shape) > 1 else 0) for i in (0, 1)
       for name, shape in LAYER.items()},
}  # fmt: skip
# embeddings and head 2·6,400; a layer q 4,096, k and v 2·2,048, o 4,096, MLP 3·6,144, norms 128; last norm 64
PARAMS = 2 * 6400 + 2 * (4096 + 2 * 2048 + 4096 + 3 * 6144 + 128) + 64


def gguf(path: Path, metadata: Mapping[str, object], tensors: Mapping[str, tuple[list[int], int]], order: str) -> Path:
    def text(value: str) -> bytes:
        return struct.pack(f"{order}Q", len(value)) + value.encode()

    def value(item: object) -> bytes:
        if isinstance(item, str):
            return struct.pack(f"{order}I", 8) + text(item)
        if isinstance(item, list):
            inner = value(item[0])[:4]
            body = b"".join(value(each)[4:] for each in item)
            return struct.pack(f"{order}I", 9) + inner + struct.pack(f"{order}Q", len(item)) + body
        return struct.pack(f"{order}II", 4, item)

    out = b"GGUF" + struct.pack(f"{order}IQQ", 3, len(tensors), len(metadata))
    out += b"".join(text(key) + value(item) for key, item in metadata.items())
    offset = 0
    for name, (shape, kind) in tensors.items():
        out += text(name) + struct.pack(f"{order}I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        _, block, size = GGML_TYPES.get(kind, ("", 1, 1))
        elements = 1
        for side in shape:
            elements *= side
        offset += -(-elements // block * size // 32) * 32
    path.write_bytes(out + bytes(-len(out) % 32) + bytes(min(offset, 10**6)))
    return path


@pytest.mark.parametrize("order", "<>")
def test_a_llama_is_counted(tmp_path: Path, order: str) -> None:
    path = gguf(tmp_path / "tiny.gguf", LLAMA, MODEL, order)
    found = suanli.count(str(path), seq=16, convention="full")
    assert found.params.total == PARAMS
    assert found.params.buffers == 8  # rope_freqs
    config = {
        "model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
    }  # fmt: skip
    assert found.flops.model == suanli.count(config, seq=16, convention="full").flops.model
    by = {name: (stored.elements, stored.bytes) for name, stored in found.bytes.by_dtype.items()}
    matrices = 2 * (4096 + 2 * 2048 + 4096 + 3 * 6144)
    norms = 64 + 8 + 2 * 128
    assert by == {  # 34 bytes for 32 in Q8_0, 18 in Q4_0
        "Q8_0": (6400, 6400 // 32 * 34), "F16": (6400, 12800), "Q4_0": (matrices, matrices // 32 * 18),
        "F32": (norms, 4 * norms),
    }  # fmt: skip
    assert suanli.train(str(path), tokens="1B", gpu="h100-sxm", gpus=8, mfu=0.4).flops > 0


def test_metadata_that_disagree_give_no_flops(tmp_path: Path) -> None:
    path = gguf(tmp_path / "tiny.gguf", {**LLAMA, "llama.block_count": 3}, MODEL, "<")
    found = suanli.count(str(path))
    assert found.flops.model is None and found.params.total == PARAMS + 8
    assert "parameters, the file" in found.reasons["flops"]
    with pytest.raises(ConfigError, match="does not describe a model"):
        suanli.train(str(path), tokens="1B", gpu="h100-sxm", gpus=8, mfu=0.4)
    found = suanli.count(str(gguf(tmp_path / "x.gguf", {"general.architecture": "other"}, {}, "<")))
    assert found.reasons["flops"] == "no family is known for the architecture other"


def test_gguf_files_that_are_refused(tmp_path: Path) -> None:
    path = gguf(tmp_path / "m.gguf", LLAMA, MODEL, "<")
    whole = path.read_bytes()
    bad = tmp_path / "bad.gguf"
    for content, words in (
        (whole[:-40], "outside the file's data"),
        (whole[:500], "the file ends within its header"),
        (b"GG", "the file ends within its header"),
        (b"GGML" + whole[4:], "does not start with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "this version of GGUF is not read"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "too many tensors or keys"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**60), "a key is too long"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"a", 9, 4, 2**60), "is too long"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"a", 77), "unknown type"),
    ):
        bad.write_bytes(content)
        assert words in refusal(read_gguf, bad)
    text = refusal(read_gguf, gguf(bad, {}, {"a": ([33], 2), "b": ([4], 99), "c": ([2**31, 2**32], 0)}, "<"))
    assert (
        "rows of whole blocks of 32" in text and "unknown type of tensor" in text and "fewer than 2⁶³ elements" in text
    )
