"""Classes that `architectures` names and that are not what their type is usually: classifiers made of a part of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from suanli.nouns.arch import SAMPLE, Arch, Module
from suanli.nouns.layers import Layer, Linear, Parameter
from suanli.readers.config import Config
from suanli.readers.hf import vit_like
from suanli.readers.hf.encoder_decoder import ENCODER, read_whisper
from suanli.readers.hf.vision import labels_of


def read_whisper_classifier(config: Config, name: str) -> Arch:
    """Whisper's encoder, a narrow matrix, and classes of the mean frame."""
    whole = read_whisper(config, name)
    width = config.whole("classifier_proj_size", default=256)
    labels = config.maybe("num_labels") or labels_of(config) or 2
    weighted = config.flag("use_weighted_layer_sum", default=False)
    config.check()
    assert whole.shape is not None
    encoder = _without_model(whole.root.children[0])
    layers = config.layers("encoder_layers")
    nodes = (
        encoder,
        *((Parameter(name="layer_weights", shape=(layers + 1,)),) if weighted else ()),
        Module(
            name="", stream=ENCODER,
            children=(Linear(name="projector", in_features=whole.shape.hidden, out_features=width, bias=True),),
        ),
        Module(
            name="", stream=SAMPLE,
            children=(Linear(name="classifier", in_features=width, out_features=labels, bias=True),),
        ),
    )  # fmt: skip
    streams = tuple(stream for stream in whole.streams if stream.name == ENCODER)
    return replace(
        whole, root=Module(name="", children=nodes), streams=streams, main_stream=ENCODER, unit="frame",
        task="audio-classification", shape=replace(whole.shape, num_layers=layers), max_positions=None,
    )  # fmt: skip


def _without_model(node: Module | Layer) -> Module | Layer:
    """The same under names that do not begin with `model.`."""
    short = replace(node, name=node.name.removeprefix("model."))
    if isinstance(short, Module):
        return replace(short, children=tuple(_without_model(child) for child in short.children))
    return short


def read_mllama_text(config: Config, name: str) -> Arch:
    """Llama 3.2 Vision's decoder alone holds layers that look at a picture it is never given."""
    config.fault(
        "unsupported", "the text decoder of this type without its pictures is not read by formula", "architectures",
        hint="Name MllamaForConditionalGeneration for the whole, or use --trace.",
    )  # fmt: skip
    config.check()
    raise AssertionError(name)


CLASSES: dict[tuple[str, str], Callable[[Config, str], Arch]] = {
    ("whisper", "WhisperForAudioClassification"): read_whisper_classifier,
    ("clip", "CLIPForImageClassification"): vit_like.FAMILIES["metaclip_2"],  # the same in other weights
    ("mllama", "MllamaForCausalLM"): read_mllama_text,
}
