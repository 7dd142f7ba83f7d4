"""Encoders that keep their parts in lists of their own, or narrow every layer: XLM, FlauBERT, MobileBERT."""

from __future__ import annotations

from dataclasses import replace

from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, mlp, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.common import Widths, read_widths
from suanli.readers.hf.encoders import BERT_MLP, encoder_arch, feed, must_be_tied, refuse
from suanli.readers.hf.encoders_own import linear
from suanli.readers.hf.untied import unties

FFN_MULTIPLE = 4  # XLM fixes its MLP at four widths


@unties
def read_xlm(config: Config, name: str) -> Arch:
    """XLM (arXiv:1901.07291) and FlauBERT, both ways unless `causal`.

    Attentions, norms and MLPs lie in four lists; the head is tied and has a bias.
    """
    h, heads = config.need("emb_dim", "hidden_size"), config.need("n_heads", "num_attention_heads", high=1_000_000)
    widths = Widths(
        layers=config.layers("n_layers", "num_hidden_layers"), hidden=h, heads=heads, kv_heads=heads,
        head_dim=config.head_dim(h, heads), ffn=FFN_MULTIPLE * h, vocab=config.need("vocab_size", "n_words"),
        max_positions=config.maybe("max_position_embeddings"),
    )  # fmt: skip
    rows, languages = config.need("max_position_embeddings"), config.whole("n_langs", default=1)
    spoken = languages > 1 and config.flag("use_lang_emb", default=True)
    causal, fixed = config.flag("causal", default=False), config.flag("sinusoidal_embeddings", default=False)
    refuse(
        config, ("asm", True, "an adaptive softmax is not read"), ("is_encoder", False, "a decoder is not read"),
    )  # fmt: skip
    config.check()
    at, each = "transformer", (0,) * widths.layers
    spec = AttentionSpec(
        hidden=h, heads=heads, kv_heads=heads, head_dim=widths.head_dim, qkv_bias=True, o_bias=True,
        mask="causal" if causal else "full",
        names=AttentionNames(at="", q="q_lin", k="k_lin", v="v_lin", o="out_lin"), dropout=True,
    )  # fmt: skip
    tables = [
        Embedding(name=f"{at}.position_embeddings", num=rows, dim=h, role="position", trainable=not fixed),
        Embedding(name=f"{at}.embeddings", num=widths.vocab, dim=h),
    ]
    if spoken:
        tables.append(Embedding(name=f"{at}.lang_embeddings", num=languages, dim=h, role="type"))
    nodes: tuple[Node, ...] = (
        *tables,
        norm(f"{at}.layer_norm_emb", h, "layer"),
        *stack(f"{at}.attentions", each, lambda _: attention(spec)),
        *stack(f"{at}.layer_norm1", each, lambda _: (norm("", h, "layer"),)),
        *stack(f"{at}.ffns", each, lambda _: mlp(h, widths.ffn, at="", names=("lin1", "lin2"), bias=True)),
        *stack(f"{at}.layer_norm2", each, lambda _: (norm("", h, "layer"),)),
        Linear(name="pred_layer.proj", in_features=h, out_features=widths.vocab, bias=True, role="lm_head", tied=True),
    )
    arch = encoder_arch(name, widths, nodes)
    return replace(arch, task="causal-lm") if causal else arch


def _bottleneck(at: str, width: int, out: int) -> tuple[Node, ...]:
    return (linear(f"{at}.dense", width, out), norm(f"{at}.LayerNorm", out, "layer"))


def _mobile_layer(config: Config, widths: Widths) -> tuple[Node, ...]:
    """A narrow layer between two bottlenecks; queries and keys may share one of their own."""
    h, narrow = widths.hidden, config.flag("use_bottleneck", default=True)
    true = config.whole("intra_bottleneck_size", default=128) if narrow else h
    all_narrow = config.flag("use_bottleneck_attention", default=False)
    shared = config.flag("key_query_shared_bottleneck", default=True)
    feeds = config.whole("num_feedforward_networks", default=4)
    if narrow and not shared and not all_narrow:
        config.fault("unsupported", "queries of full width are not read", "key_query_shared_bottleneck")
    values = true if all_narrow or not narrow else h
    spec = AttentionSpec(
        hidden=true, heads=widths.heads, kv_heads=widths.heads, head_dim=max(1, true // widths.heads), qkv_bias=True,
        o_bias=True, mask="full",
        names=AttentionNames(at="attention", q="self.query", k="self.key", v="self.value", o="output.dense"),
    )  # fmt: skip
    value = linear("attention.self.value", values, true)
    inner = tuple(value if node.name == value.name else node for node in attention(spec))
    first: tuple[Node, ...] = ()
    if narrow:
        first = _bottleneck("bottleneck.input", h, true)
        if shared:  # held, and not run where everything is narrow
            second = _bottleneck("bottleneck.attention", h, true)
            first = (*first, *(_idle(second) if all_narrow else second))
    small = Module(
        name="ffn", indices=range(feeds - 1),
        children=(*feed(true, widths.ffn, BERT_MLP, (True, True)), norm("output.LayerNorm", true, "layer")),
    )  # fmt: skip
    return (
        *first,
        *inner,
        norm("attention.output.LayerNorm", true, "layer"),
        *((small,) if feeds > 1 else ()),
        *feed(true, widths.ffn, BERT_MLP, (True, True)),
        norm("output.LayerNorm", true, "layer"),
        *(_bottleneck("output.bottleneck", true, h) if narrow else ()),
    )


def _idle(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same weights, held and not run."""
    return tuple(Parameter(name=node.name, shape=(node.params,)) for node in nodes if not isinstance(node, Module))


def read_mobilebert(config: Config, name: str) -> Arch:
    """MobileBERT (arXiv:2004.02984): three neighbouring words embed one position, bottlenecks, four MLPs a layer."""
    widths = read_widths(config, grouped=False)
    must_be_tied(config)
    h, width = widths.hidden, config.whole("embedding_size", default=128)
    rows, types = config.need("max_position_embeddings"), config.whole("type_vocab_size", default=2)
    joined = 3 * width if config.flag("trigram_input", default=True) else width
    inner = _mobile_layer(config, widths)
    if width > h:
        config.fault("contradiction", "the embedding is wider than the model", "embedding_size")
    config.check()
    at = "mobilebert.embeddings"
    more = h - width
    nodes: tuple[Node, ...] = (
        Embedding(name=f"{at}.word_embeddings", num=widths.vocab, dim=width),
        *((linear(f"{at}.embedding_transformation", joined, h),) if joined != width or more else ()),
        Embedding(name=f"{at}.position_embeddings", num=rows, dim=h, role="position"),
        Embedding(name=f"{at}.token_type_embeddings", num=types, dim=h, role="type"),
        norm(f"{at}.LayerNorm", h, "layer"),
        *stack("mobilebert.encoder.layer", (0,) * widths.layers, lambda _: inner),
        linear("cls.predictions.transform.dense", h, h),
        norm("cls.predictions.transform.LayerNorm", h, "layer"),
        # the words' table, widened by a matrix of its own, is one product
        Linear(name="cls.predictions.decoder", in_features=h, out_features=widths.vocab, role="lm_head", tied=True),
        *((Parameter(name="cls.predictions.dense", shape=(more, widths.vocab)),) if more else ()),
        Parameter(name="cls.predictions.bias", shape=(widths.vocab,)),
    )
    return encoder_arch(name, widths, nodes)


FAMILIES = {"xlm": read_xlm, "flaubert": read_xlm, "mobilebert": read_mobilebert}
