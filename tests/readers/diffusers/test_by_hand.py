"""Parameters and FLOPs worked out from the papers' shapes, without diffusers."""

from __future__ import annotations

import pytest

from suanli.catalog.conventions import find_convention
from suanli.catalog.presets import find_preset
from suanli.count import build_ledger
from suanli.nouns.arch import Arch
from suanli.nouns.workload import Workload
from suanli.readers.preset import read_preset


def forward(arch: Arch, **workload: int) -> int:
    return build_ledger(arch, Workload(**workload), find_convention("full")).model_flops


# --- DiT-XL/2, arXiv:2212.09748: 28 blocks of width 1152, 16 heads, patches of 2×2 of a latent of 32×32×4 -------------

H, T, L = 1152, 256, 28  # (32 / 2)² patches
CLASSES = 1000 + 1  # and one for none


def test_dit_params() -> None:
    attention = 4 * (H * H + H)  # queries, keys, values, output, with biases
    feed = (H * 4 * H + 4 * H) + (4 * H * H + H)
    modulation = H * 6 * H + 6 * H
    embedder = (256 * H + H) + (H * H + H) + CLASSES * H  # 256 sinusoids of the step
    patches, last = 4 * 2 * 2 * H + H, (H * 2 * H + 2 * H) + (H * 32 + 32)  # 2×2 of mean and variance of 4 channels
    arch = read_preset(find_preset("dit-xl-2-256"))
    # an embedder a block, as diffusers holds it
    assert arch.params_total == L * (attention + feed + modulation + embedder) + patches + last == 749_826_464
    # the paper's 675M: one embedder for all, and 256 learned-shaped positions held as a parameter
    assert arch.params_total - (L - 1) * embedder + T * H == 675_129_632


def test_dit_flops() -> None:
    attention = 4 * T * H * H + 2 * T * T * H  # MACs: four matrices, then scores and their product with values
    feed = 2 * T * H * 4 * H
    modulation, embedder = H * 6 * H, 256 * H + H * H  # once a picture
    block = attention + feed + modulation + embedder
    ends = T * (4 * 2 * 2) * H + H * 2 * H + T * H * 32 + embedder  # the first block's embedder again for the end
    arch = read_preset(find_preset("dit-xl-2-256"))
    assert forward(arch) == 2 * (L * block + ends)
    assert forward(arch, batch=3) == 3 * 2 * (L * block + ends)
    # 118.64 G in the paper's Table 4, which counts a multiply and its add once
    assert forward(arch) / 2 == pytest.approx(118.64e9, rel=5e-4)
    assert (L * block + ends) / (L * (block - embedder) + ends) == pytest.approx(1.0004, abs=1e-4)


def test_dit_512_is_four_times_the_patches() -> None:
    small, large = (read_preset(find_preset(name)) for name in ("dit-xl-2-256", "dit-xl-2-512"))
    assert small.params_total == large.params_total
    assert forward(read_preset(find_preset("dit-xl-2-256"), (512, 512))) == forward(large)
    assert forward(large) / 2 == pytest.approx(524.6e9, rel=1e-3)  # 524.60 G in the paper's Table 4


# --- FLUX.1, MMDiT: 19 double and 38 single blocks of width 3072, 24 heads of 128 -------------------------------------


def test_flux_flops() -> None:
    h, image, text = 3072, 32 * 32, 100  # 512×512 pixels: a position is 16×16
    both = image + text
    core = 2 * both * both * h
    double = both * (4 * h * h + 2 * h * 4 * h) + core + 2 * h * 6 * h  # both streams alike, each modulated by its own
    single = both * (3 * h * h + h * 4 * h + (h + 4 * h) * h) + core + h * 3 * h
    embedders = 2 * (256 * h + h * h) + (768 * h + h * h)  # step, guidance, pooled prompt
    ends = image * 64 * h + text * 4096 * h + h * 2 * h + image * h * 64
    arch = read_preset(find_preset("flux.1-dev"), (512, 512))
    assert forward(arch, seq=text) == 2 * (19 * double + 38 * single + embedders + ends)


# --- Sana: linear attention -------------------------------------------------------------------------------------------


def test_sana_scan_grows_with_positions_not_their_square() -> None:
    heads, dim = 70, 32
    row = 4 * 20 * heads * dim * (dim + 1)  # 20 blocks: keys × (values and a one), then × queries; FLOPs a position
    for side, positions in ((1024, 32 * 32), (2048, 64 * 64)):
        arch = read_preset(find_preset("sana-1.6b"), (side, side))
        ledger = build_ledger(arch, Workload(seq=10), find_convention("full"))
        assert ledger.scan_flops == positions * row


def test_sana_says_nothing_fades() -> None:
    arch = read_preset(find_preset("sana-1.6b"))
    ledger = build_ledger(arch, Workload(seq=10), find_convention("causal"))
    assert "decay of scans' states" not in {each.what for each in ledger.uncounted}


# --- conventions and phases -------------------------------------------------------------------------------------------


def test_all_pairs_are_the_models_own() -> None:
    """Nothing is masked, so `causal` leaves nothing out."""
    arch = read_preset(find_preset("sd3-medium"))
    ledgers = [build_ledger(arch, Workload(seq=333), find_convention(name)) for name in ("causal", "full")]
    assert ledgers[0].model_flops == ledgers[1].model_flops


CLIPS = [("wan2.1-t2v-1.3b", 5, 2 * 30 * 52), ("cogvideox-2b", 13, 13 * 30 * 45), ("mochi-1", 19, 4 * 30 * 53)]


@pytest.mark.parametrize(("name", "frames", "positions"), CLIPS)
def test_frames(name: str, frames: int, positions: int) -> None:
    frames = frames if name != "cogvideox-2b" else 49
    assert read_preset(find_preset(name), frames=frames).stream("patches").length == positions


def test_the_unet_at_512() -> None:
    """Stable Diffusion 1.5: 859,520,964 parameters, as published with its weights; its own 64×64 latent."""
    arch = read_preset(find_preset("stable-diffusion-1.5"))
    assert arch.params_total == 859_520_964
    assert arch.extra["latent_height"] == 64
    assert arch.notes[0] == "picture 512x512 (assumed) = latent 64x64, an autoencoder of 8x8 assumed"
    first = 64 * 64 * 9 * 4 * 320  # 3×3 from 4 channels to 320 at every cell, MACs
    row = next(row for row in build_ledger(arch, Workload(), find_convention("full")).rows if row.path == "conv_in")
    assert row.model_flops == 2 * first
