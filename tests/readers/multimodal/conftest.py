"""What the tests of multimodal families share: a small model of transformers, its parts run one by one, and ours.

A whole forward looks at values (where the picture's tokens stand), so the part that sees or hears and the part that
reads are traced apart and added up; the first also says how many tokens it makes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import pytest

from suanli.nouns.arch import Arch
from suanli.readers.hf import READERS, read_hf_config
from suanli.readers.hf.composed import SAME_AS

os.environ.setdefault("TRANSFORMERS_DISABLE_TORCH_CHECK", "1")

SEQS = (11, 24)


def _classes() -> dict[str, str]:
    auto = pytest.importorskip("transformers.models.auto.modeling_auto")
    found = {**auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, **auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES}
    found |= auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    return {kind: name if isinstance(name, str) else name[0] for kind, name in found.items()}


def _build(config: Any, device: str) -> Any:
    import torch
    import transformers

    more = {} if device == "meta" else {"attn_implementation": "eager"}
    with torch.device(device):
        model = getattr(transformers, _classes()[config.model_type])._from_config(config, dtype=torch.bfloat16, **more)
    return model.eval().requires_grad_(False)


def _extra(arch: Arch) -> int:
    return max(stream.extra for stream in arch.streams)


def _read(model: Any, text: int, extra: int, width: int, device: str) -> Any:
    """The decoder on `text` tokens and those of the picture, under a mask it does not look into."""
    import torch

    length = text + extra
    states = torch.zeros(1, length, width, dtype=torch.bfloat16, device=device)
    mask = torch.zeros(1, 1, length, length, dtype=torch.bfloat16, device=device)
    return model(inputs_embeds=states, attention_mask=mask)


def _tokens(seen: Any) -> int:
    made = getattr(seen, "pooler_output", seen)
    parts = list(made) if isinstance(made, list | tuple) else [made]
    return sum(part.numel() // part.shape[-1] for part in parts)


def _decoder_of(values: Mapping[str, Any]) -> tuple[str, int]:
    text = values.get("text_config") or values
    return SAME_AS.get(text["model_type"], text["model_type"]), text.get("hidden_size") or text.get(
        "d_model"
    ) or text.get("embed_dim")


@pytest.fixture(scope="session")
def small() -> Callable[..., tuple[dict[str, Any], Any]]:
    """Our keys and transformers' config of a case; the case is skipped where nobody reads its decoder yet."""

    def make(case: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        transformers = pytest.importorskip("transformers")
        config = transformers.AutoConfig.for_model(case["type"], **case["config"])
        values = json.loads(json.dumps(config.to_dict(), default=str))
        decoder, _ = _decoder_of(values)
        if decoder not in READERS and not case.get("own_decoder"):
            pytest.skip(f"nobody reads {decoder} yet")
        return values, config

    return make


@pytest.fixture(scope="session")
def parameters_agree(small: Any, module_differences: Any) -> Callable[[Mapping[str, Any]], None]:
    """Every leaf's parameters are those of the module of its name, and their sum is the model's."""

    def check(case: Mapping[str, Any]) -> None:
        values, config = small(case)
        arch, model = read_hf_config(values, "small"), _build(config, "meta")
        assert module_differences(arch, model) == []
        assert arch.params_total == sum(parameter.numel() for parameter in model.parameters())

    return check


@pytest.fixture(scope="session")
def flops_agree(small: Any, traced_flops: Any, counted: Any) -> Callable[[Mapping[str, Any]], None]:
    """One forward pass costs what torch executes, at two lengths of text; the picture makes as many tokens."""
    import torch

    def check(case: Mapping[str, Any]) -> None:
        values, config = small(case)
        arch, device = read_hf_config(values, "small"), case.get("device", "meta")
        model, seeing = _build(config, "meta"), _build(config, device)
        extra, (_, width) = _extra(arch), _decoder_of(values)
        by_text = "text" in signature(case["see"]).parameters
        read = case.get("read", _read)
        runner, place = (seeing, device) if case.get("reads_on_cpu") else (model, "meta")
        made: list[Any] = []
        saw = 0
        for seq in SEQS:
            with torch.no_grad():
                if by_text or not made:  # what sees no text costs the same beside any
                    asked = {"text": seq} if by_text else {}
                    saw = traced_flops(lambda: made.append(case["see"](seeing, **asked)))  # noqa: B023
                reading = traced_flops(lambda: read(runner, seq, extra, width, place))  # noqa: B023
            if extra:
                assert _tokens(made[-1]) == extra
            more = case.get("more", 0)
            assert counted(arch, seq=seq) + more == saw + reading, case.get("why")

    return check
