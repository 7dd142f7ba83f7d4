"""Causes are found in amounts, add up to the difference, and what none fits stays unexplained."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.compare.explain import explain
from suanli.compare.places import as_ledger, places_of, plain_name

from .conftest import module, operator

N, K, M = 12, 8, 5  # rows (2 × 6), inputs, outputs
LINEAR = operator("linear", {"input": [2, 6, K], "weight": [M, K], "bias": [M]}, [2, 6, M], 2 * N * K * M)
OF_LINEAR = module("Linear", [[2, 6, K]], [2, 6, M], {"weight": [M, K], "bias": [M]})
PLAIN = operator("linear", {"input": [2, 6, K], "weight": [M, K], "bias": None}, [2, 6, M], 2 * N * K * M)
ATTENTION = operator(
    "scaled_dot_product_attention", {"query": [2, 2, 6, 4]}, [2, 2, 6, 4], 4 * 2 * 2 * 36 * 4, kind="attention"
)  # fmt: skip
MATMUL = operator("matmul", {"self": [6, 4], "other": [3, 4, 6]}, [3, 6, 6], 2 * 3 * 6 * 4 * 6, kind="matmul")
UP = operator("conv_transpose2d", {"input": [1, 3, 4, 4], "weight": [3, 2, 2, 2], "bias": None}, [1, 2, 8, 8],
              2 * 16 * 3 * 2 * 4, kind="conv")  # fmt: skip
NORM = operator("layer_norm", {"input": [2, 6, M], "weight": [M], "bias": [M]}, [2, 6, M])
OF_NORM = module("LayerNorm", [[2, 6, M]], [2, 6, M], {"weight": [M], "bias": [M]})
POOL = operator("adaptive_avg_pool2d", {"self": [1, 4, 7, 7]}, [1, 4, 1, 1])
LOOKUP = operator("embedding", {"weight": [50, M], "indices": [2, 6]}, [2, 6, M])
CONV1D = operator("addmm", {"self": [M], "mat1": [N, K], "mat2": [K, M]}, [N, M], 2 * N * K * M)
OF_CONV1D = module("Conv1D", [[2, 6, K]], [2, 6, M], {"weight": [K, M], "bias": [M]}, plain=False)
LSTM = operator("lstm", {"input": [2, 5, 12], "hx": {"values": []}}, {"values": [[2, 5, 16]]}, 100_000,
                kind="recurrent")  # fmt: skip
OF_LSTM = module("LSTM", [[2, 5, 12]], {"values": [[2, 5, 16]]}, {}, said={"hidden_size": 16, "num_layers": 2})

# calls; what the tool's books say in FLOPs; causes with their size
CASES: list[tuple[str, list[Any], dict[str, int], dict[str, int]]] = [
    ("right", [LINEAR], {"linear": 960}, {}),
    ("nothing", [LINEAR], {}, {"linear not counted": -960}),
    ("a multiply-add as one", [LINEAR], {"linear": 480}, {"linear with a multiply-add as one FLOP": -480}),
    ("bias", [LINEAR], {"addmm": 960 + 60}, {"bias additions charged, 1 FLOP an element": 60}),
    ("bias, doubled", [LINEAR], {"Linear": 960 + 120}, {"bias additions charged, 2 FLOPs an element": 120}),
    ("twice", [LINEAR], {"linear": 960, "mm": 960}, {"linear counted twice, as linear and as mm": 960}),
    (
        "twice and a bias", [LINEAR], {"Linear": 1080, "mm": 960},
        {"linear counted twice, as Linear and as mm": 960, "bias additions charged, 2 FLOPs an element": 120},
    ),
    ("the bias itself", [LINEAR], {"addmm": 965}, {"biases themselves charged, 1 FLOP an element": 5}),
    (
        "positions dropped", [LINEAR, OF_LINEAR], {"Linear": 2 * 2 * 45},  # 2 · first axis · (8·5 + 5)
        {"linear with positions dropped": 160 - 960, "bias additions charged, 2 FLOPs an element": 20},
    ),
    (
        "a flat layer as a convolution", [CONV1D, OF_CONV1D], {"Conv1D": 2 * 45 * 2 * 5},
        {"addmm taken for a convolution": 900 - 960},
    ),
    ("no such hook", [PLAIN], {}, {"linear not counted": -960}),
    ("attention", [ATTENTION], {}, {"scaled_dot_product_attention not counted": -2304}),
    ("attention as two products", [ATTENTION], {"bmm": 2304}, {}),
    ("half of attention", [ATTENTION], {"bmm": 1152},
     {"scaled_dot_product_attention with a multiply-add as one FLOP": -1152}),
    ("broadcast", [MATMUL], {"matmul": 2 * 24 * 6},  # 2 · prod([6, 4]) · 6
     {"matmul with leading axes of one factor dropped": 288 - 864}),
    ("transposed", [UP], {"ConvTranspose2d": 4 * 768},  # 8×8 results in place of 4×4 inputs
     {"conv_transpose2d with kernels used per output, not per input": 3 * 768}),
    ("norm", [NORM], {"layer_norm": 300}, {"layernorm charged 5 FLOPs an element": 300}),
    ("norm by its parameters", [NORM, OF_NORM], {"LayerNorm": 2 * 2 * 10},
     {"layernorm charged as parameters × first axes of the result": 40}),
    ("pool", [POOL], {"AdaptiveAvgPool2d": 2 * 200},  # 196 read, 4 written
     {"adaptiveavgpool charged 2 FLOPs an element read and one written": 400}),
    ("one-hot", [LOOKUP], {"Embedding": 2 * 12 * 250}, {"lookup charged as a product": 6000}),
    ("one-hot, positions dropped", [LOOKUP], {"Embedding": 2 * 2 * 250},
     {"lookup charged as a product, positions dropped": 1000}),
    ("a cell's arithmetic", [LSTM, OF_LSTM], {"LSTM": 100_000 + 10 * 320},  # 10 positions · 2 layers · 16 units
     {"lstm: work beside the products, 10 FLOPs a hidden unit and position": 3200}),
    ("a cell whole and unrolled", [LSTM, OF_LSTM], {"LSTM": 100_000 + 16 * 320, "mm": 100_000},
     {"lstm counted twice, as LSTM and as mm": 100_000,
      "lstm: work beside the products, 16 FLOPs a hidden unit and position": 5120}),
    ("a cell unrolled", [LSTM, OF_LSTM], {"addmm": 100_000 + 16 * 320},
     {"lstm: work beside the products, 16 FLOPs a hidden unit and position": 5120}),
    ("single numbers", [NORM], {"mul of single numbers": 4},
     {"mul of single numbers charged: lengths of the traced graph among them": 4}),
]  # fmt: skip


@pytest.mark.parametrize(("calls", "books", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_causes(calls: list[Any], books: dict[str, int], expected: dict[str, int]) -> None:
    places = places_of(calls)
    right = sum(place.flops for place in places.values())
    total = sum(books.values())
    causes, unexplained = explain(places, [("m", *each) for each in books.items()], total, right)
    assert {cause.cause: cause.flops for cause in causes} == expected
    assert unexplained == 0
    assert sum(cause.flops for cause in causes) == total - right


def test_what_no_cause_fits_is_unexplained() -> None:
    causes, unexplained = explain(places_of([LINEAR]), [("m", "linear", 967)], 967, 960)
    assert (causes, unexplained) == ((), 7)


def test_an_amount_where_nothing_runs_is_unexplained() -> None:
    causes, unexplained = explain(places_of([LINEAR]), [("m", "linear", 960), ("other", "frobnicate", 5)], 965, 960)
    assert (causes, unexplained) == ((), 5)


def test_a_total_divided_by_the_batch() -> None:
    """Modules, named by their class, are divided and functions are not."""
    places = places_of([LINEAR, ATTENTION])
    books = [("m", "Linear", 960), ("m", "scaled_dot_product_attention", 2304)]
    causes, unexplained = explain(places, books, 480 + 2304, 3264, batch=2)
    assert [(each.cause, each.flops) for each in causes] == [("modules divided by the batch, functions not", -480)]
    assert unexplained == 0


def test_the_same_cause_in_many_places_is_one() -> None:
    calls = [{**LINEAR, "path": f"layers.{i}"} for i in range(3)]
    causes, unexplained = explain(places_of(calls), [], 0, 2880)
    assert [(each.flops, each.places, each.example) for each in causes] == [(-2880, 3, "layers.0")]
    assert unexplained == 0


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([LINEAR, PLAIN, ATTENTION, MATMUL, UP, NORM, POOL, LOOKUP, CONV1D]), max_size=5),
    st.dictionaries(
        st.sampled_from(["linear", "mm", "bmm", "Linear", "layer_norm", "Conv1D", "Embedding", "lstm", "odd"]),
        st.integers(-5, 10_000),
    ),
    st.integers(-10_000, 10_000),
)
def test_causes_and_the_rest_are_the_difference(calls: list[Any], books: dict[str, int], total: int) -> None:
    """Whatever a tool's books say, nothing is lost or made up."""
    places = places_of([{**call, "path": f"m{i}"} for i, call in enumerate(calls)])
    right = sum(place.flops for place in places.values())
    entries = [(f"m{i % 3}", operator_, flops) for i, (operator_, flops) in enumerate(books.items())]
    causes, unexplained = explain(places, entries, total, right)
    assert sum(cause.flops for cause in causes) + unexplained == total - right
    assert all(cause.flops for cause in causes)


@pytest.mark.parametrize(
    ("name", "plain"),
    [("Conv2d", "conv"), ("conv_transpose1d", "conv"), ("_convolution", "conv"), ("add_", "add"), ("expand", "expand"),
     ("BatchNorm3d", "batchnorm"), ("MaxPool1d", "maxpool"), ("_grouped_mm", "groupedmm"), ("GELU", "gelu"),
     ("_scaled_dot_product_flash_attention", "attention"), ("native_layer_norm", "layernorm")],
)  # fmt: skip
def test_names_of_one_thing(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_places_as_rows() -> None:
    ledger = as_ledger(places_of([LINEAR, ATTENTION]))
    assert [(row.path, row.kind, row.model_flops) for row in ledger.rows] == [
        ("m", "linear", 960), ("m", "attention", 2304),
    ]  # fmt: skip
