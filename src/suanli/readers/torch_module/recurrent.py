"""Recurrent stacks as torch calls them, fused or not: their widths, and what their gradients take. Never unrolled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from suanli.formulas.operators import recurrent_backward_flops

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1, "quantized_lstm": 4, "quantized_gru": 3}
_CUDNN_MODES = {0: 1, 1: 1, 2: 4, 3: 3}  # cuDNN's rnnMode: relu, tanh, LSTM, GRU
FORWARD_OPERATORS = ("lstm", "gru", "rnn_tanh", "rnn_relu", "_cudnn_rnn", "miopen_rnn", "mkldnn_rnn_layer", "_lstm_mps")
BACKWARD_OPERATORS = (
    "_cudnn_rnn_backward", "miopen_rnn_backward", "mkldnn_rnn_layer_backward", "lstm_mps_backward",
)  # fmt: skip


@dataclass(frozen=True)
class Matrices:
    """The weights of one direction of one layer, and whether each gets a gradient."""

    width: int
    out_size: int
    hidden: int
    proj_size: int = 0
    trained: tuple[bool, bool, bool] = (True, True, True)  # input, state, projection
    biases_trained: bool = True


@dataclass(frozen=True)
class RecurrentCall:
    """One call: tokens over the batch, sequences in it, the stack (directions within layers), what needs a gradient."""

    tokens: int
    sequences: int
    gates: int
    directions: int
    stack: tuple[Matrices, ...]
    input_needed: bool = True
    state_needed: bool = False


def read_matrices(weights: Sequence[Any], gates: int, biased: bool) -> tuple[Matrices, ...]:
    """The stack from torch's flat list: input, state, (two biases), (projection) for each direction of each layer."""
    projected = _projected(weights, gates)
    each = 2 + (2 if biased else 0) + (1 if projected else 0)
    found = []
    for start in range(0, len(weights) - each + 1, each):
        w_input, w_state, *rest = weights[start : start + each]
        biases = rest[:2] if biased else []
        projection = rest[-1] if projected else None
        trained = tuple(bool(w is not None and w.requires_grad) for w in (w_input, w_state, projection))
        hidden = w_state.shape[0] // gates
        found.append(
            Matrices(
                width=w_input.shape[1], out_size=w_state.shape[1], hidden=hidden,
                proj_size=projection.shape[0] if projection is not None else 0,
                trained=(trained[0], trained[1], trained[2]),
                biases_trained=any(bias.requires_grad for bias in biases),
            )
        )  # fmt: skip
    return tuple(found)


def _projected(weights: Sequence[Any], gates: int) -> bool:
    """Whether the state fed back is narrower than the hidden units: an LSTM with a projection."""
    return int(weights[1].shape[1]) != int(weights[1].shape[0]) // gates


def read_call(at: Mapping[str, Any], _: Any = None) -> RecurrentCall:
    """The call from an operator's named arguments, whichever kernel it names."""
    if "weight0" in at or "weight1" in at:
        return _mkldnn_call(at)
    if "weight_stride0" in at:
        return _cudnn_call(at)
    return stack_call(at, GATES[at["operator"]])


def stack_call(at: Mapping[str, Any], gates: int) -> RecurrentCall:
    """torch's own `lstm`, `gru`, `rnn_tanh`, `rnn_relu`, padded or packed."""
    x = at["data"] if "data" in at else at["input"]
    states = at["hx"] if isinstance(at["hx"], tuple | list) else [at["hx"]]
    return RecurrentCall(
        tokens=prod(x.shape[:-1]),
        sequences=states[0].shape[1],
        gates=gates,
        directions=2 if at["bidirectional"] else 1,
        stack=read_matrices(at["params"], gates, bool(at["has_biases"])),
        input_needed=bool(x.requires_grad),
        state_needed=any(state.requires_grad for state in states),
    )


def _mkldnn_call(at: Mapping[str, Any]) -> RecurrentCall:
    first = at["weight0"] if "weight0" in at else at["weight1"]
    second = at["weight1"] if "weight0" in at else at["weight2"]
    x, hidden = at["input"], at["hidden_size"]
    gates = first.shape[0] // hidden
    stack = (Matrices(width=first.shape[1], out_size=second.shape[1], hidden=hidden),)
    return RecurrentCall(prod(x.shape[:-1]), at["hx_"].shape[-2], gates, 1, stack)


def _cudnn_call(at: Mapping[str, Any]) -> RecurrentCall:
    gates, stride = _CUDNN_MODES[int(at["mode"])], int(at["weight_stride0"])
    hidden, proj = int(at["hidden_size"]), int(at.get("proj_size", 0))
    directions = 2 if at["bidirectional"] else 1
    weights = at["weight"]
    stack = tuple(
        Matrices(width=weights[i].shape[1], out_size=proj or hidden, hidden=hidden, proj_size=proj)
        for i in range(0, len(weights), stride)
    )
    return RecurrentCall(prod(at["input"].shape[:-1]), at["hx"].shape[-2], gates, directions, stack)


def forward_arguments(call: RecurrentCall) -> tuple[Any, ...]:
    """Arguments of `recurrent_flops`: all layers of a stack have the same hidden units and projection."""
    first = call.stack[0]
    widths = [layer.width for layer in call.stack[:: call.directions]]
    return call.tokens, call.directions, widths, call.gates, first.hidden, first.out_size, first.proj_size


def backward_flops(call: RecurrentCall) -> int:
    """FLOPs of the gradients: a state's product has none at the first position unless the initial state needs one."""
    total, needed = 0, call.input_needed
    for start in range(0, len(call.stack), call.directions):
        layer = call.stack[start : start + call.directions]
        total += sum(_layer_backward(call, each, needed) for each in layer)
        needed = needed or call.state_needed or any(_trains(each) for each in layer)
    return total


def _trains(layer: Matrices) -> bool:
    return any(layer.trained) or layer.biases_trained


def _layer_backward(call: RecurrentCall, layer: Matrices, input_needed: bool) -> int:
    """A position's state needs a gradient where anything before it does."""
    later = call.tokens - call.sequences
    gated = input_needed or any(layer.trained[:2]) or layer.biases_trained
    state = call.tokens if call.state_needed else later if gated or layer.trained[2] else 0
    unprojected = call.tokens if gated or call.state_needed else later if layer.trained[2] else 0
    return recurrent_backward_flops(
        call.tokens, call.gates, layer.width, layer.hidden, layer.out_size, layer.proj_size,
        int(input_needed) + int(layer.trained[0]), int(layer.trained[1]), state,
        int(layer.trained[2]), unprojected if layer.proj_size else 0,
    )  # fmt: skip
