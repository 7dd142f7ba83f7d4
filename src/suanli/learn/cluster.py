"""The small cluster of `learn parallel`: a question for the planner, and bytes that each way of sharing sends."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.catalog.curves import find_curves
from suanli.catalog.devices import find_device
from suanli.catalog.fabrics import node_fabric
from suanli.catalog.nodes import nodes_of
from suanli.catalog.profiles import find_profile
from suanli.catalog.stacks import find_stack
from suanli.count import build_ledger
from suanli.formulas.collectives import wire_bytes
from suanli.measure import find_peak
from suanli.nouns.arch import Arch
from suanli.nouns.layers import Attention, Experts
from suanli.nouns.plans import PlannedLayout
from suanli.nouns.workload import Workload
from suanli.plan.layout import ROOMY, Question, fastest_layout
from suanli.readers.model import read_model

GPU, GPUS, STACK = "h100-sxm", 8, "megatron-core"
MODEL, MIXTURE = "llama-3.1-8b", "qwen3-30b-a3b"
SEQ, BATCH = 4096, 8
REDUCE, ONE_WAY = 2, 1  # passes of an all-reduce; of a gather, scatter or exchange

_ALONE = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "etp": 1, "micro_batch": 1, "zero": 0, "recompute": "none"}
WAYS: dict[str, dict[str, Any]] = {
    "dp": {}, "zero1": {"zero": 1}, "zero2": {"zero": 2}, "zero3": {"zero": 3}, "tp": {"tp": GPUS, "sp": True},
    "pp": {"pp": GPUS, "schedule": "1f1b"}, "cp": {"cp": GPUS}, "ep": {"ep": GPUS},
}  # fmt: skip


@lru_cache(maxsize=2)
def question(model: str) -> Question:
    """The model on the cluster, with room for every layout: what does not fit is shown too."""
    arch, device = read_model(model), find_device(GPU)
    workload = Workload(phase="train", batch=BATCH, seq=SEQ)
    peak = find_peak(device, workload.dtype, None)
    return Question(
        arch=arch, workload=workload, gpus=(GPUS,), global_batch=BATCH, curves=find_curves(device),
        fabric=node_fabric(nodes_of(device)[0]), stack=find_stack(STACK), profile=find_profile(STACK),
        labels=(f"{device.short_id} {workload.dtype}", "", ""), peak=peak, limit_bytes=ROOMY, top=1,
        step_flops=build_ledger(arch, workload, find_convention(DEFAULT)).model_flops,
    )  # fmt: skip


def planned(model: str, pins: dict[str, Any]) -> PlannedLayout:
    """What the planner says of one way to lay it out."""
    return fastest_layout(replace(question(model), pins=_ALONE | pins))


def best(capacity: int) -> PlannedLayout:
    """The fastest of all layouts that fit."""
    return fastest_layout(replace(question(MODEL), limit_bytes=capacity))


class Traffic:
    """Bytes one GPU sends in a step, by the ring formula, in the widths the stack sends."""

    def __init__(self, model: str) -> None:
        found = question(model)
        self.arch: Arch = found.arch
        traits = found.profile.traits
        self.weight, self.gradient = traits.weight_bytes, traits.gradient_bytes
        self.layers: int = _shape(self.arch).num_layers
        self.hidden: int = _shape(self.arch).hidden

    def ring(self, tensor_bytes: float, passes: int = ONE_WAY) -> float:
        """One collective of the whole cluster."""
        return float(wire_bytes(tensor_bytes, GPUS, passes))

    @property
    def dp(self) -> float:
        """Gradients of everything summed over all."""
        return self.ring(self.arch.params_total * self.gradient, REDUCE)

    @property
    def zero1(self) -> float:
        """Gradients scattered, new weights gathered; the same in stage 2."""
        return self.ring(self.arch.params_total * self.gradient) + self.ring(self.arch.params_total * self.weight)

    @property
    def zero3(self) -> float:
        """Weights gathered forward and backward for each micro-batch (one here), gradients scattered."""
        gathers = 2 * self.ring(self.arch.params_total * self.weight)
        return gathers + self.ring(self.arch.params_total * self.gradient)

    def activation(self, sequences: int = 1) -> int:
        """Bytes of what passes from a layer to the next."""
        return sequences * SEQ * self.hidden * self.weight

    @property
    def tp(self) -> float:
        """A scatter and a gather, twice a layer and pass, for every micro-batch."""
        places = 2 * 2 * self.layers
        return BATCH * places * 2 * self.ring(self.activation())

    @property
    def pp(self) -> float:
        """Of a stage in the middle: activations on, their gradients back."""
        return float(BATCH * 2 * self.activation())

    @property
    def kv(self) -> float:
        """Keys and values of every layer gathered once forward and twice backward."""
        width = sum(
            placed.times * placed.layer.kv_heads * (placed.layer.qk_dim + placed.layer.v_dim)
            for placed in self.arch.leaves() if isinstance(placed.layer, Attention)
        )  # fmt: skip
        return BATCH * 3 * self.ring(SEQ * width * self.weight)

    @property
    def cp(self) -> float:
        """Keys and values, and gradients summed over all."""
        return self.kv + self.dp

    @property
    def experts(self) -> tuple[int, int, int]:
        """Experts of a layer, those of a token, and parameters of all of them."""
        found = [placed for placed in self.arch.leaves() if isinstance(placed.layer, Experts)]
        layer: Any = found[0].layer
        return layer.num, layer.top_k, sum(placed.times * placed.layer.params for placed in found)

    @property
    def tokens(self) -> float:
        """Tokens to their experts and back, in both passes of every layer: each GPU has one sequence."""
        _, routed, _ = self.experts
        return 2 * 2 * self.layers * self.ring(routed * self.activation())

    @property
    def ep(self) -> float:
        """Tokens, and gradients of what is no expert's."""
        dense = self.arch.params_total - self.experts[2]
        return self.tokens + self.ring(dense * self.gradient, REDUCE)


def _shape(arch: Arch) -> Any:
    assert arch.shape is not None
    return arch.shape
