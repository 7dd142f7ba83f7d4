"""Seconds of a decode step and of a prefill on one replica: rooflines of its terms, and an engine's numbers on them.

What the roofline of each group of operators takes (`Parts`) depends on model, layout and device alone; the engine's
profile multiplies and adds. So one sweep serves a preset, its fit, and an explanation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from suanli.catalog.curves import DeviceCurves
from suanli.formulas.counting import linear_flops
from suanli.formulas.decoding import cache_read_bytes, distinct_experts, streamed_product_s
from suanli.formulas.kernels import larger, smaller
from suanli.nouns.curves import Fabric
from suanli.nouns.hardware import Device
from suanli.nouns.serving import ServingLayout
from suanli.nouns.serving_profile import ServingProfile
from suanli.plan.serving.precision import Precision, Stored, product_flop_per_s
from suanli.plan.serving.rank import SEQUENCE, Attending, Exchange, RankWork, Side

Numbers = Any
_ACTIVATION_BYTES = 2.0
# Part of the dense peak that products of few rows reach once reading no longer limits them: large bf16 and fp8
# products of measured_hardware reach 0.37 to 0.83; grouped ones and decode attention fill their tiles less.
_PRODUCTS, _GROUPED, _ATTENTION = 0.6, 0.4, 0.5


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Roofline seconds of one step by group of operators, and counts that an engine's own times multiply."""

    weights: Numbers = field(metadata={"unit": "s", "doc": "products with dense weights"})
    experts: Numbers = field(metadata={"unit": "s", "doc": "grouped products of the experts met"})
    cache: Numbers = field(metadata={"unit": "s", "doc": "attention over the cache"})
    passes: Numbers = field(metadata={"unit": "s", "doc": "norms, activations, states"})
    collectives: Numbers = field(metadata={"unit": "s", "doc": "exchanges between ranks, by NCCL's times"})
    layers: Numbers = field(metadata={"unit": "", "doc": "layers that run one after another"})
    sequences: Numbers = field(metadata={"unit": "", "doc": "sequences of one attention group"})

    def seconds(self, profile: ServingProfile) -> dict[str, Numbers]:
        """A decode step by entry; they add up to it."""
        return {
            "weights": profile.weights * self.weights,
            "experts": profile.weights * self.experts,
            "KV cache": profile.cache * self.cache,
            "memory passes": profile.passes * self.passes,
            "collectives": profile.collective * self.collectives,
            "layers": profile.layer_s * self.layers,
            "sequences": profile.sequence_s * self.sequences,
            "step": profile.step_s + 0 * self.sequences,
        }


@dataclass(frozen=True, kw_only=True)
class PrefillParts:
    """Roofline seconds of a prefill."""

    arithmetic: Numbers = field(metadata={"unit": "s", "doc": "products and attention at the dense peak"})
    other: Numbers = field(metadata={"unit": "s", "doc": "collectives by NCCL's times, and passes over memory"})

    def seconds(self, profile: ServingProfile) -> dict[str, Numbers]:
        """A prefill by entry; they add up to it."""
        return {
            "prefill arithmetic": profile.prefill * self.arithmetic,
            "prefill, other": profile.prefill_other * self.other,
        }


@dataclass(frozen=True, kw_only=True)
class Replica:
    """A model on the GPUs of one replica under an engine: what `ServingRates` asks for."""

    work: RankWork
    layout: ServingLayout
    precision: Precision
    device: Device
    curves: DeviceCurves
    fabric: Fabric | None
    profile: ServingProfile

    def decode_s(self, sequences: Numbers, keys: Numbers, tokens: float = 1.0) -> Numbers:
        """Seconds of one decode step of `sequences` in all, each seeing `keys` keys on average; `tokens` new ones of
        each, drafted ones among them."""
        return sum(self.decode_parts(sequences, keys, tokens).seconds(self.profile).values())

    def prefill_s(self, tokens: Numbers, keys: Numbers) -> Numbers:
        """Seconds of prefilling `tokens` tokens in all, the last of which sees `keys` keys."""
        return sum(self.prefill_parts(tokens, keys).seconds(self.profile).values())

    # -- decode --------------------------------------------------------------------------------------------------

    def decode_parts(self, sequences: Numbers, keys: Numbers, tokens: float = 1.0) -> Parts:
        """Rooflines of one decode step. A pipeline has its sequences in `pp` shares, one in each stage.

        With several `tokens` of a sequence every product has so many times the rows, heads too; the cache is read once.
        """
        share = larger(sequences / self.layout.pp, 1.0 + 0 * sequences)
        own = larger(share / self.layout.dp_attention, 1.0 + 0 * sequences)
        rows = {"token": own * tokens, SEQUENCE: own}
        return Parts(
            weights=self._products(own * tokens),
            experts=self._experts(share * tokens),
            cache=self._cache(own, keys, tokens),
            passes=self._passes(rows),
            collectives=self._exchanges(own * tokens, share * tokens) + self._sends(own * tokens),
            layers=self.work.layers + 0 * own,
            sequences=own,
        )  # fmt: skip

    def _products(self, rows: Numbers) -> Numbers:
        total = 0 * rows
        for each in self.work.products:
            total = total + each.count * self._product(rows, each.n, each.k, 1, each.stored, _PRODUCTS)
        return total

    def _experts(self, tokens: Numbers) -> Numbers:
        total, ep = 0 * tokens, self.layout.ep
        for each in self.work.mixtures:
            met = larger(distinct_experts(each.num, each.chosen, tokens) / ep, 1.0 + 0 * tokens)
            rows = tokens * each.chosen / ep / met
            for n, k in each.matrices:
                total = total + each.count * self._product(rows, n, k, met, each.stored, _GROUPED)
        return total

    def _product(self, rows: Numbers, n: int, k: int, count: Numbers, stored: Stored, reached: float) -> Numbers:
        rate = reached * product_flop_per_s(self.device, stored.peak)
        return streamed_product_s(rows, n, k, count, stored.weight_bytes, _ACTIVATION_BYTES, self._bandwidth, rate)

    def _cache(self, sequences: Numbers, keys: Numbers, tokens: float) -> Numbers:
        total = 0 * sequences * keys
        rate = _ATTENTION * product_flop_per_s(self.device, "bf16")
        for each in self.work.attending:
            seen = _seen(each, keys + self.work.extra)
            read = cache_read_bytes(sequences, seen, each.width, self.precision.cache_bytes) / self._bandwidth
            worked = linear_flops(sequences * tokens * seen, each.heads, each.inner) / rate
            total = total + each.count * larger(read, worked)
        return total

    def _passes(self, rows: dict[str, Numbers], work: RankWork | Side | None = None) -> Numbers:
        total = 0 * rows[SEQUENCE]
        for each in (work or self.work).passes:
            total = total + each.count * self.curves.memory_s(rows[each.row] * each.width * _ACTIVATION_BYTES)
        return total

    def _exchanges(self, own: Numbers, share: Numbers) -> Numbers:
        return sum((self._exchange(each, share if each.everyone else own) for each in self.work.exchanges), 0 * own)

    def _exchange(self, each: Exchange, rows: Numbers) -> Numbers:
        moved = rows * each.width * _ACTIVATION_BYTES
        assert self.fabric is not None, "several GPUs have links"
        return each.count * self.curves.collective_s(each.kind, moved, each.ranks, self.fabric)

    def _sends(self, rows: Numbers) -> Numbers:
        """Activations handed from stage to stage."""
        if self.layout.pp == 1:
            return 0 * rows
        assert self.fabric is not None, "several GPUs have links"
        once = self.curves.collective_s("p2p", rows * self.work.hidden * _ACTIVATION_BYTES, 2, self.fabric)
        return (self.layout.pp - 1) * once

    # -- prefill -------------------------------------------------------------------------------------------------

    def prefill_parts(self, tokens: Numbers, keys: Numbers) -> PrefillParts:
        """Rooflines of a prefill spread over the attention groups, all stages of a pipeline in turn. What stands beside
        a prompt's tokens (a picture, an encoder's input) goes with its first piece."""
        begins = 1.0 * (keys <= tokens)
        tokens, keys = tokens + begins * self.work.extra, keys + self.work.extra
        own = tokens / self.layout.dp_attention
        arithmetic = self._arithmetic(self.work, own, tokens, keys - (tokens - 1) / 2)
        other = self._other(self.work, own, tokens) + self._sends(own)
        for side in self.work.sides:
            rows = begins * side.rows
            arithmetic = arithmetic + self._arithmetic(side, rows / self.layout.dp_attention, rows, side.keys)
            other = other + begins * self._other(side, side.rows / self.layout.dp_attention, side.rows)
        return PrefillParts(arithmetic=arithmetic, other=other)

    def _arithmetic(self, work: RankWork | Side, own: Numbers, tokens: Numbers, mean: Numbers) -> Numbers:
        """Products and attention at the dense peaks; a query sees `mean` keys, causal ones those before it."""
        total = 0 * own
        for each in work.products:
            rows: Numbers = 1.0 if each.row == SEQUENCE else own
            total = total + each.count * linear_flops(rows, each.k, each.n) / self.peak(each.stored.peak)
        for mixture in work.mixtures:
            for n, k in mixture.matrices:
                routed = tokens * mixture.chosen / self.layout.ep
                total = total + mixture.count * linear_flops(routed, k, n) / self.peak(mixture.stored.peak)
        return total + self._prefill_attention(work, own, mean)

    def _prefill_attention(self, work: RankWork | Side, own: Numbers, mean: Numbers) -> Numbers:
        total = 0 * own
        for each in work.attending:
            total = total + each.count * linear_flops(own * _seen(each, mean), each.heads, each.inner_prefill)
        return total / self.peak("bf16")

    def _other(self, work: RankWork | Side, own: Numbers, tokens: Numbers) -> Numbers:
        """Passes over memory, and collectives by NCCL's times."""
        total = self._passes({"token": own, SEQUENCE: 1.0 + 0 * own}, work)
        for exchange in work.exchanges:
            rows = tokens if exchange.everyone else own
            total = total + self._exchange(exchange, 1.0 if exchange.row == SEQUENCE else rows)
        return total

    def peak(self, dtype: str) -> float:
        """Dense peak at which operands of this dtype are multiplied [FLOP/s]."""
        return product_flop_per_s(self.device, dtype)

    @property
    def _bandwidth(self) -> float:
        rate = self.device.memory_bytes_per_s_per_torch_device
        assert rate is not None, "a device without a memory rate has no curves"
        return float(rate)


def _seen(each: Attending, keys: Numbers) -> Numbers:
    """Keys that a query meets of `keys` before it."""
    if each.keys is not None:
        return each.keys + 0 * keys
    return keys if each.window is None else smaller(keys, each.window + 0 * keys)
