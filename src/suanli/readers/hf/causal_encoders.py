"""BERT and its kin with a causal head (`BertLMHeadModel` and the like): rows, and the one reader of them.

Chosen where `architectures` names the causal class; without `is_decoder` these classes see both ways, as their
configs say. The masked-language heads of the same types are read elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped, mlp, norm, stack
from suanli.readers.config import Config, brief
from suanli.readers.hf.common import Widths, read_widths

_ATTENTION = AttentionNames(at="attention", q="self.query", k="self.key", v="self.value", o="output.dense")
CLS = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder",
       "cls.predictions.bias")  # fmt: skip
LM_HEAD = ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")


@dataclass(frozen=True, kw_only=True)
class Row:
    """How a type differs from BERT. `head`: its dense layer, norm, decoder and bias, empty where there is none.

    `narrow` and `head_width` are keys of an embedding's width and of the head's; `widen` projects the one up.
    `head_holds`: torch files the tied weight under the head. `double_bias`: the decoder's own bias is tied to the
    head's, and a second one where nothing is tied.
    """

    doc: str
    base: str = "bert"
    types: bool = True
    positions: str | None = "embeddings.position_embeddings"
    embedding_norm: str | None = "embeddings.LayerNorm"
    attention_norm: str = "attention.output.LayerNorm"
    mlp_norm: str = "output.LayerNorm"
    final_norm: str | None = None
    head: tuple[str, str, str, str] = CLS
    narrow: str | None = None
    widen: str = "embeddings_project"
    head_width: str | None = None
    head_holds: bool = False
    double_bias: bool = True
    more: Callable[[Config, Widths], tuple[Node, ...]] | None = None  # what the embeddings have besides
    per_layer: Callable[[Config, Widths], tuple[Node, ...]] | None = None
    after: Callable[[Config, Widths], tuple[Node, ...]] | None = None


def read_row(config: Config, name: str, row: Row) -> Arch:
    """An encoder's layers with a language head. Raises ConfigError with every fault of the config."""
    widths = read_widths(config, grouped=False)
    if config.flag("add_cross_attention", default=False):
        config.fault("unsupported", "cross-attention in this class is not read", "add_cross_attention")
    causal = config.flag("is_decoder", default=False)
    first = _embeddings(config, widths, row)
    per_layer = row.per_layer(config, widths) if row.per_layer else ()
    after = row.after(config, widths) if row.after else ()
    head = _head(config, widths, row)
    config.check()

    def layer(_: int) -> tuple[Node, ...]:
        return (*_layer(widths, row, "causal" if causal else "full"), *per_layer)

    last = (norm(f"{row.base}.{row.final_norm}", widths.hidden, "layer"),) if row.final_norm else ()
    stacked = stack(f"{row.base}.encoder.layer", (0,) * widths.layers, layer)
    return Arch(
        name=name,
        root=Module(name="", children=(*first, *stacked, *last, *after, *head)),
        shape=widths.shape(gated=False),
        max_positions=widths.max_positions,
        task="causal-lm",
        notes=() if causal else ("without is_decoder every position sees every other",),
    )


def _layer(widths: Widths, row: Row, mask: str) -> tuple[Node, ...]:
    h = widths.hidden
    spec = AttentionSpec(
        hidden=h, heads=widths.heads, kv_heads=widths.heads, head_dim=widths.head_dim, names=_ATTENTION,
        qkv_bias=True, o_bias=True, mask=mask, dropout=True,
    )  # fmt: skip
    return (
        *attention(spec),
        *dropped("attention.output.dropout", h),
        norm(row.attention_norm, h, "layer"),
        *mlp(h, widths.ffn, at="", names=("intermediate.dense", "output.dense"), bias=True, dropout=True),
        norm(row.mlp_norm, h, "layer"),
    )


def _embedding_width(config: Config, widths: Widths, row: Row) -> int:
    return config.whole(row.narrow, default=widths.hidden) if row.narrow else widths.hidden


def _tied(config: Config, row: Row) -> bool:
    return config.flag("tie_word_embeddings", default=row.head_width is None)


def _embeddings(config: Config, widths: Widths, row: Row) -> tuple[Node, ...]:
    at, width = f"{row.base}.embeddings", _embedding_width(config, widths, row)
    held = _tied(config, row) and row.head_holds
    nodes: list[Node] = [Embedding(name=f"{at}.word_embeddings", num=widths.vocab, dim=width, tied=held)]
    if row.positions:
        rows = config.need("max_position_embeddings")
        nodes.append(Embedding(name=f"{row.base}.{row.positions}", num=rows, dim=width, role="position"))
    if row.types:
        kinds = config.whole("type_vocab_size", default=2)
        nodes.append(Embedding(name=f"{at}.token_type_embeddings", num=kinds, dim=width, role="type"))
    nodes.extend(row.more(config, widths) if row.more else ())
    if row.embedding_norm:
        nodes.append(norm(f"{row.base}.{row.embedding_norm}", width, "layer"))
    nodes.extend(dropped(f"{at}.dropout", width))
    if row.narrow and (width != widths.hidden or row.head_width):
        name = f"{row.base}.{row.widen}"
        nodes.append(Linear(name=name, in_features=width, out_features=widths.hidden, bias=True))
    return tuple(nodes)


def _head(config: Config, widths: Widths, row: Row) -> tuple[Node, ...]:
    dense, after, out, bias = row.head
    tied, width = _tied(config, row), _embedding_width(config, widths, row)
    if row.head_width:
        width = config.need(row.head_width)
        if tied:
            config.fault("unsupported", "a head as wide as no embedding cannot be tied", "tie_word_embeddings")
    nodes: list[Node] = []
    if dense:
        nodes.append(Linear(name=dense, in_features=widths.hidden, out_features=width, bias=True))
        nodes.append(norm(after, width, "layer"))
    nodes.append(
        Linear(
            name=out, in_features=width, out_features=widths.vocab, role="lm_head", tied=tied and not row.head_holds,
            bias=row.head_width is not None or (row.double_bias and not tied),
        )
    )  # fmt: skip
    if bias:
        nodes.append(Parameter(name=bias, shape=(widths.vocab,)))
    return tuple(nodes)


def _task_types(config: Config, widths: Widths) -> tuple[Node, ...]:
    if not config.flag("use_task_id", default=False):
        return ()
    rows = config.whole("task_type_vocab_size", default=3)
    return (Embedding(name="ernie.embeddings.task_type_embeddings", num=rows, dim=widths.hidden, role="type"),)


def _rotations(config: Config, widths: Widths) -> tuple[Node, ...]:
    """RoFormer keeps its sines as a table that is not trained."""
    rows = config.need("max_position_embeddings")
    name = "roformer.encoder.embed_positions"
    return (Embedding(name=name, num=rows, dim=widths.head_dim, role="position", trainable=False),)


def _sounds_and_shapes(config: Config, widths: Widths) -> tuple[Node, ...]:
    """RoCBERT: how a character sounds and looks, beside which it is, mapped to one vector."""
    at, together = "roc_bert.embeddings", [widths.hidden]
    nodes: list[Node] = []
    for what, switch, table in (
        ("pronunciation", "enable_pronunciation", "pronunciation_embed"),
        ("shape", "enable_shape", "shape_embed"),
    ):
        rows, dim = config.need(f"{what}_vocab_size"), config.need(f"{what}_embed_dim")
        nodes.append(Embedding(name=f"{at}.{table}", num=rows, dim=dim))
        if config.flag(switch, default=True):
            together.append(dim)
    if config.flag("concat_input", default=True):
        name = f"{at}.map_inputs_layer"
        nodes.append(Linear(name=name, in_features=sum(together), out_features=widths.hidden, bias=True))
    return tuple(nodes)


def _adapters(config: Config, widths: Widths) -> tuple[Node, ...]:
    """X-MOD: a bottleneck a language, of which a sequence passes its own."""
    languages = config.values.get("languages", ["en_XX"])
    if not isinstance(languages, list | tuple) or not languages or not all(isinstance(one, str) for one in languages):
        config.fault("bad_value", "languages is not a list of names", "languages", got=brief(languages))
        return ()
    h, ratio = widths.hidden, config.whole("adapter_reduction_factor", default=2)
    inner, at = max(1, h // ratio), "output.adapter_modules"
    used, others = languages[0], languages[1:]
    own = (
        () if not config.flag("adapter_layer_norm", default=False) else (norm("output.adapter_layer_norm", h, "layer"),)
    )
    return (
        *own,
        Linear(name=f"{at}.{used}.dense1", in_features=h, out_features=inner, bias=True),
        Linear(name=f"{at}.{used}.dense2", in_features=inner, out_features=h, bias=True),
        *(
            Parameter(name=f"{at}.{other}.{part}", shape=shape)
            for other in others
            for part, shape in (
                ("dense1.weight", (inner, h)), ("dense1.bias", (inner,)),
                ("dense2.weight", (h, inner)), ("dense2.bias", (h,)),
            )
        ),
    )  # fmt: skip


def _pooler(config: Config, widths: Widths) -> tuple[Node, ...]:
    """BigBird's class computes a pooled vector that its head does not use."""
    if config.choice("attention_type", ("block_sparse", "original_full"), "block_sparse") == "block_sparse":
        config.fault(
            "unsupported", "block-sparse attention is not read by formula", "attention_type",
            got="block_sparse", expected="original_full",
        )  # fmt: skip
    pool = Linear(name="bert.pooler", in_features=widths.hidden, out_features=widths.hidden, bias=True, detached=True)
    return (Module(name="", children=(pool,), stream="sample"),)


TABLE = {
    "bert": Row(doc="BERT."),
    "bert-generation": Row(
        doc="BERT for generation: no types, no transform before the head.", types=False,
        head=("", "", "lm_head.decoder", "lm_head.bias"),
    ),
    "big_bird": Row(doc="BigBird with full attention.", after=_pooler),
    "camembert": Row(doc="CamemBERT.", base="roberta", head=LM_HEAD, head_holds=True),
    "data2vec-text": Row(doc="data2vec text.", base="data2vec_text", head=LM_HEAD),
    "electra": Row(
        doc="ELECTRA: the embedding may be narrower than the model.", base="electra", narrow="embedding_size",
        head=("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head",
              "generator_lm_head.bias"),
        double_bias=False,
    ),
    "ernie": Row(doc="ERNIE 1–3.", base="ernie", more=_task_types),
    "megatron-bert": Row(
        doc="Megatron's BERT: norms before.", embedding_norm=None, attention_norm="attention.ln", mlp_norm="ln",
        final_norm="encoder.ln",
    ),
    "rembert": Row(
        doc="RemBERT: narrow embedding, wide untied head.", base="rembert", narrow="input_embedding_size",
        widen="encoder.embedding_hidden_mapping_in", head_width="output_embedding_size",
        head=("cls.predictions.dense", "cls.predictions.LayerNorm", "cls.predictions.decoder", ""),
    ),
    "roberta": Row(doc="RoBERTa.", base="roberta", head=LM_HEAD),
    "roberta-prelayernorm": Row(
        doc="RoBERTa with norms before.", base="roberta_prelayernorm", head=LM_HEAD,
        attention_norm="attention.LayerNorm", mlp_norm="intermediate.LayerNorm", final_norm="LayerNorm",
    ),
    "roc_bert": Row(doc="RoCBERT.", base="roc_bert", more=_sounds_and_shapes),
    "roformer": Row(
        doc="RoFormer: rotary.", base="roformer", positions=None, narrow="embedding_size", more=None, after=_rotations,
    ),
    "xlm-roberta": Row(doc="XLM-RoBERTa.", base="roberta", head=LM_HEAD, head_holds=True),
    "xlm-roberta-xl": Row(
        doc="XLM-RoBERTa XL: norms before.", base="roberta", head=LM_HEAD, embedding_norm=None,
        attention_norm="attention.self_attn_layer_norm", mlp_norm="LayerNorm", final_norm="encoder.LayerNorm",
    ),
    "xmod": Row(doc="X-MOD.", base="roberta", head=LM_HEAD, per_layer=_adapters),
}  # fmt: skip


def _reader(row: Row) -> Callable[[Config, str], Arch]:
    def read(config: Config, name: str) -> Arch:
        return read_row(config, name, row)

    read.__doc__ = row.doc
    return read


CAUSAL = {model_type: _reader(row) for model_type, row in TABLE.items()}
