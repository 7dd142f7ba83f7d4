"""Bounds: a counter that hangs, dies, raises or hoards is an answer with its reason, and the next one still answers."""

from __future__ import annotations

import time

import pytest

from suanli.compare import runner as runner_module
from suanli.compare.runner import Runner
from suanli.units import GIBI, MEBI

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def described(modules: str, factory: str) -> dict[str, object]:
    return {"form": "factory", "name": f"{modules}:{factory}", "input": None}


def test_a_forward_that_never_ends(modules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "START_SECONDS", 6.0)
    with Runner(described(modules, "sleeps"), 1.0, 8 * GIBI) as runner:
        start = time.monotonic()
        assert runner.ask("record", "meta") == {"reason": "still runs after 1 s"}
        assert time.monotonic() - start < 60
        assert runner.process is None


def test_a_process_that_dies(modules: str) -> None:
    with Runner(described(modules, "dies"), 60.0, 8 * GIBI) as runner:
        for _ in range(2):  # the second is answered as well
            assert runner.ask("flop_counter_mode", "meta") == {"reason": "crashed: SIGKILL"}


def test_a_forward_that_raises(modules: str) -> None:
    with Runner(described(modules, "raises"), 60.0, 8 * GIBI) as runner:
        found = runner.ask("record", "meta")
    assert found["reason"].startswith("ValueError: no forward today (compared_modules.py:")


def test_memory_past_the_bound(modules: str) -> None:
    """2³¹ floats are 8 GiB."""
    with Runner(described(modules, "hoards"), 60.0, 4 * GIBI) as runner:
        assert runner.ask("flop_counter_mode", "cpu") == {"reason": "more memory than the bound"}


def test_memory_and_time_are_told(modules: str) -> None:
    with Runner(described(modules, "tables"), 60.0, 8 * GIBI) as runner:
        found = runner.ask("flop_counter_mode", "meta", "torch", "torch")
    assert found["total"] == 2 * 6 * 8 * 50
    assert found["version"] == torch.__version__
    assert 50 * MEBI < found["peak_bytes"] < 8 * GIBI
    assert 0 < found["seconds"] < 60


def test_nothing_is_left_patched_here(modules: str) -> None:
    before = torch.nn.functional.linear, torch.Tensor.matmul
    with Runner(described(modules, "raw"), 60.0, 8 * GIBI) as runner:
        assert "calls" in runner.ask("record", "meta")
    assert (torch.nn.functional.linear, torch.Tensor.matmul) == before


def test_the_process_ends_with_the_context(modules: str) -> None:
    with Runner(described(modules, "tables"), 60.0, 8 * GIBI) as runner:
        runner.ask("record", "meta")
        process = runner.process
        assert process is not None
    assert process.poll() is not None


def test_a_config_that_names_code_is_refused() -> None:
    config = {"model_type": "llama", "auto_map": {"AutoModel": "evil.Model"}}
    description = {"form": "config", "config": config, "head": None, "where": "c", "batch": 1, "seq": 8}
    with Runner(description, 60.0, 8 * GIBI) as runner:
        assert runner.ask("record", "meta") == {"reason": "the config names code of its own, which is never run"}
