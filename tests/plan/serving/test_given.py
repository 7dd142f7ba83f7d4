"""Weights as a header has them: bytes, ranks, bytes of a weight, and what they differ from the config by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_weights as made
import pytest

from suanli.nouns.serving import ServingLayout
from suanli.nouns.stored import StoredScheme, unstored
from suanli.plan.serving.given import difference, stored_scheme, told
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.weights import weight_bytes
from suanli.readers.served import read_served

MATRICES = 4 * (2 * 65_536 + 2 * 16_384 + 3 * 131_072)
LAYOUTS = [ServingLayout(), ServingLayout(tp=2), ServingLayout(tp=8), ServingLayout(pp=2), ServingLayout(tp=4, pp=4)]


def scheme(path: Path) -> tuple[StoredScheme, Any]:
    found = read_served(path)
    assert found.table is not None
    return stored_scheme(found.table, found.arch, found.file, found.scheme), found.arch


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3"])
def test_a_header_that_is_what_the_config_says(tmp_path: Path, dtype: str, layout: ServingLayout) -> None:
    """Both ways give the same bytes, whole and on every rank: beyond two ranks keys and values are copied. A rank's
    scales may be more than its share: a block of 128 that is cut keeps one on both sides."""
    stored, arch = scheme(made.folder(tmp_path / "m", made.llama(dtype)))
    assert stored.like.name == {"BF16": "bf16", "F8_E4M3": "fp8-block"}[dtype]
    by_header, by_config = weight_bytes(arch, stored, layout), weight_bytes(arch, stored.like, layout)
    assert by_header.total == by_config.total == made.nbytes(made.llama(dtype))
    assert by_header.per_rank == pytest.approx(by_config.per_rank, rel=1e-3 if dtype == "F8_E4M3" else 0)
    assert by_header.read_per_rank == pytest.approx(by_config.read_per_rank, rel=1e-3 if dtype == "F8_E4M3" else 0)
    assert by_header.source == f"sum of tensors in model.safetensors's header ({len(made.llama(dtype))} tensors)"
    assert difference(stored, arch) == ()


def test_bytes_of_a_weight(tmp_path: Path) -> None:
    """fp8 with a 4-byte scale for 128 × 128 at most: k and v of 64 rows have a scale for 64 × 128."""
    stored, _ = scheme(made.folder(tmp_path / "m", made.llama("F8_E4M3")))
    scales = 4 * 4 * (2 * 4 + 2 * 2 + 3 * 8)
    norms = 2 * 256 * 9
    assert stored.rate("linear") == pytest.approx((MATRICES + scales + norms) / (MATRICES + 256 * 9))
    assert stored.rate("embedding") == stored.rate("head") == 2.0


def test_packed_weights_are_counted_by_the_model(tmp_path: Path) -> None:
    """GPTQ: eight weights of 4 bits in an int32."""
    tensors = {
        name: ("I32", [shape[0] // 8, shape[1]]) if "proj" in name else (dtype, shape)
        for name, (dtype, shape) in made.llama().items()
    }
    config = {**made.CONFIG, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
    stored, _ = scheme(made.folder(tmp_path / "m", tensors, config))
    assert stored.like.name == "gptq"
    assert stored.rate("linear") == pytest.approx(0.5, rel=0.01)


def test_a_gguf_by_its_mixed_types(tmp_path: Path) -> None:
    stored, arch = scheme(made.gguf(tmp_path / "t.gguf", made.gguf_llama(), made.GGUF_METADATA))
    assert stored.like.name == "q4_k"
    found = weight_bytes(arch, stored)
    wide = 4 * (16_384 + 131_072)  # values and down projections in Q6_K: 210 B for 256
    assert found.parts["linear"] == (MATRICES - wide) // 256 * 144 + wide // 256 * 210
    assert found.parts["head"] == 256_000 // 256 * 210 and found.parts["embedding"] == 256_000 // 256 * 144
    assert found.parts["norms"] == 9 * 256 * 4
    precision = Precision.of(stored)
    linear = next(each.layer for each in arch.leaves() if each.path.endswith("q_proj"))
    assert precision.stored(linear).weight_bytes == pytest.approx(found.parts["linear"] / MATRICES, rel=0.02)
    assert precision.stored(linear).peak == stored.base  # unpacked before it is multiplied


def test_fp8_is_multiplied_as_fp8(tmp_path: Path) -> None:
    stored, arch = scheme(made.folder(tmp_path / "m", made.llama("F8_E4M3")))
    leaves = {each.path.rpartition(".")[2]: each.layer for each in arch.leaves()}
    precision = Precision.of(stored)
    assert precision.stored(leaves["up_proj"]).peak == "fp8"
    assert precision.stored(leaves["lm_head"]).peak == "bf16"


def test_a_difference_is_told(tmp_path: Path) -> None:
    """A fifth layer in the file, of multi-token prediction: no part of what a weight takes."""
    stored, arch = scheme(made.folder(tmp_path / "m", made.llama(layers=5)))
    whole, more = MATRICES + 2 * 256_000 + 9 * 256, MATRICES / 4 + 512
    sizes = [f"{2 * each / 2**20:.3f} MiB" for each in (whole, whole + more)]
    assert difference(stored, arch) == (
        f"weights: by its config m in bf16 is {sizes[0]}; the tensors of model.safetensors are {sizes[1]}, "
        f"{100 * more / whole:.1f} % more",
    )
    assert stored.rate("linear") == 2.0


def test_small_differences_are_none() -> None:
    assert told(1e9, 1.001e9, "a", "b") == told(0, 5, "a", "b") == ()
    assert told(16e9, 8e9, "m in bf16", "the tensors of f") == (
        "weights: by its config m in bf16 is 14.90 GiB; the tensors of f are 7.451 GiB, 50.0 % less",
    )


def test_another_model_is_not_stored_so(tmp_path: Path) -> None:
    stored, _ = scheme(made.folder(tmp_path / "m", made.llama("F8_E4M3")))
    assert unstored(stored).name == "fp8-block" and unstored(stored) is stored.like
    assert unstored(stored.like) is stored.like
