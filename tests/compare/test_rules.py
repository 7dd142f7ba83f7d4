"""Rules of the tools: each term by hand, and whole tables against what the tools said of small cases."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.compare.forms import FORMS, amount
from suanli.compare.like import predict
from suanli.compare.peers import CPU, META
from suanli.compare.rules import TABLES, Table

from .conftest import module, operator

LINEAR = operator("linear", {"input": [2, 6, 8], "weight": [5, 8], "bias": [5]}, [2, 6, 5], 960)
CONV = module("Conv2d", [[1, 4, 9, 9]], [1, 6, 4, 4], {"weight": [6, 2, 3, 3], "bias": [6]}, said={"groups": 2})
UP = {
    "name": "F.conv_transpose2d", "args": [[1, 3, 4, 4], [3, 2, 2, 2], [2], 2], "kwargs": {}, "out": [1, 2, 8, 8],
}  # fmt: skip
LSTM = module(
    "LSTM", [[1, 250, 12]], {"values": [[1, 250, 128]]},
    {"weight_ih_l0": [512, 12], "weight_hh_l0": [512, 128], "bias_ih_l0": [512], "bias_hh_l0": [512]},
    said={"hidden_size": 128, "num_layers": 1, "input_size": 12, "batch_first": True},
)  # fmt: skip
MULTIHEAD = module(
    "MultiheadAttention", [[1, 580, 512]] * 3, {"values": [[1, 580, 512]]},
    {"in_proj_weight": [1536, 512], "in_proj_bias": [1536]}, said={"num_heads": 4, "batch_first": True}, leaf=False,
)  # fmt: skip
EINSUM = operator(
    "einsum", {"equation": "bhid,bhjd->bhij", "tensors": {"values": [[1, 8, 64, 32], [1, 8, 64, 32]]}}, [1, 8, 64, 64],
    2_097_152, kind="matmul",
)  # fmt: skip
ROWS = {"args": [[2, 6, 8]], "out": [2, 6, 8], "said": {"dim": -1}, "params": {}, "name": "Softmax"}
ADDMM = operator("addmm", {"self": [5], "mat1": [12, 8], "mat2": [8, 5]}, [12, 5], 960)

TERMS: list[tuple[str, Any, int]] = [
    ("linear", LINEAR, 2 * 6 * 8 * 5),
    ("product", LINEAR, 480),
    ("bias", LINEAR, 60),
    ("read", LINEAR, 96),
    ("written", LINEAR, 60),
    ("second", ADDMM, 480),
    ("bias", ADDMM, 60),
    ("conv", CONV, 96 * 2 * 9),  # 96 results, 2 channels of a group, 3 × 3
    ("by_output", CONV, 96 * 2 * 9),
    ("bias", CONV, 96),
    ("transposed", UP, 48 * 2 * 4),  # 48 inputs, 2 channels out, 2 × 2
    ("by_output", UP, 128 * 3 * 4),  # 128 results, 3 channels in
    ("bias", UP, 128),
    ("shrunk_bias", UP, 2 * 2 * 2),  # (4 - 2) // 2 + 1 = 2 a side
    ("softmax", ROWS, 3 * 96 - 12),
    ("affine", operator("layer_norm", {"input": [2, 8], "weight": [8], "bias": None}, [2, 8]), 16),
    ("affine", operator("layer_norm", {"input": [2, 8], "weight": None, "bias": None}, [2, 8]), 0),
    ("window", module("AdaptiveAvgPool2d", [[1, 4, 6, 6]], [1, 4, 2, 2], {}), 4 * 36),
    ("leading", {"args": [[2, 3, 4], [4]], "kwargs": {}, "out": [2, 3, 4], "name": "torch.mul"}, 4 * 3 * 4),
    ("matmul", {"args": [[64, 32], [8, 32, 64]], "kwargs": {}, "out": [8, 64, 64], "name": "torch.matmul"}, 131_072),
    ("einsum", EINSUM, 2_097_000),  # 2,097,152 in four digits
    ("einsum_macs", EINSUM, 1_048_500),
    ("parameters", CONV, 114 * 16),  # (108 + 6) · 16 positions
    ("parameters", module("Linear", [[2, 6, 8]], [2, 6, 5], {"weight": [5, 8], "bias": [5]}), 45 * 2),
    # as the tools said of LSTM(12, 128) on [1, 250, 12]: 36,160,000; 36,992,000 / 2; 36,864,000 / 2; 36,352,000 / 2
    ("profiler_recurrent", LSTM, 36_160_000),
    ("macs_recurrent", LSTM, 18_496_000),
    ("thop_recurrent", LSTM, 18_432_000),
    ("parameters", LSTM, 18_176_000),
    ("multihead", MULTIHEAD, 955_478_080),  # ptflops on MultiheadAttention(512, 4), 580 tokens: 1,910,956,160 / 2
]


@pytest.mark.parametrize(("form", "call", "expected"), TERMS, ids=[f"{term[0]} {i}" for i, term in enumerate(TERMS)])
def test_terms(form: str, call: Any, expected: int) -> None:
    assert FORMS[form](call) == expected


def test_terms_add_up() -> None:
    assert amount("2 linear + bias", LINEAR) == 960 + 60
    assert amount("", LINEAR) == 0


@pytest.mark.parametrize("tool", TABLES)
def test_every_rule_is_made_of_known_forms(tool: str) -> None:
    table: Table = TABLES[tool]
    rules = [*table.modules.values(), *table.functions.values(), *table.operators.values(), *table.products.values()]
    for rule in [*rules, table.any_leaf]:
        for term in filter(None, rule.split("+")):
            times, _, form = term.strip().rpartition(" ")
            assert form in FORMS
            assert not times or times.isdecimal()


# a biased linear layer as each tool counts it, in its own unit
KERNEL = {
    "height": "function", "path": "m", "name": "torch.mm", "kernel": True, "args": [[12, 8], [8, 5]], "kwargs": {},
    "out": [12, 5], "times": 1,
}  # fmt: skip
FUNCTION = {
    "height": "function", "path": "m", "name": "F.linear", "kernel": False, "args": [[2, 6, 8], [5, 8], [5]],
    "kwargs": {}, "out": [2, 6, 5], "times": 1,
}  # fmt: skip
OF_LINEAR = module("Linear", [[2, 6, 8]], [2, 6, 5], {"weight": [5, 8], "bias": [5]})
CALLS = [LINEAR, KERNEL, FUNCTION, OF_LINEAR]


@pytest.mark.parametrize(
    ("tool", "device", "expected"),
    [
        ("flop_counter_mode", META, 960), ("flop_counter_mode", CPU, 960), ("calflops", META, 960),
        ("deepspeed", META, 1920), ("deepspeed", CPU, 960), ("ptflops", META, 480 + 60 + 480),
        ("ptflops", CPU, 480 + 60), ("ptflops-aten", META, 540), ("thop", META, 480), ("fvcore", META, 480),
        ("torchinfo", META, 90), ("torchprofile", META, 480),
    ],
)  # fmt: skip
def test_a_biased_linear_layer(tool: str, device: str, expected: int) -> None:
    assert predict(tool, CALLS, device).total == expected


def test_batch_and_position() -> None:
    """ptflops divides modules by the batch where the input has no name, and what it saw of functions not."""
    assert predict("ptflops", CALLS, META, batch=2, positional=True).total == 540 // 2 + 480
    assert predict("ptflops", CALLS, META, batch=2, positional=False).total == 1020


def test_functions_inside_a_module_counted_whole_are_not_counted_again() -> None:
    """Unless there is a module around it, whose list they fall into."""
    root, inner = {**LSTM, "path": ""}, {**FUNCTION, "path": ""}
    assert predict("calflops", [root, inner], META).total == 36_160_000
    assert predict("calflops", [LSTM, FUNCTION], META).total == 36_160_000 + 960


def test_a_class_of_the_model_s_own_has_no_rule() -> None:
    assert predict("thop", [{**OF_LINEAR, "plain": False}], META).total == 0
    assert predict("torchinfo", [{**OF_LINEAR, "plain": False}], META).total == 90
