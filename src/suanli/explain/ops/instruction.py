"""Instructions of compiled XLA modules -> FLOPs and least bytes: dots, convolutions and calls of GPU libraries.

A library's call is known by its target: cuBLAS and Triton products, cuDNN convolutions (in all three directions),
cuDNN attention and Transformer Engine's. Where lengths are tensors (padded or packed sequences) FLOPs are unknown.
"""

from __future__ import annotations

import re
from math import prod

from suanli.explain.ops import attention
from suanli.explain.ops.call import Cost, unknown
from suanli.explain.ops.dtypes import bits_of
from suanli.formulas import counting, operators
from suanli.nouns.hlo import HloInstruction, HloShape
from suanli.units import BITS_PER_BYTE

_GEMM = re.compile(r"^__cublas\$|^__triton_gemm")
_CONV = re.compile(r"^__cudnn\$conv(BackwardInput|BackwardFilter)?")
_FMHA = re.compile(r"^__cudnn\$fmha\w*?(Backward)?(F8)?$")
_TE = re.compile(r"^te_fused_attn_(forward|backward)(_ffi)?$")
_CONTRACTED = re.compile(r'"lhs_contracting_dimensions"\s*:\s*\[([^\]]*)\]')
_SCORES = re.compile(r'"intermediate_tensor_shape"\s*:\s*\{[^{}]*?"dimensions"\s*:\s*\[([^\]]*)\]')
_MASK = re.compile(r'"mask_type"\s*:\s*"(\w+)"')
_WINDOW = re.compile(r'"sliding_window_length"\s*:\s*"?(\d+)')
_SETTING = re.compile(r"(\w+) = (-?\d+) : i\d+")
_MASKS = {"NO_MASK": 0, "CAUSAL": 1}
_TE_MASKS = {0: 0, 2: 1, 4: 2}  # none, causal, causal to the last key; the others hold lengths
_SCRATCH = ("u8", "s8")  # what a library's call works in comes out with its results


def instruction_flops(instruction: HloInstruction) -> Cost | None:
    """What one run costs; of a fusion all products in it. None for what multiplies nothing that is known of."""
    found = [cost for each in (instruction, *instruction.inside) if (cost := _product(each)) is not None]
    if not found:
        return None
    lacking = next((cost for cost in found if cost.flops is None), None)
    if lacking is not None:
        return lacking
    return Cost(sum(cost.flops or 0 for cost in found), found[0].formula, found[0].operands)


def instruction_bytes(instruction: HloInstruction) -> int | None:
    """Least bytes of one run: what goes in and what comes out, once. None where parts of arrays are moved, or a type
    is not known.
    """
    moved = (*instruction.operands, *_kept(instruction))
    if instruction.inside and instruction.parts:  # the products' own factors are whole
        moved = (*(each for inner in instruction.inside for each in inner.operands), *instruction.results)
    elif instruction.parts or instruction.opcode in ("while", "conditional", "call"):
        return None
    sizes = [_bytes(each) for each in moved]
    return None if None in sizes else sum(size or 0 for size in sizes)


def instruction_sizes(instruction: HloInstruction) -> tuple[int, int, int] | None:
    """(m, n, k) of an instruction that is one product of two matrices, or a fusion around one; None for all else."""
    held = instruction.inside or (instruction,)
    if len(held) != 1 or len(held[0].operands) < 2:
        return None
    (_, left), (_, right) = held[0].operands[:2]
    places = held[0].contracted if held[0].opcode == "dot" else _places(held[0])
    if places is None or len(places) != 1 or (len(left), len(right)) != (2, 2) or not 0 <= places[0] < 2:
        return None
    inner = left[places[0]]
    return None if inner not in right or not inner else (prod(left) // inner, prod(right) // inner, inner)


def _places(instruction: HloInstruction) -> tuple[int, ...] | None:
    """What a library's product sums over, of the left factor; None for other calls."""
    if instruction.opcode != "custom-call" or not _GEMM.match(instruction.target):
        return None
    found = _CONTRACTED.search(instruction.config)
    return None if found is None else tuple(map(int, re.findall(r"\d+", found[1])))


def _kept(instruction: HloInstruction) -> tuple[HloShape, ...]:
    """Results without a library's scratch."""
    if instruction.opcode != "custom-call":
        return instruction.results
    return (*instruction.results[:1], *(each for each in instruction.results[1:] if each[0] not in _SCRATCH))


def _bytes(shape: HloShape) -> int | None:
    bits = bits_of(shape[0])
    return None if bits is None else prod(shape[1]) * bits // BITS_PER_BYTE


def _product(instruction: HloInstruction) -> Cost | None:
    target = instruction.target if instruction.opcode == "custom-call" else ""
    if instruction.opcode in ("dot", "scaled-dot"):
        return _dot(instruction, instruction.contracted or ())
    if _GEMM.match(target):
        places = _places(instruction)
        return None if places is None else _dot(instruction, places)
    if instruction.opcode == "convolution":
        return _convolution(instruction)
    if kind := _CONV.match(target):
        return _library_convolution(instruction, kind[1])
    if kind := _FMHA.match(target):
        return _cudnn_attention(instruction, bool(kind[1]))
    if kind := _TE.match(target):
        return _te_attention(instruction, kind[1] == "backward")
    return None


def _types(instruction: HloInstruction) -> tuple[str, ...]:
    return tuple(kind for kind, _ in instruction.operands[:2])


def _dot(instruction: HloInstruction, contracted: tuple[int, ...]) -> Cost | None:
    """The result times the sizes summed over."""
    if len(instruction.operands) < 2 or not instruction.results:
        return None
    left = instruction.operands[0][1]
    if any(not 0 <= place < len(left) for place in contracted):
        return None
    flops = counting.linear_flops(prod(instruction.results[0][1]), prod(left[place] for place in contracted), 1)
    return Cost(flops, counting.linear_flops.__name__, _types(instruction))


def _per_output(kernel: tuple[int, ...], place: int | None) -> int | None:
    """What one output sums over: the kernel without its output channels."""
    if place is None or not 0 <= place < len(kernel) or not kernel[place]:
        return None
    return prod(kernel) // kernel[place]


def _convolution(instruction: HloInstruction) -> Cost | None:
    """As XLA writes it: a gradient too is a convolution. With zeros between the inputs each input counts, not each
    output: zeros are skipped.
    """
    if len(instruction.operands) < 2 or not instruction.results:
        return None
    (_, inputs), (_, kernel) = instruction.operands[:2]
    summed = _per_output(kernel, instruction.kernel_output)
    if summed is None:
        return None
    flops = counting.linear_flops(prod(instruction.results[0][1]), summed, 1)
    if instruction.spread is not None and 0 <= instruction.spread < len(inputs) and inputs[instruction.spread]:
        flops = min(flops, counting.linear_flops(prod(inputs) // inputs[instruction.spread], prod(kernel), 1))
    return Cost(flops, counting.conv_flops.__name__, _types(instruction))


def _library_convolution(instruction: HloInstruction, direction: str | None) -> Cost | None:
    """Of all directions the FLOPs of the forward: the outputs, each by what it sums over."""
    if len(instruction.operands) < 2 or not instruction.results:
        return None
    first, second, result = instruction.operands[0][1], instruction.operands[1][1], instruction.results[0][1]
    outputs, kernel = {None: (result, second), "BackwardInput": (first, second), "BackwardFilter": (second, result)}[
        direction
    ]
    summed = _per_output(kernel, instruction.kernel_output)
    if summed is None:
        return None
    form = counting.conv_flops if direction is None else operators.conv_backward_flops
    return Cost(counting.linear_flops(prod(outputs), summed, 1), form.__name__, _types(instruction))


# --- attention --------------------------------------------------------------------------------------------------


def _cudnn_attention(instruction: HloInstruction, backward: bool) -> Cost | None:
    """[B, T, H, d] operands; the scores' shape [B, H, T, S] and the mask stand in the call."""
    scores, mask = _SCORES.search(instruction.config), _MASK.search(instruction.config)
    sizes = tuple(map(int, re.findall(r"\d+", scores[1]))) if scores else ()
    if len(sizes) != 4 or len(instruction.operands) < 3:
        return None
    kind, window = _MASKS.get(mask[1] if mask else ""), _WINDOW.search(instruction.config)
    if kind is None:
        return unknown(attention.LENGTHS)
    if window is not None and int(window[1]):
        return unknown(attention.WINDOWED)
    widths = [instruction.operands[place][1][-1:] for place in (0, 2)]
    if () in widths:
        return None
    batch, heads, queries, keys = sizes
    return attention.kernel_cost(
        batch, heads, queries, keys, widths[0][0], widths[1][0], kind, backward, _types(instruction)
    )


def _te_attention(instruction: HloInstruction, backward: bool) -> Cost | None:
    """Transformer Engine says sizes and mask as settings of the call."""
    said = {name: int(value) for name, value in _SETTING.findall(instruction.config)}
    width = said.get("qk_head_dim", said.get("head_dim"))
    sizes = [said.get(name) for name in ("input_batch", "attn_heads", "q_max_seqlen", "kv_max_seqlen")]
    if width is None or None in sizes or "mask_type" not in said:
        return None
    kind = _TE_MASKS.get(said["mask_type"])
    if kind is None or said.get("max_segments_per_seq", 1) > 1:
        return unknown(attention.LENGTHS)
    if said.get("window_size_left", -1) >= 0 or said.get("window_size_right", -1) > 0:
        return unknown(attention.WINDOWED)
    batch, heads, queries, keys = (size or 0 for size in sizes)
    return attention.kernel_cost(
        batch, heads, queries, keys, width, said.get("v_head_dim", width), kind, backward, _types(instruction)
    )
