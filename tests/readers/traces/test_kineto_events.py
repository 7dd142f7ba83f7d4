"""The decoder: what it skips, what it learns, and that its records hold what is asked for."""

from __future__ import annotations

import json

import msgspec
import pytest

from suanli.nouns.trace import HostKind, WorkKind
from suanli.readers.traces.interning import Places
from suanli.readers.traces.kineto_events import (
    NONE,
    OP_CATS,
    OTHER_CATS,
    RUNTIME_CATS,
    WORK_CATS,
    KinetoDecoder,
    says_more,
)


def test_no_category_is_two_things() -> None:
    every = [*WORK_CATS, *OP_CATS, *RUNTIME_CATS, *OTHER_CATS]
    assert len(every) == len(set(every))
    decoder = KinetoDecoder()
    assert len(decoder.codes) + len(decoder.others) == len(every)
    assert set(decoder.work.values()) == set(WorkKind)
    assert set(decoder.ops.values()) | set(decoder.runtime.values()) == set(HostKind)


def test_a_category_is_learned_once_and_up_to_a_bound() -> None:
    decoder = KinetoDecoder()
    text = b'[{"cat": "new", "ph": "X"}]'
    with pytest.raises(msgspec.ValidationError, match="Invalid value 'new'"):
        decoder.many(text)
    assert decoder.learn("new")
    assert [record.ph for record in decoder.many(text)] == ["X"]
    assert not decoder.learn("new")
    decoder.MOST_CATS = 1
    assert not decoder.learn("newer")


def test_full_records_hold_more() -> None:
    args = {"Collective name": "allreduce", "Seq": 3}
    text = json.dumps(
        [{"cat": "kernel", "args": args}, {"cat": "cpu_op", "args": {"kernel_backend": "triton"}}]
    ).encode()
    decoder = KinetoDecoder()
    kernel, op = decoder.many(text)
    assert not hasattr(kernel.args, "seq")
    assert says_more([kernel.args], ops=False)
    assert says_more([op.args], ops=True)
    decoder.become_full()
    kernel, op = decoder.many(text)
    assert (bytes(kernel.args.seq), kernel.args.src) == (b"3", NONE)
    assert says_more(decoder.many(b'[{"cat": "cpu_op"}]')[0:0], ops=True) is False


def test_places_are_given_in_order() -> None:
    places = Places(str.upper)
    assert places.of(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert places.values_made == ["B", "A"]
    assert places.of([]).tolist() == []
