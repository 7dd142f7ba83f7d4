"""All families by `model_type`: each module beside this one holds the readers of a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from suanli.errors import ConfigError, Fault, nearest_names
from suanli.nouns.arch import Arch
from suanli.readers.config import Config, brief
from suanli.readers.hf import (
    audio_language,
    bert_like,
    caption_vision,
    causal_encoders,
    causal_halves,
    cross_vision,
    dense_table,
    encoder_decoder,
    glm_vision,
    gpt_like,
    hybrids,
    late_gemma,
    lfm,
    linear_attention,
    llama_like,
    mamba,
    mixture_table,
    mixtures,
    native_vision,
    not_causal,
    omni_vision,
    other_classes,
    packed_vision,
    query_vision,
    resnet,
    sam_vision,
    tile_vision,
    two_streams,
    unusual,
    vision,
    vision_language,
    vq_vision,
    zamba,
    zaya,
)

# A tower or an encoder before a decoder; the tower has a size of its own, whatever the picture's.
COMPOSED: dict[str, Callable[[Config, str], Arch]] = {
    **vision_language.FAMILIES,
    **native_vision.FAMILIES,
    **glm_vision.FAMILIES,
    **packed_vision.FAMILIES,
    **omni_vision.FAMILIES,
    **tile_vision.FAMILIES,
    **query_vision.FAMILIES,
    **cross_vision.FAMILIES,
    **vq_vision.FAMILIES,
    **sam_vision.FAMILIES,
    **caption_vision.FAMILIES,
    **audio_language.FAMILIES,
}
READERS: dict[str, Callable[[Config, str], Arch]] = {
    **llama_like.FAMILIES,
    **gpt_like.FAMILIES,
    **mixtures.FAMILIES,
    **dense_table.FAMILIES,
    **mixture_table.FAMILIES,
    **late_gemma.FAMILIES,
    **unusual.FAMILIES,
    **two_streams.FAMILIES,
    **bert_like.FAMILIES,
    **not_causal.FAMILIES,
    **encoder_decoder.FAMILIES,
    **vision.FAMILIES,
    **resnet.FAMILIES,
    **mamba.FAMILIES,
    **linear_attention.FAMILIES,
    **hybrids.FAMILIES,
    **zamba.FAMILIES,
    **lfm.FAMILIES,
    **zaya.FAMILIES,
    **COMPOSED,
}

# Types of which one class is a causal language model and another is not: `architectures` says which is meant.
CAUSAL: dict[str, Callable[[Config, str], Arch]] = {
    **causal_encoders.CAUSAL,
    **causal_halves.CAUSAL,
    **two_streams.CAUSAL,
    **linear_attention.CAUSAL,
}
CAUSAL_CLASSES = ("ForCausalLM", "LMHeadModel", "BertGenerationDecoder")


NESTED = {"dots3_note", "emu3", "llama4"}  # whose causal class is the text decoder that `text_config` describes


def _read_nested(config: Config, name: str) -> Arch:
    """The text decoder of a model for more than text."""
    part = config.part("text_config")
    config.check()
    return read_family(dict(part.values), name, part.where)


CAUSAL |= dict.fromkeys(NESTED, _read_nested)


def _reader(model_type: object, values: Mapping[str, Any]) -> Callable[[Config, str], Arch] | None:
    """The reader of a type: of its causal class where `architectures` names that, or where no other is known."""
    if not isinstance(model_type, str):
        return None
    classes = values.get("architectures")
    first = classes[0] if isinstance(classes, list | tuple) and classes else None
    if isinstance(first, str) and (model_type, first) in other_classes.CLASSES:
        return other_classes.CLASSES[model_type, first]
    causal = isinstance(first, str) and first.endswith(CAUSAL_CLASSES)
    if causal or first is None:
        known = (CAUSAL, READERS) if causal else (READERS, CAUSAL)
        return known[0].get(model_type) or known[1].get(model_type)
    return READERS.get(model_type)


def read_family(values: Mapping[str, Any], name: str, where: str = "config") -> Arch:
    """The architecture a config describes. Raises ConfigError naming every missing, bad or contradictory key."""
    if not isinstance(values, Mapping):
        raise ConfigError(
            Fault(code="bad_config", message="a model description is a mapping of keys", where=where, got=brief(values))
        )
    model_type = values.get("model_type")
    read = _reader(model_type, values)
    if read is None:
        raise _unknown_type(model_type, values, where)
    return read(Config(values, where), name)


def _unknown_type(model_type: object, values: Mapping[str, Any], where: str) -> ConfigError:
    remote = "auto_map" in values
    known = len({*READERS, *CAUSAL})
    hint = (
        f"Known: {known} types; `suanli models` lists presets. --trace counts any type transformers has. "
        "Layer expressions describe anything else."
    )
    if remote:
        hint = "The config names code of its own, which is never run. " + hint
    missing = model_type is None
    return ConfigError(
        Fault(
            code="missing_key" if missing else "unknown_model_type",
            message="missing key model_type" if missing else f"unknown model_type {brief(model_type)}",
            where=f"{where}: model_type",
            nearest=nearest_names(model_type, {**CAUSAL, **READERS}) if isinstance(model_type, str) else (),
            hint=hint,
        )
    )
