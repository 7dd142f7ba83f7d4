"""A trace explained from end to end: laws on random traces, and the public samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import InputError
from suanli.explain import account as a
from suanli.explain.account import closes
from suanli.explain.whole import explain_trace
from suanli.nouns.attribution import Attribution
from suanli.nouns.explained import Explained
from suanli.nouns.result import plain
from suanli.nouns.trace import DeviceWork, Host, OpDetail, Trace
from suanli.readers.traces import read_trace
from suanli.readers.traces.columns import HOST_COLUMNS, WORK_COLUMNS, sorted_tables

Make = Callable[..., Trace]
NAMES = (
    "ampere_sgemm_128x64_nn",
    "add",
    "ncclDevKernel_AllReduce_Sum",
    "Memcpy HtoD (Pageable -> Device)",
    "copy_peer",
)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 300), st.integers(0, 60), st.sampled_from(NAMES), st.integers(0, 1), st.integers(0, 2),
        st.integers(-1, 7),
    ),
    max_size=25,
)  # fmt: skip


def trace_of(make: Make, rows: list[tuple[int, int, str, int, int, int]]) -> Trace:
    """Rows (start, length, name, device, stream, launch) with eight launches, steps and a synchronisation."""
    host: list[dict[str, Any]] = [
        {"name": "cudaLaunchKernel", "start_ns": 40 * k, "end_ns": 40 * k + 5} for k in range(8)
    ]
    host += [
        {"name": f"ProfilerStep#{k}", "kind": "mark", "start_ns": 100 * k, "end_ns": 100 * k + 95} for k in range(3)
    ]
    host.append({"name": "cudaStreamSynchronize", "start_ns": 130, "end_ns": 155})
    work = [
        {"start_ns": s, "end_ns": s + n, "name": name, "device": device, "stream": stream, "launch": launch,
         "kind": "copy" if name.startswith("Memcpy") else "kernel"}
        for s, n, name, device, stream, launch in rows
    ]  # fmt: skip
    return make(work, host)


@given(ROWS)
def test_every_account_closes(make: Make, rows: list[tuple[int, int, str, int, int, int]]) -> None:
    found = explain_trace(trace_of(make, rows))
    assert closes(found.account, found.peak_s)
    for account in [each.account for each in (*found.devices, *found.steps)]:
        assert closes(account.entries, account.peak_s)
        assert all(each.seconds > 0 for each in account.entries)
    for device in found.devices:
        assert device.usage.window_s == pytest.approx(device.account.peak_s, abs=1e-18)
        assert device.usage.idle_s == pytest.approx(device.account.idle_s, abs=1e-15)
        exposed = device.account.seconds(a.COMMUNICATION)
        assert exposed == pytest.approx(device.usage.exposed_communication_s, abs=1e-15)


@given(ROWS, st.integers(0, 300), st.integers(0, 60))
def test_one_more_unlinked_kernel_never_makes_a_device_less_busy(
    make: Make, rows: list[tuple[int, int, str, int, int, int]], start: int, length: int
) -> None:
    def busy(each: Explained) -> float:
        return sum(device.usage.busy_s for device in each.devices)

    more = [*rows, (start, length, "add", 0, 2, -1)]
    assert busy(explain_trace(trace_of(make, more))) >= busy(explain_trace(trace_of(make, rows))) - 1e-18


def permuted(trace: Trace, order: list[int]) -> Trace:
    """The same rows of work given in another order and sorted again."""
    work = {name: getattr(trace.work, name)[order] for name in WORK_COLUMNS}
    host = {name: getattr(trace.host, name) for name in HOST_COLUMNS}
    made: tuple[DeviceWork, Host] = sorted_tables(work, host)
    return replace(trace, work=made[0], host=made[1])


@given(ROWS, st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_the_order_of_the_file_does_not_matter(
    make: Make, rows: list[tuple[int, int, str, int, int, int]], random: Any
) -> None:
    # rows that are alike in all that is sorted by may stand either way: give each row a start of its own
    apart = [(s * 30 + k, n, *rest) for k, (s, n, *rest) in enumerate(rows)]
    trace = trace_of(make, apart)  # type: ignore[arg-type]
    order = list(range(len(trace.work)))
    random.shuffle(order)
    first, second = explain_trace(trace), explain_trace(permuted(trace, order))
    assert first.account == second.account
    assert first.steps == second.steps


@given(ROWS)
@settings(max_examples=30)
def test_steps_tile_the_time_from_the_first_to_the_last(
    make: Make, rows: list[tuple[int, int, str, int, int, int]]
) -> None:
    found = explain_trace(trace_of(make, rows))
    for device in found.devices:
        own = [step for step in found.steps if step.device == device.device]
        assert [step.end_ns for step in own[:-1]] == [step.start_ns for step in own[1:]]


def test_a_product_that_crosses_a_border_has_its_flops_in_both_steps(
    make: Make, attribute: Callable[..., Attribution]
) -> None:
    # launched in the first step, runs 50..150; the second step's first work starts at 120: 70 and 30 of its 100 ns
    host = [{"name": "cudaLaunchKernel", "start_ns": t, "end_ns": t + 2} for t in (10, 102)]
    host += [{"name": f"ProfilerStep#{k}", "kind": "mark", "start_ns": 100 * k, "end_ns": 100 * k + 95} for k in (0, 1)]
    work = [
        {"name": NAMES[0], "start_ns": 50, "end_ns": 150, "launch": 0},
        {"name": "add", "start_ns": 120, "end_ns": 170, "stream": 1, "launch": 1},
    ]
    flops = 40e-9 * 989.4e12  # 40 ns at the peak of an H100 in bf16
    found = explain_trace(make(work, host), lambda *_: attribute([0, 1], [flops, None], ["bf16", None]))
    assert [step.seconds for step in found.steps] == pytest.approx([70e-9, 50e-9])
    assert [step.account.seconds(a.USEFUL) for step in found.steps] == pytest.approx([28e-9, 12e-9])
    assert [step.account.seconds(a.INEFFICIENCY) for step in found.steps] == pytest.approx([42e-9, 18e-9])
    assert found.attributed_fraction == 1.0
    assert [step.flops for step in found.steps] == pytest.approx([0.7 * flops, 0.3 * flops])
    assert [step.recompute_flops for step in found.steps] == [0.0, 0.0]
    assert found.devices[0].flops == pytest.approx(flops)


def test_flops_of_recomputation_stand_apart_and_unknown_ones_are_none(
    make: Make, attribute: Callable[..., Attribution]
) -> None:
    work = [{"name": NAMES[0], "start_ns": 100 * k, "end_ns": 100 * k + 100} for k in range(3)]
    known = attribute([0, 0, 0], [3e3, 5e3, None], ["bf16", "bf16", None], recompute=[1])
    (device,) = explain_trace(make(work), lambda *_: known).devices
    assert (device.flops, device.recompute_flops) == (3e3, 5e3)
    (device,) = explain_trace(make(work), lambda *_: attribute([0, 0, 0], [None] * 3, [None] * 3)).devices
    assert (device.flops, device.recompute_flops) == (None, None)
    (device,) = explain_trace(make(work)).devices
    assert (device.flops, device.recompute_flops) == (None, None)


def test_peaks_and_rank_are_said(make: Make) -> None:
    found = explain_trace(trace_of(make, [(0, 100, "add", 0, 0, 0)]))
    assert found.devices[0].peaks_flop_per_s["bf16"] == 989.4e12
    assert found.devices[0].memory_bytes_per_s == 3350e9
    (rank,) = found.ranks
    assert (rank.path, rank.rank, rank.devices, rank.idle_fraction) == ("t", None, 1, 0.0)
    assert rank.seconds == pytest.approx(100e-9)


def test_roofline_is_of_each_device(make: Make, attribute: Callable[..., Attribution]) -> None:
    trace = trace_of(make, [(0, 100, "add", 0, 0, 0), (0, 50, "add", 1, 0, 1)])
    found = explain_trace(trace, lambda *_: attribute([1, 1], [None, None], [None, None]))
    assert [(row.device, row.count, row.seconds) for row in found.roofline] == [
        (0, 1, pytest.approx(100e-9)),
        (1, 1, pytest.approx(50e-9)),
    ]
    assert explain_trace(trace).roofline == ()


def test_a_span_that_only_holds_others_is_no_work(make: Make) -> None:
    work = [
        {"name": "while.1", "start_ns": 0, "end_ns": 1000, "detail": 0},
        {"name": "add", "start_ns": 100, "end_ns": 200, "stream": 1},
        {"name": "add", "start_ns": 300, "end_ns": 400, "stream": 1},
    ]
    (device,) = explain_trace(make(work, details=(OpDetail(hlo={"category": "while"}),))).devices
    assert (device.work, device.usage.window_s, device.usage.busy_s) == (
        2,
        pytest.approx(300e-9),
        pytest.approx(200e-9),
    )


def test_devices_are_never_merged(make: Make) -> None:
    found = explain_trace(trace_of(make, [(0, 100, "add", 0, 0, 0), (100, 100, "add", 1, 0, 1)]))
    assert [(each.device, each.usage.window_s, each.usage.idle_s) for each in found.devices] == [
        (0, 100e-9, 0.0),
        (1, 100e-9, 0.0),
    ]
    assert found.peak_s == pytest.approx(200e-9)


def test_impossible_durations_are_cut_before_anything_is_counted(make: Make) -> None:
    work = [{"start_ns": 0, "end_ns": 10**9}, {"start_ns": 1000, "end_ns": 2000}]
    found = explain_trace(make(work))
    assert found.peak_s == pytest.approx(2e-6)
    assert found.warnings[0].code == "impossible-duration"


def test_without_device_work_there_is_an_answer(make: Make) -> None:
    found = explain_trace(make())
    assert (found.devices, found.account, found.peak_s, found.attributed_fraction) == ((), (), 0, None)
    assert found.reasons == {"attributed_fraction": "the trace has no matmul time"}
    assert found.steps_found == "no steps: the file has no device work"


def test_it_is_json(make: Make) -> None:
    found = plain(explain_trace(trace_of(make, [(0, 100, "add", 0, 0, 0)])))
    assert {"account", "steps", "kernels", "collectives", "attributed_fraction", "advice", "warnings"} <= set(found)
    assert set(found["account"][0]) == {"entry", "seconds", "fraction"}


def test_two_hundred_thousand_rows_are_swept_in_a_second_or_so(make: Make) -> None:
    count = 283_000
    start = np.arange(count, dtype=np.int64) * 10_000
    work = {
        "start_ns": start,
        "end_ns": start + 9_000,
        "device": np.zeros(count),
        "stream": np.arange(count) % 3,
        "name": np.arange(count) % 4,
        "kind": (np.arange(count) % 4 == 3).astype(np.uint8),
    }
    base = make([{"start_ns": 0, "end_ns": 1}])
    tables = sorted_tables(work, {name: getattr(base.host, name) for name in ("start_ns", "end_ns", "thread")})
    trace = replace(base, names=NAMES, work=tables[0], host=tables[1])
    begin = time.process_time()
    explain_trace(trace)
    assert time.process_time() - begin < 4  # 0.6 s measured; a loop over rows would take minutes


# --- the public samples: exact values of traces.md §4.1, made with exact integer intervals ---------------------------

WINDOW = [
    # file, field of Usage, expected µs, within µs (half of the last digit that is printed)
    ("tl_h100_bert_small.json.gz", "compute_s", 307.2, 0.05),
    ("tl_vllm_decode_graph.json.gz", "idle_s", 25.5, 0.05),
    ("tl_h100_qwen05b.json.gz", "window_s", 49653, 0.5),
    ("hta_triton_example.json.gz", "compute_s", 1.76, 0.005),
    ("tl_mi300_xdit_sd35.json.gz", "compute_s", 712_014, 0.5),
    ("hta_a100_train_rank0.json.gz", "exposed_communication_s", 185_317, 0.5),
    ("tl_mi300_resnet_actckpt.json.gz", "exposed_communication_s", 55_625, 0.5),
]


@pytest.fixture(scope="module")
def explained(shared: Path) -> Callable[[str], Explained]:
    kept: dict[str, Explained] = {}

    def of(name: str) -> Explained:
        if name not in kept:
            kept[name] = explain_trace(read_trace(shared / "traces" / "files" / name))
        return kept[name]

    return of


@pytest.mark.shared
@pytest.mark.parametrize(("file", "field", "expected", "within"), WINDOW)
def test_public_values(
    explained: Callable[[str], Explained], file: str, field: str, expected: float, within: float
) -> None:
    (device,) = explained(file).devices
    assert getattr(device.usage, field) * 1e6 == pytest.approx(expected, abs=within)
    assert closes(device.account.entries, device.account.peak_s)


@pytest.mark.shared
def test_public_steps_without_the_last(explained: Callable[[str], Explained]) -> None:
    (usage,) = explained("hta_v100_ns_resolution.json.gz").whole_steps
    assert usage.idle_s * 1e6 == pytest.approx(6452.7, abs=0.05)


@pytest.mark.shared
def test_unlinked_kernels_are_counted(explained: Callable[[str], Explained]) -> None:
    (device,) = explained("hta_diff_test_v100.json.gz").devices
    assert device.usage.idle_fraction == pytest.approx(0.0366, abs=0.00005)  # 58.8 % where they are dropped
    assert device.unlinked > 0


@pytest.mark.shared
def test_no_layer_of_a_single_step_is_called_a_step(explained: Callable[[str], Explained]) -> None:
    for file in ("tl_vllm_decode_graph.json.gz", "tl_sglang_prefilldecode.json.gz"):
        assert explained(file).steps == ()


@pytest.mark.shared
def test_steps_of_old_files_without_marks(explained: Callable[[str], Explained]) -> None:
    found = explained("tl_mi300_ddp_resnet18.json.gz")
    assert (found.steps_found, len(found.steps)) == ("from the end of one optimizer step to the next", 5)


@pytest.mark.shared
def test_nsys_of_two_devices(explained: Callable[[str], Explained]) -> None:
    found = explained("nsysai_h100_2gpu_1s.sqlite").devices
    assert [round(each.usage.idle_s * 1e3, 1) for each in found] == [6.6, 6.4]  # copies are work: 940 ms of them
    assert found[0].usage.window_s * 1e3 == pytest.approx(969, abs=0.5)


# Parts of the window that the reference prints to 0.1 % (its prototype took kernels of one op together, so that of
# what its matmul holds only samples without helper kernels agree).
PARTS = [
    ("tl_mi300_xdit_sd35.json.gz", "idle", 39.2),
    ("tl_mi300_compile_triton.json.gz", a.OTHER, 6.7),
    ("tl_h100_qwen05b.json.gz", "idle", 8.1),
    ("tl_h100_qwen05b.json.gz", a.COPIES, 0.4),
    ("tl_h100_qwen05b.json.gz", a.OTHER, 58.0),
    ("tl_mi300_resnet_actckpt.json.gz", "idle", 3.0),
    ("tl_mi300_resnet_actckpt.json.gz", a.COMMUNICATION, 64.3),
]


@pytest.mark.shared
@pytest.mark.parametrize(("file", "entry", "percent"), PARTS)
def test_parts_of_the_waterfall(explained: Callable[[str], Explained], file: str, entry: str, percent: float) -> None:
    account = explained(file).devices[0].account
    seconds = account.idle_s if entry == "idle" else account.seconds(entry)
    assert 100 * seconds / account.peak_s == pytest.approx(percent, abs=0.051)


@pytest.mark.shared
def test_every_sample_that_is_read_closes(shared: Path) -> None:
    read = 0
    for path in sorted((shared / "traces" / "files").iterdir()):
        try:
            trace = read_trace(path)
        except InputError:
            continue
        found = explain_trace(trace)
        read += 1
        for each in (*found.devices, *found.steps):
            assert closes(each.account.entries, each.account.peak_s), path.name
    assert read >= 38
