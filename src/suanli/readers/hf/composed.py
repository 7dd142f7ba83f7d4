"""A decoder read from its nested description with something before it: the parts every multimodal family shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from suanli.errors import ConfigError
from suanli.nouns.arch import TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Elementwise, Linear
from suanli.readers.blocks import Node, norm
from suanli.readers.config import Config
from suanli.readers.hf.encoder_decoder import ENCODER
from suanli.readers.hf.towers import IMAGE, Vision

# Text decoders that are another type's under a name of their own.
SAME_AS = {
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen2_5_omni_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "qwen3_omni_moe_text": "qwen3_moe",
    "glm4v_text": "glm4",
    "glm_ocr_text": "glm4",
    "glm4v_moe_text": "glm4_moe",
    "emu3_text_model": "llama",
    "paddleocr_vl_text": "ernie4_5",
}


@dataclass(frozen=True, kw_only=True)
class Language:
    """How a family holds its decoder: the part's name, its type where the part does not say, where it lives.

    `tied` is what the family takes where its own description does not say; `nested` decoders are whole models with
    a head and a tie of their own.
    """

    part: str = "text_config"
    default: str = "llama"
    at: str = "model.language_model"
    tied: bool = False
    nested: bool = False
    flat: bool = False
    more: Mapping[str, object] = field(default_factory=dict)


def read_language(config: Config, name: str, language: Language) -> Arch:
    """The decoder of the nested description. Raises ConfigError with its faults and those found before."""
    from suanli.readers.hf import read_hf_config  # noqa: PLC0415  the readers know this one

    flat = language.flat and not config.has(language.part)
    part = config if flat else config.part(language.part)
    tied = config.flag("tie_word_embeddings", default=language.tied)
    values = {**language.more, **part.values}
    if flat or values.get("model_type") is None:
        values["model_type"] = language.default
    _floor_head(values)
    values["model_type"] = SAME_AS.get(str(values["model_type"]), values["model_type"])
    if not language.nested:
        values["tie_word_embeddings"] = tied
    try:
        arch = read_hf_config(values, name, part.where) if part.values else None
    except ConfigError as error:
        config.faults.faults.extend(error.faults)
        arch = None
    if not part.values and not config.faults.faults:
        config.fault("missing_key", "the nested description is empty", language.part)
    config.check()
    assert arch is not None
    return _moved(arch, language)


# Decoders whose heads are as wide as goes into the model's width, which they need not fill.
FLOORED = ("glm4v_moe_text", "qwen3_omni_moe_text")


def _floor_head(values: dict[str, object]) -> None:
    hidden, heads = values.get("hidden_size"), values.get("num_attention_heads")
    floored = values["model_type"] in FLOORED and values.get("head_dim") is None
    if floored and isinstance(hidden, int) and isinstance(heads, int) and 0 < heads <= hidden:
        values["head_dim"] = hidden // heads


def _moved(arch: Arch, language: Language) -> Arch:
    """The decoder where the family holds it: under `at`, its head outside unless it is a nested model."""

    def place(name: str) -> str:
        if language.nested:
            return f"{language.at}.{name}"
        return f"{language.at}.{name.removeprefix('model.')}" if name.startswith("model.") else name

    children = tuple(replace(child, name=place(child.name)) for child in arch.root.children)
    return replace(arch, root=replace(arch.root, children=children))


def with_vision(config: Config, name: str, vision: Vision, language: Language, *, more: tuple[Node, ...] = ()) -> Arch:
    """The whole model: one picture a sample, whose tokens stand among the --seq tokens of text."""
    return joined(read_language(config, name, language), vision, *more)


def joined(text: Arch, vision: Vision, *more: Node) -> Arch:
    """A decoder that has been read with what stands before it."""
    reads = ENCODER if any(stream.name == ENCODER for stream in text.streams) else TOKENS
    streams = tuple(
        replace(stream, extra=stream.extra + vision.tokens) if stream.name == reads else stream
        for stream in text.streams
    )
    side = "decoder" if reads == TOKENS else "encoder"
    seen = f"{vision.note}; the {side}'s positions are --seq tokens of text and {vision.tokens:,} of {vision.what}"
    return replace(
        text,
        root=Module(name="", children=(*vision.nodes, *more, *text.root.children)),
        streams=(*streams, *vision.streams),
        task=vision.task,
        notes=(seen, *(note for note in text.notes if note != "text decoder only")),
    )


@dataclass(frozen=True, kw_only=True)
class Projector:
    """Two matrices with an activation between, after an optional norm."""

    at: str = "model.multi_modal_projector"
    names: tuple[str, str] = ("linear_1", "linear_2")
    norm: str | None = None
    norm_kind: str = "layer"
    norm_width: int | None = None
    bias: bool = True
    second_bias: bool | None = None
    halved: bool = False  # the activation gates one half with the other


def projector(spec: Projector, width: int, inner: int, out: int) -> tuple[Node, ...]:
    """From the tower's `width` through `inner` to the decoder's `out`."""
    first = (norm(f"{spec.at}.{spec.norm}", spec.norm_width or width, spec.norm_kind),) if spec.norm else ()
    passed = inner // 2 if spec.halved else inner
    second = spec.bias if spec.second_bias is None else spec.second_bias
    return (
        *first,
        Linear(name=f"{spec.at}.{spec.names[0]}", in_features=width, out_features=inner, bias=spec.bias),
        Elementwise(name=f"{spec.at}.act", op="activation", width=inner, saved=inner),
        Linear(name=f"{spec.at}.{spec.names[1]}", in_features=passed, out_features=out, bias=second),
    )


def of_image(*nodes: Node) -> Module:
    """Nodes that run once a token of the picture."""
    return Module(name="", stream=IMAGE, children=nodes)


def image_stream(length: int, copies: int = 1) -> Stream:
    """The tokens of the picture, tile by tile, as the projector makes them."""
    return Stream(name=IMAGE, length=length, copies=copies)
