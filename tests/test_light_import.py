"""`import suanli` stays light, proved in a process of its own; and the proof is shown able to fail."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "transformers",
    "numpy",
    "matplotlib",
    "altair",
    "fastapi",
    "nicegui",
    "rich",
    "typer",
    "huggingface_hub",
)


def loaded_after(statement: str) -> set[str]:
    """Top-level modules loaded by a fresh interpreter after a statement."""
    code = f"{statement}\nimport sys\nprint(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def submodules_after(statement: str) -> set[str]:
    """Modules of suanli loaded by a fresh interpreter after a statement."""
    code = f"{statement}\nimport sys\nprint(' '.join(name for name in sys.modules if name.startswith('suanli')))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_no_framework() -> None:
    assert loaded_after("import suanli") & set(HEAVY) == set()


def test_counting_loads_no_framework() -> None:
    count = "suanli.count('llama-3.1-405b', phase='train')"
    statement = f"import suanli; {count}; suanli.mfu('gpt2', gpu='h100-sxm', tokens_per_second=1)"
    assert loaded_after(statement) & set(HEAVY) == set()


def test_device_curves_load_no_framework() -> None:
    """Numbers in, numbers out: arrays come with whoever has arrays."""
    curves = "from suanli.catalog.curves import find_curves"
    assert loaded_after(f"{curves}; find_curves('h100-sxm').matmul_s(8192, 8192, 8192)") & set(HEAVY) == set()
    assert not any("curve" in name for name in submodules_after("import suanli"))


@pytest.mark.parametrize("heavy", ["numpy", "rich"])
def test_the_proof_can_fail(heavy: str) -> None:
    assert heavy in loaded_after(f"import suanli, {heavy}")


def test_readers_come_with_the_first_thing_of_their_kind() -> None:
    readers = ("hf.families", "torch_module", "sources", "keras_model", "onnx_model", "jax_function", "gguf")
    code = f"import suanli, sys; print([name for name in {readers} if 'suanli.readers.' + name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
