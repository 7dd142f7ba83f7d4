"""The ledger: rows of work, the convention they were counted under, and what was not counted.

`model_flops` against `hardware_flops` is MFU against HFU: one table, two columns. Ledgers add.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

FORWARD, BACKWARD, RECOMPUTE_PASS = "forward", "backward", "recompute"


@dataclass(frozen=True, slots=True)
class Op:
    """One row. Counts are totals over `times` copies and the whole batch."""

    path: str  # where in the model, with the range of copies
    kind: str  # linear, attention, experts, conv, recurrent, …
    pass_: str  # forward, backward or recompute
    model_flops: int  # FLOPs the model needs; 0 in the recompute pass
    hardware_flops: int  # FLOPs the machine executes
    read_bytes: int  # weights and inputs read
    write_bytes: int  # outputs written
    params: int  # parameters held here, in the forward row only so that rows add up to the model
    times: int  # equal copies in the model
    formula: str  # id in the registry; `why ID` prints it
    calls: int = 1  # calls of operators in a trace; 1 for a row made by formula

    def __add__(self, other: Op) -> Op:
        """Sum of two rows; the left one's names stand."""
        return replace(
            self,
            model_flops=self.model_flops + other.model_flops,
            hardware_flops=self.hardware_flops + other.hardware_flops,
            read_bytes=self.read_bytes + other.read_bytes,
            write_bytes=self.write_bytes + other.write_bytes,
            params=self.params + other.params,
            calls=self.calls + other.calls,
        )


@dataclass(frozen=True)
class Uncounted:
    """Work that is not in the totals, with its size and the reason.

    `missing` marks an operator of a trace that has no formula: `operations` is then how often it was called, `shapes`
    on what, and every total is a lower bound.
    """

    what: str
    operations: int
    why: str
    shapes: tuple[str, ...] = ()
    missing: bool = False


@dataclass(frozen=True)
class Ledger:
    """Rows, the name of the convention, and the uncounted."""

    rows: tuple[Op, ...]
    convention: str
    uncounted: tuple[Uncounted, ...] = ()

    def __add__(self, other: Ledger) -> Ledger:
        """Both ledgers' rows; only under one convention."""
        assert self.convention == other.convention, "ledgers of different conventions do not add"
        return Ledger(self.rows + other.rows, self.convention, self.uncounted + other.uncounted)

    def flops(self, pass_: str | None = None, column: str = "model_flops") -> int:
        """Sum of a column, over one pass or all."""
        return sum(getattr(row, column) for row in self.rows if pass_ is None or row.pass_ == pass_)

    @property
    def lower_bound(self) -> bool:
        """Whether something that has no formula was left out, so that the true totals are larger."""
        return any(item.missing for item in self.uncounted)

    @property
    def model_flops(self) -> int:
        """FLOPs the model needs."""
        return self.flops()

    @property
    def hardware_flops(self) -> int:
        """FLOPs the machine executes, recomputation included."""
        return self.flops(column="hardware_flops")

    @property
    def scan_flops(self) -> int:
        """FLOPs of scans, counted as recurrences: what others may count otherwise or leave out."""
        return sum(row.model_flops for row in self.rows if row.kind == "scan")

    @property
    def params(self) -> int:
        """Parameters of all rows."""
        return sum(row.params for row in self.rows)

    def grouped(self, key: Callable[[Op], str]) -> dict[str, Op]:
        """Rows added up by `key`, in order of first appearance."""
        groups: dict[str, Op] = {}
        for row in self.rows:
            name = key(row)
            groups[name] = groups[name] + row if name in groups else row
        return groups
