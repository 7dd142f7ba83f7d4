"""What it takes to serve a model: how it is laid over GPUs, what it holds there, how fast it answers.

Seconds are of one engine replica unless a field says otherwise; tokens are those of all its users together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class ServingLayout:
    """How one replica of an engine is laid over its GPUs: `tp · pp · dp_attention` of them (experts over `ep`)."""

    tp: int = _field("ranks", "tensor parallel", default=1)
    pp: int = _field("stages", "pipeline parallel", default=1)
    ep: int = _field("ranks", "ranks the experts are spread over", default=1)
    dp_attention: int = _field(
        "ranks", "data-parallel groups of the attention; each holds the KV cache of its own sequences", default=1
    )
    cp: int = _field("ranks", "of the tp ranks, those that share the positions of the cache among them", default=1)

    @property
    def gpus(self) -> int:
        """GPUs of the replica. Experts are spread over the same ones."""
        return self.tp * self.pp * self.dp_attention


@dataclass(frozen=True, kw_only=True)
class CacheLine:
    """The cache of one kind of layer: keys and values, a latent, a window, or a state that does not grow."""

    kind: str = _field("", "attention, latent, window, state, cross, indexer")
    layers: int = _field("", "layers of this kind")
    bytes_per_token: float = _field("B", "of all of them together, one token, whole model; 0 for a state")
    bytes_constant: float = _field("B", "of one sequence, whatever its length")
    window: int | None = _field("tokens", "positions kept; None: all", default=None)
    bytes_per_token_per_rank: float = _field("B", "of the fullest rank, after tp, pp and dp_attention")
    bytes_constant_per_rank: float = _field("B", "of one sequence on the fullest rank")
    formula: str = _field("", "id in the registry")
    replicas: int = _field("ranks", "that hold the same bytes: copies of key/value heads, or a latent", default=1)


@dataclass(frozen=True, kw_only=True)
class KvCache:
    """The KV cache of one sequence of `tokens` positions: exact, and as an engine's pages hold it."""

    tokens: int = _field("tokens", "positions")
    dtype: str = _field("", "of the cache")
    engine: str = _field("", "whose pages: vllm, sglang, tensorrt-llm")
    block_tokens: int = _field("tokens", "positions of a page")
    bytes_per_token: float = _field("B", "whole model, a token past every window")
    ideal_bytes: float = _field("B", "one sequence, whole model, nothing rounded")
    paged_bytes: float = _field("B", "one sequence, whole model, in the engine's pages")
    ideal_bytes_per_rank: float = _field("B", "one sequence on the fullest rank")
    paged_bytes_per_rank: float = _field("B", "one sequence on the fullest rank, in pages")
    lines: tuple[CacheLine, ...] = _field("", "by kind of layer; they add up")
    first_token_bytes: float = _field("B", "whole model, a token that every window still holds", default=0)
    paged_by_rule: Mapping[str, float] = _field(
        "B", "one sequence, whole model, by rule for kinds of layers side by side", default_factory=dict, hash=False
    )
    blocks: float = _field("pages", "of one sequence on the fullest rank", default=0)
    page_bytes: float = _field("B", "a page on the fullest rank, over the layers that share it", default=0)
    growing_only: bool = _field("", "every layer keeps every position: the cache can be told in tokens", default=True)
    notes: tuple[str, ...] = _field("", "what was assumed", default=())


@dataclass(frozen=True, kw_only=True)
class WeightBytes:
    """Bytes of the weights under a scheme, by part; the parts add up."""

    scheme: str = _field("", "bf16, fp8 with block scales, gptq 4 bit group 128, mxfp4 …")
    total: float = _field("B", "whole model")
    per_rank: float = _field("B", "of the fullest rank")
    parts: Mapping[str, float] = _field("B", "linear, experts, embedding, head, norms, scales …")
    source: str = _field("", "config, safetensors header, GGUF header")
    read: float = _field("B", "of them, what one step reads at most: all but a table that is looked up", default=0)
    read_per_rank: float = _field("B", "the same on the fullest rank", default=0)


@dataclass(frozen=True, kw_only=True)
class MemoryBudget:
    """One GPU's memory, and how much of it is left for the cache."""

    total: float = _field("B", "device memory")
    usable: float = _field("B", "what the engine takes of it")
    weights: float = _field("B", "fullest rank")
    activations: float = _field("B", "peak of a forward pass, graphs, buffers: a named allowance")
    cache: float = _field("B", "left for the cache; negative where the weights do not fit")
    cache_tokens: int = _field("tokens", "positions the cache holds on one replica")
    max_concurrency: int = _field("sequences", "of isl + osl positions at once on one replica")
    engine: str = _field("", "whose rule", default="")
    fraction: float = _field("fraction", "that the engine was told", default=1.0)


class ServingRates(Protocol):
    """What the load model asks of the time model. All answers in seconds, for one replica; arguments may be arrays."""

    def decode_s(self, sequences: Any, keys: Any) -> Any:
        """One decode step of `sequences` sequences in all, each seeing `keys` keys on average."""

    def prefill_s(self, tokens: Any, keys: Any) -> Any:
        """A prefill of `tokens` new tokens in all, the last of which sees `keys` keys (chunks see earlier ones)."""
