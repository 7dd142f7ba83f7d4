"""Short convolutions and gated recurrences beside attention: LFM2, LFM3, RecurrentGemma."""

from __future__ import annotations

from suanli.nouns.arch import Arch
from suanli.nouns.layers import BlockLinear, CausalConv, Elementwise, KeptState, Parameter
from suanli.readers.blocks import GATED_ACTIVATIONS, AttentionNames, MoeSpec, Node, moe
from suanli.readers.config import Config
from suanli.readers.decoder import DecoderNames
from suanli.readers.hf.common import FULL, LINEAR, SLIDING, LayerKind, Traits, Widths, dense_mlp, read_widths
from suanli.readers.hf.mamba import CONV_NOTE, layer_words, mixed_decoder, plain_attention
from suanli.readers.hf.mixtures import top_k
from suanli.readers.mixers import linear, short_conv

LFM_NAMES = DecoderNames(norm="model.embedding_norm")
LFM_MLP = ("w1", "w3", "w2")


def _lfm_ffn(config: Config) -> int:
    """Width of the MLP: two thirds of what is given, times a factor, up to a multiple, where adjusted."""
    given = config.need("block_ff_dim" if config.has("block_ff_dim") else "intermediate_size")
    if not config.flag("block_auto_adjust_ff_dim", default=True):
        return given
    factor, multiple = (
        config.values.get("block_ffn_dim_multiplier", 1.0),
        config.whole("block_multiple_of", default=256),
    )
    if factor is not None and (isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 100):
        config.fault("bad_value", "block_ffn_dim_multiplier is not possible", "block_ffn_dim_multiplier")
        return given
    width = int(2 * given / 3)
    return width if factor is None else -(-int(factor * width) // multiple) * multiple


def _lfm(config: Config, name: str, widths: Widths, dense: int | None, sparse: tuple[Node, ...]) -> Arch:
    """LFM2: gated short convolutions, attention with normed queries and keys in a few layers."""
    traits = Traits(
        before=("operator_norm",), between=("ffn_norm",), mlp_at="feed_forward", mlp_names=LFM_MLP, names=LFM_NAMES,
        tied=True,
    )  # fmt: skip
    kernel, biased = config.whole("conv_L_cache", default=3), config.flag("conv_bias", default=False)
    listed = config.wholes("full_attn_idxs")
    full = frozenset(range(widths.layers)) if listed is None else frozenset(listed)

    def kinds() -> tuple[LayerKind, ...]:
        words = layer_words(config, widths.layers, "layer_types")
        words = words or tuple(FULL if i in full else LINEAR for i in range(widths.layers))
        return tuple(LayerKind(word, dense is not None and i >= dense) for i, word in enumerate(words))

    attend = {
        LINEAR: lambda: short_conv(widths.hidden, kernel, bias=biased),
        FULL: lambda: plain_attention(
            config,
            widths,
            names=AttentionNames(o="out_proj"),
            qk_norm="head",
            qk_norm_names=("q_layernorm", "k_layernorm"),
            qkv_bias=False,
            o_bias=False,
        ),
    }

    def feed(kind: LayerKind) -> tuple[Node, ...]:
        return sparse if kind.sparse else dense_mlp(widths, traits)

    return mixed_decoder(config, name, widths, traits, kinds, attend, feed, (CONV_NOTE,))


def read_lfm2(config: Config, name: str) -> Arch:
    """LFM2, dense."""
    return _lfm(config, name, read_widths(config, ffn=_lfm_ffn(config)), None, ())


def read_lfm2_moe(config: Config, name: str) -> Arch:
    """LFM2 with experts after the first dense layers."""
    widths = read_widths(config)
    experts = config.need("num_experts", "num_local_experts")
    spec = MoeSpec(
        hidden=widths.hidden, experts=experts, top_k=top_k(config, experts), ffn=config.need("moe_intermediate_size"),
        at="feed_forward",
        correction_bias="expert_bias" if config.flag("use_expert_bias", default=True) else None,
    )  # fmt: skip
    if not config.has("layer_types", "full_attn_idxs"):
        config.fault("missing_key", "missing list of layers", "layer_types", expected="one word a layer")
    return _lfm(config, name, widths, config.whole("num_dense_layers", default=2, low=0), moe(spec))


def read_lfm3(config: Config, name: str) -> Arch:
    """LFM3: longer convolutions, windows on every other attention, gates a head, norms after both halves."""
    widths = read_widths(config)
    sandwich = config.flag("use_sandwich_norm", default=True)
    traits = Traits(
        before=("operator_norm",), mlp_at="feed_forward", mlp_names=LFM_MLP, names=LFM_NAMES, tied=True,
        between=("post_operator_norm", "ffn_norm") if sandwich else ("ffn_norm",),
        after=("post_ffn_norm",) if sandwich else (),
    )  # fmt: skip
    kernel, biased = config.whole("conv_L_cache", default=7), config.flag("conv_bias", default=False)
    window, gated = config.whole("sliding_window", default=256), config.flag("use_attention_gate", default=True)

    def attend(reach: int | None) -> tuple[Node, ...]:
        *inside, out = plain_attention(config, widths, qk_norm="head", window=reach)
        gates = (linear("self_attn.g_proj", widths.hidden, widths.heads, shares=True),) if gated else ()
        return (*gates, *inside, out)

    def kinds() -> tuple[LayerKind, ...]:
        words = layer_words(config, widths.layers, "layer_types")
        rest = (FULL if i % 4 == 2 else SLIDING if i and i % 4 == 0 else LINEAR for i in range(widths.layers))
        return tuple(map(LayerKind, words or rest))

    mixers = {
        LINEAR: lambda: short_conv(widths.hidden, kernel, bias=biased),
        FULL: lambda: attend(None),
        SLIDING: lambda: attend(window),
    }
    return mixed_decoder(config, name, widths, traits, kinds, mixers, lambda _: dense_mlp(widths, traits), (CONV_NOTE,))


# --- RecurrentGemma -----------------------------------------------------------------------------------------------


def read_recurrent_gemma(config: Config, name: str) -> Arch:
    """RecurrentGemma (arXiv:2402.19427): gated linear recurrences, every third layer a windowed attention."""
    widths = read_widths(config, ffn=max(1, config.need("intermediate_size") // 2))
    width = config.whole("lru_width", default=widths.hidden)
    kernel = config.whole("conv1d_width", default=4)
    window = config.whole("attention_window_size", "sliding_window", default=2048)
    pattern = layer_words(config, None, "block_types") or (LINEAR, LINEAR, FULL)
    traits = Traits(
        before=("temporal_pre_norm",), between=("channel_pre_norm",), mlp_at="mlp_block", mlp_bias=True, tied=True,
        names=DecoderNames(norm="model.final_norm"),
    )  # fmt: skip
    at = "temporal_block"

    def gates(part: str) -> tuple[Node, ...]:
        matrix = BlockLinear(
            name=f"{at}.rg_lru.{part}_gate_weight", in_features=width, out_features=width, blocks=widths.heads
        )
        return (matrix, Parameter(name=f"{at}.rg_lru.{part}_gate_bias", shape=(width,)))

    def recurrence() -> tuple[Node, ...]:
        return (
            linear(f"{at}.linear_y", widths.hidden, width, bias=True),
            linear(f"{at}.linear_x", widths.hidden, width, bias=True, shares=True),
            CausalConv(name=f"{at}.conv_1d", channels=width, kernel=kernel, bias=True),
            Parameter(name=f"{at}.rg_lru.recurrent_param", shape=(width,)),
            *gates("input"),
            *gates("recurrent"),
            Elementwise(name=f"{at}.rg_lru.act", op="recurrence", width=width, saved=GATED_ACTIVATIONS * width),
            KeptState(name=f"{at}.rg_lru.state", elements=width, fp32=True),
            linear(f"{at}.linear_out", width, widths.hidden, bias=True),
        )

    def kinds() -> tuple[LayerKind, ...]:
        return tuple(LayerKind(pattern[i % len(pattern)]) for i in range(widths.layers))

    def attend() -> tuple[Node, ...]:
        return plain_attention(config, widths, names=AttentionNames(at=at), window=window, o_bias=True)

    note = "the gated recurrence multiplies no matrices: elementwise, in no total"
    return mixed_decoder(
        config, name, widths, traits, kinds, {LINEAR: recurrence, FULL: attend}, lambda _: dense_mlp(widths, traits),
        (note, CONV_NOTE),
    )  # fmt: skip


FAMILIES = {
    "lfm2": read_lfm2,
    "lfm2_moe": read_lfm2_moe,
    "lfm3": read_lfm3,
    "recurrent_gemma": read_recurrent_gemma,
}
