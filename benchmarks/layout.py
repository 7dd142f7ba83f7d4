"""How fast Suanli prices layouts, beside calculon: `python benchmarks/layout.py [--calculon CHECKOUT] [--json FILE]`.

GPT-3 175B on 1,024 A100-80GB, 1,024 sequences of 2,048 tokens, one core. Configurations are drawn with a fixed seed
from what calculon can express (no context or expert parallelism, ZeRO 0 and 1, stages of equal layers), legal and
illegal ones as they come. Calculon prices the first 600, one by one as its search does; Suanli the first 600, and
100,000, as it prices a grid; then it searches all of that part, and everything it knows. A rate is configurations
looked at, rejected ones included, over wall time; beside it stands the rate of those that were priced. Without a
checkout of calculon-ai/calculon (which needs pandas and psutil) its half is skipped, and said so.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import sys
import time
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
    "cp": (1,), "zero": (0, 1), "pp": EQUAL_STAGES, "schedule": ("1f1b", "interleaved"),
    "vpp": tuple(each for each in range(1, LAYERS + 1) if LAYERS % each == 0),
}  # fmt: skip
RECOMPUTE = {"none": "none", "selective": "attn_only", "full": "full"}
REPEAT = 3
LIMIT = 80e9

Config = dict[str, Any]


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


def books() -> Books:
    """Everything that prices a layout, read before the clock runs."""
    arch, device, profile = read_model("gpt3-175b"), find_device("a100-80gb-sxm"), find_profile("megatron-core")
    fabric, curves = read_fabric(None, device), find_curves(device)
    return Books(
        model=model_of(arch, Workload(phase="train", seq=SEQ), find_stack("megatron-core")),
        job=Job(arch=arch, seq=SEQ, dtype="bf16", curves=curves, fabric=fabric, traits=profile.traits),
        profile=profile.at("a100-80gb-sxm bf16"),
        global_batch=BATCH,
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


def search_all(priced: Books, pins: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """One search: enumeration, pruning, ranking."""
    space = Space(cuts=cuts_of(priced.model.parts), gpus=(GPUS,), global_batch=BATCH, seq=SEQ, per_node=8)
    started = time.perf_counter()
    found = enumerate_grid(space, pins, priced.keep(LIMIT))
    result = search(found, Prices(priced, found), LIMIT, 10)
    wall = time.perf_counter() - started
    assert result.best is not None
    return {"configurations": found.enumerated, "legal": found.legal, "priced": result.timed, "wall_s": wall,
            "best_s": float(result.best.step_s[0]), "best": result.best.grid.at(0).short}  # fmt: skip


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
    return (
        f"{name:<42} {figures['configurations']:>12,} in {figures['wall_s']:8.3f} s"
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
    found = {
        "suanli, the same drawn": fastest(lambda: price_drawn(priced, few)),
        "suanli, more of them": fastest(lambda: price_drawn(priced, columns)),
        "suanli, search of what calculon expresses": fastest(lambda: search_all(priced, EXPRESSIBLE)),
        "suanli, search of everything": fastest(lambda: search_all(priced, {})),
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
