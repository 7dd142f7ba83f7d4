"""The counters there are: where each comes from, what it says its number is, and where it can run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from suanli.errors import Fault, UnknownNameError, unknown_name

Progress = Callable[[str, int, int], None]  # title of what runs, how many are done, of how many

MACS, FLOPS, NOTHING = "MACs", "FLOPs", "no count"
META, CPU = "meta", "cpu"


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A counter. `says` is its own word for what it gives, `unit` what that is."""

    name: str
    title: str
    package: str = ""  # as pip knows it; empty for a formula
    module: str = ""  # as Python imports it
    needs: tuple[str, ...] = ()  # packages its import asks for beside torch
    unit: str = FLOPS
    says: str = FLOPS
    devices: tuple[str, ...] = (META, CPU)
    training: bool = False  # a formula for a training step
    source: str = ""


def _tool(name: str, title: str, package: str, **more: object) -> Peer:
    return Peer(name=name, title=title, package=package, **{"module": package.replace("-", "_"), **more})  # type: ignore[arg-type]


_ROWS = (
    _tool("flop_counter_mode", "torch FlopCounterMode", "torch"),
    _tool("calflops", "calflops", "calflops", needs=("accelerate",)),
    _tool("deepspeed", "DeepSpeed profiler", "deepspeed"),
    _tool("ptflops", "ptflops, pytorch backend", "ptflops", unit=MACS, says="MACs"),
    _tool("ptflops-aten", "ptflops, aten backend", "ptflops", unit=MACS, says="MACs"),
    _tool("thop", "thop", "thop", unit=MACS, says="MACs"),
    _tool("fvcore", "fvcore", "fvcore", unit=MACS, says="flops"),
    _tool("torchinfo", "torchinfo", "torchinfo", unit=MACS, says="mult-adds"),
    _tool("torchprofile", "torchprofile", "torchprofile", unit=MACS, says="MACs"),
    _tool("torchsummary", "torchsummary", "torchsummary", unit=NOTHING, says="nothing", devices=(CPU,)),
    _tool("torchstat", "torchstat", "torchstat", needs=("pandas",), unit=MACS, says="Flops", devices=(CPU,)),
    Peer(
        name="megatron", title="Megatron-LM formula", training=True,
        source="Megatron-LM core 0.12 and later, num_floating_point_operations",
    ),
    Peer(
        name="electra", title="ELECTRA script", training=True,
        source="google-research/electra at 62e478a, flops_computation.py, defaults of its TransformerHparams",
    ),
    Peer(
        name="hf-trainer", title="Hugging Face total_flos", training=True,
        source="transformers 5, Trainer.floating_point_ops: 6 × elements of the main input × parameters",
    ),
    Peer(name="palm", title="PaLM formula", training=True, source="arXiv:2204.02311 appendix B"),
    Peer(name="6nd", title="6·N·D", training=True, source="arXiv:2001.08361 §2.1"),
)  # fmt: skip
PEERS = {row.name: row for row in _ROWS}
TOOLS = tuple(row.name for row in _ROWS if row.package)
FORMULAS = tuple(row.name for row in _ROWS if not row.package)


def find_peer(name: str, where: str, among: Iterable[str] = PEERS) -> Peer:
    """The counter of that name. Raises UnknownNameError with the nearest."""
    known = tuple(among)
    key = name.strip().lower().replace("_", "-")
    found = {each.replace("_", "-"): each for each in known}
    if key not in found:
        raise unknown_name("counter", name, known, where=where, hint="Counters: " + ", ".join(known) + ".")
    return PEERS[found[key]]


def find_peers(names: Iterable[str], where: str) -> tuple[Peer, ...]:
    """Counters in the order given, each once. Raises UnknownNameError for all the names that none has."""
    found: dict[Peer, None] = {}
    faults: dict[Fault, None] = {}
    for name in names:
        try:
            found[find_peer(name, where)] = None
        except UnknownNameError as problem:
            faults |= dict.fromkeys(problem.faults)
    if faults:
        raise UnknownNameError(*faults)
    return tuple(found)
