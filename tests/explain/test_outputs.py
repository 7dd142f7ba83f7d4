"""Outputs of convolutions that older torch left no strides of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from suanli.explain.attribute import attribute
from suanli.explain.link import parents
from suanli.explain.outputs import convolution_outputs
from suanli.nouns.attribution import WorkClass
from suanli.nouns.trace import OpDetail, Trace

Make = Callable[..., Trace]
CONV = OpDetail(dims=((32, 3, 224, 224), (64, 3, 7, 7), (), ()))
OUT = OpDetail(dims=((32, 64, 112, 112),))
OTHERS = [
    OpDetail(dims=((64,), (32, 3, 224, 224))),  # another rank, other channels
    OpDetail(dims=((32, 64, 500, 500),)),  # a larger grid than it can have given
    OpDetail(dims=((16, 64, 112, 112),)),  # another batch
]
STEM = 2 * 32 * 112 * 112 * 64 * 3 * 49


def op(name: str, start: int, end: int, detail: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "op", "start_ns": start, "end_ns": end, "detail": detail, **more}


def found(make: Make, host: list[dict[str, Any]], *details: OpDetail) -> dict[int, Any]:
    trace = make([], host, details=(CONV, OUT, *details))
    rows = np.nonzero(np.array(trace.names)[trace.host.name] == "aten::cudnn_convolution")[0]
    return {int(row): shape for row, shape in convolution_outputs(trace, parents(trace.host), rows).items()}


def test_the_backward_operator_is_given_the_outputs_gradient(make: Make) -> None:
    host = [
        op("aten::conv2d", 0, 100, 0, sequence=12),
        op("aten::cudnn_convolution", 10, 90, 0),
        op("CudnnConvolutionBackward", 500, 600, 1, thread=1, sequence=12, forward_thread=1),
    ]
    assert found(make, host) == {1: (32, 64, 112, 112)}


def test_else_the_operator_that_uses_it(make: Make) -> None:
    host = [
        op("aten::cudnn_convolution", 10, 90, 0),
        op("aten::empty", 100, 110, 2),
        op("aten::batch_norm", 120, 130, 1),
    ]
    assert found(make, host, OTHERS[0]) == {0: (32, 64, 112, 112)}


@pytest.mark.parametrize("other", OTHERS)
def test_what_does_not_fit_is_not_taken(make: Make, other: OpDetail) -> None:
    assert found(make, [op("aten::cudnn_convolution", 10, 90, 0), op("aten::relu", 100, 110, 2)], other) == {}


def test_another_threads_operator_or_one_far_away_is_not_looked_at(make: Make) -> None:
    elsewhere = [op("aten::cudnn_convolution", 10, 90, 0), op("aten::relu", 100, 110, 1, thread=1)]
    assert found(make, elsewhere) == {}
    far = [op("aten::cudnn_convolution", 10, 90, 0)]
    far += [op("aten::empty", 100 + 10 * i, 105 + 10 * i, 2) for i in range(16)] + [op("aten::relu", 900, 910, 1)]
    assert found(make, far, OTHERS[0]) == {}


def test_the_flops_follow(make: Make) -> None:
    host = [
        op("aten::cudnn_convolution", 10, 90, 0),
        {"name": "cudaLaunchKernel", "start_ns": 20, "end_ns": 21},
        op("aten::relu", 100, 110, 1),
    ]
    trace = make([{"name": "implicit_convolve_sgemm", "start_ns": 200, "end_ns": 300, "launch": 1}], host,
                 details=(CONV, OUT))  # fmt: skip
    assert attribute(trace, np.array([WorkClass.MATMUL], dtype=np.uint8)).flops.tolist() == [STEM]
