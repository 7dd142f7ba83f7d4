"""Every class against diffusers itself: parameters leaf by leaf, FLOPs against a trace of one step."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.differences import term_differences
from suanli.nouns.workload import Workload
from suanli.readers.diffusers import read_diffusers_config
from suanli.readers.diffusers.classes import READERS
from tests.readers.diffusers.cases import ODD, Case

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
pytest.importorskip("diffusers", reason="diffusers is not installed: pip install 'suanli[test]'")

BATCH = 2


def compared(config: dict[str, Any], case: Case, text: int, phase: str) -> None:
    """Assert that formula and trace agree term by term."""
    from suanli.readers.torch_module.diffusers_meta import trace_diffusers

    arch = read_diffusers_config(config, case.name)
    train = phase == "train"
    seen = trace_diffusers(config, seq=text, batch=BATCH, train=train, dtype="float32", device=case.device)
    ledger = build_ledger(arch, Workload(seq=text, batch=BATCH, phase=phase), find_convention("full"))
    assert not seen.lower_bound, seen.uncounted
    if phase == "forward":
        assert [term.sentence for term in term_differences(ledger, seen.ledger)] == []
    assert ledger.model_flops == seen.model_flops


def test_every_class_is_tried() -> None:
    assert {case.config["_class_name"] for case in ODD} == set(READERS)


@pytest.mark.parametrize("case", ODD, ids=lambda case: case.name)
def test_parameters(case: Case, module_differences: Any) -> None:
    from suanli.readers.torch_module.diffusers_meta import build_diffusers

    config = case.config | case.sizes[0]
    arch, model = read_diffusers_config(config, case.name), build_diffusers(config)
    assert module_differences(arch, model) == []
    assert arch.params_total == sum(each.numel() for each in model.parameters())
    assert arch.params_total + arch.buffer_elements == sum(each.numel() for each in model.state_dict().values())


@pytest.mark.parametrize("case", ODD, ids=lambda case: case.name)
def test_forward(case: Case) -> None:
    for size in case.sizes:
        for text in case.texts:
            compared(case.config | size, case, text, "forward")


@pytest.mark.parametrize("case", [case for case in ODD if case.train], ids=lambda case: case.name)
def test_train(case: Case) -> None:
    compared(case.config | case.sizes[0], case, case.texts[0], "train")
