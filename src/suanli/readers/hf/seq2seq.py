"""Encoder–decoders shaped like BART, one row a family, and those with parts of their own: ProphetNet, T5Gemma."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suanli.nouns.arch import TOKENS, Arch, Module, Shape, Stream
from suanli.nouns.layers import Buffer, Embedding, Linear
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped, mlp, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.common import FULL, SLIDING, read_widths
from suanli.readers.hf.encoder_decoder import ENCODER, bart_layer, shape_of, sides
from suanli.readers.hf.encoders import refuse
from suanli.readers.hf.untied import unties

BOTH = ("encoder and decoder each of --seq positions",)


@dataclass(frozen=True, kw_only=True)
class Bart:
    """How a family differs from BART. `spare`: rows of the position table beyond the positions, None for no table."""

    spare: int | None = 2
    pad_rows: bool = False
    first_norm: bool = True
    last_norm: bool = False
    pre_norm: bool = False
    logits_bias: bool = True
    words: str = "model.shared"
    tied: bool = True
    head: str = "lm_head"
    two_vocabularies: tuple[str, str] | None = None
    unshared_flag: str | None = None
    refuse: tuple[tuple[str, object, str], ...] = ()


def _vocabularies(config: Config, family: Bart) -> tuple[int, int, bool]:
    """Words of encoder and decoder, and whether they share one table."""
    if family.two_vocabularies:
        first, second = (config.need(key) for key in family.two_vocabularies)
        return first, second, False
    vocab = config.need("vocab_size")
    if family.unshared_flag and not config.flag(family.unshared_flag, default=True):
        return vocab, config.need("decoder_vocab_size"), False
    return vocab, vocab, True


@unties
def read_bart_like(config: Config, name: str, family: Bart) -> Arch:
    """An encoder–decoder of BART's layers. Raises ConfigError with every fault."""
    h = config.need("d_model", "hidden_size")
    (layers, heads, ffn), (decoder_layers, decoder_heads, decoder_ffn) = sides(config, h)
    positions = config.need("max_position_embeddings")
    source, target, shared = _vocabularies(config, family)
    refuse(config, *family.refuse)
    padding = config.whole("pad_token_id", default=1, low=0) + 1 if family.pad_rows else 0
    config.check()
    rows = None if family.spare is None else positions + family.spare + padding

    def side(at: str, count: int, n: int, f: int, cross: bool, words: Embedding) -> tuple[Node, ...]:
        mask = "causal" if cross else "full"
        table = () if rows is None else (Embedding(name=f"{at}.embed_positions", num=rows, dim=h, role="position"),)
        inner = bart_layer(h, n, f, mask=mask, cross=cross, pre_norm=family.pre_norm)
        return (
            words,
            *table,
            *((norm(f"{at}.layernorm_embedding", h, "layer"),) if family.first_norm else ()),
            *stack(f"{at}.layers", (0,) * count, lambda _: inner),
            *((norm(f"{at}.layer_norm", h, "layer"),) if family.last_norm else ()),
        )

    first = family.words if shared else "model.encoder.embed_tokens"
    encoder_words = Embedding(name=first, num=source, dim=h)
    decoder_words = Embedding(name="model.decoder.embed_tokens", num=target, dim=h, tied=shared)
    encoder = side("model.encoder", layers, heads, ffn, False, encoder_words)
    children: tuple[Node, ...] = (
        Module(name="", stream=ENCODER, children=encoder),
        *side("model.decoder", decoder_layers, decoder_heads, decoder_ffn, True, decoder_words),
        Linear(name=family.head, in_features=h, out_features=target, role="lm_head", tied=family.tied),
        *((Buffer(name="final_logits_bias", shape=(1, target)),) if family.logits_bias else ()),
    )
    return two_streams(name, children, shape_of(layers + decoder_layers, h, heads, h // heads, ffn, target), positions)


def two_streams(name: str, children: tuple[Node, ...], shape: Shape, positions: int | None) -> Arch:
    """Encoder and decoder of --seq positions each."""
    return Arch(
        name=name, root=Module(name="", children=children),
        streams=(Stream(name=TOKENS, decodes=True), Stream(name=ENCODER)), shape=shape,
        max_positions=positions, task="seq2seq-lm", notes=BOTH,
    )  # fmt: skip


ROWS: dict[str, Bart] = {
    "mbart": Bart(last_norm=True, pre_norm=True),
    "plbart": Bart(),
    "mvp": Bart(refuse=(("use_prompt", True, "an MVP with prompts is not read"),)),
    "m2m_100": Bart(spare=None, first_norm=False, last_norm=True, pre_norm=True, logits_bias=False),
    "marian": Bart(spare=0, first_norm=False, unshared_flag="share_encoder_decoder_embeddings"),
    "pegasus": Bart(spare=0, first_norm=False, last_norm=True, pre_norm=True),
    "blenderbot": Bart(spare=0, first_norm=False, last_norm=True, pre_norm=True),
    "blenderbot-small": Bart(spare=0),
    "fsmt": Bart(
        spare=0, pad_rows=True, first_norm=False, tied=False, logits_bias=False,
        two_vocabularies=("src_vocab_size", "tgt_vocab_size"), head="model.decoder.output_projection",
        refuse=(("tie_word_embeddings", True, "a tied FSMT is not read"),),
    ),
}  # fmt: skip


# --- ProphetNet ---------------------------------------------------------------------------------------------------

_PROPHET = AttentionNames(at="self_attn", q="query_proj", k="key_proj", v="value_proj", o="out_proj")
_CROSS = AttentionNames(at="cross_attn", q="query_proj", k="key_proj", v="value_proj", o="out_proj")


@unties
def read_prophetnet(config: Config, name: str) -> Arch:
    """ProphetNet (arXiv:2001.04063): the decoder runs once more for each of `ngram` further tokens it predicts."""
    h, vocab = config.need("hidden_size"), config.need("vocab_size")
    heads = config.need("num_encoder_attention_heads", high=1_000_000)
    decoder_heads = config.need("num_decoder_attention_heads", high=1_000_000)
    ffn, decoder_ffn = config.need("encoder_ffn_dim"), config.need("decoder_ffn_dim")
    layers, decoder_layers = config.layers("num_encoder_layers"), config.layers("num_decoder_layers")
    rows, grams = config.need("max_position_embeddings"), config.need("ngram")
    buckets = config.need("num_buckets")
    config.check()

    def attend(n: int, names: AttentionNames, mask: str, key_stream: str | None = None) -> tuple[Node, ...]:
        spec = AttentionSpec(
            hidden=h, heads=n, kv_heads=n, head_dim=max(1, h // n), qkv_bias=True, o_bias=True, mask=mask, names=names,
            key_stream=key_stream, dropout=True,
        )  # fmt: skip
        return attention(spec)

    def feed(f: int) -> tuple[Node, ...]:
        names = ("intermediate", "output")
        return (
            *mlp(h, f, at="feed_forward", names=names, bias=True, dropout=True),
            norm("feed_forward_layer_norm", h, "layer"),
        )

    encoder_layer = (*attend(heads, _PROPHET, "full"), norm("self_attn_layer_norm", h, "layer"), *feed(ffn))
    runs = 1 + grams
    *projections, core, out = attend(decoder_heads, _PROPHET, "causal")
    query, crossing, *rest = attend(decoder_heads, _CROSS, "full", ENCODER)
    relative = Linear(
        name="self_attn.relative_pos_embeddings", in_features=h, out_features=buckets * decoder_heads, bias=True
    )
    # the stream of tokens attends to itself; each further one to that and to itself
    pairs = Module(name="", children=(core,), repeats=1 + 2 * grams)
    decoder_layer: tuple[Node, ...] = (
        Module(name="", repeats=runs, children=(*projections, relative)),
        pairs,
        Module(name="", repeats=runs, children=(out, norm("self_attn_layer_norm", h, "layer"), query)),
        crossing,
        Module(name="", repeats=runs, children=(*rest, norm("cross_attn_layer_norm", h, "layer"), *feed(decoder_ffn))),
    )
    at = "prophetnet"
    encoder: tuple[Node, ...] = (
        Embedding(name=f"{at}.word_embeddings", num=vocab, dim=h),
        Embedding(name=f"{at}.encoder.position_embeddings", num=rows, dim=h, role="position"),
        norm(f"{at}.encoder.embeddings_layer_norm", h, "layer"),
        *stack(f"{at}.encoder.layers", (0,) * layers, lambda _: encoder_layer),
    )
    children: tuple[Node, ...] = (
        Module(name="", stream=ENCODER, children=encoder),
        Embedding(name=f"{at}.decoder.word_embeddings", num=vocab, dim=h, tied=True),
        Embedding(name=f"{at}.decoder.position_embeddings", num=rows, dim=h, role="position"),
        Embedding(name=f"{at}.decoder.ngram_embeddings", num=grams, dim=h, role="position"),
        norm(f"{at}.decoder.embeddings_layer_norm", h, "layer"),
        *stack(f"{at}.decoder.layers", (0,) * decoder_layers, lambda _: decoder_layer),
        Module(
            name="", repeats=grams,
            children=(Linear(name="lm_head", in_features=h, out_features=vocab, role="lm_head", tied=True),),
        ),
    )  # fmt: skip
    return two_streams(name, children, shape_of(layers + decoder_layers, h, heads, h // heads, ffn, vocab), rows)


# --- T5Gemma ------------------------------------------------------------------------------------------------------


def _gemma_side(config: Config, at: str, cross_width: int | None) -> tuple[Node, ...]:
    """One side of T5Gemma: Gemma 2 layers with norms before and after each part."""
    widths = read_widths(config)
    h = widths.hidden
    types = config.names("layer_types", widths.layers, (FULL, SLIDING))
    window = config.maybe("sliding_window")
    bias = config.flag("attention_bias", default=False)
    if config.faults.faults:  # a bad count of layers must not be built
        return ()
    kinds = types or tuple(SLIDING if i % 2 == 0 else FULL for i in range(widths.layers))
    own = "full" if cross_width is None else "causal"

    def attend(kind: str, name: str, mask: str, key_stream: str | None) -> tuple[Node, ...]:
        spec = AttentionSpec(
            hidden=h, heads=widths.heads, kv_heads=widths.kv_heads, head_dim=widths.head_dim, qkv_bias=bias,
            o_bias=bias, names=AttentionNames(at=name), key_stream=key_stream,
            key_width=cross_width if key_stream else None,
            mask="band" if kind == SLIDING and mask == "full" else mask, window=window if kind == SLIDING else None,
        )  # fmt: skip
        return (norm(f"pre_{name}_layernorm", h), *attention(spec), norm(f"post_{name}_layernorm", h))

    def make(kind: str) -> tuple[Node, ...]:
        return (
            *attend(kind, "self_attn", own, None),
            *(attend(FULL, "cross_attn", "full", ENCODER) if cross_width is not None else ()),
            norm("pre_feedforward_layernorm", h),
            *mlp(h, widths.ffn),
            norm("post_feedforward_layernorm", h),
        )

    return (
        Embedding(name=f"{at}.embed_tokens", num=widths.vocab, dim=h),
        *dropped(f"{at}.dropout", h),
        *stack(f"{at}.layers", kinds, make),
        norm(f"{at}.norm", h),
    )


def read_t5gemma(config: Config, name: str) -> Arch:
    """T5Gemma (arXiv:2504.06225): Gemma 2 on both sides, each with its own words, joined by cross-attention."""
    encoder, decoder = config.part("encoder"), config.part("decoder")
    width = encoder.need("hidden_size")
    tied = config.flag("tie_word_embeddings", default=True)
    first = _gemma_side(encoder, "model.encoder", None)
    second = _gemma_side(decoder, "model.decoder", width)
    widths = read_widths(decoder)
    config.check()
    children = (
        Module(name="", stream=ENCODER, children=first),
        *second,
        Linear(
            name="lm_head.out_proj", in_features=widths.hidden, out_features=widths.vocab, role="lm_head", tied=tied
        ),
    )
    return two_streams(name, children, widths.shape(gated=True), widths.max_positions)


def _reader(family: Bart) -> Callable[[Config, str], Arch]:
    return lambda config, name: read_bart_like(config, name, family)


FAMILIES = {
    **{model_type: _reader(family) for model_type, family in ROWS.items()},
    "prophetnet": read_prophetnet,
    "t5gemma": read_t5gemma,
}
