"""Which profiler wrote a file, by its content; its name serves only to say what else it may be."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NoReturn

from suanli.readers.traces.source import GZIP, ZIP, Source, refuse
from suanli.units import MEBI

HEAD_BYTES = MEBI
READABLE = (
    "Kineto or Chrome JSON of torch.profiler (.json, .json.gz, .zip), an SQLite export of Nsight Systems, "
    "xplane.pb or trace.json.gz of JAX, JSON of rocprofv3"
)
_EXPORT = "Export it with: nsys export --type sqlite --output {sqlite} {name}"
_ROCPROF = re.compile(rb'\A\s*\{\s*"rocprofiler-sdk-tool"\s*:')
_ROCPROF_KEY = b'"rocprofiler-sdk-tool"'
_EVENTS = re.compile(rb'"traceEvents"\s*:')
_CATEGORY = re.compile(rb'"cat"\s*:')
_JAX = re.compile(rb'"(?:/host:|/device:)|"hlo_op"|"highres-ticks"')
_GRAPH = re.compile(rb'\A\s*\{\s*"schema"\s*:')
_NO_EVENTS = re.compile(rb"\A\[\s*(?:\[|[-\d\"])")  # a list, and not of objects
_XPLANE = re.compile(rb"\A\x0a[\x80-\xff]{0,4}[\x00-\x7f](?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?(?:\x12|\x1a)")
_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd", GZIP: "gzip", ZIP: "zip"}
_OTHER = {
    b"PAR1": "a Parquet file", b"\x89HDF": "an HDF5 file", b"\x7fELF": "a program", b"%PDF": "a PDF",
    b"\x89PNG": "a picture", b"\xff\xd8\xff": "a picture", b"<!doctype html": "a page", b"<html": "a page",
}  # fmt: skip
_WIDE = re.compile(rb"\A(?:\xff\xfe|\xfe\xff|\0\0\xfe\xff|\0{0,3}[\[{]\0|\0{1,3}[\[{])")  # with a mark, or without
_ROCPROF_HINT = "Record with rocprofv3 --output-format json."
# ends of names of what profilers write beside what is read: what it is, and how to get what is
_NAMED = {
    ".pftrace": ("a Perfetto trace is not read", _ROCPROF_HINT),
    ".csv": ("a table of kernels is not read", "Give the trace itself; of rocprofv3, --output-format json."),
    ".ncu-rep": ("a report of Nsight Compute replays single kernels", "Record the step with Nsight Systems."),
    ".pt": ("a file of weights has no times", None),
    ".safetensors": ("a file of weights has no times", None),
}


def format_of(source: Source) -> str:
    """kineto, jax-json, rocprofv3, xplane or nsys. Raises UnreadableFileError for anything else, saying what it is."""
    head = source.head(HEAD_BYTES)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _WIDE.match(head):
        refuse(source.path, "utf16", "the text is UTF-16 or UTF-32", expected="UTF-8",
               hint="Save it as UTF-8, or copy it as binary.")  # fmt: skip
    if head.startswith(b"SQLite format 3\0"):
        return "nsys"
    if text[:1] in (b"{", b"["):
        return _json_format(source, text)
    if _XPLANE.match(head) or source.path.endswith(".xplane.pb"):
        return "xplane"  # a broken one is its reader's to describe
    if not head and source.faults:
        hint = "Copy the file again."
        refuse(
            source.path,
            "broken_gzip",
            "the gzip holds nothing that can be read",
            got=source.faults[0].message,
            hint=hint,
        )
    return _not_read(source.path, head)


def _json_format(source: Source, text: bytes) -> str:
    if _ROCPROF.match(text) or (_ROCPROF_KEY in text[:4096] and not _EVENTS.search(text)):
        return "rocprofv3"
    if _NO_EVENTS.match(text):
        refuse(source.path, "no_trace", "the file is JSON, and its list holds no events", expected=READABLE)
    if b'"workload_graph"' in text[:4096]:
        _graph(source.path, "a chakra graph as JSON")
    if not _EVENTS.search(text) and _GRAPH.match(text) and b'"nodes"' in text:
        _graph(source.path, "an execution trace of PyTorch (ExecutionTraceObserver)")
    if not _CATEGORY.search(text) and _JAX.search(text):
        return "jax-json"
    return "kineto"


def _graph(path: str, what: str) -> NoReturn:
    refuse(
        path, "no_times", f"{what} has operators and what they wait for, and no times of a device", expected=READABLE,
        hint="Give the trace of the profiler that was taken beside it.",
    )  # fmt: skip


def _not_read(path: str, head: bytes) -> NoReturn:
    """Say what the file is, as far as it shows."""
    name = Path(path).name
    if name.endswith((".nsys-rep", ".qdrep")):
        sqlite = f"{name.rsplit('.', 1)[0]}.sqlite"
        hint = _EXPORT.format(sqlite=sqlite, name=name)
        refuse(path, "nsys_report", "a report of Nsight Systems is readable by its own tools alone", hint=hint)
    if head[257:262] == b"ustar":
        chakra = b"chakra" in head[:4096] or b".et\0" in head[:512]
        _graph(path, "a chakra graph (in a tar archive)") if chakra else _refuse_archive(path)
    if name.endswith(".et") or b"\x0a\x06schema" in head[:16]:
        _graph(path, "a chakra graph")
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        hint = "Write the trace with export_chrome_trace."
        refuse(path, "pickle", "a pickle runs code when it is read, so it is not read", expected=READABLE, hint=hint)
    packed = next((kind for magic, kind in _PACKED.items() if head.startswith(magic)), None)
    if packed:
        twice = packed in ("gzip", "zip")
        hint = "It is packed twice: unpack it once." if twice else f"Unpack the {packed} by hand."
        refuse(path, "packed", f"the content is packed with {packed}", expected=READABLE, hint=hint)
    for end, (message, cure) in _NAMED.items():
        if head and name.lower().endswith(end):
            refuse(path, "unknown_format", message, expected=READABLE, hint=cure)
    known = (kind for magic, kind in _OTHER.items() if head.lower().startswith(magic.lower()))
    what = next(known, "nothing but zeros" if not head.strip(b"\0") else "no format that is known")
    refuse(path, "unknown_format", "the file is no trace", got=what if head else "an empty file", expected=READABLE)


def _refuse_archive(path: str | os.PathLike[str]) -> NoReturn:
    refuse(path, "archive", "a tar archive holds many files", hint="Unpack it and give one trace, or the folder.")
