"""Measured steps as what a prediction needs: model, batch, the layouts they may have had, device, network, stack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import gcd
from typing import Any

from suanli.catalog.devices import find_device
from suanli.catalog.fabrics import node_fabric
from suanli.catalog.measured import source_facts
from suanli.catalog.runs import measured_rate_per_gpu
from suanli.errors import Fault, InputError, unknown_name
from suanli.nouns.arch import Arch
from suanli.nouns.layers import Experts
from suanli.nouns.layout import Layout
from suanli.nouns.measured import MeasuredStep, OwnRun
from suanli.nouns.run import PublishedRun
from suanli.plan.pieces import parts_of
from suanli.plan.sharding import check_layout
from suanli.readers.paper import read_paper_decoder
from suanli.recount import arch_of, letters_of
from suanli.units import parse

_USUAL_NODES = {
    "a100-40gb-sxm": "hgx-a100", "a100-80gb-sxm": "hgx-a100", "h100-sxm": "hgx-h100", "b200": "hgx-b200",
    "b300": "dgx-b300", "gb200": "gb200-nvl72", "gb300": "gb300-nvl72",
}  # fmt: skip
# Racks of 72 whose catalogue row leaves the adapters open: 400 and 800 Gb/s a GPU (ConnectX-7 and -8), taken as usual.
_RACK_NICS = {"gb200-nvl72": "3600GB/s", "gb300-nvl72": "7200GB/s"}
# What the rows of Megatron-Bridge call GPUs; every H100 is in a DGX H100.
_NODE_OF = {"H100": "h100-sxm", "B200": "b200", "B300": "b300", "GB200": "gb200", "GB300": "gb300"}
_DTYPES = {
    "BF16": "bf16", "FP8": "fp8", "FP8-CS": "fp8", "MXFP8": "mxfp8", "FP8-MX": "mxfp8", "NVFP4": "nvfp4",
}  # fmt: skip
# Rows whose precision is printed as FP8-CS and whose value is that of FP8-MX (two columns of the source exchanged).
_EXCHANGED = frozenset(f"megatron-bridge-{number:04}" for number in (269, 271, 273, 275, 281, 283))
_FACTS = "Say there which stack, node and network its runs had."
_CHUNKS = (1, 2, 3, 4, 5, 6, 8, 10, 12)
_MICRO_BATCHES = (1, 2, 4, 8, 16)


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A measured step. Several layouts where the micro-batch or the interleaving was not published."""

    id: str
    source: str
    model: str = field(metadata={"doc": "name as printed"})
    family: str = field(metadata={"doc": "what is left out together in a fold by model family"})
    arch: Arch = field(hash=False)
    seq: int = field(metadata={"unit": "tokens", "doc": "positions of a sequence"})
    global_batch: int = field(metadata={"unit": "sequences", "doc": "sequences of a step"})
    layouts: tuple[Layout, ...] = ()
    device: str = field(metadata={"doc": "short id"})
    dtype: str = field(metadata={"doc": "of the products"})
    stack: str = field(metadata={"doc": "name of its profile"})
    release: str = field(default="", metadata={"doc": "version of the stack, where sources tell"})
    fabric: Any = field(hash=False, metadata={"doc": "links and network"})
    step_s: float = field(metadata={"unit": "s", "doc": "measured"})

    @property
    def gpus(self) -> int:
        """GPUs it ran on."""
        return self.layouts[0].gpus

    @property
    def routed(self) -> bool:
        """Whether its model has routed experts."""
        return any(isinstance(placed.layer, Experts) for placed in self.arch.leaves())

    @property
    def labels(self) -> tuple[str, str, str]:
        """What its numbers may differ by within a stack: device and dtype, release, model family."""
        return f"{self.device} {self.dtype}", self.release, self.family


def observe_step(step: MeasuredStep) -> Observation:
    """A row of measured_runs.csv."""
    facts = source_facts().get(step.source)
    if facts is None:
        raise unknown_name("source", step.source, source_facts(), where="measured_sources.toml", hint=_FACTS)
    device = find_device(f"{step.gpu}-SXM").short_id
    letters = (step.hidden, step.num_layers, step.heads, step.kv_heads, step.ffn, step.vocab, step.gated, step.seq)
    given = {
        "tp": step.tp, "pp": step.pp, "dp": step.dp, "cp": step.cp, "zero": step.zero, "recompute": step.recompute,
        "sp": step.sp and step.tp > 1,
    }  # fmt: skip
    layouts = _layouts(given, step.num_layers, step.global_batch, step.micro_batch, step.vpp)
    return Observation(
        id=step.id, source=step.source, model=step.model, family=step.model, arch=_decoder(*letters), seq=step.seq,
        global_batch=step.global_batch, layouts=tuple(layouts), device=device, dtype=step.dtype, stack=facts.stack,
        fabric=_fabric(device, facts.node, facts.nics), step_s=step.step_s,
    )  # fmt: skip


def observe_run(run: PublishedRun) -> Observation | None:
    """A pre-training row of Megatron-Bridge in published_runs.csv; None where its shape, rate or dtype is not printed
    or its GPU's usual node is not known."""
    letters, rate = letters_of(run), measured_rate_per_gpu(run)
    ours = run.group == "megatron-bridge" and run.task.startswith("pretrain")
    dtype = "mxfp8" if run.id in _EXCHANGED else _DTYPES.get(run.precision or "")
    device = _NODE_OF.get(run.gpu)
    if not (ours and letters and rate and run.gbs_seqs and run.gpu_count and run.tp and run.pp and run.dp):
        return None
    if dtype is None or device is None:
        return None
    if "w/ MTP" in run.model:  # one layer more, that predicts the token after the next
        letters = replace(letters, num_layers=letters.num_layers + 1)
    spread = run.tp * (run.cp or 1) * run.dp
    given = {
        "tp": run.tp, "pp": run.pp, "dp": run.dp, "cp": run.cp or 1, "zero": 3 if run.zero_fsdp == "FSDP" else 1,
        "ep": gcd(run.ep or 1, spread), "recompute": "none", "sp": run.tp > 1,
    }  # fmt: skip
    found = re.search(r"Megatron-Bridge (\d+\.\d+)", run.framework or "")  # a patch release counts as its release
    return Observation(
        id=run.id, source="Megatron-Bridge " + ("MoE" if letters.experts else "dense"), model=run.model,
        family=re.split(r"[ _.]", run.model)[0] if letters.experts else run.model, arch=arch_of(letters, windows=True),
        seq=letters.seq, global_batch=run.gbs_seqs, device=device,
        layouts=tuple(_layouts(given, letters.num_layers, run.gbs_seqs, run.mbs_seqs, run.vpp)),
        dtype=dtype, stack="megatron-bridge",
        release=found[1] if found else "", fabric=_fabric(device, "usual", "usual"),
        step_s=run.gbs_seqs * letters.seq / run.gpu_count / rate,
    )  # fmt: skip


def observe_own(run: OwnRun, arch: Arch, device: str, fabric: Any, stack: str) -> Observation:
    """A row of a user's file: its model as read, the short id of its device, its links, the shipped stack it ran under.
    Where the micro-batch or the interleaving is not known it has every layout that they leave open.

    Raises InputError for what is no layout of that model and batch.
    """
    given: dict[str, Any] = {**run.degrees, "zero": run.zero, "recompute": run.recompute, "sp": run.sp}
    parts = parts_of(arch)
    if run.micro_batch and run.vpp:
        schedule = run.schedule or ("interleaved" if run.vpp > 1 else "1f1b")
        layouts: tuple[Layout, ...] = (Layout(**given, micro_batch=run.micro_batch, vpp=run.vpp, schedule=schedule),)
        layouts[0].micro_batches(run.global_batch)
    elif run.schedule:
        raise InputError(Fault(code="contradiction", message="a schedule is of a known micro-batch and interleaving",
                               where="schedule", got=run.schedule, expected="micro_batch and vpp above 0"))  # fmt: skip
    else:
        layouts = tuple(_layouts(given, parts.num_layers, run.global_batch, run.micro_batch, run.vpp))
    if not layouts:
        raise InputError(Fault(code="no_layout", message="no micro-batch makes the batch whole",
                               got=f"{run.global_batch:,} sequences on dp {run.degrees['dp']:,}"))  # fmt: skip
    for layout in layouts[:1]:
        check_layout(parts, layout, run.seq)
    return Observation(
        id=run.id, source="own runs", model=arch.name, family=arch.name, arch=arch, seq=run.seq,
        global_batch=run.global_batch, layouts=layouts, device=device, dtype=run.dtype, stack=stack, fabric=fabric,
        step_s=run.step_s,
    )  # fmt: skip


def own_decoder(shape: Mapping[str, Any], seq: int) -> Arch:
    """The decoder of a row that tells its shape: hidden, num_layers, heads, kv_heads, ffn, vocab, gated."""
    names = ("hidden", "num_layers", "heads", "kv_heads", "ffn", "vocab", "gated")
    return _decoder(*(shape[name] for name in names), seq)


@cache
def _decoder(hidden: int, layers: int, heads: int, kv_heads: int, ffn: int, vocab: int, gated: bool, seq: int) -> Arch:
    """A GPT (biases, learned positions, tied head) where the MLP is not gated, else a Llama."""
    values = {
        "num_layers": layers, "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "ffn": ffn, "vocab": vocab,
        "gated": gated, "norm": "rmsnorm" if gated else "layernorm", "tied": not gated,
        "learned_positions": not gated, "max_positions": seq, "attention_bias": not gated, "mlp_bias": not gated,
    }  # fmt: skip
    return read_paper_decoder(values, "measured run")


@cache
def _fabric(device: str, node: str, nics: str) -> Any:
    node = _USUAL_NODES[device] if node == "usual" else node
    nics = _RACK_NICS.get(node, "") if nics == "usual" else nics
    return node_fabric(node, nics_bytes_per_s=parse(nics, "bytes_per_s", "nics") if nics else None)


def _layouts(
    given: dict[str, Any], layers: int, global_batch: int, micro_batch: int | None, vpp: int | None
) -> Iterator[Layout]:
    """The layout as published, or every legal one where something was not."""
    chunks: Sequence[int] = (1,) if given["pp"] == 1 else (vpp,) if vpp else _CHUNKS
    for size in (micro_batch,) if micro_batch else _MICRO_BATCHES:
        steps, rest = divmod(global_batch, given["dp"] * size)
        for count in chunks:
            even = vpp or count == 1 or layers % (given["pp"] * count) == 0
            if rest or not even or (not vpp and count > 1 and steps % given["pp"]):
                continue
            schedule = "interleaved" if count > 1 else "1f1b"
            yield Layout(**given, micro_batch=size, vpp=count, schedule=schedule)
