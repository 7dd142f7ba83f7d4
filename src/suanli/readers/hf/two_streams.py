"""Decoders whose attention looks at more than the tokens: XLNet's relative positions, ProphetNet's future n-grams."""

from __future__ import annotations

from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Attention, Embedding, Linear, Parameter
from suanli.readers.blocks import Node, again, mlp, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.causal_halves import NOTE
from suanli.readers.hf.common import Widths


def read_xlnet(config: Config, name: str) -> Arch:
    """XLNet: attention to relative positions from one end of the sequence to the other, twice as many as tokens."""
    h, heads = config.need("d_model", "hidden_size"), config.need("n_head", "num_attention_heads", high=1_000_000)
    layers, vocab, ffn = config.layers("n_layer"), config.need("vocab_size"), config.need("d_inner")
    dim = config.whole("d_head", default=max(1, h // heads))
    if config.choice("attn_type", ("bi", "uni"), "bi") != "bi" or config.flag("bi_data", default=False):
        config.fault("unsupported", "only attn_type bi without bi_data is read by formula", "attn_type")
    tied = config.flag("tie_word_embeddings", default=True)
    config.check()
    layer = _xlnet_layer(h, heads, dim, ffn)
    at = "transformer"
    children: tuple[Node, ...] = (
        Parameter(name=f"{at}.mask_emb", shape=(1, 1, h)),
        Embedding(name=f"{at}.word_embedding", num=vocab, dim=h),
        *stack(f"{at}.layer", (0,) * layers, lambda _: layer),
        Linear(name="lm_loss", in_features=h, out_features=vocab, bias=True, role="lm_head", tied=tied),
    )
    return Arch(
        name=name,
        root=Module(name="", children=children),
        shape=Widths(layers, h, heads, heads, dim, ffn, vocab, None).shape(gated=False),
        task="causal-lm",
        notes=("without segments and memory; every position sees every other unless a permutation is given",),
    )


def _xlnet_layer(h: int, heads: int, dim: int, ffn: int) -> tuple[Node, ...]:
    at, width = "rel_attn", heads * dim
    relative = Linear(name=f"{at}.r", in_features=h, out_features=width, raw_input=True)  # positions need no gradient
    q, k, v = (Linear(name=f"{at}.{part}", in_features=h, out_features=width) for part in "qkv")
    biases = (Parameter(name=f"{at}.{part}", shape=(heads, dim)) for part in ("r_r_bias", "r_s_bias", "r_w_bias"))
    return (
        relative,
        *again((relative,)),
        q,
        k,
        v,
        *biases,
        Parameter(name=f"{at}.seg_embed", shape=(2, heads, dim)),
        Attention(name=f"{at}.attention", heads=heads, kv_heads=heads, qk_dim=dim, v_dim=dim, mask="full"),
        # queries against twice as many positions as there are tokens; nothing of them is cached
        Attention(name=f"{at}.positions", heads=heads, kv_heads=0, qk_dim=2 * dim, v_dim=0, mask="full"),
        Linear(name=f"{at}.o", in_features=width, out_features=h),
        norm(f"{at}.layer_norm", h, "layer"),
        *mlp(h, ffn, at="ff", names=("layer_1", "layer_2"), bias=True, dropout=True),
        norm("ff.layer_norm", h, "layer"),
    )


def read_prophetnet_decoder(config: Config, name: str) -> Arch:
    """ProphetNet's decoder: beside the tokens, a stream for each of the next `ngram` (arXiv:2001.04063 §3.2)."""
    h, vocab, ngram = config.need("hidden_size"), config.need("vocab_size"), config.need("ngram", high=1_000)
    layers, heads = config.layers("num_decoder_layers"), config.need("num_decoder_attention_heads", high=1_000_000)
    ffn, positions = config.need("decoder_ffn_dim"), config.need("max_position_embeddings")
    tied, buckets = config.flag("tie_word_embeddings", default=True), config.need("num_buckets")
    dim = config.head_dim(h, heads)
    config.check()
    at = "prophetnet.decoder"
    layer = _prophetnet_layer(h, heads, dim, ffn, buckets, ngram)
    head = Linear(name="lm_head", in_features=h, out_features=vocab, role="lm_head", tied=tied)
    own = Parameter(name="prophetnet.decoder.word_embeddings", shape=(vocab, h))  # beside the table that is looked up
    children: tuple[Node, ...] = (
        Embedding(name="prophetnet.word_embeddings", num=vocab, dim=h),
        *(() if tied else (own,)),
        Embedding(name=f"{at}.position_embeddings", num=positions, dim=h, role="position"),
        Embedding(name=f"{at}.ngram_embeddings", num=ngram, dim=h, role="type"),
        norm(f"{at}.embeddings_layer_norm", h, "layer"),
        *stack(f"{at}.layers", (0,) * layers, lambda _: layer),
        head,
        *again((head,) * (ngram - 1)),
    )
    return Arch(
        name=name,
        root=Module(name="", children=children),
        shape=Widths(layers, h, heads, heads, dim, ffn, vocab, positions).shape(gated=False),
        max_positions=positions,
        task="causal-lm",
        notes=(NOTE, f"every layer works on {ngram} predicting streams beside the tokens"),
    )


def _prophetnet_layer(h: int, heads: int, dim: int, ffn: int, buckets: int, ngram: int) -> tuple[Node, ...]:
    at = "self_attn"
    each = tuple(
        Linear(name=f"{at}.{part}", in_features=h, out_features=width, bias=True)
        for part, width in (
            ("query_proj", h), ("key_proj", h), ("value_proj", h), ("relative_pos_embeddings", buckets * heads),
            ("out_proj", h),
        )
    )  # fmt: skip
    feed = mlp(h, ffn, at="feed_forward", names=("intermediate", "output"), bias=True, dropout=True)
    predicting = Attention(name=f"{at}.predicting", heads=heads, kv_heads=0, qk_dim=2 * dim, v_dim=2 * dim)
    return (
        *each,
        *again(each * ngram),
        Attention(name=f"{at}.attention", heads=heads, kv_heads=heads, qk_dim=dim, v_dim=dim),
        *(predicting,) * ngram,  # each against the tokens and itself
        norm("self_attn_layer_norm", h, "layer"),
        *_resting_cross_attention(h),
        *feed,
        *again(feed * ngram),
        norm("feed_forward_layer_norm", h, "layer"),
    )


def _resting_cross_attention(h: int) -> tuple[Node, ...]:
    at = "cross_attn"
    parts = ("query_proj", "key_proj", "value_proj", "out_proj")
    weights = (Parameter(name=f"{at}.{part}.weight", shape=(h, h)) for part in parts)
    biases = (Parameter(name=f"{at}.{part}.bias", shape=(h,)) for part in parts)
    norms = (Parameter(name=f"{at}_layer_norm.{part}", shape=(h,)) for part in ("weight", "bias"))
    return (*weights, *biases, *norms)


FAMILIES = {"xlnet": read_xlnet}
CAUSAL = {"prophetnet": read_prophetnet_decoder}
