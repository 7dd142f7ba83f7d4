"""The other side of `runner`: a process that loads torch once and forks a process of its own for every counter.

Reads one request a line, answers one line of JSON each. What a tool prints goes nowhere; what it patches, raises or
leaks dies with its process. Where a system cannot fork, the process answers one request and ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from suanli.compare.books import BOOKS
from suanli.compare.record import record
from suanli.compare.runner import FORKS
from suanli.compare.subject import build
from suanli.errors import SuanliError
from suanli.readers.torch_module.books import units_of
from suanli.readers.torch_module.load import looks_meta, shorten
from suanli.units import KIBI

RECORD = "record"


def main() -> None:
    """Answer requests until the input ends."""
    _end_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    for line in sys.stdin:
        request = json.loads(line)
        if "prepare" in request:
            _prepare(request["prepare"])
        elif FORKS:
            _forked(request, answers)
        else:
            _write(answers, answer(request))
            return


def _prepare(description: Mapping[str, Any]) -> None:
    """Load what every counter needs; what fails here is told by each counter itself.

    Torch loads more of itself at the first call on the meta device, which fails where a tool has patched `torch.add`.
    """
    with contextlib.suppress(Exception):
        for name in ("torch", "torch._dynamo"):
            importlib.import_module(name)
        if description["form"] == "config":
            build({**description, "seq": 1}, "meta")


def _forked(request: Mapping[str, Any], answers: Any) -> None:
    pid = os.fork()
    if pid == 0:
        _end_with_parent()
        status = 1
        with contextlib.suppress(BaseException):
            _write(answers, answer(request))
            status = 0
        os._exit(status)
    _, status = os.waitpid(pid, 0)
    if status:
        _write(answers, {"reason": _death(status)})


_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux's prctl


def _end_with_parent() -> None:
    """Where Linux can do that: a process whose asker is gone ends too."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _death(status: int) -> str:
    """How a process ended that gave no answer."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"crashed: {signal.Signals(number).name}"
    return f"ended without an answer, exit code {os.WEXITSTATUS(status)}"


def _write(answers: Any, found: Mapping[str, Any]) -> None:
    answers.write(json.dumps(found) + "\n")
    answers.flush()


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the counter of a request says, or the reason why it says nothing."""
    _bound(request.get("memory_limit"))
    try:
        return _counted(request)
    except MemoryError:
        return {"reason": "more memory than the bound"}
    except SuanliError as problem:
        return {"reason": problem.faults[0].message}
    except Exception as problem:  # noqa: BLE001  a tool may raise anything; its words are the answer
        last = traceback.extract_tb(problem.__traceback__)[-1]
        where = f" ({Path(last.filename).name}:{last.lineno})"
        words = shorten(problem) or "no message"
        if "can't allocate memory" in str(problem):
            return {"reason": "more memory than the bound"}
        return {"reason": f"{type(problem).__name__}: {words}{where}", "meta": looks_meta(problem)}


def _counted(request: Mapping[str, Any]) -> dict[str, Any]:
    subject = build(request["description"], request["device"])
    start = time.perf_counter()
    if request["tool"] == RECORD:
        calls = record(subject)
        units, unit = units_of((subject.args, subject.kwargs))
        found: dict[str, Any] = {
            "calls": calls, "params": subject.params(), "main_input": subject.main_input, "units": units, "unit": unit,
            "batch": subject.batch(), "positional": len(subject.args) == 1 and not subject.kwargs,
        }  # fmt: skip
    else:
        said = BOOKS[request["tool"]](subject)
        entries = [[path, operator, amount] for (path, operator), amount in said.entries.items()]
        found = {"total": said.total, "params": said.params, "entries": entries, "version": _version(request)}
    return {**found, "seconds": time.perf_counter() - start, "peak_bytes": peak_bytes(), "device": request["device"]}


def _version(request: Mapping[str, Any]) -> str | None:
    """The version its metadata tell; else the module's own."""
    try:
        return version(request["package"])
    except PackageNotFoundError:
        return getattr(sys.modules.get(request["module"]), "__version__", None)


def _bound(limit: int | None) -> None:
    """A bound on the address space: an allocation past it fails in this process and nowhere else."""
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def peak_bytes() -> int:
    """Most memory this process has held: Linux's own figure first, as getrusage's may be that of before a fork."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * KIBI
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * KIBI


if __name__ == "__main__":
    main()
