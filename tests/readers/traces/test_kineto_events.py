"""The decoder: what it skips, what it learns, and that its records hold what is asked for."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from suanli.nouns.trace import HostKind, WorkKind
from suanli.readers.traces.interning import Places
from suanli.readers.traces.kineto_events import (
    NONE,
    NOT_KEPT,
    OP_CATS,
    OTHER_CATS,
    RUNTIME_CATS,
    WORK_CATS,
    KinetoDecoder,
    Width,
    says_more,
)


def test_no_category_is_two_things() -> None:
    every = [*WORK_CATS, *OP_CATS, *RUNTIME_CATS, *OTHER_CATS]
    assert len(every) == len(set(every))
    decoder = KinetoDecoder()
    assert len(decoder.codes) == len(every)
    assert [code for record, code in decoder.codes.items() if record in decoder.others] == [NOT_KEPT] * len(OTHER_CATS)
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
    assert not any(decoder.learn(cat) for cat in ("kernel", "cpu_op", "cuda_runtime", "ac2g"))
    decoder.MOST_CATS = 1
    assert not decoder.learn("newer")


def test_decoders_share_their_records_and_not_what_they_learned() -> None:
    first, second = KinetoDecoder(), KinetoDecoder()
    assert list(first.codes) == list(second.codes)
    assert first.learn("new")
    assert list(first.unknown.values()) == ["new"] and not second.unknown
    with pytest.raises(msgspec.ValidationError, match="Invalid value 'new'"):
        second.many(b'[{"cat": "new", "ph": "X"}]')


def test_full_records_hold_more() -> None:
    args = {"Collective name": "allreduce", "Seq": 3}
    text = json.dumps(
        [{"ph": "X", "cat": "kernel", "args": args}, {"ph": "X", "cat": "cpu_op", "args": {"kernel_backend": "triton"}}]
    ).encode()
    decoder = KinetoDecoder()
    kernel, op = decoder.many(text)
    assert not hasattr(kernel.args, "seq")
    assert says_more([kernel.args], ops=False)
    assert says_more([op.args], ops=True)
    decoder.become_full()
    kernel, op = decoder.many(text)
    assert (bytes(kernel.args.seq), kernel.args.src) == (b"3", NONE)
    assert says_more([], ops=True) is False


WIDE = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"device": 3}}


@pytest.mark.parametrize(
    ("said", "field", "width"),
    [
        ({}, None, Width.WHOLE),
        ({"pid": -1, "ts": -5, "dur": 2**70, "args": {}}, None, Width.WHOLE),
        ({"ts": 5.5}, "ts", Width.DECIMAL),
        ({"dur": 12.0}, "dur", Width.DECIMAL),
        ({"ts": "5"}, "ts", Width.DECIMAL),
        ({"dur": None}, "dur", Width.DECIMAL),
        ({"ph": "B"}, "ph", Width.ANY),
        ({"pid": "process"}, "pid", Width.ANY),
        ({"tid": "7"}, "tid", Width.ANY),
        ({"args": {"device": "3"}}, "args", Width.ANY),
    ],
)
def test_records_are_as_narrow_as_a_file_lets_them_be(said: dict[str, Any], field: str | None, width: Width) -> None:
    """What is no whole number of microseconds as JSON has them must not come through int: 2251799813685248.4 would."""
    decoder, text = KinetoDecoder(), json.dumps([WIDE | said]).encode()
    if field is not None:
        with pytest.raises(msgspec.ValidationError, match=rf"at `\$\[0\]\.{field}"):
            decoder.many(text)
        assert decoder.become_wider(field)
    (record,) = decoder.many(text)
    assert (decoder.width, record.name) == (width, "k")
    assert decoder.codes[type(record)] < NOT_KEPT


def test_the_widest_records_become_no_wider() -> None:
    decoder = KinetoDecoder()
    assert [decoder.become_wider("ts") for _ in range(3)] == [True, True, False]
    assert decoder.width == Width.ANY


def test_places_are_given_in_order() -> None:
    places = Places(str.upper)
    assert places.of(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert places.values_made == ["B", "A"]
    assert places.of([]).tolist() == []
