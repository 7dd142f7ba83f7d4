"""Decoders of the GPT shape: layer norms with shifts, two-matrix MLP, each with its own names and biases."""

from __future__ import annotations

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Linear
from suanli.readers.blocks import AttentionNames, norm
from suanli.readers.config import Config
from suanli.readers.decoder import DecoderNames
from suanli.readers.hf.common import (
    HEADS,
    HIDDEN,
    LAYERS,
    SLIDING,
    Traits,
    Widths,
    all_full,
    read_widths,
    standard_decoder,
)

_TRANSFORMER = DecoderNames(
    embed="transformer.wte", positions="transformer.wpe", layers="transformer.h", norm="transformer.ln_f"
)


def _four_times(config: Config, *names: str) -> int:
    """An MLP width that is 4h where the config does not say."""
    hidden = config.need(*HIDDEN)
    return config.whole(*names, default=4 * hidden)


def read_gpt2(config: Config, name: str) -> Arch:
    """GPT-2, and GPT-3 and Megatron models in its shape: learned positions, fused biased QKV, tied head."""
    widths = read_widths(config, ffn=_four_times(config, "n_inner", "intermediate_size"), grouped=False)
    traits = Traits(
        tied=True,
        norm_kind="layer",
        before=("ln_1",),
        between=("ln_2",),
        attention_names=AttentionNames(at="attn", fused="c_attn", o="c_proj"),
        qkv_bias=True,
        o_bias=True,
        mlp_names=("c_fc", "c_proj"),
        mlp_bias=True,
        dropout=True,
        names=_TRANSFORMER,
        learned_positions=config.need("n_positions", "max_position_embeddings"),
    )
    return standard_decoder(config, name, widths, traits)


def read_gptj(config: Config, name: str) -> Arch:
    """GPT-J: parallel block, rotary, no biases in attention, biased head."""
    traits = Traits(
        norm_kind="layer",
        before=("ln_1",),
        between=(),
        attention_names=AttentionNames(at="attn", o="out_proj"),
        mlp_names=("fc_in", "fc_out"),
        mlp_bias=True,
        dropout=True,
        head_bias=True,
        names=_TRANSFORMER,
    )
    widths = read_widths(config, ffn=_four_times(config, "n_inner", "intermediate_size"), grouped=False)
    return standard_decoder(config, name, widths, traits)


def read_gpt_neox(config: Config, name: str) -> Arch:
    """GPT-NeoX and Pythia: parallel block with two norms, fused QKV, untied head."""
    biased = config.flag("attention_bias", default=True)
    traits = Traits(
        norm_kind="layer",
        attention_names=AttentionNames(at="attention", fused="query_key_value", o="dense"),
        qkv_bias=biased,
        o_bias=biased,
        mlp_names=("dense_h_to_4h", "dense_4h_to_h"),
        mlp_bias=True,
        dropout=True,
        parallel=config.flag("use_parallel_residual", default=True),
        names=DecoderNames(embed="gpt_neox.embed_in", layers="gpt_neox.layers", norm="gpt_neox.final_layer_norm"),
    )
    return standard_decoder(config, name, read_widths(config, grouped=False), traits)


def read_opt(config: Config, name: str) -> Arch:
    """OPT: learned positions with two spare rows; the 350M has a narrower embedding with projections."""
    widths = read_widths(config, ffn=config.need("ffn_dim"), grouped=False)
    biased = config.flag("enable_bias", default=True)
    embed_dim = config.whole("word_embed_proj_dim", default=widths.hidden)
    narrow = embed_dim != widths.hidden
    enter = Linear(name="model.decoder.project_in", in_features=embed_dim, out_features=widths.hidden)
    leave = Linear(name="model.decoder.project_out", in_features=widths.hidden, out_features=embed_dim)
    pre_norm = config.flag("do_layer_norm_before", default=True)
    positions = config.need("max_position_embeddings")
    traits = Traits(
        tied=True,
        norm_kind="layer",
        final_norm="layer" if pre_norm else None,
        before=("self_attn_layer_norm",),
        between=("final_layer_norm",),
        attention_names=AttentionNames(o="out_proj"),
        qkv_bias=biased,
        o_bias=biased,
        mlp_at="",
        mlp_names=("fc1", "fc2"),
        mlp_bias=biased,
        dropout=True,
        names=DecoderNames(
            embed="model.decoder.embed_tokens",
            positions="model.decoder.embed_positions",
            layers="model.decoder.layers",
            norm="model.decoder.final_layer_norm",
        ),
        learned_positions=positions + 2,  # the offset of OPTLearnedPositionalEmbedding
    )
    return standard_decoder(
        config, name, widths, traits, embed_dim=embed_dim, after_embedding=(enter,) if narrow else (),
        before_head=(leave,) if narrow else (),
    )  # fmt: skip


def read_bloom(config: Config, name: str) -> Arch:
    """BLOOM: ALiBi, a norm right after the embedding, fused QKV, tied head."""
    hidden = config.need("hidden_size", "n_embed")
    widths = Widths(
        layers=config.layers(*LAYERS),
        hidden=hidden,
        heads=(heads := config.need(*HEADS, high=1_000_000)),
        kv_heads=heads,
        head_dim=config.head_dim(hidden, heads),
        ffn=4 * hidden,
        vocab=config.need("vocab_size"),
        max_positions=config.maybe("seq_length"),
    )
    traits = Traits(
        tied=True,
        norm_kind="layer",
        attention_names=AttentionNames(at="self_attention", fused="query_key_value", o="dense"),
        qkv_bias=True,
        o_bias=True,
        mlp_names=("dense_h_to_4h", "dense_4h_to_h"),
        mlp_bias=True,
        dropout=True,
        names=DecoderNames(embed="transformer.word_embeddings", layers="transformer.h", norm="transformer.ln_f"),
    )
    first = (norm("transformer.word_embeddings_layernorm", hidden, "layer"),)
    return standard_decoder(config, name, widths, traits, after_embedding=first)


def read_falcon(config: Config, name: str) -> Arch:
    """Falcon: multi-query or grouped, parallel block with one or two norms."""
    heads = config.need("num_attention_heads", "n_head", high=1_000_000)
    new = config.flag("new_decoder_architecture", default=False)
    multi_query = config.flag("multi_query", default=True)
    old_heads = 1 if multi_query else heads
    kv_heads = config.kv_heads(heads, "num_kv_heads", "n_head_kv") if new else old_heads
    widths = read_widths(config, ffn=_four_times(config, "ffn_hidden_size"), kv_heads=kv_heads)
    parallel = config.flag("parallel_attn", default=True)
    two_norms = new and config.whole("num_ln_in_parallel_attn", default=2) == 2
    biased = config.flag("bias", default=False)
    traits = Traits(
        tied=True,
        norm_kind="layer",
        before=("ln_attn", "ln_mlp") if two_norms else ("input_layernorm",),
        between=() if new or parallel else ("post_attention_layernorm",),
        parallel=new or parallel,
        attention_names=AttentionNames(at="self_attention", fused="query_key_value", o="dense"),
        qkv_bias=biased,
        o_bias=biased,
        mlp_names=("dense_h_to_4h", "dense_4h_to_h"),
        mlp_bias=biased,
        names=DecoderNames(embed="transformer.word_embeddings", layers="transformer.h", norm="transformer.ln_f"),
    )
    return standard_decoder(config, name, widths, traits)


def read_mpt(config: Config, name: str) -> Arch:
    """MPT: ALiBi, no biases anywhere, tied head."""
    ratio = config.whole("expansion_ratio", default=4, high=1000)
    widths = read_widths(config, ffn=ratio * config.need(*HIDDEN), grouped=False)
    traits = Traits(
        tied=True,
        norm_kind="layer_no_bias",
        before=("norm_1",),
        between=("norm_2",),
        attention_names=AttentionNames(at="attn", fused="Wqkv", o="out_proj"),
        mlp_at="ffn",
        mlp_names=("up_proj", "down_proj"),
        names=DecoderNames(embed="transformer.wte", layers="transformer.blocks", norm="transformer.norm_f"),
    )
    return standard_decoder(config, name, widths, traits)


def read_starcoder2(config: Config, name: str) -> Arch:
    """StarCoder2: biased everywhere, a window on every layer."""
    biased = config.flag("use_bias", default=True)
    window = config.maybe("sliding_window")
    traits = Traits(
        tied=True,
        norm_kind="layer",
        qkv_bias=biased,
        o_bias=biased,
        mlp_names=("c_fc", "c_proj"),
        mlp_bias=biased,
    )
    pattern = all_full if window is None else lambda _: SLIDING
    return standard_decoder(config, name, read_widths(config), traits, pattern=pattern, window=window)


def read_phi(config: Config, name: str) -> Arch:
    """Phi-1, 1.5 and 2: parallel block, one norm, biased head."""
    normed = config.flag("qk_layernorm", default=False)
    traits = Traits(
        norm_kind="layer",
        between=(),
        attention_names=AttentionNames(o="dense"),
        qkv_bias=True,
        o_bias=True,
        qk_norm="head" if normed else None,
        qk_norm_kind="layer",
        qk_norm_names=("q_layernorm", "k_layernorm"),
        mlp_names=("fc1", "fc2"),
        mlp_bias=True,
        head_bias=True,
        dropout=True,
        names=DecoderNames(norm="model.final_layernorm"),
    )
    return standard_decoder(config, name, read_widths(config), traits)


FAMILIES = {
    "gpt2": read_gpt2,
    "gptj": read_gptj,
    "gpt_neox": read_gpt_neox,
    "opt": read_opt,
    "bloom": read_bloom,
    "falcon": read_falcon,
    "mpt": read_mpt,
    "starcoder2": read_starcoder2,
    "phi": read_phi,
}
