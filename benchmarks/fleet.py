"""Many ranks explained: `python benchmarks/fleet.py [--trace FILE] [--ranks 64] [--workers N] [--ray] [--json FILE]`.

Ranks are made of one trace: its rank and the base of its clock are set in the text of each copy (a trace without
`distributedInfo` gets one), so that every rank is read, accounted for and matched with the others in full. Without
--trace they are those of `made_fleet.py`. Measured: summarising (wall, CPU of the workers, the largest worker), the
reduction of the summaries (CPU, memory of this process), and the same once more with all summaries kept. With --ray
a cluster of two nodes of this machine does it, in `ray.cluster_utils.Cluster`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from made_fleet import Job, write_job
from suanli.api.folders import explain_folder
from suanli.units import KIBI, MEBI

MEMORY = 256 * MEBI


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, help="a Kineto trace of one rank, plain or gzip")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--workers", type=int, help="processes; default: one a core")
    parser.add_argument("--ray", action="store_true", help="a Ray cluster of two nodes of this machine")
    parser.add_argument("--json", type=Path, help="where the figures go")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        job, cache = Path(place) / "job", Path(place) / "cache"
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as maker:  # its memory is not to be measured
            make = _copies if given.trace else _made
            raw = maker.submit(make, given.trace, job, given.ranks).result()
        engine, stop = _cluster() if given.ray else ("local", lambda: None)
        figures = measure(job, cache, engine, given.workers) | {"raw_bytes": raw, "engine": engine}
        stop()
    for name, value in figures.items():
        print(f"{name:28} {value:,.3f}" if isinstance(value, float) else f"{name:28} {value}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def measure(job: Path, cache: Path, engine: str, workers: int | None) -> dict[str, Any]:
    """Figures of the first run and of one that finds all summaries."""
    first, result = _timed(lambda: explain_folder(job, engine=engine, workers=workers, cache=cache))
    again, second = _timed(lambda: explain_folder(job, engine=engine, workers=workers, cache=cache))
    assert second.to_json() == result.to_json(), "a second run says something else"
    summaries = [path.stat().st_size for path in cache.glob("*.parquet")]
    return {
        "ranks": len({row.rank for row in result.ranks}),
        "packed_bytes": sum(path.stat().st_size for path in job.iterdir()),
        "summary_bytes_each": sum(summaries) / len(summaries),
        "wall_s": first["wall_s"],
        "workers_cpu_s": first["children_s"],
        "largest_worker_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * KIBI,
        "this_process_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBI,
        "again_wall_s": again["wall_s"],
        "again_cpu_s": again["self_s"],
        "matched_fraction": result.matched_fraction,
    }


def _timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    own, children, begin = _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN), time.perf_counter()
    found = work()
    return {
        "wall_s": time.perf_counter() - begin,
        "self_s": _cpu(resource.RUSAGE_SELF) - own,
        "children_s": _cpu(resource.RUSAGE_CHILDREN) - children,
    }, found


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _made(_: None, folder: Path, ranks: int) -> int:
    clocks = {rank: rank * 1_000_003 for rank in range(ranks)}
    paths = write_job(Job(ranks=ranks, steps=5, layers=24, slow={ranks // 2: 1.2}, clocks=clocks), folder)
    return sum(path.stat().st_size for path in paths)


def _copies(trace: Path, folder: Path, ranks: int) -> int:
    """The trace once a rank, each with a clock 1.000003 ms ahead of the one before. Returns the bytes unpacked."""
    folder.mkdir(parents=True)
    content = trace.read_bytes()
    text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    head = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*\},?')
    body = head.sub(b"", text, count=1).lstrip()
    assert body[:1] == b"{", "a Kineto trace is a JSON object"
    total = 0
    for rank in range(ranks):
        said = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks}}
        base = b"" if b'"baseTimeNanoseconds"' in body else b'"baseTimeNanoseconds": %d, ' % (rank * 1_000_003)
        copy = json.dumps(said).encode()[:-1] + b", " + base + body[1:]
        total += len(copy)
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(copy, 1, mtime=0))
    return total


def _cluster() -> tuple[str, Callable[[], None]]:
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": MEMORY}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.add_node(**node)
    cluster.wait_for_nodes()

    def stop() -> None:
        ray.shutdown()
        cluster.shutdown()

    return "ray", stop


if __name__ == "__main__":
    main()
