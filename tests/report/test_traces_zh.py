"""Accounts of traces in 中文: no English sentence is left on a page, none in the source is without a translation."""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from made_trace import as_text, training_trace

import suanli
from suanli.errors import SuanliError
from suanli.nouns.result import Result
from suanli.report import words
from suanli.report.document import Document, Facts, Lines, Table
from suanli.report.html_file import html_file
from suanli.report.pages import document_of
from suanli.report.translated import translated
from suanli.report.words import said

SOURCE = Path(suanli.__file__).parent
ENGLISH = re.compile(r"(?<![\w.\-/])[A-Za-z][A-Za-z']*,?(?: [A-Za-z][A-Za-z'\-]*,?){2,}")
# What may stay, each with its reason.
NAMES = (
    r"(?:NVIDIA|AMD|Intel) [\w ]+",  # names of products
    r"suanli gpus \S+",  # a command to type
    r"剖析器的原话：.*",  # the profiler's own words, quoted
    r"Williams, Waterman and Patterson \d+",  # authors
    r"收到：.*",  # what stands in the file
)


def texts(document: Document) -> Iterator[str]:
    yield document.headline
    for block in document.blocks:
        yield block.title
        if isinstance(block, Facts | Table):
            yield from (cell for row in block.rows for cell in row)
        if isinstance(block, Table):
            yield from block.columns
        if isinstance(block, Lines):
            yield from block.lines


def left(result: Result) -> list[str]:
    """Texts of the page in 中文 with three English words in a row that are no name."""
    return list(without_names(texts(translated(document_of(result), "zh"))))


def without_names(found: Iterable[str]) -> Iterator[str]:
    """Those of the texts that hold a sentence in English."""
    for text in found:
        bare = re.sub("|".join(NAMES), "", text)
        if ENGLISH.search(bare):
            yield text


# --- pages ----------------------------------------------------------------------------------------------------------


@pytest.mark.shared
def test_no_sample_leaves_a_sentence_in_english(shared: Path) -> None:
    remains, pages = {}, 0
    for path in sorted((shared / "traces" / "files").iterdir()):
        try:
            result = suanli.explain(path)
        except SuanliError as problem:
            faults = [part for fault in problem.faults for part in (fault.message, fault.expected, fault.hint) if part]
            assert [part for part in faults if not said(part, "zh")[1]] == []
            continue
        pages += 1
        remains |= {path.name: found} if (found := left(result)) else {}
    assert (remains, pages) == ({}, 42)


def event(cat: str, name: str, ts: Any, dur: Any, tid: int = 7, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: Any, dur: Any, stream: int = 7, **args: Any) -> dict[str, Any]:
    return event("kernel", name, ts, dur, stream, device=0, stream=stream, **args)


FAULTY = [
    kernel("backwards", 1100, -94), event("cpu_op", "backwards", 1100, -94), event("npu", "strange", 1, 1),
    {"ph": "b", "name": "half", "cat": "cpu_op", "pid": 0, "tid": 7, "ts": 1}, kernel("late", None, 1),
    {"ph": "B", "name": "begun", "cat": "cpu_op", "pid": 0, "tid": 7, "ts": 1},
    {"ph": "X", "name": "bare", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
]  # fmt: skip
# two of two hundred run into the next
LONG = [kernel("ampere_sgemm", 10**6 + 1000 * at, 5000 if at in (9, 99) else 9, 33) for at in range(200)]
GRAPH = [event("cuda_runtime", "cudaGraphLaunch", 1000 + at, 1, 1, correlation=9000 + at) for at in range(2)]
LOG = {"INFO": ["Out-of-range = 3", "CUPTI stopped early? = 1"]}


def document(*more: dict[str, Any], **said: Any) -> dict[str, Any]:
    made = training_trace()
    return {**made, **said, "traceEvents": [*made["traceEvents"], *more]}


PAGES: dict[str, tuple[str, set[str]]] = {
    "whole": (as_text(document()), set()),
    "faulty": (
        as_text(document(*FAULTY)),
        {"negative-duration", "unknown-category", "other-phase", "no-time", "half-event", "no-category"},
    ),
    "once each": (as_text(document(FAULTY[0], FAULTY[2])), {"negative-duration", "unknown-category"}),
    "impossible": (as_text(document(*LONG)), {"impossible-duration", "unlinked-work"}),
    "one impossible": (as_text(document(*LONG[:90])), {"impossible-duration"}),
    "a graph without kernels": (as_text(document(GRAPH[0])), {"graphs-incomplete"}),
    "graphs without kernels": (as_text(document(*GRAPH)), {"graphs-incomplete"}),
    "logged": (as_text(document(**LOG)), {"dropped-events"}),
    "more behind": (as_text(document()) + "{}", {"more-documents"}),
    "cut": (as_text(document())[:-30], {"truncated"}),
    "empty": (json.dumps({"traceEvents": [event("cpu_op", "aten::mm", 1, 2, 1)]}), {"no-device-work"}),
}


@pytest.mark.parametrize("name", PAGES)
def test_no_made_trace_leaves_a_sentence_in_english(tmp_path: Path, name: str) -> None:
    text, codes = PAGES[name]
    path = tmp_path / "t.json"
    path.write_text(text, encoding="utf-8")
    result = suanli.explain(path)
    assert codes <= {each.code for each in result.warnings}
    assert left(result) == []


@pytest.mark.parametrize(
    "options",
    [{"model": "gpt2", "seq": 1024, "batch": 1}, {"model": "gpt2", "seq": 4096, "batch": 8, "gpu": "h100-sxm"},
     {"steps": "2"}, {"gpu": "h100-sxm"}, {"compare": "itself"}],
    ids=str,
)  # fmt: skip
def test_no_option_leaves_a_sentence_in_english(tmp_path: Path, options: Mapping[str, Any]) -> None:
    path = tmp_path / "t.json"
    path.write_text(as_text(document()), encoding="utf-8")
    given = {name: path if value == "itself" else value for name, value in options.items()}
    assert left(suanli.explain(path, **given)) == []


JOBS = [
    {"ranks": 2},
    {"ranks": 8, "slow": {1: 1.3}, "stages": 2, "received": {rank: 10 + 90 * (rank == 1) for rank in range(8)}},
]


@pytest.mark.parametrize("job", JOBS, ids=["two", "eight"])
def test_many_ranks_leave_no_sentence_in_english(tmp_path: Path, made_fleet: Any, job: Mapping[str, Any]) -> None:
    made_fleet.write_job(made_fleet.Job(**job), tmp_path)
    (tmp_path / "rank99.json").write_text("{}", encoding="utf-8")
    assert left(suanli.explain(tmp_path)) == []


def test_no_note_of_a_page_leaves_a_sentence_in_english(tmp_path: Path) -> None:
    """What a click opens is there too: what a number is, its formula in words, its source."""
    path = tmp_path / "t.json"
    path.write_text(as_text(document()), encoding="utf-8")
    result = suanli.explain(path, compare=path, model="gpt2", seq=1024, batch=1, gpu="h100-sxm")
    page = re.sub(r"<(script|style).*?</\1>", "", html_file(result, "zh"), flags=re.DOTALL)
    found = set(without_names(html.unescape(re.sub(r"<[^>]+>", "\n", page)).split("\n")))
    assert found == {"train (a backward pass in the trace)"}  # of the request, which is shown as it was made


# --- every sentence of the source -----------------------------------------------------------------------------------

FOLDERS = ("readers/traces", "explain", "explain/ops", "explain/fleet")
HOLE = "\0"
_CHOICE = re.compile(r"\{([^{}|]+)\|([^{}|]+)\}")
# Texts that are no sentences for a reader, by module: all of one, or those named.
NO_SENTENCES = {
    "kineto_beside.py": ("",),  # a program that is run
    "kineto_events.py": ("",),  # keys of Kineto's arguments
    "kineto_salvage.py": ("",),  # messages of msgspec that are looked for
    "nvtx_payload.py": ("",),  # fields of NCCL's payloads
    "nsys_tables.py": ("SELECT", "CASE"),  # SQL
    "xla_lines.py": ("",),  # names of XLA's lines
    "recompute.py": ("\n ",),  # names of operators
    "memory.py": ("\n ",),  # names of operators
}


def template(node: ast.AST, known: Mapping[str, str]) -> str | None:
    """The text of a literal with a mark for each value put in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "counted":
        return template(node.args[1], known)
    if isinstance(node, ast.FormattedValue):
        return template(node.value, known) or HOLE
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part, known) or HOLE for part in node.values)
    return None


def literals(path: Path) -> Iterator[str]:
    """Every text of a module that is not its documentation, a pattern or an assertion."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = {
        each.targets[0].id: made
        for each in tree.body if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        if (made := template(each.value, {}))
    }  # fmt: skip
    skipped: set[int] = set()
    for node in ast.walk(tree):
        pattern = isinstance(node, ast.Call) and ast.unparse(node.func) in ("re.compile", "AssertionError")
        if isinstance(node, ast.Assert | ast.JoinedStr) or pattern or is_documentation(node):
            skipped |= {id(each) for each in ast.walk(node) if each is not node}
    for node in ast.walk(tree):
        if id(node) not in skipped and isinstance(node, ast.Constant | ast.JoinedStr):
            text = template(node, known)
            if text:
                yield text


def is_documentation(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def in_both_numbers(text: str) -> set[str]:
    """The text in the plural and in the singular."""
    chosen = (_CHOICE.sub(rf"\{of}", text) for of in (1, 2))
    return {each.replace("{count}", HOLE) for each in chosen}


KEYS = [words._HOLE.sub(HOLE, key) for key in words._table("zh")]


def has_translation(text: str) -> bool:
    """Whether the text, with values put in, has one; or is part of one that has."""
    if said(text.replace(HOLE, "7").rstrip(), "zh")[1]:
        return True
    part = re.compile(".*?".join(map(re.escape, re.sub(f"{HOLE}+", HOLE, text).strip(HOLE + " .;:,()").split(HOLE))))
    return any(part.search(key) for key in KEYS)


@pytest.mark.parametrize("path", [each for folder in FOLDERS for each in sorted((SOURCE / folder).glob("*.py"))],
                         ids=lambda path: str(path.relative_to(SOURCE)))  # fmt: skip
def test_every_sentence_of_the_source_is_translated(path: Path) -> None:
    found = {each for text in literals(path) for each in in_both_numbers(text) if ENGLISH.search(each)}
    spared = NO_SENTENCES.get(path.name, ())
    assert {each for each in found if not each.startswith(spared) and not has_translation(each)} == set()


IN_CHINESE = {
    "872 of 7,747 pieces of device work have no launch in the file (launched before it begins, or not recorded): "
    "their time counts, what launched them is unknown":
        "7,747 项设备工作中有 872 项在文件中没有启动（在文件开始之前启动，或没有记录）：时间照计，由谁启动不明",
    "1 event without a time is left out": "略去 1 个没有时间的事件",
    "3,829 events of categories that are not known are left out: npu, xpu": "略去 3,829 个类别未知的事件：npu, xpu",
    # reasons with their times, names with blanks among them
    "matmul, not attributed: operator without a formula: Torch-Compiled Region: 0/0 (95.502 ms); no operators in the "
    "file (2.700 ms)":
        "矩阵乘（未归因）：没有公式的算子：Torch-Compiled Region: 0/0（95.502 ms）；文件中没有算子（2.700 ms）",
    "matmul: unknown device 'Abacus 9' in the trace (108 multiprocessors, 39.39 GiB: like a100-40gb-sxm, a800-40gb); "
    "name it with --gpu":
        "矩阵乘：轨迹中是未知的设备“Abacus 9”（108 个流式多处理器，39.39 GiB：类似 a100-40gb-sxm, a800-40gb）；"
        "请用 --gpu 指定",
    # the evidence of levers
    "the host was inside cudaFree (15 calls), cudaMalloc (1 call)":
        "主机停留在 cudaFree（15 次），cudaMalloc（1 次）中",
    "send and receive on 0 (pp): 80 calls, 99% of their time without compute beside it":
        "0 (pp) 上的 发送与接收：80 次调用，其中 99% 的时间没有计算与之并行",
    # over many ranks
    "a/rank9.json: the file is no trace, got an empty file": "a/rank9.json：文件不是轨迹，收到：空文件",
    "8 ranks; rank 3: 1 event without a category is left out": "8 个进程；进程 3：略去 1 个没有类别的事件",
    "rank 5 on node-3 is waited for most: 60.68 % of all waiting, last to 5 of 9 collectives":
        "node-3 上的进程 5 被等待最多：占全部等待的 60.68 %，9 次集合通信中有 5 次最后到达",
    "t.json: 0.2 % idle in 10.74 ms of device 2 [kineto, rank 0]":
        "t.json：10.74 ms 内 0.2 % 空闲，设备 2 [kineto，进程 0]",
}  # fmt: skip


@pytest.mark.parametrize("english", IN_CHINESE)
def test_numbers_and_names_stand_in_their_places(english: str) -> None:
    assert said(english, "zh") == (IN_CHINESE[english], True)


@pytest.mark.parametrize(
    "text", ["1 event with a tail is left out", "matmul: something never said", "rank 3: something never said"]
)
def test_what_has_no_translation_is_marked(text: str) -> None:
    assert not said(text, "zh")[1]


def test_the_guard_sees_a_sentence_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""Documentation is left out."""\nSAID = f"{n} {{events|event}} fell off the table"\n')
    (text,) = literals(path)
    assert in_both_numbers(text) == {f"{HOLE} events fell off the table", f"{HOLE} event fell off the table"}
    assert not any(map(has_translation, in_both_numbers(text)))
