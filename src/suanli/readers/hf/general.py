"""One reader for most decoders: a family is a row of differences, and every number comes from its config."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Linear
from suanli.readers.blocks import LatentSpec, Node, latent_attention, moe, norm
from suanli.readers.config import Config, StandIn
from suanli.readers.decoder import DecoderSpec, decoder
from suanli.readers.hf.common import (
    FULL,
    HIDDEN,
    LAYERS,
    SLIDING,
    Over,
    Traits,
    Widths,
    dense_mlp,
    more_parts,
    read_widths,
    self_attention,
    standard_layer,
)
from suanli.readers.hf.rows import DENSE, SPARSE, Changes, Family, Reach

# What configs call a layer's attention, and what it is for counting: an indexed one scores every pair first.
REACHES = {
    "full_attention": FULL,
    "sliding_attention": SLIDING,
    "indexed_attention": FULL,
    "attention": FULL,
    "global": FULL,
    "local": SLIDING,
}


@dataclass(frozen=True)
class Kind:
    """What tells one layer from another."""

    attention: str = FULL
    sparse: bool = False
    marks: tuple[str, ...] = ()
    over: Over = ()


def reader(family: Family) -> Callable[[Config, str], Arch]:
    """The function that reads configs of a family."""

    def read(config: Config, name: str) -> Arch:
        return read_family(config, name, family)

    read.__doc__ = family.doc
    return read


def read_family(config: Config, name: str, family: Family) -> Arch:
    """A decoder of the family's layers. Raises ConfigError with every fault of the config."""
    widths = _widths(config, family)
    if family.numbers:
        widths = replace(widths, derived=tuple(family.numbers(config, widths).items()))
    for key in family.refused:
        if config.flag(key, default=False):
            config.fault("unsupported", f"{key} is not read", key)
    traits = _traits(config, family)
    window = _window(config, family.reach)
    latent = _latent(config, family) if family.latent is not None else None
    experts = family.mixture.spec(config, widths.hidden) if _mixed(config, family) and family.mixture else None
    kinds = _kinds(config, family, widths, window)
    experts = replace(experts, shared_bias=traits.mlp_bias) if experts else None
    tied = config.flag("tie_word_embeddings", "tie_embeddings", default=traits.tied)
    config.check()

    def make(kind: Kind) -> tuple[Node, ...]:
        own = replace(widths, **_own(family, kind, widths))
        has = replace(traits, **_changes(family, kind))
        attend = self_attention(own, has, kind, window) if latent is None else _latent_layer(latent, kind, window)
        feed = moe(experts) if kind.sparse and experts else dense_mlp(own, has)
        return standard_layer(own, has, attend, feed)

    spec = DecoderSpec(
        shape=widths.shape(traits.gated),
        kinds=kinds,
        make=make,
        names=traits.names,
        tied=tied,
        norm_kind=traits.norm_kind if traits.final_norm == "same" else traits.final_norm,
        learned_positions=traits.learned_positions,
        head_bias=traits.head_bias,
        embedding_offset=family.embedding_offset,
        after_embedding=_after_embedding(family, widths, traits),
        before_head=_before_head(family, widths, traits),
        max_positions=widths.max_positions,
        notes=(*family.notes, *_prediction_note(config)),
    )
    return decoder(name, spec)


def _after_embedding(family: Family, widths: Widths, traits: Traits) -> tuple[Node, ...]:
    return (norm(family.embedding_norm, widths.hidden, traits.norm_kind),) if family.embedding_norm else ()


def _before_head(family: Family, widths: Widths, traits: Traits) -> tuple[Node, ...]:
    more = more_parts(family.outer_extras, family.outer_projections, widths)
    if family.head_transform is None:
        return more
    dense, after = family.head_transform
    return (
        *more,
        Linear(name=dense, in_features=widths.hidden, out_features=widths.hidden),
        norm(after, widths.hidden, traits.norm_kind),
    )


def _mixed(config: Config, family: Family) -> bool:
    """Whether there are experts at all."""
    if family.mixture is None:
        return False
    return family.mixture.switch is None or config.flag(family.mixture.switch, default=False)


def _prediction_note(config: Config) -> tuple[str, ...]:
    given = config.values.get("num_nextn_predict_layers")
    return ("without the multi-token-prediction layers, as the published model class",) if given else ()


def _widths(config: Config, family: Family) -> Widths:
    ffn: int | None
    multiple = family.ffn_multiple
    for key in family.required:
        if not config.has(key):
            config.fault("missing_key", f"missing key {key}", key)
    if family.ffn_multiple_key:
        multiple = config.whole(family.ffn_multiple_key, default=multiple or 1, high=1_000_000)
    if family.dense_ffn and config.has(family.dense_ffn):
        ffn = config.need(family.dense_ffn)
    elif multiple is not None:
        ffn = config.whole(*family.ffn, default=multiple * config.need(*HIDDEN))
    elif isinstance(config.raw(*family.ffn), list | tuple):
        ffn = max(config.wholes(next(key for key in family.ffn if config.has(key)), low=1) or (1,))
    else:
        dense = family.mixture is None or config.has(*family.ffn)
        ffn = config.need(*family.ffn) if dense or family.mixture is None else config.need(*family.mixture.ffn)
    if family.ffn_halved:
        ffn = max(1, ffn // 2)
    if family.latent is not None:
        return _latent_widths(config, ffn)
    single = family.single_kv is not None and config.flag(family.single_kv, default=True)
    grouped = family.grouped and family.single_kv is None
    widths = read_widths(config, ffn=ffn, kv_heads=1 if single else None, grouped=grouped)
    return replace(widths, v_dim=config.maybe(family.value_dim) if family.value_dim else None)


def _latent_widths(config: Config, ffn: int) -> Widths:
    """Widths where keys are compressed: a head is what rotates and what does not."""
    heads = config.need("num_attention_heads", high=1_000_000)
    return Widths(
        layers=config.layers(*LAYERS), hidden=config.need("hidden_size"), heads=heads, kv_heads=heads,
        head_dim=config.need("qk_nope_head_dim") + config.need("qk_rope_head_dim"), ffn=ffn,
        vocab=config.need("vocab_size"), max_positions=config.maybe("max_position_embeddings"),
    )  # fmt: skip


def _traits(config: Config, family: Family) -> Traits:
    changes: Changes = {}
    for flag in family.flags:
        value = flag.value if config.flag(flag.key, default=flag.default) else flag.off
        if value is not None:
            changes.update(dict.fromkeys(flag.sets, value))
    if family.positions:
        changes["learned_positions"] = config.need(*family.positions) + family.positions_offset
    return replace(family.traits, **changes)


def _window(config: Config, reach: Reach) -> int | None:
    if reach.switch is not None and not config.flag(reach.switch, default=False):
        return None
    return config.maybe(reach.window) if reach.default is None else config.whole(reach.window, default=reach.default)


def _pattern(config: Config, reach: Reach, window: int | None) -> Callable[[int], str]:
    """The family's rule for which layers have a window."""
    if window is None or reach.pattern == "full":
        return lambda _: FULL
    if reach.pattern == "all":
        return lambda _: SLIDING
    if reach.pattern == "past":
        first = config.whole(reach.first_key, default=reach.first, low=0)
        return lambda i: SLIDING if i >= first else FULL
    period = config.whole(reach.period_key, default=reach.period) if reach.period_key else reach.period
    place = period - 1 if reach.pattern == "last" else 0
    return lambda i: FULL if i % period == place else SLIDING


def _kinds(config: Config, family: Family, widths: Widths, window: int | None) -> tuple[Kind, ...]:
    known = tuple(word for word, reach in REACHES.items() if reach == FULL or window is not None)
    types = config.names(family.reach.types, widths.layers, known) if family.reach.types else None
    pattern = _pattern(config, family.reach, window)
    sparse = family.mixture.rule(config, widths.layers) if family.mixture else lambda _: False
    over = _overrides(config, family, widths.layers)
    if config.faults.faults:  # a bad count of layers must not be built
        return ()
    last = widths.layers - 1

    def marks(i: int) -> tuple[str, ...]:
        here = {"first": i == 0, "last": i == last}
        return tuple(mark for mark, there in here.items() if there and mark in family.when)

    return tuple(
        Kind(REACHES[types[i]] if types else pattern(i), sparse(i), marks(i), over(i)) for i in range(widths.layers)
    )


OVERRIDABLE = {
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "head_dim",
    "intermediate_size": "ffn",
    "kv_lora_rank": "kv_rank",
    "q_lora_rank": "q_rank",
    "qk_nope_head_dim": "nope_dim",
    "qk_rope_head_dim": "rope_dim",
    "v_head_dim": "v_dim",
}


def _overrides(config: Config, family: Family, layers: int) -> Callable[[int], Over]:
    """Numbers that single layers have of their own: in lists, or in `per_layer_config`."""
    lists = {}
    for key, width in family.lists.items():
        if isinstance(config.values.get(key), list | tuple):
            found = config.wholes(key, low=1)
            if found is not None and len(found) != layers and not isinstance(layers, StandIn):
                config.fault("contradiction", f"{key} does not have one entry a layer", key, got=f"{len(found):,}")
            lists[width] = found or ()
    own = own_configs(config)
    borrowed = config.names("indexer_types", layers, ("full", "shared"))  # a layer that takes another's choice of keys
    for i, how in enumerate(borrowed or ()):
        if how == "shared":
            own.setdefault(i, {})["index_heads"] = 0

    def over(i: int) -> Over:
        listed = {width: numbers[i] for width, numbers in lists.items() if len(set(numbers)) > 1}
        return tuple(sorted((listed | own.get(i, {})).items()))

    return over


def own_configs(config: Config) -> dict[int, dict[str, int]]:
    """`per_layer_config`: a layer's number as text, and the keys that differ there."""
    if not config.has("per_layer_config"):
        return {}
    part, found = config.part("per_layer_config"), {}
    for key in part.values:
        if not (isinstance(key, int) or (isinstance(key, str) and key.isdigit())):
            part.fault("bad_value", "per_layer_config has an entry that is no layer's number", str(key))
            continue
        layer = part.part(key)
        found[int(key)] = {width: layer.need(name) for name, width in OVERRIDABLE.items() if layer.has(name)}
    return found


def _own(family: Family, kind: Kind, widths: Widths) -> Changes:
    """A layer's own widths."""
    known = {width: number for width, number in kind.over if hasattr(widths, width)}
    if kind.attention == SLIDING and family.sliding_kv_multiple != 1:
        known["kv_heads"] = widths.kv_heads * family.sliding_kv_multiple
    return known


def _changes(family: Family, kind: Kind) -> Changes:
    """Traits that a layer has of its own."""
    words = (
        *(("sliding",) if kind.attention == SLIDING else ()),
        SPARSE if kind.sparse else DENSE,
        *kind.marks,
    )
    changes: Changes = {}
    for word in words:
        changes |= family.when.get(word, {})
    return changes


def _latent(config: Config, family: Family) -> LatentSpec:
    index = config.has("index_n_heads")
    return LatentSpec(
        hidden=config.need("hidden_size"),
        heads=config.need("num_attention_heads", high=1_000_000),
        q_rank=config.maybe("q_lora_rank"),
        kv_rank=config.need("kv_lora_rank"),
        nope_dim=config.need("qk_nope_head_dim"),
        rope_dim=config.need("qk_rope_head_dim"),
        v_dim=config.need("v_head_dim"),
        bias=config.flag("attention_bias", default=False),
        index_heads=config.need("index_n_heads") if index else 0,
        index_dim=config.need("index_head_dim") if index else 0,
        **(family.latent or {}),
    )


def _latent_layer(latent: LatentSpec, kind: Kind, window: int | None) -> tuple[Node, ...]:
    changes: Changes = {width: number for width, number in kind.over if hasattr(latent, width)}
    if kind.attention == SLIDING:
        changes |= {"window": window, "index_heads": 0}
    return latent_attention(replace(latent, **changes))
