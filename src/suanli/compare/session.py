"""Asks every counter about one model, and our own record of it: who runs where, and why one does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from suanli.compare.peers import CPU, META, Peer, Progress
from suanli.compare.places import Place, places_of
from suanli.compare.runner import Runner
from suanli.kept import FP32_BYTES
from suanli.readers import gate

AUTO = "auto"
DEVICES = (AUTO, META, CPU)
RECORD = "record"
CPU_SHARE = 4  # weights may fill a fourth of the bound: the tool copies some of them and makes activations

Answer = Mapping[str, Any]


@dataclass
class Session:
    """A model, the bounds of each counter, and what was answered."""

    description: Mapping[str, Any]
    device: str
    time_limit: float
    memory_limit: int
    progress: Progress | None = None
    record: Answer = field(default_factory=dict, init=False)
    answers: dict[str, Answer] = field(default_factory=dict, init=False)
    places: dict[str, Place] = field(default_factory=dict, init=False)

    def run(self, peers: Iterable[Peer]) -> None:
        """Record the model, then ask every counter that is installed; where the model cannot be run, none is asked."""
        asked = list(peers)
        with Runner(self.description, self.time_limit, self.memory_limit) as runner:
            self._tell("the model itself", 0, len(asked))
            self.record = self._recorded(runner)
            self.places = places_of(self.record.get("calls", ()))
            for index, peer in enumerate(asked):
                self._tell(peer.title, index, len(asked))
                self.answers[peer.name] = self._answer(runner, peer)
        self._tell("", len(asked), len(asked))

    def _tell(self, what: str, done: int, all_: int) -> None:
        if self.progress is not None:
            self.progress(what, done, all_)

    @property
    def right(self) -> int | None:
        """FLOPs of a forward pass by trace; None where the model could not be run."""
        return None if "reason" in self.record else sum(place.flops for place in self.places.values())

    def _recorded(self, runner: Runner) -> Answer:
        """On the meta device if that goes: shapes are the same everywhere, and there they cost nothing."""
        if not gate.may_build(str(self.description.get("where", "preset "))):
            return {"reason": gate.NOT_BUILT}
        answer: Answer = {"reason": "not run"}
        for device in (META, CPU) if self.device == AUTO else (self.device,):
            answer = runner.ask(RECORD, device)
            if "reason" not in answer:
                break
        return answer

    def _answer(self, runner: Runner, peer: Peer) -> Answer:
        missing = [name for name in (peer.module, *peer.needs) if find_spec(name) is None]
        if missing:
            return {"reason": f"not installed: pip install {' '.join(dict.fromkeys((peer.package, *peer.needs)))}"}
        if "reason" in self.record:
            return {"reason": f"the model cannot be run: {self.record['reason']}"}
        reasons: list[str] = []
        for device in self._devices(peer):
            if device == CPU and (reason := self._too_large()):
                reasons.append(reason)
                continue
            answer = runner.ask(peer.name, device, peer.package, peer.module)
            if "reason" not in answer:
                return answer
            reasons.append(f"on {device}: {answer['reason']}")
        return {"reason": "; ".join(reasons) or f"runs on {' or '.join(peer.devices)} alone"}

    def _devices(self, peer: Peer) -> tuple[str, ...]:
        return tuple(each for each in peer.devices if self.device in (AUTO, each))

    def _too_large(self) -> str | None:
        """Why the weights are not made in memory."""
        size = FP32_BYTES * int(self.record["params"])
        if size * CPU_SHARE <= self.memory_limit:
            return None
        return f"on cpu: not tried, {size:,} bytes of weights are over a fourth of the memory bound"
