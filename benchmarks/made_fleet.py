"""Traces of a job that never ran: ranks that compute, meet in collectives, and have clocks of their own.

What is planted is known, so that what is found can be compared with it: who is slow, by how much each clock is off.
All times are nanoseconds on one true clock until a rank's own offset is added when its file is written.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

US = 1000
BASE_NS = 7_889_238_000_000_000  # a multiple of three months, as Kineto has it
ALL_REDUCE_ELEMENTS = 25_000_000  # of two bytes: 50 MB
SENT_ELEMENTS = 1_000_000  # of two bytes, by a send or an all-to-all


@dataclass(kw_only=True)
class Job:
    """What is planted. Times of kernels vary by 1 % from run to run, ends of collectives by up to 200 ns."""

    ranks: int = 4
    steps: int = 4
    layers: int = 3
    gemm_ns: int = 400 * US
    transfer_ns: int = 500 * US
    slow: Mapping[int, float] = field(default_factory=dict)  # rank → factor on its kernels
    clocks: Mapping[int, int] = field(default_factory=dict)  # rank → ns its clock is ahead
    stages: int = 1  # of a pipeline: ranks 0 … n/stages−1 are the first
    stage_layers: Mapping[int, int] = field(default_factory=dict)  # stage → layers, where not as many as others
    received: Mapping[int, int] = field(default_factory=dict)  # rank → elements of an all-to-all; all ranks or none
    numbered: bool = True  # collectives have a sequence number and a group
    seed: int = 7


@dataclass
class _Rank:
    rank: int
    events: list[dict[str, Any]] = field(default_factory=list)
    now: int = 1_000_000 * US
    correlation: int = 1
    sequence: int = 0


def traces_of(job: Job) -> dict[int, dict[str, Any]]:
    """Rank → its trace as the JSON of Kineto."""
    random_ = random.Random(job.seed)
    all_ranks = [_Rank(rank) for rank in range(job.ranks)]
    for step in range(job.steps):
        starts = [each.now for each in all_ranks]
        for each in all_ranks:
            _compute(job, each, random_)
        _pipeline(job, all_ranks, random_)
        if job.received:
            elements = {each.rank: job.received[each.rank] for each in all_ranks}
            _meet(job, all_ranks, "all_to_allv", random_, out=elements, group=("9", "EXPERT_GROUP"))
        _meet(job, all_ranks, "allreduce", random_)
        for each, start in zip(all_ranks, starts, strict=True):
            mark = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step + 10}", "pid": 1, "tid": 1}
            each.events.append({**mark, "ts": start - 20 * US, "dur": each.now - start - 10 * US})
    return {each.rank: _document(job, each) for each in all_ranks}


def write_job(job: Job, folder: Path, *, packed: bool = False) -> list[Path]:
    """One file a rank in `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for rank, trace in traces_of(job).items():
        path = folder / f"rank{rank}.json{'.gz' if packed else ''}"
        text = _text(trace).encode()
        path.write_bytes(gzip.compress(text, mtime=0) if packed else text)
        paths.append(path)
    return paths


def _compute(job: Job, rank: _Rank, random_: random.Random) -> None:
    stage = rank.rank * job.stages // job.ranks
    for _ in range(job.stage_layers.get(stage, job.layers)):
        for name, part in (("ampere_bf16_s16816gemm_bf16_128x128", 1.0), ("vectorized_elementwise_kernel", 0.25)):
            length = job.gemm_ns * part * job.slow.get(rank.rank, 1.0) * random_.uniform(0.99, 1.01)
            _kernel(rank, name, rank.now + 2 * US, int(length), stream=7)
            rank.now += 2 * US + int(length)


def _meet(
    job: Job, members: list[_Rank], name: str, random_: random.Random,
    out: Mapping[int, int] | None = None, group: tuple[str, str] = ("0", "default_pg"),
) -> None:  # fmt: skip
    """A collective: the last to come starts the transfer, all leave together."""
    starts = {each.rank: each.now + 2 * US for each in members}
    end = max(starts.values()) + job.transfer_ns
    for each in members:
        last = end + random_.randrange(200)
        args = _call(job, each, name, [member.rank for member in members], group, out)
        kernel = "ncclDevKernel_SendRecv(x)" if name == "all_to_allv" else "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)"
        _kernel(each, kernel, starts[each.rank], last - starts[each.rank], stream=20, args=args)
        each.now = last


def _call(
    job: Job, rank: _Rank, name: str, members: list[int], group: tuple[str, str], out: Mapping[int, int] | None
) -> dict[str, Any]:
    if not job.numbered:
        return {}
    rank.sequence += 1
    elements = ALL_REDUCE_ELEMENTS if name == "allreduce" else SENT_ELEMENTS
    return {
        "Collective name": name, "In msg nelems": elements, "dtype": "BFloat16", "Seq": rank.sequence,
        "Out msg nelems": out[rank.rank] if out else elements, "Group size": len(members),
        "Process Group Name": group[0], "Process Group Description": group[1],
        "Process Group Ranks": json.dumps(members),
    }  # fmt: skip


def _pipeline(job: Job, all_ranks: list[_Rank], random_: random.Random) -> None:
    """Each rank sends to the one at its place in the next stage, which waits for it."""
    width = job.ranks // job.stages
    for stage in range(job.stages - 1):
        for place in range(width):
            sender, receiver = all_ranks[stage * width + place], all_ranks[(stage + 1) * width + place]
            members = [each.rank for each in all_ranks if each.rank % width == place]
            start = max(sender.now, receiver.now) + 2 * US
            for each, name, peer in ((sender, "send", stage + 1), (receiver, "recv", stage)):
                args = _call(job, each, name, members, (f"pp{place}", "PIPELINE_MODEL_PARALLEL_GROUP"), None)
                args |= {("Dst Rank" if name == "send" else "Src Rank"): peer} if args else {}
                end = start + 50 * US + random_.randrange(200)
                _kernel(each, "ncclDevKernel_SendRecv(x)", each.now + US, end - each.now - US, stream=24, args=args)
                each.now = end


def _kernel(
    rank: _Rank, name: str, start: int, length: int, *, stream: int, args: dict[str, Any] | None = None
) -> None:
    rank.correlation += 1
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
    rank.events.append({**launch, "ts": start - 5 * US, "dur": 2 * US, "args": {"correlation": rank.correlation}})
    more = {"correlation": rank.correlation, "device": rank.rank % 8, "stream": stream, **(args or {})}
    rank.events.append({"ph": "X", "cat": "kernel", "name": name, "pid": rank.rank % 8, "tid": stream, "ts": start,
                        "dur": length, "args": more})  # fmt: skip


def _document(job: Job, rank: _Rank) -> dict[str, Any]:
    ahead = job.clocks.get(rank.rank, 0)
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": rank.rank % 8, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85_100_000_000}],
        "distributedInfo": {"backend": "nccl", "rank": rank.rank, "world_size": job.ranks},
        "baseTimeNanoseconds": BASE_NS,
        "traceEvents": [{**event, "ts": event["ts"] + ahead} for event in rank.events],
    }


def _text(trace: dict[str, Any]) -> str:
    """JSON with times in µs of three decimals, as Kineto writes them."""
    events = [
        json.dumps({**event, "ts": "TS", "dur": "DUR"})
        .replace('"TS"', _decimal(event["ts"]))
        .replace('"DUR"', _decimal(event["dur"]))
        for event in trace["traceEvents"]
    ]
    head = json.dumps({key: value for key, value in trace.items() if key != "traceEvents"})
    return head[:-1] + ', "traceEvents": [\n' + ",\n".join(events) + "\n]}\n"


def _decimal(ns: int) -> str:
    return f"{'-' if ns < 0 else ''}{abs(ns) // US}.{abs(ns) % US:03d}"
