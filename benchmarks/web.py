"""The page's server under load: fifty users for a minute on this machine, the layout slider, and its start.

    python benchmarks/web.py [--users 50] [--seconds 60] [--nicegui PYTHON]

A user asks, thinks (an exponential time of the mean given), and asks again, each another question: what a person does
who changes one field at a time. Nothing leaves the machine. Exit code 1 where a bound does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

THINK_S = 2.0  # mean; a person who slides and reads
P95_S, SLIDER_S, START_TIMES, GROWTH = 1.0, 0.2, 3.0, 1.25
MODELS = ("gpt2", "llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "deepseek-v3", "qwen2.5-7b")
GPUS = ("h100-sxm", "a100-80gb-sxm", "h200", "b200")
PLAN = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "gpus": 256, "seq": 8192,
        "pin": "tp=1..8,pp=1..4,vpp=1,cp=1,recompute=none,zero=1,schedule=1f1b", "top": 1}  # fmt: skip


def question(draw: random.Random) -> tuple[str, dict[str, Any]]:
    """What a user asks: one verb of the interactive ones, its fields drawn."""
    model, gpu, seq = draw.choice(MODELS), draw.choice(GPUS), draw.choice((1024, 2048, 4096, 8192))
    asked: list[tuple[str, dict[str, Any]]] = [
        ("count", {"model": model, "seq": seq, "phase": "train", "batch": draw.randint(1, 64)}),
        ("mfu", {"model": model, "gpu": gpu, "seq": seq, "tokens_per_second": draw.randint(500, 5000)}),
        ("train", {"model": model, "gpu": gpu, "gpus": 8 * draw.randint(1, 512), "tokens": "1T", "mfu": 0.4}),
        ("infer", {"model": "llama-3.1-8b", "gpu": gpu, "concurrency": draw.randint(1, 64)}),
        ("goodput", {"gpus": draw.randint(100, 20000), "mtbf": "50000h", "checkpoint_save": "30s", "restart": "5min"}),
        ("scale", {"points": f"64:1,128:1.9,256:{draw.uniform(3.3, 3.8):.3f}", "metric": "tokens_per_s"}),
        ("gpus", {"name": gpu}),
        ("models", {"name": model}),
        ("why", {"id": "flops.model", "model": model, "seq": seq}),
        ("learn", {"topic": draw.choice(("backprop", "flops", "roofline", "cost"))}),
    ]  # fmt: skip
    return draw.choice(asked)


@contextlib.contextmanager
def server(*options: str) -> Iterator[tuple[str, int, float]]:
    """`suanli web`: address, process, and seconds until it answered."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "suanli", "web", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        address = found[0].rstrip("/")
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{address}/").status_code in (200, 404):  # 404: a tree without the page
                    break
            time.sleep(0.01)
        try:
            yield address, process.pid, time.perf_counter() - start
        finally:
            process.terminate()


def memory(pid: int) -> float:
    """MB that the server and its workers hold."""
    pids = {pid}
    for line in subprocess.run(
        ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout.splitlines():
        child, parent = map(int, line.split())
        if parent in pids:
            pids.add(child)
    total = 0
    for each in pids:
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total / 1e6


async def user(client: httpx.AsyncClient, seed: int, end: float, seen: list[tuple[str, float, int]]) -> None:
    draw = random.Random(seed)
    await asyncio.sleep(draw.uniform(0, THINK_S))
    while time.perf_counter() < end:
        verb, given = question(draw)
        start = time.perf_counter()
        answer = await client.post(f"/api/{verb}", json=given)
        seen.append((verb, time.perf_counter() - start, answer.status_code))
        await asyncio.sleep(draw.expovariate(1 / THINK_S))


async def load(address: str, users: int, seconds: float) -> list[tuple[str, float, int]]:
    seen: list[tuple[str, float, int]] = []
    limits = httpx.Limits(max_connections=users)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        end = time.perf_counter() + seconds
        await asyncio.gather(*(user(client, seed, end, seen) for seed in range(users)))
    return seen


def slider(address: str) -> list[float]:
    """One person drags the sequences of a step: each value once."""
    times = []
    with httpx.Client(base_url=address, timeout=60) as client:
        for batch in range(256, 256 * 25, 256):
            start = time.perf_counter()
            client.post("/api/layout", json={**PLAN, "global_batch": batch}).raise_for_status()
            times.append(time.perf_counter() - start)
    return times


def quantile(times: list[float], part: float) -> float:
    return sorted(times)[min(len(times) - 1, int(part * len(times)))]


def import_time(python: str) -> float | None:
    """Seconds of `python -c "import nicegui"`, the least of three; None where it is not there."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([python, "-c", "import nicegui"], capture_output=True, check=False)
        times.append(time.perf_counter() - start)
        if done.returncode:
            return None
    return min(times)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--users", type=int, default=50)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--nicegui", default=sys.executable, help="a python that has nicegui; default: this one")
    given = options.parse_args()
    starts = []
    for _ in range(2):
        with server() as (_, _, ready):
            starts.append(ready)
    with server() as (address, pid, ready):
        starts.append(ready)
        moves = slider(address)
        asyncio.run(load(address, given.users, 5))  # warm
        before = memory(pid)
        seen = asyncio.run(load(address, given.users, given.seconds))
        after = memory(pid)
    rows = [("verb", "requests", "median ms", "p95 ms", "most ms")]
    for verb in sorted({each[0] for each in seen}):
        times = [each[1] for each in seen if each[0] == verb]
        rows.append((verb, f"{len(times):,}", *(f"{1e3 * each:,.0f}" for each in
                     (statistics.median(times), quantile(times, 0.95), max(times)))))  # fmt: skip
    for row in rows:
        print(f"{row[0]:10}" + "".join(f"{cell:>11}" for cell in row[1:]))
    times = [each[1] for each in seen]
    errors = sum(each[2] != 200 for each in seen)
    nicegui = import_time(given.nicegui) if Path(given.nicegui).exists() else None
    print(f"\n{given.users} users, {given.seconds:g} s, thinking {THINK_S:g} s on average: {len(seen):,} requests")
    checks = [
        ("errors", errors, 0, ""), ("p95", quantile(times, 0.95), P95_S, "s"),
        ("layout slider, median", statistics.median(moves), SLIDER_S, "s"),
        ("memory after / before", after / before, GROWTH, f"({before:,.0f} MB, {after:,.0f} MB)"),
    ]  # fmt: skip
    if nicegui is None:
        print("start: not compared: no nicegui at", given.nicegui)
    else:
        checks.append(
            ("ready / import nicegui", min(starts) / nicegui, START_TIMES, f"({min(starts):.2f} s, {nicegui:.2f} s)")
        )
    for name, value, bound, more in checks:
        print(f"{name:26}{value:9.3g} {more:20} at most {bound:g}: {'holds' if value <= bound else 'DOES NOT HOLD'}")
    return int(any(value > bound for _, value, bound, _ in checks))


if __name__ == "__main__":
    sys.exit(main())
