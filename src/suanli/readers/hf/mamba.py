"""State-space models without attention, and what hybrids share with them: shapes of mixers, words of layer lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from suanli.nouns.arch import Arch, Shape
from suanli.readers.blocks import AttentionSpec, Node, attention, norm
from suanli.readers.config import Config
from suanli.readers.decoder import DecoderNames, DecoderSpec, decoder
from suanli.readers.hf.common import FULL, LINEAR, SLIDING, LayerKind, Traits, Widths, standard_layer
from suanli.readers.mixers import Mamba2Spec, MambaSpec, mamba, mamba2

HYBRID = "hybrid"
SCAN_NOTE = "scans counted as their recurrence, in rows of kind scan; kernels in chunks multiply more"
CONV_NOTE = "short convolutions keep the inputs before the newest; transformers keeps one more"

# Words of layer lists, old and new.
WORDS = {
    "linear_attention": LINEAR, "mamba": LINEAR, "recurrent": LINEAR, "conv": LINEAR, "full_attention": FULL,
    "attention": FULL, "sliding_attention": SLIDING, "hybrid": HYBRID, "mlp": "mlp", "moe": "moe",
}  # fmt: skip


def layer_words(config: Config, length: int | None, *names: str) -> tuple[str, ...] | None:
    """The list of layers under the first name present, in our words; None where there is none."""
    for name in names:
        if config.has(name):
            listed = config.values[name]
            found = config.names(name, len(listed) if length is None and isinstance(listed, list) else length or 0,
                                 tuple(WORDS))  # fmt: skip
            return None if found is None else tuple(WORDS[word] for word in found)
    return None


def rank(config: Config, name: str, hidden: int) -> int:
    """Rank of dt: given, or a sixteenth of the width (`auto`)."""
    return -(-hidden // 16) if config.values.get(name, "auto") == "auto" else config.need(name)


def mixed_decoder(
    config: Config,
    name: str,
    widths: Widths,
    traits: Traits,
    kinds: Callable[[], tuple[LayerKind, ...]],
    attend: Mapping[str, Callable[[], tuple[Node, ...]]],
    feed: Callable[[LayerKind], tuple[Node, ...]],
    notes: tuple[str, ...] = (SCAN_NOTE,),
) -> Arch:
    """A decoder whose layers differ in their mixer: `attend` builds one a word. Raises ConfigError with every fault."""
    tied = config.flag("tie_word_embeddings", "tie_embeddings", "tie_embedding", default=traits.tied)
    listed = () if config.faults.faults else kinds()
    config.check()

    def make(kind: LayerKind) -> tuple[Node, ...]:
        return standard_layer(widths, traits, attend[kind.attention](), feed(kind))

    last = traits.norm_kind if traits.final_norm == "same" else traits.final_norm
    return stacked(name, widths, listed, make, traits.names, tied, notes, last)


def stacked(
    name: str, widths: Widths, kinds: tuple[Any, ...], make: Callable[[Any], tuple[Node, ...]], names: DecoderNames,
    tied: bool, notes: tuple[str, ...], norm_kind: str | None = "rms",
) -> Arch:  # fmt: skip
    """A decoder of the layers that `make` builds, without the letters of a transformer."""
    spec = DecoderSpec(
        shape=widths.shape(True), kinds=kinds, make=make, names=names, tied=tied, norm_kind=norm_kind,
        max_positions=widths.max_positions, notes=notes,
    )  # fmt: skip
    return without_shape(decoder(name, spec))


def without_shape(arch: Arch) -> Arch:
    """The letters of a transformer do not describe a model with states, so closed formulas made of them refuse it."""
    return replace(arch, shape=None)


def plain_attention(config: Config, widths: Widths, **more: Any) -> tuple[Node, ...]:
    """Plain grouped-query attention, biased where the config says so."""
    biased = config.flag("attention_bias", default=False)
    spec = AttentionSpec(
        hidden=widths.hidden, heads=widths.heads, kv_heads=widths.kv_heads, head_dim=widths.head_dim,
        qkv_bias=biased, o_bias=biased,
    )  # fmt: skip
    return attention(replace(spec, **more))


# --- pure state-space models --------------------------------------------------------------------------------------

NAMES = DecoderNames(embed="backbone.embeddings", layers="backbone.layers", norm="backbone.norm_f")


def mamba_spec(config: Config, hidden: int, prefix: str = "", **more: object) -> MambaSpec:
    """Mamba 1's numbers: under their own names, or those with `mamba_` in hybrids."""
    own = not prefix
    inner = hidden * config.whole("expand" if own else "mamba_expand", default=2)
    return MambaSpec(
        hidden=hidden,
        inner=config.whole("intermediate_size", default=inner) if own else inner,  # saved files give it, and it counts
        state=config.whole("state_size" if own else "mamba_d_state", default=16),
        rank=rank(config, "time_step_rank" if own else "mamba_dt_rank", hidden),
        kernel=config.whole("conv_kernel" if own else "mamba_d_conv", default=4),
        bias=config.flag("use_bias" if own else "mamba_proj_bias", default=False),
        conv_bias=config.flag("use_conv_bias" if own else "mamba_conv_bias", default=True),
        **more,  # type: ignore[arg-type]
    )


def _pure(config: Config, name: str, hidden: int, mixer: tuple[Node, ...], tied: bool) -> Arch:
    """Layers of one norm and one mixer."""
    layers, vocab = config.layers("num_hidden_layers", "n_layer"), config.need("vocab_size")
    tied = config.flag("tie_word_embeddings", default=tied)
    config.check()
    shape = Shape(num_layers=layers, hidden=hidden, heads=1, kv_heads=1, head_dim=hidden, ffn=hidden, vocab=vocab)
    spec = DecoderSpec(
        shape=shape, kinds=(LINEAR,) * layers, make=lambda _: (norm("norm", hidden), *mixer), names=NAMES, tied=tied,
        notes=(SCAN_NOTE,),
    )  # fmt: skip
    return without_shape(decoder(name, spec))


def read_mamba(config: Config, name: str) -> Arch:
    """Mamba 1."""
    hidden = config.need("hidden_size", "d_model")
    return _pure(config, name, hidden, mamba(mamba_spec(config, hidden)), True)


def read_falcon_mamba(config: Config, name: str) -> Arch:
    """Falcon Mamba: Mamba 1 with norms of dt, B and C that hold no weights."""
    hidden = config.need("hidden_size")
    return _pure(config, name, hidden, mamba(mamba_spec(config, hidden, norms="plain")), True)


def read_mamba2(config: Config, name: str) -> Arch:
    """Mamba 2."""
    hidden = config.need("hidden_size", "d_model")
    heads, width = config.whole("num_heads", default=128), config.whole("head_dim", default=64)
    expand = config.whole("expand", default=2)
    if heads * width != expand * hidden and not config.faults.faults:
        config.fault("contradiction", "heads do not make the inner width", "num_heads", got=f"{heads} of {width}",
                     expected=f"{expand * hidden}")  # fmt: skip
    spec = Mamba2Spec(
        hidden=hidden, heads=heads, head_dim=width, groups=config.whole("n_groups", default=8),
        state=config.whole("state_size", default=128), kernel=config.whole("conv_kernel", default=4),
        chunk=config.whole("chunk_size", default=256), bias=config.flag("use_bias", default=False),
        conv_bias=config.flag("use_conv_bias", default=True),
    )  # fmt: skip
    return _pure(config, name, hidden, mamba2(spec), False)


FAMILIES = {"mamba": read_mamba, "falcon_mamba": read_falcon_mamba, "mamba2": read_mamba2}
