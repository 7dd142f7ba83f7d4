"""How fast and how far off `infer` is, beside other planners: `python benchmarks/infer.py [--genz DIR] …`.

One answer, warm: median of many. The search over all layouts of eight GPU kinds: median of a few. Then measured
points (Llama 3.1 8B and 70B on H100, H200 and B200, 16-bit and fp8) by each tool in one run: mean |error| and time of
an answer, as ratios to ours. Ours are predicted with their fold left out where the measured points are found (`--data`,
SUANLI_DATA, ../shared/data), else on the points that ship, which the presets were fitted to. `--genz DIR` and
`--aiconfigurator DIR` are folders that a peer was installed to (`pip install --target DIR genz-llm`); one that is not
there is skipped, and said so. Ratios of
time are of wall time.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy comes: one core

import suanli
from suanli.catalog.serving_points import serving_points
from suanli.nouns.measured_serving import ServingPoint
from suanli.plan.serving.accuracy import check_points
from suanli.plan.serving.points import keep_points
from suanli.readers.outside import MEASURED_SERVING, outside_data
from suanli.readers.preset import read_named_preset
from suanli.readers.serving_points import read_serving_points

EIGHT = "h100-sxm,h200,b200,a100-80gb-sxm,gb200,b300,mi300x,l40s"
ANSWERS, SEARCHES = 50, 5
MODELS, DTYPES = ("llama-3.1-8b", "llama-3.1-70b"), ("bf16", "fp8")
PEERS = ("genz", "aiconfigurator")
_HERE = Path(__file__).resolve().parent
_PATIENCE_S = 900
_MS = 1e3

Point = dict[str, Any]


def median_s(run: Callable[[], Any], times: int) -> tuple[float, float]:
    """Median seconds of a call on the clock and of the processor, the first one not counted."""
    run()
    found = []
    for _ in range(times):
        started = time.perf_counter(), time.process_time()
        run()
        found.append((time.perf_counter() - started[0], time.process_time() - started[1]))
    wall, own = (statistics.median(column) for column in zip(*found, strict=True))
    return wall, own


def speeds() -> dict[str, tuple[float, float]]:
    """One answer, one at a rate with its simulation, and the search."""
    asked = {"gpu": "h100-sxm", "gpus": 8, "dtype": "fp8"}
    return {
        "one answer, 64 users": median_s(lambda: suanli.infer("llama-3.1-70b", **asked, concurrency=64), ANSWERS),
        "one answer, 5 requests a second, simulated": median_s(
            lambda: suanli.infer("llama-3.1-70b", **asked, rate=5), 5
        ),
        "search of eight GPU kinds, Llama-3.1-70B": median_s(
            lambda: suanli.infer("llama-3.1-70b", gpu=EIGHT, dtype="fp8", tpot="50ms"), SEARCHES
        ),
        "search of eight GPU kinds, DeepSeek-V3": median_s(
            lambda: suanli.infer("deepseek-v3", gpu=EIGHT, dtype="fp8-block", tpot="80ms"), SEARCHES
        ),
    }


def ours(data: str | None) -> tuple[list[ServingPoint], list[float], str]:
    """The points compared, our seconds, and how they were predicted."""
    folder, read = outside_data(data), functools.cache(read_named_preset)
    path = None if folder is None else folder / MEASURED_SERVING
    found = path is not None and path.is_file()
    kept = keep_points(read_serving_points(path) if found and path else serving_points(), read)
    check = check_points(kept)
    seconds = check.held_s if found else check.fitted_s
    rows = [place for place, point in enumerate(kept.points) if _compared(point)]
    how = "architecture and GPU left out of the fit" if found else "fitted to these points: they are those that ship"
    return [kept.points[at] for at in rows], [float(seconds[at]) for at in rows], how


def _compared(point: ServingPoint) -> bool:
    return point.kind == "served" and point.preset in MODELS and point.dtype in DTYPES and point.layout.ep == 1


def as_point(point: ServingPoint) -> Point:
    """What a peer is asked."""
    engine = {"tensorrt-llm": "trtllm"}.get(point.engine, point.engine)
    return {"model": point.preset, "gpu": point.gpu, "tp": point.layout.tp, "dtype": point.dtype, "engine": engine,
            "isl": int(point.isl or 0), "osl": int(point.osl), "users": int(point.concurrency or 1)}  # fmt: skip


def peer(name: str, folder: Path | None, points: Sequence[Point]) -> dict[str, Any]:
    """A peer's answers, or why there are none."""
    if folder is None or not folder.is_dir():
        return {"skipped": f"not installed: pip install --target DIR, then --{name} DIR"}
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    try:
        done = subprocess.run(
            [sys.executable, str(_HERE / "infer_peers.py"), name], input=json.dumps(list(points)), text=True,
            capture_output=True, env=environment, timeout=_PATIENCE_S, check=False, cwd=folder,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"skipped": f"no answer within {_PATIENCE_S} s"}
    if done.returncode:
        return {"skipped": done.stderr.strip().splitlines()[-1][:160] if done.stderr.strip() else "it failed"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compared(
    answers: dict[str, Any], points: Sequence[ServingPoint], mine: Sequence[float], mine_s: float
) -> dict[str, Any]:
    """Mean |error| of a peer and ours on the points it answers, and time of an answer."""
    rows = [(found["tpot_s"], found["took_s"], own, point.tpot_s) for found, own, point in
            zip(answers["answers"], mine, points, strict=True) if "tpot_s" in found]  # fmt: skip
    if not rows:
        return {"skipped": answers["answers"][0]["why"] if answers["answers"] else "no points"}
    theirs = statistics.fmean(abs(tpot / measured - 1) for tpot, _, _, measured in rows)
    own = statistics.fmean(abs(tpot / measured - 1) for _, _, tpot, measured in rows)
    took = statistics.median(seconds for _, seconds, _, _ in rows)
    return {"n": len(rows), "error": theirs, "our_error": own, "error_ratio": theirs / own, "took_s": took,
            "time_ratio": took / mine_s, "up_s": answers["up_s"]}  # fmt: skip


def main() -> None:
    """Print the figures, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genz", type=Path)
    parser.add_argument("--aiconfigurator", type=Path)
    parser.add_argument("--data")
    parser.add_argument("--most", type=int, default=0, help="points of a peer, evenly taken; 0: all")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result: dict[str, Any] = {"seconds": speeds(), "peers": {}}
    for name, (wall, own) in result["seconds"].items():
        print(f"{name}: {wall * _MS:.1f} ms, {own * _MS:.1f} ms of the processor")
    points, mine, how = ours(given.data)
    step = max(len(points) // given.most, 1) if given.most else 1
    points, mine = points[::step], mine[::step]
    error = statistics.fmean(abs(own / (point.tpot_s or 1.0) - 1) for own, point in zip(mine, points, strict=True))
    print(f"suanli: {len(points)} points, mean |error| {error:.1%}, {how}")
    for name in PEERS:
        answers = peer(name, getattr(given, name), [as_point(point) for point in points])
        row = (
            answers
            if "skipped" in answers
            else compared(answers, points, mine, result["seconds"]["one answer, 64 users"][0])
        )
        result["peers"][name] = row
        print(f"{name}: skipped: {row['skipped']}" if "skipped" in row else _said(name, row))
    if given.json:
        given.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _said(name: str, row: dict[str, Any]) -> str:
    return (
        f"{name}: {row['n']} points, mean |error| {row['error']:.1%} (ours on them {row['our_error']:.1%}, "
        f"{row['error_ratio']:.1f} times), an answer {row['took_s'] * _MS:.0f} ms ({row['time_ratio']:.0f} times "
        f"ours), comes up in {row['up_s']:.1f} s"
    )


if __name__ == "__main__":
    main()
