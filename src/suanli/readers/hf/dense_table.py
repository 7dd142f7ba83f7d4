"""Dense decoders, a row each: what differs from the plain Llama shape. `general.py` reads them."""

from __future__ import annotations

from typing import Any

from suanli.readers.blocks import AttentionNames
from suanli.readers.decoder import DecoderNames
from suanli.readers.hf.common import Extra, Projection, Traits
from suanli.readers.hf.general import reader
from suanli.readers.hf.rows import Family, Flag, Reach

BIASED = Flag(key="attention_bias", sets=("qkv_bias", "o_bias"))
QKV_BIASED = Flag(key="attention_bias", sets=("qkv_bias",))
MLP_BIASED = Flag(key="mlp_bias", sets=("mlp_bias",))
LLAMA_FLAGS = (BIASED, MLP_BIASED)
ALL = Reach(pattern="all")
LISTED = Reach()
TWO = ("up_proj", "down_proj")
SANDWICH: dict[str, Any] = {
    "between": ("post_attention_layernorm", "pre_feedforward_layernorm"),
    "after": ("post_feedforward_layernorm",),
}
POST: dict[str, Any] = {
    "before": (),
    "between": ("post_attention_layernorm",),
    "after": ("post_feedforward_layernorm",),
}
TRANSFORMER = DecoderNames(
    embed="transformer.wte", positions="transformer.wpe", layers="transformer.h", norm="transformer.ln_f"
)
BART_NORMS: dict[str, Any] = {"before": ("self_attn_layer_norm",), "between": ("final_layer_norm",)}

LLAMA = Family(doc="Llama, and what is published in its class.", flags=LLAMA_FLAGS)
_XIELU = Family(
    doc="Apertus: two-matrix MLP with a learned activation, norms of head width on queries and keys.",
    traits=Traits(
        before=("attention_layernorm",), between=("feedforward_layernorm",), mlp_names=TWO, qk_norm="head",
        extras=(Extra(name="mlp.act_fn.alpha_p", shape=(1,)), Extra(name="mlp.act_fn.alpha_n", shape=(1,))),
    ),
    flags=(BIASED,),
)  # fmt: skip

TABLE = {
    "apertus": _XIELU,
    "apertus1p5_text": _XIELU,
    "arcee": Family(doc="Arcee: two-matrix MLP.", traits=Traits(mlp_names=TWO), flags=LLAMA_FLAGS),
    "biogpt": Family(
        doc="BioGPT: learned positions with two spare rows.",
        traits=Traits(
            tied=True, norm_kind="layer", **BART_NORMS, attention_names=AttentionNames(o="out_proj"), qkv_bias=True,
            o_bias=True, mlp_at="", mlp_names=("fc1", "fc2"), mlp_bias=True, dropout=True,
            names=DecoderNames(
                embed="biogpt.embed_tokens", positions="biogpt.embed_positions", layers="biogpt.layers",
                norm="biogpt.layer_norm", head="output_projection",
            ),
        ),
        grouped=False, positions=("max_position_embeddings",), positions_offset=2,
    ),
    "bitnet": Family(
        doc="BitNet: a norm before each output projection.",
        traits=Traits(sub_norm="attn_sub_norm", mlp_sub_norm="ffn_sub_norm"), flags=(BIASED,),
    ),
    "codegen": Family(
        doc="CodeGen: parallel block, fused QKV, biased head.",
        traits=Traits(
            norm_kind="layer", before=("ln_1",), between=(),
            attention_names=AttentionNames(at="attn", fused="qkv_proj", o="out_proj"), mlp_names=("fc_in", "fc_out"),
            mlp_bias=True, dropout=True, head_bias=True, names=TRANSFORMER,
        ),
        grouped=False, ffn_multiple=4,
    ),
    "ctrl": Family(
        doc="CTRL: sinusoidal positions, biased head, tied.",
        traits=Traits(
            tied=True, norm_kind="layer", before=("layernorm1",), between=("layernorm2",), qkv_bias=True, o_bias=True,
            attention_names=AttentionNames(at="multi_head_attention", q="Wq", k="Wk", v="Wv", o="dense"),
            mlp_at="ffn", mlp_names=("0", "2"), mlp_bias=True, dropout=True, head_bias=True,
            names=DecoderNames(embed="transformer.w", layers="transformer.h", norm="transformer.layernorm"),
        ),
        grouped=False,
    ),
    "cohere_compass_text": Family(
        doc="North Micro's text decoder: Command's layer, one norm, attention and MLP side by side.",
        traits=Traits(tied=True, norm_kind="layer_no_bias", between=()), flags=(BIASED,), reach=Reach(default=4096),
    ),
    "cwm": Family(doc="CWM: full attention on the first of every four layers.", flags=(MLP_BIASED,),
                  reach=Reach(default=8192, pattern="first", period=4)),
    "diffllama": Family(
        doc="DiffLlama: each head is the difference of two maps.",
        traits=Traits(
            differential=True,
            extras=tuple(
                Extra(name=f"self_attn.lambda_{name}", shape=("head_dim",)) for name in ("q1", "k1", "q2", "k2")
            )
        ),
        flags=(BIASED,),
    ),
    "doge": Family(
        doc="Doge: a mask made from the values, learned residuals.",
        traits=Traits(
            qk_norm="head",
            extras=(
                Extra(name="input_residual", shape=("hidden",)),
                Extra(name="post_attention_residual", shape=("hidden",)),
                Extra(name="self_attn.A", shape=("kv_heads",)),
            ),
            projections=(Projection(name="self_attn.dt_proj", into="key", out="kv_heads"),),
        ),
        flags=(*LLAMA_FLAGS, Flag(key="attention_bias", sets=("projections",),
               value=(Projection(name="self_attn.dt_proj", into="key", out="kv_heads", bias=True),))),
        refused=("is_moe",), reach=ALL,
    ),
    "emu3_text_model": LLAMA,
    "ernie4_5": Family(
        doc="ERNIE 4.5 dense.", traits=Traits(tied=True),
        flags=(Flag(key="use_bias", sets=("qkv_bias", "o_bias", "mlp_bias")),),
    ),
    "exaone": LLAMA,
    "exaone4": Family(
        doc="EXAONE 4: norms after attention and MLP, three windowed layers to one full.",
        traits=Traits(**POST, qk_norm="head"),
        reach=Reach(pattern="last", period=4, period_key="sliding_window_pattern"),
    ),
    "gpt-sw3": Family(
        doc="GPT-SW3: GPT-2's class.",
        traits=Traits(
            tied=True, norm_kind="layer", before=("ln_1",), between=("ln_2",), qkv_bias=True, o_bias=True,
            attention_names=AttentionNames(at="attn", fused="c_attn", o="c_proj"), mlp_names=("c_fc", "c_proj"),
            mlp_bias=True, dropout=True, names=TRANSFORMER,
        ),
        grouped=False, ffn_multiple=4, positions=("n_positions", "max_position_embeddings"),
    ),
    "gpt_bigcode": Family(
        doc="StarCoder 1, SantaCoder: GPT-2 with one key and value head.",
        traits=Traits(
            tied=True, norm_kind="layer", before=("ln_1",), between=("ln_2",), qkv_bias=True, o_bias=True,
            attention_names=AttentionNames(at="attn", fused="c_attn", o="c_proj"), mlp_names=("c_fc", "c_proj"),
            mlp_bias=True, dropout=True, names=TRANSFORMER,
        ),
        single_kv="multi_query", ffn_multiple=4, positions=("n_positions", "max_position_embeddings"),
    ),
    "gpt_neo": Family(
        doc="GPT-Neo: learned positions, a window on every other layer, biases but on queries, keys and values.",
        traits=Traits(
            tied=True, norm_kind="layer", before=("ln_1",), between=("ln_2",), o_bias=True,
            attention_names=AttentionNames(at="attn.attention", o="out_proj"), mlp_names=("c_fc", "c_proj"),
            mlp_bias=True, dropout=True, names=TRANSFORMER,
        ),
        grouped=False, ffn_multiple=4, positions=("max_position_embeddings",),
        reach=Reach(window="window_size", default=256, types="attention_layers", pattern="first", period=2),
    ),
    "gpt_neox_japanese": Family(
        doc="GPT-NeoX Japanese: no biases but one in the last layer.",
        traits=Traits(
            tied=True, norm_kind="layer", mlp_names=("dense_h_to_4h", "dense_4h_to_h"), dropout=True,
            attention_names=AttentionNames(at="attention", fused="query_key_value", o="dense"),
            names=DecoderNames(
                embed="gpt_neox_japanese.embed_in", layers="gpt_neox_japanese.layers",
                norm="gpt_neox_japanese.final_layer_norm", head="embed_out",
            ),
        ),
        grouped=False, ffn_multiple=4, ffn_multiple_key="intermediate_multiple_size",
        when={"last": {"extras": (Extra(name="attention.dense_bias", shape=("hidden",)),)}},
    ),
    "granite": LLAMA,
    "granite_swa": Family(
        doc="Granite with windows: sinks, full attention on the first of every four layers.",
        traits=Traits(tied=True, sinks=True), flags=LLAMA_FLAGS, reach=Reach(pattern="first", period=4),
    ),
    "helium": Family(doc="Helium.", flags=(QKV_BIASED, MLP_BIASED)),
    "hunyuan_v1_dense": Family(
        doc="Hunyuan dense: norms of head width on queries and keys.",
        traits=Traits(qk_norm="head", qk_norm_names=("query_layernorm", "key_layernorm")), flags=(BIASED,),
    ),
    "hyperclovax": Family(
        doc="HyperCLOVA X: norms after attention and MLP where switched on.",
        flags=(*LLAMA_FLAGS, Flag(key="use_post_norm", sets=("between",), default=True,
                                  value=("post_norm1", "post_attention_layernorm")),
               Flag(key="use_post_norm", sets=("after",), default=True, value=("post_norm2",))),
    ),
    "internlm3": LLAMA,
    "iquestcoder": LLAMA,
    "jais2": Family(
        doc="Jais 2: layer norms, biases, two-matrix MLP.", traits=Traits(norm_kind="layer", mlp_names=TWO),
        flags=(Flag(key="attention_bias", sets=("qkv_bias", "o_bias"), default=True),
               Flag(key="mlp_bias", sets=("mlp_bias",), default=True)),
    ),
    "ministral3": Family(doc="Ministral 3.", reach=ALL),
    "modernbert-decoder": Family(
        doc="Ettin decoders: ModernBERT's layers, causal, windows but on the first of every three layers.",
        traits=Traits(
            tied=True, norm_kind="layer_no_bias", before=("attn_norm",), between=("mlp_norm",),
            attention_names=AttentionNames(at="attn", o="Wo"), mlp_names=("Wi", "Wo"), head_bias=True,
            names=DecoderNames(
                embed="model.embeddings.tok_embeddings", layers="model.layers", norm="model.final_norm", head="decoder"
            ),
        ),
        flags=(BIASED, MLP_BIASED, Flag(key="norm_bias", sets=("norm_kind",), value="layer"),
               Flag(key="decoder_bias", sets=("head_bias",), default=True, off=False)),
        grouped=False, when={"first": {"before": ()}}, embedding_norm="model.embeddings.norm",
        head_transform=("lm_head.dense", "lm_head.norm"),
        reach=Reach(window="local_attention", default=128, pattern="first", period=3,
                    period_key="global_attn_every_n_layers"),
    ),
    "nanochat": Family(
        doc="nanochat: norms without weights, two-matrix MLP.",
        traits=Traits(norm_kind="plain", mlp_names=("fc1", "fc2"), qk_norm="head", qk_norm_kind="plain"),
        flags=(BIASED,),
    ),
    "olmo3": Family(
        doc="OLMo 3: norms after attention and MLP, three windowed layers to one full.",
        traits=Traits(**POST, qk_norm="full"), flags=(BIASED,), reach=Reach(default=4096, pattern="last", period=4),
    ),
    "openai-gpt": Family(
        doc="GPT-1: norms after attention and MLP, none at the end.",
        traits=Traits(
            tied=True, norm_kind="layer", final_norm=None, before=(), between=("ln_1",), after=("ln_2",),
            qkv_bias=True, o_bias=True, attention_names=AttentionNames(at="attn", fused="c_attn", o="c_proj"),
            mlp_names=("c_fc", "c_proj"), mlp_bias=True, dropout=True,
            names=DecoderNames(
                embed="transformer.tokens_embed", positions="transformer.positions_embed", layers="transformer.h"
            ),
        ),
        grouped=False, ffn=("n_inner_never",), ffn_multiple=4, positions=("n_positions",),
    ),
    "persimmon": Family(
        doc="Persimmon: fused QKV, layer norms, norms of head width on queries and keys.",
        traits=Traits(
            norm_kind="layer", attention_names=AttentionNames(fused="query_key_value", o="dense"), qkv_bias=True,
            o_bias=True, qk_norm_kind="layer", qk_norm_names=("q_layernorm", "k_layernorm"),
            mlp_names=("dense_h_to_4h", "dense_4h_to_h"), mlp_bias=True,
            names=DecoderNames(norm="model.final_layernorm"),
        ),
        flags=(Flag(key="qk_layernorm", sets=("qk_norm",), default=True, value="head"),), grouped=False,
    ),
    "seed_oss": Family(
        doc="Seed-OSS.", flags=(Flag(key="attention_bias", sets=("qkv_bias",), default=True),
                                Flag(key="attention_out_bias", sets=("o_bias",)), MLP_BIASED),
    ),
    "vaultgemma": Family(
        doc="VaultGemma: Gemma 2 without the norms after.",
        traits=Traits(tied=True, between=("pre_feedforward_layernorm",)), flags=(BIASED,),
        reach=Reach(default=4096, pattern="last", period=2),
    ),
    "xglm": Family(
        doc="XGLM: sinusoidal positions.",
        traits=Traits(
            tied=True, norm_kind="layer", **BART_NORMS, attention_names=AttentionNames(o="out_proj"), qkv_bias=True,
            o_bias=True, mlp_at="", mlp_names=("fc1", "fc2"), mlp_bias=True, dropout=True,
            names=DecoderNames(norm="model.layer_norm"),
        ),
        grouped=False,
    ),
    "minicpm3": Family(doc="MiniCPM 3: latent attention.", traits=Traits(tied=True), latent={}),
    "youtu": Family(doc="Youtu-LLM: latent attention, tied.", traits=Traits(tied=True), latent={}),
    "moshi": Family(
        doc="Moshi's text decoder: fused gate and up, one spare row in the embedding.",
        traits=Traits(
            mlp_names=("fc1", "fc2"), mlp_fused=True,
            attention_names=AttentionNames(q="q_proj.linear", k="k_proj.linear", v="v_proj.linear", o="o_proj.linear"),
        ),
        embedding_offset=1, ffn_halved=True, reach=Reach(default=3000, pattern="all"),
    ),
}  # fmt: skip

FAMILIES = {model_type: reader(family) for model_type, family in TABLE.items()}
