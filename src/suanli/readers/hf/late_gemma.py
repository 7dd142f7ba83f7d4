"""Gemma 3n and 4 text decoders: embeddings a layer, keys and values that late layers borrow, widths by reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Buffer, Embedding, Linear, Parameter
from suanli.readers.blocks import (
    BORROWED,
    KEYS_ONLY,
    OWN,
    AttentionSpec,
    MoeSpec,
    Node,
    again,
    attention,
    mlp,
    moe,
    norm,
)
from suanli.readers.config import Config
from suanli.readers.decoder import DecoderSpec, decoder
from suanli.readers.hf.common import FULL, SLIDING, Widths, read_widths
from suanli.readers.hf.general import own_configs
from suanli.readers.hf.rows import top_k


@dataclass(frozen=True)
class Kind:
    """A layer: its reach, head widths, where its keys come from, and the width of its MLP."""

    attention: str
    head_dim: int
    kv_heads: int
    keys: str
    ffn: int


def _reach(config: Config, layers: int, period: int) -> Callable[[int], str]:
    types = config.names("layer_types", layers, (FULL, SLIDING))
    last = layers - 1
    return lambda i: types[i] if types else (FULL if (i + 1) % period == 0 or i == last else SLIDING)


def _borrows(config: Config, layers: int) -> Callable[[int], bool]:
    """The last layers use the keys and values of the last layer of their kind before them."""
    shared = config.whole("num_kv_shared_layers", default=0, low=0)
    return lambda i: i >= layers - shared


def _attention(config: Config, widths: Widths, kind: Kind, window: int) -> tuple[Node, ...]:
    biased = config.flag("attention_bias", default=False)
    return attention(
        AttentionSpec(
            hidden=widths.hidden, heads=widths.heads, kv_heads=kind.kv_heads, head_dim=kind.head_dim, qkv_bias=biased,
            o_bias=biased, qk_norm="head", keys=kind.keys, window=window if kind.attention == SLIDING else None,
        )
    )  # fmt: skip


def _layer_inputs(h: int, width: int) -> tuple[Node, ...]:
    """How a layer takes in its own embedding."""
    if not width:
        return ()
    return (
        Linear(name="per_layer_input_gate", in_features=h, out_features=width),
        Linear(name="per_layer_projection", in_features=width, out_features=h),
        norm("post_per_layer_input_norm", h),
    )


def _layer_embeddings(config: Config, widths: Widths, width: int) -> tuple[Node, ...]:
    """An embedding of every layer, and what the token's own adds to it."""
    if not width:
        return ()
    rows, all_layers = config.need("vocab_size_per_layer_input"), widths.layers * width
    return (
        Embedding(name="model.embed_tokens_per_layer", num=rows, dim=all_layers),
        Linear(name="model.per_layer_model_projection", in_features=widths.hidden, out_features=all_layers),
        norm("model.per_layer_projection_norm", width),
    )


def _finish(
    config: Config, name: str, widths: Widths, kinds: tuple[Kind, ...], make: Callable[[Kind], tuple[Node, ...]],
    first: tuple[Node, ...], last: tuple[Node, ...] = (),
) -> Arch:  # fmt: skip
    tied = config.flag("tie_word_embeddings", default=True)
    config.check()
    spec = DecoderSpec(
        shape=widths.shape(gated=True), kinds=kinds, make=make, tied=tied, after_embedding=first, before_head=last,
        max_positions=widths.max_positions, notes=("text decoder only",),
    )  # fmt: skip
    return decoder(name, spec)


def _gemma4_kinds(config: Config, widths: Widths) -> tuple[Kind, ...]:
    reach, borrows = _reach(config, widths.layers, 6), _borrows(config, widths.layers)
    own = own_configs(config)
    same = config.flag("attention_k_eq_v", default=False)
    doubled = config.flag("use_double_wide_mlp", default=False)
    published = {}
    if not own:  # as published: full attention has widths of its own
        published = {"head_dim": config.need("global_head_dim")}
        if same and config.has("num_global_key_value_heads"):
            published["kv_heads"] = config.need("num_global_key_value_heads")
    config.check()

    def kind(i: int) -> Kind:
        full = reach(i) == FULL
        numbers = own.get(i, published if full else {})
        keys = BORROWED if borrows(i) else (KEYS_ONLY if same and full else OWN)
        ffn = 2 * widths.ffn if doubled and borrows(i) else widths.ffn
        head_dim, kv_heads = numbers.get("head_dim", widths.head_dim), numbers.get("kv_heads", widths.kv_heads)
        return Kind(reach(i), head_dim, kv_heads, keys, ffn)

    return tuple(kind(i) for i in range(widths.layers))


def read_gemma4(config: Config, name: str) -> Arch:
    """Gemma 4 text: four norms a layer, an embedding a layer and experts beside the MLP where switched on."""
    widths = read_widths(config)
    h, window = widths.hidden, config.whole("sliding_window", default=512)
    per_layer = config.whole("hidden_size_per_layer_input", default=0, low=0)
    experts = _gemma4_experts(config, h) if config.flag("enable_moe_block", default=False) else ()
    kinds = _gemma4_kinds(config, widths)

    def make(kind: Kind) -> tuple[Node, ...]:
        return (
            norm("input_layernorm", h),
            *_attention(config, widths, kind, window),
            norm("post_attention_layernorm", h),
            norm("pre_feedforward_layernorm", h),
            *mlp(h, kind.ffn),
            *experts,
            norm("post_feedforward_layernorm", h),
            *_layer_inputs(h, per_layer),
            Buffer(name="layer_scalar", shape=(1,)),
        )

    return _finish(config, name, widths, kinds, make, _layer_embeddings(config, widths, per_layer))


def _gemma4_experts(config: Config, h: int) -> tuple[Node, ...]:
    experts = config.need("num_experts")
    spec = MoeSpec(
        hidden=h, experts=experts, top_k=top_k(config, experts, "top_k_experts"),
        ffn=config.need("moe_intermediate_size"), at="", gate="router.proj",
    )  # fmt: skip
    return (
        norm("post_feedforward_layernorm_1", h),
        norm("post_feedforward_layernorm_2", h),
        norm("pre_feedforward_layernorm_2", h),
        Parameter(name="router.scale", shape=(h,)),
        Parameter(name="router.per_expert_scale", shape=(experts,)),
        *moe(spec),
    )


def read_gemma3n(config: Config, name: str) -> Arch:
    """Gemma 3n text: AltUp's side streams (arXiv:2301.13310), a low-rank residual, an embedding a layer."""
    layers = config.layers("num_hidden_layers")
    listed = isinstance(config.values.get("intermediate_size"), list | tuple)
    ffns = (
        (config.wholes("intermediate_size", low=1) or (1,)) if listed else (config.need("intermediate_size"),) * layers
    )
    if len(ffns) != layers:
        config.fault("contradiction", "intermediate_size does not have one entry a layer", "intermediate_size")
    widths = read_widths(config, ffn=max(ffns))
    window = config.whole("sliding_window", default=512)
    reach, borrows = _reach(config, layers, 5), _borrows(config, layers)
    per_layer = config.need("hidden_size_per_layer_input")
    streams, rank = config.need("altup_num_inputs", low=2, high=1_000), config.need("laurel_rank")
    first, last = _side_streams(widths.hidden, streams)
    first = (*_layer_embeddings(config, widths, per_layer), *first)
    config.check()
    h = widths.hidden
    kinds = tuple(
        Kind(reach(i), widths.head_dim, widths.kv_heads, BORROWED if borrows(i) else OWN, ffns[i])
        for i in range(layers)
    )

    def make(kind: Kind) -> tuple[Node, ...]:
        return (
            *_altup(h, streams),
            norm("input_layernorm", h),
            Linear(name="laurel.linear_left", in_features=h, out_features=rank),
            Linear(name="laurel.linear_right", in_features=rank, out_features=h),
            norm("laurel.post_laurel_norm", h),
            *_attention(config, widths, kind, window),
            norm("post_attention_layernorm", h),
            norm("pre_feedforward_layernorm", h),
            *mlp(h, kind.ffn),
            norm("post_feedforward_layernorm", h),
            *_layer_inputs(h, per_layer),
        )

    return _finish(config, name, widths, kinds, make, first, last)


def _side_streams(h: int, streams: int) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The projections that open the side streams and those that close them."""
    numbers = range(streams - 1)
    square = (Linear(name="weight", in_features=h, out_features=h),)
    opened, closed = (
        (Module(name=f"model.altup_{name}projections", children=square, indices=numbers),) for name in ("", "unembed_")
    )
    return opened, closed


def _altup(h: int, streams: int) -> tuple[Node, ...]:
    """Predicting all streams before a layer and correcting them after it; the router looks both times."""
    router: tuple[Node, ...] = (
        norm("altup.router_norm", h),
        Linear(name="altup.modality_router", in_features=h, out_features=streams, role="router"),
    )
    return (
        Parameter(name="altup.correct_output_scale", shape=(h,)),
        *router,
        Linear(name="altup.prediction_coefs", in_features=streams, out_features=streams * streams),
        # every stream's vector times the predicted coefficients: a product of two activations, with no weights
        Linear(name="altup.predict", in_features=streams * h, out_features=streams, tied=True),
        *again(router),
        Linear(name="altup.correction_coefs", in_features=streams, out_features=streams),
    )


FAMILIES = {
    "gemma4_text": read_gemma4,
    "gemma4_unified_text": read_gemma4,
    "gemma3n_text": read_gemma3n,
}
