"""Quantities that articles on compute work out and no other module has: small sums, each to be checked alone."""

from __future__ import annotations

from collections.abc import Sequence

from suanli import units
from suanli.formulas.counting import linear_flops
from suanli.formulas.registry import formula

_BOOKS = "definition"
_HUNDREDTH = 0.01


@formula(
    unit="as given",
    expression="a/b",
    source=_BOOKS,
    legend={"numerator": "a", "denominator": "b"},
)
def ratio(numerator: float, denominator: float) -> float:
    """One figure over another."""
    return numerator / denominator


@formula(unit="as given", expression="Σ a_i", source=_BOOKS, legend={"parts": "a_i: the parts"})
def total(parts: Sequence[float]) -> float:
    """Sum of parts; a negative one is taken away."""
    return sum(parts)


@formula(unit="as given", expression="Π a_i", source=_BOOKS, legend={"factors": "a_i: the factors"})
def product(factors: Sequence[float]) -> float:
    """Product of factors."""
    result: float = 1
    for factor in factors:
        result *= factor
    return result


@formula(
    unit="base unit",
    expression="number × decimal prefix",
    source="SI prefixes: each step is 1000",
    legend={"text": "number with its unit", "kind": "kind of quantity, as in suanli.units"},
)
def quantity_value(text: str, kind: str) -> float:
    """A number with a unit, in base units."""
    return units.parse(text, kind)


@formula(
    unit="as given",
    expression="as it stands",
    source="the project's own catalogue",
    legend={"value": "the figure"},
)
def catalogue_figure(value: float) -> float:
    """A figure read from the catalogue of devices or models."""
    return value


@formula(
    unit="FLOPs",
    expression="2mnp",
    source=_BOOKS,
    legend={"m": "m: rows of the left matrix", "n": "n: inner width", "p": "p: columns of the right matrix"},
)
def matmul_flops(m: int, n: int, p: int) -> int:
    """Product of an [m, n] with an [n, p] matrix."""
    return linear_flops(m, n, p)


@formula(
    unit="FLOPs",
    expression="2·MACs",
    source="one multiply and one add",
    legend={"macs": "multiply-accumulates"},
)
def mac_flops(macs: float) -> float:
    """FLOPs of multiply-accumulates."""
    return units.FLOPS_PER_MAC * macs


# --- time, money, energy ------------------------------------------------------------------------------------------


@formula(
    unit="days",
    expression="T·P·K/(n·X)/86400",
    source="arXiv:2104.04473 eq. 4",
    legend={
        "multiple": "K: 8 with full recompute (X then counts hardware FLOPs), else 6",
        "flop_per_s": "X: achieved rate of one GPU [FLOP/s]",
    },
)
def training_days(tokens: float, params: float, multiple: int, gpus: int, flop_per_s: float) -> float:
    """Days of a training run by the ideal form."""
    return tokens * params * multiple / (gpus * flop_per_s) / units.DAY


@formula(
    unit="FLOPs",
    expression="PF-days·1e15·86400",
    source=_BOOKS,
    legend={"petaflop_days": "petaFLOP/s-days"},
)
def petaflop_days_flops(petaflop_days: float) -> float:
    """FLOPs of a sum given in petaFLOP/s-days."""
    return petaflop_days * units.PETA * units.DAY


@formula(
    unit="parameters",
    expression="k·P_expert + P_shared",
    source=_BOOKS,
    legend={
        "experts_per_token": "k: experts counted (routed ones for active parameters, all for the total)",
        "params_per_expert": "P_expert: parameters of one expert",
        "shared_params": "P_shared: parameters every token passes",
    },
)
def mixture_params(experts_per_token: int, params_per_expert: float, shared_params: float) -> float:
    """Parameters of a mixture of experts, held or active."""
    return experts_per_token * params_per_expert + shared_params


@formula(
    unit="USD",
    expression="F_token·1000/(P·MFU)/3600·price",
    source=_BOOKS,
    legend={"flops_per_token": "F_token: FLOPs of one token", "price": "price of a GPU-hour [USD]"},
)
def usd_per_thousand_tokens(flops_per_token: float, peak_flop_per_s: float, mfu: float, price: float) -> float:
    """Cost of computing 1000 tokens."""
    return units.KILO * flops_per_token / (peak_flop_per_s * mfu) / units.HOUR * price


@formula(
    unit="fraction",
    expression="1 − cost/price",
    source=_BOOKS,
    legend={"cost": "cost of a unit", "price": "price of a unit"},
)
def gross_margin(cost: float, price: float) -> float:
    """Part of the price that the cost leaves."""
    return 1 - cost / price


@formula(
    unit="fraction",
    expression="u/(u + Δ) − 1",
    source="unit cost goes as 1/utilisation",
    legend={"utilisation": "u: utilisation, 0..1", "points": "Δ: percentage points gained"},
)
def unit_cost_change_by_points(utilisation: float, points: float) -> float:
    """Change of unit cost when utilisation rises by percentage points."""
    return utilisation / (utilisation + points * _HUNDREDTH) - 1


@formula(
    unit="fraction",
    expression="1/(1 + r) − 1",
    source="unit cost goes as 1/utilisation",
    legend={"relative": "r: relative gain of utilisation"},
)
def unit_cost_change_by_ratio(relative: float) -> float:
    """Change of unit cost when utilisation rises by a part of itself."""
    return 1 / (1 + relative) - 1


@formula(
    unit="W",
    expression="rate/(rate per watt)",
    source=_BOOKS,
    legend={"op_per_s": "operations a second", "op_per_s_per_w": "operations a second and watt"},
)
def power_from_efficiency(op_per_s: float, op_per_s_per_w: float) -> float:
    """Power of a chip whose rate and efficiency are given."""
    return op_per_s / op_per_s_per_w


# --- streams, sparsity, memory ------------------------------------------------------------------------------------


@formula(
    unit="op/s",
    expression="F_image·(w·h)/s²·fps·streams",
    source="a fully convolutional network's work goes with the area of the picture",
    legend={
        "ops_per_image": "F_image: operations of one square picture",
        "side": "s: side of that picture [pixels]",
        "width": "w: width of a frame [pixels]",
        "height": "h: height of a frame [pixels]",
        "frames_per_s": "fps: frames a second",
        "streams": "streams at once",
    },
)
def stream_op_per_s(
    ops_per_image: float, side: int, width: int, height: int, frames_per_s: float, streams: int
) -> float:
    """Rate needed to run a vision network on video streams."""
    return ops_per_image * (width * height) / side**2 * frames_per_s * streams


@formula(
    unit="op/s",
    expression="rate/(ρ_w·ρ_a)",
    source="EIE, arXiv:1602.01528: zero weights and zero activations are skipped",
    legend={
        "sparse_op_per_s": "rate on the compressed network",
        "weight_density": "ρ_w: weights that are not zero",
        "activation_density": "ρ_a: activations that are not zero",
    },
)
def dense_equivalent_op_per_s(sparse_op_per_s: float, weight_density: float, activation_density: float) -> float:
    """Rate a dense machine would need for the same results."""
    return sparse_op_per_s / (weight_density * activation_density)


@formula(
    unit="bytes",
    expression="last − first + 1",
    source=_BOOKS,
    legend={"first": "first address", "last": "last address"},
)
def address_range_bytes(first: int, last: int) -> int:
    """Bytes of an address range, both ends in it."""
    return last - first + 1


# --- linear speed-up ----------------------------------------------------------------------------------------------


@formula(
    unit="fraction",
    expression="(t₁/t₂)/(n₂/n₁)",
    source=_BOOKS,
    legend={
        "seconds_from": "t₁: time on the smaller system, same work",
        "seconds_to": "t₂: time on the larger one",
        "gpus_from": "n₁: GPUs of the smaller system",
        "gpus_to": "n₂: GPUs of the larger one",
    },
)
def linear_ratio_by_time(seconds_from: float, seconds_to: float, gpus_from: int, gpus_to: int) -> float:
    """Linear speed-up ratio from times of the same work (any unit of time)."""
    return seconds_from / seconds_to / (gpus_to / gpus_from)


@formula(
    unit="fraction",
    expression="(r₂/n₂)/(r₁/n₁)",
    source=_BOOKS,
    legend={
        "rate_from": "r₁: rate of the whole smaller system",
        "rate_to": "r₂: rate of the whole larger one",
        "gpus_from": "n₁: GPUs of the smaller system",
        "gpus_to": "n₂: GPUs of the larger one",
    },
)
def linear_ratio_by_rate(rate_from: float, rate_to: float, gpus_from: int, gpus_to: int) -> float:
    """Linear speed-up ratio from total rates: tokens/s, samples/s or achieved FLOP/s."""
    return rate_to / gpus_to / (rate_from / gpus_from)


@formula(
    unit="fraction",
    expression="MFU₂/MFU₁",
    source="per-GPU rates at one convention and one model",
    legend={"mfu_from": "MFU₁ on the smaller system", "mfu_to": "MFU₂ on the larger one"},
)
def linear_ratio_by_mfu(mfu_from: float, mfu_to: float) -> float:
    """Linear speed-up ratio from utilisations, or any other figure per GPU."""
    return mfu_to / mfu_from
