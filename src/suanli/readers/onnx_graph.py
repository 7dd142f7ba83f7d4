"""Walks an ONNX graph: shapes of every value, rows of work, loops times their trips, branches by the dearer one."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from functools import cache
from math import prod
from typing import Any

from suanli.nouns.graph import Missing, Stored
from suanli.nouns.ledger import FORWARD, Op
from suanli.readers.onnx_checks import all_initializers, domain_of, subgraphs
from suanli.readers.onnx_products import NO_FORMULA, PASSIVE_CONTRIB, PRODUCTS, Call, Shape, UnknownShapeError
from suanli.units import BITS_PER_BYTE

SMALL = 4096  # initializers up to this many elements keep their data: shapes are computed from them

_SMALL_INTS = {"UINT8", "INT8", "UINT4", "INT4", "UINT2", "INT2"}


def stored_weights(graph: Any) -> dict[str, Stored]:
    """Elements and bytes of stored tensors by dtype: floats of any width and integers of 8 bits or fewer, not scalars
    (these and wide integers are constants of the program).
    """
    import onnx  # noqa: PLC0415

    found: dict[str, tuple[int, int]] = {}
    for tensor in all_initializers(graph):
        name = onnx.TensorProto.DataType.Name(tensor.data_type)
        if not tensor.dims or not ("FLOAT" in name or name in {"DOUBLE", *_SMALL_INTS}):
            continue
        elements, size = found.get(name, (0, 0))
        count = prod(tensor.dims)
        found[name] = (elements + count, size + -(-count * _bits(name) // BITS_PER_BYTE))
    return {name: Stored(elements=elements, bytes=size) for name, (elements, size) in found.items()}


@cache
def _bits(name: str) -> int:
    """Bits of an element of a dtype of ONNX, told by its name."""
    if name == "DOUBLE":
        return 64
    digits = "".join(c if c.isdigit() else " " for c in name.removeprefix("B").partition("E")[0]).split()
    return int(digits[0]) if digits else 32  # FLOAT


def strip_weights(graph: Any) -> None:
    """Drop the data of weights: shapes do not need them, and copies of the graph stay small."""
    for tensor in all_initializers(graph):
        if prod(tensor.dims) > SMALL:
            tensor.ClearField("raw_data")
            for name in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "external_data"):
                tensor.ClearField(name)
            tensor.ClearField("data_location")


def _used(graph: Any) -> Iterator[str]:
    """Names of every value read in a graph or inside it."""
    for node in graph.node:
        yield from node.input
        for _, inner in subgraphs(node):
            yield from _used(inner)
            yield from (value.name for value in inner.output)


Types = ChainMap[str, Any]  # values of a graph and of those around it


class Walk:
    """Rows, operators without a formula, and remarks, gathered from a graph and everything inside it."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.rows: list[Op] = []
        self.missing = Missing()
        self.notes: dict[str, None] = {}

    def graph(self, graph: Any, prefix: str, times: int, outer: Types) -> None:
        """Every node of a graph that runs `times` times; `outer` are types of values from outside."""
        types = outer.new_child(self._types(graph, outer))
        constants = {tensor.name: tensor for tensor in graph.initializer}
        constants |= {
            node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant" and node.attribute
        }
        for index, node in enumerate(graph.node):
            path = prefix + (node.name.strip("/").replace("/", ".") or f"{node.op_type}_{index}")
            if node.op_type in ("Loop", "Scan", "If") and domain_of(node) == "":
                self._control(node, path, times, types, constants)
            else:
                self._node(node, path, times, types)

    def _types(self, graph: Any, outer: Types) -> dict[str, Any]:
        """Type of every value, by onnx's inference on a copy in which unknown operators that keep shapes are copies."""
        import onnx  # noqa: PLC0415

        copy = onnx.ModelProto(ir_version=self.model.ir_version, opset_import=self.model.opset_import)
        copy.graph.CopyFrom(graph)
        if not copy.graph.name:
            copy.graph.name = "graph"
        own = {value.name for value in copy.graph.input} | {tensor.name for tensor in copy.graph.initializer}
        used = {name for name in _used(graph) if name in outer and name not in own}
        copy.graph.input.extend(onnx.helper.make_value_info(name, outer[name]) for name in sorted(used))
        for node in copy.graph.node:
            if node.domain and domain_of(node) and node.op_type in PASSIVE_CONTRIB:
                first, out = node.input[0], node.output[0]
                node.Clear()
                node.op_type = "Identity"
                node.input.append(first)
                node.output.append(out)
        inferred = onnx.shape_inference.infer_shapes(copy, check_type=False, data_prop=True).graph
        found = {value.name: value.type for value in (*inferred.input, *inferred.value_info, *inferred.output)}
        for tensor in graph.initializer:
            found[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        return found

    def _node(self, node: Any, path: str, times: int, types: Types) -> None:
        domain = domain_of(node)
        call = Call(
            node.op_type,
            tuple(shape_of(types.get(name)) for name in node.input),
            tuple(shape_of(types.get(name)) for name in node.output),
            {attribute.name: _value(attribute) for attribute in node.attribute},
        )
        formula = PRODUCTS.get((domain, node.op_type))
        if formula is None:
            if not _is_passive(domain, node.op_type):
                self.missing.add(_named(domain, node.op_type), shapes_text(call.inputs), times)
            return
        try:
            name, flops = formula(call)
        except (UnknownShapeError, IndexError, ValueError, ZeroDivisionError) as problem:
            why = str(problem) if isinstance(problem, UnknownShapeError) else "its shapes do not fit"
            self.missing.add(_named(domain, node.op_type), shapes_text(call.inputs), times, why)
            return
        moved = [sum(_nbytes(types.get(each)) for each in names) * times for names in (node.input, node.output)]
        reads, writes = moved
        self.rows.append(Op(path, node.op_type, FORWARD, flops * times, flops * times, reads, writes, 0, times, name))

    # --- control flow ---------------------------------------------------------------------------------------------

    def _control(self, node: Any, path: str, times: int, types: Types, constants: dict[str, Any]) -> None:
        inner = dict(subgraphs(node))
        if node.op_type == "If":
            self._branches(inner, path, times, types)
            return
        body = inner["body"]
        trips, offset = self._scan(node, types) if node.op_type == "Scan" else self._loop(node, body, constants)
        feeds = [shape_type(types.get(name)) for name in node.input[offset:]]
        if node.op_type == "Loop":
            feeds = [None, None, *feeds]
        _give_types(body, feeds, self._sliced(node, types))
        if trips is None:
            self.missing.add(node.op_type, path, times, "the number of trips is not known; its body is counted once")
        self.graph(body, f"{path}.", times * (1 if trips is None else trips), types)

    def _scan(self, node: Any, types: Types) -> tuple[int | None, int]:
        attributes = {attribute.name: _value(attribute) for attribute in node.attribute}
        count = attributes.get("num_scan_inputs", 1)
        shape = shape_of(types.get(node.input[-count])) if count else None
        axis = (attributes.get("scan_input_axes") or [0])[0]
        return (None if shape is None else shape[axis]), 0

    def _loop(self, node: Any, body: Any, constants: dict[str, Any]) -> tuple[int | None, int]:
        """Trips of a loop: its constant bound, where its condition is not computed."""
        from onnx import numpy_helper  # noqa: PLC0415

        bound = constants.get(node.input[0]) if node.input and node.input[0] else None
        if bound is None or not _always(body) or prod(bound.dims) != 1:
            return None, 2
        return int(numpy_helper.to_array(bound).reshape(-1)[0]), 2

    def _sliced(self, node: Any, types: Types) -> dict[int, Shape | None]:
        """Shapes of a scan's inputs without the axis that is run over, by their place."""
        if node.op_type != "Scan":
            return {}
        attributes = {attribute.name: _value(attribute) for attribute in node.attribute}
        count = attributes.get("num_scan_inputs", 1)
        axes = attributes.get("scan_input_axes") or [0] * count
        first = len(node.input) - count
        found: dict[int, Shape | None] = {}
        for place, axis in enumerate(axes):
            shape = shape_of(types.get(node.input[first + place]))
            found[first + place] = None if shape is None else shape[:axis] + shape[axis + 1 or len(shape) :]
        return found

    def _branches(self, branches: dict[str, Any], path: str, times: int, types: Types) -> None:
        """The branch with more FLOPs is counted; what has no formula is listed of both."""
        best: list[Op] = []
        for name, branch in branches.items():
            apart = Walk(self.model)
            apart.missing, apart.notes = self.missing, self.notes
            apart.graph(branch, f"{path}.{name}.", times, types)
            if sum(row.model_flops for row in apart.rows) >= sum(row.model_flops for row in best):
                best = apart.rows
        self.rows.extend(best)
        self.notes["of the branches of If the one with more FLOPs is counted"] = None


def _give_types(body: Any, feeds: list[Any], sliced: dict[int, Shape | None]) -> None:
    """Types of a body's inputs, where the loop's inputs have them."""
    for place, (value, kind) in enumerate(zip(body.input, feeds, strict=False)):
        if kind is None:
            continue
        value.type.CopyFrom(kind)
        if place in sliced:
            value.type.tensor_type.shape.Clear()
            for size in sliced[place] or ():
                value.type.tensor_type.shape.dim.add().dim_value = size


def _always(body: Any) -> bool:
    """Whether a loop's body passes its condition through, or always answers yes."""
    condition = body.output[0].name
    maker = {name: node for node in body.node for name in node.output}
    while condition in maker and maker[condition].op_type == "Identity":
        condition = maker[condition].input[0]
    if condition == body.input[1].name:
        return True
    node = maker.get(condition)
    tensors = [t for t in body.initializer if t.name == condition]
    if node is not None and node.op_type == "Constant":
        tensors = [attribute.t for attribute in node.attribute if attribute.HasField("t")]
    return any(bool(t.int32_data and t.int32_data[0]) or t.raw_data == b"\x01" for t in tensors)


# --- types and names ----------------------------------------------------------------------------------------------


def shape_type(kind: Any) -> Any:
    """A tensor's type, None for anything else."""
    return kind if kind is not None and kind.HasField("tensor_type") else None


def shape_of(kind: Any) -> Shape | None:
    """The shape where every axis is known."""
    if shape_type(kind) is None or not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    return tuple(dim.dim_value for dim in dims) if all(dim.HasField("dim_value") for dim in dims) else None


def _nbytes(kind: Any) -> int:
    """Bytes of a value; 0 where its shape is not known."""
    import onnx  # noqa: PLC0415

    shape = shape_of(kind)
    if shape is None or kind.tensor_type.elem_type == 0:
        return 0
    name = onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type)
    bits = BITS_PER_BYTE if name in ("BOOL", "STRING") else _bits(name)
    return -(-prod(shape) * bits // BITS_PER_BYTE)


def shapes_text(shapes: tuple[Shape | None, ...]) -> str:
    """Shapes as messages show them."""
    return ", ".join("?" if shape is None else "[" + ", ".join(map(str, shape)) + "]" for shape in shapes[:6])


def _named(domain: str, op: str) -> str:
    return f"{domain}.{op}" if domain else op


def _value(attribute: Any) -> Any:
    """A number, a word or a list of numbers."""
    from onnx import AttributeProto  # noqa: PLC0415

    kinds = AttributeProto.AttributeType
    readers = {
        kinds.INT: lambda: attribute.i,
        kinds.FLOAT: lambda: attribute.f,
        kinds.STRING: lambda: attribute.s.decode("utf-8", errors="replace"),
        kinds.INTS: lambda: list(attribute.ints),
    }
    read: Any = readers.get(attribute.type)
    return None if read is None else read()


def _is_passive(domain: str, op: str) -> bool:
    """Whether an operator is known to multiply no matrices."""
    import onnx  # noqa: PLC0415

    if domain == "":
        return op not in NO_FORMULA and onnx.defs.has(op)
    return domain == "com.microsoft" and op in PASSIVE_CONTRIB
