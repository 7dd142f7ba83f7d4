"""Devices of traces in the catalogue."""

from __future__ import annotations

import pytest

from suanli.catalog.devices import find_device
from suanli.explain.device import facts_of
from suanli.nouns.trace import TraceDevice


def test_the_name_in_the_trace_finds_the_row() -> None:
    found = facts_of(TraceDevice(id=0, name="NVIDIA H100 80GB HBM3"))
    assert found.device is not None
    assert found.device.short_id == "h100-sxm"
    assert found.peaks_flop_per_s["bf16"] == 989.4e12  # NVIDIA's data sheet: 1,978.9 sparse, half of it dense
    assert found.reason is None


def test_peaks_are_of_one_device_as_the_framework_sees_it() -> None:
    # an MI250X is 383 TFLOP/s of fp16 in two devices
    found = facts_of(TraceDevice(id=0), gpu=find_device("mi250x"))
    assert found.peaks_flop_per_s["fp16"] == pytest.approx(383e12 / 2, rel=1e-3)


def test_what_the_user_names_stands_above_the_file() -> None:
    found = facts_of(TraceDevice(id=0, name="NVIDIA H100 80GB HBM3"), gpu=find_device("b200"))
    assert found.device is not None
    assert found.device.family == "b200"


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (TraceDevice(id=0), "the file does not name the device; name it with --gpu"),
        (
            TraceDevice(id=0, sm_count=304, memory_bytes=206141652992),
            "the file does not name the device (304 multiprocessors, 192.0 GiB: like mi300x); name it with --gpu",
        ),
        (
            TraceDevice(id=0, name="Mystery 9", sm_count=132, memory_bytes=85 * 10**9),
            "unknown device 'Mystery 9' in the trace (132 multiprocessors, 79.16 GiB: like h100-sxm, h800-sxm); "
            "name it with --gpu",
        ),
        (TraceDevice(id=0, sm_count=7, memory_bytes=10**9), "the file does not name the device; name it with --gpu"),
        (TraceDevice(id=0, name="ARTEMIS"), "unknown device 'ARTEMIS' in the trace; name it with --gpu"),
    ],
)
def test_without_a_row_there_are_no_peaks_and_a_reason(seen: TraceDevice, reason: str) -> None:
    found = facts_of(seen)
    assert found.device is None
    assert not found.peaks_flop_per_s
    assert found.reason == reason


def test_a_peak_that_the_file_states_is_taken_where_the_catalogue_has_none() -> None:
    found = facts_of(TraceDevice(id=0, name="TPU v99", peak_flop_per_s=918e12, memory_bytes_per_s=1.6e12))
    assert found.peaks_flop_per_s == {"bf16": 918e12}
    assert found.memory_bytes_per_s == 1.6e12
    assert found.reason is None
