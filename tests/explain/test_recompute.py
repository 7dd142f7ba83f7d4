"""Which operators are backward, and which are forward work done once more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suanli.explain.attribute import attribute
from suanli.explain.classify import classify
from suanli.explain.link import links, parents
from suanli.explain.recompute import ENGINE, passes, passes_of
from suanli.nouns.trace import Trace
from suanli.readers.traces import read_trace

Make = Callable[..., Trace]


def op(name: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "op", "start_ns": start, "end_ns": end, **more}


def named(trace: Trace, rows: Any) -> list[str]:
    return [trace.names[name] for name in trace.host.name[rows]]


def test_a_forward_operator_inside_the_engine_is_recomputed_with_what_it_calls(make: Make) -> None:
    host = [
        op("aten::linear", 0, 90, sequence=4),
        op("aten::addmm", 10, 80),
        op(f"{ENGINE}: AddmmBackward0", 100, 900),
        op("AddmmBackward0", 110, 890, forward_thread=1, sequence=4),
        op("aten::linear", 120, 200, sequence=9),
        op("aten::addmm", 130, 190, sequence=9),
        op("aten::add", 210, 220, sequence=10),  # a residual sum beside it: autograd records it
        op("aten::mm", 300, 400),
        op(f"{ENGINE}: torch::autograd::AccumulateGrad", 1000, 1100),
        op("torch::autograd::AccumulateGrad", 1010, 1090),
        op("aten::add_", 1020, 1080),
    ]
    trace = make([], host)
    found = passes(trace, parents(trace.host))
    assert named(trace, found.recompute) == ["aten::linear", "aten::addmm", "aten::add"]
    assert named(trace, found.backward)[:3] == [f"{ENGINE}: AddmmBackward0", "AddmmBackward0", "aten::mm"]
    assert named(trace, found.backward)[-1] == "aten::add_"
    assert not (found.backward & found.recompute).any()


def test_a_backward_that_records_is_none_of_it(make: Make) -> None:
    """With create_graph every operator of the backward has a number; none of a model's own stands there."""
    host = [op("MulBackward0", 0, 100, forward_thread=1), op("aten::mul", 10, 20, sequence=5), op("aten::mm", 30, 40)]
    trace = make([], host)
    found = passes(trace, parents(trace.host))
    assert not found.recompute.any()
    assert found.backward.all()


@pytest.mark.parametrize(
    "node", ["CudnnConvolutionBackward", "MmBackward0", "<backward op>", "CompiledFunctionBackward"]
)
def test_nodes_are_known_by_name_without_the_engine(make: Make, node: str) -> None:
    trace = make([], [op(node, 0, 100), op("aten::mm", 10, 20), op("aten::mm", 200, 210)])
    assert passes(trace, parents(trace.host)).backward.tolist() == [True, True, False]


def test_nothing(make: Make) -> None:
    trace = make()
    assert len(passes(trace, parents(trace.host)).backward) == 0


@pytest.mark.shared
@pytest.mark.parametrize(
    "name", ["tl_mi300_resnet_actckpt", "tl_mi300_ddp_resnet18", "hta_diff_control_a100", "hta_rank_missing"]
)
def test_some_spans_have_the_pass_they_have_among_all(shared: Path, name: str) -> None:
    trace = read_trace(shared / "traces" / "files" / f"{name}.json.gz")
    parent = links(trace).parent
    rows = np.append(links(trace).op, -1)
    every, found = passes(trace, parent), passes_of(trace, parent, rows)
    for of_all, of_some in ((every.backward, found.backward), (every.recompute, found.recompute)):
        assert of_some.tolist() == [*of_all[rows[:-1]], False]


@pytest.mark.shared
def test_57_of_57_recomputed_convolutions(shared: Path) -> None:
    """117 convolutions, 60 of them of the forward pass: 57 are recomputed, as the backward has 60 without them."""
    trace = read_trace(shared / "traces" / "files" / "tl_mi300_resnet_actckpt.json.gz")
    found = passes(trace, links(trace).parent)
    names = np.array(trace.names)[trace.host.name]
    for name in ("aten::conv2d", "aten::convolution", "aten::miopen_convolution"):
        rows = names == name
        assert (int(rows.sum()), int((rows & found.recompute).sum())) == (117, 57)
    assert int((names == "aten::convolution_backward").sum()) == 60
    assert not found.recompute[names == "aten::convolution_backward"].any()


@pytest.mark.shared
def test_recomputed_convolutions_have_flops_and_are_no_backward(shared: Path) -> None:
    trace = read_trace(shared / "traces" / "files" / "tl_mi300_resnet_actckpt.json.gz")
    found = attribute(trace, classify(trace))
    again = found.recompute & found.flops_known
    assert len(np.unique(found.op[again])) == 57
    assert found.flops[again].sum() > 0
    assert not (found.recompute & found.backward).any()


@pytest.mark.shared
@pytest.mark.parametrize("name", ["tl_mi300_ddp_resnet18", "hta_diff_control_a100", "kineto_tb_resnet50_nw0"])
def test_training_without_checkpoints_recomputes_nothing(shared: Path, name: str) -> None:
    trace = read_trace(shared / "traces" / "files" / f"{name}.json.gz")
    found = passes(trace, links(trace).parent)
    assert not found.recompute.any()
    assert found.backward.any()
