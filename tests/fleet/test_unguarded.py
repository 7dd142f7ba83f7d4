"""Scripts without a guard: their workers do not run them again."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from multiprocessing import spawn
from pathlib import Path

import pytest

from suanli.fleet import unguarded
from suanli.fleet.unguarded import UnguardedContext

SCRIPT = """
print("run")
import os
from concurrent.futures import ProcessPoolExecutor
from suanli.fleet.unguarded import UnguardedContext
with ProcessPoolExecutor(2, mp_context=UnguardedContext()) as executor:
    print(sorted(executor.map(abs, [-1, -2, 3])))
"""


@pytest.mark.parametrize("how", ["script", "stdin", "module", "-c"])
def test_a_script_without_a_guard(tmp_path: Path, how: str) -> None:
    path = tmp_path / "unguarded_script.py"
    path.write_text(SCRIPT)
    command = {"script": [str(path)], "stdin": ["-"], "module": ["-m", path.stem], "-c": ["-c", SCRIPT]}[how]
    given = SCRIPT if how == "stdin" else ""
    said = subprocess.run(
        [sys.executable, *command], input=given, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, "run\n[1, 2, 3]\n", "")


def test_processes_of_others_keep_their_main_module() -> None:
    before = spawn.get_preparation_data
    found: list[bool] = []

    def look() -> None:
        found.append(any(key in spawn.get_preparation_data("x") for key in unguarded._MAIN))

    with unguarded._without_main():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        look()
    look()
    assert found == [found[2], False, found[2]]
    assert spawn.get_preparation_data is before


def test_it_is_a_context_like_spawn() -> None:
    assert UnguardedContext().get_start_method() == "spawn"
    assert multiprocessing.get_context("spawn").Process is not UnguardedContext.Process
