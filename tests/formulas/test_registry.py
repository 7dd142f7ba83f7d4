"""The registry: every formula explained, ids unique, ints and arrays alike."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from suanli.formulas import all_formulas, counting, gpt, memory, registry, running


def test_every_formula_is_explained() -> None:
    formulas = all_formulas()
    assert len(formulas) > 30
    for formula in formulas.values():
        assert formula.unit and formula.expression and formula.source and formula.doc, formula.id
        assert list(formula.legend) == list(inspect.signature(formula.function).parameters)


def test_a_duplicate_is_refused() -> None:
    def linear_flops(tokens: int) -> int:
        """Twice."""
        return tokens

    with pytest.raises(AssertionError, match="linear_flops is registered twice"):
        registry.formula(unit="FLOPs", expression="T", source="-")(linear_flops)


def test_an_argument_without_a_legend_is_refused() -> None:
    def nobody_knows(mystery: int) -> int:
        """Unknown."""
        return mystery

    with pytest.raises(AssertionError, match=r"no legend for \['mystery'\]"):
        registry.formula(unit="-", expression="-", source="-")(nobody_knows)


ARRAYS = [
    (counting.linear_flops, (2048, 4096, 11008)),
    (counting.full_pairs, (128, 256)),
    (counting.half_pairs, (128, 256)),
    (counting.causal_pairs, (128, 256, 100)),
    (counting.chunked_pairs, (128, 256, 64)),
    (counting.attention_flops, (1000, 8, 64, 128)),
    (counting.experts_flops, (128, 2, 3, 512, 1024)),
    (counting.conv_flops, (2, 3136, 64, 64, 1, 9)),
    (counting.ideal_flops, (6, 10**9, 10**6)),
    (gpt.gpt_model_flops, (1, 2048, 96, 12288, 51200)),
    (gpt.gpt_params, (96, 12288, 51200, 2048)),
    (gpt.palm_flops_per_token, (10**9, 24, 16, 64, 2048)),
    (memory.weights_bytes, (10**9, 16)),
    (memory.kv_cache_bytes, (8, 4096, 2048, 16)),
    (memory.gpt_activation_bytes, (1, 2048, 96, 12288, 96)),
    (running.gpu_hours, (1e24, 989.4e12, 0.4)),
    (running.wall_days, (1e6, 1024, 0.9)),
]


@pytest.mark.parametrize(("function", "arguments"), ARRAYS, ids=lambda value: getattr(value, "__name__", ""))
def test_arrays_pass_through(function: object, arguments: tuple[float, ...]) -> None:
    """A sweep is the same function on float64 arrays: element by element the int's value."""
    assert callable(function)
    arrays = [np.array([value, value], dtype=np.float64) for value in arguments]
    assert np.allclose(function(*arrays), float(function(*arguments)), rtol=1e-12)


def test_counts_stay_exact_past_int64() -> None:
    assert counting.ideal_flops(6, 405_853_388_800, 15_600_000_000_000) == 6 * 405_853_388_800 * 15_600_000_000_000
