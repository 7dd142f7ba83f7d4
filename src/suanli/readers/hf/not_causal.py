"""Every family that is no causal decoder: encoders, encoder–decoders, pictures and sound, in one table."""

from __future__ import annotations

from collections.abc import Callable

from suanli.nouns.arch import Arch
from suanli.readers.config import Config
from suanli.readers.hf import (
    convnets,
    encoders,
    encoders_other,
    encoders_own,
    encoders_rotary,
    mixed_nets,
    ocr_nets,
    odd_ones,
    seq2seq,
    sound,
    speech,
    stages,
    t5_like,
    vit_like,
)

FAMILIES: dict[str, Callable[[Config, str], Arch]] = {
    **encoders.FAMILIES,
    **encoders_own.FAMILIES,
    **encoders_other.FAMILIES,
    **encoders_rotary.FAMILIES,
    **seq2seq.FAMILIES,
    **t5_like.FAMILIES,
    **sound.FAMILIES,
    **speech.FAMILIES,
    **vit_like.FAMILIES,
    **stages.FAMILIES,
    **convnets.FAMILIES,
    **ocr_nets.FAMILIES,
    **mixed_nets.FAMILIES,
    **odd_ones.FAMILIES,
}
