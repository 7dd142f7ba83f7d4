"""What a row of the tables can say: how a family of decoders differs from the plain Llama shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from suanli.readers.blocks import MoeSpec
from suanli.readers.config import Config, StandIn
from suanli.readers.hf.common import FFN, Extra, Projection, Traits, Widths

DENSE, SPARSE = "dense", "sparse"


@dataclass(frozen=True, kw_only=True)
class Flag:
    """A true/false key and the traits that take `value` where it is on, and `off` (unless None) where it is not."""

    key: str
    sets: tuple[str, ...]
    default: bool = False
    value: Any = True
    off: Any = None


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Which layers have a window where the config lists no `layer_types`.

    `pattern`: `full` (none), `all`, `last` or `first` (all but the last or the first of each period), `past` (from
    layer `first_key` on). `switch` is the key that must be true for windows to be read.
    """

    window: str = "sliding_window"
    default: int | None = None
    pattern: str = "full"
    period: int = 1
    period_key: str | None = None
    first_key: str = "max_window_layers"
    first: int = 28
    switch: str | None = None
    types: str | None = "layer_types"


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Routed experts: under which keys their numbers stand, and what the parts are called.

    Dense layers are those of `mlp_layer_types`; else the first `dense_first`, those after `last`, those of
    `mlp_only_layers`, and all but the last of each `period`. `switch` is the key that must be true for there to be
    experts at all.
    """

    experts: tuple[str, ...] = ("num_experts", "num_local_experts", "n_routed_experts")
    top_k: tuple[str, ...] = ("num_experts_per_tok",)
    ffn: tuple[str, ...] = ("moe_intermediate_size",)
    dense_first: tuple[str, ...] = ("first_k_dense_replace",)
    dense_first_default: int = 0
    last: tuple[str, ...] = ()
    period: tuple[str, ...] = ("decoder_sparse_step",)
    switch: str | None = None
    shared_count: tuple[str, ...] = ()
    shared_count_default: int = 0
    shared_ffn: tuple[str, ...] = ()
    parts: dict[str, Any] = field(default_factory=dict)  # fields of MoeSpec

    def spec(self, config: Config, hidden: int) -> MoeSpec:
        """The experts of one layer."""
        experts, ffn = config.need(*self.experts), config.need(*self.ffn)
        shared = config.whole(*self.shared_ffn, default=0, low=0) if self.shared_ffn else 0
        if self.shared_count:
            count = config.whole(*self.shared_count, default=self.shared_count_default, low=0)
            shared = count * (shared or ffn)
        return MoeSpec(
            hidden=hidden, experts=experts, top_k=top_k(config, experts, *self.top_k), ffn=ffn, shared_ffn=shared,
            **self.parts,
        )  # fmt: skip

    def rule(self, config: Config, layers: int) -> Callable[[int], bool]:
        """Which layers hold experts."""
        if self.switch is not None and not config.flag(self.switch, default=False):
            return lambda _: False
        listed = config.names("mlp_layer_types", layers, (DENSE, SPARSE))
        if listed is not None:
            return lambda i: listed[i] == SPARSE
        first = config.whole(*self.dense_first, default=self.dense_first_default, low=0)
        last = config.maybe(*self.last, low=-1) if self.last else None
        step = config.whole(*self.period, default=1)
        dense = frozenset(config.wholes("mlp_only_layers") or ())
        return lambda i: i >= first and (not last or i <= last) and i not in dense and (i + 1) % step == 0


def top_k(config: Config, experts: int, *names: str) -> int:
    """Experts a token is routed to; no more than there are."""
    chosen = config.need(*(names or ("num_experts_per_tok",)))
    if chosen > experts and not isinstance(experts, StandIn):
        config.fault(
            "contradiction", "a token is routed to more experts than there are",
            (names or ("num_experts_per_tok",))[0], got=f"{chosen} of {experts}",
        )  # fmt: skip
    return chosen


Changes = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Family:
    """A row: how a family differs from the plain Llama shape.

    `when` changes traits of the layers that are `sliding`, `sparse`, `dense`, `first` or `last`; `lists` are keys with
    one number a layer and the width each stands for; `latent` are fields of LatentSpec where attention is latent.
    """

    doc: str
    traits: Traits = field(default_factory=Traits)
    flags: tuple[Flag, ...] = ()
    reach: Reach = field(default_factory=Reach)
    mixture: Mixture | None = None
    latent: Changes | None = None
    when: dict[str, Changes] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    grouped: bool = True
    ffn: tuple[str, ...] = FFN
    dense_ffn: str | None = None  # a key of its own for the dense layers' width, `ffn` where it is absent
    required: tuple[str, ...] = ()  # keys that the class would fill with published widths
    ffn_multiple: int | None = None  # of the width, where no key gives the MLP's
    ffn_multiple_key: str | None = None
    ffn_halved: bool = False  # the config's number is of gate and up together
    value_dim: str | None = None
    sliding_kv_multiple: int = 1
    positions: tuple[str, ...] = ()
    positions_offset: int = 0
    embedding_offset: int = 0
    embedding_norm: str | None = None
    head_transform: tuple[str, str] | None = None  # a square projection and a norm before the head
    single_kv: str | None = None  # the key that says there is one key/value head
    numbers: Callable[[Config, Widths], dict[str, int]] | None = None  # that extras and projections are made of
    refused: tuple[str, ...] = ()  # switches of parts that are not read
    outer_extras: tuple[Extra, ...] = ()
    outer_projections: tuple[Projection, ...] = ()
    notes: tuple[str, ...] = ()
