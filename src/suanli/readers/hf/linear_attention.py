"""Decoders with linear attention in most or all layers: gated delta nets, KDA, mLSTM, RWKV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from suanli.nouns.arch import Arch, Shape
from suanli.nouns.layers import Elementwise, KeptState, LinearAttention, Parameter
from suanli.readers.blocks import (
    AttentionSpec,
    LatentSpec,
    MoeSpec,
    Node,
    attention,
    latent_attention,
    mlp,
    moe,
    norm,
)
from suanli.readers.config import Config, StandIn
from suanli.readers.decoder import DecoderNames, DecoderSpec, decoder
from suanli.readers.hf.common import FULL, LINEAR, LayerKind, Traits, Widths, dense_mlp, read_widths
from suanli.readers.hf.mamba import SCAN_NOTE, layer_words, mixed_decoder, stacked, without_shape
from suanli.readers.hf.mixtures import top_k
from suanli.readers.mixers import DeltaSpec, delta_net, gated_attention, linear

Feed = Callable[[LayerKind], tuple[Node, ...]]
Kinds = Callable[[], tuple[LayerKind, ...]]


def _every(config: Config, layers: int, default: int) -> tuple[str, ...]:
    """The config's own list, or full attention on the last layer of each period."""
    listed = layer_words(config, layers, "layer_types")
    period = config.whole("full_attention_interval", "layer_group_size", default=default)
    return listed or tuple(LINEAR if (i + 1) % period else FULL for i in range(layers))


# --- Qwen3-Next and Qwen3.5 ---------------------------------------------------------------------------------------


def _qwen(config: Config, name: str, fused: bool, widths: Widths, sparse: Callable[[int], bool], feed: Feed) -> Arch:
    """Three gated delta nets to one gated attention; their projections fused (Next) or apart (3.5)."""
    key_heads, heads = (
        config.whole("linear_num_key_heads", default=16),
        config.whole("linear_num_value_heads", default=32),
    )
    key_dim, value_dim = (
        config.whole("linear_key_head_dim", default=128),
        config.whole("linear_value_head_dim", default=128),
    )
    if heads % key_heads and not config.faults.faults:
        config.fault("contradiction", "key heads do not divide value heads", "linear_num_value_heads",
                     got=f"{key_heads} and {heads}")  # fmt: skip
    keys, values = key_heads * key_dim, heads * value_dim
    together = (("in_proj_qkvz", 2 * keys + 2 * values), ("in_proj_ba", 2 * heads))
    apart = (("in_proj_qkv", 2 * keys + values), ("in_proj_z", values), ("in_proj_b", heads), ("in_proj_a", heads))
    delta = DeltaSpec(
        hidden=widths.hidden, heads=heads, key_heads=key_heads, key_dim=key_dim, value_dim=value_dim,
        kernel=config.whole("linear_conv_kernel_dim", default=4), projections=together if fused else apart,
        parameters=(("dt_bias", (heads,)), ("A_log", (heads,))),
    )  # fmt: skip
    biased = config.flag("attention_bias", default=False)
    spec = AttentionSpec(
        hidden=widths.hidden, heads=widths.heads, kv_heads=widths.kv_heads, head_dim=widths.head_dim,
        qkv_bias=biased, o_bias=biased, qk_norm="head",
    )  # fmt: skip

    def kinds() -> tuple[LayerKind, ...]:
        return tuple(LayerKind(word, sparse(i)) for i, word in enumerate(_every(config, widths.layers, 4)))

    attend = {LINEAR: lambda: delta_net(delta), FULL: lambda: gated_attention(spec)}
    return mixed_decoder(config, name, widths, Traits(), kinds, attend, feed)


def _shared_mixture(config: Config, hidden: int) -> MoeSpec:
    """Qwen's mixture: small experts and a gated shared one."""
    experts = config.need("num_experts", "num_local_experts")
    return MoeSpec(
        hidden=hidden, experts=experts, top_k=top_k(config, experts), ffn=config.need("moe_intermediate_size"),
        shared_ffn=config.need("shared_expert_intermediate_size"), shared="shared_expert",
        shared_gate="shared_expert_gate",
    )  # fmt: skip


def read_qwen3_next(config: Config, name: str) -> Arch:
    """Qwen3-Next."""
    widths = _qwen_widths(config, config.whole("intermediate_size", default=5632))
    spec, step = _shared_mixture(config, widths.hidden), config.whole("decoder_sparse_step", default=1)
    dense = frozenset(config.wholes("mlp_only_layers") or ())

    def feed(kind: LayerKind) -> tuple[Node, ...]:
        return moe(spec) if kind.sparse else dense_mlp(widths, Traits())

    return _qwen(config, name, True, widths, lambda i: i not in dense and (i + 1) % step == 0, feed)


def _qwen_widths(config: Config, ffn: int) -> Widths:
    """Heads are 256 wide where the config does not say."""
    widths = read_widths(config, ffn=ffn)
    return widths if config.has("head_dim") else replace(widths, head_dim=256)


def read_qwen3_5(config: Config, name: str) -> Arch:
    """Qwen3.5's text decoder, dense."""
    widths = _qwen_widths(config, config.need("intermediate_size"))
    return _qwen(config, name, False, widths, lambda _: False, lambda _: dense_mlp(widths, Traits()))


def read_qwen3_5_moe(config: Config, name: str) -> Arch:
    """Qwen3.5's text decoder, every MLP a mixture."""
    spec = _shared_mixture(config, config.need("hidden_size"))
    widths = _qwen_widths(config, spec.ffn)
    return _qwen(config, name, False, widths, lambda _: True, lambda _: moe(spec))


def text_decoder(read: Callable[[Config, str], Arch]) -> Callable[[Config, str], Arch]:
    """A reader of the text decoder inside a config of text and pictures, as the causal-LM class builds it.

    A config saved from the class that sees pictures is refused: its tower would be missing from every figure.
    """

    def read_inner(config: Config, name: str) -> Arch:
        classes = str(config.values.get("architectures") or "")
        if "ForConditionalGeneration" in classes:
            config.fault("unsupported", "a picture's tower beside the decoder is not read by formula", "architectures",
                         got=classes[:80], expected="a text decoder, or the trace of the class")  # fmt: skip
        arch = read(config.part("text_config"), name)
        return replace(arch, notes=(*arch.notes, "text decoder only"))

    return read_inner


# --- OLMo Hybrid --------------------------------------------------------------------------------------------------


def read_olmo_hybrid(config: Config, name: str) -> Arch:
    """OLMo Hybrid: delta nets with norms before, attention with norms after, every fourth layer."""
    widths = read_widths(config)
    heads = config.whole("linear_num_value_heads", default=widths.heads)
    key_heads = config.whole("linear_num_key_heads", default=widths.heads)
    key_dim = config.whole("linear_key_head_dim", default=max(1, 3 * widths.hidden // (4 * key_heads)))
    value_dim = config.whole("linear_value_head_dim", default=2 * key_dim)
    keys, values = key_heads * key_dim, heads * value_dim
    delta = DeltaSpec(
        hidden=widths.hidden, heads=heads, key_heads=key_heads, key_dim=key_dim, value_dim=value_dim,
        kernel=config.whole("linear_conv_kernel_dim", default=4),
        projections=(("q_proj", keys), ("k_proj", keys), ("v_proj", values), ("a_proj", heads), ("b_proj", heads),
                     ("g_proj", values)),
        parameters=(("A_log", (heads,)), ("dt_bias", (heads,))), norm="o_norm", out="o_proj",
    )  # fmt: skip
    biased = config.flag("attention_bias", default=False)
    spec = AttentionSpec(
        hidden=widths.hidden, heads=widths.heads, kv_heads=widths.kv_heads, head_dim=widths.head_dim,
        qkv_bias=biased, o_bias=biased, qk_norm="full",
    )  # fmt: skip
    tied = config.flag("tie_word_embeddings", default=False)
    words = _every(config, widths.layers, 4) if not config.faults.faults else ()
    config.check()

    def make(word: str) -> tuple[Node, ...]:
        first, middle, last = (norm(f"{at}_layernorm", widths.hidden) for at in ("input", "post_attention",
                                                                                "post_feedforward"))  # fmt: skip
        if word == LINEAR:
            return (first, *delta_net(delta), middle, *dense_mlp(widths, Traits()))
        return (*attention(spec), middle, *dense_mlp(widths, Traits()), last)

    if FULL not in words:  # the family always ends in an attention
        words = (*words[:-1], FULL)
    return stacked(name, widths, words, make, DecoderNames(), tied, (SCAN_NOTE,))


# --- Kimi Linear and Bailing (Ling) -------------------------------------------------------------------------------


def _latent_widths(config: Config) -> tuple[Widths, LatentSpec]:
    """Widths of a decoder whose full attention is latent."""
    hidden, heads = config.need("hidden_size"), config.need("num_attention_heads", high=1_000_000)
    nope, rope = config.need("qk_nope_head_dim"), config.need("qk_rope_head_dim")
    latent = LatentSpec(
        hidden=hidden, heads=heads, q_rank=config.maybe("q_lora_rank"), kv_rank=config.need("kv_lora_rank"),
        nope_dim=nope, rope_dim=rope, v_dim=config.need("v_head_dim"),
        bias=config.flag("attention_bias", default=False),
    )  # fmt: skip
    widths = Widths(
        layers=config.layers("num_hidden_layers"), hidden=hidden, heads=heads, kv_heads=heads, head_dim=nope + rope,
        ffn=config.need("intermediate_size"), vocab=config.need("vocab_size"),
        max_positions=config.maybe("max_position_embeddings", "model_max_length"),
    )  # fmt: skip
    return widths, latent


def _sparse(config: Config, widths: Widths, default: int) -> Callable[[int], bool]:
    """Which MLPs are mixtures: listed, or all but the first few."""
    listed = config.names("mlp_layer_types", widths.layers, ("dense", "sparse"))
    first = config.whole("first_k_dense_replace", default=default, low=0)
    return lambda i: listed[i] == "sparse" if listed else i >= first


def _kimi_decoder(
    config: Config, name: str, widths: Widths, words: Callable[[], tuple[str, ...]], delta: DeltaSpec,
    full: Callable[[], tuple[Node, ...]], first_dense: int,
) -> Arch:  # fmt: skip
    """KDA and latent attention over DeepSeek's MLPs."""
    experts, ffn = config.need("num_experts", "num_local_experts"), config.need("moe_intermediate_size")
    spec = MoeSpec(
        hidden=widths.hidden, experts=experts, ffn=ffn,
        top_k=top_k(config, experts, "num_experts_per_token", "num_experts_per_tok"),
        shared_ffn=ffn * config.whole("num_shared_experts", "n_shared_experts", default=1, low=0),
        correction_bias="gate.e_score_correction_bias",
    )  # fmt: skip
    sparse = _sparse(config, widths, first_dense)

    def kinds() -> tuple[LayerKind, ...]:
        return tuple(LayerKind(word, sparse(i)) for i, word in enumerate(words()))

    def feed(kind: LayerKind) -> tuple[Node, ...]:
        return moe(spec) if kind.sparse else dense_mlp(widths, Traits())

    attend = {LINEAR: lambda: delta_net(delta), FULL: full}
    return mixed_decoder(config, name, widths, Traits(), kinds, attend, feed)


def read_kimi_linear(config: Config, name: str) -> Arch:
    """Kimi Linear: KDA with low-rank gates, latent attention without positions, many experts."""
    widths, latent = _latent_widths(config)
    nested = config.part("linear_attn_config") if config.has("linear_attn_config") else None
    own = nested or config
    heads = own.need("num_heads" if nested else "linear_num_heads")
    width = own.need("head_dim" if nested else "linear_head_dim")
    kernel = own.whole("short_conv_kernel_size" if nested else "linear_conv_kernel_dim", default=4)
    whole, at = heads * width, "self_attn"
    delta = DeltaSpec(
        hidden=widths.hidden, heads=heads, key_heads=heads, key_dim=width, value_dim=width, kernel=kernel, at=at,
        projections=(("q_proj", whole), ("k_proj", whole), ("v_proj", whole), ("b_proj", heads),
                     ("forget_gate.f_a_proj", width), ("g_a_proj", width)),
        after=(linear(f"{at}.forget_gate.f_b_proj", width, whole), linear(f"{at}.g_b_proj", width, whole)),
        parameters=(("forget_gate.A_log", (heads,)), ("forget_gate.dt_bias", (whole,))), norm="o_norm", out="o_proj",
    )  # fmt: skip

    def words() -> tuple[str, ...]:
        listed = layer_words(config, widths.layers, "layer_types")
        if listed:
            return listed
        full = nested.wholes("full_attn_layers", low=1) if nested else None
        if full is not None:  # counted from 1
            return tuple(FULL if i + 1 in full else LINEAR for i in range(widths.layers))
        return tuple(FULL if i and i % 4 == 0 else LINEAR for i in range(widths.layers))

    return _kimi_decoder(config, name, widths, words, delta, lambda: latent_attention(latent), 1)


def read_bailing_hybrid(config: Config, name: str) -> Arch:
    """Ling's hybrid: KDA with full-rank gates, gated latent attention on the last layer of each group."""
    widths, latent = _latent_widths(config)
    heads, width = widths.heads, config.need("linear_head_dim" if config.has("linear_head_dim") else "head_dim")
    whole = heads * width
    delta = DeltaSpec(
        hidden=widths.hidden, heads=heads, key_heads=heads, key_dim=width, value_dim=width,
        kernel=config.whole("linear_conv_kernel_dim", "short_conv_kernel_size", default=4), at="self_attn",
        projections=(("q_proj", whole), ("k_proj", whole), ("v_proj", whole), ("b_proj", heads),
                     ("forget_gate.f_proj", whole), ("g_proj", whole)),
        parameters=(("forget_gate.A_log", (heads,)), ("forget_gate.dt_bias", (whole,))), norm="o_norm", out="o_proj",
    )  # fmt: skip

    def full() -> tuple[Node, ...]:
        *inside, out = latent_attention(latent)
        return (*inside, linear("self_attn.g_proj", widths.hidden, heads, shares=True), out)

    return _kimi_decoder(config, name, widths, lambda: _every(config, widths.layers, 6), delta, full, 2)


# --- recurrent all through ----------------------------------------------------------------------------------------


def read_rwkv(config: Config, name: str) -> Arch:
    """RWKV-4: the recurrence multiplies no matrices, so its work is elementwise and in no total."""
    hidden, layers = config.need("hidden_size"), config.layers("num_hidden_layers")
    width = config.whole("attention_hidden_size", default=hidden)
    ffn = config.whole("intermediate_size", default=4 * hidden)
    vocab, tied = config.need("vocab_size"), config.flag("tie_word_embeddings", default=False)
    config.check()

    def mixes(at: str, names: tuple[str, ...]) -> tuple[Node, ...]:
        shift = KeptState(name=f"{at}.shift", elements=hidden)
        return (shift, *(Parameter(name=f"{at}.time_mix_{part}", shape=(hidden,)) for part in names))

    def make(first: bool) -> tuple[Node, ...]:
        time, channel = "attention", "feed_forward"
        return (
            *((norm("pre_ln", hidden, "layer"),) if first else ()),
            norm("ln1", hidden, "layer"),
            *mixes(time, ("key", "value", "receptance")),
            *(linear(f"{time}.{part}", hidden, width) for part in ("key", "value", "receptance")),
            *(Parameter(name=f"{time}.time_{part}", shape=(width,)) for part in ("decay", "first")),
            Elementwise(name=f"{time}.wkv", op="recurrence", width=width, saved=3 * width),
            KeptState(name=f"{time}.state", elements=3 * width, fp32=True),  # numerator, denominator, maximum
            linear(f"{time}.output", width, hidden),
            norm("ln2", hidden, "layer"),
            *mixes(channel, ("key", "receptance")),
            linear(f"{channel}.key", hidden, ffn),
            linear(f"{channel}.receptance", hidden, hidden),
            Elementwise(name=f"{channel}.act", op="activation", width=ffn, saved=ffn),
            linear(f"{channel}.value", ffn, hidden),
        )

    shape = Shape(num_layers=layers, hidden=hidden, heads=1, kv_heads=1, head_dim=width, ffn=ffn, vocab=vocab)
    names = DecoderNames(embed="rwkv.embeddings", layers="rwkv.blocks", norm="rwkv.ln_out", head="head")
    spec = DecoderSpec(
        shape=shape, kinds=tuple(i == 0 for i in range(layers)), make=make, names=names, tied=tied, norm_kind="layer",
        notes=("the WKV recurrence multiplies no matrices: elementwise, in no total",),
    )  # fmt: skip
    return without_shape(decoder(name, spec))


def _rounded(config: Config, key: str, default: float, width: int, multiple: int) -> int:
    """A width times a factor of the config, up to a multiple."""
    factor = config.values.get(key, default)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1_000:
        config.fault("bad_value", f"{key} is not possible", key, expected="a factor above 0")
        return StandIn(multiple)
    return int(-(-int(width * factor) // multiple) * multiple)


def read_xlstm(config: Config, name: str) -> Arch:
    """xLSTM 7B (arXiv:2503.13427): mLSTM with narrow keys, gated MLP."""
    hidden, heads = config.need("hidden_size", "embedding_dim"), config.need("num_heads")
    layers, vocab = config.layers("num_hidden_layers", "num_blocks"), config.need("vocab_size")
    keys = _rounded(config, "qk_dim_factor", 0.5, hidden, 1)
    values = _rounded(config, "v_dim_factor", 1.0, hidden, 1)
    ffn = _rounded(config, "ffn_proj_factor", 2.667, hidden, config.whole("ffn_round_up_to_multiple_of", default=64))
    biased, tied = config.flag("use_bias", default=False), config.flag("tie_word_embeddings", default=False)
    if (keys % heads or values % heads) and not config.faults.faults:
        config.fault("contradiction", "heads do not divide keys or values", "num_heads", got=f"{heads} heads",
                     expected=f"a divisor of {keys} and {values}")  # fmt: skip
    single = config.choice("weight_mode", ("single", "fused"), "single") == "single"
    if not single:
        config.fault("unsupported", "fused weights of xLSTM are not read", "weight_mode", expected="single")
    config.check()
    at = "mlstm_layer"
    layer = (
        norm("norm_mlstm", hidden, "layer" if biased else "rms"),
        linear(f"{at}.q", hidden, keys, bias=biased),
        linear(f"{at}.k", hidden, keys, bias=biased, shares=True),
        linear(f"{at}.v", hidden, values, bias=biased, shares=True),
        linear(f"{at}.ogate_preact", hidden, values, bias=biased, shares=True),
        linear(f"{at}.igate_preact", hidden, heads, bias=True, shares=True),
        linear(f"{at}.fgate_preact", hidden, heads, bias=True, shares=True),
        LinearAttention(
            name=f"{at}.attention",
            heads=heads,
            key_dim=keys // heads,
            value_dim=values // heads,
            rule="mlstm",
            chunk=config.whole("chunk_size", default=64),
        ),
        norm(f"{at}.multihead_norm", values, "layer" if biased else "rms"),
        linear(f"{at}.out_proj", values, hidden, bias=biased),
        norm("norm_ffn", hidden, "layer" if biased else "rms"),
        *mlp(hidden, ffn, at="ffn", names=("proj_up_gate", "proj_up", "proj_down"), bias=biased),
    )
    shape = Shape(num_layers=layers, hidden=hidden, heads=heads, kv_heads=heads, head_dim=1, ffn=ffn, vocab=vocab)
    names = DecoderNames(embed="backbone.embeddings", layers="backbone.blocks", norm="backbone.out_norm")
    out_norm = "rms" if config.flag("add_out_norm", default=True) else None
    spec = DecoderSpec(
        shape=shape, kinds=("mlstm",) * layers, make=lambda _: layer, names=names, tied=tied, norm_kind=out_norm,
        notes=(SCAN_NOTE,),
    )  # fmt: skip
    return without_shape(decoder(name, spec))


FAMILIES = {
    "qwen3_next": read_qwen3_next,
    "qwen3_5_text": read_qwen3_5,
    "qwen3_5_moe_text": read_qwen3_5_moe,
    "olmo_hybrid": read_olmo_hybrid,
    "kimi_linear": read_kimi_linear,
    "bailing_hybrid": read_bailing_hybrid,
    "rwkv": read_rwkv,
    "xlstm": read_xlstm,
}
CAUSAL: Mapping[str, Callable[[Config, str], Arch]] = {  # whose other class takes pictures
    "qwen3_5": text_decoder(read_qwen3_5),
    "qwen3_5_moe": text_decoder(read_qwen3_5_moe),
}
