"""The content says the format; what is no trace is refused with what it is."""

from __future__ import annotations

import gzip
import json
import pickle
import sys
from itertools import count
from pathlib import Path
from types import ModuleType

import pytest

from suanli.errors import UnreadableFileError
from suanli.readers.traces import read_trace
from suanli.readers.traces.front import READERS
from suanli.readers.traces.sniff import READABLE, format_of
from suanli.readers.traces.source import Source

JAX = {"displayTimeUnit": "ns", "traceEvents": [{"ph": "M", "pid": 701, "args": {"name": "/host:CPU"}}, {}]}
KINETO = {"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "pid": 0}]}
XPLANE = b"\x0a\xd8\xf1\x06\x12\x0e/host:metadata"
CONTENTS = {
    "kineto": json.dumps(KINETO).encode(),
    "jax-json": json.dumps(JAX).encode(),
    "rocprofv3": b' {"rocprofiler-sdk-tool": [{}]}',
    "nsys": b"SQLite format 3\0" + bytes(100),
    "xplane": XPLANE,
}


@pytest.mark.parametrize("name", ["a.json", "a.nsys-rep", "a.gz", "no-suffix"])
@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("packed", [False, True])
def test_the_name_does_not_matter(tmp_path: Path, kind: str, name: str, packed: bool) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(CONTENTS[kind]) if packed else CONTENTS[kind])
    assert format_of(Source(path)) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"\xef\xbb\xbf" + json.dumps(KINETO).encode(), "kineto"),
        (json.dumps(KINETO["traceEvents"]).encode(), "kineto"),
        (b'{"metadata": {"a": "rocprofiler-sdk-tool"}, "traceEvents": [{"cat": "kernel"}]}', "kineto"),
        (b'{"traceEvents": [{"name": "a /device: b", "cat": "kernel"}]}', "kineto"),
        (b"\x0a\x9a\x01\x08\x02\x12\x0d/device:TPU:0", "xplane"),
    ],
)
def test_contents(tmp_path: Path, text: bytes, kind: str) -> None:
    (tmp_path / "x").write_bytes(text)
    assert format_of(Source(tmp_path / "x")) == kind


@pytest.mark.parametrize("kind", [kind for kind in READERS if kind != "kineto"])
def test_readers_come_when_they_are_needed(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name = READERS[kind]
    made = ModuleType(module)
    setattr(made, name, lambda path: (name, Path(path).name))
    monkeypatch.setitem(sys.modules, f"suanli.readers.traces.{module}", made)
    (tmp_path / "x").write_bytes(CONTENTS[kind])
    assert read_trace(tmp_path / "x") == (name, "x")


def test_kineto_is_read_with_progress(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(CONTENTS["kineto"])
    told: list[tuple[int, int]] = []
    trace = read_trace(tmp_path / "x", lambda done, total: told.append((done, total)))
    assert (trace.format, len(trace.work)) == ("kineto", 1)
    assert told == [(len(CONTENTS["kineto"]),) * 2]


def test_the_key_of_rocprofv3_need_not_be_the_first(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"version": 1, "rocprofiler-sdk-tool": []}', encoding="utf-8")
    assert format_of(Source(path)) == "rocprofv3"
    path.write_text('{"note": "rocprofiler-sdk-tool", "traceEvents": [{"cat": "kernel"}]}', encoding="utf-8")
    assert format_of(Source(path)) == "kineto"


def tar(name: bytes) -> bytes:
    return gzip.compress(name.ljust(257, b"\0") + b"ustar" + bytes(2000))


@pytest.mark.parametrize(
    ("file", "content", "code", "says"),
    [
        ("a.nsys-rep", b"\1\2\3", "nsys_report", "with: nsys export --type sqlite --output a.sqlite a.nsys-rep"),
        ("a.qdrep", b"", "nsys_report", "nsys export --type sqlite --output a.sqlite a.qdrep"),
        ("a.json", pickle.dumps({}), "pickle", "a pickle runs code when it is read, so it is not read"),
        ("a.json", b'{"schema": "1.0.1", "pid": 1, "nodes": []}', "no_times", "an execution trace of PyTorch"),
        ("a.json", b'{\n "workload_graph": []}', "no_times", "a chakra graph as JSON has operators"),
        ("a.tar.gz", tar(b"tests/data/chakra.0.et"), "no_times", "a chakra graph (in a tar archive)"),
        ("a.et", b"\x5e\x12\x10\x0a\x06schema", "no_times", "a chakra graph has operators"),
        ("a.tar.gz", tar(b"traces/rank0.json"), "archive", "a tar archive holds many files"),
        ("a.gz", gzip.compress(gzip.compress(b"{}")), "packed", "It is packed twice: unpack it once."),
        ("a.gz", gzip.compress(b"[]")[:10], "broken_gzip", "got the gzip ends before its end: the file was cut. Copy"),
        ("a.zst", b"\x28\xb5\x2f\xfdxxx", "packed", "Unpack the zstd by hand."),
        ("a.parquet", b"PAR1xxxx", "unknown_format", "got a Parquet file"),
        ("a", b"", "unknown_format", "got an empty file"),
        ("a", b"hello", "unknown_format", f"expected {READABLE}."),
        ("a.json", b'{"a": 1}', "no_trace", "the file holds no list of traceEvents"),
        ("a.json", b"[[-1, 1, 512], [2, 3]]", "no_trace", "the file is JSON, and its list holds no events"),
        ("a.json", b'["a"]', "no_trace", "the file is JSON, and its list holds no events"),
        ("a.json", "{}".encode("utf-16"), "utf16", "the text is UTF-16 or UTF-32 in "),
        *(("a.json", text.encode(name), "utf16", "the text is UTF-16 or UTF-32 in ")
          for name in ("utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be") for text in ("{}", "[1]")),
        ("a.json", b"\x89PNG\r\n\x1a\n", "unknown_format", "got a picture"),
        ("a.json", b"<!DOCTYPE html><p>", "unknown_format", "got a page"),
        ("a.json", bytes(4096), "unknown_format", "got nothing but zeros"),
        ("a.pftrace", b"\x0a\x05abc", "unknown_format", "Record with rocprofv3 --output-format json."),
        ("a.csv", b"Kind,Name\n", "unknown_format", "a table of kernels is not read"),
        ("a.ncu-rep", b"NVR\0", "unknown_format", "Record the step with Nsight Systems."),
    ],
    ids=count(),  # packed bytes hold the time of packing
)  # fmt: skip
def test_what_is_no_trace_is_refused(tmp_path: Path, file: str, content: bytes, code: str, says: str) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(UnreadableFileError) as caught:
        read_trace(tmp_path / file)
    assert caught.value.faults[0].code == code
    assert says in str(caught.value)


SAMPLES = {
    ".xplane.pb": "xplane", ".sqlite": "nsys", "own_jax010_cpu.trace.json.gz": "jax-json",
    "tl_rocprofv3_908.json.gz": "rocprofv3", "linear_et.json.gz": None, "tar.gz": None,
}  # fmt: skip


@pytest.mark.shared
def test_every_sample_is_told_or_refused(shared: Path) -> None:
    files = sorted((shared / "traces" / "files").iterdir())
    assert len(files) == 45
    for path in files:
        expected = next((kind for end, kind in SAMPLES.items() if path.name.endswith(end)), "kineto")
        try:
            assert format_of(Source(path)) == expected, path.name
        except UnreadableFileError as problem:
            assert expected is None, path.name
            assert problem.faults[0].code == "no_times"
