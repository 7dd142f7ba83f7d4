"""Causal decoders read by rows and their like, against transformers: default configs, and small odd ones."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from causal_configs import COMPLETED, SMALL

from suanli.readers.hf import (
    CAUSAL,
    causal_encoders,
    causal_halves,
    dense_table,
    late_gemma,
    mixture_table,
    read_hf_config,
    two_streams,
    unusual,
)

pytestmark = pytest.mark.torch

TYPES = sorted(
    {
        *causal_encoders.TABLE,
        *causal_halves.TABLE,
        *dense_table.TABLE,
        *mixture_table.TABLE,
        *late_gemma.FAMILIES,
        *unusual.FAMILIES,
        *two_streams.FAMILIES,
        *two_streams.CAUSAL,
        "emu3",
        "xlm",  # read with the encoders, which it is unless `causal`
    }
    - {"emu3_text_model"}
)

# Where the class looks at values, or takes no mask of four dimensions: run on the CPU, attention in plain matmuls.
LOOKS_AT_VALUES = {"jetmoe", "xlm", "xmod", "openai-gpt", "xlnet"}
UNTRAINED = {"diffllama"}  # its lambdas are read out of the tensors while training
LENGTHS = ((16, 2), (24, 1))


def device_of(model_type: str) -> str:
    return "cpu" if model_type in LOOKS_AT_VALUES else "meta"


@functools.lru_cache(maxsize=2)
def built(model_type: str, small: bool) -> tuple[Any, dict[str, Any]]:
    """The causal class of a type, and its config as `config.json` would have it."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    given = SMALL[model_type] if small else COMPLETED.get(model_type, {})
    config = transformers.AutoConfig.for_model(model_type, **given)
    device = device_of(model_type)
    more = {} if device == "meta" else {"attn_implementation": "eager"}
    dtype = torch.float32 if model_type == "xlnet" else torch.bfloat16  # its positions are float32
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, **more)
    return model, config.to_dict() | {"model_type": model_type, "architectures": [type(model).__name__]}


def arguments(device: str, seq: int, batch: int) -> list[dict[str, Any]]:
    """Ways to call a model without its looking at values: a mask of four dimensions, a cache, or neither."""
    import torch

    ids = torch.ones(batch, seq, dtype=torch.long, device=device)
    mask = torch.zeros(batch, 1, seq, seq, dtype=torch.bfloat16, device=device)
    ways = [{"input_ids": ids, "attention_mask": mask}, {"input_ids": ids, "use_cache": True}, {"input_ids": ids}]
    return ways if device == "meta" else ways[2:]


def first_that_runs(traced_flops: Any, run: Any, ways: list[dict[str, Any]]) -> int:
    """FLOPs of the first call that the class can make."""
    errors: list[Exception] = []
    for way in ways:
        try:
            return int(traced_flops(lambda way=way: run(way)))
        except (RuntimeError, NotImplementedError, IndexError, ValueError, AttributeError) as error:
            errors.append(error)
    raise errors[0]


def test_every_type_has_a_case() -> None:
    assert sorted(SMALL) == TYPES


def check_parameters(model_type: str, small: bool, module_differences: Any) -> None:
    model, values = built(model_type, small)
    arch = read_hf_config(values, model_type)
    assert module_differences(arch, model) == []
    assert arch.params_total == sum(parameter.numel() for parameter in model.parameters())
    assert arch.task == "causal-lm"


def check_forward(model_type: str, small: bool, traced_flops: Any, counted: Any) -> None:
    import torch

    model, values = built(model_type, small)
    arch = read_hf_config(values, model_type)
    model.eval()
    for seq, batch in LENGTHS:
        ways = arguments(device_of(model_type), seq, batch)
        with torch.no_grad():
            seen = first_that_runs(traced_flops, lambda way: model(**way), ways)
        assert counted(arch, seq=seq, batch=batch) == seen


def sampled(types: list[str], step: int) -> list[Any]:
    """Every `step`-th by default, all under -m."""
    return [pytest.param(each, marks=() if i % step == 0 else pytest.mark.full) for i, each in enumerate(types)]


@pytest.mark.parametrize("model_type", sampled(TYPES, 2))
def test_small_and_odd(model_type: str, module_differences: Any, traced_flops: Any, counted: Any) -> None:
    """Grouped heads that do not make up the width, windows, biases, layers of several kinds."""
    check_parameters(model_type, True, module_differences)
    check_forward(model_type, True, traced_flops, counted)


@pytest.mark.parametrize("model_type", sampled([each for each in TYPES if each not in UNTRAINED], 8))
def test_training(model_type: str, traced_flops: Any, counted: Any) -> None:
    """Forward and backward as autograd runs it."""
    import torch

    model, values = built(model_type, True)
    model.train()
    seq, batch = LENGTHS[0]
    ways = arguments(device_of(model_type), seq, batch)
    with torch.enable_grad():
        seen = first_that_runs(traced_flops, lambda way: model(**way).logits.sum().backward(), ways)
    assert counted(read_hf_config(values, model_type), seq=seq, batch=batch, phase="train") == seen


@pytest.mark.parametrize("model_type", sampled(TYPES, 16))
def test_default_config(model_type: str, module_differences: Any, traced_flops: Any, counted: Any) -> None:
    """As `AutoConfig` makes it, in full size."""
    check_parameters(model_type, False, module_differences)
    check_forward(model_type, False, traced_flops, counted)


def test_architectures_choose_the_class() -> None:
    """A type with two heads is read by the one its config names; a class that is not known is not guessed."""
    values = {
        "model_type": "bert", "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 3,
        "num_attention_heads": 6, "max_position_embeddings": 64,
    }  # fmt: skip
    assert read_hf_config(values, "default").task == "masked-lm"
    assert read_hf_config(values | {"architectures": ["BertForMaskedLM"]}, "masked").task == "masked-lm"
    causal = read_hf_config(values | {"architectures": ["BertLMHeadModel"], "is_decoder": True}, "causal")
    assert causal.task == "causal-lm"
    assert "bert" in CAUSAL
