"""The public exports, against SQL and plain Python that know nothing of the reader."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from suanli.explain.intervals import covered_ns
from suanli.nouns.trace import HostKind, Trace, WorkKind
from suanli.readers.traces.nsys import read_nsys

pytestmark = pytest.mark.shared
FILES = ("nsysai_h100_2gpu_1s", "nsysai_mfu_2gpu_before", "nsysai_mock", "nsysai_healthy_1pct")
WORK = ("KERNEL", "MEMCPY", "MEMSET")


def sample(shared: Path, name: str) -> Path:
    return shared / "traces" / "files" / f"{name}.sqlite"


def asked(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def there(path: Path) -> set[str]:
    return {name for (name,) in asked(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}


def busy(spans: list[tuple[int, int]]) -> int:
    """Covered ns, one span after the other."""
    total = until = 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def idle(trace: Trace, device: int) -> tuple[int, int]:
    """Window and idle ns of a device."""
    work, of = trace.work, trace.work.device == device
    window = int(work.end_ns[of].max() - work.start_ns[of].min())
    return window, window - covered_ns(work.start_ns[of], work.end_ns[of])


@pytest.mark.parametrize("name", FILES)
def test_windows_and_idle_time_are_those_of_sql(shared: Path, name: str) -> None:
    path = sample(shared, name)
    trace = read_nsys(path)
    tables = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in WORK if f"CUPTI_ACTIVITY_KIND_{kind}" in there(path)]
    rows = [row for table in tables for row in asked(path, f'SELECT deviceId, start, "end" FROM {table}')]
    assert len(trace.work) == len(rows)
    for device in {row[0] for row in rows}:
        spans = [(start, end) for number, start, end in rows if number == device]
        window = max(end for _, end in spans) - min(start for start, _ in spans)
        assert idle(trace, device) == (window, window - busy(spans))


def test_two_h100_wait_for_copies(shared: Path) -> None:
    """reference/traces.md §4.1: 6.6 ms idle of 969 on device 0, 6.4 on device 1; 940 ms are copies."""
    trace = read_nsys(sample(shared, "nsysai_h100_2gpu_1s"))
    assert [idle(trace, device) for device in (0, 1)] == [(969_447_605, 6_557_358), (969_258_578, 6_447_873)]
    of = (trace.work.device == 0) & (trace.work.kind == WorkKind.COPY)
    assert covered_ns(trace.work.start_ns[of], trace.work.end_ns[of]) // 10**6 == 940


def test_launches_are_joined_within_their_process(shared: Path) -> None:
    """reference/traces.md §2.2: 3,986 of 4,010 kernels; by the correlation alone 4,280 pairs, 294 of them false."""
    path = sample(shared, "nsysai_mfu_2gpu_before")
    trace = read_nsys(path)
    kernels = trace.work.kind == WorkKind.KERNEL
    assert (int(kernels.sum()), int((trace.work.launch[kernels] >= 0).sum())) == (4010, 3986)
    pairs = """SELECT k.start, r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
        ON k.correlationId = r.correlationId AND k.globalPid = r.globalTid - r.globalTid % 16777216"""
    expected = sorted(asked(path, pairs))
    assert len(expected) == 3986
    rows = [row for row in range(len(trace.work)) if kernels[row] and trace.work.launch[row] >= 0]
    base = trace.base_ns
    found = [
        (int(trace.work.start_ns[row]) - base, int(trace.host.start_ns[trace.work.launch[row]]) - base) for row in rows
    ]
    assert sorted(found) == expected


@pytest.mark.parametrize(
    ("name", "calls", "ranges"), [("nsysai_h100_2gpu_1s", 5796, 16782), ("nsysai_mfu_2gpu_before", 7466, 19118)]
)
def test_every_host_span_is_there(shared: Path, name: str, calls: int, ranges: int) -> None:
    trace = read_nsys(sample(shared, name))
    runtime = int((trace.host.kind == HostKind.RUNTIME).sum())
    assert (runtime, len(trace.host) - runtime) == (calls, ranges)
    assert trace.faults == ()


def test_kernel_time_by_name_is_that_of_sql(shared: Path) -> None:
    path = sample(shared, "nsysai_mfu_2gpu_before")
    trace = read_nsys(path)
    sql = """SELECT s.value, sum(k."end" - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k
        JOIN StringIds s ON s.id = k.demangledName GROUP BY 1"""
    found: dict[str, int] = {}
    for row in range(len(trace.work)):
        if trace.work.kind[row] == WorkKind.KERNEL:
            name = trace.names[trace.work.name[row]]
            found[name] = found.get(name, 0) + int(trace.work.end_ns[row] - trace.work.start_ns[row])
    assert found == dict(asked(path, sql))


def test_copied_bytes_by_direction_are_those_of_sql(shared: Path) -> None:
    path = sample(shared, "nsysai_h100_2gpu_1s")
    trace = read_nsys(path)
    labels = {"HtoD": 1, "DtoH": 2, "DtoD": 8}
    found = {
        labels[label]: int(trace.work.bytes[trace.work.copy == place].sum())
        for place, label in enumerate(trace.copy_kinds)
    }
    assert found == dict(asked(path, "SELECT copyKind, sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY GROUP BY 1"))


def test_what_the_mock_says_of_its_gpu(shared: Path) -> None:
    device = read_nsys(sample(shared, "nsysai_mock")).devices[0]
    assert (device.name, device.sm_count, device.memory_bytes_per_s) == ("NVIDIA GeForce RTX 3080", 68, 760_080_000_000)
