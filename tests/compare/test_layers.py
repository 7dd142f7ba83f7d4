"""Layer expressions as torch modules: the same parameters and FLOPs as read from the text."""

from __future__ import annotations

import pytest

from suanli.catalog.presets import presets
from suanli.compare.layers import module_of
from suanli.count import build_ledger
from suanli.errors import ConfigError
from suanli.nouns.workload import Workload
from suanli.readers.layer_expr import read_layer_expression
from suanli.readers.torch_module import trace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

EXPRESSIONS = [
    "linear(8, 16) -> relu -> linear(16, 4, bias=false)",
    "embedding(100, 16) -> layernorm -> linear(16, 8) -> gelu -> softmax",
    "conv2d(3, 8, kernel=3, padding=1, stride=2) @ 17x17 -> batchnorm -> silu -> maxpool(2) -> flatten"
    " -> linear(128, 5)",
    "conv1d(4, 8, kernel=5, groups=2) @ 40 -> relu -> adaptiveavgpool -> flatten -> linear(8, 2)",
    "convtranspose2d(6, 4, kernel=2, stride=2, bias=false) @ 5x5 -> avgpool(2) -> dropout",
    "lstm(12, 16, layers=2, bidirectional) -> linear(32, 3)",
    "gru(12, 16) -> rmsnorm",
]


@pytest.mark.parametrize("text", [*EXPRESSIONS, presets()["alexnet"].config["expression"]])
def test_the_module_is_what_the_text_says(text: str) -> None:
    arch = read_layer_expression(text)
    with torch.device("meta"):
        module, inputs = module_of(text, 2, 6)
    assert sum(each.numel() for each in module.parameters()) == arch.params_total
    from suanli.catalog.conventions import CONVENTIONS

    ledger = build_ledger(arch, Workload(batch=2, seq=6), CONVENTIONS["full"])
    assert trace(module.eval(), inputs).model_flops == ledger.model_flops


def test_what_torch_has_no_layer_of_is_told() -> None:
    with pytest.raises(ConfigError) as caught:
        module_of("attention(64, 4)", 1, 8)
    assert str(caught.value) == "torch has no layer like attention to be run in element 1, attention."
