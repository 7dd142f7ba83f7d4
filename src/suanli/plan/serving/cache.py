"""The KV cache of one sequence: by kind of layer, exact and in an engine's pages, on the model and on its fullest rank.

>>> from suanli.readers.preset import read_named_preset
>>> cache = kv_cache(read_named_preset("llama-3-8b"), 8192, engine="vllm")
>>> cache.bytes_per_token
131072
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from suanli.catalog.engines import find_engine
from suanli.catalog.formats import find_format
from suanli.errors import FaultList, InputError, shown
from suanli.nouns.arch import Arch
from suanli.nouns.engine import Engine
from suanli.nouns.layers import Attention
from suanli.nouns.serving import CacheLine, KvCache, ServingLayout
from suanli.nouns.workload import MAX_LENGTH, Workload
from suanli.plan.pieces import Parts, parts_of
from suanli.plan.serving.check import check_layout
from suanli.plan.serving.kept import (
    CROSS,
    GROWING,
    LATENT,
    MASK,
    STATE,
    WINDOW,
    Cached,
    Held,
    Kept,
    block_kept,
    held,
    stages,
)
from suanli.plan.serving.pages import Paged, classes_of, paged
from suanli.work import Setting

ONE = ServingLayout()
_KINDS = ("attention", "latent", "window", "indexer", "cross", "state")


def kv_cache(
    arch: Arch,
    tokens: int,
    *,
    dtype: str = "bf16",
    engine: str | Engine = "vllm",
    layout: ServingLayout = ONE,
    model_dtype: str = "bf16",
    expanded: bool = False,
    encoder_tokens: int | None = None,
) -> KvCache:
    """The cache of one sequence of `tokens` positions, stored as `dtype`; states stay in `model_dtype`.

    `expanded`: whole keys and values of latent attention instead of latents. `encoder_tokens`: positions an encoder
    gives to cross-attention, where the model does not fix them. Raises InputError for lengths and layouts that cannot
    be, UnknownNameError for an unknown format or engine.
    """
    rules = find_engine(engine) if isinstance(engine, str) else engine
    stored, parts = find_format(dtype), parts_of(arch)
    _check(arch, tokens, encoder_tokens)
    check_layout(parts, layout)
    asked = _Asked(arch, parts, encoder_tokens or 1, model_dtype)
    whole = asked.stages(tokens, Cached(format=stored, expanded=expanded), 1)[0]
    on_ranks = asked.stages(-(-tokens // layout.cp), Cached(format=stored, expanded=expanded, tp=layout.tp), layout.pp)
    fullest = max(on_ranks, key=lambda stage: stage.total_bytes)
    pages = paged(whole, rules, rules.hybrid_rule)
    rank_pages = max((paged(each, rules, rules.hybrid_rule) for each in on_ranks), key=lambda each: each.total_bytes)
    lines = _lines(whole, fullest, layout)
    return KvCache(
        tokens=tokens,
        dtype=stored.name,
        engine=rules.name,
        block_tokens=rules.block_tokens,
        bytes_per_token=_number(sum(line.bytes_per_token for line in lines if line.kind in GROWING)),
        first_token_bytes=_number(sum(line.bytes_per_token for line in lines)),
        ideal_bytes=whole.total_bytes,
        paged_bytes=_number(pages.total_bytes),
        ideal_bytes_per_rank=fullest.total_bytes,
        paged_bytes_per_rank=_number(rank_pages.total_bytes),
        lines=lines,
        paged_by_rule=_by_rule(whole, rules, pages),
        blocks=rank_pages.blocks,
        page_bytes=_number(rank_pages.page_bytes),
        growing_only=all(kept.grows for kept, _ in whole.leaves()),
        notes=_notes(arch, tokens, layout, lines),
    )


ENGINES = ("vllm", "sglang", "tensorrt-llm")


def pages_by_engine(
    arch: Arch, tokens: int, dtype: str = "bf16", encoder_tokens: int | None = None
) -> tuple[dict[str, float], float | None]:
    """One sequence of the whole model in the pages of each engine [B]; and, of a model that caches latents, bytes of a
    token where an engine keeps whole keys and values instead. Raises as `kv_cache`."""
    _check(arch, tokens, encoder_tokens)
    asked = _Asked(arch, parts_of(arch), encoder_tokens or 1, "bf16")
    whole = asked.stages(tokens, Cached(format=find_format(dtype)), 1)[0]
    rules = [find_engine(name) for name in ENGINES]
    pages = {each.name: _number(paged(whole, each, each.hybrid_rule).total_bytes) for each in rules}
    if not any(kept.kind == LATENT for kept, _ in whole.leaves()):
        return pages, None
    spread = asked.stages(tokens, Cached(format=find_format(dtype), expanded=True), 1)[0]
    return pages, _number(sum((times * kept.token_bytes for kept, times in spread.leaves() if kept.grows), Fraction(0)))


@dataclass(frozen=True)
class _Asked:
    """A model whose cache is asked for."""

    arch: Arch
    parts: Parts
    encoder_tokens: int
    model_dtype: str

    def stages(self, tokens: int, how: Cached, pp: int) -> list[Held]:
        """What each stage of a pipeline keeps of a sequence."""
        workload = Workload(phase="decode", seq=self.encoder_tokens, kv_len=tokens, dtype=self.model_dtype)
        at = Setting(self.arch, workload, MASK)
        kinds = [block_kept(block, at, how) for block in self.parts.blocks]
        return [held(kinds, counts) for counts in stages(self.parts, pp)]


def _check(arch: Arch, tokens: int, encoder_tokens: int | None) -> None:
    faults = FaultList(InputError)
    if not arch.decodes:
        faults.add(code="no_cache", message=f"{arch.name} does not decode: it keeps no cache", where="MODEL")
    for name, value in (("tokens", tokens), ("encoder_tokens", encoder_tokens)):
        good = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_LENGTH
        if not good and not (value is None and name == "encoder_tokens"):
            faults.add(code=f"bad_{name}", message=f"{name} is not a possible length", got=shown(value),
                       expected=f"a whole number from 1 to {MAX_LENGTH:,}")  # fmt: skip
    if encoder_tokens is None and needs_encoder_tokens(arch):
        faults.add(code="missing_encoder_tokens", message="the model's encoder takes inputs of any length",
                   where="encoder_tokens", expected="positions the decoder attends to")  # fmt: skip
    faults.raise_if_any()


def needs_encoder_tokens(arch: Arch) -> bool:
    """Whether the cache of cross-attention is as long as what an encoder is given."""
    streams = {
        placed.layer.key_stream
        for placed in arch.leaves()
        if isinstance(placed.layer, Attention) and placed.layer.key_stream and arch.stream(placed.stream).decodes
    }
    return any(arch.stream(name).length is None and not arch.stream(name).decodes for name in streams)


def _by_rule(whole: Held, rules: Engine, pages: Paged) -> dict[str, float]:
    """Both ways of an engine that can unify pages or free those outside a window; the one rule of the others."""
    if rules.hybrid_rule != "unified" or len(classes_of(whole)) < 2:
        return {rules.hybrid_rule: _number(pages.total_bytes)}
    return {rule: _number(paged(whole, rules, rule).total_bytes) for rule in ("unified", "grouped")}


def _lines(whole: Held, fullest: Held, layout: ServingLayout) -> tuple[CacheLine, ...]:
    """Kinds of layers in a fixed order, windows by size."""
    found, on_rank = _by_kind(whole), _by_kind(fullest)
    layers = {
        key: sum(count for layer, count in whole.layers if key in {(kept.kind, kept.window) for kept in layer})
        for key in found
    }
    order = sorted(found, key=lambda key: (_KINDS.index(key[0]), key[1] or 0))
    return tuple(_line(layers[key], found[key], on_rank.get(key, []), layout) for key in order)


def _by_kind(stage: Held) -> dict[tuple[str, int | None], list[tuple[Kept, int]]]:
    """What a stage keeps, by kind and window."""
    found: dict[tuple[str, int | None], list[tuple[Kept, int]]] = {}
    for kept, times in stage.leaves():
        found.setdefault((kept.kind, kept.window), []).append((kept, times))
    return found


def _line(layers: int, whole: list[tuple[Kept, int]], rank: list[tuple[Kept, int]], layout: ServingLayout) -> CacheLine:
    first = whole[0][0]
    kind = first.kind
    return CacheLine(
        kind=kind,
        layers=layers,
        bytes_per_token=_token_bytes(whole),
        bytes_constant=_constant(whole),
        window=first.window if kind == WINDOW else None,
        bytes_per_token_per_rank=_number(Fraction(_token_bytes(rank)) / layout.cp),
        bytes_constant_per_rank=_constant(rank),
        formula=first.formula,
        replicas=max((kept.replicas for kept, _ in rank), default=1)
        // (layout.cp if kind not in (STATE, CROSS) else 1),
    )


def _token_bytes(rows: list[tuple[Kept, int]]) -> float:
    return _number(sum((times * kept.token_bytes for kept, times in rows), Fraction(0)))


def _constant(rows: list[tuple[Kept, int]]) -> int:
    return sum(times * kept.total_bytes for kept, times in rows if kept.kind in (STATE, CROSS))


def _notes(arch: Arch, tokens: int, layout: ServingLayout, lines: tuple[CacheLine, ...]) -> tuple[str, ...]:
    notes = []
    if arch.max_positions and tokens > arch.max_positions:
        notes.append(f"{tokens:,} positions are more than the model's {arch.max_positions:,}")
    copied = [line for line in lines if line.replicas > 1]
    notes += [f"{line.kind}: {line.replicas} of {layout.tp} tp ranks hold the same bytes" for line in copied]
    return tuple(notes)


def _number(value: float | Fraction) -> int | float:
    """An int where it is whole."""
    return int(value) if value == int(value) else float(value)
