"""What the tests of families share: parameters, active parameters and the forward FLOPs of a small config."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.nouns.arch import Arch
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config


class Found(NamedTuple):
    """Figures of a config, and its architecture."""

    params: int
    active: int
    forward: int
    arch: Arch


@pytest.fixture
def reading() -> Callable[..., Found]:
    """Reads a config, and counts one forward of five positions (unless told) under `causal`."""

    def read(config: dict[str, Any], **workload: Any) -> Found:
        arch = read_hf_config(config, "net")
        forward = build_ledger(arch, Workload(**{"seq": 5, **workload}), find_convention("causal")).model_flops
        return Found(arch.params_total, arch.params_active, forward, arch)

    return read
