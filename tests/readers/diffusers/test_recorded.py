"""Every class without diffusers and torch: figures that `test_against_diffusers` found equal to a trace's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.nouns.arch import Arch
from suanli.nouns.workload import Workload
from suanli.readers.diffusers import read_diffusers_config
from suanli.symbolic import polynomials

ODD: list[dict[str, Any]] = json.loads(Path(__file__).with_name("odd.json").read_text(encoding="utf-8"))
FULL = find_convention("full")
BATCH, TEXT = 2, 7


def read(case: dict[str, Any], **size: Any) -> Arch:
    return read_diffusers_config(case["config"] | case["sizes"][0] | size, case["name"])


def flops(arch: Arch, phase: str = "forward", **workload: int) -> int:
    return build_ledger(arch, Workload(phase=phase, **workload), FULL).model_flops


@pytest.mark.parametrize("case", ODD, ids=lambda case: case["name"])
def test_figures(case: dict[str, Any]) -> None:
    arch, text = read(case), case.get("texts", [TEXT])[0]
    assert arch.params_total == case["params"]
    for phase in ("forward", "train"):
        assert flops(arch, phase, batch=BATCH, seq=text) == case[phase]


@pytest.mark.parametrize("case", ODD, ids=lambda case: case["name"])
def test_laws(case: dict[str, Any]) -> None:
    """Parameters are of the model, not of the picture; a step of two samples is two steps of one, save what a batch
    shares; a training step is at most three forwards; the notes tell how pixels became positions.
    """
    arch = read(case)
    other = read_diffusers_config(case["config"] | case["sizes"][-1], "other")
    assert arch.params_total == other.params_total
    once = [each.name for each in arch.streams if each.once]
    one, two = flops(arch, batch=1, seq=TEXT), flops(arch, batch=2, seq=TEXT)
    assert two == 2 * one if not once else one < two < 2 * one
    assert flops(arch, "train", batch=1, seq=TEXT) <= 3 * one
    assert not arch.decodes
    assert any(note.startswith(("picture ", "clip ")) for note in arch.notes)


PROMPTED = [case for case in ODD if read(case).max_positions]


@pytest.mark.parametrize("case", PROMPTED[::3], ids=lambda case: case["name"])
def test_lengths_of_the_prompt_are_a_polynomial(case: dict[str, Any]) -> None:
    arch = read(case)
    found = polynomials(arch, "forward", FULL).flops
    for batch, seq in ((1, 1), (3, 20)):
        assert found.at(batch, seq) == flops(arch, batch=batch, seq=seq)


SIDES = st.integers(1, 6)


@settings(max_examples=20, deadline=None)
@given(SIDES, SIDES, st.sampled_from([case for case in ODD if case["name"] in ("sd3", "flux", "sana", "unet", "wan")]))
def test_more_picture_is_more_work(height: int, width: int, case: dict[str, Any]) -> None:
    places = {"pos_embed_max_size": 28} if case["name"] == "sd3" else {}  # 7 sides of 64 pixels are 28 patches
    small, wide = (read(case, image_size=[64 * height, 64 * (width + more)], **places) for more in (0, 1))
    assert flops(small, seq=TEXT) < flops(wide, seq=TEXT)
