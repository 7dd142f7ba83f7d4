"""The one way to read a trace: the content says the format, and its reader comes when it is needed."""

from __future__ import annotations

import os
from importlib import import_module
from typing import cast

from suanli.nouns.trace import Trace
from suanli.readers.traces.sniff import format_of
from suanli.readers.traces.source import Progress, Source

READERS = {
    "kineto": ("kineto", "read_kineto"),
    "jax-json": ("jax_json", "read_jax_json"),
    "rocprofv3": ("rocprofv3", "read_rocprofv3"),
    "xplane": ("xplane", "read_xplane"),
    "nsys": ("nsys", "read_nsys"),
}


def read_trace(path: str | os.PathLike[str], progress: Progress | None = None, processes: int = 1) -> Trace:
    """The trace in a file of any readable format. Nothing is written beside it.

    `progress` is told (bytes of the file read, bytes it has) by readers of files that can be long; these may use as
    many `processes`.
    Raises UnreadableFileError for what is no trace, saying what it is and what can be read.
    """
    kind = format_of(Source(path))
    module, name = READERS[kind]
    read = getattr(import_module(f"suanli.readers.traces.{module}"), name)
    return cast(Trace, read(path, progress, processes) if kind == "kineto" else read(path))
