"""Encoders with a masked-language head that are BERT with small declared differences: one row a family.

`Encoder` says where a family's parts are and which it lacks or adds; shapes always come from the config.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Conv, Embedding, Linear, Norm, Opaque, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped, mlp, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.common import Widths, read_widths
from suanli.readers.hf.untied import unties

BERT_ATTENTION = AttentionNames(at="attention", q="self.query", k="self.key", v="self.value", o="output.dense")
BERT_MLP = ("intermediate.dense", "output.dense")
LLAMA_ATTENTION = AttentionNames(at="self_attn")


@dataclass(frozen=True, kw_only=True)
class Head:
    """A masked-language head: dense, norm, and a decoder tied to the words with a bias kept at `bias`."""

    dense: str = "cls.predictions.transform.dense"
    norm: str = "cls.predictions.transform.LayerNorm"
    decoder: str = "cls.predictions.decoder"
    bias: str = "cls.predictions.bias"


CLS = Head()
LM = Head(dense="lm_head.dense", norm="lm_head.layer_norm", decoder="lm_head.decoder", bias="lm_head.bias")
Extra = Callable[[Config, Widths], tuple[Node, ...]]


def nothing(config: Config, widths: Widths) -> tuple[Node, ...]:  # noqa: ARG001
    """No further parts."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """A family. Norms are named by where they stand; `tables`, `mapped` add to the embedding, `ending` to a layer."""

    base: str
    layers: str = "encoder.layer"
    attention: AttentionNames = BERT_ATTENTION
    qkv_bias: bool = True
    o_bias: bool = True
    mlp: tuple[str, ...] = BERT_MLP
    mlp_biases: tuple[bool, bool] = (True, True)
    before: tuple[str, ...] = ()
    between: tuple[str, ...] = ("attention.output.LayerNorm",)
    after: tuple[str, ...] = ("output.LayerNorm",)
    positions: bool = True
    spare_positions: int = 0
    types: bool = True
    type_rows: int = 2
    embedding_norm: str | None = "embeddings.LayerNorm"
    width: tuple[str, ...] = ()
    widen: str | None = None
    final_norm: str | None = None
    tables: Extra = nothing
    mapped: Extra = nothing
    ending: Extra = nothing
    closing: Extra = nothing
    pooler: str | None = None
    head: Head = CLS
    refuse: tuple[tuple[str, object, str], ...] = field(default=())


def unused(name: str, params: int) -> tuple[Node, ...]:
    """Weights that are held and not passed through by plain text."""
    return (Opaque(name=name, total=params, active=0),)


def pooler(name: str, width: int) -> Module:
    """A dense layer on the first position of each sequence."""
    dense = Linear(name=name, in_features=width, out_features=width, bias=True)
    return Module(name="", stream=SAMPLE, children=(dense,))


def token_conv(
    name: str, c_in: int, c_out: int, *, kernel: int = 1, groups: int = 1, bias: bool = True, rows: int = 1
) -> Conv:
    """A convolution along the sequence that keeps its length, as the work of one position (`rows` a position)."""
    return Conv(
        name=name, in_channels=c_in, out_channels=c_out, kernel=(kernel,), in_size=(rows,), out_size=(rows,),
        groups=groups, bias=bias,
    )  # fmt: skip


def layer(config: Config, widths: Widths, family: Encoder) -> tuple[Node, ...]:
    """Attention and MLP with the family's norms."""
    h = widths.hidden
    spec = AttentionSpec(
        hidden=h, heads=widths.heads, kv_heads=widths.heads, head_dim=widths.head_dim, names=family.attention,
        qkv_bias=family.qkv_bias, o_bias=family.o_bias, mask="full", dropout=True,
    )  # fmt: skip

    def norms(names: tuple[str, ...]) -> tuple[Norm, ...]:
        return tuple(norm(name, h, "layer") for name in names)

    return (
        *norms(family.before),
        *attention(spec),
        *dropped("attention.output.dropout", h),
        *norms(family.between),
        *feed(h, widths.ffn, family.mlp, family.mlp_biases),
        *norms(family.after),
        *family.ending(config, widths),
    )


def feed(h: int, ffn: int, names: tuple[str, ...], biases: tuple[bool, bool]) -> tuple[Node, ...]:
    """An MLP whose last matrix may have a bias where the first ones have none."""
    nodes = mlp(h, ffn, at="", names=names, bias=biases[0], dropout=True)
    if biases[0] == biases[1]:
        return nodes
    last = Linear(name=names[-1], in_features=ffn, out_features=h, bias=biases[1])
    return tuple(last if isinstance(node, Linear) and node.name == names[-1] else node for node in nodes)


def embeddings(config: Config, family: Encoder, widths: Widths, width: int) -> tuple[Node, ...]:
    """Tables of words, positions and types, their norm, and the step to the model's width."""
    at = f"{family.base}.embeddings"
    nodes: list[Node] = [Embedding(name=f"{at}.word_embeddings", num=widths.vocab, dim=width)]
    if family.positions:
        rows = config.need("max_position_embeddings") + family.spare_positions
        nodes.append(Embedding(name=f"{at}.position_embeddings", num=rows, dim=width, role="position"))
    rows = config.whole("type_vocab_size", default=family.type_rows, low=0) if family.types else 0
    if rows:
        nodes.append(Embedding(name=f"{at}.token_type_embeddings", num=rows, dim=width, role="type"))
    nodes.extend(family.tables(config, widths))
    if family.embedding_norm:
        nodes.append(norm(f"{family.base}.{family.embedding_norm}", width, "layer"))
    nodes.extend((*dropped(f"{at}.dropout", width), *family.mapped(config, widths)))
    if family.widen and (width != widths.hidden or family.widen.startswith("encoder.")):
        widen = Linear(name=f"{family.base}.{family.widen}", in_features=width, out_features=widths.hidden, bias=True)
        nodes.append(widen)
    return tuple(nodes)


def head(names: Head, width: int, out: int, vocab: int, norm_kind: str = "layer") -> tuple[Node, ...]:
    """The tied head of `names`."""
    return (
        Linear(name=names.dense, in_features=width, out_features=out, bias=True),
        norm(names.norm, out, norm_kind),
        Linear(name=names.decoder, in_features=out, out_features=vocab, role="lm_head", tied=True),
        Parameter(name=names.bias, shape=(vocab,)),
    )


def must_be_tied(config: Config) -> None:
    """Refuse a head with a matrix of its own."""
    if not config.flag("tie_word_embeddings", default=True):
        config.fault("unsupported", "a masked-language head that is not tied is not read", "tie_word_embeddings")


def refuse(config: Config, *cases: tuple[str, object, str]) -> None:
    """Record a fault for each key that has a value this reader does not know."""
    for key, value, why in cases:
        if config.values.get(key) == value:
            config.fault("unsupported", why, key, got=str(value))


def encoder_arch(
    name: str, widths: Widths, nodes: tuple[Node, ...], *, gated: bool = False, streams: tuple[Stream, ...] = (),
    notes: tuple[str, ...] = (),
) -> Arch:  # fmt: skip
    """A stack over one stream of tokens that all see each other."""
    return Arch(
        name=name, root=Module(name="", children=nodes), streams=(Stream(name=TOKENS), *streams),
        shape=widths.shape(gated), max_positions=widths.max_positions, task="masked-lm", notes=notes,
    )  # fmt: skip


@unties
def read_encoder(config: Config, name: str, family: Encoder) -> Arch:
    """The masked-language model of a family. Raises ConfigError with every fault."""
    widths = read_widths(config, grouped=False)
    width = config.whole(*family.width, default=widths.hidden) if family.width else widths.hidden
    refuse(
        config, ("is_decoder", True, "an encoder turned into a decoder is not read"),
        ("add_cross_attention", True, "an encoder with cross-attention is not read"), *family.refuse,
    )  # fmt: skip
    first = embeddings(config, family, widths, width)
    inner = layer(config, widths, family)
    closing = family.closing(config, widths)
    config.check()
    nodes: list[Node] = [*first, *stack(f"{family.base}.{family.layers}", (0,) * widths.layers, lambda _: inner)]
    if family.final_norm:
        nodes.append(norm(f"{family.base}.{family.final_norm}", widths.hidden, "layer"))
    nodes.extend(closing)
    if family.pooler:
        nodes.append(pooler(f"{family.base}.{family.pooler}", widths.hidden))
    nodes.extend(head(family.head, widths.hidden, width, widths.vocab))
    return encoder_arch(name, widths, tuple(nodes), gated=len(family.mlp) == 3)


# --- what a few families add --------------------------------------------------------------------------------------


def _table(name: str, rows: int, width: int, role: str = "type") -> Embedding:
    return Embedding(name=name, num=rows, dim=width, role=role)


def _task_table(config: Config, widths: Widths) -> tuple[Node, ...]:
    if not config.flag("use_task_id", default=False):
        return ()
    return (
        _table("ernie.embeddings.task_type_embeddings", config.whole("task_type_vocab_size", default=3), widths.hidden),
    )


def _box_tables(config: Config, widths: Widths) -> tuple[Node, ...]:
    rows = config.whole("max_2d_position_embeddings", default=1024)
    at = "layoutlm.embeddings"
    return tuple(_table(f"{at}.{axis}_position_embeddings", rows, widths.hidden, "position") for axis in "xyhw")


def _cell_tables(config: Config, widths: Widths) -> tuple[Node, ...]:
    rows = config.wholes("type_vocab_sizes", low=1) or ()
    return tuple(_table(f"tapas.embeddings.token_type_embeddings_{i}", n, widths.hidden) for i, n in enumerate(rows))


def _glyph_tables(config: Config, widths: Widths) -> tuple[Node, ...]:
    """RoCBert: sounds and shapes of characters, joined to the words before the norm."""
    at, width = "roc_bert.embeddings", widths.hidden
    nodes: list[Node] = []
    for kind, table in (("pronunciation", "pronunciation_embed"), ("shape", "shape_embed")):
        if config.flag(f"enable_{kind}", default=True):
            dim = config.need(f"{kind}_embed_dim")
            nodes.append(_table(f"{at}.{table}", config.need(f"{kind}_vocab_size"), dim))
            width += dim
    return (*nodes, Linear(name=f"{at}.map_inputs_layer", in_features=width, out_features=widths.hidden, bias=True))


def _rotary_table(config: Config, widths: Widths) -> tuple[Node, ...]:
    rows = config.need("max_position_embeddings")
    return (_table("roformer.encoder.embed_positions", rows, widths.head_dim, "position"),)


def _bias_table(config: Config, widths: Widths) -> tuple[Node, ...]:
    rows = config.whole("relative_attention_num_buckets", default=32)
    return (_table("mpnet.encoder.relative_attention_bias", rows, widths.heads, "bias"),)


def _xmod_adapters(config: Config, widths: Widths) -> tuple[Node, ...]:
    """One adapter a language; a text passes through its own."""
    languages = config.values.get("languages") or ["en_XX"]
    if not isinstance(languages, list | tuple) or not all(isinstance(each, str) for each in languages):
        config.fault("bad_value", "languages is not a list of words", "languages")
        languages = ["en_XX"]
    h, at = widths.hidden, "output.adapter_modules"
    inner = max(1, h // config.whole("adapter_reduction_factor", default=2))
    first = mlp(h, inner, at=f"{at}.{languages[0]}", names=("dense1", "dense2"), bias=True)
    held = sum(node.params for node in first if isinstance(node, Linear))
    own = (norm("output.adapter_layer_norm", h, "layer"),) if config.flag("adapter_layer_norm", default=False) else ()
    others = (node for each in languages[1:] for node in unused(f"{at}.{each}", held))
    return (*own, *first, *others)


def _xmod_norm(config: Config, widths: Widths) -> tuple[Node, ...]:
    pre = config.flag("pre_norm", default=False)
    return (norm("roberta.encoder.LayerNorm", widths.hidden, "layer"),) if pre else ()


def _nystrom_conv(config: Config, widths: Widths) -> tuple[Node, ...]:
    """A depthwise convolution of the values along the sequence, one kernel a head."""
    taps = config.maybe("conv_kernel_size")
    if taps is None:
        return ()
    at, n = "attention.self.conv", widths.heads
    return (token_conv(at, n, n, kernel=taps, groups=n, bias=False, rows=widths.head_dim),)


def _check_landmarks(config: Config, widths: Widths) -> tuple[Node, ...]:  # noqa: ARG001
    if config.need("num_landmarks") != config.need("segment_means_seq_len"):
        config.fault("unsupported", "attention through landmarks is not read by formula", "num_landmarks")
    return ()


ROBERTA = Encoder(base="roberta", head=LM)
GTE = Encoder(
    base="gte", layers="layers", attention=LLAMA_ATTENTION, between=("post_attention_layernorm",),
    after=("post_mlp_layernorm",), mlp=("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"), mlp_biases=(False, True),
    positions=False, type_rows=1,
    head=Head(dense="lm_head.dense", norm="lm_head.layer_norm", decoder="lm_head.decoder", bias="lm_head.decoder.bias"),
)  # fmt: skip

ENCODERS: dict[str, Encoder] = {
    "ernie": Encoder(base="ernie", tables=_task_table),
    "megatron-bert": Encoder(
        base="bert", embedding_norm=None, before=("attention.ln",), between=("ln",), after=(), final_norm="encoder.ln"
    ),
    "roc_bert": Encoder(
        base="roc_bert", tables=_glyph_tables, refuse=(("concat_input", False, "summed glyph tables are not read"),)
    ),
    "roformer": Encoder(
        base="roformer", positions=False, width=("embedding_size",), widen="embeddings_project", mapped=_rotary_table
    ),
    "layoutlm": Encoder(base="layoutlm", tables=_box_tables, pooler="pooler.dense"),
    "tapas": Encoder(base="tapas", types=False, tables=_cell_tables),
    "yoso": Encoder(
        base="yoso", spare_positions=2, refuse=(("use_expectation", False, "hashed attention is not read by formula"),)
    ),
    "nystromformer": Encoder(
        base="nystromformer", spare_positions=2, ending=_nystrom_conv, closing=_check_landmarks
    ),
    "camembert": ROBERTA,
    "xlm-roberta": ROBERTA,
    "xmod": Encoder(base="roberta", head=LM, ending=_xmod_adapters, closing=_xmod_norm),
    "data2vec-text": Encoder(base="data2vec_text", head=LM),
    "ibert": Encoder(base="ibert", head=LM),
    "xlm-roberta-xl": Encoder(
        base="roberta", head=LM, embedding_norm=None, before=("attention.self_attn_layer_norm",),
        between=("LayerNorm",), after=(), final_norm="encoder.LayerNorm",
    ),
    "roberta-prelayernorm": Encoder(
        base="roberta_prelayernorm", head=LM, before=("attention.LayerNorm",), between=("intermediate.LayerNorm",),
        after=(), final_norm="LayerNorm",
    ),
    "mpnet": Encoder(
        base="mpnet", head=LM, types=False, tables=_bias_table, between=("attention.LayerNorm",),
        attention=AttentionNames(at="attention.attn", q="q", k="k", v="v", o="o"),
    ),
    "gte": GTE,
    "nomic_bert": Encoder(
        base="nomic_bert", layers="layers", attention=LLAMA_ATTENTION, qkv_bias=False, o_bias=False,
        between=("post_attention_layernorm",), after=("post_mlp_layernorm",), positions=False,
        mlp=("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"), mlp_biases=(False, False),
        head=Head(norm="cls.predictions.transform.layer_norm"),
    ),
    "jina_embeddings_v3": Encoder(
        base="roberta", layers="layers", attention=LLAMA_ATTENTION, between=("post_attention_layernorm",),
        after=("post_mlp_layernorm",), mlp=("mlp.fc1", "mlp.fc2"), positions=False, type_rows=1, head=LM,
    ),
}  # fmt: skip


def _reader(family: Encoder) -> Callable[[Config, str], Arch]:
    return lambda config, name: read_encoder(config, name, family)


FAMILIES = {model_type: _reader(family) for model_type, family in ENCODERS.items()}
