"""What a process of `coverage_pool` runs: types are read from stdin, a line each, and what was found goes to stdout."""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO

from suanli.coverage import check_type
from suanli.coverage_pool import not_run
from suanli.nouns.coverage import Covered
from suanli.nouns.result import plain
from suanli.readers.hf_types.mappings import TypeOfTask
from suanli.units import GIBI

MEMORY_BYTES = 8 * GIBI


def main() -> None:
    """Answer until stdin ends. Models that print do so elsewhere."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    limit_memory(MEMORY_BYTES)
    serve(sys.stdin, answers)


def serve(questions: TextIO, answers: TextIO) -> None:
    """One answer a question, whatever happens in it."""
    for line in questions:
        answers.write(json.dumps(plain(answer(json.loads(line)))) + "\n")
        answers.flush()


def answer(asked: dict[str, object]) -> Covered:
    """What was found of one type."""
    configs = asked.pop("configs")
    assert isinstance(configs, list)
    task = TypeOfTask(**{key: str(value) for key, value in asked.items()})
    try:
        return check_type(task, tuple(configs))
    except Exception as problem:  # noqa: BLE001  one type must not end the others
        return not_run(task, f"{type(problem).__name__}: {str(problem)[:200]}")


def limit_memory(size: int) -> None:
    """No more memory than this, where the system can say so."""
    try:
        import resource  # noqa: PLC0415  not on Windows
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


if __name__ == "__main__":
    main()
