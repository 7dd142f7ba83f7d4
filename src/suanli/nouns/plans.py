"""What `layout` answers: field names are the JSON keys, `metadata` their unit and help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from suanli.nouns.layout import Layout
from suanli.nouns.step import Entry


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class PlannedLayout:
    """One layout with its step and its memory."""

    tp: int = _doc("ranks", "tensor parallel")
    pp: int = _doc("ranks", "pipeline parallel")
    dp: int = _doc("ranks", "data parallel")
    cp: int = _doc("ranks", "context parallel")
    ep: int = _doc("ranks", "expert parallel")
    etp: int = _doc("ranks", "tensor parallel of experts")
    vpp: int = _doc("chunks", "virtual stages a rank holds")
    micro_batch: int = _doc("sequences", "of one micro-batch on one replica")
    zero: int = _doc("", "ZeRO stage")
    shards: int | None = _doc("ranks", "that share the states (HSDP); null: all of dp · cp", default=None)
    offload: bool = _doc("", "optimizer states live in the host's memory", default=False)
    recompute: str = _doc("", "activations made again in backward")
    recompute_layers: int | None = _doc(
        "layers", "first layers of every chunk that full recompute makes again; null: all", default=None
    )
    sp: bool = _doc("", "sequence parallelism over tp")
    schedule: str = _doc("", "order of the pipeline's passes")
    gpus: int = _doc("GPUs", "it takes")
    step_time_s: float = _doc("s", "of one optimizer step, what is ranked; the sum of the account")
    step_time_interval_s: tuple[float, float] = _doc("s", "80 % interval, from the errors on runs left out of the fit")
    closed_form_step_time_s: float = _doc("s", "by the closed form, which the search ranks by first")
    played: bool = _doc("", "the step is with its pipeline played out pass by pass; else it is the closed form")
    mfu: float = _doc("fraction", "model FLOPs utilisation")
    tokens_per_second_per_gpu: float = _doc("tokens/s", "one GPU")
    memory_bytes: Mapping[str, int] = _doc("bytes", "fullest rank by term, with `total`", hash=False)
    fullest_stage: int = _doc("", "the stage it is on, from 0")
    largest_term: str = _doc("", "its largest term")
    margin_bytes: int = _doc("bytes", "memory limit less total")
    account: tuple[Entry, ...] = _doc("", "where the step goes; adds up to it")
    usd_per_step: float | None = _doc("USD", "GPUs times price times step", default=None)

    @property
    def short(self) -> str:
        """`tp8 pp16 dp128 …`, as Layout has it."""
        return self.as_layout().short

    def as_layout(self) -> Layout:
        """The layout alone."""
        return Layout(**{each.name: getattr(self, each.name) for each in fields(Layout)})


@dataclass(frozen=True, kw_only=True)
class FrontPoint:
    """A layout than which no other is as fast, as small, on as few GPUs and as cheap."""

    layout: str = _doc("", "degrees that differ from 1, and policies")
    gpus: int = _doc("GPUs", "it takes")
    step_time_s: float = _doc("s", "of one step")
    memory_bytes: int = _doc("bytes", "fullest rank")
    usd_per_step: float | None = _doc("USD", "GPUs times price times step; None without a price")


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many layouts came how far."""

    enumerated: int = _doc("layouts", "combinations of the axes' values, each by itself possible")
    by_rule: Mapping[str, int] = _doc("layouts", "taken out by each rule, in the order applied", hash=False)
    legal: int = _doc("layouts", "that no rule forbids and whose states alone may fit")
    fit: int = _doc("layouts", "of those whose memory was worked out, that fit")
    timed: int = _doc("layouts", "whose whole step was worked out; the rest cannot be among the best")


@dataclass(frozen=True, kw_only=True)
class DifferenceRow:
    """One entry of two accounts."""

    entry: str = _doc("", "of the step, or term of memory")
    first: float = _doc("s or bytes", "of the first layout")
    second: float = _doc("s or bytes", "of the second")
    difference: float = _doc("s or bytes", "second less first")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Two layouts entry by entry. The differences add up to that of the totals."""

    first: PlannedLayout = _doc("", "one layout")
    second: PlannedLayout = _doc("", "the other")
    step: tuple[DifferenceRow, ...] = _doc("s", "entries of the step, largest difference first")
    memory: tuple[DifferenceRow, ...] = _doc("bytes", "terms of the fullest rank, largest difference first")


@dataclass(frozen=True, kw_only=True)
class Lever:
    """One change to a layout, priced by the same model."""

    lever: str = _doc("", "what is changed")
    change: str = _doc("", "from what to what")
    layout: str = _doc("", "the layout with it")
    step_time_s: float = _doc("s", "of one step with it")
    gain_fraction: float = _doc("fraction", "of the step saved; below 0 where it is slower")
    memory_bytes: int = _doc("bytes", "fullest rank with it")
    fits: bool = _doc("", "within the memory limit")
