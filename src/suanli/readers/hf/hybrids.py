"""Hybrids: attention in some layers, Mamba in the others, or both side by side."""

from __future__ import annotations

from dataclasses import replace

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Linear
from suanli.readers.blocks import AttentionNames, MoeSpec, Node, mlp, moe
from suanli.readers.config import MAX_LAYERS, Config
from suanli.readers.decoder import DecoderNames
from suanli.readers.hf.common import FULL, LINEAR, LayerKind, Traits, Widths, dense_mlp, read_widths
from suanli.readers.hf.mamba import HYBRID, SCAN_NOTE, layer_words, mamba_spec, mixed_decoder, plain_attention
from suanli.readers.hf.mixtures import top_k
from suanli.readers.mixers import Mamba2Spec, gate, linear, mamba, mamba2

JAMBA_NAMES = DecoderNames(norm="model.final_layernorm")


def _mamba2_spec(config: Config, hidden: int, **more: object) -> Mamba2Spec:
    """Mamba 2's numbers as Bamba, Granite and Falcon-H1 spell them."""
    heads = config.whole("mamba_n_heads", default=128)
    inner = config.whole("mamba_d_ssm", default=hidden * config.whole("mamba_expand", default=2))
    given = config.values.get("mamba_d_head", 64)
    width = inner // heads if given in ("auto", None) else config.whole("mamba_d_head", default=64)
    if heads * width != inner and not config.faults.faults:
        config.fault("contradiction", "heads do not make the inner width", "mamba_n_heads",
                     got=f"{heads} of {width}", expected=f"{inner:,}")  # fmt: skip
    values: dict[str, object] = {
        "at": "mamba", "bias": config.flag("mamba_proj_bias", default=False),
        "groups": config.whole("mamba_n_groups", default=1), "state": config.whole("mamba_d_state", default=256),
        "kernel": config.whole("mamba_d_conv", default=4), "chunk": config.whole("mamba_chunk_size", default=256),
        "conv_bias": config.flag("mamba_conv_bias", default=True),
    }  # fmt: skip
    return Mamba2Spec(hidden=hidden, heads=heads, head_dim=max(1, width), **(values | more))  # type: ignore[arg-type]


# --- Mamba and attention in turn ----------------------------------------------------------------------------------


def read_jamba(config: Config, name: str) -> Arch:
    """Jamba: Mamba 1 with normed dt, B and C; one attention in eight layers; every other MLP a mixture."""
    widths = read_widths(config)
    period, offset = config.whole("attn_layer_period", default=8), config.whole("attn_layer_offset", default=4, low=0)
    sparse_period = config.whole("expert_layer_period", default=2)
    sparse_offset = config.whole("expert_layer_offset", default=1, low=0)
    experts = config.whole("num_experts", default=16)
    spec = MoeSpec(
        hidden=widths.hidden, experts=experts, top_k=top_k(config, experts) if experts > 1 else 1, ffn=widths.ffn,
        at="feed_forward", gate="router",
    )  # fmt: skip
    traits = Traits(between=("pre_ff_layernorm",), mlp_at="feed_forward", names=JAMBA_NAMES)
    mixer = mamba_spec(config, widths.hidden, "mamba_", at="mamba", norms="rms")

    def kinds() -> tuple[LayerKind, ...]:
        return tuple(
            LayerKind(
                FULL if i % period == offset else LINEAR,
                experts > 1 and i % sparse_period == sparse_offset,
            )
            for i in range(widths.layers)
        )

    def feed(kind: LayerKind) -> tuple[Node, ...]:
        return moe(spec) if kind.sparse else dense_mlp(widths, traits)

    attend = {LINEAR: lambda: mamba(mixer), FULL: lambda: plain_attention(config, widths, qkv_bias=False, o_bias=False)}
    return mixed_decoder(config, name, widths, traits, kinds, attend, feed)


def _bamba_traits(config: Config) -> Traits:
    """Norms and MLP that Bamba and Falcon-H1 share."""
    biased = config.flag("mlp_bias", default=False)
    return Traits(between=("pre_ff_layernorm",), mlp_at="feed_forward", mlp_bias=biased, names=JAMBA_NAMES)


def read_bamba(config: Config, name: str) -> Arch:
    """Bamba: Mamba 2, attention in the layers listed."""
    widths, traits = read_widths(config), _bamba_traits(config)
    full = frozenset(config.wholes("attn_layer_indices") or ())
    mixer = _mamba2_spec(config, widths.hidden)

    def kinds() -> tuple[LayerKind, ...]:
        return tuple(LayerKind(FULL if i in full else LINEAR) for i in range(widths.layers))

    attend = {LINEAR: lambda: mamba2(mixer), FULL: lambda: plain_attention(config, widths)}
    return mixed_decoder(config, name, widths, traits, kinds, attend, lambda _: dense_mlp(widths, traits))


def read_falcon_h1(config: Config, name: str) -> Arch:
    """Falcon-H1: Mamba 2 and attention side by side in every layer."""
    widths, traits = read_widths(config), _bamba_traits(config)
    mixer = _mamba2_spec(
        config, widths.hidden, normed=config.flag("mamba_rms_norm", default=False),
        out_bias=config.flag("projectors_bias", default=False),
    )  # fmt: skip

    def both() -> tuple[Node, ...]:
        return (*mamba2(mixer), *plain_attention(config, widths))

    def kinds() -> tuple[LayerKind, ...]:
        return (LayerKind(HYBRID),) * widths.layers

    return mixed_decoder(config, name, widths, traits, kinds, {HYBRID: both}, lambda _: dense_mlp(widths, traits))


def read_granite_hybrid(config: Config, name: str) -> Arch:
    """Granite 4: Mamba 2 or attention, then a shared MLP beside routed experts, where there are any."""
    widths = read_widths(config)
    experts = config.whole("num_local_experts", default=8, low=0)
    spec = MoeSpec(
        hidden=widths.hidden, experts=experts, top_k=top_k(config, experts) if experts else 1, ffn=widths.ffn,
        at="block_sparse_moe", gate="router",
    )  # fmt: skip
    shared = config.whole("shared_intermediate_size", default=1024)
    mixer = _mamba2_spec(config, widths.hidden)
    shared_mlp = (
        linear("shared_mlp.input_linear", widths.hidden, 2 * shared),
        gate("shared_mlp", shared),
        linear("shared_mlp.output_linear", shared, widths.hidden),
    )
    feed = (*(moe(spec) if experts else ()), *shared_mlp)

    def kinds() -> tuple[LayerKind, ...]:
        words = layer_words(config, widths.layers, "layer_types", "layers_block_type")
        return tuple(map(LayerKind, words or (LINEAR,) * widths.layers))

    attend = {LINEAR: lambda: mamba2(mixer), FULL: lambda: plain_attention(config, widths)}
    return mixed_decoder(config, name, widths, Traits(), kinds, attend, lambda _: feed)


# --- Nemotron-H ---------------------------------------------------------------------------------------------------

PATTERN = {"M": LINEAR, "*": FULL, "-": "mlp", "E": "moe"}  # letters of hybrid_override_pattern


def read_nemotron_h(config: Config, name: str) -> Arch:
    """Nemotron-H: each layer one norm and one of Mamba 2, attention, MLP or mixture."""
    words = _nemotron_words(config)
    layers = len(words) or 1
    widths = Widths(
        layers=layers, hidden=config.need("hidden_size"), heads=config.need("num_attention_heads"), kv_heads=1,
        head_dim=config.whole("head_dim", "attention_head_dim", default=128), vocab=config.need("vocab_size"),
        ffn=config.need("intermediate_size"), max_positions=config.maybe("max_position_embeddings"),
    )  # fmt: skip
    widths = replace(widths, kv_heads=config.kv_heads(widths.heads))
    biased, plain = config.flag("mlp_bias", default=False), ("up_proj", "down_proj")
    mixer = Mamba2Spec(
        hidden=widths.hidden, heads=config.whole("mamba_num_heads", default=128),
        head_dim=config.whole("mamba_head_dim", default=64), groups=config.whole("n_groups", default=8),
        state=config.whole("ssm_state_size", default=128), kernel=config.whole("conv_kernel", default=4),
        chunk=config.whole("chunk_size", default=128), bias=config.flag("use_bias", default=False),
        conv_bias=config.flag("use_conv_bias", default=True),
    )  # fmt: skip
    experts = _nemotron_experts(config, widths, biased) if "moe" in words else ()
    attend = {
        LINEAR: lambda: mamba2(mixer),
        FULL: lambda: plain_attention(config, widths, qkv_bias=False, o_bias=False, names=AttentionNames(at="mixer")),
        "mlp": lambda: mlp(widths.hidden, widths.ffn, at="mixer", names=plain, bias=biased),
        "moe": lambda: experts,
    }
    traits = Traits(
        before=("norm",), between=(), names=DecoderNames(embed="model.embeddings", norm="model.norm_f"),
    )  # fmt: skip
    notes: tuple[str, ...] = (SCAN_NOTE,)
    if config.whole("num_nextn_predict_layers", default=0, low=0):
        notes = (SCAN_NOTE, "without the multi-token-prediction layer, as the published model class")
    return mixed_decoder(
        config, name, widths, traits, lambda: tuple(map(LayerKind, words)), attend, lambda _: (), notes
    )


def _nemotron_words(config: Config) -> tuple[str, ...]:
    """The list of layers, or the string of letters that published configs hold."""
    pattern = config.values.get("hybrid_override_pattern")
    listed = layer_words(config, None, "layers_block_type", "layer_types")
    if listed or not isinstance(pattern, str):
        if not listed:
            config.fault("missing_key", "missing list of layers", "layers_block_type", expected="one word a layer")
        return listed or ()
    wrong = sorted(set(pattern[:MAX_LAYERS]) - set(PATTERN))
    if len(pattern) > MAX_LAYERS:
        wrong = [f"{len(pattern):,} letters"]
    if wrong:
        config.fault("bad_value", "the pattern of layers cannot be read", "hybrid_override_pattern", got=wrong[0],
                     expected=", ".join(PATTERN))  # fmt: skip
        return ()
    return tuple(PATTERN[letter] for letter in pattern)


def _nemotron_experts(config: Config, widths: Widths, biased: bool) -> tuple[Node, ...]:
    """Experts of two matrices, in a narrower space where `moe_latent_size` is given."""
    num, latent = config.need("n_routed_experts", "num_local_experts"), config.maybe("moe_latent_size")
    spec = MoeSpec(
        hidden=widths.hidden, experts=num, top_k=top_k(config, num), ffn=config.need("moe_intermediate_size"),
        at="mixer", gated=False, shared_ffn=config.need("moe_shared_expert_intermediate_size"),
        correction_bias="gate.e_score_correction_bias",
    )  # fmt: skip
    router, experts, *rest = moe(spec)
    rest = [replace(node, bias=biased) if isinstance(node, Linear) else node for node in rest]
    if latent is None:
        return (router, experts, *rest)
    down, up = (
        linear("mixer.fc1_latent_proj", widths.hidden, latent, bias=biased, shares=True),
        linear("mixer.fc2_latent_proj", latent, widths.hidden, bias=biased),
    )
    return (router, down, replace(experts, hidden=latent), up, *rest)  # type: ignore[call-arg]


FAMILIES = {
    "jamba": read_jamba,
    "bamba": read_bamba,
    "falcon_h1": read_falcon_h1,
    "granitemoehybrid": read_granite_hybrid,
    "nemotron_h": read_nemotron_h,
}
