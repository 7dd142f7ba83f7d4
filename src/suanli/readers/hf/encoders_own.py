"""Encoders whose layers, embeddings or heads are their own: ALBERT, DeBERTa, MobileBERT, SqueezeBERT, ConvBERT …"""

from __future__ import annotations

from suanli.nouns.arch import Arch, Module, Stream
from suanli.nouns.layers import Attention, Elementwise, Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.common import Widths, read_widths
from suanli.readers.hf.encoders import (
    BERT_MLP,
    CLS,
    LM,
    Encoder,
    Head,
    embeddings,
    encoder_arch,
    feed,
    head,
    layer,
    must_be_tied,
    pooler,
    refuse,
    token_conv,
    unused,
)
from suanli.readers.hf.untied import unties

RELATIVE = "relative positions"


def full_attention(widths: Widths, names: AttentionNames, *, heads: int | None = None) -> tuple[Node, ...]:
    """Biased attention of all with all."""
    spec = AttentionSpec(
        hidden=widths.hidden, heads=heads or widths.heads, kv_heads=heads or widths.heads, head_dim=widths.head_dim,
        names=names, qkv_bias=True, o_bias=True, mask="full", dropout=True,
    )  # fmt: skip
    return attention(spec)


def linear(name: str, width: int, out: int, *, bias: bool = True) -> Linear:
    """A dense layer."""
    return Linear(name=name, in_features=width, out_features=out, bias=bias)


def own_head(width: int, vocab: int) -> tuple[Node, ...]:
    """RoBERTa's head with a matrix of its own, whose bias is kept beside it."""
    dense, normed, _, bias = head(LM, width, width, vocab)
    return (
        dense,
        normed,
        Linear(name="lm_head.decoder", in_features=width, out_features=vocab, role="lm_head"),
        bias,
    )


@unties
def read_albert(config: Config, name: str) -> Arch:
    """ALBERT (arXiv:1909.11942): narrow embedding, and groups of layers that run again with the same weights."""
    widths = read_widths(config, grouped=False)
    width, h = config.whole("embedding_size", default=128), widths.hidden
    groups, inner = config.whole("num_hidden_groups", default=1), config.whole("inner_group_num", default=1)
    family = Encoder(base="albert", width=("embedding_size",), widen="encoder.embedding_hidden_mapping_in")
    first = embeddings(config, family, widths, width)
    config.check()
    runs = [0] * groups
    for i in range(widths.layers):
        runs[i * groups // widths.layers] += 1
    names = AttentionNames(at="attention", q="query", k="key", v="value", o="dense")
    parts = (
        *full_attention(widths, names),
        norm("attention.LayerNorm", h, "layer"),
        *feed(h, widths.ffn, ("ffn", "ffn_output"), (True, True)),
        norm("full_layer_layer_norm", h, "layer"),
    )
    each = Module(name="albert_layers", children=parts, indices=range(inner), block=True)
    at = "albert.encoder.albert_layer_groups"
    last = Head(
        dense="predictions.dense", norm="predictions.LayerNorm", decoder="predictions.decoder", bias="predictions.bias"
    )
    nodes = (
        *first,
        *(Module(name=at, children=(each,), indices=range(i, i + 1), repeats=n) for i, n in enumerate(runs)),
        *head(last, h, width, widths.vocab),
    )
    return encoder_arch(name, widths, nodes)


def read_rembert(config: Config, name: str) -> Arch:
    """RemBERT: narrow input embedding, wide output embedding of its own."""
    widths = read_widths(config, grouped=False)
    width, out = config.need("input_embedding_size"), config.need("output_embedding_size")
    refuse(config, ("is_decoder", True, "an encoder turned into a decoder is not read"))
    family = Encoder(base="rembert", widen="encoder.embedding_hidden_mapping_in")
    first, inner = embeddings(config, family, widths, width), layer(config, widths, family)
    config.check()
    at = "cls.predictions"
    nodes = (
        *first,
        *stack("rembert.encoder.layer", (0,) * widths.layers, lambda _: inner),
        linear(f"{at}.dense", widths.hidden, out),
        norm(f"{at}.LayerNorm", out, "layer"),
        Linear(name=f"{at}.decoder", in_features=out, out_features=widths.vocab, bias=True, role="lm_head"),
    )
    return encoder_arch(name, widths, nodes)


@unties
def read_fnet(config: Config, name: str) -> Arch:
    """FNet (arXiv:2105.03824): a Fourier transform in place of attention, which multiplies no matrices."""
    hidden, vocab = config.need("hidden_size"), config.need("vocab_size")
    widths = Widths(
        layers=config.layers("num_hidden_layers"), hidden=hidden, heads=1, kv_heads=1, head_dim=hidden,
        ffn=config.need("intermediate_size"), vocab=vocab, max_positions=config.maybe("max_position_embeddings"),
    )  # fmt: skip
    refuse(config, ("use_tpu_fourier_optimizations", True, "a Fourier transform by matrices is not read by formula"))
    first = embeddings(config, Encoder(base="fnet", type_rows=4), widths, hidden)
    config.check()
    inner: tuple[Node, ...] = (
        Elementwise(name="fourier", op="fft", width=hidden),
        norm("fourier.output.LayerNorm", hidden, "layer"),
        *feed(hidden, widths.ffn, BERT_MLP, (True, True)),
        norm("output.LayerNorm", hidden, "layer"),
    )
    nodes = (
        *first,
        linear("fnet.embeddings.projection", hidden, hidden),
        *stack("fnet.encoder.layer", (0,) * widths.layers, lambda _: inner),
        pooler("fnet.pooler.dense", hidden),
        *head(CLS, hidden, hidden, vocab),
    )
    return encoder_arch(name, widths, nodes)


@unties
def read_esm(config: Config, name: str) -> Arch:
    """ESM-2: norms before, an unused contact head; no folding."""
    widths = read_widths(config, grouped=False)
    h = widths.hidden
    refuse(config, ("is_folding_model", True, "a folding model is not read"), ("is_decoder", True, "a decoder is not"))
    learned = config.choice("position_embedding_type", ("absolute", "rotary"), "absolute") == "absolute"
    normed = config.flag("emb_layer_norm_before", default=False)
    family = Encoder(
        base="esm", types=False, positions=learned, embedding_norm="embeddings.layer_norm" if normed else None,
        before=("attention.LayerNorm",), between=("LayerNorm",), after=(),
    )  # fmt: skip
    first, inner = embeddings(config, family, widths, h), layer(config, widths, family)
    config.check()
    nodes = (
        *first,
        *stack("esm.encoder.layer", (0,) * widths.layers, lambda _: inner),
        norm("esm.encoder.emb_layer_norm_after", h, "layer"),
        *unused("esm.contact_head.regression", widths.layers * widths.heads + 1),
        *head(LM, h, h, widths.vocab),
    )
    return encoder_arch(name, widths, nodes)


def read_luke(config: Config, name: str) -> Arch:
    """LUKE on words alone: what serves entities is held and not run."""
    widths = read_widths(config, grouped=False)
    h, width = widths.hidden, config.need("entity_emb_size")
    entities, rows = config.need("entity_vocab_size"), config.need("max_position_embeddings")
    types = config.whole("type_vocab_size", default=2, low=0)
    aware = config.flag("use_entity_aware_attention", default=True)
    must_be_tied(config)
    first = embeddings(config, Encoder(base="luke"), widths, h)
    inner = layer(config, widths, Encoder(base="luke"))
    config.check()
    square = linear("", h, h).params
    queries = ("w2e_query", "e2w_query", "e2e_query") if aware else ()
    idle = tuple(node for each in queries for node in unused(f"attention.self.{each}", square))
    at = "luke.entity_embeddings"
    tables = entities * width + (linear("", width, h, bias=False).params if width != h else 0) + (rows + types) * h
    nodes = (
        *first,
        *unused(at, tables + norm("", h, "layer").params),
        *stack("luke.encoder.layer", (0,) * widths.layers, lambda _: (*inner, *idle)),
        pooler("luke.pooler.dense", h),
        *own_head(h, widths.vocab),
        *unused("entity_predictions", linear("", h, width).params + norm("", width, "layer").params + entities),
    )
    return encoder_arch(name, widths, nodes, notes=("words alone, no entities",))


@unties
def read_convbert(config: Config, name: str) -> Arch:
    """ConvBERT (arXiv:2008.02496): half the heads attend, the other half are convolutions made from the input."""
    widths = read_widths(config, grouped=False)
    h, width = widths.hidden, config.whole("embedding_size", default=widths.hidden)
    taps, ratio = config.whole("conv_kernel_size", default=9), config.whole("head_ratio", default=2)
    heads = max(1, widths.heads // ratio)
    if config.whole("num_groups", default=1) != 1:
        config.fault("unsupported", "grouped matrices are not read", "num_groups")
    family = Encoder(base="convbert", width=("embedding_size",), widen="embeddings_project")
    first = embeddings(config, family, widths, width)
    config.check()
    dim = h // heads // 2
    inner, at = heads * dim, "attention.self"
    keys = f"{at}.key_conv_attn_layer"
    parts: tuple[Node, ...] = (
        linear(f"{at}.query", h, inner),
        linear(f"{at}.key", h, inner),
        linear(f"{at}.value", h, inner),
        token_conv(f"{keys}.depthwise", h, h, kernel=taps, groups=h, bias=False),
        token_conv(f"{keys}.pointwise", h, inner, bias=False),
        Parameter(name=f"{keys}.bias", shape=(inner, 1)),
        linear(f"{at}.conv_kernel_layer", inner, heads * taps),
        linear(f"{at}.conv_out_layer", h, inner),
        Attention(name=f"{at}.span", heads=heads, kv_heads=heads, qk_dim=0, v_dim=dim, mask="full", keys=taps),
        Attention(name=f"{at}.attention", heads=heads, kv_heads=heads, qk_dim=dim, v_dim=dim, mask="full"),
        linear("attention.output.dense", h, h),
        norm("attention.output.LayerNorm", h, "layer"),
        *feed(h, widths.ffn, BERT_MLP, (True, True)),
        norm("output.LayerNorm", h, "layer"),
    )
    last = Head(
        dense="generator_predictions.dense", norm="generator_predictions.LayerNorm", decoder="generator_lm_head",
        bias="generator_lm_head.bias",
    )  # fmt: skip
    nodes = (
        *first,
        *stack("convbert.encoder.layer", (0,) * widths.layers, lambda _: parts),
        *head(last, h, width, widths.vocab),
    )
    return encoder_arch(name, widths, nodes)


@unties
def read_squeezebert(config: Config, name: str) -> Arch:
    """SqueezeBERT: every matrix a grouped convolution of one position."""
    widths = read_widths(config, grouped=False)
    h = widths.hidden
    keys = ("q", "k", "v", "post_attention", "intermediate", "output")
    groups = {key: config.whole(f"{key}_groups", default=1) for key in keys}
    first = embeddings(config, Encoder(base="transformer"), widths, h)
    config.check()
    d, n = widths.head_dim, widths.heads
    parts: tuple[Node, ...] = (
        token_conv("attention.query", h, h, groups=groups["q"]),
        token_conv("attention.key", h, h, groups=groups["k"]),
        token_conv("attention.value", h, h, groups=groups["v"]),
        Attention(name="attention.attention", heads=n, kv_heads=n, qk_dim=d, v_dim=d, mask="full"),
        token_conv("post_attention.conv1d", h, h, groups=groups["post_attention"]),
        norm("post_attention.layernorm", h, "layer"),
        token_conv("intermediate.conv1d", h, widths.ffn, groups=groups["intermediate"]),
        token_conv("output.conv1d", widths.ffn, h, groups=groups["output"]),
        norm("output.layernorm", h, "layer"),
    )
    nodes = (
        *first,
        *stack("transformer.encoder.layers", (0,) * widths.layers, lambda _: parts),
        pooler("transformer.pooler.dense", h),
        *head(CLS, h, h, widths.vocab),
    )
    return encoder_arch(name, widths, nodes)


@unties
def read_deberta_v2(config: Config, name: str) -> Arch:
    """DeBERTa-v2 (arXiv:2006.03654): scores of content with content, and with 2·span relative positions both ways."""
    widths = read_widths(config, grouped=False)
    h = widths.hidden
    refuse(config, ("legacy", False, "the newer head is not read"))
    buckets = config.whole("position_buckets", default=-1, low=-1)
    reach = config.whole("max_relative_positions", default=-1, low=-1)
    span = buckets if buckets > 0 else reach if reach > 0 else config.need("max_position_embeddings")
    relative = config.flag("relative_attention", default=False)
    family = Encoder(base="deberta", positions=config.flag("position_biased_input", default=True), type_rows=0)
    width = config.whole("embedding_size", default=h)
    if width != h:
        config.fault("unsupported", "an embedding of another width is not read", "embedding_size")
    first = embeddings(config, family, widths, h)
    parts = deberta_layer(config, widths, relative)
    taps, groups = config.whole("conv_kernel_size", default=0, low=0), config.whole("conv_groups", default=1)
    rescaled = "layer_norm" in str(config.values.get("norm_rel_ebd") or "none").lower()
    config.check()
    at, nodes = "deberta.encoder", list(first)
    if relative:
        table = Embedding(name=f"{at}.rel_embeddings", num=2 * span, dim=h, role="position")
        nodes.append(Module(name="", stream=RELATIVE, children=(table,)))
    if rescaled:
        nodes.append(norm(f"{at}.LayerNorm", h, "layer"))
    nodes.extend(stack(f"{at}.layer", (0,) * widths.layers, lambda _: parts))
    if taps:
        nodes.extend((token_conv(f"{at}.conv.conv", h, h, kernel=taps, groups=groups),
                      norm(f"{at}.conv.LayerNorm", h, "layer")))  # fmt: skip
    nodes.extend(head(CLS, h, h, widths.vocab))
    return encoder_arch(name, widths, tuple(nodes), streams=(Stream(name=RELATIVE, length=2 * span, once=True),))


def deberta_layer(config: Config, widths: Widths, relative: bool) -> tuple[Node, ...]:
    """Attention with scores of content with relative positions, each way that `pos_att_type` names."""
    h, at, n, d = widths.hidden, "attention.self", widths.heads, widths.head_dim
    names = AttentionNames(
        at="attention", q="self.query_proj", k="self.key_proj", v="self.value_proj", o="output.dense"
    )
    *projections, core, out = full_attention(widths, names)
    middle: list[Node] = []
    types = config.values.get("pos_att_type") or ()
    types = types.split("|") if isinstance(types, str) else types
    shared = config.flag("share_att_key", default=False)
    for kind, side in (("c2p", "key"), ("p2c", "query")) if relative else ():
        there = isinstance(types, list | tuple) and kind in types
        if there or shared:
            own = Linear(
                name=f"{at}.{side}_proj.positions" if shared else f"{at}.pos_{side}_proj", in_features=h,
                out_features=h, bias=not shared, tied=shared,
            )  # fmt: skip
            middle.append(Module(name="", stream=RELATIVE, children=(own,)))
        if there:
            scores = Attention(
                name=f"{at}.{kind}", heads=n, kv_heads=n, qk_dim=d, v_dim=0, mask="full", key_stream=RELATIVE
            )
            middle.append(scores)
    return (
        *projections,
        *middle,
        core,
        out,
        norm("attention.output.LayerNorm", h, "layer"),
        *feed(h, widths.ffn, BERT_MLP, (True, True)),
        norm("output.LayerNorm", h, "layer"),
    )


@unties
def read_deberta(config: Config, name: str) -> Arch:
    """DeBERTa without relative positions, whose span would depend on the sequence."""
    widths = read_widths(config, grouped=False)
    h = widths.hidden
    refuse(
        config, ("relative_attention", True, "relative attention of DeBERTa v1 is not read by formula"),
        ("legacy", False, "the newer head is not read"), ("talking_head", True, "talking heads are not read"),
    )  # fmt: skip
    family = Encoder(base="deberta", positions=config.flag("position_biased_input", default=True), type_rows=0)
    first = embeddings(config, family, widths, h)
    config.check()
    names = AttentionNames(at="attention", fused="self.in_proj", o="output.dense")
    spec = AttentionSpec(
        hidden=h, heads=widths.heads, kv_heads=widths.heads, head_dim=widths.head_dim, names=names, o_bias=True,
        mask="full",
    )  # fmt: skip
    parts = (
        *attention(spec),
        *(Parameter(name=f"attention.self.{side}_bias", shape=(h,)) for side in "qv"),
        norm("attention.output.LayerNorm", h, "layer"),
        *feed(h, widths.ffn, BERT_MLP, (True, True)),
        norm("output.LayerNorm", h, "layer"),
    )
    nodes = (
        *first,
        *stack("deberta.encoder.layer", (0,) * widths.layers, lambda _: parts),
        *head(CLS, h, h, widths.vocab),
    )
    return encoder_arch(name, widths, nodes)


FAMILIES = {
    "albert": read_albert,
    "rembert": read_rembert,
    "fnet": read_fnet,
    "esm": read_esm,
    "luke": read_luke,
    "convbert": read_convbert,
    "squeezebert": read_squeezebert,
    "deberta-v2": read_deberta_v2,
    "deberta": read_deberta,
}
