"""How a training run is laid over GPUs: parallel degrees, micro-batch, sharding of states, recompute, schedule."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from suanli.errors import FaultList, InputError, nearest_names, shown
from suanli.nouns.workload import RECOMPUTE, option

SCHEDULES = ("1f1b", "interleaved", "zero-bubble", "dualpipe")
ZERO = (0, 1, 2, 3)
MAX_DEGREE = 10**6  # more GPUs on one axis are typing errors, not clusters


def _field(unit: str, doc: str, default: Any = 1) -> Any:
    return field(default=default, metadata={"unit": unit, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One way to train on `tp · pp · dp · cp` GPUs. Raises InputError listing every field that cannot be.

    Experts are spread over `ep` ranks taken out of dp and cp (and tp where `etp` is 1), each cut into `etp` parts, as
    in Megatron-core: ep · etp divides tp · cp · dp, and experts have tp · cp · dp / (ep · etp) replicas.
    """

    tp: int = _field("ranks", "tensor parallel: matrices cut, activations exchanged in every layer")
    pp: int = _field("ranks", "pipeline parallel: layers cut into stages")
    dp: int = _field("ranks", "data parallel: replicas, each with sequences of its own")
    cp: int = _field("ranks", "context parallel: a sequence cut into parts")
    ep: int = _field("ranks", "expert parallel: experts spread")
    etp: int = _field("ranks", "tensor parallel of experts")
    vpp: int = _field("chunks", "virtual stages a rank holds (interleaved schedule)")
    micro_batch: int = _field("sequences", "sequences of one micro-batch on one replica")
    zero: int = _field("", "ZeRO stage: 1 shards optimizer states over dp, 2 gradients too, 3 weights too (FSDP)", 0)
    recompute: str = _field("", "activations made again in backward: none, selective, full", "none")
    sp: bool = _field("", "sequence parallel: norms and dropouts cut over tp (arXiv:2205.05198)", False)
    schedule: str = _field("", "order of a pipeline's passes: " + ", ".join(SCHEDULES), "1f1b")
    recompute_layers: int | None = _field(
        "layers", "first layers of every chunk that full recompute makes again; all where none is given", None
    )
    shards: int | None = _field(
        "ranks", "ranks the states are sharded over (HSDP), a divisor of dp · cp; all of them where none is given", None
    )
    offload: bool = _field("", "optimizer states live in the host's memory", False)

    def __post_init__(self) -> None:
        """Check every field by itself and against the others; report all faults together."""
        faults = FaultList(InputError)
        for name in ("tp", "pp", "dp", "cp", "ep", "etp", "vpp", "micro_batch", "recompute_layers", "shards"):
            value = getattr(self, name)
            if value is None and name in ("recompute_layers", "shards"):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_DEGREE:
                faults.add(code=f"bad_{name}", message=f"{name} is not possible", where=option(name),
                           got=shown(value), expected="a whole number, 1 or more")  # fmt: skip
        for name in ("sp", "offload"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                faults.add(code=f"bad_{name}", message=f"{name} is not possible", where=option(name),
                           got=shown(value), expected="true or false")  # fmt: skip
        choices: dict[str, Sequence[Any]] = {"zero": ZERO, "recompute": RECOMPUTE, "schedule": SCHEDULES}
        for name, known in choices.items():
            value = getattr(self, name)
            if isinstance(value, bool) or value not in known:
                faults.add(code=f"unknown_{name}", message=f"unknown {name} {shown(value)}", where=option(name),
                           expected="one of " + ", ".join(map(str, known)),
                           nearest=nearest_names(str(value), map(str, known)))  # fmt: skip
        faults.raise_if_any()
        self._check_together(faults)
        faults.raise_if_any()

    def _check_together(self, faults: FaultList) -> None:
        if self.vpp > 1 and self.pp == 1:
            faults.add(code="contradiction", message="virtual stages need a pipeline", where="--vpp",
                       got=str(self.vpp), expected="vpp 1, or pp above 1")  # fmt: skip
        if (self.vpp > 1) != (self.schedule == "interleaved"):
            faults.add(code="contradiction", message="virtual stages and the interleaved schedule go together",
                       where="--schedule", got=f"vpp {self.vpp}, {self.schedule}",
                       expected="interleaved with vpp above 1, another schedule with vpp 1")  # fmt: skip
        if self.recompute_layers is not None and self.recompute != "full":
            faults.add(code="contradiction", message="layers are recomputed under full recompute only",
                       where="--recompute-layers", got=f"recompute {self.recompute}",
                       expected="recompute full")  # fmt: skip
        if self.shards is not None and self.dp * self.cp % self.shards:
            faults.add(code="contradiction", message="states cannot be sharded evenly", where="--shards",
                       got=str(self.shards), expected=f"a divisor of dp · cp = {self.dp * self.cp}")  # fmt: skip
        if self.schedule == "dualpipe" and self.pp % 2:
            faults.add(code="contradiction", message="DualPipe pairs the stages from both ends", where="--pp",
                       got=str(self.pp), expected="an even number")  # fmt: skip
        if self.sp and self.tp == 1:
            faults.add(code="contradiction", message="sequence parallelism is over tp", where="--sp",
                       got="tp 1", expected="tp above 1, or no sp")  # fmt: skip
        if self.tp * self.cp * self.dp % (self.ep * self.etp):
            faults.add(code="contradiction", message="experts cannot be spread evenly", where="--ep",
                       got=f"ep {self.ep} · etp {self.etp}",
                       expected=f"a divisor of tp · cp · dp = {self.tp * self.cp * self.dp}")  # fmt: skip

    @property
    def gpus(self) -> int:
        """GPUs it takes."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def expert_dp(self) -> int:
        """Replicas of an expert's parameters."""
        return self.tp * self.cp * self.dp // (self.ep * self.etp)

    def micro_batches(self, global_batch: int) -> int:
        """Micro-batches of a step on one replica. Raises InputError where they are not whole."""
        count, rest = divmod(global_batch, self.dp * self.micro_batch)
        if rest or not count:
            faults = FaultList(InputError)
            faults.add(code="batch_not_whole", message="the global batch is not whole micro-batches",
                       where="--global-batch", got=f"{global_batch:,}",
                       expected=f"a multiple of dp · micro_batch = {self.dp * self.micro_batch:,}")  # fmt: skip
            faults.raise_if_any()
        return count

    @property
    def short(self) -> str:
        """`tp8 pp16 dp128 cp1 …`, what differs from 1 only."""
        parts = [
            f"{name}{value}" for name in ("tp", "pp", "vpp", "cp", "ep", "etp") if (value := getattr(self, name)) > 1
        ]
        parts += [f"dp{self.dp}", f"mb{self.micro_batch}", f"zero{self.zero}"]
        parts += [f"shards{self.shards}"] if self.shards else []
        parts += [f"recompute {self.recompute}" + (f" {self.recompute_layers}" if self.recompute_layers else "")]
        parts += (["sp"] if self.sp else []) + (["offload"] if self.offload else [])
        return " ".join(parts + ([self.schedule] if self.pp > 1 else []))


def stage_sizes(layers: int, chunks: int) -> tuple[int, ...]:
    """Layers of each chunk of a pipeline, as even as can be; where some hold one less, it is the last chunk first
    (it has the head too), then the first (the embedding), then from both ends inwards: 126 on 16 is 7, 8 × 14, 7.

    Raises InputError where there are fewer layers than chunks.
    """
    if layers < chunks:
        faults = FaultList(InputError)
        faults.add(code="too_few_layers", message="a pipeline stage would be empty", where="--pp",
                   got=f"{layers} layers on {chunks} stages", expected="at least one layer a stage")  # fmt: skip
        faults.raise_if_any()
    most = -(-layers // chunks)
    short = most * chunks - layers
    inwards = [place for pair in zip(range(chunks - 1, -1, -1), range(chunks), strict=True) for place in pair]
    fewer = set(list(dict.fromkeys(inwards))[:short])
    return tuple(most - (place in fewer) for place in range(chunks))


@functools.lru_cache(maxsize=1 << 14)
def chunk_sizes(layers: int, pp: int, vpp: int) -> tuple[int, ...]:
    """Layers of each chunk of a pipeline, in the model's order. Interleaved, embedding and head may stand as chunks of
    their own: 126 layers on 16 · 8 chunks, as Llama 3 was trained. Raises InputError where a stage would be empty.
    """
    chunks = pp * vpp
    if chunks == 1:
        return (layers,)
    if vpp > 1 and layers == chunks - 2:
        return (0, *(1,) * layers, 0)
    return stage_sizes(layers, chunks)
