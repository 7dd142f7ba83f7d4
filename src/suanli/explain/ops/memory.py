"""Least bytes an operator moves: every input and output once, nothing kept in cache between operators.

A lower bound. Views that see a part of a tensor count as the part; compiled pointers count whole, read or written once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from suanli.explain.ops.call import Call, Shape
from suanli.explain.ops.dtypes import bits_of
from suanli.units import BITS_PER_BYTE

Bytes = float | None

# reads what it is given, writes one tensor of the shape they broadcast to
_POINTWISE = """
    add sub rsub mul div true_divide pow sqrt rsqrt exp log log2 log1p neg abs sin cos tanh sigmoid relu gelu silu erf
    leaky_relu clamp clamp_min clamp_max maximum minimum where lerp addcmul addcdiv square reciprocal sign hardtanh
    hardswish mish softplus masked_fill bitwise_not bitwise_and bitwise_or logical_and logical_or logical_not eq ne lt
    le gt ge nan_to_num clone contiguous _to_copy sigmoid_backward tanh_backward threshold_backward gelu_backward
    silu_backward native_dropout native_dropout_backward _softmax softmax _log_softmax _softmax_backward_data
    _log_softmax_backward_data layer_norm native_layer_norm rms_norm _fused_rms_norm native_group_norm group_norm
    native_batch_norm batch_norm cudnn_batch_norm miopen_batch_norm flip roll mse_loss_backward
"""
_IN_PLACE = """
    add_ sub_ mul_ div_ relu_ clamp_ clamp_min_ sigmoid_ tanh_ exp_ log_ sqrt_ neg_ addcmul_ addcdiv_ lerp_ masked_fill_
    threshold_ silu_ gelu_ nan_to_num_ logical_and_
"""
_REDUCTIONS = """
    sum mean max min amax amin argmax argmin prod norm linalg_vector_norm var std all any nll_loss_forward mse_loss
"""
_WRITES = "fill_ zero_ normal_ uniform_ bernoulli_ random_"
_NORMS_BACK = "native_layer_norm_backward native_batch_norm_backward cudnn_batch_norm_backward"


def tensor_bytes(call: Call, at: int) -> Bytes:
    """Bytes of argument `at`; None where it is no tensor or its type is not known."""
    shape, bits = call.shape(at), bits_of(call.type(at))
    return None if shape is None or bits is None else prod(shape) * bits / BITS_PER_BYTE


def _inputs(call: Call) -> Bytes:
    """All tensors given, each once; None where one has no known type."""
    places = [at for at in range(len(call.detail.dims or ())) if call.shape(at) is not None]
    sizes = [tensor_bytes(call, at) for at in places]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _element(call: Call, at: int = 0) -> float | None:
    bits = bits_of(call.type(at))
    return None if bits is None else bits / BITS_PER_BYTE


def _with_output(call: Call, shape: Shape | None, at: int = 0) -> Bytes:
    """Inputs and an output of `shape` in the type of argument `at`."""
    read, element = _inputs(call), _element(call, at)
    return None if read is None or element is None or shape is None else read + prod(shape) * element


def _joined(call: Call) -> Shape | None:
    """The shape that all tensors broadcast to: the largest of each dimension, counted from the last."""
    shapes = call.shapes()
    rank = max(map(len, shapes), default=0)
    wide = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(map(max, zip(*wide, strict=True))) if wide else None


def pointwise(call: Call) -> Bytes:
    """Reads what is given, writes what that broadcasts to."""
    return _with_output(call, _joined(call))


def in_place(call: Call) -> Bytes:
    """Reads everything, writes the first once more."""
    return _with_output(call, call.shape(0))


def copy(call: Call) -> Bytes:
    """copy_(target, source): the target is written, not read."""
    return _inputs(call)


def write(call: Call) -> Bytes:
    """Writes the first."""
    return tensor_bytes(call, 0)


def reduction(call: Call) -> Bytes:
    """Reads the first; what comes out is smaller and left out, as its dimensions are not always recorded."""
    return tensor_bytes(call, 0)


def embedding(call: Call) -> Bytes:
    """Reads one row an index and writes it."""
    table, index = call.shape(0), call.shape(1)
    element, read = _element(call), tensor_bytes(call, 1)
    if table is None or index is None or element is None or read is None:
        return None
    return read + 2 * prod(index) * table[-1] * element


def index_select(call: Call) -> Bytes:
    """index_select(source, dim, index): reads the rows it writes."""
    source, index = call.shape(0), call.shape(2)
    element, read = _element(call), tensor_bytes(call, 2)
    if source is None or index is None or element is None or read is None or not source[0]:
        return None
    return read + 2 * prod(index) * prod(source) // source[0] * element


def norm_backward(call: Call) -> Bytes:
    """Reads all, writes the input's gradient; those of the weights are small."""
    return _with_output(call, call.shape(0))


def concatenate(call: Call) -> Bytes:
    """Reads every tensor of the list, writes them side by side. The list has one type, that of its tensors."""
    element = _list_element(call)
    return None if element is None else 2 * sum(map(prod, call.shapes())) * element


def _list_element(call: Call) -> float | None:
    types = call.detail.types or ()
    first = types[0] if types else ""
    inner = first[0] if isinstance(first, tuple | list) and first else first
    bits = bits_of(inner) if isinstance(inner, str) else None
    return None if bits is None else bits / BITS_PER_BYTE


def gated(call: Call) -> Bytes:
    """silu_and_mul(out, in): both are given."""
    return _inputs(call)


def compiled(call: Call) -> Bytes:
    """A generated kernel: each pointer it is given is read or written once."""
    return _inputs(call)


def _rules() -> dict[str, Callable[[Call], Bytes]]:
    table: dict[str, Callable[[Call], Bytes]] = {}
    for names, rule in (
        (_POINTWISE, pointwise), (_IN_PLACE, in_place), (_REDUCTIONS, reduction), (_WRITES, write),
        (_NORMS_BACK, norm_backward), ("copy_", copy), ("embedding", embedding), ("index_select", index_select),
        ("cat _cat stack", concatenate),
    ):  # fmt: skip
        table |= {f"aten::{name}": rule for name in names.split()}
    table |= dict.fromkeys(("sgl_kernel::silu_and_mul", "_C::silu_and_mul", "aiter::silu_and_mul"), gated)
    table |= dict.fromkeys(("aiter::rmsnorm", "aiter::add_rmsnorm", "_C::rms_norm", "_C::fused_add_rms_norm"), gated)
    return table


RULES = _rules()


def bytes_of(call: Call) -> Bytes:
    """Least bytes of a call that multiplies nothing; None where no rule knows it or the trace does not say enough."""
    if call.name.startswith("triton_"):
        return compiled(call)
    rule = RULES.get(call.name)
    return None if rule is None else rule(call)


def has_rule(name: str) -> bool:
    """Whether an operator's bytes are known by a rule."""
    return name in RULES or name.startswith("triton_")


# --- products ---------------------------------------------------------------------------------------------------

# arguments read, argument that decides the type of the output
_FACTORS = {
    "aten::mm": (0, 1), "aten::bmm": (0, 1), "aten::matmul": (0, 1), "aten::addmm": (0, 1, 2), "aten::_int_mm": (0, 1),
    "aten::baddbmm": (0, 1, 2), "aten::linear": (0, 1, 2), "aten::_scaled_mm": (0, 1), "aten::_grouped_mm": (0, 1),
    "aiter::gemm_a16w16": (0, 1), "vllm::rocm_unquantized_gemm": (0, 1),
}  # fmt: skip


def product_bytes(call: Call) -> Bytes:
    """Factors and result of a product, or q, k, v and the result of attention, each once."""
    places = _FACTORS.get(call.name)
    if places is None:
        return None
    given = [tensor_bytes(call, at) for at in places if call.shape(at) is not None]
    out = _product_shape(call, places)
    element = _element(call, places[-2] if len(places) > 2 else places[0])
    if None in given or out is None or element is None:
        return None
    return sum(size for size in given if size is not None) + prod(out) * element


def _product_shape(call: Call, places: tuple[int, ...]) -> Shape | None:
    """Rows of the left factor by columns of the right one."""
    left, right = (0, 1) if call.name == "aten::linear" else places[-2:]
    a, b = call.shape(left), call.shape(right)
    if a is None or b is None or len(b) < 2:
        return None
    turned = call.name in ("aten::linear", "aiter::gemm_a16w16", "vllm::rocm_unquantized_gemm")
    lead = max(a[:-1], (*b[:-2], a[-2]) if len(a) > 1 and len(b) > 2 else a[:-1], key=prod)
    return (*lead, b[-2] if turned else b[-1])
