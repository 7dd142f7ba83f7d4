"""Sound before a decoder: Whisper's encoder, a projector, and a decoder that reads 30 seconds among its tokens."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.nouns.arch import SAMPLE, Arch, Module, Stream
from suanli.nouns.layers import Conv, Embedding, Linear
from suanli.readers.blocks import AttentionNames, Node, norm
from suanli.readers.config import Config, StandIn
from suanli.readers.hf.composed import Language, Projector, image_stream, of_image, projector, with_vision
from suanli.readers.hf.towers import TowerLayer, Vision, heads_of, tower_stack

FRAMES, POOLED = "frames", "pooled frames"
AT = "model.audio_tower"
MERGED = 4  # frames that GLM-ASR makes one token


@dataclass(frozen=True, kw_only=True)
class Ears:
    """An encoder that has been read."""

    nodes: tuple[Node, ...]
    width: int
    ffn: int
    frames: int


def _encoder(audio: Config, layer: TowerLayer, layers: int, frames: int, *, learned: bool) -> tuple[Node, ...]:
    """Two convolutions over the spectrogram, then layers on half as many frames."""
    h, mels = layer.hidden, audio.need("num_mel_bins")
    waves = (2 * frames,)
    convs = (
        Conv(
            name=f"{AT}.conv1", in_channels=mels, out_channels=h, kernel=(3,), in_size=waves, out_size=waves,
            raw_input=True,
        ),
        Conv(name=f"{AT}.conv2", in_channels=h, out_channels=h, kernel=(3,), in_size=waves, out_size=(frames,)),
    )  # fmt: skip
    table = (Embedding(name=f"{AT}.embed_positions", num=frames, dim=h, role="position"),) if learned else ()
    return (Module(name="", stream=SAMPLE, children=convs), *table, *tower_stack(f"{AT}.layers", layers, layer))


def whisper_ears(config: Config, *, pooled: bool = False) -> Ears:
    """Whisper's encoder; the last norm may come after frames are averaged by twos."""
    audio = config.part("audio_config")
    h = audio.need("hidden_size", "d_model")
    heads = heads_of(audio, h, "num_attention_heads", "encoder_attention_heads")
    ffn = audio.need("intermediate_size", "encoder_ffn_dim")
    layers, frames = audio.layers("num_hidden_layers", "encoder_layers"), audio.need("max_source_positions")
    layer = TowerLayer(
        hidden=h, heads=heads, ffn=ffn, norms=("self_attn_layer_norm", "final_layer_norm"), mlp_at="", k_bias=False
    )
    last = norm(f"{AT}.layer_norm", h, "layer")
    nodes = _encoder(audio, layer, layers, frames, learned=True)
    after = Module(name="", stream=POOLED, children=(last,)) if pooled else last
    return Ears(nodes=(*nodes, after), width=h, ffn=ffn, frames=frames)


def heard(ears: Ears, nodes: tuple[Node, ...], tokens: int) -> Vision:
    """An encoder with a projector that makes `tokens` of its frames."""
    return Vision(
        nodes=(Module(name="", stream=FRAMES, children=ears.nodes), of_image(*nodes)),
        streams=(
            Stream(name=FRAMES, length=ears.frames), Stream(name=POOLED, length=ears.frames // 2), image_stream(tokens),
        ),
        tokens=tokens,
        note=f"one stretch of sound ({ears.frames:,} frames)",
        what="the sound",
        task="audio-text-to-text",
    )  # fmt: skip


def _width(config: Config) -> int:
    return config.part("text_config").need("hidden_size")


def _stacked(config: Config, ears: Ears) -> int:
    """Tokens where as many frames become one as fill the width of the encoder's MLP."""
    elements = ears.frames * ears.width
    if elements % ears.ffn:
        config.fault(
            "contradiction", "the frames are no whole number of tokens", "audio_config",
            got=f"{ears.frames:,} frames of {ears.width:,}, tokens of {ears.ffn:,}",
        )  # fmt: skip
    return max(1, elements // ears.ffn)


def read_voxtral(config: Config, name: str) -> Arch:
    """Voxtral: four frames become a token through two matrices without biases."""
    ears, out = whisper_ears(config), _width(config)
    nodes = projector(Projector(bias=False), ears.ffn, out, out)
    return with_vision(config, name, heard(ears, nodes, _stacked(config, ears)), Language())


def read_glmasr(config: Config, name: str) -> Arch:
    """GLM-ASR: rotary positions in the encoder; four frames become a token."""
    audio = config.part("audio_config")
    h = audio.need("hidden_size")
    heads, ffn = heads_of(audio, h), audio.need("intermediate_size")
    layers, frames = audio.layers("num_hidden_layers"), audio.need("max_position_embeddings")
    layer = TowerLayer(
        hidden=h, heads=heads, kv_heads=audio.kv_heads(heads), ffn=ffn, names=AttentionNames(), k_bias=False,
        norms=("input_layernorm", "post_attention_layernorm"), head_dim=audio.maybe("head_dim"),
    )  # fmt: skip
    nodes = (*_encoder(audio, layer, layers, frames, learned=False), norm(f"{AT}.norm", h, "layer"))
    if ffn != MERGED * h and not isinstance(h, StandIn):
        audio.fault("unsupported", "a token is four frames wide", "intermediate_size", got=f"{ffn:,}, width {h:,}")
    ears, out = Ears(nodes=nodes, width=h, ffn=ffn, frames=frames), _width(config)
    joined = projector(Projector(), ffn, 2 * out, out)
    return with_vision(config, name, heard(ears, joined, _stacked(config, ears)), Language(tied=True))


def read_qwen2_audio(config: Config, name: str) -> Arch:
    """Qwen2-Audio: frames averaged by twos, one matrix."""
    ears, at = whisper_ears(config, pooled=True), "model.multi_modal_projector.linear"
    nodes = (Linear(name=at, in_features=ears.width, out_features=_width(config), bias=True),)
    return with_vision(config, name, heard(ears, nodes, ears.frames // 2), Language(default="qwen2"))


def read_audioflamingo3(config: Config, name: str) -> Arch:
    """Audio Flamingo 3 and Music Flamingo: frames averaged by twos, two matrices."""
    ears, out = whisper_ears(config, pooled=True), _width(config)
    nodes = projector(Projector(bias=config.flag("projector_bias", default=True)), ears.width, out, out)
    return with_vision(config, name, heard(ears, nodes, ears.frames // 2), Language(default="qwen2"))


FAMILIES = {
    "voxtral": read_voxtral,
    "glmasr": read_glmasr,
    "qwen2_audio": read_qwen2_audio,
    "audioflamingo3": read_audioflamingo3,
    "musicflamingo": read_audioflamingo3,
}
