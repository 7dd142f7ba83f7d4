"""Every class against diffusers itself: parameters leaf by leaf, FLOPs against a trace of one step.

`odd.json` holds small configs whose heads are no power of two and whose widths differ, one for every branch of a
class; pictures of each are tried at two sizes, prompts at two lengths.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.catalog.presets import Preset, presets
from suanli.count import build_ledger
from suanli.differences import term_differences
from suanli.nouns.workload import Workload
from suanli.readers.diffusers import read_diffusers_config
from suanli.readers.diffusers.classes import READERS

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed: pip install 'suanli[test]'")

BATCH, TEXTS = 2, (7, 12)
ODD: list[dict[str, Any]] = json.loads(Path(__file__).with_name("odd.json").read_text(encoding="utf-8"))
PUBLIC = [preset for preset in presets().values() if preset.format == "diffusers"]
# whose forward looks at values, and which are too large to run on values here
LOOKS_AT_VALUES = {"Lumina2Transformer2DModel", "MochiTransformer3DModel"}


def same(config: Mapping[str, Any], *, text: int, batch: int, phase: str, device: str = "meta") -> int:
    """Assert that formula and trace agree, forward term by term; the FLOPs seen."""
    from suanli.readers.torch_module.diffusers_meta import trace_diffusers

    arch = read_diffusers_config(config, "case")
    train = phase == "train"
    seen = trace_diffusers(config, seq=text, batch=batch, train=train, dtype="float32", device=device)
    ledger = build_ledger(arch, Workload(seq=text, batch=batch, phase=phase), find_convention("full"))
    assert not seen.lower_bound, seen.uncounted
    if not train:
        assert [term.sentence for term in term_differences(ledger, seen.ledger)] == []
    assert ledger.model_flops == seen.model_flops
    return seen.model_flops


def same_parameters(config: Mapping[str, Any], module_differences: Callable[..., list[str]]) -> None:
    """Assert that every leaf holds what diffusers' module of that name holds, and that nothing saved is missed."""
    from suanli.readers.torch_module.diffusers_meta import build_diffusers

    arch, model = read_diffusers_config(config, "case"), build_diffusers(config)
    assert module_differences(arch, model) == []
    assert arch.params_total == sum(each.numel() for each in model.parameters())
    assert arch.params_total + arch.buffer_elements == sum(each.numel() for each in model.state_dict().values())


def test_every_class_has_cases() -> None:
    assert {case["config"]["_class_name"] for case in ODD} == set(READERS)


@pytest.mark.parametrize("case", ODD, ids=lambda case: case["name"])
def test_the_formula_gives_what_was_traced(case: dict[str, Any]) -> None:
    """Every case against its recorded trace; that the record is what diffusers does, the traces below say."""
    arch = read_diffusers_config(case["config"] | case["sizes"][0], "case")
    text = case.get("texts", TEXTS)[0]
    for phase in ("forward", "train"):
        workload = Workload(seq=text, batch=BATCH, phase=phase)
        assert build_ledger(arch, workload, find_convention("full")).model_flops == case[phase], phase


def sampled(cases: list[dict[str, Any]]) -> list[Any]:
    """The first case of every class by default, all under -m."""
    seen: set[str] = set()
    found = []
    for case in cases:
        kind = case["config"]["_class_name"]
        found.append(pytest.param(case, id=case["name"], marks=pytest.mark.full if kind in seen else ()))
        seen.add(kind)
    return found


@pytest.mark.parametrize("case", ODD, ids=lambda case: case["name"])
def test_small_and_odd(case: dict[str, Any], module_differences: Callable[..., list[str]]) -> None:
    same_parameters(case["config"] | case["sizes"][0], module_differences)
    texts, device, flops = case.get("texts", TEXTS), case.get("device", "meta"), []
    for size, text in zip_longest(case["sizes"], texts, fillvalue=None):
        found = case["config"] | (size or case["sizes"][-1])
        flops.append(same(found, text=text or texts[-1], batch=BATCH, phase="forward", device=device))
    assert flops[0] == case["forward"]


@pytest.mark.parametrize("case", sampled(ODD))
def test_a_training_step(case: dict[str, Any]) -> None:
    """Backward too: what reads the prompt or the latent needs no gradient of it, and no gradient comes back through
    what the last block leaves unread.
    """
    text = case.get("texts", TEXTS)[0]
    config, device = case["config"] | case["sizes"][0], case.get("device", "meta")
    assert same(config, text=text, batch=BATCH, phase="train", device=device) == case["train"]


@pytest.mark.full
@pytest.mark.parametrize("preset", PUBLIC, ids=lambda preset: preset.name)
def test_presets(preset: Preset, module_differences: Callable[..., list[str]]) -> None:
    same_parameters(preset.config, module_differences)
    if preset.config["_class_name"] not in LOOKS_AT_VALUES:
        arch = read_diffusers_config(preset.config, preset.name)
        same(preset.config, text=preset.max_positions or arch.max_positions or 1, batch=1, phase="forward")


@pytest.mark.full
def test_class_defaults(module_differences: Callable[..., list[str]]) -> None:
    """A key that is absent is what the class takes it for; of HunyuanDiT three have no default that builds."""
    hunyuan = {"in_channels": 4, "patch_size": 2, "attention_head_dim": 72}
    for name in sorted(READERS):
        if name != "Transformer2DModel":  # which builds another class
            more = hunyuan if name == "HunyuanDiT2DModel" else {}
            same_parameters({"_class_name": name, **more}, module_differences)
