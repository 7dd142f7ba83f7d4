"""Events are told apart whoever wrote the JSON, and however the file is cut into blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.readers.traces import json_stream
from suanli.readers.traces.json_stream import NoEventsError, event_texts, last_border, spans

EVENTS: list[dict[str, Any]] = [
    {"ph": "X", "cat": "kernel", "name": f"k{number}", "args": {"Input Dims": [[number], []], "note": "}, {"}}
    for number in range(12)
]
ROW = '  {\n    "ph": "X", "cat": "kernel", "name": "k@",\n    "args": {\n      "x": 1\n    }\n  }'
KINETO = ",\n".join(ROW.replace("@", str(number)) for number in range(12))
FORMS = {
    "one line": json.dumps({"a": 1, "traceEvents": EVENTS, "z": 2}),
    "compact": json.dumps({"a": 1, "traceEvents": EVENTS, "z": 2}, separators=(",", ":")),
    "indented": json.dumps({"a": 1, "traceEvents": EVENTS, "z": 2}, indent=1),
    "sorted": json.dumps({"a": 1, "traceEvents": EVENTS, "z": 2}, sort_keys=True),
    "kineto": f'{{"a": 1,\n  "traceEvents": [\n{KINETO}\n  ], "z": 2}}',
}


def blocks(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [7, 64, 100, 10_000])
@pytest.mark.parametrize("form", FORMS)
def test_every_event_in_one_text(form: str, size: int) -> None:
    header, *texts = event_texts(iter(blocks(FORMS[form].encode(), size)))
    assert json.loads(header.rstrip(b", \n") + b"}") == {"a": 1}
    assert b"traceEvents" not in header
    *whole, last = texts
    names = [each["name"] for text in whole for each in json.loads(text)]
    end = json.JSONDecoder().raw_decode(last.decode())
    names += [each["name"] for each in end[0]]
    assert names == [f"k{number}" for number in range(12)]
    assert last.decode()[end[1] :].strip(" ,\n").startswith('"z"')


def test_a_bare_list_has_no_header() -> None:
    header, text = event_texts(iter([b'\xef\xbb\xbf [{"ph": "X"}]']))
    assert (header, text) == (b"", b'[{"ph": "X"}]')


@pytest.mark.parametrize("text", [b"", b"{}", b'{"traceEvents": 5}', b'"traceEvents"'])
def test_no_events(text: bytes) -> None:
    with pytest.raises(NoEventsError):
        list(event_texts(iter([text])))


REAL = '"traceEvents": [{"ph": "X", "name": "real"}]'
INNER = '"traceEvents": [{"ph": "X", "name": "inner"}]'


@pytest.mark.parametrize("size", [1, 9, 10_000])
@pytest.mark.parametrize(
    "text",
    [
        f"{{{REAL}}}",
        f'{{"a": {{{INNER}}}, {REAL}}}',
        f'\ufeff{{"a": [1, {{"b": {{{INNER}, "c": "}}]\\\\\\"" }}}}], {REAL}}}',
        f'{{"a": "{{[", "b": {{{INNER}}}, {REAL}}}',
        f'{{"traceEvents": [], {REAL}}}',
        f'{{"traceEvents" : [ \n ], "a": {{{INNER}}}, "traceEvents": [], {REAL}, "traceEvents": []}}',
        f'{{{REAL}, "a": {{{INNER}}}, {INNER}}}',
        f'{{"a": "\\"traceEvents\\": [", {REAL}}}',
        f'{{"a"b": {{"c": {{{REAL}}}}}}}',  # broken: what stands inside what cannot be told
        f'{{"a": {{{REAL}}}}}',  # no other list
    ],
)
def test_of_many_lists_the_one_at_the_top_counts(text: str, size: int) -> None:
    header, *texts = event_texts(iter(blocks(text.encode(), size)))
    assert header.decode() == text[: len(header.decode())]
    found = json.JSONDecoder().raw_decode(b"".join(texts).decode())[0] if len(texts) == 1 else []
    assert found == [{"ph": "X", "name": "real"}]


@pytest.mark.parametrize(
    ("text", "header", "rest"),
    [
        ('{"traceEvents": []}', "{", "[]}"),
        ('{"a": {"traceEvents": []}}', '{"a": {', "[]}}"),
        ('{"traceEvents": [], "a": {"traceEvents": [1]}}', "{", '[], "a": {"traceEvents": [1]}}'),
        ('{"traceEvents": [', "{", "["),
        ("[", "", "["),
        ("[ ]", "", "[ ]"),
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_a_list_without_events_is_one(text: str, header: str, rest: str, size: int) -> None:
    assert list(event_texts(iter(blocks(text.encode(), size)))) == [header.encode(), rest.encode()]


def test_very_many_lists_are_not_looked_at_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look reads all that stands before."""
    seen = []
    monkeypatch.setattr(json_stream, "_is_the_list", lambda text, match: seen.append(match) or False)
    header, _ = event_texts(iter([b'{"a": {' + b'"traceEvents": [1], ' * 5_000]))
    assert (len(seen), header) == (json_stream._MOST_LISTS + 1, b'{"a": {')


@pytest.mark.parametrize("size", [7, 64, 100])
def test_no_byte_goes_uncounted(size: int) -> None:
    """Commas between texts are left out, and nothing else."""
    text = FORMS["indented"].encode()
    header, *texts = event_texts(iter(blocks(text, size)))
    inner = [each[1:-1] for each in texts[:-1]]
    assert len(header) + len('"traceEvents": [') + sum(map(len, inner)) + len(inner) + len(texts[-1]) - 1 == len(text)


def test_a_header_without_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MOST_HEADER", 100)
    seen = []

    def endless() -> Any:
        while True:
            seen.append(1)
            yield b"{" + b" " * 40

    with pytest.raises(NoEventsError):
        next(event_texts(endless()))
    assert len(seen) < 6


def test_an_event_without_end_is_given_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MOST_EVENT", 100)
    _, *texts = event_texts(iter([b'{"traceEvents": [{"name": "', *[b"x" * 60] * 10]))
    assert max(map(len, texts)) < 200


def test_the_last_border_is_the_last_one_found_in_any_window() -> None:
    text = b'{"ph": 1}, {"ph": 2},' + b" " * 20_000 + b'{"ph": 3' + b"9" * 300_000
    end, start = last_border(text) or (0, 0)
    assert text[:end].endswith(b'{"ph": 2}')
    assert text[start:].startswith(b'{"ph": 3')
    assert last_border(b'{"ph": 1}') is None


@given(st.integers(1, 400))
def test_spans_cover_the_text(size: int) -> None:
    text = FORMS["kineto"].encode()[:size]
    found = spans(text)
    assert b"".join(text[start:end] for start, end in found) == text
