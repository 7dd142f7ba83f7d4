"""A long file of Kineto read by several processes, each a stretch of it, with the result of reading it alone.

A process of its own is started with the interpreter, not forked: threads of whoever calls stay out of it. It ends when
its standard input does, that is with whoever started it, however that one ended. Where anything about a stretch is out
of the ordinary (broken JSON, no border to divide at, a process that fails) there is no result, and the file is read
alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import msgspec

from suanli.nouns.trace import TraceFault
from suanli.readers.traces.json_stream import NoEventsError, header_of, texts_of
from suanli.readers.traces.kineto_columns import KinetoColumns
from suanli.readers.traces.kineto_events import KinetoDecoder
from suanli.readers.traces.kineto_part import Part, read_texts, unpacked, whole
from suanli.readers.traces.kineto_salvage import EventReader
from suanli.readers.traces.source import Progress, Source
from suanli.readers.traces.stretches import NoBorderError, stretch
from suanli.units import MEBI

PART_BYTES = 48 * MEBI  # shorter parts take less time than their process takes to start
AHEAD_BYTES = 32 * MEBI  # are read here until the others have started
MOST_PROCESSES = 8
_PACKAGE = Path(__file__).parents[2]
# The package stands there without its verbs: importing them takes longer than a reader needs to start.
_CHILD = f"""
import sys, types
sys.modules["suanli"] = suanli = types.ModuleType("suanli")
suanli.__path__ = [{str(_PACKAGE)!r}]
from suanli.readers.traces.kineto_part import run
run(sys.argv[1:])
"""
_PROCESS = subprocess.Popen[bytes]
_MESSAGE = msgspec.msgpack.Decoder(Part)


Read = tuple[bytes, EventReader, KinetoColumns]


def read_beside(source: Source, processes: int) -> Read | None:
    """The text before the events of a file, and these; None where it is short, or can only be read alone."""
    size = source.content_bytes() or 0
    count = min(processes, size // PART_BYTES, MOST_PROCESSES)
    if count < 2 or not _interpreter():
        return None
    ahead = min(AHEAD_BYTES, size // (2 * count))
    borders = [ahead + (size - ahead) * place // count for place in range(1, count)]
    try:
        with _started(source.path, borders) as others:
            header, reader, columns = _first(source, borders[0], count)
            parts = [] if not whole(reader, columns, last=False) else list(map(_received, others))
        if len(parts) < len(others):
            return None
        for part in parts:
            _take_over(source, reader, columns, part)
    except (NoBorderError, NoEventsError, OSError, msgspec.DecodeError):
        return None
    return None if len(columns.unknown) > KinetoDecoder.MOST_CATS else (header, reader, columns)


@contextmanager
def _started(path: str, borders: Sequence[int]) -> Iterator[list[_PROCESS]]:
    """A process for each part behind a border; none outlives the block."""
    found: list[_PROCESS] = []
    try:
        for low, high in zip(map(str, borders), (*map(str, borders[1:]), ""), strict=True):
            found.append(_process(path, low, high))
        yield found
    finally:
        for each in found:
            with each:  # its pipe is closed, its end awaited
                each.kill()


def _process(path: str, low: str, high: str) -> _PROCESS:
    command = [*_interpreter(), "-c", _CHILD, path, low, high]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)


def _interpreter() -> list[str]:
    """This interpreter, as far shut off from its surroundings as it is here; [] where it is part of a program."""
    if not sys.executable or getattr(sys, "frozen", False):
        return []
    flags = {"-I": sys.flags.isolated, "-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site}
    # -P: what lies in the folder one works in is no module of ours
    return [sys.executable, "-P", *(flag for flag, is_set in flags.items() if is_set)]


def _first(source: Source, high: int, count: int) -> Read:
    """The text before the events, and the first part, which is read here and stands for all in what is told of it."""
    told = source.progress
    source.progress = None if told is None else _of_all(told, count)
    try:
        blocks = source.blocks()
        header, rest = header_of(blocks)
        mine = stretch(chain((rest,), blocks), source.unpacked_bytes - len(rest), None, high)
        return header, *read_texts(texts_of(mine, closed=True), EventReader(), to_the_end=False)
    finally:
        source.progress = told


def _of_all(told: Progress, count: int) -> Progress:
    return lambda done, size: told(min(done * count, size), size)


def _received(process: _PROCESS) -> Part:
    """What a process read. Raises DecodeError where it has no part to give."""
    assert process.stdout is not None
    return _MESSAGE.decode(process.stdout.read())  # `communicate` would end its input, and so the process


def _take_over(source: Source, reader: EventReader, columns: KinetoColumns, part: Part) -> None:
    """A part behind what there is. Things get their places in the order in which one reader meets them."""
    lists: dict[str, Sequence[object]] = {"name": part.names, "thread": part.threads, "copy": part.copies,
             "detail": part.details, "collective": part.calls}  # fmt: skip
    columns.take_over(lists, unpacked(part.work), unpacked(part.host))
    columns.take_counts(part.counts, part.unknown)
    state = reader.state
    state.events += part.events
    state.uncategorised += part.uncategorised
    state.strangers += part.strangers
    state.ended, state.tail, state.tail_bytes = part.ended, part.tail, part.tail_bytes
    source.unpacked_bytes = part.content_bytes
    source.faults = [TraceFault(code=code, count=count, message=message) for code, count, message in part.faults]
