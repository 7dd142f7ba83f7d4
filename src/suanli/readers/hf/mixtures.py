"""Decoders with routed experts: which layers are mixtures, how wide their experts are, what is shared."""

from __future__ import annotations

from collections.abc import Callable

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Linear, LinearAttention
from suanli.readers.blocks import AttentionNames, LatentSpec, MoeSpec, Node, latent_attention, moe, norm
from suanli.readers.config import Config, StandIn
from suanli.readers.decoder import DecoderNames
from suanli.readers.hf.common import (
    CHUNKED,
    FULL,
    LINEAR,
    SLIDING,
    LayerKind,
    Traits,
    Widths,
    all_full,
    dense_mlp,
    read_widths,
    self_attention,
    standard_decoder,
)
from suanli.readers.hf.llama_like import qwen_windows


def always(_: int) -> bool:
    """Every layer is a mixture."""
    return True


def top_k(config: Config, experts: int, *names: str) -> int:
    """Experts a token is routed to; no more than there are."""
    chosen = config.need(*(names or ("num_experts_per_tok",)))
    if chosen > experts and not isinstance(experts, StandIn):
        key = (names or ("num_experts_per_tok",))[0]
        config.fault(
            "contradiction",
            "a token is routed to more experts than there are",
            key,
            got=f"{chosen} of {experts}",
        )
    return chosen


def mixture(
    config: Config, name: str, widths: Widths, traits: Traits, spec: MoeSpec, sparse: Callable[[int], bool] = always,
    **more: object,
) -> Arch:  # fmt: skip
    """A standard decoder whose sparse layers hold the experts of `spec`."""
    return standard_decoder(
        config,
        name,
        widths,
        traits,
        sparse=sparse,
        feed_sparse=lambda: moe(spec),
        **more,  # type: ignore[arg-type]
    )


def read_mixtral(config: Config, name: str) -> Arch:
    """Mixtral: every MLP a mixture."""
    widths = read_widths(config)
    experts = config.need("num_local_experts", "num_experts")
    spec = MoeSpec(hidden=widths.hidden, experts=experts, top_k=top_k(config, experts), ffn=widths.ffn)
    window = config.maybe("sliding_window")
    pattern = all_full if window is None else lambda _: SLIDING
    return mixture(config, name, widths, Traits(), spec, pattern=pattern, window=window)


def _qwen_sparse(config: Config) -> Callable[[int], bool]:
    step = config.whole("decoder_sparse_step", default=1)
    dense = frozenset(config.wholes("mlp_only_layers") or ())
    return lambda i: i not in dense and (i + 1) % step == 0


def read_qwen2_moe(config: Config, name: str) -> Arch:
    """Qwen1.5/2 MoE: many small experts, a gated shared one."""
    widths = read_widths(config, ffn=config.whole("intermediate_size", default=5632))
    experts = config.need("num_experts", "num_local_experts")
    spec = MoeSpec(
        hidden=widths.hidden, experts=experts, top_k=top_k(config, experts), ffn=config.need("moe_intermediate_size"),
        shared_ffn=config.need("shared_expert_intermediate_size"), shared="shared_expert",
        shared_gate="shared_expert_gate",
    )  # fmt: skip
    pattern, window = qwen_windows(config)
    traits = Traits(qkv_bias=config.flag("qkv_bias", default=True))
    return mixture(config, name, widths, traits, spec, _qwen_sparse(config), pattern=pattern, window=window)


def read_qwen3_moe(config: Config, name: str) -> Arch:
    """Qwen3 MoE: norms on queries and keys, no shared expert."""
    widths = read_widths(config, ffn=config.whole("intermediate_size", default=6144))
    experts = config.need("num_experts", "num_local_experts")
    spec = MoeSpec(
        hidden=widths.hidden,
        experts=experts,
        top_k=top_k(config, experts),
        ffn=config.need("moe_intermediate_size"),
    )
    pattern, window = qwen_windows(config)
    biased = config.flag("attention_bias", default=False)
    traits = Traits(qkv_bias=biased, o_bias=biased, qk_norm="head")
    return mixture(config, name, widths, traits, spec, _qwen_sparse(config), pattern=pattern, window=window)


def read_olmoe(config: Config, name: str) -> Arch:
    """OLMoE: norms over the whole width of queries and keys."""
    widths = read_widths(config)
    experts = config.need("num_experts", "num_local_experts")
    spec = MoeSpec(hidden=widths.hidden, experts=experts, top_k=top_k(config, experts), ffn=widths.ffn)
    biased = config.flag("attention_bias", default=False)
    return mixture(config, name, widths, Traits(qk_norm="full", qkv_bias=biased, o_bias=biased), spec)


def read_phimoe(config: Config, name: str) -> Arch:
    """Phi-3.5-MoE: layer norms."""
    widths = read_widths(config)
    experts = config.need("num_local_experts", "num_experts")
    spec = MoeSpec(hidden=widths.hidden, experts=experts, top_k=top_k(config, experts), ffn=widths.ffn, gate="router")
    biased = config.flag("attention_bias", default=False)
    traits = Traits(
        norm_kind="layer",
        qkv_bias=biased,
        o_bias=biased,
        head_bias=config.flag("lm_head_bias", default=False),
    )
    window = config.maybe("sliding_window")
    pattern = all_full if window is None else lambda _: SLIDING
    return mixture(config, name, widths, traits, spec, pattern=pattern, window=window)


def read_gpt_oss(config: Config, name: str) -> Arch:
    """gpt-oss: biases everywhere, sinks, a window on every other layer."""
    widths = read_widths(config)
    experts = config.need("num_local_experts", "num_experts")
    spec = MoeSpec(
        hidden=widths.hidden, experts=experts, top_k=top_k(config, experts, "num_experts_per_tok", "experts_per_token"),
        ffn=widths.ffn, gate="router", gate_bias=True, bias=True,
    )  # fmt: skip
    biased = config.flag("attention_bias", default=True)
    traits = Traits(qkv_bias=biased, o_bias=biased, sinks=True)
    window = config.whole("sliding_window", default=128)
    return mixture(
        config, name, widths, traits, spec, pattern=lambda i: SLIDING if (i + 1) % 2 else FULL, window=window
    )


def read_llama4(config: Config, name: str) -> Arch:
    """Llama 4's text decoder: chunked attention but on every fourth layer, top-1 experts beside a shared one."""
    widths = read_widths(config)
    experts = config.need("num_local_experts")
    dense_ffn = config.whole("intermediate_size_mlp", default=widths.ffn)
    step = config.whole("interleave_moe_layer_step", default=1)
    listed = config.wholes("moe_layers")
    sparse = frozenset(listed or ())
    spec = MoeSpec(
        hidden=widths.hidden, experts=experts, top_k=top_k(config, experts), ffn=widths.ffn, at="feed_forward",
        gate="router", shared_ffn=widths.ffn, shared="shared_expert",
    )  # fmt: skip
    biased = config.flag("attention_bias", default=False)
    traits = Traits(qkv_bias=biased, o_bias=biased, mlp_at="feed_forward")
    rotary = config.wholes("no_rope_layers")  # 1 where the layer is rotary, hence chunked
    if rotary:
        pattern = lambda i: CHUNKED if i < len(rotary) and rotary[i] else FULL  # noqa: E731
    else:
        period = config.whole("no_rope_layer_interval", default=4)
        pattern = lambda i: FULL if (i + 1) % period == 0 else CHUNKED  # noqa: E731
    return mixture(
        config,
        name,
        widths,
        traits,
        spec,
        (lambda i: i in sparse) if listed is not None else (lambda i: (i + 1) % step == 0),
        pattern=pattern,
        chunk=config.whole("attention_chunk_size", default=8192),
        feed_dense=lambda: dense_mlp(widths, traits, dense_ffn),
        notes=("text decoder only",),
    )


def read_glm4_moe(config: Config, name: str) -> Arch:
    """GLM-4.5: dense first layers, a shared expert, a correction bias kept as a buffer; heads may leave width over."""
    hidden, heads = (config.values.get(key) for key in ("hidden_size", "num_attention_heads"))
    if config.values.get("head_dim") is None and isinstance(hidden, int) and isinstance(heads, int) and heads > 0:
        config = Config({**config.values, "head_dim": max(1, hidden // heads)}, config.where)
    widths = read_widths(config)
    experts = config.need("n_routed_experts")
    ffn = config.need("moe_intermediate_size")
    dense_first = config.whole("first_k_dense_replace", default=1, low=0)
    spec = MoeSpec(
        hidden=widths.hidden, experts=experts, top_k=top_k(config, experts), ffn=ffn,
        shared_ffn=ffn * config.whole("n_shared_experts", default=1, low=0),
        correction_bias="gate.e_score_correction_bias",
    )  # fmt: skip
    traits = Traits(
        qkv_bias=config.flag("attention_bias", default=False),
        qk_norm="head" if config.flag("use_qk_norm", default=False) else None,
    )
    return mixture(config, name, widths, traits, spec, lambda i: i >= dense_first)


def read_minimax_m2(config: Config, name: str) -> Arch:
    """MiniMax-M2: norms over the whole width of queries and keys, every MLP a mixture."""
    widths = read_widths(config)
    experts = config.need("num_local_experts")
    spec = MoeSpec(
        hidden=widths.hidden, experts=experts, top_k=top_k(config, experts), ffn=widths.ffn,
        correction_bias="e_score_correction_bias",
    )  # fmt: skip
    return mixture(config, name, widths, Traits(qk_norm="full"), spec)


def read_minimax(config: Config, name: str) -> Arch:
    """MiniMax-Text-01: lightning attention with a gated output, full attention where `layer_types` says so."""
    widths = read_widths(config)
    experts = config.need("num_local_experts")
    spec = MoeSpec(hidden=widths.hidden, experts=experts, top_k=top_k(config, experts), ffn=widths.ffn)
    width, at, traits = widths.heads * widths.head_dim, "self_attn", Traits()
    lightning: tuple[Node, ...] = (
        Linear(name=f"{at}.qkv_proj", in_features=widths.hidden, out_features=3 * width),
        LinearAttention(
            name=f"{at}.attention",
            heads=widths.heads,
            key_dim=widths.head_dim,
            value_dim=widths.head_dim,
            chunk=config.whole("block_size", default=256),
        ),
        norm(f"{at}.norm", width),
        Linear(name=f"{at}.output_gate", in_features=widths.hidden, out_features=width),
        Linear(name=f"{at}.out_proj", in_features=width, out_features=widths.hidden),
    )

    def attend(kind: LayerKind) -> tuple[Node, ...]:
        return lightning if kind.attention == LINEAR else self_attention(widths, traits, kind, None)

    return mixture(
        config, name, widths, traits, spec, attend=attend, pattern=lambda i: FULL if i % 2 == 0 else LINEAR,
        notes=("lightning attention counted as its recurrence; chunked kernels compute more",),
    )  # fmt: skip


def read_deepseek(config: Config, name: str) -> Arch:
    """DeepSeek-V2, V3, R1 and Kimi-K2: latent attention, dense first layers, shared experts."""
    hidden, heads = config.need("hidden_size"), config.need("num_attention_heads", high=1_000_000)
    nope, rope = config.need("qk_nope_head_dim"), config.need("qk_rope_head_dim")
    widths = Widths(
        layers=config.layers("num_hidden_layers"), hidden=hidden, heads=heads, kv_heads=heads, head_dim=nope + rope,
        ffn=config.need("intermediate_size"), vocab=config.need("vocab_size"),
        max_positions=config.maybe("max_position_embeddings"),
    )  # fmt: skip
    experts, ffn = config.need("n_routed_experts"), config.need("moe_intermediate_size")
    older = config.values.get("model_type") == "deepseek_v2"
    first, always = (0, 2) if older else (3, 1)  # where a file does not say: dense first layers and shared experts
    dense_first = config.whole("first_k_dense_replace", default=first, low=0)
    spec = MoeSpec(
        hidden=hidden, experts=experts, top_k=top_k(config, experts), ffn=ffn,
        shared_ffn=ffn * config.whole("n_shared_experts", default=always, low=0),
        correction_bias=None if older else "gate.e_score_correction_bias",
    )  # fmt: skip
    latent = LatentSpec(
        hidden=hidden, heads=heads, q_rank=config.maybe("q_lora_rank"), kv_rank=config.need("kv_lora_rank"),
        nope_dim=nope, rope_dim=rope, v_dim=config.need("v_head_dim"),
        bias=config.flag("attention_bias", default=False),
    )  # fmt: skip
    notes: tuple[str, ...] = ()
    if config.whole("num_nextn_predict_layers", default=0, low=0):
        notes = ("without the multi-token-prediction layer, as the published model class",)
    return mixture(
        config, name, widths, Traits(), spec, lambda i: i >= dense_first, attend=lambda _: latent_attention(latent),
        notes=notes,
    )  # fmt: skip


def read_dbrx(config: Config, name: str) -> Arch:
    """DBRX: fused QKV, norms without shift, its shapes in nested parts."""
    attn, ffn = config.part("attn_config"), config.part("ffn_config")
    hidden, heads = config.need("d_model"), config.need("n_heads", high=1_000_000)
    widths = Widths(
        layers=config.layers("n_layers"), hidden=hidden, heads=heads,
        kv_heads=attn.kv_heads(heads, "kv_n_heads"), head_dim=config.head_dim(hidden, heads),
        ffn=ffn.need("ffn_hidden_size"), vocab=config.need("vocab_size"), max_positions=config.maybe("max_seq_len"),
    )  # fmt: skip
    experts = ffn.need("moe_num_experts")
    spec = MoeSpec(
        hidden=hidden, experts=experts, top_k=top_k(ffn, experts, "moe_top_k"), ffn=widths.ffn, at="ffn",
        gate="router.layer",
    )  # fmt: skip
    traits = Traits(
        norm_kind="layer_no_bias", before=("norm_attn_norm.norm_1",), between=("norm_attn_norm.norm_2",),
        attention_names=AttentionNames(at="norm_attn_norm.attn", fused="Wqkv", o="out_proj"),
        names=DecoderNames(embed="transformer.wte", layers="transformer.blocks", norm="transformer.norm_f"),
    )  # fmt: skip
    return mixture(config, name, widths, traits, spec)


FAMILIES = {
    "mixtral": read_mixtral,
    "qwen2_moe": read_qwen2_moe,
    "qwen3_moe": read_qwen3_moe,
    "olmoe": read_olmoe,
    "phimoe": read_phimoe,
    "gpt_oss": read_gpt_oss,
    "llama4_text": read_llama4,
    "glm4_moe": read_glm4_moe,
    "minimax": read_minimax,
    "minimax_m2": read_minimax_m2,
    "deepseek_v2": read_deepseek,
    "deepseek_v3": read_deepseek,
    "kimi_k2": read_deepseek,
    "dbrx": read_dbrx,
}
