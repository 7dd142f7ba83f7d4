"""Colours by role: those of Okabe and Ito, made dark enough for white and left light enough for a dark page.

Each has a contrast of 3 : 1 and more against both grounds (WCAG 2.2, 1.4.11), which the tests work out; text takes the
colour of the page, never one of these.
"""

from __future__ import annotations

BLUE, GREEN, RED, ORANGE = "#0072b2", "#009e73", "#d55e00", "#b97f00"
SKY, PURPLE, OLIVE, GREY, BROWN = "#2f93cf", "#c4699a", "#7f8a1a", "#7f7f7f", "#9a6a4f"

SERIES = (BLUE, RED, GREEN, PURPLE, SKY, ORANGE, OLIVE, BROWN, GREY)  # one after another, where no role is told
LIGHT_GROUND, DARK_GROUND = "#ffffff", "#16181d"

# Parts of a step, as the planner and the trace reader name them, by what they are.
USEFUL, PRODUCTS, KERNELS, COMMUNICATION, WAITING, COPIES, AGAIN = GREEN, BLUE, SKY, RED, GREY, PURPLE, ORANGE
OF_ENTRY = {
    "useful model FLOPs": USEFUL, "matmul": PRODUCTS, "attention": PRODUCTS, "experts": PRODUCTS,
    "matmul inefficiency": PRODUCTS, "matmul, not attributed": PRODUCTS, "matmul, no peak of its dtype": PRODUCTS,
    "memory-bound": KERNELS, "non-matmul kernels": KERNELS, "optimizer": KERNELS,
    "tensor parallel": COMMUNICATION, "tensor parallel across nodes": COMMUNICATION, "context parallel": COMMUNICATION,
    "expert parallel": COMMUNICATION, "weight gathers": COMMUNICATION, "gradient scatters": COMMUNICATION,
    "sends": COMMUNICATION, "data parallel": COMMUNICATION, "exposed communication": COMMUNICATION,
    "recompute": AGAIN, "bubble": WAITING, "launch": WAITING, "fixed": WAITING, "idle": WAITING,
    "exposed copies": COPIES, "exposed peer copies": COPIES,
}  # fmt: skip

# Entries of a trace in the order of its account, all told apart: where several stand in one bar.
OF_TRACE = {
    "idle": GREY, "exposed communication": RED, "exposed peer copies": BROWN, "exposed copies": PURPLE,
    "non-matmul kernels": SKY, "matmul": BLUE, "matmul, not attributed": OLIVE, "matmul, no peak of its dtype": OLIVE,
    "matmul inefficiency": BLUE, "recompute": ORANGE, "useful model FLOPs": GREEN,
}  # fmt: skip

# Terms of memory, one colour in every figure.
OF_MEMORY = {
    "weights": BLUE, "gradients": SKY, "optimizer": GREEN, "activations": RED, "logits": ORANGE, "working": OLIVE,
    "buffers": PURPLE, "KV cache": PURPLE, "reserve": BROWN, "context": GREY,
}  # fmt: skip


def of_entry(entry: str) -> str:
    """The colour of a part of a step; grey for idle time of every kind and for what is not known."""
    return OF_ENTRY.get(entry, WAITING)
