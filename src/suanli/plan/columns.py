"""The columns and passes of a work array [pass, column, layout]: what the seconds of a micro-batch are spent on."""

from __future__ import annotations

PASSES = ("forward", "backward", "again")  # the last: of a block its scores, of stages what recompute runs once more
FORWARD, BACKWARD, AGAIN = range(len(PASSES))

# Seconds of kernels; counts of launches and of collectives that wait for hosts; seconds of exchanges inside a layer.
COLUMNS = (
    "matmul", "attention", "experts", "memory", "launches", "spans", "tensor", "across", "context", "exchange",
)  # fmt: skip
MATMUL, ATTENTION, EXPERTS, MEMORY, LAUNCHES, SPANS, TENSOR, ACROSS, CONTEXT, EXCHANGE = range(len(COLUMNS))
COUNTS = (LAUNCHES, SPANS)

# What the columns are called in an account.
ENTRIES = {
    MATMUL: "matmul", ATTENTION: "attention", EXPERTS: "experts", MEMORY: "memory-bound", TENSOR: "tensor parallel",
    ACROSS: "tensor parallel across nodes", CONTEXT: "context parallel", EXCHANGE: "expert parallel",
}  # fmt: skip
