"""Every tool that is installed, on modules made for its mistakes: all explained, and `like` says what the tool says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from suanli.compare.books import BOOKS
from suanli.compare.explain import explain
from suanli.compare.like import predict
from suanli.compare.peers import CPU, MACS, META, PEERS, TOOLS
from suanli.compare.places import places_of
from suanli.compare.rules import TABLES
from suanli.compare.runner import Runner
from suanli.units import GIBI

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("tools")]  # one process a net for all of the file

PACKAGE = "torch:compared_modules"
LIMITS = (120.0, 8 * GIBI)
NETS = ("raw", "tables", "picture", "recurrent")
# FLOPs by hand: [2, 8, 32] by [32, 16], attention of 2 · 2 heads, two products of its results;
# 6 rows by [8, 50]; 3→8 channels 3×3 on 2 · 64 positions, 8→4 channels 2×2 from 2 · 16, 4→10;
# 10 positions by 4 gates of 12 and 16, then of 16 and 16
RIGHT = {
    "raw": 2 * 16 * 32 * 16 + 4 * 4 * 64 * 8 + 2 * 2 * 4 * 64 * 8,
    "tables": 2 * 6 * 8 * 50,
    "picture": 2 * 128 * 8 * 27 + 2 * 32 * 8 * 4 * 4 + 2 * 2 * 4 * 10,
    "recurrent": 2 * 10 * 4 * 16 * (12 + 16 + 16 + 16),
}


def installed(tool: str) -> bool:
    return all(find_spec(name) is not None for name in (PEERS[tool].module, *PEERS[tool].needs))


@pytest.fixture(scope="module")
def loaded(modules_folder: Path) -> Iterator[Callable[[str], Runner]]:
    """A process a net that every test asks, so that torch is loaded once a net."""
    with contextlib.ExitStack() as stack:
        runners: dict[str, Runner] = {}

        def of(net: str) -> Runner:
            if net not in runners:
                description = {"form": "factory", "name": f"{PACKAGE}:{net}", "input": None}
                runners[net] = stack.enter_context(Runner(description, *LIMITS))
            return runners[net]

        stack.enter_context(contextlib.chdir(modules_folder))
        yield of


@pytest.mark.parametrize("net", NETS)
def test_every_tool_is_explained_and_emulated(net: str, loaded: Callable[[str], Runner]) -> None:
    runner = loaded(net)
    record = runner.ask("record", META)
    places = places_of(record["calls"])
    right = sum(place.flops for place in places.values())
    assert right == RIGHT[net]
    heard = []
    for tool in TOOLS:
        if not installed(tool) or tool in ("torchsummary", "torchstat"):
            continue
        for device in PEERS[tool].devices if net == "raw" else (META,):
            answer = runner.ask(tool, device, PEERS[tool].package, PEERS[tool].module)
            if "reason" in answer:
                continue
            heard.append(tool)
            times = 2 if PEERS[tool].unit == MACS else 1
            entries = [(path, name, times * amount) for path, name, amount in answer["entries"]]
            causes, rest = explain(places, entries, times * answer["total"], right, record["batch"])
            assert (tool, device, rest) == (tool, device, 0), causes
            said = predict(tool, record["calls"], device, batch=record["batch"], positional=record["positional"])
            assert (tool, device, said.total) == (tool, device, answer["total"])
    assert "flop_counter_mode" in heard


def test_every_tool_has_its_books_and_rules() -> None:
    """Two keep no books by which they could be explained."""
    assert set(BOOKS) == set(TOOLS)
    assert set(TABLES) == set(TOOLS) - {"torchsummary", "torchstat"}


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool in TABLES])
def test_every_tool_that_is_installed_gives_a_number(tool: str, loaded: Callable[[str], Runner]) -> None:
    """On some device; one that is not there is skipped aloud."""
    if not installed(tool):
        pytest.skip(f"{tool} is not installed: pip install 'suanli[compare]'")
    peer = PEERS[tool]
    answers = [loaded("picture").ask(tool, device, peer.package, peer.module) for device in (META, CPU)]
    assert any(answer.get("total", 0) > 0 for answer in answers), answers


def test_the_same_on_both_devices_for_the_record(loaded: Callable[[str], Runner]) -> None:
    """Our own record gives one answer, whatever the device."""
    sums = set()
    for device in (META, CPU):
        places = places_of(loaded("raw").ask("record", device)["calls"])
        sums.add(sum(place.flops for place in places.values()))
    assert sums == {RIGHT["raw"]}
