"""Runs counters, each in a process of its own that may take so much time and memory and no more."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any, Self

CHILD = "suanli.compare.child"
FORKS = sys.platform.startswith("linux")  # elsewhere a forked process may not use torch, and each counter loads it anew
START_SECONDS = 120.0  # to load torch and transformers, beside the bound of each counter
_STEP = 65536


@dataclass
class Runner:
    """Asks the child process; starts another where one was stopped. A context: leaving it leaves no process behind."""

    description: Mapping[str, Any]
    time_limit: float
    memory_limit: int
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    fresh: bool = field(default=True, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ask(self, tool: str, device: str, package: str = "", module: str = "") -> dict[str, Any]:
        """The answer of a counter, or `{"reason": …}` with the bound it passed or how it ended."""
        request = {
            "tool": tool, "device": device, "package": package, "module": module, "description": self.description,
            "memory_limit": self.memory_limit,
        }  # fmt: skip
        process = self._running()
        allowed = self.time_limit + (START_SECONDS if self.fresh else 0.0)
        try:
            _send(process, request)
            line = _line(process, time.monotonic() + allowed)
        except (BrokenPipeError, EOFError):
            self.stop()
            return {"reason": "its process ended before it could answer"}
        except TimeoutError:
            self.stop()
            return {"reason": f"still runs after {self.time_limit:g} s"}
        self.fresh = False
        if not FORKS:
            self.stop()  # the process has answered once and ends
        found: dict[str, Any] = json.loads(line)
        return found

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self.stop()
            environment = {
                **os.environ, "PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path),
                "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error",
                "TRANSFORMERS_DISABLE_TORCH_CHECK": "1", "DS_ACCELERATOR": "cpu", "PYTHONWARNINGS": "ignore",
            }  # fmt: skip
            self.process = subprocess.Popen(
                [sys.executable, "-m", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=environment, start_new_session=True,
            )  # fmt: skip
            self.fresh = True
            with contextlib.suppress(BrokenPipeError):
                _send(self.process, {"prepare": self.description})
        return self.process

    def stop(self) -> None:
        """End the process and every one it has started."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                _pipe(pipe).close()
        self.process.wait()
        self.process = None


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _send(process: subprocess.Popen[bytes], request: Mapping[str, Any]) -> None:
    stdin = _pipe(process.stdin)
    stdin.write(json.dumps(request).encode() + b"\n")
    stdin.flush()


def _line(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """The next line of the process. Raises TimeoutError past the deadline, EOFError where the process has ended."""
    handle = _pipe(process.stdout).fileno()
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([handle], [], [], left)[0]:
            raise TimeoutError
        part = os.read(handle, _STEP)
        if not part:
            raise EOFError
        parts.append(part)
    return b"".join(parts)
