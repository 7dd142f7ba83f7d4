"""A convention says what a FLOP figure includes. It is data: code reads its fields and never asks for its name."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Convention:
    """What is counted. Fields that do not apply to the basis keep their defaults."""

    name: str
    doc: str
    source: str
    basis: str = field(
        default="ops", metadata={"doc": "ops (matmuls), params (k × parameters) or closed (one formula)"}
    )
    pairs: str = field(default="mask", metadata={"doc": "positions attention is charged for: mask, full, half, none"})
    router: bool = field(default=True, metadata={"doc": "expert routers count as matmuls"})
    embedding_as_matmul: bool = field(default=False, metadata={"doc": "token lookup charged as a matmul"})
    exact_backward: bool = field(
        default=False,
        metadata={"doc": "backward counted as autograd needs it (frozen weights, first inputs), not as 2 × forward"},
    )
    embedding_params: str = field(
        default="all", metadata={"doc": "params basis: which embedding tables are in N: all, output, none"}
    )
    experts: str = field(default="active", metadata={"doc": "params basis: experts in N: active or all"})
    recompute_blocks: bool = field(
        default=False, metadata={"doc": "the figure itself includes one more forward of every block"}
    )
    closed_form: str | None = field(default=None, metadata={"doc": "closed basis: id of the formula"})
    common: bool = field(default=False, metadata={"doc": "shown beside the chosen one"})
