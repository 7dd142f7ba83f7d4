"""How fast Suanli prices layouts, beside calculon: `python benchmarks/layout.py [--calculon CHECKOUT] [--json FILE]`.

First two whole searches, each with every option (all ZeRO stages with and without a pipeline, states shared by all
replicas or a node's, every recompute policy and as few layers of it as fit, all schedules), and with those that the
stack runs: GPT-3 175B on 1,024 A100-80GB, 1,024 sequences of 2,048 tokens; Llama-3.1-405B on 16,384 H100, 2,048
sequences of 8,192 tokens. Wall and CPU seconds of enumeration, pruning and ranking on one core.

Then, of the former, configurations drawn with a fixed seed from what calculon can express (no context or expert
parallelism, ZeRO 0 and 1, stages of equal layers), legal and illegal ones as they come. Calculon prices the first 600,
one by one as its search does; Suanli the first 600, and 100,000, as it prices a grid; then it searches all of that
part. A rate is configurations looked at, rejected ones included, over wall time; beside it stands the rate of those
that were priced. Without a checkout of calculon-ai/calculon (which needs pandas and psutil) its half is skipped, and
said so.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy comes: one core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from suanli.api.layouts import read_fabric
from suanli.catalog.curves import find_curves
from suanli.catalog.devices import find_device
from suanli.catalog.profiles import find_profile
from suanli.catalog.stacks import find_stack
from suanli.nouns.grid import Grid
from suanli.nouns.workload import Workload
from suanli.plan.enumerate import enumerate_grid
from suanli.plan.limits import Space, cuts_of, divisors
from suanli.plan.memory_grid import GridMemory
from suanli.plan.planned import model_of
from suanli.plan.pricing import Books, Prices
from suanli.plan.search import search
from suanli.plan.step_time import Job
from suanli.plan.time_grid import GridTimes
from suanli.readers.model import read_model

SEED, DRAWN, MANY = 20261130, 600, 100_000
GPUS, BATCH, SEQ, LAYERS, HEADS = 1024, 1024, 2048, 96, 96
EQUAL_STAGES = tuple(each for each in divisors(GPUS) if LAYERS % each == 0)
EXPRESSIBLE: dict[str, tuple[Any, ...]] = {
    "cp": (1,), "zero": (0, 1), "pp": EQUAL_STAGES, "schedule": ("1f1b", "interleaved"), "shards": (0,),
    "recompute": ("none", "selective", "full"),
    "vpp": tuple(each for each in range(1, LAYERS + 1) if LAYERS % each == 0),
}  # fmt: skip
RECOMPUTE = {"none": "none", "selective": "attn_only", "full": "full"}
REPEAT = 3
LIMIT = 80e9

Config = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A search that a bound is on."""

    model: str
    device: str
    gpus: int
    batch: int
    seq: int


PROBLEMS = {
    "GPT-3 175B on 1,024 A100": Problem(
        model="gpt3-175b", device="a100-80gb-sxm", gpus=GPUS, batch=BATCH, seq=SEQ
    ),
    "Llama-3.1-405B on 16,384 H100": Problem(
        model="llama-3.1-405b", device="h100-sxm", gpus=16384, batch=2048, seq=8192
    ),
}  # fmt: skip
STACK, TOP = "megatron-core", 20  # layouts kept for playing out, as `layout` does for a ranking of five


def drawn(count: int) -> list[Config]:
    """Configurations of the part both tools know, axis by axis: many are illegal, as in any search."""
    rng = random.Random(SEED)
    found = []
    for _ in range(count):
        tp, pp = rng.choice([1, 2, 4, 8]), rng.choice(EQUAL_STAGES)
        dp = GPUS // (tp * pp)
        found.append({
            "tp": tp, "pp": pp, "dp": dp, "micro_batch": rng.choice(divisors(max(1, BATCH // dp))),
            "vpp": rng.choice(divisors(LAYERS // pp)) if pp > 1 else 1, "zero": rng.choice([0, 1]),
            "recompute": rng.choice(list(RECOMPUTE)), "sp": rng.choice([False, True]),
        })  # fmt: skip
    return found


def as_grid(columns: dict[str, Any]) -> Grid:
    """The legal ones of drawn configurations, by the rules of `suanli.plan.enumerate` for this part."""
    import numpy as np

    at = {name: column.astype(float) for name, column in columns.items()}
    micro_batches = BATCH / (at["dp"] * at["micro_batch"])
    legal = (at["zero"] == 0) | (at["dp"] > 1)
    legal &= (at["sp"] == 0) | (at["tp"] > 1)
    legal &= (at["vpp"] == 1) | ((at["pp"] > 1) & (micro_batches % at["pp"] == 0))
    kept = {name: column[legal] for name, column in at.items()}
    ones = np.ones(int(legal.sum()))
    kept |= {"cp": ones, "ep": ones, "etp": ones, "schedule": (kept["vpp"] > 1) * 1.0}
    return Grid(**kept, **dict.fromkeys(("recompute_layers", "shards", "offload"), 0 * ones))


def as_columns(configs: list[Config]) -> dict[str, Any]:
    """Drawn configurations as columns, words as places in their lists."""
    import numpy as np

    places = {"recompute": list(RECOMPUTE)}
    return {
        name: np.array([places[name].index(each[name]) if name in places else each[name] for each in configs])
        for name in configs[0]
    }


# --- suanli -------------------------------------------------------------------------------------------------------


def books(problem: Problem = PROBLEMS["GPT-3 175B on 1,024 A100"]) -> Books:
    """Everything that prices a layout, read before the clock runs."""
    arch, device, profile = read_model(problem.model), find_device(problem.device), find_profile(STACK)
    fabric, curves = read_fabric(None, device), find_curves(device)
    return Books(
        model=model_of(arch, Workload(phase="train", seq=problem.seq), find_stack(STACK)),
        job=Job(arch=arch, seq=problem.seq, dtype="bf16", curves=curves, fabric=fabric, traits=profile.traits),
        profile=profile.at(f"{problem.device} bf16"),
        global_batch=problem.batch,
    )


def price_drawn(priced: Books, columns: dict[str, Any]) -> dict[str, Any]:
    """The drawn configurations checked and priced: memory and step time of every legal one."""
    import numpy as np

    started = time.perf_counter()
    grid = as_grid(columns)
    row = np.arange(len(grid))
    sizes = GridMemory(priced.model, BATCH, grid).fullest_bytes(grid, row)
    seconds = GridTimes(priced.job, priced.profile, BATCH, grid).step_s(grid, row)
    wall = time.perf_counter() - started
    fit = int((sizes <= LIMIT).sum())
    return {"configurations": len(columns["tp"]), "priced": len(seconds), "fit": fit, "wall_s": wall}


def space_of(priced: Books, problem: Problem, *, own: bool = False) -> Space:
    """Where layouts are looked for: everything, or of sharding what the stack runs."""
    stack = find_stack(STACK)
    limits = {"pipeline_zero": stack.pipeline_zero, "hybrid": stack.hybrid} if own else {}
    return Space(cuts=cuts_of(priced.model.parts), gpus=(problem.gpus,), global_batch=problem.batch, seq=problem.seq,
                 per_node=8, **limits)  # fmt: skip


def searched(priced: Books, space: Space, pins: dict[str, tuple[Any, ...]], limit: float = LIMIT) -> dict[str, Any]:
    """One search: enumeration, pruning, ranking."""
    started, began = time.perf_counter(), time.process_time()
    found = enumerate_grid(space, pins, priced.keep(limit))
    result = search(found, Prices(priced, found), limit, TOP)
    wall, cpu = time.perf_counter() - started, time.process_time() - began
    assert result.best is not None
    return {"configurations": found.enumerated, "legal": found.legal, "priced": result.timed, "wall_s": wall,
            "cpu_s": cpu, "best_s": float(result.best.step_s[0]), "best": result.best.grid.at(0).short}  # fmt: skip


def named_searches() -> dict[str, dict[str, Any]]:
    """Both named problems, with every option and with what the stack runs."""
    found = {}
    for name, problem in PROBLEMS.items():
        priced, stack = books(problem), find_stack(STACK)
        limit = float(find_device(problem.device).usable_bytes_per_torch_device or LIMIT)
        own = {"recompute": ("none", "block", "full"), "schedule": stack.schedules, "zero": stack.zero}
        for what, pins in (("every option", {}), ("the stack's", own)):
            space = space_of(priced, problem, own=bool(pins))
            found[f"{name}, {what}"] = fastest(lambda: searched(priced, space, pins, limit))  # noqa: B023  run at once
    return found


# --- calculon -----------------------------------------------------------------------------------------------------


def calculon_drawn(checkout: Path, configs: list[Config]) -> dict[str, Any]:
    """The same configurations by calculon, as its own search calls it."""
    sys.path.insert(0, str(checkout))
    from calculon import System
    from calculon.llm import Llm

    app = Llm.Application(json.loads((checkout / "models" / "gpt3-175B.json").read_text()))
    system = System(json.loads((checkout / "systems" / "a100_80g.json").read_text()))
    logger, good, started = logging.Logger("calculon"), 0, time.perf_counter()
    for config in configs:
        try:
            model = Llm(app, logger)
            model.compile(system, Llm.Execution.from_json(as_execution(config)))
            model.run(system)
            model.get_stats_json(False)
            good += 1
        except (Llm.Error, AssertionError):  # its way of saying that a configuration cannot be
            continue
    return {"configurations": len(configs), "priced": good, "wall_s": time.perf_counter() - started}


def as_execution(config: Config) -> Config:
    """The configuration in calculon's keys: tensor parallelism on NVLink, the rest on the network."""
    return {
        "num_procs": GPUS, "tensor_par": config["tp"], "pipeline_par": config["pp"], "data_par": config["dp"],
        "tensor_par_net": 0, "pipeline_par_net": 1 if config["pp"] > 1 else 0,
        "data_par_net": 1 if config["dp"] > 1 else 0, "batch_size": BATCH, "microbatch_size": config["micro_batch"],
        "datatype": "float16", "fused_activation": True, "attention_type": "multihead",
        "activation_recompute": RECOMPUTE[config["recompute"]], "pipeline_interleaving": config["vpp"],
        "optimizer_sharding": bool(config["zero"]), "tensor_par_comm_type": "rs_ag" if config["sp"] else "ar",
        "tensor_par_overlap": "none", "seq_par_ag_redo": False, "data_par_overlap": False, "weight_offload": False,
        "activations_offload": False, "optimizer_offload": False, "training": True,
    }  # fmt: skip


# --- report -------------------------------------------------------------------------------------------------------


def rate(figures: dict[str, Any]) -> float:
    """Configurations a second, rejected ones included."""
    return figures["configurations"] / figures["wall_s"]


def fastest(run: Any) -> dict[str, Any]:
    """The fastest of a few runs: the others met a busier machine."""
    return min((run() for _ in range(REPEAT)), key=lambda each: each["wall_s"])


def line(name: str, figures: dict[str, Any]) -> str:
    priced = figures["priced"] / figures["wall_s"]
    cpu = f" (CPU {figures['cpu_s']:.3f} s)" if "cpu_s" in figures else ""
    return (
        f"{name:<44} {figures['configurations']:>12,} in {figures['wall_s']:8.3f} s{cpu}"
        f" {rate(figures):>16,.0f}/s   priced {figures['priced']:>8,} {priced:>12,.0f}/s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calculon", type=Path, help="a checkout of calculon-ai/calculon")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    many, priced = drawn(MANY), books()
    configs, columns = many[:DRAWN], as_columns(many)
    few = {name: column[:DRAWN] for name, column in columns.items()}
    space = space_of(priced, PROBLEMS["GPT-3 175B on 1,024 A100"])
    found = named_searches() | {
        "suanli, the same drawn": fastest(lambda: price_drawn(priced, few)),
        "suanli, more of them": fastest(lambda: price_drawn(priced, columns)),
        "suanli, search of what calculon expresses": fastest(lambda: searched(priced, space, EXPRESSIBLE)),
    }
    if asked.calculon is None:
        print("calculon: skipped (no --calculon CHECKOUT)")
    else:
        found["calculon, drawn"] = calculon_drawn(asked.calculon, configs)
    for name, figures in found.items():
        print(line(name, figures))
    peer = found.get("calculon, drawn")
    if peer is not None:
        for name in ("suanli, the same drawn", "suanli, more of them", "suanli, search of what calculon expresses"):
            print(f"{name}: {rate(found[name]) / rate(peer):,.0f} × calculon")
    if asked.json:
        asked.json.write_text(json.dumps({"seed": SEED, "figures": found}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
