"""Bugs that others reported of their tools, as files of our own making through the whole verb; and hostile files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_trace import as_text, training_trace

import suanli
from suanli.errors import SuanliError
from suanli.explain.account import closes
from suanli.explain.idle import QUEUED
from suanli.nouns.explained import Explained

Document = dict[str, Any]
US = 1e-6


def explained(folder: Path, document: Document, name: str = "t.json") -> Explained:
    path = folder / name
    path.write_text(as_text(document), encoding="utf-8")
    found: Explained = suanli.explain(path).result
    return found


def entries(found: Explained) -> dict[str, float]:
    return {each.entry: each.seconds for each in found.account}


def event(cat: str, name: str, ts: float, dur: float, tid: int = 7, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: float, dur: float, stream: int = 7, **args: Any) -> dict[str, Any]:
    return event("kernel", name, ts, dur, stream, device=0, stream=stream, **args)


# --- reports of events that are no device work: nothing may change --------------------------------------------------

NO_WORK: list[tuple[str, list[dict[str, Any]]]] = [
    ("HTA #162", [event("cuda_sync", "Stream Synchronize", 1100, 9000, 7, stream=7, device=0, correlation=1)]),
    ("HTA #162", [event("cuda_event", "Event Record", 1100, 9000, 7, stream=7, device=0)]),
    ("HTA PR #268", [event("cpu_op", "triton_poi_fused_add_0", 1100, 94, 1, stream=0, grid="[1]", num_warps=4)]),
    ("kineto #109", [kernel("nothing", 0, 0)]),
    ("kineto #646", [kernel("backwards", 1100, -94)]),
    ("marks on the device", [event("gpu_user_annotation", "ProfilerStep#5", 1000, 9000, 7)]),
]


@pytest.mark.parametrize(("report", "more"), NO_WORK, ids=[f"{n}-{row[0]}" for n, row in enumerate(NO_WORK)])
def test_what_is_no_device_work_takes_no_time(tmp_path: Path, report: str, more: list[dict[str, Any]]) -> None:
    document = training_trace()
    plain = explained(tmp_path, document)
    document["traceEvents"] = [*more, *document["traceEvents"]]
    found = explained(tmp_path, document)
    assert entries(found) == entries(plain), report
    assert found.devices[0].usage == plain.devices[0].usage
    counted = {each.code: each.count for each in found.warnings if each.code in ("no-time", "negative-duration")}
    assert counted == {"kineto #109": {"no-time": 1}, "kineto #646": {"negative-duration": 1}}.get(report, {})


# --- reports with a right answer of their own -----------------------------------------------------------------------


def no_compute_share(found: Explained) -> None:
    # HTA #241: a tenth of the time is communication alone, not 0.2 %
    assert entries(found)["exposed communication"] == pytest.approx(100 * US)
    assert found.peak_s == pytest.approx(1000 * US)
    (row,) = found.collectives
    assert (row.exposed_s, row.total_s) == (pytest.approx(100 * US), pytest.approx(150 * US))


def of_a_graph(found: Explained) -> None:
    # HTA #290: all kernels of one launch of a graph belong to it, none is lost, and none is the host's fault
    (graph,) = found.graphs
    assert (graph.launches, graph.work, graph.kernels) == (1, 3, ("gemm", "norm", "act"))
    assert found.devices[0].unlinked == 0
    idle = {name: each for name, each in entries(found).items() if name.startswith("idle") and each}
    assert idle == {QUEUED: pytest.approx(2 * US)}


def no_rank(found: Explained) -> None:
    # HTA #107, #148, #233: an answer all the same, and the rank said to be unknown
    assert found.ranks[0].rank is None
    assert found.peak_s == pytest.approx(10 * US)
    assert "no-rank" in [each.code for each in found.warnings]


def dropped(found: Explained) -> None:
    # pytorch #192021: kernels dropped in silence, but the file holds the count
    assert {each.code: each.count for each in found.warnings}["dropped-events"] == 4181


def param_comms(found: Explained) -> None:
    # chakra #196: External id leads to record_param_comms and not to nccl:all_reduce
    (row,) = found.collectives
    assert (row.collective, row.bytes, row.group_size) == ("all-reduce", 4096, 8)


def attention(found: Explained) -> None:
    # pytorch #134804, #195460: 4·b·h·s·t·d, once and not twice, whoever calls whom; and not 0, whichever kernel runs
    assert found.devices[0].flops == 4 * 2 * 8 * 128 * 128 * 64
    assert found.attributed_fraction == 1


def rates(found: Explained) -> None:
    # DeepSpeed #3898, nccl-tests #45: 1 MB in 1 ms on 8 ranks; what each sends of it depends on the collective
    shown = {row.collective: (row.algbw_bytes_per_s, row.busbw_bytes_per_s, row.formula) for row in found.collectives}
    assert shown == {
        "all-reduce": (pytest.approx(1e9), pytest.approx(1.75e9), "algbw = S/t, S in; busbw = algbw·2(n−1)/n"),
        "all-gather": (pytest.approx(1e9), pytest.approx(0.875e9), "algbw = S/t, S out; busbw = algbw·(n−1)/n"),
        "reduce-scatter": (pytest.approx(1e9), pytest.approx(0.875e9), "algbw = S/t, S in; busbw = algbw·(n−1)/n"),
        "all-to-all": (pytest.approx(1e9), pytest.approx(0.875e9), "algbw = S/t, S in; busbw = algbw·(n−1)/n"),
        "broadcast": (pytest.approx(1e9), pytest.approx(1e9), "algbw = S/t, S the message; busbw = algbw"),
    }


def above_link(found: Explained) -> None:
    # nccl-tests #45, #312: algbw and busbw by formula, and what no link can carry is flagged
    (row,) = found.collectives
    assert row.algbw_bytes_per_s == pytest.approx(1e9 / 1e-3)
    assert row.busbw_bytes_per_s == pytest.approx(1e9 / 1e-3 * 2 * 7 / 8)
    assert row.above_link is True
    assert row.formula == "algbw = S/t, S in; busbw = algbw·2(n−1)/n"


def overlapping(found: Explained) -> None:
    # perfetto #4280, #6284: nothing of one stream vanishes
    assert {row.name: row.count for row in found.kernels} == {"one": 1, "two": 1}
    assert found.devices[0].usage.busy_s == pytest.approx(15 * US)


def capitalised(found: Explained) -> None:
    # "No GPU events found" of files whose categories are called as they were
    assert found.peak_s == pytest.approx(10 * US)
    assert found.devices[0].work == 1


NCCL = {"Collective name": "allreduce", "Group size": 8, "dtype": "Float", "Process Group Name": "0"}
CAUSAL = {"scaled_dot_product_attention": 5, "_scaled_dot_product_flash_attention": 4,
          "_scaled_dot_product_efficient_attention": 6, "_scaled_dot_product_cudnn_attention": 6,
          "_scaled_dot_product_fused_attention_overrideable": 5}  # fmt: skip
LAUNCHED = event("cuda_runtime", "cudaLaunchKernel", 2, 1, 1, correlation=3)
PARAM_COMMS = event("cpu_op", "record_param_comms", 1, 7, 1, **{"External id": 4})
NCCL_MARK = event("user_annotation", "nccl:all_reduce", 0, 9, 1, **{"External id": 5})


def attends(op: str, ts: float, dur: float) -> dict[str, Any]:
    """A call of one of torch's operators of attention; is_causal stands where its signature has it (torch 2.13)."""
    more = CAUSAL[op] - 2
    said = {"Input Dims": [[2, 8, 128, 64]] * 3 + [[]] * more, "Input type": ["c10::BFloat16"] * 3 + ["Scalar"] * more,
            "Concrete Inputs": [*[""] * (CAUSAL[op]), "False"]}  # fmt: skip
    return event("cpu_op", f"aten::{op}", ts, dur, 1, **said)


def attending(op: str, kernel_name: str) -> list[dict[str, Any]]:
    """One call of attention, by the operator that all go through and by one that does the work."""
    return [attends("scaled_dot_product_attention", 0, 9), attends(op, 1, 7),
            LAUNCHED, kernel(kernel_name, 20, 50, correlation=3)]  # fmt: skip


def reducing(name: str, number: int = 0, **said: Any) -> dict[str, Any]:
    """1 ms of a collective over eight ranks."""
    return kernel(f"ncclDevKernel_{number}", 2000 * number, 1000, 9, **{**NCCL, "Collective name": name, **said})


REPORTS: list[tuple[str, list[dict[str, Any]], dict[str, Any], Callable[[Explained], None]]] = [
    ("HTA #241", [kernel("add", 0, 900), kernel("ncclDevKernel_AllReduce", 850, 150, 9)], {}, no_compute_share),
    ("HTA #107", [kernel("add", 0, 10)], {"distributedInfo": None}, no_rank),
    ("pytorch #192021", [kernel("add", 0, 10)], {"INFO": ["Record counts: Out-of-range = 4181, Blocklisted = 0"]},
     dropped),
    *((f"chakra #196, {way}",
       [*host,
        kernel("ncclDevKernel_AllReduce_Sum", 20, 9, 9, **{"External id": number, "In msg nelems": 1024, **NCCL})],
       {}, param_comms)
      for way, number, host in (("its parameters", 4, [PARAM_COMMS]), ("its mark", 5, [NCCL_MARK]),
                                ("both, by the parameters", 4, [NCCL_MARK, PARAM_COMMS]),
                                ("both, by the mark", 5, [NCCL_MARK, PARAM_COMMS]))),
    ("pytorch #134804", attending("_scaled_dot_product_flash_attention", "pytorch_flash::flash_fwd_kernel"), {},
     attention),
    *((f"pytorch #195460, {op}", [attends(op, 1, 7), LAUNCHED, kernel("fmha_fwd", 20, 50, correlation=3)], {},
       attention) for op in CAUSAL),
    ("HTA #290",
     [event("cuda_runtime", "cudaGraphLaunch", 2, 1, 1, correlation=3),
      *(kernel(name, ts, dur, correlation=3) for name, ts, dur in (("gemm", 20, 9), ("norm", 30, 8), ("act", 39, 7)))],
     {}, of_a_graph),
    ("DeepSpeed #3898",
     [reducing("allreduce", 0, **{"In msg nelems": 250_000, "Out msg nelems": 250_000}),
      reducing("_allgather_base", 1, **{"In msg nelems": 31_250, "Out msg nelems": 250_000}),
      reducing("_reduce_scatter_base", 2, **{"In msg nelems": 250_000, "Out msg nelems": 31_250}),
      reducing("all_to_allv", 3, **{"In msg nelems": 250_000, "Out msg nelems": 250_000}),
      reducing("broadcast", 4, **{"In msg nelems": 250_000, "Out msg nelems": 250_000})],
     {}, rates),
    ("nccl-tests #312", [kernel("ncclDevKernel_AllReduce_Sum", 0, 1000, 9, **{"In msg nelems": 250_000_000, **NCCL})],
     {}, above_link),
    ("perfetto #4280", [kernel("one", 0, 10), kernel("two", 7, 8)], {}, overlapping),
    ("TraceLens, 12 of 47 files", [event("Kernel", "add", 0, 10, 7, device=0, stream=7)], {}, capitalised),
]  # fmt: skip


@pytest.mark.parametrize(("report", "rows", "head", "right"), REPORTS, ids=[row[0] for row in REPORTS])
def test_reports(
    tmp_path: Path, report: str, rows: list[dict[str, Any]], head: dict[str, Any], right: Callable[[Explained], None]
) -> None:
    document = {**training_trace(0), **head, "traceEvents": rows}
    right(explained(tmp_path, {key: value for key, value in document.items() if value is not None}))


def test_every_report_can_fail(tmp_path: Path) -> None:
    """No check holds of a file that is another's."""
    wrong = explained(tmp_path, training_trace(1))
    for _, _, _, right in REPORTS:
        with pytest.raises((AssertionError, ValueError, KeyError)):
            right(wrong)


# --- hostile files --------------------------------------------------------------------------------------------------

TEXT = as_text(training_trace(2))
FIRST_EVENT = TEXT.index("}}", TEXT.index("traceEvents")) + 1  # where it ends
HOSTILE = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Explained:
    path = tmp_path_factory.mktemp("whole") / "t.json"
    path.write_text(TEXT, encoding="utf-8")
    found: Explained = suanli.explain(path).result
    return found


def sound(path: Path, whole: Explained) -> bool:
    """Whether there is an answer: one that closes, with no more busy time than the whole file; else our own error."""
    try:
        result = suanli.explain(path)
    except SuanliError as problem:
        assert problem.exit_code == 2
        return False
    found: Explained = result.result
    json.loads(result.to_json())
    for account in [each.account for each in (*found.devices, *found.steps)]:
        assert closes(account.entries, account.peak_s)
    assert sum(each.usage.busy_s for each in found.devices) <= whole.devices[0].usage.busy_s + 1e-12
    assert sum(each.flops or 0.0 for each in found.devices) <= (whole.devices[0].flops or 0.0) * (1 + 1e-12)
    assert sum(each.work for each in found.devices) <= whole.devices[0].work
    return True


@HOSTILE
@given(seed=st.integers(0, 10**9))
def test_the_order_of_events_does_not_matter(tmp_path: Path, whole: Explained, seed: int) -> None:
    document = training_trace(2)
    random.Random(seed).shuffle(document["traceEvents"])
    found = explained(tmp_path, document)
    assert (found.account, found.steps, found.collectives) == (whole.account, whole.steps, whole.collectives)
    assert found.kernels == whole.kernels
    assert found.advice == whole.advice


@HOSTILE
@given(at=st.integers(0, len(TEXT)))
def test_a_file_cut_off_anywhere(tmp_path: Path, whole: Explained, at: int) -> None:
    path = tmp_path / "cut.json"
    path.write_text(TEXT[:at], encoding="utf-8")
    assert sound(path, whole) or at <= FIRST_EVENT  # with one event there is an answer


@HOSTILE
@given(places=st.lists(st.tuples(st.integers(0, len(TEXT) - 1), st.sampled_from('\x00"{}[],:\\N x')), max_size=12))
def test_a_file_with_wrong_characters(tmp_path: Path, whole: Explained, places: list[tuple[int, str]]) -> None:
    """No digit is put in, so no time can be longer than it was."""
    text = list(TEXT)
    for at, wrong in places:
        if not (text[at].isdigit() or text[at] in ".-"):  # a number cut short is another number
            text[at] = wrong
    path = tmp_path / "wrong.json"
    path.write_text("".join(text), encoding="utf-8")
    sound(path, whole)


@HOSTILE
@given(drop=st.sets(st.integers(0, 60), max_size=30))
def test_a_file_with_events_missing(tmp_path: Path, whole: Explained, drop: set[int]) -> None:
    document = training_trace(2)
    document["traceEvents"] = [each for at, each in enumerate(document["traceEvents"]) if at not in drop]
    path = tmp_path / "missing.json"
    path.write_text(as_text(document), encoding="utf-8")
    assert sound(path, whole)


@pytest.mark.shared
def test_every_public_sample_has_a_page_or_a_reason(shared: Path) -> None:
    from suanli.report import document_of
    from suanli.report.text import document_text

    pages = 0
    for path in sorted((shared / "traces" / "files").iterdir()):
        try:
            result = suanli.explain(path)
        except SuanliError as problem:
            assert problem.faults[0].expected
            continue
        text = document_text(document_of(result), 120)
        assert "nan" not in text.lower().replace("nanosecond", "").split()
        for account in [each.account for each in (*result.devices, *result.steps)]:
            assert closes(account.entries, account.peak_s), path.name
        assert result.to_json()
        pages += 1
    assert pages == 42
