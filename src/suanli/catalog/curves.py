"""Seconds of a kernel or a collective on a device: the fitted curves of `catalog/curves/`, joined to the formulas.

Every method takes numbers or float64 arrays, which broadcast. The times are those of a micro-benchmark: kernels
replayed from a graph, operands warm in the cache, the chip free to boost. `sustained` lowers the arithmetic rates to
those of a long run; launches from Python are a matter of the software stack and not in here.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from suanli.catalog.curve_files import CurveFile, Relative, read_curve_text, read_relatives_text
from suanli.catalog.devices import find_device, list_devices
from suanli.errors import Fault, FaultList, InputError, UnknownNameError, nearest_names, shown, unknown_name
from suanli.formulas import collectives, counting, kernels
from suanli.formulas.kernels import Numbers, larger, smaller
from suanli.nouns.curves import COLLECTIVES, AttentionCurve, CollectiveCurve, ExpertsCurve, Fabric, MatmulCurve
from suanli.nouns.hardware import Device

PEAK_OF = {"bf16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "fp4"}
_SWITCH = "all_reduce_switch"  # the switches add up (NVLS); taken where it is faster and the group large enough


@dataclass(frozen=True, kw_only=True)
class DeviceCurves:
    """How fast one device computes and talks to its neighbours."""

    device: Device
    file: CurveFile
    extrapolated: str | None = None  # short id of the device whose curves these are, scaled by peaks and bandwidth
    note: str = ""  # why that device
    sustained: float = 1.0  # arithmetic rate of a long run over that of the benchmark
    _scale: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def launch_s(self) -> float:
        """Time in seconds of an empty kernel replayed from a graph."""
        return self.file.memory.floor_s

    @property
    def matmul_dtypes(self) -> tuple[str, ...]:
        """The dtypes `matmul_s` takes, stand-ins included."""
        known = tuple(dtype for dtype in self.file.matmul if self._peak(dtype) is not None)
        return known + tuple(name for name, other in self.file.stands_for.items() if other in known)

    def at_sustained(self, fraction: float) -> DeviceCurves:
        """The same curves at `fraction` (above 0, at most 1) of the arithmetic rates."""
        if not 0 < fraction <= 1:
            expected = "above 0 and at most 1"
            raise InputError(
                Fault(code="bad_fraction", message="not a fraction of a rate", got=shown(fraction), expected=expected)
            )
        return replace(self, sustained=fraction)

    def matmul_s(self, m: Numbers, n: Numbers, k: Numbers, count: Numbers = 1, dtype: str = "bf16") -> Numbers:
        """Seconds of one kernel of `count` products [m, k] × [k, n]; 8-bit and 4-bit ones quantise the m·k side first.

        Raises UnknownNameError for a dtype the device has no curve for.
        """
        curve = self._curve(self.file.matmul, dtype, "dtype of a matrix product")
        return kernels.matmul_s(m, n, k, count, *self._product_numbers(curve))

    def grouped_matmul_s(
        self, tokens: Numbers, groups: Numbers, n: Numbers, k: Numbers, dtype: str = "bf16"
    ) -> Numbers:
        """Seconds of one kernel of `groups` products [tokens/groups, k] × [k, n], tokens spread evenly over experts."""
        curve = self._curve(self.file.experts, dtype, "dtype of grouped products")
        return kernels.matmul_s(tokens / groups, n, k, groups, *self._product_numbers(curve))

    def routing_s(
        self, tokens: Numbers, choices: Numbers, routed: Numbers, hidden: Numbers, ffn: Numbers, dtype: str = "bf16"
    ) -> Numbers:
        """Seconds of moving tokens to and from their experts on one GPU, forward, communication left out.

        `tokens` of the whole expert-parallel group, each with `choices` experts; `routed` of those choices fall on
        this GPU; `hidden` the model's width, `ffn` the inner width on this GPU.
        """
        curve = self._curve(self.file.experts, dtype, "dtype of grouped products")
        rate = self._memory_rate(curve.memory_fraction)
        moved = curve.routed_bytes * routed * (hidden + ffn) + curve.token_bytes * tokens * hidden
        return moved / rate + curve.choice_s * tokens * choices

    def attention_s(
        self,
        batch: Numbers,
        heads: Numbers,
        kv_heads: Numbers,
        queries: Numbers,
        keys: Numbers,
        qk_dim: Numbers,
        v_dim: Numbers,
        causal: bool = True,
        backward: bool = False,
        dtype: str = "bf16",
        window: Numbers | None = None,
    ) -> Numbers:
        """Seconds of one fused attention over `queries` of the last of `keys` positions; `backward` alone, if asked.

        A causal query sees the `window` last positions, all where it is None. `window` without `causal` is refused.
        """
        curve = self._curve(self.file.attention, dtype, "dtype of attention")
        row = keys if window is None else smaller(window, keys)
        pairs = counting.causal_pairs(queries, keys, row) if causal else counting.full_pairs(queries, keys)
        if window is not None and not causal:
            message = "a window without a causal mask has no curve"
            raise InputError(Fault(code="no_curve", message=message, hint="Give causal=True, or no window."))
        shape = (batch, heads, kv_heads, queries, keys, pairs, row, qk_dim, v_dim)
        forward = kernels.attention_s(*shape, *self._attention_numbers(curve))
        return kernels.attention_backward_s(forward, curve.backward_rate) if backward else forward

    def memory_s(self, bytes: Numbers) -> Numbers:
        """Seconds of a kernel that reads and writes `bytes` in all and computes next to nothing."""
        curve = self.file.memory
        return kernels.memory_pass_s(bytes, self._memory_rate(curve.fraction), curve.floor_s)

    def collective_s(
        self,
        kind: str,
        bytes: Numbers,
        ranks: Numbers,
        fabric: Fabric,
        ranks_per_node: Numbers | None = None,
    ) -> Numbers:
        """Seconds of one collective of `ranks` GPUs; 0 for one rank.

        `bytes` is the whole tensor: what a rank holds after an all-gather, before a reduce-scatter, before and
        after an all-reduce; of an all-to-all what a rank sends to all, itself included; of p2p the message (`ranks` 2).
        `ranks_per_node` says how many of the group are in one node (as many as fit where it is None): 1 puts every rank
        in a node of its own. Groups in the rest of a node work at the same time and have their share of its adapters.

        Raises UnknownNameError for an unknown kind, InputError for an impossible group and for one that leaves a node
        whose adapters are not known.
        """
        if kind not in COLLECTIVES:
            hint = "all_to_all serves experts too."
            raise unknown_name("collective", str(kind), COLLECTIVES, where="kind", hint=hint)
        _check_group(ranks, ranks_per_node, fabric)
        local = fabric.gpus_per_node if ranks_per_node is None else ranks_per_node
        local = smaller(ranks, local)
        nodes = collectives.nodes_of_group(ranks, local)
        inside = self._inside_s(kind, bytes, ranks, fabric)
        if not _any(nodes > 1):
            return inside * (ranks > 1)
        if fabric.nics_bytes_per_s is None:
            raise _no_adapters(fabric)
        group = fabric.nics_bytes_per_s * fabric.nic_efficiency * local / fabric.gpus_per_node
        across = self._across_s(kind, bytes, (ranks, local, nodes), fabric, group)
        return (inside * (nodes <= 1) + across * (nodes > 1)) * (ranks > 1)

    # -- one node ------------------------------------------------------------------------------------------------

    def _inside_s(self, kind: str, tensor_bytes: Numbers, ranks: Numbers, fabric: Fabric) -> Numbers:
        """Seconds of a collective whose ranks share a node."""
        if kind == "p2p":  # half of an all-to-all of two ranks' worth crosses the link
            return self._alone_s("all_to_all", 2 * tensor_bytes, ranks * 0 + 2, fabric)
        alone = self._alone_s(kind, tensor_bytes, ranks, fabric)
        switch = self.file.collectives.get(_SWITCH)
        if kind != "all_reduce" or switch is None:
            return alone
        switched = self._alone_s(_SWITCH, tensor_bytes, ranks, fabric)
        large = ranks >= switch.least_ranks
        return smaller(alone, switched) * large + alone * (1 - large * 1)

    def _alone_s(self, kind: str, tensor_bytes: Numbers, ranks: Numbers, fabric: Fabric) -> Numbers:
        curve = self._collective(kind)
        wire = collectives.wire_bytes(tensor_bytes, ranks, _passes(kind))
        latency = collectives.inner_latency_s(ranks, curve.base_s, curve.step_s)
        latency = latency + collectives.large_message_s(tensor_bytes, ranks, curve.large_step_s)
        return latency + _transfer_s(curve, wire, ranks, fabric)

    # -- several nodes -------------------------------------------------------------------------------------------

    def _across_s(
        self, kind: str, size: Numbers, shape: tuple[Numbers, Numbers, Numbers], fabric: Fabric, group: Numbers
    ) -> Numbers:
        """Seconds of a collective over several nodes; `shape` = ranks, of them in one node, nodes; `group`: B/s."""
        ranks, local, nodes = shape
        curve = self._collective("all_to_all" if kind == "p2p" else kind)
        if kind == "p2p":
            return curve.base_s + fabric.ring_step_s + size / (group / local)
        if kind == "all_to_all":
            inside = _transfer_s(curve, size * (local - 1) / ranks, local, fabric)
            return collectives.all_to_all_across_s(
                size, ranks, local, curve.base_s, curve.step_s, fabric.ring_step_s, inside, group
            )
        passes = _passes(kind)
        wire = collectives.wire_bytes(size, ranks, passes)
        inside = _transfer_s(curve, wire * (local > 1), ranks, fabric)
        ring = collectives.ring_s(
            ranks, nodes, passes, curve.base_s, curve.step_s, fabric.ring_step_s, inside, wire / group
        )
        if kind != "all_reduce":
            return ring
        inside = _transfer_s(curve, collectives.wire_bytes(size, local, passes), local, fabric)
        tree = collectives.tree_all_reduce_s(
            size, local, nodes, curve.base_s, curve.step_s, fabric.tree_step_s, inside, group
        )
        return smaller(ring, tree)

    # -- numbers of this device ----------------------------------------------------------------------------------

    def _collective(self, kind: str) -> CollectiveCurve:
        curve = self.file.collectives.get(kind)
        if curve is None:
            message = f"{self.device.short_id} has no curve for {kind}"
            hint = "No collectives were measured on it."
            raise UnknownNameError(Fault(code="no_curve", message=message, hint=hint))
        return curve

    def _curve(self, curves: Mapping[str, Any], dtype: str, what: str) -> Any:
        """The curve of `dtype`. Raises UnknownNameError where there is none, or no peak to scale it by."""
        curve = curves.get(self.file.stands_for.get(dtype, dtype)) if isinstance(dtype, str) else None
        known = [name for name in curves if self._peak(name) is not None]
        known += [name for name, other in self.file.stands_for.items() if other in known]
        if curve is None or dtype not in known:
            message = f"{self.device.short_id} has no curve for {what} {shown(dtype)}"
            expected = f"one of {', '.join(known)}" if known else "none is known"
            near = nearest_names(str(dtype), known)
            raise UnknownNameError(
                Fault(code="no_curve", message=message, where="dtype", expected=expected, nearest=near)
            )
        return curve

    def _peak(self, dtype: str) -> float | None:
        """Dense peak in FLOP/s that the efficiency of `dtype` refers to on this device."""
        if self.extrapolated is None:
            sections: tuple[Mapping[str, Any], ...] = (self.file.matmul, self.file.experts, self.file.attention)
            return next(float(curves[dtype].peak_flop_per_s) for curves in sections if dtype in curves)
        peaks, scale = self.device.peaks_flop_per_s, self._scale.get(dtype, 1.0)
        name = PEAK_OF[dtype]
        peak = peaks.get(name) or (peaks.get("fp16") if name == "bf16" else None)
        return None if peak is None else peak / self.device.torch_devices_per_package * scale

    @property
    def units(self) -> float:
        """Multiprocessors of the device, the measured one's where its own are not known."""
        return self.file.units if self.extrapolated is None else self.device.sm_count or self.file.units

    def _memory_rate(self, fraction: float) -> float:
        own = self.device.memory_bytes_per_s_per_torch_device if self.extrapolated else None
        return fraction * (own or self.file.memory_bytes_per_s)

    def _flop_per_s(self, curve: MatmulCurve | AttentionCurve, dtype: str) -> float:
        peak = self._peak(dtype)
        assert peak is not None, "curves without a peak are refused before"
        return curve.efficiency * peak * self.sustained

    def _product_numbers(self, curve: MatmulCurve | ExpertsCurve) -> tuple[float, ...]:
        """The arguments of `kernels.matmul_s` after the shape."""
        return (
            self.units,
            self._flop_per_s(curve, curve.dtype),
            curve.wave_exponent,
            curve.short_k,
            curve.small_tile,
            curve.sharpness,
            self._memory_rate(curve.memory_fraction),
            curve.floor_s,
            curve.operand_bytes,
            curve.output_bytes,
            curve.quantise_bytes,
        )

    def _attention_numbers(self, curve: AttentionCurve) -> tuple[float, ...]:
        """The arguments of `kernels.attention_s` after the shape."""
        return (
            self.units,
            self._flop_per_s(curve, curve.dtype),
            curve.wave_exponent,
            curve.edge_pairs,
            curve.narrow_head,
            curve.wide_head,
            curve.sharpness,
            self._memory_rate(curve.memory_fraction),
            curve.floor_s,
            curve.operand_bytes,
        )


def _passes(kind: str) -> int:
    return 2 if kind.startswith("all_reduce") else 1


def _transfer_s(curve: CollectiveCurve, wire: Numbers, ranks: Numbers, fabric: Fabric) -> Numbers:
    shape = (curve.rate_fraction, curve.few_ranks, curve.ramp_bytes, curve.ramp_exponent)
    return collectives.link_transfer_s(wire, larger(ranks, 2), fabric.link_bytes_per_s, *shape)


def _any(truth: Any) -> bool:
    """Whether a truth value, or any of an array of them, holds."""
    return bool(truth.any()) if hasattr(truth, "any") else bool(truth)


def _check_group(ranks: Numbers, ranks_per_node: Numbers | None, fabric: Fabric) -> None:
    """Raise one InputError that lists what no group can be."""
    faults = FaultList(InputError)
    if _any(ranks < 1):
        faults.add(code="bad_group", message="a group without ranks", where="ranks", got=shown(ranks))
    if ranks_per_node is not None and (_any(ranks_per_node < 1) or _any(ranks_per_node > fabric.gpus_per_node)):
        faults.add(
            code="bad_group",
            message=f"not a number of ranks in a node of {fabric.name}",
            where="ranks_per_node",
            got=shown(ranks_per_node),
            expected=f"1 to {fabric.gpus_per_node}",
        )
    faults.raise_if_any()


def _no_adapters(fabric: Fabric) -> InputError:
    return InputError(
        Fault(
            code="no_adapters",
            message=f"a group leaves its node, and the adapters of {fabric.name} are not known",
            where="--fabric",
            hint="Give the rate of all adapters of a node, one direction, like 8x450GB/s+400GB/s.",
        )
    )


# -- the files -------------------------------------------------------------------------------------------------------


def find_curves(device: Device | str) -> DeviceCurves:
    """The curves of a device: measured, or of a stated relative, scaled by peaks, bandwidth and multiprocessors.

    Raises UnknownNameError, naming the nearest device with curves, where there are none; never a default.
    """
    found = find_device(device) if isinstance(device, str) else device
    file = _files().get(found.id)
    if file is not None:
        return DeviceCurves(device=found, file=file)
    relative = _relatives().get(found.id)
    if relative is None:
        raise _no_curves(found)
    measured = find_device(relative.of)
    scale = dict(relative.rate)
    return DeviceCurves(
        device=found, file=_files()[relative.of], extrapolated=measured.short_id, note=relative.why, _scale=scale
    )


def devices_with_curves() -> dict[str, bool]:
    """Ids of the devices `find_curves` knows, with whether they were measured (else scaled from a relative)."""
    return {d.id: d.id in _files() for d in list_devices() if d.id in _files() or d.id in _relatives()}


def _no_curves(device: Device) -> UnknownNameError:
    known = {find_device(name).short_id: name for name in devices_with_curves()}
    kin = [short for short in known if find_device(known[short]).vendor == device.vendor]
    near = nearest_names(device.short_id, kin) or nearest_names(device.short_id, known)
    return UnknownNameError(
        Fault(
            code="no_curves",
            message=f"no kernel times are known for {device.short_id}",
            expected=f"one of the {len(known)} devices with curves",
            nearest=near or tuple(known)[:3],
            hint="Measure it and run scripts/fit_curves.py, or name a relative in catalog/curves/relatives.toml.",
        )
    )


@functools.cache
def _files() -> dict[str, CurveFile]:
    folder = resources.files("suanli.catalog") / "curves"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    own = [name for name in names if name not in ("relatives.toml", "networks.toml")]
    files = [read_curve_text((folder / name).read_text(encoding="utf-8"), name) for name in own]
    return {file.device: file for file in files}


@functools.cache
def _relatives() -> dict[str, Relative]:
    text = (resources.files("suanli.catalog") / "curves" / "relatives.toml").read_text(encoding="utf-8")
    return read_relatives_text(text, "relatives.toml", set(_files()))
