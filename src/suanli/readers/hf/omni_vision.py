"""The thinkers of Qwen-Omni on one picture: their ears are held and do not run."""

from __future__ import annotations

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Conv, Embedding, Linear
from suanli.readers.blocks import AttentionNames, Node, norm
from suanli.readers.config import Config
from suanli.readers.hf.composed import Language, with_vision
from suanli.readers.hf.native_vision import Merging, deep_tower, windowed_tower
from suanli.readers.hf.towers import TowerLayer, heads_of, tower_stack
from suanli.readers.hf.vision_language import idle, with_idle

EARS = "model.audio_tower"
THRICE_HALVED = 8


def _layers(audio: Config, *, k_bias: bool) -> tuple[int, tuple[Node, ...]]:
    """Whisper's layers and the norm after them, with their width."""
    h = audio.need("d_model")
    heads = heads_of(audio, h, "encoder_attention_heads")
    layer = TowerLayer(
        hidden=h, heads=heads, ffn=audio.need("encoder_ffn_dim"), norms=("self_attn_layer_norm", "final_layer_norm"),
        mlp_at="", k_bias=k_bias,
    )  # fmt: skip
    stacked = tower_stack(f"{EARS}.layers", audio.layers("encoder_layers"), layer)
    return h, (*stacked, norm(f"{EARS}.ln_post", h, "layer"))


def read_qwen2_5_omni(config: Config, name: str) -> Arch:
    """Qwen2.5-Omni's thinker: Qwen2.5-VL's tower with queries, keys and values apart."""
    audio = config.part("audio_config")
    h, layers = _layers(audio, k_bias=False)
    out, mels = audio.need("output_dim"), audio.need("num_mel_bins")
    ears = idle(
        Conv(name=f"{EARS}.conv1", in_channels=mels, out_channels=h, kernel=(3,), in_size=(1,), out_size=(1,)),
        Conv(name=f"{EARS}.conv2", in_channels=h, out_channels=h, kernel=(3,), in_size=(1,), out_size=(1,)),
        Embedding(name=f"{EARS}.audio_bos_eos_token", num=2, dim=out),
        *layers,
        Linear(name=f"{EARS}.proj", in_features=h, out_features=out, bias=True),
    )
    names = AttentionNames(at="attn", q="q", k="k", v="v", o="proj")
    _, vision = windowed_tower(config, "model.visual", names)
    return with_vision(config, name, with_idle(vision), Language(default="qwen2_5_omni_text"), more=(ears,))


def _flat_conv(name: str, c_in: int, c_out: int) -> Conv:
    return Conv(
        name=f"{EARS}.{name}", in_channels=c_in, out_channels=c_out, kernel=(3, 3), in_size=(1, 1), out_size=(1, 1)
    )


def read_qwen3_omni_moe(config: Config, name: str) -> Arch:
    """Qwen3-Omni's thinker: Qwen3-VL's tower before a mixture."""
    audio = config.part("audio_config")
    h, layers = _layers(audio, k_bias=True)
    out, wide = audio.need("output_dim"), audio.need("downsample_hidden_size")
    rows = -(-audio.need("num_mel_bins") // THRICE_HALVED)
    ears = idle(
        *layers,
        _flat_conv("conv2d1", 1, wide),
        _flat_conv("conv2d2", wide, wide),
        _flat_conv("conv2d3", wide, wide),
        Linear(name=f"{EARS}.conv_out", in_features=wide * rows, out_features=h),
        Linear(name=f"{EARS}.proj1", in_features=h, out_features=h, bias=True),
        Linear(name=f"{EARS}.proj2", in_features=h, out_features=out, bias=True),
    )
    merging = Merging(norm="ln_q", names=("mlp.0", "mlp.2"), deeper="merger_list")
    vision = with_idle(deep_tower(config, "model.visual", merging))
    return with_vision(config, name, vision, Language(default="qwen3_omni_moe_text"), more=(ears,))


FAMILIES = {"qwen2_5_omni_thinker": read_qwen2_5_omni, "qwen3_omni_moe_thinker": read_qwen3_omni_moe}
