"""Decoders with routed experts, a row each: what differs from the plain Llama shape. `general.py` reads them."""

from __future__ import annotations

from typing import Any

from suanli.readers.config import Config
from suanli.readers.hf.common import Extra, Projection, Traits, Widths
from suanli.readers.hf.dense_table import BIASED, MLP_BIASED, POST, QKV_BIASED, SANDWICH
from suanli.readers.hf.general import reader
from suanli.readers.hf.rows import Family, Flag, Mixture, Reach

CORRECTED: dict[str, Any] = {"correction_bias": "gate.e_score_correction_bias"}
ONE_SHARED: dict[str, Any] = {"shared_count": ("n_shared_experts", "num_shared_experts")}
DEEP = Mixture(**ONE_SHARED, parts=CORRECTED)
NORMED = Traits(qk_norm="head")
GRANITE: dict[str, Any] = {"at": "block_sparse_moe", "gate": "router"}
GRANITE_SHARED = Mixture(
    ffn=("intermediate_size",), shared_ffn=("shared_intermediate_size",),
    parts=GRANITE | {"shared": "shared_mlp", "shared_inside": False, "shared_names": ("input_linear", "output_linear")},
)  # fmt: skip


def _hyper(config: Config, widths: Widths) -> dict[str, int]:
    """Hyper-connections: how many streams run side by side, their width together, and the weights that mix them."""
    streams = config.need("hc_mult")
    return {"streams": streams, "streams_width": streams * widths.hidden, "mixes": 2 * streams}


def _gated_norm(config: Config, _: Widths) -> dict[str, int]:
    return {"rank": config.need("gated_norm_rank")}


def _norm_gate(at: str) -> tuple[Projection, ...]:
    return (
        Projection(name=f"{at}.mlp.fc1", into="hidden", out="rank"),
        Projection(name=f"{at}.mlp.fc2", into="rank", out="hidden"),
    )


TABLE = {
    "axk2": Family(
        doc="A.X K2: gated latent attention with an indexer; norms with a gate of low rank.",
        latent={"query_gate": "q_gate_proj"}, mixture=DEEP, numbers=_gated_norm,
        traits=Traits(before=("input_layernorm.norm",), projections=_norm_gate("input_layernorm")),
        when={"sparse": {
            "between": ("post_attention_layernorm.norm",),
            "projections": (*_norm_gate("input_layernorm"), *_norm_gate("post_attention_layernorm")),
        }},
    ),
    "hy_v4": Family(
        doc="Hunyuan 4: gated latent attention with sinks, an indexer that layers share, hyper-connections.",
        latent={"gate": "gate_proj", "sinks": True}, mixture=DEEP, numbers=_hyper,
        traits=Traits(
            projections=tuple(
                Projection(name=f"{half}_hc.fn", into="streams_width", out="mixes") for half in ("attn", "ffn")
            ),
            extras=tuple(
                Extra(name=f"{half}_hc.{part}", shape=(extent,))
                for half in ("attn", "ffn") for part, extent in (("base", "mixes"), ("scale", 2))
            ),
        ),
        outer_projections=(Projection(name="model.hc_head.hc_fn", into="streams_width", out="streams"),),
        outer_extras=(
            Extra(name="model.hc_head.hc_base", shape=("streams",)), Extra(name="model.hc_head.hc_scale", shape=(1,)),
        ),
    ),
    "afmoe": Family(
        doc="AFMoE (Trinity): gated attention, four norms, dense first layers.",
        traits=Traits(
            qk_norm="head", gate="gate_proj", between=("post_attention_layernorm", "pre_mlp_layernorm"),
            after=("post_mlp_layernorm",),
        ),
        flags=(BIASED,),
        mixture=Mixture(
            dense_first=("num_dense_layers",), shared_count=("num_shared_experts",),
            parts={"gate": "router.gate", "correction_bias": "expert_bias", "correction_trained": True},
        ),
        reach=Reach(default=1024, pattern="last", period=4, period_key="global_attn_every_n_layers"),
    ),
    "aria_text": Family(
        doc="Aria's text decoder.",
        flags=(BIASED, MLP_BIASED),
        mixture=Mixture(
            experts=("moe_num_experts",), top_k=("moe_topk",), ffn=("intermediate_size",),
            shared_count=("moe_num_shared_experts",), parts={"gate": "router"},
        ),
    ),
    "axk1": Family(
        doc="A.X K1: latent attention, dense first layers, a norm after the experts.", latent={}, mixture=DEEP,
        when={"sparse": {"after": ("mlp.post_mlp_layernorm",)}},
    ),
    "beam": Family(
        doc="Beam: gated attention with a bias a head, four norms, dense first layers.",
        traits=Traits(
            qk_norm="head", gate="gate_proj", extras=(Extra(name="self_attn.gate_bias", shape=("heads",)),), **SANDWICH
        ),
        flags=(BIASED,), mixture=Mixture(dense_first_default=3, parts=CORRECTED),
        reach=Reach(default=512, pattern="last", period=6),
    ),
    "cohere2_moe": Family(
        doc="Command with experts: one norm, attention and MLP side by side.",
        traits=Traits(tied=True, norm_kind="layer_no_bias", between=()), flags=(BIASED,),
        mixture=Mixture(ffn=("intermediate_size",), shared_count=("num_shared_experts",)),
        reach=Reach(default=4096, pattern="last", period=4, period_key="sliding_window_pattern"),
        dense_ffn="prefix_dense_intermediate_size",
    ),
    "deepseek_v32": Family(
        doc="DeepSeek-V3.2: latent attention whose keys an indexer chooses.", latent={}, mixture=DEEP,
    ),
    "dots1": Family(
        doc="dots.llm1: DeepSeek's experts on Qwen3's attention.", traits=NORMED, flags=(BIASED,), mixture=DEEP,
        reach=Reach(pattern="past"),
    ),
    "ernie4_5_moe": Family(
        doc="ERNIE 4.5 with experts.", traits=Traits(tied=True),
        flags=(Flag(key="use_bias", sets=("qkv_bias", "o_bias", "mlp_bias", "head_bias")),),
        mixture=Mixture(
            experts=("moe_num_experts",), top_k=("moe_k",), shared_count=("moe_num_shared_experts",),
            dense_first=("moe_layer_start_index",), last=("moe_layer_end_index",), period=("moe_layer_interval",),
            parts={"correction_bias": "gate.moe_statics.e_score_correction_bias", "correction_trained": True},
        ),
    ),
    "exaone_moe": Family(
        doc="EXAONE with experts: three windowed layers to one full.", traits=NORMED, mixture=DEEP,
        reach=Reach(pattern="last", period=4, period_key="sliding_window_pattern"),
    ),
    "flex_olmo": Family(
        doc="FlexOLMo: OLMo 2 with experts.", traits=Traits(**POST, qk_norm="full"), flags=(BIASED,),
        mixture=Mixture(ffn=("intermediate_size",)),
    ),
    "flint": Family(
        doc="Flint: sinks, a shared expert.", traits=Traits(qk_norm="head", sinks=True), flags=(BIASED,),
        mixture=Mixture(shared_ffn=("shared_expert_intermediate_size",), parts={"shared": "shared_expert"}),
    ),
    "glm4_moe_lite": Family(doc="GLM-4.7 Flash: latent attention.", latent={}, mixture=DEEP),
    "glm_moe_dsa": Family(
        doc="GLM-5: latent attention whose keys an indexer chooses.", latent={}, mixture=DEEP,
    ),
    "granitemoe": Family(
        doc="Granite with experts.", flags=(BIASED,), mixture=Mixture(ffn=("intermediate_size",), parts=GRANITE),
    ),
    "granitemoeshared": Family(doc="Granite with experts and a shared one.", flags=(BIASED,), mixture=GRANITE_SHARED),
    "granitemoe_swa": Family(
        doc="Granite with experts, sinks and windows.", traits=Traits(sinks=True), flags=(BIASED,),
        mixture=GRANITE_SHARED, reach=Reach(pattern="first", period=4),
    ),
    "hunyuan_v1_moe": Family(
        doc="Hunyuan with experts and a shared one.",
        traits=Traits(qk_norm="head", qk_norm_names=("query_layernorm", "key_layernorm")), flags=(BIASED,),
        mixture=Mixture(
            ffn=("intermediate_size",), top_k=("moe_topk",),
            shared_ffn=("intermediate_size",), parts={"gate": "gate.wg", "shared": "shared_mlp"},
        ),
    ),
    "hy_v3": Family(
        doc="Hunyuan 3: a dense first layer, a shared expert.", traits=NORMED, flags=(BIASED, MLP_BIASED),
        mixture=Mixture(
            shared_count=("num_shared_experts",), dense_first_default=1,
            parts={"correction_bias": "e_score_correction_bias"},
        ),
    ),
    "kolibri1": Family(
        doc="Kolibri: four norms, a shared expert.",
        traits=Traits(
            qk_norm="head", between=("post_self_attn_layernorm", "post_attention_layernorm"),
            after=("post_mlp_layernorm",),
        ),
        mixture=Mixture(shared_ffn=("shared_expert_intermediate_size",), parts=CORRECTED),
        reach=Reach(default=513, pattern="last", period=5),
    ),
    "laguna": Family(
        doc="Laguna: attention gated a head, heads that may differ from layer to layer.",
        traits=Traits(qk_norm="head"),
        flags=(BIASED, Flag(key="gating", sets=("gate",), default=True, value="g_proj"),
               Flag(key="gating", sets=("gate_per_head",), default=True)),
        lists={"num_attention_heads_per_layer": "heads"},
        mixture=Mixture(
            shared_ffn=("shared_expert_intermediate_size",), dense_first_default=1,
            parts=CORRECTED | {"correction_trained": True},
        ),
    ),
    "mellum": Family(doc="Mellum.", traits=NORMED, flags=(BIASED,), mixture=Mixture()),
    "mimo_v2_flash": Family(
        doc="MiMo-V2-Flash: windowed layers have sinks and twice the key/value heads; values narrower than keys.",
        flags=(QKV_BIASED,), mixture=Mixture(dense_first_default=1, parts=CORRECTED), value_dim="v_head_dim",
        sliding_kv_multiple=2, when={"sliding": {"sinks": True}},
        reach=Reach(default=129, pattern="first", period=6),
    ),
    "minimax_m3_vl_text": Family(
        doc="MiniMax-M3's text decoder.", traits=Traits(qk_norm="head", mlp_names=("gate_up_proj", "down_proj")),
        ffn=("dense_intermediate_size",),
        mixture=Mixture(
            ffn=("intermediate_size",), shared_ffn=("shared_intermediate_size",),
            parts=CORRECTED | {"shared_names": ("gate_up_proj", "down_proj")},
        ),
    ),
    "sarvam_mla": Family(doc="Sarvam with latent attention: DeepSeek-V3's class.", latent={}, mixture=DEEP),
    "sarvam_moe": Family(
        doc="Sarvam: GLM-4.5's class.",
        flags=(QKV_BIASED, Flag(key="use_qk_norm", sets=("qk_norm",), value="head")), mixture=DEEP,
    ),
    "solar_open": Family(doc="Solar Open: GLM-4.5's experts in every layer.", flags=(QKV_BIASED,), mixture=DEEP),
    "dots3_note_text": Family(
        doc="dots3.note's text decoder: latent attention gated a head, some layers windowed and of other widths.",
        latent={"gate": "g_proj", "gate_per_head": True, "rope_norm": "k_rope_only_layernorm"},
        mixture=Mixture(**ONE_SHARED, shared_ffn=("shared_experts_intermediate_size",), parts=CORRECTED),
        required=("per_layer_config",),
    ),
}  # fmt: skip

FAMILIES = {model_type: reader(family) for model_type, family in TABLE.items()}
