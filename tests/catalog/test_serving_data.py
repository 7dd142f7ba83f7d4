"""Engines, storage formats and weight schemes: complete, sourced, and refused where they are not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from suanli.catalog.engines import find_engine, list_engines, load
from suanli.catalog.formats import find_format, list_formats
from suanli.catalog.schemes import find_scheme, list_schemes
from suanli.errors import ConfigError
from suanli.nouns.formats import Format
from suanli.nouns.workload import DTYPE_BITS
from suanli.readers.gguf import GGML_TYPES

# bytes of a block over its numbers, as engines' documents have them
BITS = [
    ("bf16", 16), ("fp8", 8), ("int8", 8), ("q8_0", Fraction(34, 32) * 8), ("q4_0", Fraction(18, 32) * 8),
    ("mxfp4", Fraction(17, 32) * 8), ("nvfp4", Fraction(9, 16) * 8), ("mxfp8", Fraction(33, 32) * 8),
    ("q4_k", Fraction(9, 2)), ("q6_k", Fraction(105, 16)), ("q2_k", Fraction(21, 8)), ("q5_k", Fraction(11, 2)),
    ("iq4_xs", Fraction(17, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "bits"), BITS)
def test_bits_of_a_number(name: str, bits: int | Fraction) -> None:
    found = find_format(name.upper())
    assert found.bits == bits
    assert isinstance(found.bits, int) == (Fraction(bits).denominator == 1)


def test_every_dtype_of_a_workload_is_a_format() -> None:
    """Plain ones with the same bits; block formats with their scales on top."""
    for name, bits in DTYPE_BITS.items():
        more = find_format(name).bits - bits
        assert (0 < more <= Fraction(1, 2)) if name in ("mxfp8", "mxfp4", "nvfp4") else (more == 0 or name == "tf32")


def test_every_type_of_ggml_is_a_format() -> None:
    for name, values, nbytes in GGML_TYPES.values():
        assert find_format(name).bits == Fraction(8 * nbytes, values)
    assert all(isinstance(each, Format) and each.source and each.nbytes > 0 for each in list_formats())


def test_engines_have_a_source_for_everything() -> None:
    assert [each.name for each in list_engines()] == ["ideal", "vllm", "sglang", "tensorrt-llm", "llama.cpp"]
    for each in list_engines():
        assert each.title and len(each.sources) == 9 and all(each.sources.values())
    assert [find_engine(name).block_tokens for name in ("vLLM", "sglang", "TensorRT-LLM", "ideal")] == [16, 1, 32, 1]


def entry(**fields: Any) -> dict[str, Any]:
    whole = {name: {"value": value, "source": "s"} for name, value in {
        "block_tokens": 1, "chunk_tokens": 1, "window_rule": "exact", "hybrid_rule": "exact", "budget_rule": "static",
        "memory_fraction": 1.0, "reserve_bytes": 0, "comm_bytes": 0, "flash": True,
    }.items()}  # fmt: skip
    return {"title": "t", **whole, **fields}


def test_a_whole_engine_is_read() -> None:
    assert load({"a": entry()})["a"].budget_rule == "static"


FAULTY = [
    ({"a": {**entry(), "flash": True}}, "engine a gives flash without value and source"),
    ({"a": entry(flash={"value": True, "source": ""})}, "engine a gives flash without value and source"),
    ({"a": {k: v for k, v in entry().items() if k != "flash"}}, "engine a lacks flash"),
    ({"a": entry(blok={"value": 1, "source": "s"})}, "engine a has an unknown field blok"),
    ({"a": entry(window_rule={"value": "wide", "source": "s"})}, "engine a has an unknown window_rule"),
    ({"a": {"title": "t", "extends": "b"}}, "engine a extends b, which cannot be"),
]


@pytest.mark.parametrize(("tables", "message"), FAULTY, ids=[row[1] for row in FAULTY])
def test_faulty_engines(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tables)
    assert message in str(caught.value)


def test_schemes_say_what_they_are() -> None:
    names = [each.name for each in list_schemes()]
    assert len(set(names)) == len(names) >= 30
    assert all(each.title and each.source for each in list_schemes())
    assert find_scheme("Q4_K").targets == ("linear", "experts", "head", "embedding")
    assert find_scheme("fp8").group_out is None
    assert "4.5 bits a weight" in find_scheme("q4_k").title
