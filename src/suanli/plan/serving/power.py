"""Energy of a decoded token: a GPU's board power, by what it does. Fitted to measured joules a token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suanli.errors import Fault, InputError
from suanli.formulas.counting import linear_flops
from suanli.nouns.serving_profile import PowerProfile
from suanli.plan.serving.times import Replica

Array = Any
Numbers = Any
BELIEVED = (0.5, 0.4, 0.4)  # always, memory, products
_SPREAD = 0.5  # of their logarithms
_NOISE, _STEPS = 0.05, 40


def joule_parts(replica: Replica, isl: float, osl: float, concurrency: float, token_s: float) -> tuple[float, ...]:
    """Board joules of one output token that each part of a PowerProfile multiplies: the whole time between two tokens,
    the time memory is read at its full rate, the time products would take at the 16-bit peak. GPUs of the replica.

    Raises InputError where the board power of the device is not known.
    """
    share = board_w(replica) * replica.layout.gpus / concurrency
    decode = replica.decode_parts(float(concurrency), isl + osl / 2)
    prefill = concurrency / osl * replica.prefill_parts(float(isl), float(isl)).arithmetic
    reading = decode.weights + decode.experts + decode.cache
    return tuple(float(share * each) for each in (token_s, reading, arithmetic_s(replica, concurrency) + prefill))


def board_w(replica: Replica) -> float:
    """Board power of one torch device [W]."""
    if replica.device.tdp_w is None:
        message = f"the board power of {replica.device.short_id} is not known"
        raise InputError(Fault(code="no_power", message=message, where="--gpu"))
    return replica.device.tdp_w / replica.device.torch_devices_per_package


def arithmetic_s(replica: Replica, concurrency: float) -> float:
    """Seconds of one decode step's products at the dense 16-bit peak."""
    own: Numbers = concurrency / replica.layout.dp_attention / replica.layout.pp
    routed: Numbers = concurrency / replica.layout.pp / replica.layout.ep
    work = replica.work
    dense = sum(each.count * linear_flops(own, each.k, each.n) for each in work.products)
    grouped = sum(
        each.count * linear_flops(routed * each.chosen, k, n) for each in work.mixtures for n, k in each.matrices
    )
    return float((dense + grouped) / replica.peak("bf16"))


def joules_per_token(parts: Sequence[float], profile: PowerProfile) -> float:
    """Joules of the replica's GPUs for one output token, host and cooling not included."""
    return parts[0] * profile.always + parts[1] * profile.memory + parts[2] * profile.products


def fit_power(parts: Array, joules: Array) -> tuple[float, float, float]:
    """The three parts of board power that measured joules and belief agree on, as `fitting.fit_engines` does."""
    import numpy as np  # noqa: PLC0415

    base, theta = np.log(BELIEVED), np.zeros(len(BELIEVED))
    goal = np.log(joules)
    for _ in range(_STEPS):
        terms = parts * np.exp(base + theta)
        total = terms.sum(axis=1)
        slopes = terms / total[:, None]
        error = np.log(total) - goal
        pull = 1 / np.maximum(np.abs(error) / _NOISE, 1.0) / _NOISE**2
        normal = (slopes * pull[:, None]).T @ slopes + np.eye(len(theta)) / _SPREAD**2
        step = np.linalg.solve(normal, -(slopes * pull[:, None]).T @ error - theta / _SPREAD**2)
        theta = theta + np.clip(step, -0.5, 0.5)
    always, memory, products = (float(each) for each in np.exp(base + theta))
    return always, memory, products
