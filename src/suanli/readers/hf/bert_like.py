"""Encoders with a masked-language head: BERT, RoBERTa, ELECTRA, DistilBERT."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.nouns.arch import TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped, mlp, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.common import Widths, read_widths
from suanli.readers.hf.untied import unties

_ATTENTION = AttentionNames(at="attention", q="self.query", k="self.key", v="self.value", o="output.dense")


@dataclass(frozen=True, kw_only=True)
class Names:
    """How the family calls its parts."""

    base: str
    layers: str = "encoder.layer"
    attention: AttentionNames = _ATTENTION
    attention_norm: str = "attention.output.LayerNorm"
    mlp: tuple[str, ...] = ("intermediate.dense", "output.dense")
    mlp_norm: str = "output.LayerNorm"


_BERT = Names(base="bert")
_DISTIL = Names(
    base="distilbert",
    layers="transformer.layer",
    attention=AttentionNames(at="attention", q="q_lin", k="k_lin", v="v_lin", o="out_lin"),
    attention_norm="sa_layer_norm",
    mlp=("ffn.lin1", "ffn.lin2"),
    mlp_norm="output_layer_norm",
)


def _layer(widths: Widths, names: Names) -> tuple[Node, ...]:
    """Attention and MLP, each followed by dropout and a norm."""
    h = widths.hidden
    spec = AttentionSpec(
        hidden=h, heads=widths.heads, kv_heads=widths.heads, head_dim=widths.head_dim, names=names.attention,
        qkv_bias=True, o_bias=True, mask="full", dropout=True,
    )  # fmt: skip
    return (
        *attention(spec),
        *dropped("attention.output.dropout", h),
        norm(names.attention_norm, h, "layer"),
        *mlp(h, widths.ffn, at="", names=names.mlp, bias=True, dropout=True),
        norm(names.mlp_norm, h, "layer"),
    )


def _embeddings(base: str, config: Config, width: int, vocab: int, positions: int, types: bool) -> tuple[Node, ...]:
    at = f"{base}.embeddings"
    nodes: list[Node] = [
        Embedding(name=f"{at}.word_embeddings", num=vocab, dim=width),
        Embedding(name=f"{at}.position_embeddings", num=positions, dim=width, role="position"),
    ]
    if types:
        rows = config.whole("type_vocab_size", default=2)
        nodes.append(Embedding(name=f"{at}.token_type_embeddings", num=rows, dim=width, role="type"))
    return (*nodes, norm(f"{at}.LayerNorm", width, "layer"), *dropped(f"{at}.dropout", width))


def _encoder(
    config: Config,
    name: str,
    widths: Widths,
    names: Names,
    first: tuple[Node, ...],
    head: tuple[Node, ...],
    *notes: str,
) -> Arch:
    config.check()
    layers = stack(f"{names.base}.{names.layers}", (0,) * widths.layers, lambda _: _layer(widths, names))
    return Arch(
        name=name,
        root=Module(name="", children=(*first, *layers, *head)),
        streams=(Stream(name=TOKENS),),
        shape=widths.shape(gated=False),
        max_positions=widths.max_positions,
        task="masked-lm",
        notes=notes,
    )


def _transform_head(
    at: str, dense: str, norm_name: str, decoder: str, bias: str, width: int, out: int, vocab: int
) -> tuple[Node, ...]:
    """Dense, activation, norm, and a decoder tied to the word embedding with a bias of its own."""
    prefix = f"{at}." if at else ""
    return (
        Linear(name=f"{prefix}{dense}", in_features=width, out_features=out, bias=True),
        norm(f"{prefix}{norm_name}", out, "layer"),
        Linear(name=f"{prefix}{decoder}", in_features=out, out_features=vocab, role="lm_head", tied=True),
        Parameter(name=f"{prefix}{bias}", shape=(vocab,)),
    )


@unties
def read_bert(config: Config, name: str) -> Arch:
    """BERT with its masked-language head; the bare encoder with pooler is said in the notes."""
    widths = read_widths(config, grouped=False)
    h, v = widths.hidden, widths.vocab
    first = _embeddings("bert", config, h, v, config.need("max_position_embeddings"), types=True)
    head = _transform_head("cls.predictions", "transform.dense", "transform.LayerNorm", "decoder", "bias", h, h, v)
    arch = _encoder(config, name, widths, _BERT, first, head)
    # BertModel: no head (h² + h + 2h + V), but a pooler (h² + h)
    bare = arch.params_total - (h * h + h + 2 * h + v) + (h * h + h)
    note = f"masked-LM model; the bare encoder with pooler (BertModel) has {bare:,} parameters"
    return _encoder(config, name, widths, _BERT, first, head, note)


@unties
def read_roberta(config: Config, name: str) -> Arch:
    """RoBERTa with its masked-language head."""
    widths = read_widths(config, grouped=False)
    first = _embeddings(
        "roberta", config, widths.hidden, widths.vocab, config.need("max_position_embeddings"), types=True
    )
    head = _transform_head(
        "lm_head", "dense", "layer_norm", "decoder", "bias", widths.hidden, widths.hidden, widths.vocab
    )
    return _encoder(config, name, widths, Names(base="roberta"), first, head)


@unties
def read_electra(config: Config, name: str) -> Arch:
    """ELECTRA's encoder with a masked-language head; the embedding may be narrower than the model."""
    widths = read_widths(config, grouped=False)
    width = config.whole("embedding_size", default=widths.hidden)
    first = _embeddings("electra", config, width, widths.vocab, config.need("max_position_embeddings"), types=True)
    if width != widths.hidden:
        widen = Linear(name="electra.embeddings_project", in_features=width, out_features=widths.hidden, bias=True)
        first = (*first, widen)
    head = (
        Linear(name="generator_predictions.dense", in_features=widths.hidden, out_features=width, bias=True),
        norm("generator_predictions.LayerNorm", width, "layer"),
        Linear(name="generator_lm_head", in_features=width, out_features=widths.vocab, role="lm_head", tied=True),
        Parameter(name="generator_lm_head.bias", shape=(widths.vocab,)),
    )
    return _encoder(config, name, widths, Names(base="electra"), first, head)


@unties
def read_distilbert(config: Config, name: str) -> Arch:
    """DistilBERT with its masked-language head: no type embedding."""
    hidden, heads = (
        config.need("dim", "hidden_size"),
        config.need("n_heads", "num_attention_heads", high=1_000_000),
    )
    widths = Widths(
        layers=config.layers("n_layers", "num_hidden_layers"), hidden=hidden, heads=heads, kv_heads=heads,
        head_dim=config.head_dim(hidden, heads), ffn=config.need("hidden_dim", "intermediate_size"),
        vocab=config.need("vocab_size"), max_positions=config.maybe("max_position_embeddings"),
    )  # fmt: skip
    first = _embeddings("distilbert", config, hidden, widths.vocab, config.need("max_position_embeddings"), types=False)
    head = _transform_head(
        "",
        "vocab_transform",
        "vocab_layer_norm",
        "vocab_projector",
        "vocab_projector.bias",
        hidden,
        hidden,
        widths.vocab,
    )
    return _encoder(config, name, widths, _DISTIL, first, head)


FAMILIES = {
    "bert": read_bert,
    "roberta": read_roberta,
    "electra": read_electra,
    "distilbert": read_distilbert,
}
