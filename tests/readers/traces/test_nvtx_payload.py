"""NCCL's payloads: both forms, and what is no payload."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.nouns.trace import CollectiveCall
from suanli.readers.traces.nvtx_payload import Payloads, collective

# (domain, schema, name, type, offset): types are 18 uint64, 22 size_t, 5 int, 16777232 an enum of NCCL's own
ENTRIES = [
    (1, 16777226, "NCCL communicator ID", 18, None),
    (1, 16777226, "Message size [bytes]", 22, 8),
    (1, 16777226, "Peer rank", 5, 16),
    (1, 16777223, "NCCL communicator ID", 18, None),
    (1, 16777223, "Message size [bytes]", 22, 8),
    (1, 16777223, "Reduction operation", 16777232, 16),
]


def head(schema: int, size: int, *, length: int = 0) -> bytes:
    return struct.pack("<QQQQ", 1, schema, size, length)


def test_a_send_by_its_schema() -> None:
    body = struct.pack("<QQi", 0xABC, 4096, 3) + bytes(4)
    said = Payloads(ENTRIES).read(None, head(16777226, 24) + body)
    assert said == {"NCCL communicator ID": 0xABC, "Message size [bytes]": 4096, "Peer rank": 3}
    assert collective("ncclSend", said, {0xABC: 8}) == CollectiveCall(
        name="ncclSend", group="0xabc", group_size=8, message_bytes=4096, peer=3
    )


def test_an_enum_of_nccls_own_is_left_out() -> None:
    body = struct.pack("<QQi", 7, 64, 1) + bytes(4)
    said = Payloads(ENTRIES).read(None, head(16777223, 24) + body)
    assert said == {"NCCL communicator ID": 7, "Message size [bytes]": 64}


def test_the_upper_half_of_numbers_in_the_head_is_not_theirs() -> None:
    body = struct.pack("<QQi", 7, 64, 1)
    content = struct.pack("<IIIIQQ", 1, 5, 16777223, 9, 20, 52) + body
    assert Payloads(ENTRIES).read(None, content) == {"NCCL communicator ID": 7, "Message size [bytes]": 64}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", None),
        (bytes(31), None),
        (head(99, 0), None),  # a schema nobody described
        (head(16777226, 24) + struct.pack("<Q", 5), {"NCCL communicator ID": 5}),  # cut behind the first
        (head(16777226, 8) + struct.pack("<QQi", 5, 6, 7), {"NCCL communicator ID": 5}),  # the size says 8
    ],
)
def test_broken_payloads(content: bytes, said: dict[str, int] | None) -> None:
    assert Payloads(ENTRIES).read(None, content) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"Message size [bytes]": 4096}', {"Message size [bytes]": 4096}),
        (
            '{"payload": {"Peer rank": "3", "NCCL communicator ID": "0xff"}}',
            {"Peer rank": 3, "NCCL communicator ID": 255},
        ),
        ('{"Peer rank": true, "a": "b", "c": 1.5, "d": null}', {}),
        ('{"payload": [1]}', {}),
        ("[1, 2]", None),
        ("{broken", None),
        ("[" * 5000, None),
    ],
)
def test_json(text: str, said: dict[str, int] | None) -> None:
    assert Payloads([]).read(text, None) == said


def test_rows_of_the_schema_that_make_no_sense_are_passed_over() -> None:
    rows = [
        (None, 1, "a", 18, 0),
        (1, 1, None, 18, 0),
        (1, 1, "a", "long", 0),
        (1, 1, "b", 18, -8),
        (1, 1, "c", 18, 9**20),
    ]
    assert Payloads(rows).read(None, head(1, 64) + bytes(64)) == {}


@pytest.mark.parametrize("name", ["ncclGroupStart", "ncclCommCount", "ncclCommInitRankConfig", "nccl", "forward"])
def test_what_is_no_collective(name: str) -> None:
    assert collective(name, {"Message size [bytes]": 8}, {}) is None


@pytest.mark.parametrize("name", ["ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclRecv"])
def test_a_call_that_says_nothing(name: str) -> None:
    assert collective(name, None, {}) == CollectiveCall(name=name)


def test_a_size_below_zero_is_not_said() -> None:
    assert collective("ncclSend", {"Message size [bytes]": -1, "Peer rank": -1}, {}) == CollectiveCall(name="ncclSend")


@given(st.binary(max_size=100))
def test_any_bytes(content: bytes) -> None:
    said = Payloads(ENTRIES).read(None, content)
    assert said is None or set(said) <= {name for _, _, name, _, _ in ENTRIES}
