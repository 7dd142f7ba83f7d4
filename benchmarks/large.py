"""Large models counted by formula, by trace and by other counters, in one run: `python benchmarks/large.py [--quick]`.

Llama-2-70B and DeepSeek-V3, one forward pass of 2,048 tokens, every pair of positions. A formula is timed warm; a
trace and a counter in processes of their own once torch, transformers and the model's code are loaded, so that what is
timed is building the model on the meta device and counting it. Other counters are run by `suanli.compare`.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MODELS, SEQ = ("llama-2-70b", "deepseek-v3"), 2048
TOOLS = ("flop_counter_mode", "calflops", "ptflops", "ptflops-aten", "fvcore", "deepspeed", "torchprofile")
TRACES = {"trace of two layers of each kind": False, "trace of every layer": True}
CALLS, RUNS = 200, 5
AIM_FORMULA_S, AIM_TWO_LAYERS_S = 20e-6, 0.1
LIMIT_S = 300

Figures = dict[str, Any]


def median_s(call: Callable[[], Any], calls: int) -> float:
    """Median seconds of a call that has been made once before."""
    call()
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def by_formula(model: str) -> Figures:
    """The polynomial evaluated, the ledger built, and the public call."""
    import suanli
    from suanli.catalog.conventions import find_convention
    from suanli.count import build_ledger
    from suanli.nouns.workload import Workload
    from suanli.readers.model import read_model
    from suanli.symbolic import polynomials

    arch, rule, workload = read_model(model), find_convention("full"), Workload(seq=SEQ)
    flops = polynomials(arch, "forward", rule).flops
    calls = {
        "formula, polynomial evaluated": lambda: flops.at(1, SEQ),
        "formula, ledger built": lambda: build_ledger(arch, workload, rule).model_flops,
        "formula, suanli.count": lambda: suanli.count(model, seq=SEQ, convention="full").flops.model,
    }
    return {name: {"flops": call(), "seconds": median_s(call, CALLS)} for name, call in calls.items()}


def by_trace(model: str, whole: bool, runs: int) -> Figures:
    """In this process: the trace timed after one that is not, for the code of the model to be loaded."""
    from suanli.catalog.presets import find_preset
    from suanli.readers.torch_module import hf_meta

    config = find_preset(model, "model").config

    def trace() -> Any:
        return hf_meta.trace_config(config, seq=SEQ, whole=whole)

    hf_meta.trace_config(config, seq=8, whole=False)
    seconds, found = [], None
    for _ in range(runs):
        start = time.perf_counter()
        found = trace()
        seconds.append(time.perf_counter() - start)
    assert found is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"flops": found.model_flops, "seconds": statistics.median(seconds), "peak_bytes": peak}


def traced(model: str, whole: bool, runs: int) -> Figures:
    """The same in a process of its own; a failure is told as a reason."""
    command = [sys.executable, __file__, "--trace", model, "whole" if whole else "two", str(runs)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"reason": f"took more than {LIMIT_S} s"}
    if done.returncode:
        return {"reason": (done.stderr.strip().splitlines() or ["no message"])[-1][:120]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def by_peers(model: str) -> Figures:
    """Every other counter that is installed, through `suanli.compare`."""
    import suanli

    found = suanli.compare(model, seq=SEQ, tools=list(TOOLS))
    return {
        each.title: {
            "flops": each.flops, "seconds": each.seconds, "peak_bytes": each.peak_bytes, "reason": each.reason,
            "why": each.explanation, "version": each.version, "unexplained": each.unexplained,
        }
        for each in found.counters
    }  # fmt: skip


def measure(runs: int) -> Figures:
    """Both models, each way, with the error of every count."""
    import suanli

    found: Figures = {}
    for model in MODELS:
        exact = suanli.count(model, seq=SEQ, convention="full").flops.model
        rows = {**by_formula(model), **{name: traced(model, whole, runs) for name, whole in TRACES.items()}}
        rows |= by_peers(model)
        for row in rows.values():
            row["error"] = None if row.get("flops") is None else row["flops"] / exact - 1
        found[model] = {"seq": SEQ, "exact_flops": exact, "rows": rows}
    return found


def lines(found: Figures) -> Iterator[str]:
    """The table."""
    from suanli.units import format_bytes, format_seconds

    for model, part in found.items():
        yield f"\n{model}, {part['seq']:,} tokens, forward, convention full: {part['exact_flops']:,} FLOPs"
        for name, row in part["rows"].items():
            if row.get("flops") is None:
                yield f"  {name:<34}{row.get('reason')}"
                continue
            peak = "" if row.get("peak_bytes") is None else format_bytes(row["peak_bytes"], 3)
            took = format_seconds(row["seconds"], 3)
            yield f"  {name:<34}{took:>10}{row['error']:>+12.4%}{peak:>12}  {aim(name, row)}".rstrip()


def aim(name: str, row: Figures) -> str:
    """Whether an aim was met; else why the count is off, shortened."""
    limits = {"formula, polynomial evaluated": AIM_FORMULA_S, next(iter(TRACES)): AIM_TWO_LAYERS_S}
    if name in limits:
        return f"aim: at most {limits[name]:g} s, {'met' if row['seconds'] <= limits[name] else 'MISSED'}"
    return str(row.get("why") or "")[:70]


def main() -> None:
    """Measure and print, or be the process of one trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="each trace once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--trace", nargs=3, metavar=("MODEL", "whole|two", "RUNS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.trace:
        model, how, runs = given.trace
        print(json.dumps(by_trace(model, how == "whole", int(runs))))
        return
    found = measure(1 if given.quick else RUNS)
    print("\n".join(lines(found)))
    if given.json:
        draft = given.json.with_name(given.json.name + ".part")
        draft.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(given.json)


if __name__ == "__main__":
    main()
