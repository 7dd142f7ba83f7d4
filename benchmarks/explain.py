"""How fast Suanli reads and accounts a long trace, beside HTA: `python benchmarks/explain.py [--hta PYTHON]`.

The trace is `hta_a100_train_rank0` of the shared samples 29 times over, its times and ids shifted so that the copies
follow one another: about 759 MB and 3.2 million events, made in a folder that is removed afterwards. Each run is a
process of its own (BLAS and OpenMP held to one thread), its modules compiled beforehand as installed ones are. Four
things are timed, imports included:

- `read`: Suanli reads the trace and sweeps the union of its device work, on one core;
- `explain`: all of `suanli explain`, the account, steps, FLOPs by kernel, roofline, communication, advice, on one core;
- `cores`: the same with every core of the machine, as it runs for whoever types it;
- `HTA`: HolisticTraceAnalysis 0.5.0 loads its data frame and makes its temporal breakdown, with every core.

Seconds of the processor are user and system, of all processes of a run; MB/s are by them, so that they are of one core.
Those of the clock stand beside them. Memory is the peak of the processes, added up. Of several runs the median by the
clock is shown. HTA has an environment of its own: `python -m venv FOLDER; FOLDER/bin/pip install
HolisticTraceAnalysis==0.5.0`, then `--hta FOLDER/bin/python`; without it its part is skipped. The ratios are of HTA to
`cores` by the clock, and to `explain` by the processor; both do more than it does.

HTA tells less busy time than Suanli: of the 29 copies 10,974,669 µs, where Suanli tells 12,714,296. It merges intervals
as Suanli does, but takes fewer of them: when loading (`Trace._filter_irrelevant_gpu_kernels`) it joins device work to
events of the host by correlation, and keeps what was launched in the file and before the last ProfilerStep mark began.
Gone are the 872 pieces of each copy whose launch the file does not have (1,669,472 µs in all) and the 1,375 that the
last step of the last copy launched (70,155 µs). The device ran them all: where idle time is the window of device work
less the union of all of it, launched in sight or not, Suanli's figure is the right one. HTA's is of the work it keeps:
that it leaves out the last step it says, of the rest it says nothing. The untimed part `same` sweeps the work that HTA
keeps from Suanli's columns, like beside like: it prints how far HTA is from that (0 µs here), and what HTA leaves out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COPIES, MEGA, KIBI = 29, 10**6, 1024
SHIFT_US, SHIFT_ID = 1_400_000, 10_000_000  # longer than the trace, larger than its ids
SAMPLE = Path(__file__).resolve().parents[2] / "shared" / "traces" / "files" / "hta_a100_train_rank0.json.gz"
NUMBER = re.compile(r'("(?:ts|External id|correlation|id)": )(\d+)')
READ = """
from suanli.explain.intervals import covered_ns
from suanli.readers.traces import read_trace
trace = read_trace(path)
said = {"events": trace.events, "busy_us": covered_ns(trace.work.start_ns, trace.work.end_ns) / 1000}
"""
EXPLAIN = """
from suanli import api
(device,) = api.explain(path).devices
said = {"busy_us": device.usage.busy_s * 1e6}
"""
HTA = """
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path))
frame = analysis.get_temporal_breakdown(visualize=False)
idle_us = float(frame["idle_time(us)"].iloc[0])
said = {"busy_us": float(frame["kernel_time(us)"].iloc[0]) - idle_us, "idle_us": idle_us}
"""
SAME = """
import numpy as np
from suanli.explain.intervals import covered_ns
from suanli.readers.traces import read_trace
trace = read_trace(path)
work, host = trace.work, trace.host
mark = np.array(["ProfilerStep" in name for name in trace.names])[host.name]
linked = work.launch >= 0
early = linked & (host.start_ns[work.launch] < host.start_ns[mark].max())
def about(rows):
    first, last = work.start_ns[rows], work.end_ns[rows]
    busy_ns = covered_ns(first, last)
    return {"work": len(first), "busy_us": busy_ns / 1000, "idle_us": (last.max() - first.min() - busy_ns) / 1000}
said = {"kept": about(early), "linked": about(linked), "all": about(linked | ~linked)}
"""
AROUND = """
import json, os, resource, sys, time
path = sys.argv[1]
if {one_core}:
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
started, wall = time.process_time(), time.perf_counter()
{body}
said["wall_s"], said["cpu_s"] = time.perf_counter() - wall, time.process_time() - started
others = resource.getrusage(resource.RUSAGE_CHILDREN)
said["cpu_s"] += others.ru_utime + others.ru_stime
try:  # ru_maxrss is no less than what the process that started this one held
    with open("/proc/self/status") as lines:
        said["peak_kib"] = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
except OSError:
    said["peak_kib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
said["peak_kib"] += others.ru_maxrss * {processes}
print(json.dumps(said))
"""


def build(folder: Path, copies: int) -> Path:
    """The long trace."""
    text = gzip.decompress(SAMPLE.read_bytes()).decode()
    first = text.index("[", text.index('"traceEvents"')) + 1
    last = text.rindex("]")
    body, parts, at = text[first:last].rstrip(), [], 0
    for match in NUMBER.finditer(body):
        parts.append((body[at : match.start(2)], match[1].startswith('"ts'), int(match[2])))
        at = match.end()
    path = folder / "rank0.json"
    with path.open("w") as file:
        file.write(text[:first])
        for copy in range(copies):
            time_us, number = copy * SHIFT_US, copy * SHIFT_ID
            file.write(
                "".join(f"{before}{value + (time_us if is_time else number)}" for before, is_time, value in parts)
            )
            file.write(body[at:] + ("," if copy < copies - 1 else ""))
        file.write(text[last:])
    return path


def run(body: str, path: Path, python: str | None = None, cores: int | None = 1) -> dict[str, Any]:
    """What a process says that ran `body` on the trace; {"skipped": why} where it failed.

    Of the processes it starts, one fewer than `cores` (of HTA, which for one trace starts none: 0), each is taken to be
    as large as the largest.
    """
    own = {} if python else {"PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src")}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | own
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment["PYTHONPYCACHEPREFIX"] = str(path.parent / "compiled")
    around = AROUND.format(body=body, one_core=cores == 1, processes=(cores or 1) - 1)
    command = [python or sys.executable, "-c", around, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        return {"skipped": (done.stderr.strip() or "no output").splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    size = path.stat().st_size
    return found | {"mb_per_cpu_s": size / MEGA / found["cpu_s"], "peak_gb": found.pop("peak_kib") * KIBI / 10**9}


def median(
    body: str, small: Path, path: Path, times: int, python: str | None = None, cores: int | None = 1
) -> dict[str, Any]:
    """The run of median time, after one on a small trace that compiles the modules."""
    run(body, small, python)
    runs = [run(body, path, python, cores) for _ in range(times)]
    failed = [each for each in runs if "skipped" in each]
    return (failed or sorted(runs, key=lambda each: float(each["wall_s"])))[0 if failed else times // 2]


def shown(name: str, said: dict[str, Any]) -> str:
    if "skipped" in said:
        return f"{name:8} skipped: {said['skipped']}"
    used = f"{said['cpu_s']:8.2f} s of processor  {said['mb_per_cpu_s']:6.1f} MB/s  {said['peak_gb']:5.2f} GB"
    return f"{name:8}{used}  {said['wall_s']:8.2f} s by the clock  busy {said['busy_us']:,.0f} µs"


def same_shown(said: dict[str, Any], peer: dict[str, Any]) -> str:
    """HTA's events swept by Suanli, how far HTA is from that, and what its two omissions come to."""
    if "skipped" in said:
        return f"same     skipped: {said['skipped']}"
    kept, linked, whole = said["kept"], said["linked"], said["all"]
    off = "" if "skipped" in peer else f", HTA is {peer['busy_us'] - kept['busy_us']:+,.0f} µs off"
    before, after = (
        f"{more['work'] - less['work']:,} ({more['busy_us'] - less['busy_us']:,.0f} µs)"
        for more, less in ((whole, linked), (linked, kept))
    )
    return (
        f"same    busy {kept['busy_us']:,.0f} µs of the {kept['work']:,} pieces of work that HTA keeps{off}; "
        f"it leaves out {before} without a launch in the file and {after} launched in the last step"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hta", metavar="PYTHON", help="the interpreter of an environment with HolisticTraceAnalysis")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--copies", type=int, default=COPIES)
    parser.add_argument("--runs", type=int, default=3, help="of each of Suanli's parts; HTA runs once")
    options = parser.parse_args()
    if not SAMPLE.is_file():
        sys.exit("the folder of shared reference data is not beside the checkout: there is no trace to copy")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "small").mkdir()
        path, small = build(Path(folder), options.copies), build(Path(folder, "small"), 1)
        size = path.stat().st_size
        cores = len(os.sched_getaffinity(0))
        print(f"{size / MEGA:,.0f} MB, {cores} cores, median of {options.runs} by the clock")
        result: dict[str, Any] = {"bytes": size, "runs": options.runs, "cores": cores}
        for name, body, used in (("read", READ, 1), ("explain", EXPLAIN, 1), ("cores", EXPLAIN, cores)):
            result[name] = median(body, small, path, options.runs, cores=used)
            print(shown(name, result[name]), flush=True)
        peer = {"skipped": "give --hta PYTHON"}
        if options.hta:
            peer = median(HTA, small, path, 1, options.hta, cores=None)
        print(shown("HTA", peer))
        result["hta"], result["same"] = peer, run(SAME, path)
        print(same_shown(result["same"], peer))
    mine, alone = result["cores"], result["explain"]
    if not any("skipped" in each for each in (peer, mine, alone)):
        result["times_as_fast"] = peer["wall_s"] / mine["wall_s"]
        result["times_as_fast_by_the_processor"] = peer["cpu_s"] / alone["cpu_s"]
        result["of_its_memory"] = mine["peak_gb"] / peer["peak_gb"]
        print(f"{result['times_as_fast']:.1f} times as fast by the clock", end=", ")
        print(f"{result['times_as_fast_by_the_processor']:.1f} by the processor", end=", ")
        print(f"{result['of_its_memory']:.2f} of its memory")
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
