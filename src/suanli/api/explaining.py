"""`suanli.explain`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import suanli.explain  # noqa: F401  loads the package before `suanli.explain` is bound to the verb; it holds nothing
from suanli.api.keeping import keeps_request
from suanli.nouns.result import Result

Progress = Callable[[float], None]  # the part of the reading that is done
Path = str | os.PathLike[str]


@keeps_request
def explain(
    trace: Path,
    *more: Path,
    model: Any = None,
    seq: Any = None,
    batch: Any = None,
    gpus: Any = None,
    gpu: str | None = None,
    dtype: str | None = None,
    convention: str | None = None,
    against: Path | None = None,
    compare: Path | None = None,
    steps: Any = None,
    device: Any = None,
    engine: str | None = None,
    workers: Any = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Where the time of a trace went, as entries that close; with a folder or several files, of many ranks.

    `trace` is a file of torch.profiler, Nsight Systems (exported to SQLite), JAX or rocprofv3. `gpu` stands above the
    device named in it. With `model` its FLOPs for steps of `batch` sequences of `seq` positions on `gpus` devices are
    set against the kernels'. `against` is an answer of `layout` as JSON, `compare` another trace. `steps` (2..4)
    and `device` (0,1) take a part of it. `engine`, `workers` and `cache` are for many ranks. `progress` is told the
    part read. Raises InputError listing every fault, UnreadableFileError for what is no trace.
    """
    from suanli.api.explained import explain_files  # noqa: PLC0415  numpy comes with the first trace alone

    typed = {key: value for key, value in locals().items() if key not in ("trace", "more", "explain_files", "progress")}
    return explain_files([trace, *more], typed, progress)
