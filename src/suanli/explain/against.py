"""A step that ran less the step that a layout predicted, by groups that both accounts fill.

| group | predicted entries | explained entries |
| --- | --- | --- |
| products | matmul, attention, experts, recompute | useful model FLOPs, recompute, inefficiency, matmul not split |
| other kernels | memory-bound, optimizer | non-matmul kernels |
| communication | tensor, context, expert, data parallel, gathers, sends | exposed communication, peer copies |
| copies | (none) | exposed copies |
| idle | bubble, launch, fixed | every idle entry |

Recompute stands with products: a planner's entry is all its time, a trace's the time of its FLOPs at the peak alone,
with the rest under inefficiency. What a planner calls by a name unknown here is a group of its own, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from suanli.explain import account as a
from suanli.explain.compare import MEAN_STEP, Basis, basis_of
from suanli.explain.idle import PARTS
from suanli.nouns.explained import Explained, TraceDifference
from suanli.nouns.plans import DifferenceRow
from suanli.nouns.step import Entry

PRODUCTS, OTHERS, COMMUNICATION, COPIES, IDLE = "products", "other kernels", "communication", "copies", "idle"
GROUPS = (PRODUCTS, OTHERS, COMMUNICATION, COPIES, IDLE)
PREDICTED: Mapping[str, str] = {
    "matmul": PRODUCTS, "attention": PRODUCTS, "experts": PRODUCTS, "recompute": PRODUCTS,
    "memory-bound": OTHERS, "optimizer": OTHERS,
    "tensor parallel": COMMUNICATION, "tensor parallel across nodes": COMMUNICATION,
    "context parallel": COMMUNICATION, "expert parallel": COMMUNICATION, "data parallel": COMMUNICATION,
    "weight gathers": COMMUNICATION, "sends": COMMUNICATION,
    "bubble": IDLE, "launch": IDLE, "fixed": IDLE,
}  # fmt: skip
EXPLAINED: Mapping[str, str] = {
    **dict.fromkeys(PARTS, IDLE),
    a.COMMUNICATION: COMMUNICATION, a.PEER: COMMUNICATION, a.COPIES: COPIES, a.OTHER: OTHERS,
    a.MATMUL: PRODUCTS, a.UNATTRIBUTED: PRODUCTS, a.NO_PEAK: PRODUCTS,
    a.INEFFICIENCY: PRODUCTS, a.RECOMPUTE: PRODUCTS, a.USEFUL: PRODUCTS,
}  # fmt: skip


def against_layout(found: Explained, predicted: Iterable[Entry]) -> TraceDifference:
    """Explained less predicted, group by group; first is the prediction. The differences add up to that of the steps.

    Needs a trace with steps, or one whose whole window is a step: the basis says which was taken.
    """
    basis: Basis = basis_of(found, steps=bool(found.steps))
    plan = _grouped({each.entry: each.seconds for each in predicted}, PREDICTED)
    ran = _grouped(basis.entries, EXPLAINED)
    names = list(dict.fromkeys((*GROUPS, *plan, *ran)))
    rows = [
        DifferenceRow(entry=name, first=plan.get(name, 0.0), second=ran.get(name, 0.0),
                      difference=ran.get(name, 0.0) - plan.get(name, 0.0))
        for name in names
    ]  # fmt: skip
    first, second = sum(plan.values()), basis.seconds
    return TraceDifference(
        basis=basis.name if basis.name == MEAN_STEP else f"{basis.name}, taken as one step",
        first_s=first,
        second_s=second,
        difference_s=second - first,
        rows=tuple(rows),
        kernels=(),
    )


def _grouped(entries: Mapping[str, float], groups: Mapping[str, str]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for entry, value in entries.items():
        group = groups.get(entry, entry)
        sums[group] = sums.get(group, 0.0) + value
    return sums
