"""Pixels to latent to patches, each size worked out beside it."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.readers.config import Config
from suanli.readers.diffusers.canvas import Usual, patch_of, read_canvas

CLIP = Usual(picture=(480, 832), frames=81)
ROWS: list[tuple[str, dict[str, Any], Usual, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    # what, config, what is usual, patch -> latent, grid
    ("the usual picture", {}, Usual(), (2, 2), (128, 128), (64, 64)),  # 1024 / 8 = 128, / 2 = 64
    ("the config's latent", {"sample_size": 32}, Usual(), (2, 2), (32, 32), (16, 16)),
    ("a latent of two sides", {"sample_size": [32, 48]}, Usual(), (2, 2), (32, 48), (16, 24)),
    ("pixels win", {"sample_size": 32, "image_size": [512, 768]}, Usual(), (2, 2), (64, 96), (32, 48)),
    ("one number is a square", {"image_size": 512}, Usual(), (1, 1), (64, 64), (64, 64)),
    ("a list of one too", {"image_size": [512]}, Usual(), (4, 4), (64, 64), (16, 16)),
    ("cells packed in fours", {"image_size": [512, 768]}, Usual(packed=2), (1, 1), (64, 96), (32, 48)),
    ("a coarser autoencoder", {"image_size": [512, 768]}, Usual(scale=32), (1, 1), (16, 24), (16, 24)),
    ("one the config names", {"vae_scale_factor": 16}, Usual(), (2, 2), (64, 64), (32, 32)),
    ("a clip", {}, CLIP, (1, 2, 2), (21, 60, 104), (21, 30, 52)),  # (81 - 1) / 4 + 1 = 21
    ("a clip of one picture", {"num_frames": 1}, CLIP, (1, 2, 2), (1, 60, 104), (1, 30, 52)),
    ("its own frames", {"sample_frames": 49, "sample_height": 60, "sample_width": 90}, CLIP, (1, 2, 2),
     (13, 60, 90), (13, 30, 45)),
    ("frames in pairs, the last alone", {}, CLIP, (2, 2, 2), (21, 60, 104), (11, 30, 52)),  # 21 / 2, rounded up
    ("frames by sixes", {"num_frames": 19, "vae_scale_factor_temporal": 6}, CLIP, (1, 2, 2), (4, 60, 104), (4, 30, 52)),
]  # fmt: skip


@pytest.mark.parametrize(("what", "values", "usual", "patch", "latent", "grid"), ROWS, ids=[row[0] for row in ROWS])
def test_sizes(
    what: str, values: dict[str, Any], usual: Usual, patch: tuple[int, ...], latent: tuple[int, ...],
    grid: tuple[int, ...],
) -> None:  # fmt: skip
    config = Config(values, "config")
    canvas = read_canvas(config, usual, patch)
    config.check()
    assert (canvas.latent, canvas.grid) == (latent, grid)


NOTES = [
    ({"image_size": [512, 768]}, Usual(),
     "picture 512x768 = latent 64x96, an autoencoder of 8x8 assumed, = 32x48 patches: 1,536 positions"),
    ({}, CLIP, "clip 81x480x832 (assumed) = latent 21x60x104, an autoencoder of 4x8x8 assumed, = 21x30x52 patches: "
     "32,760 positions"),
    ({"image_size": [480, 832]}, CLIP, "clip 81x480x832 (assumed) = latent 21x60x104, "),
    ({"image_size": [480, 832], "num_frames": 81}, CLIP, "clip 81x480x832 = latent 21x60x104, "),
    ({"image_size": 64}, Usual(scale=1), "picture 64x64 = latent 64x64 = 32x32 patches: 1,024 positions"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "usual", "note"), NOTES, ids=range(len(NOTES)))
def test_what_was_assumed_is_said(values: dict[str, Any], usual: Usual, note: str) -> None:
    patch = (1, 2, 2) if usual.frames else (2, 2)
    assert read_canvas(Config(values, "config"), usual, patch).note.startswith(note)


FAULTS = [
    ({"image_size": [500, 512]}, "the picture's height does not divide into patches"),
    ({"image_size": [512, 500]}, "the picture's width does not divide into patches"),
    ({"image_size": [1, 2, 3]}, "image_size is not height and width"),
    ({"image_size": []}, "image_size is not height and width"),
    ({"image_size": "512"}, "image_size is not possible"),
    ({"image_size": [512, -1]}, "image_size is not possible"),
    ({"sample_size": 0}, "sample_size is not possible"),
    ({"sample_height": 8}, "missing key sample_width"),
    ({"vae_scale_factor": 0}, "vae_scale_factor is not possible"),
]


@pytest.mark.parametrize(("values", "message"), FAULTS, ids=[row[1] for row in FAULTS])
def test_sizes_that_cannot_be(values: dict[str, Any], message: str) -> None:
    config = Config(values, "config")
    read_canvas(config, Usual(), (2, 2))
    with pytest.raises(ConfigError, match=message):
        config.check()


PATCHES = [
    ({}, (2, 2), None, (2, 2)),
    ({"patch_size": 4}, (2, 2), None, (4, 4)),
    ({"patch_size": [4, 2]}, (2, 2), None, (4, 2)),
    ({}, (1, 2, 2), None, (1, 2, 2)),
    ({"patch_size": [1, 4, 4]}, (1, 2, 2), None, (1, 4, 4)),
    ({"patch_size": 4, "patch_size_t": 2}, (1, 2, 2), "patch_size_t", (2, 4, 4)),
    ({"patch_size": 4}, (1, 2, 2), "patch_size_t", (1, 4, 4)),
]


@pytest.mark.parametrize(("values", "default", "time", "patch"), PATCHES, ids=range(len(PATCHES)))
def test_patches(values: dict[str, Any], default: tuple[int, ...], time: str | None, patch: tuple[int, ...]) -> None:
    config = Config(values, "config")
    assert patch_of(config, default, time=time) == patch
    config.check()


def test_a_patch_of_the_wrong_rank_is_a_fault() -> None:
    config = Config({"patch_size": [1, 2]}, "config")
    patch_of(config, (1, 2, 2))
    with pytest.raises(ConfigError, match="patch_size has not 3 extents in config: patch_size; got a list of 2"):
        config.check()
