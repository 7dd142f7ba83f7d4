"""Texts that emit_nvtx writes, part by part."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.readers.traces.nvtx_text import NvtxText, nvtx_text


@pytest.mark.parametrize(
    ("text", "name", "sequence", "dims", "operator"),
    [
        ("step 3", "step 3", -1, None, False),
        ("aten::mm", "aten::mm", -1, None, False),  # a range that somebody named: nothing of PyTorch's follows
        ("aten::view, op_id = 314290", "aten::view", -1, None, True),
        ("aten::mm, seq = 12", "aten::mm", 12, None, True),
        ("FlashAttnFunc, seq = 45368, op_id = 990812", "FlashAttnFunc", 45368, None, True),
        ("aten::mm, seq = 1, op_id = 2, sizes = [[64, 32], [32, 8]]", "aten::mm", 1, ((64, 32), (32, 8)), True),
        (
            "aten::cat, op_id = 2, sizes = [[[4, 8], [4, 8]], []], input_op_ids = [(1, 0), (0, 0)]",
            "aten::cat", -1, (((4, 8), (4, 8)), ()), True,
        ),
        ("aten::add, sizes = [[2], [], []]", "aten::add", -1, ((2,), (), ()), True),
        ("aten::empty, seq = 3, op_id = 4, sizes = []", "aten::empty", 3, (), True),
        ("autograd::engine::evaluate_function: MmBackward0, op_id = 7",
         "autograd::engine::evaluate_function: MmBackward0", -1, None, True),
        # record_function under emit_nvtx is written like an operator; blanks and marks of one's own tell it
        ("FSDP::pre_forward (blocks.3), op_id = 5", "FSDP::pre_forward (blocks.3)", -1, None, False),
        ("ProfilerStep#3, op_id = 9", "ProfilerStep#3", -1, None, False),
        ("nccl:all_to_all, op_id = 991144", "nccl:all_to_all", -1, None, False),
        # what only looks alike stays a name as a whole
        ("lr = 3, seq = many", "lr = 3, seq = many", -1, None, False),
        ("aten::mm, sizes = [64, 32]", "aten::mm, sizes = [64, 32]", -1, None, False),
        ("aten::mm, sizes = [[64, 32]", "aten::mm, sizes = [[64, 32]", -1, None, False),
        ("a, sizes = [[[[1]]]]", "a, sizes = [[[[1]]]]", -1, None, False),  # deeper than any argument
        ("loss, op_id = 1, epoch 3", "loss, op_id = 1, epoch 3", -1, None, False),
    ],
)  # fmt: skip
def test_parts(text: str, name: str, sequence: int, dims: tuple[Any, ...] | None, operator: bool) -> None:
    assert nvtx_text(text) == NvtxText(name, sequence, dims, operator)


SHAPES = st.lists(st.lists(st.integers(0, 10**6), max_size=4), max_size=4)


@given(st.from_regex(r"[a-z]{1,9}::[a-z_]{1,9}", fullmatch=True), st.integers(0, 10**12), SHAPES)
def test_what_was_written_is_read(name: str, sequence: int, shapes: list[list[int]]) -> None:
    said = nvtx_text(f"{name}, seq = {sequence}, op_id = 1, sizes = {shapes}")
    assert said == NvtxText(name, sequence, tuple(tuple(shape) for shape in shapes), operator=True)


@given(st.text(max_size=80))
def test_any_text_has_a_name(text: str) -> None:
    said = nvtx_text(text)
    assert text.startswith(said.name)
    assert said.dims is None or "sizes" in text


def test_a_text_beyond_reason_is_quick() -> None:
    text = "aten::mm, sizes = " + "[" * 200_000
    assert nvtx_text(text) == NvtxText(text)
    many = "a, seq = 1" * 9_000
    assert nvtx_text(many).name == many[: -len(", seq = 1")]
