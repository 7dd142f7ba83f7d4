"""Inputs of a transformers model for a whole forward pass, words with a picture or a sound among them, by what the
class says it takes. Whole numbers have values (which positions are the picture's, how large it is); so do pixels.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.readers.torch_module.load import import_torch

GRID = (20, 12)  # patches of a picture where any size goes: no square, and not a whole number of the usual windows
WIDER = (8, 20)
_ROUNDS = 320  # samples of a wave a token of the length asked for
FIRST_PLAIN = 5  # smallest number of a word that could be nothing else


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a forward pass is fed: a class with its config, the length of the text, and which of two sizes of picture
    or sound. `keys` say that size to the readers of configs; `extra` tokens stand for it among the words.
    """

    model: Any
    values: Mapping[str, Any]
    seq: int
    second: bool = False
    extra: int = 0
    keys: Mapping[str, Any] = field(default_factory=dict)

    @property
    def takes(self) -> frozenset[str]:
        """Names of the forward's arguments."""
        return frozenset(inspect.signature(self.model.forward).parameters)

    def part(self, *names: str) -> Mapping[str, Any]:
        """The first of these descriptions of a part that is there; nothing else."""
        return next((value for name in names if isinstance(value := self.values.get(name), Mapping)), {})

    @property
    def vision(self) -> Mapping[str, Any]:
        """The description of what sees, which may be the whole's."""
        return self.part("vision_config", "encoder", "vq_config") or self.values

    @property
    def audio(self) -> Mapping[str, Any]:
        """The description of what hears, which may be the whole's."""
        return self.part("audio_config", "encoder_config", "speech_encoder", "audio_encoder") or self.values


# --- sizes --------------------------------------------------------------------------------------------------------


def size_keys(asked: Asked) -> dict[str, Any]:
    """How large the picture or long the sound is, in the keys that readers of configs take."""
    takes = asked.takes
    if "pixel_values" in takes:
        size = _any_size(asked)
        return {} if size is None else {"image_size": list(size)}
    if "input_values" in takes and asked.values.get("max_length") is None:
        return {"audio_samples": 20_150 if asked.second else 16_000}
    if "input_features" in takes and asked.values.get("model_type") in ("wav2vec2-bert", "speech_to_text"):
        return {"audio_frames": 77 if asked.second else 100}
    return {}


def _any_size(asked: Asked) -> tuple[int, int] | None:
    """A size for towers that take every one; None where the config gives the only one."""
    patch = _patch(asked)
    if "image_grid_pinpoints" in asked.values:
        side = int(asked.vision.get("image_size") or 28)
        return (side + side // 2, side * 2 - side // 4) if not asked.second else (side * 2, side)
    packed = {"image_grid_thw", "spatial_shapes"} & asked.takes
    native = "image_sizes" in asked.takes and asked.vision.get("model_type") == "pixtral"
    if packed or native:
        rows, columns = WIDER if asked.second else GRID
        return rows * patch, columns * patch
    alone = "input_ids" not in asked.takes and "vision_config" not in asked.values
    if asked.second and alone:
        height, width = picture_size(asked)
        return _stretched(height), _stretched(width) + 32
    return None


def _stretched(side: int) -> int:
    return side + 32


def _patch(asked: Asked) -> int:
    value = asked.vision.get("patch_size") or asked.values.get("encoder_patch_size") or 16
    return int(value[0] if isinstance(value, list | tuple) else value)


def picture_size(asked: Asked) -> tuple[int, int]:
    """Height and width of the picture: the one asked for, else the config's own."""
    for values in (asked.keys, asked.vision, asked.values):
        size = values.get("image_size") or values.get("resolution")
        if isinstance(size, Mapping):
            return int(size["height"]), int(size["width"])
        if isinstance(size, list | tuple) and size:
            return int(size[0]), int(size[-1])
        if isinstance(size, int):
            return size, size
    return 224, 224


# --- tensors ------------------------------------------------------------------------------------------------------


def _ones(*shape: int) -> Any:
    return import_torch().ones(shape, dtype=import_torch().long)


def _floats(asked: Asked, *shape: int) -> Any:
    return import_torch().ones(shape, dtype=asked.model.dtype)


def _numbers(*values: Any) -> Any:
    return import_torch().tensor(values, dtype=import_torch().long)


def plain_word(values: Mapping[str, Any]) -> int:
    """A number of a word that no key of a config gives a meaning."""
    meant = set(_meant(values))
    return next(number for number in range(FIRST_PLAIN, 10_000) if number not in meant)


def _meant(values: Mapping[str, Any]) -> Iterator[int]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _meant(value)
        elif any(word in key for word in ("token", "_id", "index")):
            given = value if isinstance(value, list | tuple) else (value,)
            yield from (each for each in given if isinstance(each, int))


FRAMES_AS_WORDS = ("pop2piano",)  # whose frames are as wide as the model and stand in place of words
PLACE_KEYS = (
    "image_token_id", "image_token_index", "image_patch_id", "audio_token_id", "audio_token_index", "media_token_id",
    "media_placeholder_token_id", "video_token_index",
)  # fmt: skip


def _words(asked: Asked, length: int) -> dict[str, Any]:
    """Words, with the numbers that stand for the picture or the sound among them."""
    ids = import_torch().full((1, length), plain_word(asked.values), dtype=import_torch().long)
    made = {"input_ids": ids}
    place = next((asked.values[key] for key in PLACE_KEYS if isinstance(asked.values.get(key), int)), None)
    kinds = _ones(1, length) * 0
    if place is not None and asked.extra:
        ids[:, 1 : 1 + asked.extra] = place
        kinds[:, 1 : 1 + asked.extra] = 1
    if asked.extra and "image_embeds_position_mask" in asked.takes:
        made["image_embeds_position_mask"] = kinds.clone()
        made["image_embeds_position_mask"][:, 1 : 1 + asked.extra] = 1
    for name in ("mm_token_type_ids", "token_type_ids"):
        if asked.extra and place is not None and name in asked.takes:
            made[name] = kinds
    return made


# --- a whole forward ----------------------------------------------------------------------------------------------


def forward_inputs(asked: Asked) -> Iterator[dict[str, Any]]:
    """Ways to call the model, likelier ones first."""
    takes, main = asked.takes, asked.model.main_input_name
    seen = [*_pictures(asked)] if "pixel_values" in takes or "flattened_patches" in takes else []
    heard = [*_sounds(asked)] if not seen and {"input_features", "input_values"} & takes else []
    if not seen and not heard:
        yield from _texts(asked)
        return
    if heard and asked.values.get("model_type") in FRAMES_AS_WORDS:
        wide = _floats(asked, 1, asked.seq, int(asked.values["d_model"]))
        yield {"input_features": wide} | _answer(asked)
        return
    for sense in seen or heard:
        if "input_ids" in takes and main in ("input_ids", "pixel_values"):
            yield sense | _prompted(asked)
        else:
            yield sense | _answer(asked)


def _prompted(asked: Asked) -> dict[str, Any]:
    """Words around a picture or a sound, and what else goes with them."""
    # classes that put the picture before the words themselves have no number that stands for it
    marked = any(isinstance(asked.values.get(key), int) for key in PLACE_KEYS)
    marked = marked or "image_embeds_position_mask" in asked.takes
    made = _words(asked, asked.seq + (asked.extra if marked else 0))
    for name in ("qformer_input_ids", "qformer_attention_mask"):
        if name in asked.takes:
            made[name] = _ones(1, asked.seq)
    if "cross_attention_mask" in asked.takes and "aspect_ratio_ids" in asked.takes:
        made["cross_attention_mask"] = _ones(1, asked.seq, 1, int(asked.vision.get("max_num_tiles") or 4))
    return made | _answer(asked)


def _answer(asked: Asked) -> dict[str, Any]:
    """What an encoder–decoder writes."""
    if "decoder_input_ids" not in asked.takes:
        return {}
    return {"decoder_input_ids": _words(asked, asked.seq)["input_ids"]}


def _texts(asked: Asked) -> Iterator[dict[str, Any]]:
    words = {"input_ids": _words(asked, asked.seq)["input_ids"]} | _answer(asked)
    yield words
    torch = import_torch()
    masked = {"attention_mask": torch.zeros(1, 1, asked.seq, asked.seq, dtype=asked.model.dtype)}
    if "attention_mask" in asked.takes:
        yield words | masked
    if "use_cache" in asked.takes:
        yield words | {"use_cache": False}


def _pictures(asked: Asked) -> Iterator[dict[str, Any]]:
    """Pixels as the class wants them: packed patches with their grid, tiles, or one picture."""
    takes, patch = asked.takes, _patch(asked)
    height, width = picture_size(asked)
    channels = int(asked.vision.get("num_channels") or asked.vision.get("in_channels") or 3)
    rows, columns = height // patch, width // patch
    if "image_grid_thw" in takes:
        frames = int(asked.vision.get("temporal_patch_size") or 1)
        grid = {"image_grid_thw": _numbers([1, rows, columns])}
        if "image_merge_sizes" in takes:
            grid["image_merge_sizes"] = _numbers(1)
        flat = _floats(asked, rows * columns, channels * frames * patch * patch)
        yield {"pixel_values": flat} | grid
        yield {"pixel_values": _floats(asked, rows * columns, channels, patch, patch)} | grid
        return
    if "spatial_shapes" in takes:
        yield {
            "pixel_values": _floats(asked, 1, rows * columns, channels * patch * patch),
            "spatial_shapes": _numbers([rows, columns]), "pixel_attention_mask": _ones(1, rows * columns),
        }  # fmt: skip
        return
    if "flattened_patches" in takes:
        yield {"flattened_patches": _floats(asked, 1, int(asked.vision.get("max_num_patches") or 2048),
                                            channels * patch * patch + 2)}  # fmt: skip
        return
    yield from _unpacked(asked, channels, (height, width))


def _unpacked(asked: Asked, channels: int, size: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """Whole pictures, one or several tiles of each."""
    takes = asked.takes
    if "image_grid_pinpoints" in asked.values:
        side = int(asked.vision.get("image_size") or 28)
        tiles = _tiles(asked, size)
        yield {"pixel_values": _floats(asked, 1, tiles, channels, side, side), "image_sizes": _numbers([*size])}
        return
    if "aspect_ratio_ids" in takes:
        tiles = int(asked.vision.get("max_num_tiles") or 4)
        yield {
            "pixel_values": _floats(asked, 1, 1, tiles, channels, *size), "aspect_ratio_ids": _ones(1, 1),
            "aspect_ratio_mask": _ones(1, 1, tiles),
        }  # fmt: skip
        return
    one = {"pixel_values": _floats(asked, 1, channels, *size)}
    if "image_sizes" in takes and asked.vision.get("model_type") == "pixtral":
        one["image_sizes"] = _numbers([*size])
    if "high_res_pixel_values" in takes:
        high = int(asked.part("high_res_vision_config").get("image_size") or 1024)
        one["high_res_pixel_values"] = _floats(asked, 1, channels, high, high)
    if "pixel_attention_mask" in takes:
        yield {"pixel_values": _floats(asked, 1, 1, channels, *size)}
    if "pixel_values_images" in takes:
        yield {"pixel_values_images": one["pixel_values"]}
    yield one
    yield {"pixel_values": _floats(asked, 1, 1, channels, *size)}
    patch = _patch(asked)
    rows, columns = size[0] // patch, size[1] // patch
    yield {"pixel_values": _floats(asked, 1, rows * columns, channels * patch * patch)}


def _tiles(asked: Asked, size: tuple[int, int]) -> int:
    """Tiles transformers cuts a picture into, the small whole among them."""
    from transformers.models.llava_next.modeling_llava_next import image_size_to_num_patches  # noqa: PLC0415

    side = int(asked.vision.get("image_size") or 28)
    return int(image_size_to_num_patches(list(size), asked.values["image_grid_pinpoints"], side))


def _sounds(asked: Asked) -> Iterator[dict[str, Any]]:
    """A wave, or the frames of a spectrogram, bins first or last."""
    values = asked.audio
    if "input_values" in asked.takes:
        if isinstance(values.get("max_length"), int) and "num_mel_bins" in values:
            yield {"input_values": _floats(asked, 1, values["max_length"], values["num_mel_bins"])}
        length = int(asked.keys.get("audio_samples") or 16_000)
        yield {"input_values": _floats(asked, 1, length)}
        yield {"input_values": _floats(asked, 1, 1, length)}
        return
    bins = next((values[key] for key in _BINS if isinstance(values.get(key), int)), 80)
    if asked.keys.get("audio_frames"):
        yield {"input_features": _floats(asked, 1, asked.keys["audio_frames"], bins)}
        return
    frames = 2 * int(values.get("max_source_positions") or 1500)
    masks = [name for name in ("input_features_mask", "feature_attention_mask") if name in asked.takes]
    mask = {name: _ones(1, frames) for name in masks}
    yield {"input_features": _floats(asked, 1, bins, frames)} | mask
    yield {"input_features": _floats(asked, 1, frames, bins)} | mask


_BINS = ("num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel", "feature_size", "input_dim")
