"""Which model types transformers has for a task, and the class of each."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

# A task as it is called here, the mapping of transformers and the class that builds its models.
MAPPINGS: dict[str, tuple[str, str]] = {
    "causal-lm": ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "AutoModelForCausalLM"),
    "masked-lm": ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "AutoModelForMaskedLM"),
    "seq2seq-lm": ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "AutoModelForSeq2SeqLM"),
    "image-text-to-text": ("MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES", "AutoModelForImageTextToText"),
    "image-classification": ("MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES", "AutoModelForImageClassification"),
    "speech-seq2seq": ("MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES", "AutoModelForSpeechSeq2Seq"),
    "audio-classification": ("MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES", "AutoModelForAudioClassification"),
}


@dataclass(frozen=True, order=True)
class TypeOfTask:
    """A model type in a mapping, and the class it is there; the first where several are."""

    mapping: str
    model_type: str
    class_name: str


def types_of_tasks() -> tuple[TypeOfTask, ...]:
    """Every model type of every mapping, in order."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    found = []
    for mapping, (names, _) in MAPPINGS.items():
        for model_type, classes in sorted(getattr(auto, names).items()):
            found.append(TypeOfTask(mapping, model_type, classes if isinstance(classes, str) else classes[0]))
    return tuple(found)
