"""Every kind of model that has blocks over tokens is laid out, or refused in words: never a traceback."""

from __future__ import annotations

import pytest

import suanli
from suanli.catalog.presets import presets
from suanli.errors import SuanliError
from suanli.readers.model import read_model

pytest.importorskip("numpy")

KINDS = ["gpt2", "t5-small", "bert-base", "mamba-130m", "mamba2-130m", "gpt-oss-120b", "mixtral-8x7b", "deepseek-v3"]


def lay_out(name: str):
    return suanli.layout(name, gpu="h100-sxm", gpus=64, global_batch=64, seq=512, top=1)


@pytest.mark.parametrize("name", KINDS)
def test_a_layout_of_every_kind(name):
    try:
        found = lay_out(name)
    except SuanliError as problem:
        assert "no layout fits the memory" in str(problem)
        return
    best = found.layouts[0]
    assert sum(each.seconds for each in best.account) == pytest.approx(best.step_time_s)
    assert 0 < best.mfu < 1
    assert best.memory_bytes["total"] <= found.memory_limit_bytes


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in presets() if read_model(name).unit == "token"])
def test_every_preset_over_tokens(name):
    try:
        assert 0 < lay_out(name).layouts[0].mfu < 1
    except SuanliError as problem:
        assert str(problem)
