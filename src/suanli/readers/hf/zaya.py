"""ZAYA1: compressed convolutional attention (arXiv:2510.04476) and one expert a token behind a small router MLP."""

from __future__ import annotations

from dataclasses import replace

from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Attention, Buffer, CausalConv, Elementwise, Experts, KeptState, Linear, Parameter
from suanli.readers.blocks import GATED_ACTIVATIONS, Node, norm
from suanli.readers.config import Config
from suanli.readers.decoder import DecoderNames
from suanli.readers.hf.common import Widths, read_widths
from suanli.readers.hf.mamba import CONV_NOTE, stacked
from suanli.readers.mixers import linear

Kind = tuple[bool, bool]  # windowed, first layer
SKIP_NOTE = "the router may skip the expert; every token is counted with one"


def _attention(config: Config, widths: Widths, window: int | None) -> tuple[Node, ...]:
    """Queries and keys through two short convolutions, values half of this token and half of the one before."""
    biased, at = config.flag("attention_bias", default=False), "self_attn.qkv_proj"
    query, key = widths.heads * widths.head_dim, widths.kv_heads * widths.head_dim
    depthwise, grouped = config.whole("cca_time0", default=2), config.whole("cca_time1", default=2)
    return (
        linear(f"{at}.q_proj", widths.hidden, query, bias=biased),
        linear(f"{at}.k_proj", widths.hidden, key, bias=biased, shares=True),
        linear(f"{at}.v_proj_current", widths.hidden, key // 2, bias=biased, shares=True),
        linear(f"{at}.v_proj_delayed", widths.hidden, key // 2, bias=biased, shares=True),
        KeptState(name=f"{at}.delayed", elements=key // 2),
        CausalConv(name=f"{at}.conv_qk_depthwise", channels=query + key, kernel=depthwise, bias=True),
        CausalConv(
            name=f"{at}.conv_qk_grouped", channels=query + key, kernel=grouped, bias=True,
            groups=widths.heads + widths.kv_heads,
        ),
        Parameter(name="self_attn.qk_norm.temp", shape=(widths.kv_heads,)),
        Attention(
            name="self_attn.attention", heads=widths.heads, kv_heads=widths.kv_heads, qk_dim=widths.head_dim,
            v_dim=widths.head_dim, window=window,
        ),
        linear("self_attn.o_proj", query, widths.hidden, bias=biased),
    )  # fmt: skip


def _experts(config: Config, widths: Widths, first: bool) -> tuple[Node, ...]:
    """A router of three matrices over one more class than there are experts, and the experts."""
    num, width = (
        config.whole("num_experts", "num_local_experts", default=16),
        config.whole("router_hidden_size", default=256),
    )
    router = (
        linear("mlp.gate.down_proj", widths.hidden, width, bias=True),
        *(() if first else (Parameter(name="mlp.gate.router_states_scale", shape=(width,)),)),
        norm("mlp.gate.router_mlp.norm", width),
        linear("mlp.gate.router_mlp.fc1", width, width, bias=True),
        linear("mlp.gate.router_mlp.fc2", width, width, bias=True),
        linear("mlp.gate.router_mlp.out_proj", width, num + 1),
    )
    return (
        *(replace(node, role="router") if isinstance(node, Linear) else node for node in router),
        Buffer(name="mlp.gate.balancing_biases", shape=(num + 1,)),
        Experts(name="mlp.experts", num=num, top_k=1, hidden=widths.hidden, ffn=widths.ffn),
        Elementwise(name="mlp.experts.act", op="gated", width=widths.ffn, saved=GATED_ACTIVATIONS * widths.ffn),
    )


def _scales(at: str, width: int) -> tuple[Node, ...]:
    names = ("hidden_states_scale", "hidden_states_bias", "residual_scale", "residual_bias")
    return tuple(Parameter(name=f"{at}.{name}", shape=(width,)) for name in names)


def read_zaya(config: Config, name: str) -> Arch:
    """ZAYA1."""
    widths = read_widths(config, ffn=config.whole("moe_intermediate_size", default=2048))
    listed = config.names("layer_types", widths.layers, ("hybrid", "hybrid_sliding"))
    window = config.maybe("sliding_window")
    if listed and "hybrid_sliding" in listed and window is None:
        config.fault("missing_key", "layers have a window and its size is not given", "sliding_window")
    if config.whole("num_experts_per_tok", default=1) != 1:
        config.fault("unsupported", "one expert a token is all that is known", "num_experts_per_tok", expected="1")
    if config.flag("lm_head_bias", default=False):
        config.fault("unsupported", "a bias of the head is not read", "lm_head_bias", expected="false")
    tied = config.flag("tie_word_embeddings", default=True)
    kinds = (
        ()
        if config.faults.faults
        else tuple((listed is not None and listed[i] == "hybrid_sliding", i == 0) for i in range(widths.layers))
    )
    config.check()

    def make(kind: Kind) -> tuple[Node, ...]:
        windowed, first = kind
        return (
            norm("input_layernorm", widths.hidden),
            *_attention(config, widths, window if windowed else None),
            *_scales("post_attention_residual_scale", widths.hidden),
            norm("post_attention_layernorm", widths.hidden),
            *_experts(config, widths, first),
            *_scales("post_mlp_residual_scale", widths.hidden),
        )

    arch = stacked(name, widths, kinds, make, DecoderNames(), tied, (SKIP_NOTE, CONV_NOTE))
    outer = tuple(
        Parameter(name=f"model.input_hidden_states_{part}", shape=(widths.hidden,)) for part in ("scale", "bias")
    )
    return replace(arch, root=Module(name="", children=(*outer, *arch.root.children)))


FAMILIES = {"zaya": read_zaya}
