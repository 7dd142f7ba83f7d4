"""Bugs that others reported of their tools and that are of one format, as files of our own through `explain`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.errors import UnreadableFileError
from suanli.explain.account import UNATTRIBUTED
from suanli.explain.reasons import NO_INSTRUCTION
from suanli.nouns.explained import Explained
from suanli.readers.traces import jax_json
from suanli.readers.traces.front import read_trace

from .nsys_made import META, call, kernel, made
from .xspace_made import PlaneMade, Ref, space

KERNEL, RUNTIME = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
NO_SCHEMA = "the export does not say its schema (META_DATA_EXPORT): columns are taken by name"


def told(path: Path, code: str) -> list[str]:
    found: Explained = suanli.explain(path).result
    return [each.message for each in found.warnings if each.code == code]


# --- nsys-ai #235, #237, flameox #190: the version of the schema is not read, and a column that is missing breaks it --


@pytest.mark.parametrize(
    ("report", "meta", "producer", "warned"),
    [
        ("nsys-ai #235", META, "NVIDIA Nsight Systems 2026.1.1.204, schema 3.24.14", []),
        ("nsys-ai #237", [*META[:2], {"name": "EXPORT_SCHEMA_VERSION", "value": "4.0.1"}],
         "NVIDIA Nsight Systems 2026.1.1.204, schema 4.0.1",
         ["the export has schema 4.0.1, written for 3.x: columns are taken by name"]),
        ("flameox #190", META[:2], "NVIDIA Nsight Systems 2026.1.1.204", [NO_SCHEMA]),
        ("flameox #190, nothing said", [{"name": "x", "value": "y"}], "Nsight Systems", [NO_SCHEMA]),
    ],
)  # fmt: skip
def test_what_the_export_says_of_itself(
    tmp_path: Path, report: str, meta: Sequence[Mapping[str, Any]], producer: str, warned: list[str]
) -> None:
    path = made(tmp_path / "a.sqlite", {"META_DATA_EXPORT": meta, KERNEL: [kernel(0, 1)], RUNTIME: [call(0, 1)]})
    assert read_trace(path).producer == producer, report
    assert told(path, "schema-version") == warned


@pytest.mark.parametrize(
    ("report", "lacks", "missing"),
    [
        ("nsys-ai #237", ("deviceId",), ["deviceId"]),
        ("flameox #190", ("deviceId", "end"), ["end", "deviceId"]),
        ("flameox #190, names", ("demangledName", "shortName"), ["demangledName"]),
    ],
)
def test_columns_that_are_missing_are_named(
    tmp_path: Path, report: str, lacks: tuple[str, ...], missing: list[str]
) -> None:
    row = {key: value for key, value in kernel(0, 1).items() if key not in lacks}
    with pytest.raises(UnreadableFileError) as raised:
        suanli.explain(made(tmp_path / "a.sqlite", {KERNEL: [row]}))
    assert [fault.message for fault in raised.value.faults] == [
        f"the nsys export lacks the column {KERNEL}.{name}" for name in missing
    ], report


@pytest.mark.parametrize("lacks", [("globalPid",), ("correlationId",), ("globalPid", "streamId")], ids=", ".join)
def test_columns_one_can_do_without_are_told(tmp_path: Path, lacks: tuple[str, ...]) -> None:
    """nsys-ai #235: an older export is read without them, and they are named."""
    row = {key: value for key, value in kernel(0, 5).items() if key not in lacks}
    path = made(tmp_path / "a.sqlite", {KERNEL: [row], RUNTIME: [call(0, 1)]})
    assert told(path, "missing-column") == [f"the export lacks {', '.join(f'{KERNEL}.{name}' for name in lacks)}"]
    assert suanli.explain(path).result.peak_s == pytest.approx(5e-9)


# --- xprof #3070, jax #21295: a roofline without rows where command buffers ran; a trace that is not all there -------


def test_kernels_without_an_instruction_are_told(tmp_path: Path) -> None:
    """xprof #3070: of three products one names its instruction; the time of the others is there, with its reason."""
    plane = PlaneMade("/device:GPU:0", stats={"core_count": 132})
    dot = {"hlo_op": Ref("dot.1"), "hlo_module": Ref("jit_f")}
    rows = [("sm90_gemm", 0, 3_000_000, dot), ("sm90_gemm", 3_000_000, 5_000_000), ("sm90_gemm", 8_000_000, 7_000_000)]
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space(plane.line("Stream #16(Kernel)", rows, id=16)))
    found: Explained = suanli.explain(path, gpu="h100-sxm").result
    assert found.peak_s == pytest.approx(15e-6)
    assert [(row.name, row.count) for row in found.kernels] == [("sm90_gemm", 3)]
    assert sum(group.seconds for group in found.roofline) == pytest.approx(15e-6)
    (device,) = found.devices
    assert f"{NO_INSTRUCTION} (0.012 ms)" in device.account.reasons[UNATTRIBUTED]
    assert found.share is not None
    assert dict(found.share.reasons)[NO_INSTRUCTION] == pytest.approx(12e-6)


def test_a_trace_that_is_not_all_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """jax #21295: the viewer's file stops at a million events, and nothing says so."""
    events = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "pid": 1, "tid": 16, "name": "thread_name", "args": {"name": "Stream #16(Kernel)"}},
        {"ph": "X", "pid": 1, "tid": 16, "name": "gemm", "ts": 1, "dur": 5, "args": {"hlo_op": "dot.1"}},
    ]
    path = tmp_path / "a.trace.json"
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": [*events, {}]}), encoding="utf-8")
    assert told(path, "dropped-events") == []
    monkeypatch.setattr(jax_json, "MOST_EVENTS", 3)
    assert told(path, "dropped-events") == ["the file is full at 3 events: give the .xplane.pb"]
