"""Every tool that is installed, on modules made for its mistakes: all explained, and `like` says what the tool says."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from suanli.compare.explain import explain
from suanli.compare.like import predict
from suanli.compare.peers import CPU, MACS, META, PEERS, TOOLS
from suanli.compare.places import places_of
from suanli.compare.rules import TABLES
from suanli.compare.runner import Runner
from suanli.units import GIBI

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

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


@pytest.fixture(params=NETS)
def asked(request: pytest.FixtureRequest, modules: str) -> Iterator[tuple[str, Runner, dict[str, Any]]]:
    with Runner({"form": "factory", "name": f"{modules}:{request.param}", "input": None}, *LIMITS) as runner:
        yield request.param, runner, runner.ask("record", META)


def test_every_tool_is_explained_and_emulated(asked: tuple[str, Runner, dict[str, Any]]) -> None:
    """One loaded process a module asks every tool, so that torch is loaded once."""
    net, runner, record = asked
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


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool in TABLES])
def test_every_tool_that_is_installed_gives_a_number(tool: str, modules: str) -> None:
    """On some device; one that is not there is skipped aloud."""
    if not installed(tool):
        pytest.skip(f"{tool} is not installed: pip install 'suanli[compare]'")
    peer = PEERS[tool]
    with Runner({"form": "factory", "name": f"{modules}:picture", "input": None}, *LIMITS) as runner:
        answers = [runner.ask(tool, device, peer.package, peer.module) for device in (META, CPU)]
    assert any(answer.get("total", 0) > 0 for answer in answers), answers


def test_the_same_on_both_devices_for_the_record(modules: str) -> None:
    """Our own record gives one answer, whatever the device."""
    sums = set()
    with Runner({"form": "factory", "name": f"{modules}:raw", "input": None}, *LIMITS) as runner:
        for device in (META, CPU):
            places = places_of(runner.ask("record", device)["calls"])
            sums.add(sum(place.flops for place in places.values()))
    assert sums == {RIGHT["raw"]}
