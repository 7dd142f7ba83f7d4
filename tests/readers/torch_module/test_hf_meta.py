"""Hugging Face configs run on the meta device: the same figures as by formula, and never code of a config."""

from __future__ import annotations

from typing import Any

import pytest

from suanli import count
from suanli.catalog.presets import presets
from suanli.errors import SuanliError
from suanli.readers.torch_module.hf_meta import trace_config

pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::FutureWarning")]


def config(name: str) -> Any:
    return presets()[name].config


# Counted by hand from each config: convention full, 128 tokens.
FIGURES = {
    "bert-base": (109_514_298, 28_499_116_032),
    "gpt2": (124_439_808, 32_228_179_968),
    "llama-2-7b": (6_738_415_616, 1_700_001_742_848),
    "mixtral-8x7b": (46_702_792_704, 3_272_228_208_640),
    "deepseek-v3": (671_026_404_352, 9_457_769_644_032),
    "gpt-oss-20b": (20_914_757_184, 929_870_905_344),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_by_trace_and_by_formula(name: str) -> None:
    traced = trace_config(config(name), seq=128)
    by_formula = count(name, seq=128, convention="full")
    assert traced.uncounted == ()
    assert (traced.params.total, traced.model_flops) == FIGURES[name]
    assert (by_formula.params.total, by_formula.flops.forward) == FIGURES[name]
    assert traced.params.active == by_formula.params.active


@pytest.mark.parametrize("name", ["t5-small", "vit-b16", "whisper-small", "clip-vit-b32", "gemma-2-9b"])
def test_other_kinds(name: str) -> None:
    traced = count(name, trace=True, convention="full", seq=64, phase="train")
    by_formula = count(name, convention="full", seq=64, phase="train")
    assert traced.flops.model == by_formula.flops.model
    assert traced.params.total == by_formula.params.total


def test_layers_whose_number_matters() -> None:
    """Layers of Dory look equal and run different things: the first two do not speak for the rest."""
    transformers = pytest.importorskip("transformers")
    values = transformers.AutoConfig.for_model("dory").to_dict() | {"architectures": ["DoryForCausalLM"]}
    by_formula = count(values, seq=16, convention="full")
    assert trace_config(values, seq=16).model_flops == by_formula.flops.forward


def test_checkpointing_of_llama_2_7b() -> None:
    """110.600T executed, 87.785T needed: each layer's last product is not run again, so not four thirds of it."""
    traced = trace_config(config("llama-2-7b"), seq=2048, train=True, checkpointing=True)
    layers = 32
    tokens, down = 2048, 2 * 2048 * 4096 * 11008
    forward = 29_261_612_187_648
    head = 2 * tokens * 4096 * 32000
    assert traced.model_flops == 3 * forward == 87_784_836_562_944
    assert traced.hardware_flops == 3 * forward + (forward - head) - layers * down == 110_599_702_839_296


def test_causal_pairs_are_charged_where_the_model_asks_for_a_causal_mask() -> None:
    traced = count("llama-2-7b", trace=True, seq=256, convention="causal")
    assert traced.flops.forward == count("llama-2-7b", seq=256, convention="causal").flops.forward


def test_rows_stand_at_the_paths_of_the_published_model() -> None:
    rows = trace_config(config("llama-2-7b"), seq=16).ledger.rows
    row = next(row for row in rows if row.path == "model.layers.0-31.mlp.down_proj")
    assert (row.kind, row.times, row.params, row.calls) == ("linear", 32, 32 * 4096 * 11008, 32)
    assert any(row.path == "model.layers.0-31.self_attn.attention" for row in rows)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"auto_map": {"AutoModelForCausalLM": "evil.py--Evil"}}, "remote_code"),
        ({"model_type": "lama"}, "unknown_model_type"),
        ({"hidden_size": 7, "num_attention_heads": 3}, "any"),
        ({"architectures": ["os.system"]}, None),
        ({"architectures": ["pipeline"]}, None),
    ],
)
def test_configs_that_are_refused(change: dict[str, Any], code: str | None) -> None:
    small = dict(config("llama-2-7b")) | {"num_hidden_layers": 1} | change
    if code is None:
        assert trace_config(small, seq=4).params.total
        return
    with pytest.raises(SuanliError) as caught:
        trace_config(small, seq=4)
    assert code in ("any", caught.value.faults[0].code)
