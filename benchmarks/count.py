"""How fast Suanli counts, beside other counters, in one run: `python benchmarks/count.py [--json FILE] [--quick]`.

Three things are timed: Suanli as a library once it is warm (Llama-3.1-405B); whole processes from nothing; and, each
counter in its own process, one count of Llama-2-7B on torch's meta device (`peers.py`). Medians are quoted, as machines
are noisy; runs of different things take turns, so that a busy minute strikes all of them. Nothing uses the network.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import suanli
from peers import MODEL, NOT_INSTALLED, PEERS, SEQ, installed_version
from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.count import build_ledger
from suanli.nouns.workload import Workload
from suanli.readers.model import read_model
from suanli.units import format_bytes, format_seconds

LARGE = "llama-3.1-405b"
REPEAT, QUICK_REPEAT = 21, 9  # processes of each kind
WARM_CALLS_PER_REPEAT = 50
REPEATS_PER_PEER_RUN = 7  # a counter's process takes seconds: three runs of each by default
PEER_LIMIT_S, WHOLE_LIMIT_S = 120, 170
AIM_WARM_S, AIM_IMPORT_RATIO = 1e-3, 3
KEPT_OUT = ("torch", "transformers", "numpy")  # what `import suanli` must not pull in

HEAVY = f"import sys, suanli; print(*[name for name in {KEPT_OUT} if name in sys.modules])"
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import suanli": ["-c", "import suanli"],
    "suanli count": ["-m", "suanli", "count", LARGE, "--json"],
}
NOTES = {  # what each takes for the count, found by taking the terms apart
    "suanli": "convention full",
    "calflops": "no attention; activations added",
    "ptflops-pytorch": "MACs × 2, no attention; activations added",
    "ptflops-aten": "MACs × 2",
    "fvcore": "MACs × 2, no attention",
}

Figures = dict[str, Any]

# --- timing -------------------------------------------------------------------------------------------------------


def spread(seconds: list[float]) -> Figures:
    """Median, least and most of several timings."""
    return {"median_s": statistics.median(seconds), "min_s": min(seconds), "max_s": max(seconds), "runs": len(seconds)}


def time_calls(call: Callable[[], Any], runs: int) -> Figures:
    """Timings of a call that has been made once before."""
    call()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return spread(seconds)


def python(arguments: list[str], limit_s: float | None = None) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Whole time of one Python process, and what it left. Code is compiled once, as where it is installed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["HF_HUB_OFFLINE"] = "1"
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=limit_s, env=environment, check=False
    )
    return time.perf_counter() - start, done


# --- what is timed ------------------------------------------------------------------------------------------------


def warm(repeat: int) -> Figures:
    """Suanli as a library: the formulas alone, and the public call with reading and checking the request."""
    arch, workload, rule = read_model(LARGE), Workload(seq=SEQ), find_convention(DEFAULT)
    calls = {
        "build_ledger": lambda: build_ledger(arch, workload, rule),
        "suanli.count": lambda: suanli.count(LARGE),
        "suanli.count, train": lambda: suanli.count(LARGE, phase="train"),
    }
    return {name: time_calls(call, repeat * WARM_CALLS_PER_REPEAT) for name, call in calls.items()}


def cold(repeat: int) -> Figures:
    """Whole processes, taking turns; the first round, which compiles and fills caches, is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    failed: Figures = {}
    for counted in range(repeat + 1):
        for name, arguments in COMMANDS.items():
            if name in failed:
                continue
            took, done = python(arguments)
            if done.returncode:
                failed[name] = {"status": status_of(done)}
            elif counted:
                seconds[name].append(took)
    return {name: failed.get(name) or {"status": "ok", **spread(seconds[name])} for name in COMMANDS}


def peers(runs: int, deadline: float) -> Figures:
    """Every counter, taking turns; one that fails is not tried again."""
    found: dict[str, list[Figures]] = {name: [] for name in PEERS}
    for turn in range(runs):
        for name, results in found.items():
            if turn == 0 or results[-1]["status"] == "ok":
                results.append(peer_run(name, deadline - time.perf_counter()))
    return {name: peer_figures(results) for name, results in found.items()}


def peer_run(name: str, left_s: float) -> Figures:
    """One process of one counter, its failure told as a status."""
    limit = min(PEER_LIMIT_S, left_s)
    if limit < 1:
        return {"status": "failed: no time was left for it"}
    try:
        took, done = python([str(Path(__file__).with_name("peers.py")), name], limit)
    except subprocess.TimeoutExpired:
        return {"status": f"failed: took more than {limit:.0f} s"}
    if done.returncode:
        return {"status": status_of(done)}
    figures = json.loads(done.stdout.splitlines()[-1])
    if figures["status"] == "ok":
        figures["process_s"] = took - figures.pop("warm_calls_s")  # the process as it would be with one count
    return figures


def status_of(done: subprocess.CompletedProcess[str]) -> str:
    """Why a process failed, in a line without the machine's paths."""
    if done.returncode < 0:
        return f"failed: killed by signal {-done.returncode}"
    lines = done.stderr.strip().splitlines() or ["no message"]
    if lines[-1].startswith("ModuleNotFoundError"):
        return f"{NOT_INSTALLED}: {lines[-1].split()[-1]}"
    return "failed: " + re.sub(r"(/[^/\s:'\"]+)+/", "", lines[-1])[:120]


def peer_figures(results: list[Figures]) -> Figures:
    """The runs of one counter as one: medians of times and memory, counts that must agree."""
    good = [result for result in results if result["status"] == "ok"]
    if not good:
        return results[-1]
    counts = {result["flops"] for result in good}
    if len(counts) > 1:
        return {"status": f"failed: its runs gave {sorted(counts)}"}
    times = ("first_call_s", "warm_call_s", "process_s", "peak_rss_bytes")
    return good[0] | {name: statistics.median(result[name] for result in good) for name in times} | {"runs": len(good)}


# --- the run as a whole -------------------------------------------------------------------------------------------


def machine() -> Figures:
    """What the figures were taken on, with no name that leads to it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    packages = ("torch", "transformers", "numpy")
    return {
        "cores": cores,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "suanli": suanli.__version__,
        **{name: installed_version(name) for name in packages},
    }


def pulled_in() -> list[str]:
    """Of what must stay out of `import suanli`, what is there after it."""
    _, done = python(["-c", HEAVY])
    done.check_returncode()
    return done.stdout.split()


def add_ratios(figures: Figures) -> None:
    """Counts over the exact count, times and memory over Suanli's, imports over numpy's."""
    exact, own = figures["exact_flops"], figures["peers"]["suanli"]
    same = ("first_call_s", "warm_call_s", "process_s", "peak_rss_bytes")
    for row in figures["peers"].values():
        if row["status"] == "ok":
            row["flops_over_exact"] = row["flops"] / exact
            if own["status"] == "ok":
                row["over_suanli"] = {name: row[name] / own[name] for name in same}
    base = figures["cold"]["import numpy"].get("median_s")
    for row in figures["cold"].values():
        row["over_numpy"] = row["median_s"] / base if base and row["status"] == "ok" else None


def measure(repeat: int) -> Figures:
    """Everything, in one run. Raises AssertionError where a counter was given another model than Suanli."""
    deadline = time.perf_counter() + WHOLE_LIMIT_S
    exact = suanli.count(MODEL, seq=SEQ, convention="full")
    figures: Figures = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "repeat": repeat,
        "warm": warm(repeat),
        "cold": cold(repeat),
        "import_suanli_pulls": pulled_in(),
        "model": MODEL,
        "seq": SEQ,
        "exact_flops": exact.flops.model,
        "peers": peers(max(1, repeat // REPEATS_PER_PEER_RUN), deadline),
    }
    for name, row in figures["peers"].items():
        assert row["status"] != "ok" or row["params"] == exact.params.total, f"{name} counted another model"
    add_ratios(figures)
    return figures


# --- the table ----------------------------------------------------------------------------------------------------

HEAD = ("", "FLOPs", "/ exact", "first call", "×", "warm call", "×", "process", "×", "peak RSS", "")
FIRST, WARM, PROCESS, NOTE = 3, 5, 7, 10  # columns


def line(name: str, cells: dict[int, str] | None = None) -> list[str]:
    """A row with these cells and the others blank."""
    return [name, *((cells or {}).get(column, "") for column in range(1, len(HEAD)))]


def warm_rows(figures: Figures) -> Iterable[list[str]]:
    """Library calls, with the aim each is under."""
    yield line(f"{LARGE}, as a library")
    for name, row in figures["warm"].items():
        aim = f"aim: under {format_seconds(AIM_WARM_S, 1)}, {verdict(row['median_s'] < AIM_WARM_S)}"
        yield line(name, {WARM: format_seconds(row["median_s"], 3), NOTE: aim})


def cold_rows(figures: Figures) -> Iterable[list[str]]:
    """Whole processes, with their ratio to importing numpy."""
    yield line(f"whole processes; the last counts {LARGE}")
    for name, row in figures["cold"].items():
        if row["status"] != "ok":
            yield line(name, {NOTE: row["status"]})
            continue
        ratio = row["over_numpy"]
        note = f"numpy {NOT_INSTALLED}" if ratio is None else f"{ratio:.2f} × import numpy"
        if name == "import suanli" and ratio is not None:
            note += f"; aim: under {AIM_IMPORT_RATIO}, {verdict(ratio < AIM_IMPORT_RATIO)}"
        yield line(name, {PROCESS: format_seconds(row["median_s"], 3), NOTE: note})


def peer_rows(figures: Figures) -> Iterable[list[str]]:
    """Counters of Llama-2-7B, each with its ratios to Suanli."""
    yield line(f"{MODEL}, seq {SEQ:,}, batch 1, forward; torch's meta device")
    for name, row in figures["peers"].items():
        if row["status"] != "ok":
            yield line(name, {NOTE: row["status"]})
            continue
        cells = {1: f"{row['flops']:,}", 2: f"{row['flops_over_exact']:.4f}", NOTE: NOTES.get(name, "")}
        for column, key in ((FIRST, "first_call_s"), (WARM, "warm_call_s"), (PROCESS, "process_s")):
            cells[column] = format_seconds(row[key], 3)
            cells[column + 1] = ratio_text(row.get("over_suanli", {}).get(key))
        yield line(name, cells | {9: format_bytes(row["peak_rss_bytes"], 3)})


def ratio_text(ratio: float | None) -> str:
    """A ratio with the digits it is worth."""
    return "" if ratio is None else f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


def verdict(met: bool) -> str:
    """Whether an aim was met."""
    return "met" if met else "MISSED"


def print_table(figures: Figures) -> None:
    """Machine, table, and what the columns mean."""
    print(", ".join(f"{name} {value or NOT_INSTALLED}" for name, value in figures["machine"].items()))
    rows = [list(HEAD), *warm_rows(figures), *cold_rows(figures), *peer_rows(figures)]
    full = [row for row in rows if any(row[1:])]
    widths = [max(len(row[column]) for row in full) + 2 for column in range(len(HEAD))]
    for row in rows:
        if row not in full:
            print(f"\n{row[0]}")
            continue
        cells = "".join(text.rjust(width) for text, width in zip(row[1:NOTE], widths[1:NOTE], strict=True))
        print(f"  {row[0].ljust(widths[0] - 2)}{cells}  {row[NOTE]}".rstrip())
    print(legend(figures))


def legend(figures: Figures) -> str:
    """What was repeated how often, and what the columns hold."""
    pulled = ", ".join(figures["import_suanli_pulls"]) or "none"
    calls, runs = figures["warm"]["build_ledger"]["runs"], max(row.get("runs", 0) for row in figures["peers"].values())
    return (
        f"\n`import suanli` pulls in of {', '.join(KEPT_OUT)}: {pulled}.\n"
        f"Medians of {calls:,} warm calls, {figures['repeat']} processes of each kind, {runs} of each counter."
        " × is over Suanli's.\nCalls are after imports and model building; a process is all of it, with one count."
    )


def write_json(path: Path, figures: Figures) -> None:
    """The figures beside the target, then renamed: never half a file."""
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(path)


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, metavar="N", help=f"processes of each kind (default {REPEAT})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REPEAT} of each, and each counter once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    given = parser.parse_args()
    repeat = given.repeat if given.repeat is not None else QUICK_REPEAT if given.quick else REPEAT
    if repeat < 1:
        parser.error("--repeat must be at least 1")
    figures = measure(repeat)
    print_table(figures)
    if given.json:
        write_json(given.json, figures)


if __name__ == "__main__":
    main()
