"""Dense decoders of the Llama shape: RMS norms, gated MLP, grouped queries, with their windows, norms and biases."""

from __future__ import annotations

from collections.abc import Callable

from suanli.nouns.arch import Arch
from suanli.readers.blocks import AttentionNames
from suanli.readers.config import Config
from suanli.readers.decoder import DecoderNames
from suanli.readers.hf.common import FULL, SLIDING, Traits, all_full, read_widths, standard_decoder


def read_llama(config: Config, name: str) -> Arch:
    """Llama 1–3, and what was published in its shape (Yi, DeepSeek-67B, SmolLM, InternLM2, Baichuan2)."""
    biased = config.flag("attention_bias", default=False)
    traits = Traits(qkv_bias=biased, o_bias=biased, mlp_bias=config.flag("mlp_bias", default=False))
    return standard_decoder(config, name, read_widths(config), traits)


def read_mistral(config: Config, name: str) -> Arch:
    """Mistral: a window on every layer where the config gives one."""
    window = config.maybe("sliding_window")
    return standard_decoder(config, name, read_widths(config), Traits(), pattern=_all(window), window=window)


def read_qwen2(config: Config, name: str) -> Arch:
    """Qwen1.5, 2 and 2.5: biases on queries, keys and values; windows past `max_window_layers` where switched on."""
    pattern, window = qwen_windows(config)
    return standard_decoder(config, name, read_widths(config), Traits(qkv_bias=True), pattern=pattern, window=window)


def qwen_windows(config: Config) -> tuple[Callable[[int], str], int | None]:
    """Qwen's rule for which layers have a window."""
    window = config.maybe("sliding_window") if config.flag("use_sliding_window", default=False) else None
    first = config.whole("max_window_layers", default=28, low=0)
    return (lambda i: SLIDING if window is not None and i >= first else FULL), window


def read_qwen3(config: Config, name: str) -> Arch:
    """Qwen3 dense: a norm of head width on queries and keys."""
    pattern, window = qwen_windows(config)
    biased = config.flag("attention_bias", default=False)
    traits = Traits(qkv_bias=biased, o_bias=biased, qk_norm="head")
    return standard_decoder(config, name, read_widths(config), traits, pattern=pattern, window=window)


def read_gemma(config: Config, name: str) -> Arch:
    """Gemma 1: tied head, wide heads."""
    biased = config.flag("attention_bias", default=False)
    return standard_decoder(config, name, read_widths(config), Traits(tied=True, qkv_bias=biased, o_bias=biased))


def _sandwich(config: Config, qk_norm: str | None = None) -> Traits:
    """Gemma 2 and 3: norms before and after both halves of the layer."""
    biased = config.flag("attention_bias", default=False)
    return Traits(
        tied=True, qkv_bias=biased, o_bias=biased, qk_norm=qk_norm,
        between=("post_attention_layernorm", "pre_feedforward_layernorm"), after=("post_feedforward_layernorm",),
    )  # fmt: skip


def read_gemma2(config: Config, name: str) -> Arch:
    """Gemma 2: four norms a layer, a window on every other layer."""
    window = config.whole("sliding_window", default=4096)
    return standard_decoder(config, name, read_widths(config), _sandwich(config), pattern=every(2), window=window)


def read_gemma3(config: Config, name: str) -> Arch:
    """Gemma 3 text: as Gemma 2 with norms on queries and keys, five windowed layers to one full."""
    traits = _sandwich(config, qk_norm="head")
    pattern = every(config.whole("sliding_window_pattern", default=6))
    window = config.whole("sliding_window", default=4096)
    return standard_decoder(config, name, read_widths(config), traits, pattern=pattern, window=window)


def every(period: int) -> Callable[[int], str]:
    """Full attention on the last layer of each period, a window on the others."""
    return lambda i: FULL if (i + 1) % period == 0 else SLIDING


def _all(window: int | None) -> Callable[[int], str]:
    return all_full if window is None else lambda _: SLIDING


def read_phi3(config: Config, name: str) -> Arch:
    """Phi-3 and Phi-4: fused QKV and fused gate and up."""
    traits = Traits(attention_names=AttentionNames(fused="qkv_proj"), mlp_names=("gate_up_proj", "down_proj"))
    window = config.maybe("sliding_window")
    return standard_decoder(config, name, read_widths(config), traits, pattern=_all(window), window=window)


def read_glm(config: Config, name: str) -> Arch:
    """GLM-4 9B (`glm`): biased QKV, fused gate and up."""
    traits = Traits(qkv_bias=config.flag("attention_bias", default=True), mlp_names=("gate_up_proj", "down_proj"))
    return standard_decoder(config, name, read_widths(config), traits)


def read_glm4(config: Config, name: str) -> Arch:
    """GLM-4-0414 (`glm4`): as GLM with a norm after each half of the layer."""
    traits = Traits(
        qkv_bias=config.flag("attention_bias", default=True),
        mlp_names=("gate_up_proj", "down_proj"),
        between=("post_self_attn_layernorm", "post_attention_layernorm"),
        after=("post_mlp_layernorm",),
    )
    return standard_decoder(config, name, read_widths(config), traits)


def read_olmo(config: Config, name: str) -> Arch:
    """OLMo 1: norms without parameters."""
    biased = config.flag("attention_bias", default=False)
    return standard_decoder(
        config, name, read_widths(config), Traits(norm_kind="plain", qkv_bias=biased, o_bias=biased)
    )


def read_olmo2(config: Config, name: str) -> Arch:
    """OLMo 2: norms after attention and MLP, and over the whole width of queries and keys."""
    biased = config.flag("attention_bias", default=False)
    traits = Traits(
        before=(), between=("post_attention_layernorm",), after=("post_feedforward_layernorm",), qk_norm="full",
        qkv_bias=biased, o_bias=biased,
    )  # fmt: skip
    return standard_decoder(config, name, read_widths(config), traits)


def read_smollm3(config: Config, name: str) -> Arch:
    """SmolLM3: Llama's shape, tied; windows only where `layer_types` says so."""
    biased = config.flag("attention_bias", default=False)
    traits = Traits(tied=True, qkv_bias=biased, o_bias=biased, mlp_bias=config.flag("mlp_bias", default=False))
    window = config.maybe("sliding_window") if config.flag("use_sliding_window", default=False) else None
    return standard_decoder(config, name, read_widths(config), traits, window=window)


def read_cohere(config: Config, name: str) -> Arch:
    """Command-R: one norm, attention and MLP side by side, tied head."""
    biased = config.flag("attention_bias", default=False)
    normed = config.flag("use_qk_norm", default=False)
    traits = Traits(
        tied=True, norm_kind="layer_no_bias", between=(), qkv_bias=biased, o_bias=biased,
        qk_norm="full" if normed else None, qk_norm_kind="layer_no_bias",
    )  # fmt: skip
    return standard_decoder(config, name, read_widths(config), traits)


def read_cohere2(config: Config, name: str) -> Arch:
    """Command-R7B: as Command-R, three windowed layers to one full."""
    biased = config.flag("attention_bias", default=False)
    traits = Traits(tied=True, norm_kind="layer_no_bias", between=(), qkv_bias=biased, o_bias=biased)
    pattern = every(config.whole("sliding_window_pattern", default=4))
    window = config.whole("sliding_window", default=4096)
    return standard_decoder(config, name, read_widths(config), traits, pattern=pattern, window=window)


def read_stablelm(config: Config, name: str) -> Arch:
    """StableLM: layer norms."""
    parallel = config.flag("use_parallel_residual", default=False)
    traits = Traits(
        norm_kind="layer", qkv_bias=config.flag("use_qkv_bias", default=False),
        qk_norm="full" if config.flag("qk_layernorm", default=False) else None, qk_norm_kind="layer_no_bias",
        qk_norm_names=("q_layernorm", "k_layernorm"), between=() if parallel else ("post_attention_layernorm",),
    )  # fmt: skip
    return standard_decoder(config, name, read_widths(config), traits)


def read_nemotron(config: Config, name: str) -> Arch:
    """Nemotron-4: layer norms, two-matrix MLP (squared ReLU)."""
    biased = config.flag("attention_bias", default=False)
    traits = Traits(
        norm_kind="layer", mlp_names=("up_proj", "down_proj"), qkv_bias=biased, o_bias=biased,
        mlp_bias=config.flag("mlp_bias", default=False),
    )  # fmt: skip
    return standard_decoder(config, name, read_widths(config), traits)


def read_internlm2(config: Config, name: str) -> Arch:
    """InternLM2 by its own names (its class is code of the model's own, which is not run): Llama's shape, fused QKV."""
    biased = config.flag("bias", default=False)
    traits = Traits(
        before=("attention_norm",), between=("ffn_norm",), qkv_bias=biased, o_bias=biased,
        attention_names=AttentionNames(at="attention", fused="wqkv", o="wo"), mlp_at="feed_forward",
        mlp_names=("w1", "w3", "w2"), names=DecoderNames(embed="model.tok_embeddings", head="output"),
    )  # fmt: skip
    return standard_decoder(config, name, read_widths(config), traits)


def read_baichuan(config: Config, name: str) -> Arch:
    """Baichuan 1 and 2 by their own names (code of the model's own, not run): Llama's shape, fused QKV."""
    heads = config.need("num_attention_heads", high=1_000_000)
    traits = Traits(attention_names=AttentionNames(fused="W_pack"))
    return standard_decoder(config, name, read_widths(config, kv_heads=heads), traits)


FAMILIES = {
    "llama": read_llama,
    "mistral": read_mistral,
    "ministral": read_mistral,
    "qwen2": read_qwen2,
    "qwen3": read_qwen3,
    "gemma": read_gemma,
    "gemma2": read_gemma2,
    "gemma3_text": read_gemma3,
    "phi3": read_phi3,
    "glm": read_glm,
    "glm4": read_glm4,
    "olmo": read_olmo,
    "olmo2": read_olmo2,
    "smollm3": read_smollm3,
    "cohere": read_cohere,
    "cohere2": read_cohere2,
    "stablelm": read_stablelm,
    "nemotron": read_nemotron,
    "internlm2": read_internlm2,
    "baichuan": read_baichuan,
}
