"""`layout` as typed: numbers of GPUs, links, what is compared; the JSON keys; nothing heavy before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import suanli
from suanli.api.layouts import read_gpus, read_why
from suanli.api.links import read_fabric
from suanli.api.request import Request
from suanli.catalog.devices import find_device
from suanli.errors import InputError

pytest.importorskip("numpy")
SMALL = {"gpu": "h100-sxm", "gpus": 8, "global_batch": 16, "seq": 2048, "pin": "cp=1,pp=1"}

GPUS = [
    (1024, (1024,)), ("1024", (1024,)), ("16,384", (16384,)), ("1,024", (1024,)), ("512,1024", (512, 1024)),
    ("128,256", (128, 256)), ([8, 4], (4, 8)), ("1Ki", (1024,)), ((8,), (8,)),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), GPUS, ids=[str(each[0]) for each in GPUS])
def test_numbers_of_gpus(given, expected):
    request = Request()
    assert read_gpus(request, given) == expected
    request.check()


@pytest.mark.parametrize("given", ["0", "-1", "a", "8,x", "1.5"])
def test_numbers_that_are_none(given):
    request = Request()
    read_gpus(request, given)
    with pytest.raises(InputError, match="--gpus"):
        request.check()


def test_links_of_a_node_a_network_or_typed():
    h100 = find_device("h100-sxm")
    assert read_fabric(None, h100).name == "hgx-h100, infiniband"
    assert read_fabric("p5.48xlarge", h100).name == "p5.48xlarge, efa"
    assert read_fabric("hgx-h100:efa", h100).name == "hgx-h100, efa"
    typed = read_fabric("8x450GB/s+400GB/s", h100)
    assert (typed.gpus_per_node, typed.link_bytes_per_s, typed.nics_bytes_per_s) == (8, 450e9, 400e9)
    assert read_fabric("4x200GB/s", h100).nics_bytes_per_s is None


BAD_LINKS = [
    ("8x450+400GB/s", "a number without its unit in --fabric"),
    ("0x450GB/s+400GB/s", "GPUs a node: not a number above 0 in --fabric; got 0. As typed: 8x450GB/s"),
    ("hgx-h1000", "unknown node 'hgx-h1000' in --fabric; .*Or GPUs a node with rates: 8x450GB/s"),
    ("hgx-h100:token-ring", "unknown network 'token-ring' in --fabric; .*Networks: infiniband, efa"),
]


@pytest.mark.parametrize(("text", "message"), BAD_LINKS, ids=[each[0] for each in BAD_LINKS])
def test_links_that_cannot_be(text, message):
    with pytest.raises(InputError, match=message):
        read_fabric(text, find_device("h100-sxm"))


def test_a_device_in_no_known_node_asks_for_its_links():
    with pytest.raises(InputError, match="no node of the catalogue holds h800-sxm on known links in --fabric"):
        suanli.layout("llama-3.1-8b", **SMALL | {"gpu": "h800-sxm"})


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, None), ("1 2", (1, 2)), (("1", "tp=8"), (1, "tp=8")), (["2", {"tp": 4}], (2, {"tp": 4}))],
)
def test_what_is_compared(given, expected):
    assert read_why(given, 5) == expected


def test_the_json_has_the_keys_of_the_contract():
    found = json.loads(suanli.layout("llama-3.1-8b", **SMALL, top=2).to_json())
    assert (found["ok"], found["kind"], found["convention"]) == (True, "layout", "causal")
    result = found["result"]
    assert {"layouts", "evaluated", "search_s"} <= set(result)
    assert len(result["layouts"]) == 2
    for row in result["layouts"]:
        assert {"tp", "pp", "dp", "cp", "ep", "etp", "vpp", "micro_batch", "zero", "recompute", "sp", "schedule",
                "step_time_s", "step_time_interval_s", "mfu", "memory_bytes", "account"} <= set(row)  # fmt: skip
        assert "total" in row["memory_bytes"]
        assert {"entry", "seconds"} == set(row["account"][0])
    assert found["inputs"]["assumed"]["stack"] == "megatron-core"


def test_what_was_not_given_is_said():
    notes = suanli.layout("llama-3.1-8b", **SMALL).notes
    assert notes[0] == "assumed: dtype bf16, top 5, stack megatron-core"
    assert any(note.startswith("links: hgx-h100") for note in notes)
    assert any(note.startswith("price: $") for note in notes)


def test_progress_is_told():
    seen: list[float] = []
    suanli.layout("llama-3.1-8b", **SMALL, progress=seen.append)
    assert seen[-1] == 1


def test_the_planner_comes_with_the_first_layout():
    code = (
        "import suanli, sys; print([name for name in sys.modules if name == 'numpy' or name.startswith('suanli.plan.')"
        " and name.split('.')[2] in ('layout', 'search', 'memory_grid', 'time_grid', 'launch')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_one_node_needs_no_adapters_and_two_name_the_option():
    """The catalogue knows no adapters of the node of mi300x: one node is laid out, two say what to give."""
    asked = {"gpu": "mi300x", "global_batch": 64, "seq": 4096, "top": 1, "fabric": "8x450GB/s"}
    found = suanli.layout("llama-3.1-8b", gpus=8, **asked).layouts[0]
    assert found.gpus == 8
    with pytest.raises(InputError, match=r"a group leaves its node, .* in --fabric"):
        suanli.layout("llama-3.1-8b", gpus=16, **asked)


def test_a_huge_batch_is_answered_by_the_closed_form():
    found = suanli.layout("llama-3.1-8b", **{**SMALL, "global_batch": 10**9, "top": 2, "pin": "cp=1,pp=2"})
    assert [(each.played, each.step_time_s == each.closed_form_step_time_s) for each in found.layouts] == [
        (False, True)
    ] * 2
    assert found.layouts[0].step_time_s < found.layouts[1].step_time_s
    assert "played out: not where micro-batches × stages are above 10,000; the closed form stands" in found.notes
    usual = suanli.layout("llama-3.1-8b", **SMALL)
    assert all(each.played for each in usual.layouts)
    assert not any(note.startswith("played out") for note in usual.notes)


def test_a_ranking_has_an_end():
    with pytest.raises(
        InputError, match=r"so many layouts are not listed in --top; got 100000000; expected 1 to 1,000"
    ):
        suanli.layout("llama-3.1-8b", **SMALL, top=100_000_000)


CARELESS = [({"gpus": []}, "--gpus"), ({"gpus": ()}, "--gpus"), ({"pin": 5}, "--pin"), ({"pin": [1, 2]}, "--pin"),
            ({"pin": {"sp": [1]}}, "--pin")]  # fmt: skip


@pytest.mark.parametrize(("given", "where"), CARELESS, ids=[str(each[0]) for each in CARELESS])
def test_values_of_python_that_cannot_be_are_input_errors(given, where):
    with pytest.raises(InputError, match=where):
        suanli.layout("llama-3.1-8b", **{**SMALL, **given})


# --- what a careless request is told ------------------------------------------------------------------------------


def said(**more):
    with pytest.raises(InputError) as problem:
        suanli.layout("llama-3.1-8b", **{**SMALL, **more})
    return str(problem.value).splitlines()


def test_faults_of_stack_links_dtype_and_limit_come_together():
    found = said(stack="nem", fabric="dgx-x", dtype="fp7", memory_limit=0, emit="megatro", gpus="1e30", top=0, why="1")
    assert [line.split(";")[0] for line in found] == [
        "gpus is not possible in --gpus", "unknown dtype 'fp7' in --dtype", "top is not possible in --top",
        "no memory to hold anything in --memory-limit", "unknown tool 'megatro' in --emit",
        "unknown stack 'nem' in --stack", "unknown node 'dgx-x' in --fabric", "two layouts are compared in --why",
    ]  # fmt: skip
    assert found[0].endswith("got '1e30'; expected 1 to 1,000,000,000.")


@pytest.mark.parametrize("limit", [0, "0", "0GB", " 0 "])
def test_no_memory_is_told_as_that(limit):
    assert said(memory_limit=limit) == [
        f"no memory to hold anything in --memory-limit; got {limit!r}; expected above 0, like 80GB."
    ]


def test_a_batch_is_called_as_it_was_typed():
    assert said(global_batch="1e13") == [
        "global batch is not a possible length in --global-batch; got 10000000000000; expected a whole number from 1 "
        "to 1,000,000,000,000."
    ]
    with pytest.raises(InputError, match="global batch is not possible in --global-batch; got 0; expected at least 1"):
        suanli.train("llama-3.1-8b", tokens="1T", gpu="h100-sxm", gpus=8, global_batch=0)
    with pytest.raises(InputError, match="global batch is not a possible length in --global-batch"):
        suanli.train("llama-3.1-8b", tokens="1T", gpu="h100-sxm", gpus=8, global_batch="1e15")


def test_a_step_that_the_host_rules_is_told():
    small = suanli.layout("gpt2", gpu="h100-sxm", gpus=8, global_batch=8, seq=1024, pin="cp=1,pp=1,tp=1", top=1)
    note = next(each for each in small.notes if "cost" in each and "the host" in each)
    best = small.layouts[0]
    share = sum(each.seconds for each in best.account if each.entry in ("launch", "fixed")) / best.step_time_s
    assert share > 0.3
    assert note == (
        f"{share:.0%} of the first layout's step are launches and what every step and micro-batch costs the host: for "
        "work this small they rule the prediction, and differ most from cluster to cluster"
    )
    assert not any("costs the host" in each for each in suanli.layout("llama-3.1-8b", **SMALL, top=1).notes)
