"""What equal stages of a pipeline wait for one another in a step, sends apart."""

from __future__ import annotations

from typing import Any

from suanli.formulas.registry import formula

_LEGEND = {
    "pp": "p: pipeline stages",
    "forward_s": "F: forward pass of a micro-batch on a rank",
    "backward_s": "B: its backward pass",
    "weight_s": "W: of it, gradients of weights",
    "vpp": "v: chunks of layers a rank holds",
}


def _legend(*names: str) -> dict[str, str]:
    return {name: _LEGEND[name] for name in names}


@formula(unit="s", expression="(p − 1)(F + B)", source="arXiv:2104.04473 §2.2.1: 1F1B",
         legend=_legend("pp", "forward_s", "backward_s"))  # fmt: skip
def bubble_1f1b(pp: Any, forward_s: Any, backward_s: Any) -> Any:
    """Seconds a rank waits in a step of 1F1B."""
    return (pp - 1) * (forward_s + backward_s)


@formula(unit="s", expression="(p − 1)(F + B)/v", source="arXiv:2104.04473 §2.2.2: interleaved stages",
         legend=_legend("pp", "forward_s", "backward_s", "vpp"))  # fmt: skip
def bubble_interleaved(pp: Any, forward_s: Any, backward_s: Any, vpp: Any) -> Any:
    """Seconds a rank waits where it holds several chunks of layers."""
    return (pp - 1) * (forward_s + backward_s) / vpp


@formula(unit="s", expression="(p − 1)(F + B − 2W)", source="arXiv:2401.10241 §3, ZB-H1, where W ≤ F",
         legend=_legend("pp", "forward_s", "backward_s", "weight_s"))  # fmt: skip
def bubble_zero_bubble(pp: Any, forward_s: Any, backward_s: Any, weight_s: Any) -> Any:
    """Seconds a rank waits where gradients of weights fill the gaps."""
    return (pp - 1) * (forward_s + backward_s - 2 * weight_s)


@formula(unit="s", expression="(p/2 − 1)(F + 2B − 3W)",
         source="arXiv:2412.19437 table 2, two passes side by side taking as long as one after the other",
         legend=_legend("pp", "forward_s", "backward_s", "weight_s"))  # fmt: skip
def bubble_dualpipe(pp: Any, forward_s: Any, backward_s: Any, weight_s: Any) -> Any:
    """Seconds a rank waits where micro-batches enter at both ends."""
    return (pp / 2 - 1) * (forward_s + 2 * backward_s - 3 * weight_s)
