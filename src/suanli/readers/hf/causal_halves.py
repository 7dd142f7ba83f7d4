"""The decoder half of an encoder–decoder as a language model (`BartForCausalLM` and the like): rows, one reader.

Without an encoder the cross-attention has nothing to look at and does not run; its weights are held all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suanli.nouns.arch import Arch, Module, Shape
from suanli.nouns.layers import Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped, mlp, norm, stack
from suanli.readers.config import Config, StandIn


@dataclass(frozen=True, kw_only=True)
class Row:
    """How a type differs from BART: norms at the ends, spare rows of positions, biases, the head's name."""

    doc: str
    first_norm: str | None = "layernorm_embedding"
    last_norm: str | None = None
    positions: tuple[str, ...] = ("max_position_embeddings",)
    spare_positions: int = 0
    trained_positions: bool = True
    k_bias: bool = True
    bias_key: str | None = None  # the key of attention's biases; without it there are always some
    head: str = "lm_head"
    ties: bool = True
    vocab: tuple[str, ...] = ("vocab_size",)
    refused: tuple[str, ...] = ()  # switches of parts that are not read
    cross_width: str | None = None


NOTE = "the decoder alone: cross-attention holds weights and does not run"


def read_row(config: Config, name: str, row: Row) -> Arch:
    """The decoder with its head. Raises ConfigError with every fault of the config."""
    h, vocab = config.need("d_model", "hidden_size"), config.need(*row.vocab)
    layers, ffn = config.layers("decoder_layers"), config.need("decoder_ffn_dim")
    heads = config.need("decoder_attention_heads", high=1_000_000)
    positions = config.need(*row.positions)
    biased = config.flag(row.bias_key, default=False) if row.bias_key else True
    tied = row.ties and config.flag("tie_word_embeddings", default=True)
    source = config.whole(row.cross_width, default=h) if row.cross_width else h
    if h % heads and not isinstance(h, StandIn):
        config.fault(
            "contradiction", "the number of heads does not divide the width", "decoder_attention_heads",
            got=f"{heads} heads, width {h}",
        )  # fmt: skip
    for key in row.refused:
        if config.flag(key, default=False):
            config.fault("unsupported", f"{key} is not read", key)
    config.check()
    at = "model.decoder"
    rows = positions + row.spare_positions
    ends = [(norm(f"{at}.{end}", h, "layer"),) if end else () for end in (row.first_norm, row.last_norm)]
    children: tuple[Node, ...] = (
        Embedding(name=f"{at}.embed_tokens", num=vocab, dim=h),
        Embedding(name=f"{at}.embed_positions", num=rows, dim=h, role="position", trainable=row.trained_positions),
        *ends[0],
        *stack(f"{at}.layers", (0,) * layers, lambda _: _layer(h, heads, ffn, source, row, biased)),
        *ends[1],
        Linear(name=row.head, in_features=h, out_features=vocab, role="lm_head", tied=tied),
    )
    shape = Shape(
        num_layers=layers, hidden=h, heads=heads, kv_heads=heads, head_dim=max(1, h // heads), ffn=ffn, vocab=vocab
    )
    return Arch(
        name=name, root=Module(name="", children=children), shape=shape, max_positions=positions, task="causal-lm",
        notes=(NOTE,),
    )  # fmt: skip


def _layer(h: int, heads: int, ffn: int, source: int, row: Row, biased: bool) -> tuple[Node, ...]:
    spec = AttentionSpec(
        hidden=h, heads=heads, kv_heads=heads, head_dim=max(1, h // heads), qkv_bias=biased, o_bias=biased,
        k_bias=row.k_bias, dropout=True, names=AttentionNames(o="out_proj"),
    )  # fmt: skip
    return (
        *attention(spec),
        *dropped("self_attn.dropout", h),
        norm("self_attn_layer_norm", h, "layer"),
        *_held_cross_attention(h, source, row, biased),
        *mlp(h, ffn, at="", names=("fc1", "fc2"), bias=True, dropout=True),
        norm("final_layer_norm", h, "layer"),
    )


def _held_cross_attention(h: int, source: int, row: Row, biased: bool) -> tuple[Node, ...]:
    """Weights that are there and rest."""
    at = "encoder_attn"
    widths = {"q_proj": h, "k_proj": source, "v_proj": source, "out_proj": h}
    weights = [Parameter(name=f"{at}.{part}.weight", shape=(h, width)) for part, width in widths.items()]
    with_bias = [part for part in widths if biased and (part != "k_proj" or row.k_bias)]
    biases = [Parameter(name=f"{at}.{part}.bias", shape=(h,)) for part in with_bias]
    norms = [Parameter(name=f"{at}_layer_norm.{part}", shape=(h,)) for part in ("weight", "bias")]
    return (*weights, *biases, *norms)


TABLE = {
    "bart": Row(doc="BART's decoder.", spare_positions=2),
    "bigbird_pegasus": Row(doc="BigBird-Pegasus's decoder.", bias_key="use_bias", ties=False),
    "blenderbot": Row(doc="Blenderbot's decoder.", first_norm=None, last_norm="layer_norm"),
    "blenderbot-small": Row(doc="Blenderbot small's decoder."),
    "marian": Row(
        doc="Marian's decoder: sines, no norms at the ends.", first_norm=None, trained_positions=False,
        vocab=("decoder_vocab_size", "vocab_size"),
    ),
    "mbart": Row(doc="mBART's decoder.", last_norm="layer_norm", spare_positions=2),
    "mvp": Row(doc="MVP's decoder.", spare_positions=2, refused=("use_prompt",)),
    "pegasus": Row(doc="Pegasus's decoder: sines.", first_norm=None, last_norm="layer_norm", trained_positions=False),
    "plbart": Row(doc="PLBART's decoder.", spare_positions=2),
    "trocr": Row(doc="TrOCR's decoder.", spare_positions=2, head="output_projection",
                 cross_width="cross_attention_hidden_size"),
    "whisper": Row(doc="Whisper's decoder.", first_norm=None, last_norm="layer_norm", k_bias=False, head="proj_out",
                   positions=("max_target_positions",)),
}  # fmt: skip


def _reader(row: Row) -> Callable[[Config, str], Arch]:
    def read(config: Config, name: str) -> Arch:
        return read_row(config, name, row)

    read.__doc__ = row.doc
    return read


CAUSAL = {model_type: _reader(row) for model_type, row in TABLE.items()}
