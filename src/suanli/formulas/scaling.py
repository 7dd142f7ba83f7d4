"""Laws of speed-up. (The linear speed-up ratio in its forms stands among the formulas of the articles.)

Efficiency e(n) is the rate of one GPU among n over that of one alone; a speed-up is n·e(n).
"""

from __future__ import annotations

import math

from suanli.formulas.registry import formula

_LAWS = {
    "gpus": "n: GPUs",
    "serial": "f: part of the work that is not shared",
    "contention": "σ: what waits for another",
    "coherency": "κ: what each pair has to agree on",
    "per_doubling": "b: change of log(rate of one GPU) for twice the GPUs",
    "base": "n₀: GPUs that the rate is known at",
}


@formula(
    unit="fraction", expression="1/(1 + f·(n − 1))", source="Amdahl 1967, doi:10.1145/1465482.1465560", legend=_LAWS
)
def amdahl(gpus: float, serial: float) -> float:
    """Efficiency where a part of fixed work is not shared (strong scaling)."""
    return 1 / (1 + serial * (gpus - 1))


@formula(unit="fraction", expression="1 − f·(1 − 1/n)", source="Gustafson 1988, doi:10.1145/42411.42415", legend=_LAWS)
def gustafson(gpus: float, serial: float) -> float:
    """Efficiency where the shared work grows with the GPUs (weak scaling)."""
    return 1 - serial * (1 - 1 / gpus)


@formula(
    unit="fraction", expression="1/(1 + σ·(n − 1) + κ·n·(n − 1))",
    source="Gunther 1993, universal scalability law; arXiv:0808.1431", legend=_LAWS,
)  # fmt: skip
def usl(gpus: float, contention: float, coherency: float) -> float:
    """Efficiency with contention, and with agreement between every pair."""
    return 1 / (1 + contention * (gpus - 1) + coherency * gpus * (gpus - 1))


@formula(unit="GPUs", expression="√((1 − σ)/κ)", source="Gunther 1993; arXiv:0808.1431", legend=_LAWS)
def usl_peak(contention: float, coherency: float) -> float:
    """GPUs past which more of them make the whole slower."""
    return math.sqrt((1 - contention) / coherency)


@formula(unit="fraction", expression="exp(b·log₂(n/n₀))", source="a straight line in log–log", legend=_LAWS)
def power_law(gpus: float, per_doubling: float, base: float) -> float:
    """Rate of one GPU over that at n₀, the same change with every doubling."""
    return math.exp(per_doubling * math.log2(gpus / base))
