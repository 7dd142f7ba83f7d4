"""A part of a file of Kineto as columns, read by a process of its own, and given back as one message."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import msgspec
import numpy as np
import numpy.typing as npt

from suanli.readers.traces.json_stream import texts_of
from suanli.readers.traces.kineto_columns import KinetoColumns
from suanli.readers.traces.kineto_salvage import EventReader, WidenedError
from suanli.readers.traces.source import Source
from suanli.readers.traces.stretches import stretch

Read = tuple[EventReader, KinetoColumns]
Array = npt.NDArray[Any]


class Column(msgspec.Struct):
    """A column as its bytes."""

    dtype: str
    data: bytes


class Part(msgspec.Struct, kw_only=True):
    """What was read of a part. Places in the columns are those of its own lists, in which each thing stands once."""

    events: int
    uncategorised: int
    strangers: int
    ended: bool
    tail: bytes
    tail_bytes: int
    content_bytes: int  # of the file, up to where the part ends
    faults: list[tuple[str, int, str]]  # of the packing
    counts: tuple[int, int, int]  # events without a time, of negative duration, and of these of a device
    unknown: dict[str, int]
    names: list[str]
    threads: list[tuple[str, str]]
    copies: list[str]
    details: list[bytes]
    calls: list[bytes]
    work: dict[str, Column]
    host: dict[str, Column]


def read_texts(texts: Iterator[bytes], reader: EventReader, *, to_the_end: bool) -> Read:
    """The events of some texts as columns; the last of a file runs `to_the_end` of its content.

    Only up to the first half of an event, where there is one: all of the file must be read again to make it whole.
    """
    columns = KinetoColumns(reader.decoder)
    held = next(texts)
    for text in texts:
        _take(reader, columns, held, last=False)
        held = text
        if has_halves(reader, columns):
            return reader, columns
    _take(reader, columns, held, last=to_the_end)
    return reader, columns


def has_halves(reader: EventReader, columns: KinetoColumns) -> bool:
    """Whether events begin or end only, and were not made whole."""
    return not reader.paired and bool(columns.halves or reader.state.halves)


def _take(reader: EventReader, columns: KinetoColumns, text: bytes, last: bool) -> None:
    """The events of one text into the columns: again with larger records, where they say more than these could hold."""
    before = replace(reader.state)
    while True:
        try:
            if columns.add(reader.read(text, last)):
                return
            reader.decoder.become_full()
        except WidenedError:
            pass
        reader.state = replace(before)


@contextmanager
def no_gc() -> Iterator[None]:
    """No search for cycles meanwhile: millions of records, none of them in one."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def whole(reader: EventReader, columns: KinetoColumns, *, last: bool) -> bool:
    """Whether a part was read as with the rest: nothing in it was broken, half an event, or ended before its end."""
    state = reader.state
    ends = state.ended if last else not (state.ended or state.tail)
    odd = columns.phases or has_halves(reader, columns)
    return ends and not (state.lost_pieces or state.repaired or state.carried or odd)


def read_part(source: Source, low: int, high: int | None) -> Part | None:
    """The part behind `low` of the content up to `high`; None where it is not `whole`.

    Raises NoBorderError, and UnreadableFileError.
    """
    blocks = stretch(source.blocks(low), low, low, high)
    with no_gc():
        reader, columns = read_texts(texts_of(blocks, closed=high is not None), EventReader(), to_the_end=high is None)
    return _part(source, reader, columns) if whole(reader, columns, last=high is None) else None


def _part(source: Source, reader: EventReader, columns: KinetoColumns) -> Part:
    state = reader.state
    return Part(
        events=state.events, uncategorised=state.uncategorised, ended=state.ended, tail=state.tail,
        strangers=state.strangers, tail_bytes=state.tail_bytes, content_bytes=source.unpacked_bytes,
        faults=[(each.code, each.count, each.message) for each in source.faults],
        counts=(columns.no_time, columns.negative, columns.negative_work), unknown=columns.unknown,
        names=columns.names.values_made, threads=columns.threads.values_made, copies=columns.copies.values_made,
        details=columns.details.ops.keys_made, calls=columns.details.calls.keys_made,
        work=_packed(columns.work()), host=_packed(columns.host()),
    )  # fmt: skip


def _packed(table: Mapping[str, Array]) -> dict[str, Column]:
    """The columns but those that say nothing; none of an empty table."""
    if not len(table["start_ns"]):
        return {}
    return {
        name: Column(values.dtype.str, values.tobytes())
        for name, values in table.items()
        if name in ("start_ns", "end_ns") or (values != -1).any()
    }


def unpacked(table: Mapping[str, Column]) -> dict[str, Array]:
    """The columns of a message, not to be written to."""
    return {name: np.frombuffer(each.data, dtype=each.dtype) for name, each in table.items()}


def main(arguments: list[str]) -> int:
    """Write the part of `PATH LOW HIGH` to the standard output; HIGH is empty for the last. 1 where there is none."""
    path, low, high = arguments
    part = read_part(Source(path), int(low), int(high) if high else None)
    if part is None:
        return 1
    sys.stdout.buffer.write(msgspec.msgpack.encode(part))
    return 0


def run(arguments: list[str]) -> NoReturn:
    """`main` in a process of its own, which ends when its standard input does."""
    code = 1
    try:
        threading.Thread(target=_end_with_input, daemon=True).start()
        code = main(arguments)
        sys.stdout.flush()
    finally:
        os._exit(code)  # at once: nothing is left to be done, and one thread waits


def _end_with_input() -> None:
    os.read(0, 1)  # nothing is ever written to it
    os._exit(1)
