"""The whole grid's memory and step times against the functions that explain one layout; floors are below them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suanli.catalog.curves import find_curves
from suanli.catalog.devices import find_device
from suanli.catalog.fabrics import node_fabric
from suanli.catalog.profiles import prior_profile
from suanli.catalog.stacks import find_stack
from suanli.nouns.workload import Workload
from suanli.plan.enumerate import enumerate_grid
from suanli.plan.grid_keys import Keys, unique_codes, unique_rows
from suanli.plan.limits import Space, cuts_of
from suanli.plan.memory import memory_estimate
from suanli.plan.memory_grid import GridMemory, states_floor
from suanli.plan.pieces import parts_of
from suanli.plan.planned import model_of
from suanli.plan.step_time import Job, account, features
from suanli.plan.time_grid import GridTimes
from suanli.readers.model import read_model

np = pytest.importorskip("numpy")

# model, GPUs, batch, sequence, dtype, memory stack, time stack, pins: uneven stages, experts, tied tables, gradients
# that stand whole for a turn or a step, states shared by fewer ranks or on the host
CASES = {
    "llama-405b": ("llama-3.1-405b", 512, 128, 8192, "bf16", "megatron-core", "nemo", {}),
    "llama-8b fsdp": ("llama-3.1-8b", 16, 64, 4096, "bf16", "torchtitan", "composer-fsdp", {}),
    "gpt2 tied": ("gpt2", 8, 32, 1024, "fp16", "megatron-2021", "megatron-2021", {}),
    "deepseek-v3": ("deepseek-v3", 64, 128, 4096, "fp8", "megatron-core", "nemo", {"pp": (1, 4, 16), "cp": (1, 2)}),
    "mixtral": ("mixtral-8x7b", 16, 32, 4096, "bf16", "nemo", "nemo", {"pp": (1, 2, 8)}),
    "llama-8b hsdp": ("llama-3.1-8b", 64, 128, 4096, "bf16", "torchtitan", "torchtitan",
                      {"shards": (0, 2, 4, 16), "offload": (False, True), "tp": (1, 2), "cp": (1, 2), "pp": (1, 4)}),
    "deepspeed offload": ("gpt2-xl", 16, 64, 1024, "fp16", "deepspeed", "deepspeed",
                          {"offload": (True,), "cp": (1,), "schedule": ("1f1b", "dualpipe", "zero-bubble")}),
}  # fmt: skip
SAMPLE = 60


def settled(grid, layers: int):
    """Where memory is to tell how many layers of a chunk are recomputed: any number that is not all of them."""
    most = np.ceil(layers / (grid.pp * grid.vpp)) - 1
    drawn = 1 + np.floor(np.random.default_rng(9).random(len(grid)) * most)
    return replace(grid, recompute_layers=np.where(grid.recompute_layers < 0, drawn, grid.recompute_layers))


@pytest.fixture(scope="module", params=CASES, ids=list(CASES))
def case(request):
    name, gpus, batch, seq, dtype, keeps, times, pins = CASES[request.param]
    arch, device = read_model(name), find_device("h100-sxm")
    space = Space(cuts=cuts_of(parts_of(arch)), gpus=(gpus,), global_batch=batch, seq=seq, per_node=8)
    found = enumerate_grid(space, pins)
    rows = np.random.default_rng(7).permutation(len(found.rows))[:4000]
    grid, place = found.expand(np.sort(rows))
    chosen = np.random.default_rng(8).permutation(len(grid))[:20000]
    grid, row = settled(grid.take(chosen), len(parts_of(arch).kinds)), np.sort(rows)[place][chosen]
    profile = prior_profile(times)
    job = Job(arch=arch, seq=seq, dtype=dtype, curves=find_curves(device), fabric=node_fabric("hgx-h100"),
              traits=profile.traits)  # fmt: skip
    return {
        "found": found, "grid": grid, "row": row, "batch": batch, "job": job,
        "profile": profile.numbers, "stack": find_stack(keeps), "arch": arch,
        "workload": Workload(phase="train", seq=seq, dtype=dtype),
    }  # fmt: skip


def test_step_times_are_those_of_the_account(case):
    times = GridTimes(case["job"], case["profile"], case["batch"], case["found"].rows)
    grid = case["grid"]
    found = times.step_s(grid, case["row"])
    few = np.arange(0, len(grid), max(1, len(grid) // 2000))
    expected = sum(account(features(case["job"], grid.take(few), float(case["batch"])), case["profile"]).values())
    assert np.allclose(found[few], expected, rtol=1e-9)


def test_no_step_is_below_its_floors(case):
    times = GridTimes(case["job"], case["profile"], case["batch"], case["found"].rows)
    seconds = times.step_s(case["grid"], case["row"])
    floor, own = times.floor_s()[case["row"]], times.layout_floor_s(case["grid"], case["row"])
    assert (floor > 0).all()
    assert (floor <= own * (1 + 1e-9)).all()
    assert (own <= seconds * (1 + 1e-9)).all()
    assert (own / seconds).max() > 0.5  # a floor that says something


def test_memory_is_that_of_one_layout_to_the_byte(case):
    memory = GridMemory(model_of(case["arch"], case["workload"], case["stack"]), case["batch"], case["found"].rows)
    sizes = memory.fullest_bytes(case["grid"], case["row"])
    for at in range(SAMPLE):
        layout = case["grid"].at(at)
        one = memory_estimate(case["arch"], case["workload"], layout, case["stack"], global_batch=case["batch"])
        assert sizes[at] == one.total, layout.short


def test_every_way_to_recompute_and_to_share_is_among_the_layouts(case):
    grid = case["grid"]
    some = grid.recompute_layers > 0
    assert some.any() and (grid.recompute[some] == 2).all()
    assert (grid.recompute_layers[some] < np.ceil(len(parts_of(case["arch"]).kinds) / (grid.pp * grid.vpp))[some]).all()


def test_as_few_layers_as_fit(case):
    """One fewer does not fit, and where none is named either nothing or everything has to be made again."""
    model = model_of(case["arch"], case["workload"], case["stack"])
    memory = GridMemory(model, case["batch"], case["found"].rows)
    few = np.flatnonzero((case["grid"].recompute_layers > 0) & (np.arange(len(case["grid"])) % 5 == 0))
    grid, row = case["grid"].take(few), case["row"][few]
    limit = float(np.median(memory.fullest_bytes(grid, row)))
    plain = replace(grid, recompute=0 * grid.recompute, recompute_layers=0 * grid.recompute_layers)
    needed = memory.fullest_bytes(plain, row) > limit
    fewest = np.where(needed, memory.fewest_layers(grid, row, limit), 0)

    def size(layers, recompute=2.0):
        return memory.fullest_bytes(
            replace(grid, recompute_layers=layers, recompute=recompute + 0 * layers), row
        )  # fmt: skip

    most = np.ceil(len(parts_of(case["arch"]).kinds) / (grid.pp * grid.vpp))
    named = fewest > 0
    assert named.any() and not named.all()
    assert (size(np.where(named, fewest, 1))[named] <= limit).all()
    assert (fewest[named] < most[named]).all()
    one_fewer = np.where(fewest > 1, size(np.maximum(fewest - 1, 1)), size(0 * fewest, recompute=0.0))
    assert (one_fewer[named] > limit).all()
    none = size(0 * fewest, recompute=0.0) <= limit
    barely = size(np.maximum(most - 1, 1)) > limit
    assert (none | barely)[~named].all()


def test_no_memory_is_below_its_floors(case):
    model = model_of(case["arch"], case["workload"], case["stack"])
    memory = GridMemory(model, case["batch"], case["found"].rows)
    sizes = memory.fullest_bytes(case["grid"], case["row"])
    assert (memory.floor_bytes()[case["row"]] <= sizes).all()
    assert (states_floor(model, case["found"].rows)[case["row"]] <= sizes).all()


def test_imbalance_reaches_memory_and_time():
    """Twice the tokens on the busiest expert rank: more kept, and longer."""
    arch = read_model("mixtral-8x7b")
    space = Space(cuts=cuts_of(parts_of(arch)), gpus=(16,), global_batch=32, seq=4096, per_node=8)
    found = enumerate_grid(space, {"ep": (8,), "pp": (2,), "recompute": ("none",), "zero": (1,), "schedule": ("1f1b",)})
    grid, row = found.expand(np.arange(len(found.rows)))
    model = model_of(arch, Workload(phase="train", seq=4096), find_stack("nemo"))
    even, skewed = (GridMemory(model, 32, found.rows, each).fullest_bytes(grid, row) for each in (1, 2))
    assert (skewed > even).all()
    one = memory_estimate(arch, model.workload, grid.at(0), model.stack, global_batch=32, imbalance=2)
    assert skewed[0] == one.total


# --- keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [50, 1 << 30])
def test_unique_codes_by_table_and_by_sorting(size):
    code = np.array([7, 3, 7, 49, 3, 3])
    first, back = unique_codes(code, size)
    assert sorted(code[first].tolist()) == [3, 7, 49]
    assert (code[first][back] == code).all()


def test_unique_rows_tell_every_combination_apart():
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 1 << 20, 3000).astype(float) // 7 for _ in range(5)]
    columns = [np.concatenate([column, column[:100]]) for column in columns]
    first, back = unique_rows(columns)
    assert len(first) == len({tuple(row) for row in zip(*columns, strict=True)})
    for column in columns:
        assert (column[first][back] == column).all()


def test_keys_with_chunks():
    found = enumerate_grid(
        Space(cuts=cuts_of(parts_of(read_model("gpt2"))), gpus=(8,), global_batch=32, seq=1024, per_node=8), {}
    )
    grid, row = found.expand(np.arange(len(found.rows)))
    keys = Keys(found.rows, ("tp", "pp"))
    first, back = keys.with_more(row, grid.vpp)
    for name in ("tp", "pp", "vpp"):
        column = getattr(grid, name)
        assert (column[first][back] == column).all()
