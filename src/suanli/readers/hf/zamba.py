"""Zamba 1 and 2: Mamba layers, and a transformer whose weights several layers share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Linear, Norm
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, mlp, norm
from suanli.readers.config import Config
from suanli.readers.decoder import DecoderNames
from suanli.readers.hf.common import LINEAR, LayerKind, Widths, read_widths
from suanli.readers.hf.mamba import HYBRID, SCAN_NOTE, layer_words, mamba_spec, stacked
from suanli.readers.mixers import Mamba2Spec, linear, mamba, mamba2


@dataclass(frozen=True)
class ZambaKind(LayerKind):
    """A layer of Zamba: `block` runs through the hybrid ones, `owner` holds the weights that others share."""

    block: int = -1
    owner: bool = False


def shared(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same layers over weights held elsewhere."""

    def one(node: Node) -> Node:
        if isinstance(node, Linear):
            return replace(node, tied=True)
        return replace(node, weight=False) if isinstance(node, Norm) else node

    return tuple(map(one, nodes))


def _zamba_kinds(words: tuple[str, ...], blocks: int) -> tuple[LayerKind, ...]:
    """Hybrid layers numbered; the first `blocks` of them hold the shared weights. Alike ones stay alike."""
    kinds: list[LayerKind] = []
    for word in words:
        number = sum(kind.attention == HYBRID for kind in kinds)
        kinds.append(ZambaKind(HYBRID, block=number, owner=number < blocks) if word == HYBRID else ZambaKind(word))
    return tuple(kinds)


def _zamba_words(config: Config, widths: Widths, default: tuple[str, ...]) -> tuple[str, ...]:
    listed = layer_words(config, widths.layers, "layers_block_type")
    if listed is None and len(default) != widths.layers and not config.faults.faults:
        config.fault("missing_key", "the list of layers is needed for this many", "layers_block_type")
    return listed or default


def _zamba_widths(config: Config, ffn: int | None = None) -> Widths:
    """Attention is twice as wide as the model: it reads the embedding as well."""
    widths = read_widths(config, ffn=ffn)
    given = config.maybe("attention_head_dim")
    return replace(widths, head_dim=given or max(1, 2 * widths.hidden // widths.heads))


def _zamba_attention(widths: Widths, at: str, wide: int) -> tuple[Node, ...]:
    """Attention from the wide input to the model's width."""
    spec = AttentionSpec(
        hidden=wide, heads=widths.heads, kv_heads=widths.kv_heads, head_dim=widths.head_dim,
        names=AttentionNames(at=f"{at}.self_attn"),
    )  # fmt: skip
    *inside, out = attention(spec)
    return (norm(f"{at}.input_layernorm", wide), *inside, replace(out, out_features=widths.hidden))  # type: ignore[call-arg]


def _zamba(
    config: Config, name: str, widths: Widths, words: tuple[str, ...], blocks: int,
    mixers: tuple[tuple[Node, ...], ...], transformer: tuple[Node, ...],
    adapters: tuple[tuple[Node, ...], ...] | None = None,
) -> Arch:  # fmt: skip
    """Mamba layers; hybrid ones run a shared transformer first and add what it says to Mamba's input."""
    alone, inside = mixers
    tied = config.flag("tie_word_embeddings", default=True)
    config.check()

    def make(kind: ZambaKind) -> tuple[Node, ...]:
        if kind.attention != HYBRID:
            return (norm("input_layernorm", widths.hidden), *alone)
        own = transformer if kind.owner else shared(transformer)
        extra = adapters[kind.block] if adapters else ()
        return (
            *own, *extra, linear("linear", widths.hidden, widths.hidden),
            norm("mamba_decoder.input_layernorm", widths.hidden), *inside,
        )  # fmt: skip

    if not tied:  # transformers shares the blocks only where it shares the head
        blocks = words.count(HYBRID)
    kinds = _zamba_kinds(words, blocks)
    if not adapters:
        kinds = tuple(
            replace(kind, block=0) if isinstance(kind, ZambaKind) and not kind.owner else kind for kind in kinds
        )
    return stacked(name, widths, kinds, make, DecoderNames(norm="model.final_layernorm"), tied, (SCAN_NOTE,))


def read_zamba(config: Config, name: str) -> Arch:
    """Zamba: Mamba 1 in two heads, one shared transformer."""
    widths = _zamba_widths(config)
    period, offset = config.whole("attn_layer_period", default=6), config.whole("attn_layer_offset", default=4, low=0)
    more = max(0, widths.layers - 3)
    default = (LINEAR, LINEAR, HYBRID, *(HYBRID if i % period == offset else LINEAR for i in range(more)))
    words = _zamba_words(config, widths, default)
    blocks, at = config.whole("n_mamba_heads", default=2), "shared_transf"
    mixers = tuple(
        mamba(mamba_spec(config, widths.hidden, "mamba_", at=where, blocks=blocks))
        for where in ("mamba", "mamba_decoder.mamba")
    )
    wide = config.whole("attention_hidden_size", default=2 * widths.hidden)
    transformer = (
        *_zamba_attention(widths, at, wide),
        norm(f"{at}.pre_ff_layernorm", widths.hidden),
        *mlp(widths.hidden, widths.ffn, at=f"{at}.feed_forward"),
    )
    return _zamba(config, name, widths, words, 1, mixers, transformer)


ZAMBA2 = (LINEAR, *((LINEAR,) * 5 + (HYBRID,)) * 7, *(LINEAR,) * 4, HYBRID, *(LINEAR,) * 3, HYBRID, LINEAR, LINEAR)


def read_zamba2(config: Config, name: str) -> Arch:
    """Zamba 2: Mamba 2, shared transformers in turn, each hybrid layer with low-rank adapters of its own."""
    widths = _zamba_widths(config, config.whole("intermediate_size", default=4 * config.need("hidden_size")))
    words = _zamba_words(config, widths, ZAMBA2)
    heads, wide, at = config.whole("n_mamba_heads", default=8), 2 * widths.hidden, "shared_transformer"
    inner = config.whole("mamba_expand", default=2) * widths.hidden
    spec = Mamba2Spec(
        hidden=widths.hidden, heads=heads, head_dim=max(1, inner // heads),
        groups=config.whole("mamba_ngroups", default=1), state=config.whole("mamba_d_state", default=64),
        kernel=config.whole("mamba_d_conv", default=4), chunk=config.whole("chunk_size", default=256),
        bias=config.flag("add_bias_linear", default=False), at="mamba",
    )  # fmt: skip
    mixers = (mamba2(spec), mamba2(replace(spec, at="mamba_decoder.mamba")))
    transformer = (
        *_zamba_attention(widths, at, wide),
        norm(f"{at}.pre_ff_layernorm", widths.hidden),
        *mlp(widths.hidden, widths.ffn, at=f"{at}.feed_forward", names=("gate_up_proj", "down_proj"),
             bias=config.flag("add_bias_linear", default=False)),
    )  # fmt: skip
    adapters = tuple(_adapters(config, widths, wide, at, i) for i in range(words.count(HYBRID)))
    return _zamba(config, name, widths, words, config.whole("num_mem_blocks", default=1), mixers, transformer, adapters)


def _adapters(config: Config, widths: Widths, wide: int, at: str, index: int) -> tuple[Node, ...]:
    """Low-rank additions of one hybrid layer to the shared matrices."""
    rank = config.whole("adapter_rank", default=128)
    lists = [(f"{at}.feed_forward.gate_up_proj_adapter_list", widths.hidden, 2 * widths.ffn)]
    if config.flag("use_shared_attention_adapter", default=False):
        lists += [(f"{at}.self_attn.linear_{part}_adapter_list", wide, wide) for part in "qkv"]
    return tuple(
        node
        for where, width, out in lists
        for node in (linear(f"{where}.{index}.0", width, rank), linear(f"{where}.{index}.1", rank, out))
    )


FAMILIES = {"zamba": read_zamba, "zamba2": read_zamba2}
