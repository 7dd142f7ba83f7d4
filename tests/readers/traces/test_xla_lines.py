"""What XLA's profiler calls devices, lines, copies and calls."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.nouns.trace import HostKind, OpDetail, WorkKind
from suanli.readers.traces.xla_lines import (
    copied_bytes,
    copy_label,
    detail_of,
    device_of,
    host_kind,
    host_name,
    short_name,
    stream_of,
    work_kind,
)


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("/device:GPU:0", ("GPU", 0)),
        ("/device:TPU:12", ("TPU", 12)),
        ("/host:CPU", None),
        ("/device:TPU:0 SparseCore 1", None),
        ("/device:GPU:9999999", None),
    ],
)
def test_devices(name: str, of: tuple[str, int] | None) -> None:
    assert device_of(name) == of


@pytest.mark.parametrize(
    ("device", "line", "stream"),
    [
        ("GPU", "Stream #16(Kernel)", 16),
        ("GPU", "Stream #7(MemcpyH2D,Memset)", 7),
        ("GPU", "XLA Ops", None),
        ("GPU", "Steps", None),
        ("TPU", "XLA Ops", 3),
        ("TPU", "Async XLA Ops", 3),
        ("TPU", "XLA Modules", None),
        ("TPU", "Steps", None),
        ("TPU", "XLA TraceMe", None),
        ("TPU", "Stream #1", None),
    ],
)
def test_lines_that_count(device: str, line: str, stream: int | None) -> None:
    assert stream_of(device, line, 3) == stream


@pytest.mark.parametrize(
    ("name", "said", "kind"),
    [
        ("gemm", {}, WorkKind.KERNEL),
        ("MemcpyD2D", {}, WorkKind.COPY),
        ("CopyDeviceToDevice", {}, WorkKind.COPY),
        ("anything", {"memcpy_details": "size:8"}, WorkKind.COPY),
        ("Memset", {}, WorkKind.SET),
        ("anything", {"memset_details": "size:8"}, WorkKind.SET),
        ("copy-done.3", {"hlo_category": "copy-done"}, WorkKind.COPY),
        ("fusion.3", {"hlo_category": "loop fusion"}, WorkKind.KERNEL),
        ("all-reduce-start", {"hlo_category": "all-reduce-start"}, WorkKind.KERNEL),
        ("__amd_rocclr_copyBuffer.kd", {"kernel_details": " grid:1,1,1"}, WorkKind.KERNEL),  # as the profiler says
    ],
)
def test_kinds_of_work(name: str, said: dict[str, Any], kind: WorkKind) -> None:
    assert work_kind(name, said) is kind


@pytest.mark.parametrize(
    ("name", "label"),
    [("MemcpyH2D", "HtoD"), ("MemcpyP2P", "PtoP"), ("CopyHostToDevice", "HtoD"), ("MemcpyOther", None), ("gemm", None)],
)
def test_directions(name: str, label: str | None) -> None:
    assert copy_label(name) == label


@pytest.mark.parametrize(
    ("details", "size"),
    [
        ("kind:Unknown size:655360 dest:2 async:1", 655360),
        ("kind:Unknown size:0 dest:512 async:1", -1),  # written where it is not known
        ("num_bytes:12 async:1", 12),
        ("", -1),
    ],
)
def test_sizes(details: str, size: int) -> None:
    assert copied_bytes({"memcpy_details": details}) == size


@pytest.mark.parametrize(
    ("name", "short"),
    [("%fusion.3 = f32[2]{0} fusion()", "fusion.3"), ("gemm_kernel", "gemm_kernel"), ("", "shown"), ("%odd", "%odd")],
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name, "shown") == short


def test_details() -> None:
    assert detail_of({}) is None
    assert detail_of({"flops": "12.5", "kernel_details": "  "}) == OpDetail(flops=12.5)
    assert detail_of({"flops": "many", "model_flops": -1, "bytes_accessed": float("inf")}) is None
    text = "%a = f32[2]{0} add()"
    assert detail_of({"long_name": text, "hlo_op": "a"}) == OpDetail(hlo={"op": "a", "text": text})


@pytest.mark.parametrize(
    ("name", "said", "kind"),
    [
        ("cuLaunchKernel", {}, HostKind.RUNTIME),
        ("hipModuleLaunchKernel", {}, HostKind.RUNTIME),
        ("anything", {"correlation_id": 3}, HostKind.RUNTIME),
        ("custom phase", {}, HostKind.MARK),
        ("customPhase", {}, HostKind.MARK),  # begins with cu, and is nobody's call
        ("train", {"step_num": 0}, HostKind.MARK),
        ("ThunkExecutor::Execute", {}, HostKind.OP),
    ],
)
def test_kinds_of_host_spans(name: str, said: dict[str, Any], kind: HostKind) -> None:
    assert host_kind(name, said) is kind


def test_steps_have_their_number() -> None:
    assert (host_name("train", 3), host_name("train", 0), host_name("train", None)) == ("train#3", "train#0", "train")
