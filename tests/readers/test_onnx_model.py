"""ONNX files: every operator's FLOPs by hand, dynamic axes, control flow, and hostile files."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import suanli
from suanli.errors import InputError, UnreadableFileError
from suanli.readers.onnx_model import read_onnx
from suanli.readers.onnx_products import einsum

onnx = pytest.importorskip("onnx")
helper, FLOAT, INT64, BOOL, INT8, UINT8 = onnx.helper, 1, 7, 9, 3, 2


def value(name: str, shape: list[object] | None, kind: int = FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name: str, *shape: int, kind: int = FLOAT):
    size = {FLOAT: 4, INT64: 8, INT8: 1, UINT8: 1}[kind]
    elements = 1
    for side in shape:
        elements *= side
    return helper.make_tensor(name, kind, shape, bytes(size * elements), raw=True)


def save(path: Path, nodes, inputs, outputs, initializers=(), opset: int = 17, functions=()) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, [value(name, None) for name in outputs], list(initializers))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=list(functions))
    path.write_bytes(model.SerializeToString())
    return path


def one(tmp_path: Path, op: str, inputs, weights=(), opset: int = 17, outputs: int = 1, domain: str = "", **attributes):
    """FLOPs of a graph of one operator."""
    names = [each.name for each in (*inputs, *weights)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    graph = read_onnx(save(tmp_path / "m.onnx", [node], inputs, ["y0"], weights, opset), {})
    assert graph.missing == (), graph.missing
    return sum(row.model_flops for row in graph.rows)


MSFT = {"domain": "com.microsoft"}
OPERATORS = [
    ("MatMul", [value("a", [3, 4, 5])], [weight("b", 5, 6)], {}, 2 * 12 * 5 * 6),
    ("MatMul", [value("a", [64, 32]), value("b", [8, 32, 64])], [], {}, 2 * 8 * 64 * 32 * 64),
    ("MatMul", [value("a", [5]), value("b", [5])], [], {}, 2 * 5),
    ("MatMulInteger", [value("a", [4, 5], UINT8)], [weight("b", 5, 6, kind=INT8)], {}, 2 * 4 * 5 * 6),
    ("Gemm", [value("a", [5, 4])], [weight("b", 6, 5), weight("c", 6)], {"transA": 1, "transB": 1}, 2 * 4 * 5 * 6),
    ("Conv", [value("x", [2, 8, 9, 9])], [weight("w", 16, 4, 3, 3)], {"group": 2, "strides": [2, 2]},
     2 * 2 * 16 * 4 * 4 * 4 * 9),
    ("Conv", [value("x", [1, 3, 16])], [weight("w", 4, 3, 3)], {"dilations": [2], "pads": [2, 2]}, 2 * 4 * 16 * 3 * 3),
    # ConvTranspose2d(192, 384, 2, stride 2) on [6, 192, 30, 96]: 10,192,158,720 (pytorch#119806)
    ("ConvTranspose", [value("x", [6, 192, 30, 96])], [weight("w", 192, 384, 2, 2)], {"strides": [2, 2]},
     10_192_158_720),
    # LSTM(12, 128) on 250 steps: 35,840,000 (tnt#624)
    ("LSTM", [value("x", [250, 1, 12])], [weight("w", 1, 512, 12), weight("r", 1, 512, 128)], {"hidden_size": 128},
     35_840_000),
    ("GRU", [value("x", [7, 2, 5])], [weight("w", 2, 12, 5), weight("r", 2, 12, 4)],
     {"hidden_size": 4, "direction": "bidirectional"}, 2 * 7 * 2 * 2 * 12 * (5 + 4)),
    ("RNN", [value("x", [7, 2, 5])], [weight("w", 1, 4, 5), weight("r", 1, 4, 4)], {"hidden_size": 4},
     2 * 14 * 4 * (5 + 4)),
    ("Einsum", [value("a", [2, 3, 4]), value("b", [2, 4, 5])], [], {"equation": "bij,bjk->bik"}, 2 * 2 * 3 * 4 * 5),
    ("FusedMatMul", [value("a", [2, 5, 4]), value("b", [2, 6, 5])], [], {"transA": 1, "transB": 1, **MSFT},
     2 * 2 * 4 * 5 * 6),
    ("MatMulNBits", [value("a", [2, 3, 64])], [weight("b", 32, 2, 16, kind=UINT8), weight("s", 64)],
     {"K": 64, "N": 32, "bits": 4, "block_size": 32, **MSFT}, 2 * 6 * 64 * 32),
    # packed projection 2·2·7·16·48 and pairs 2·2·49·16·2
    ("Attention", [value("x", [2, 7, 16])], [weight("w", 16, 48), weight("b", 48)], {"num_heads": 4, **MSFT},
     2 * 14 * 16 * 48 + 2 * 2 * 49 * 16 * 2),
    ("MultiHeadAttention", [value("q", [2, 7, 16]), value("k", [2, 9, 16]), value("v", [2, 9, 16])], [],
     {"num_heads": 4, **MSFT}, 2 * 2 * 63 * 16 * 2),
    ("GroupQueryAttention", [value("q", [2, 7, 16]), value("k", [2, 7, 8]), value("v", [2, 7, 8])], [],
     {"num_heads": 4, "kv_num_heads": 2, **MSFT}, 2 * 2 * 49 * 16 * 2),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "weights", "attributes", "flops"), OPERATORS, ids=lambda x: str(x)[:20])
def test_an_operator(tmp_path: Path, op, inputs, weights, attributes, flops) -> None:
    assert one(tmp_path, op, inputs, weights, **attributes) == flops


def test_attention_of_the_standard(tmp_path: Path) -> None:
    four = [value("q", [1, 12, 64, 64]), value("k", [1, 12, 64, 64]), value("v", [1, 12, 64, 64])]
    assert one(tmp_path, "Attention", four, opset=23) == 12_582_912  # pytorch#195460
    three = [value("q", [2, 7, 16]), value("k", [2, 9, 8]), value("v", [2, 9, 8])]
    assert one(tmp_path, "Attention", three, opset=23, q_num_heads=4, kv_num_heads=2) == 2 * 2 * 63 * 16 * 2


def test_quantised(tmp_path: Path) -> None:
    scales = [weight(f"s{i}") for i in range(3)]
    zeros = [weight(f"z{i}", kind=UINT8) for i in range(3)]
    w = weight("w", 5, 6, kind=UINT8)
    order = ["a", "s0", "z0", "w", "s1", "z1", "s2", "z2"]
    node = helper.make_node("QLinearMatMul", order, ["y"])
    path = save(tmp_path / "m.onnx", [node], [value("a", [4, 5], UINT8)], ["y"], [*scales, *zeros, w])
    found = suanli.count(str(path))
    assert found.flops.model == 2 * 4 * 5 * 6
    assert found.params.total == 30 and found.bytes.weights == 30  # scalars are no parameters


@pytest.mark.parametrize(
    ("equation", "shapes", "flops"),
    [
        ("ij,jk", [(2, 3), (3, 4)], 48),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)], 5 * 48),
        ("i,j->ij", [(2,), (3,)], 0),  # elementwise: nothing is summed
        ("ij->i", [(2, 3)], 0),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], 48 + 2 * 2 * 4 * 5),
        ("ij,jkm->i", [(2, 3), (3, 4, 5)], 2 * 2 * 3),  # k and m are summed before
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)], 2 * 2 * 3 * 4 * 5 * 6),
    ],
)
def test_einsum(equation: str, shapes, flops: int) -> None:
    assert einsum(equation, shapes)[1] == flops


# --- axes ---------------------------------------------------------------------------------------------------------


def dynamic(tmp_path: Path) -> str:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return str(save(tmp_path / "m.onnx", [node], [value("x", ["batch", "seq", 8])], ["y"], [weight("w", 8, 4)]))


def test_axes_are_bound(tmp_path: Path) -> None:
    path = dynamic(tmp_path)
    for given in (
        {"input": "x:2x3x8"},
        {"input": ["batch=2", "seq=3"]},
        {"batch": 2, "seq": 3},
        {"input": {"x": [2, 3, 8]}},
    ):
        found = suanli.count(path, **given)
        assert found.flops.model == 2 * 6 * 8 * 4
        assert (found.params.total, found.bytes.weights) == (32, 128)
        assert (found.rows[0].read_bytes, found.rows[0].write_bytes) == (4 * (48 + 32), 4 * 24)


def test_axes_that_cannot_be(tmp_path: Path) -> None:
    path = dynamic(tmp_path)
    with pytest.raises(InputError) as caught:
        suanli.count(path)
    assert [fault.message for fault in caught.value.faults] == [
        "axis batch of input x has no size", "axis seq of input x has no size",
    ]  # fmt: skip
    for given, words in (
        ("x:2x3x9", "axis 2 of input x is fixed"), ("x:2x3", "another number of axes"),
        ("z:2x3", "no input or axis 'z'"),
        ("x=3", "x is an input"), ("nonsense", "the size cannot be read"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            suanli.count(path, input=given)
    with pytest.raises(InputError, match="a program is counted as it stands"):
        suanli.count(path, batch=1, seq=1, phase="train")


# --- control flow -------------------------------------------------------------------------------------------------


def test_scan_is_multiplied_by_its_length(tmp_path: Path) -> None:
    body = helper.make_graph(
        [helper.make_node("MatMul", ["s", "w"], ["t"]), helper.make_node("MatMul", ["t", "x"], ["so"])], "b",
        [value("s", None), value("x", None)], [value("so", None)],
    )  # fmt: skip
    node = helper.make_node("Scan", ["s0", "xs"], ["end"], body=body, num_scan_inputs=1)
    path = save(
        tmp_path / "m.onnx", [node], [value("s0", [4, 4]), value("xs", [7, 4, 4])], ["end"], [weight("w", 4, 4)]
    )
    graph = read_onnx(path, {})
    assert graph.missing == ()
    assert sum(row.model_flops for row in graph.rows) == 7 * 2 * (2 * 4 * 4 * 4)


def loop(tmp_path: Path, computed: bool, bound: bool) -> Path:
    condition = (
        helper.make_node("Less", ["i", "i"], ["co"]) if computed else helper.make_node("Identity", ["c"], ["co"])
    )
    body = helper.make_graph(
        [condition, helper.make_node("MatMul", ["s", "w"], ["so"])], "b",
        [value("i", [], INT64), value("c", [], BOOL), value("s", [4, 4])], [value("co", [], BOOL), value("so", [4, 4])],
    )  # fmt: skip
    trips = helper.make_tensor("n", INT64, [], [5])
    node = helper.make_node("Loop", ["n", "", "s0"], ["end"], body=body)
    inputs = [value("s0", [4, 4])] + ([] if bound else [value("n", [], INT64)])
    return save(tmp_path / "m.onnx", [node], inputs, ["end"], [weight("w", 4, 4), *([trips] if bound else [])])


@pytest.mark.parametrize(("computed", "bound", "trips"), [(False, True, 5), (True, True, None), (False, False, None)])
def test_loops(tmp_path: Path, computed: bool, bound: bool, trips: int | None) -> None:
    found = suanli.count(str(loop(tmp_path, computed, bound)))
    assert found.flops.model == (trips or 1) * 2 * 64
    assert found.lower_bound == (trips is None)
    assert [item.op for item in found.without_formula] == ([] if trips else ["Loop"])


def test_the_dearer_branch(tmp_path: Path) -> None:
    def branch(width: int):
        return helper.make_graph([helper.make_node("MatMul", ["x", f"w{width}"], ["o"])], "b", [], [value("o", None)])

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch(3), else_branch=branch(9))
    inputs, weights = [value("c", [], BOOL), value("x", [2, 4])], [weight("w3", 4, 3), weight("w9", 4, 9)]
    graph = read_onnx(save(tmp_path / "m.onnx", [node], inputs, ["y"], weights), {})
    assert sum(row.model_flops for row in graph.rows) == 2 * 2 * 4 * 9
    assert "branches of If" in graph.notes[0]


def test_functions_are_inlined(tmp_path: Path) -> None:
    body = [helper.make_node("MatMul", ["a", "b"], ["c"])]
    function = helper.make_function("own", "Mine", ["a", "b"], ["c"], body, [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("Mine", ["x", "w"], ["y"], domain="own")]
    path = save(tmp_path / "m.onnx", nodes, [value("x", [2, 4])], ["y"], [weight("w", 4, 3)], functions=[function])
    assert sum(row.model_flops for row in read_onnx(path, {}).rows) == 48


# --- never silently zero ------------------------------------------------------------------------------------------


def test_what_has_no_formula_is_listed(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Magic", ["x"], ["t"], domain="own"), helper.make_node("MatMul", ["t", "w"], ["u"]),
        helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Relu", ["z"], ["y"]),
    ]  # fmt: skip
    found = suanli.count(str(save(tmp_path / "m.onnx", nodes, [value("x", [2, 4])], ["y"], [weight("w", 4, 3)])))
    assert found.flops.model == 48 and found.lower_bound
    assert [(item.op, item.shapes, item.calls, item.why) for item in found.without_formula] == [
        ("own.Magic", "[2, 4]", 1, "no formula"), ("MatMul", "?, [4, 3]", 1, "the shape of input 1 is not known"),
    ]  # fmt: skip
    assert found.to_dict()["uncounted"][0]["op"] == "own.Magic"


def test_shapes_pass_through_fused_operators(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SkipLayerNormalization", ["x", "x", "g"], ["t"], domain="com.microsoft"),
        helper.make_node("MatMul", ["t", "w"], ["y"]),
    ]  # fmt: skip
    path = save(tmp_path / "m.onnx", nodes, [value("x", [2, 5, 4])], ["y"], [weight("w", 4, 3), weight("g", 4)])
    graph = read_onnx(path, {})
    assert graph.missing == () and sum(row.model_flops for row in graph.rows) == 2 * 10 * 4 * 3


# --- hostile ------------------------------------------------------------------------------------------------------


def refusal(path: Path) -> str:
    start = time.process_time()
    with pytest.raises(UnreadableFileError) as caught:
        read_onnx(path, {})
    assert time.process_time() - start < 5
    assert len(caught.value.faults) == 1
    return str(caught.value)


def test_cycles_and_values_of_nowhere(tmp_path: Path) -> None:
    x = [value("x", [2, 2])]
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Add", ["x", "a"], ["b"])]
    assert "the graph has a cycle or is not sorted" in refusal(save(tmp_path / "m.onnx", nodes, x, ["b"]))
    nodes = [helper.make_node("Add", ["x", "q"], ["b"])]
    assert "'q' is made nowhere" in refusal(save(tmp_path / "m.onnx", nodes, x, ["b"]))


def test_cut_off_and_no_model(tmp_path: Path) -> None:
    whole = Path(dynamic(tmp_path)).read_bytes()
    path = tmp_path / "bad.onnx"
    for content in (whole[: len(whole) // 2], whole[:-1], b"\xff" * 1000, b"hello", b""):
        path.write_bytes(content)
        assert "is no ONNX model" in refusal(path) or "holds no operations" in refusal(path)
    assert "cannot be opened" in refusal(tmp_path / "none.onnx")


def test_values_made_twice(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["b"]), helper.make_node("Exp", ["x"], ["b"])]
    assert "'b' is made twice" in refusal(save(tmp_path / "m.onnx", nodes, [value("x", [2, 2])], ["b"]))


def test_stored_tensors_that_cannot_be(tmp_path: Path) -> None:
    """All of them in one error."""
    bad = [
        onnx.TensorProto(name="a", data_type=FLOAT, dims=[-4, 5]),
        onnx.TensorProto(name="b", data_type=FLOAT, dims=[2**40, 2**40]),
        onnx.TensorProto(name="c", data_type=99, dims=[4]),
    ]
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [value("x", [2, 3])], ["y"], bad)
    with pytest.raises(UnreadableFileError) as caught:
        read_onnx(path, {})
    assert [(fault.message, fault.got) for fault in caught.value.faults] == [
        ("a size that cannot be", "[-4, 5]"), ("a size that cannot be", "[1099511627776, 1099511627776]"),
        ("unknown dtype", "99"),
    ]  # fmt: skip


def test_inputs_too_large_to_be(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [value("x", [2**40, 2**40])], ["y"])
    with pytest.raises(InputError, match="input x is too large in --input; got 1099511627776x1099511627776"):
        read_onnx(path, {})


def test_huge_values_are_never_made(tmp_path: Path) -> None:
    """10⁹ by 10⁹ of a constant: shapes alone."""
    size = helper.make_tensor("s", INT64, [2], [10**9, 10**9])
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("MatMul", ["c", "c"], ["y"])]
    found = suanli.count(str(save(tmp_path / "m.onnx", nodes, [value("x", [1])], ["y"], [size])))
    assert found.flops.model == 2 * 10**27


def test_weights_beside_the_file_are_not_asked_for(tmp_path: Path) -> None:
    """Only their shapes are; where a shape itself is stored outside, what depends on it is listed, no file opened."""
    outside = onnx.TensorProto(name="w", data_type=FLOAT, dims=[4, 5], data_location=onnx.TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="missing.bin")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    found = suanli.count(str(save(tmp_path / "m.onnx", nodes, [value("x", [3, 4])], ["y"], [outside])))
    assert (found.flops.model, found.params.total) == (120, 20)
    shape = onnx.TensorProto(name="s", data_type=INT64, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    shape.external_data.add(key="location", value="../../../etc/hostname")
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])]
    found = suanli.count(str(save(tmp_path / "m.onnx", nodes, [value("x", [3, 4])], ["y"], [shape, weight("w", 4, 5)])))
    assert found.lower_bound and found.flops.model == 0


def test_an_equation_that_is_none_is_listed(tmp_path: Path) -> None:
    """Not counted as a product without a sum."""
    node = helper.make_node("Einsum", ["x", "x"], ["y"], equation="ij,jk->" * 9)
    graph = read_onnx(save(tmp_path / "m.onnx", [node], [value("x", [4, 4])], ["y"]), {})
    assert [item.why for item in graph.missing] == ["the equation cannot be read"]
    assert einsum(" ij , jk -> ik ", [(2, 3), (3, 4)])[1] == 48


def calls(name: str, *called: str):
    """A function of its own domain that calls others one after another."""
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"], domain="own") for i, op in enumerate(called)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["v0"], [f"v{len(called)}"], nodes, opsets)


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    nodes = [helper.make_node("A", ["x"], ["y"], domain="own")]
    functions = [calls("A", "B"), calls("B", "A")]
    path = save(tmp_path / "m.onnx", nodes, [value("x", [2])], ["y"], functions=functions)
    assert "the function 'A' calls itself" in refusal(path)


def test_functions_that_double(tmp_path: Path) -> None:
    """Thirty of them, each two of the one before: 2³⁰ operations are counted, not made."""
    functions = [calls("F0", "Relu")] + [calls(f"F{i}", f"F{i - 1}", f"F{i - 1}") for i in range(1, 31)]
    nodes = [helper.make_node("F30", ["x"], ["y"], domain="own")]
    path = save(tmp_path / "m.onnx", nodes, [value("x", [2])], ["y"], functions=functions)
    assert "too many operations" in refusal(path) and "got 1,073,741,824" in refusal(path)


def test_a_file_without_opsets(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x", [3, 4])], [value("y", None)],
        [weight("w", 4, 5)],
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx.ModelProto(graph=graph).SerializeToString())
    assert "contradict each other" in refusal(path)


def test_shapes_that_contradict(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [value("x", [2, 3])], ["y"], [weight("w", 4, 3)])
    found = None
    try:
        found = read_onnx(path, {})
    except UnreadableFileError as problem:
        assert "contradict" in str(problem)
    assert found is None or found.missing


def test_a_million_operations_are_refused_in_seconds(tmp_path: Path) -> None:
    graph = onnx.GraphProto(name="g")
    node = helper.make_node("Relu", ["x"], ["y"]).SerializeToString()
    field = b"\x0a" + bytes([len(node)]) + node
    graph.input.extend([value("x", [2])])
    body = graph.SerializeToString() + field * 1_000_000
    length, size = len(body), b""
    while length:
        size += bytes([length & 0x7F | (0x80 if length > 0x7F else 0)])
        length >>= 7
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x3a" + size + body)
    assert "too many operations" in refusal(path)
