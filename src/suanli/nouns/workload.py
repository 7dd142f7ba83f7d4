"""What is run through a model: phase, batch, lengths, dtypes, recompute policy."""

from __future__ import annotations

from dataclasses import dataclass, field

from suanli.errors import FaultList, InputError, nearest_names, shown

PHASES = ("forward", "train", "prefill", "decode")
RECOMPUTE = ("none", "selective", "full")

DTYPE_BITS = {
    "fp64": 64, "fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16,
    "fp8": 8, "mxfp8": 8, "int8": 8, "fp6": 6, "fp4": 4, "mxfp4": 4, "nvfp4": 4, "int4": 4,
}  # fmt: skip

# Bytes of optimizer state a trainable parameter, beside weights and gradients: fp32 moments, and the fp32 master
# copy that mixed precision keeps (ZeRO, arXiv:1910.02054 §3.1: K = 12 for Adam in mixed precision).
OPTIMIZER_MOMENTS = {
    "adamw": 8, "adam": 8, "lion": 4, "sgd-momentum": 4, "muon": 4, "sgd": 0, "adamw-bf16": 4,
    "adamw-8bit": 2, "none": 0,
}  # fmt: skip

MAX_LENGTH = 10**12  # longer sequences and batches are typing errors, not workloads


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One pass over a batch. Raises InputError listing every field that cannot be."""

    phase: str = field(default="forward", metadata={"doc": "train, forward, prefill or decode"})
    batch: int = field(default=1, metadata={"unit": "sequences", "doc": "sequences (or images) in the batch"})
    seq: int = field(default=2048, metadata={"unit": "tokens", "doc": "positions of each sequence"})
    kv_len: int | None = field(default=None, metadata={"unit": "tokens", "doc": "keys seen by a decoded token"})
    dtype: str = field(default="bf16", metadata={"doc": "dtype of weights and activations"})
    kv_dtype: str | None = field(default=None, metadata={"doc": "dtype of the KV cache; that of the weights if none"})
    recompute: str = field(default="none", metadata={"doc": "activation recomputation: none, selective or full"})
    optimizer: str = field(default="adamw", metadata={"doc": "whose states are held: " + ", ".join(OPTIMIZER_MOMENTS)})

    def __post_init__(self) -> None:
        """Check every field; report all faults together."""
        faults = FaultList(InputError)
        choices = {
            "phase": PHASES, "recompute": RECOMPUTE, "dtype": tuple(DTYPE_BITS), "optimizer": tuple(OPTIMIZER_MOMENTS),
        }  # fmt: skip
        for name, allowed in choices.items():
            _check_choice(faults, name, getattr(self, name), allowed)
        if self.kv_dtype is not None:
            _check_choice(faults, "kv_dtype", self.kv_dtype, tuple(DTYPE_BITS))
        for name in ("batch", "seq", "kv_len"):
            _check_length(faults, name, getattr(self, name), optional=name == "kv_len")
        faults.raise_if_any()

    @property
    def keys(self) -> int:
        """Keys a decoded token sees (its own among them): `kv_len`, or `seq` where that is not given."""
        return self.seq if self.kv_len is None else self.kv_len


def option(name: str) -> str:
    """The command-line spelling of a keyword."""
    return "--" + name.replace("_", "-")


def _check_choice(faults: FaultList, name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value in allowed:
        return
    faults.add(
        code=f"unknown_{name}",
        message=f"unknown {name.replace('_', ' ')} {shown(value)}",
        where=option(name),
        expected="one of " + ", ".join(allowed),
        nearest=nearest_names(str(value), allowed),
    )


def _check_length(faults: FaultList, name: str, value: object, *, optional: bool) -> None:
    if value is None and optional:
        return
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_LENGTH:
        return
    faults.add(
        code=f"bad_{name}",
        message=f"{name} is not a possible length",
        where=option(name),
        got=shown(value),
        expected=f"a whole number from 1 to {MAX_LENGTH:,}",
    )
