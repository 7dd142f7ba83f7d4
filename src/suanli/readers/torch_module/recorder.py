"""The book of a trace: every call with its place, pass, FLOPs and bytes, and every call that has no formula.

Where a gradient belongs: autograd numbers its nodes when the forward makes them, and says in backward which node runs.
Whether a call in backward is recomputation: a module runs, or grad mode is on; gradients are taken with neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from suanli.errors import Fault, InputError
from suanli.nouns.ledger import BACKWARD, FORWARD, RECOMPUTE_PASS
from suanli.readers.torch_module.gathers import moved_by, tensor_bytes
from suanli.readers.torch_module.memory import Held
from suanli.readers.torch_module.operators import cost_of
from suanli.readers.torch_module.passive import passive_kind
from suanli.readers.torch_module.products import Cost

MAX_SHAPES = 5  # shapes listed of an operator without a formula


@dataclass(slots=True)
class Entry:
    """Calls of one kind and formula at one place in one pass, added up."""

    flops: int = 0
    masked: int = 0
    extra: int = 0
    extra_masked: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    calls: int = 0


@dataclass(slots=True)
class Missing:
    """Calls of an operator without a formula."""

    calls: int = 0
    shapes: dict[str, int] = field(default_factory=dict)


Key = tuple[str, str, str, str]  # path, kind, pass, formula


@dataclass
class Limits:
    """Bounds of a trace: seconds, and bytes where memory is real."""

    seconds: float
    real_bytes: int | None = None


class Answers:
    """Truths a run on the meta device is told where it asks for one: all positions are real, none is odd.

    For models known to ask only so: whether a mask is all ones, whether any sequence is padded or packed.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, bool]] = {}
        self.sums: dict[int, tuple[Any, int]] = {}

    def watch(self, func: Any, args: Any, out: Any) -> None:
        """Remember what `all` and `any` made, and `sum() == numel()`; tensors are held, so that an id stays its own."""
        name = func._schema.name.partition("::")[2]
        if name in ("all", "any", "_is_all_true", "_is_any_true"):
            self.known[id(out)] = (out, "all" in name)
        elif name == "sum" and not args[0].dtype.is_floating_point:
            self.sums[id(out)] = (out, args[0].numel())
        elif name == "eq" and id(args[0]) in self.sums and args[1] == self.sums[id(args[0])][1]:
            self.known[id(out)] = (out, True)

    def answer(self, func: Any, args: Any) -> Any:
        """The value of a meta tensor that `all` or `any` made; for others what torch says."""
        found = self.known.get(id(args[0]))
        if found is None or args[0].device.type != "meta":
            return func(*args)
        return found[1]


class Recorder:
    """Collects what a run calls. Raises InputError where a bound is passed."""

    def __init__(self, names: dict[int, str], limits: Limits) -> None:
        self.names = names  # id of a module -> its path
        self.limits = limits
        self.deadline = time.monotonic() + limits.seconds
        self.entries: dict[Key, Entry] = {}
        self.missing: dict[str, Missing] = {}
        self.stack: list[str] = []
        self.places: dict[int, str] = {}  # autograd's number of a node -> path of the module that made it
        self.calls: dict[str, list[tuple[int, ...]]] = {}  # input shapes of every module's forward calls
        self.suspended = 0
        self.in_step_backward = False
        self.failed_at: str | None = None
        self.answers: Answers | None = None
        self.held = None if limits.real_bytes is None else Held(limits.real_bytes)

    # --- where -----------------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Path of the innermost module that runs."""
        return self.stack[-1] if self.stack else ""

    def enter(self, module: Any, inputs: Any) -> None:
        """A module's forward begins."""
        self.check_time()
        path = self.names.get(id(module))
        self.stack.append(self.path if path is None else path)
        if path is not None and not self.in_step_backward:
            first = next((x for x in inputs if hasattr(x, "layout") and not x.is_nested), None)
            self.calls.setdefault(path, []).append(tuple(first.shape) if first is not None else ())

    def leave(self, failed: bool) -> None:
        """A module's forward ends, or was left by an error."""
        if failed and self.failed_at is None and not self.in_step_backward:
            self.failed_at = self.path
        if self.stack:
            self.stack.pop()

    def check_time(self) -> None:
        """Raise where the time bound is passed."""
        if time.monotonic() > self.deadline:
            raise too_slow(self)

    @contextmanager
    def silence(self) -> Iterator[None]:
        """What runs inside is not written down: a whole is, in one piece."""
        self.suspended += 1
        try:
            yield
        finally:
            self.suspended -= 1

    # --- what ------------------------------------------------------------------------------------------------------

    def record(self, func: Any, named: Callable[[], dict[str, Any]], inputs: list[Any], out: Any) -> None:
        """Write one operator call down."""
        self.check_time()
        pass_, path = self.place()
        name = func._schema.name
        if any(tensor.is_nested and "strided" in str(tensor.layout) for tensor in inputs):
            self.miss(f"{func} of nested tensors", [])
            return
        found = cost_of(name)
        if found is not None:
            self.add(found({**named(), "operator": name.partition("::")[2]}, out), inputs, out, path, pass_)
            return
        if _is_alias(func):
            return  # a view moves and multiplies nothing
        kind = _kind(func)
        if kind is None:
            self.miss(str(func), inputs)
            kind = "uncounted"
        entry = self._entry((path, kind, pass_, ""))
        entry.calls += 1
        moved = moved_by(name)
        if moved is None:
            self._move((path, kind, pass_, ""), inputs, out)
            return
        read, written = moved({**named(), "operator": name.partition("::")[2]}, out)
        entry.read_bytes += read
        entry.write_bytes += written

    def add(self, cost: Cost, inputs: list[Any], out: Any, path: str, pass_: str) -> None:
        """Add a call whose cost is known."""
        if pass_ == FORWARD and cost.backward:
            pass_ = BACKWARD
        key = (path, cost.kind, pass_, cost.formula)
        entry = self._entry(key)
        entry.calls += 1
        entry.flops += cost.flops
        entry.masked += cost.masked
        entry.extra += cost.extra
        entry.extra_masked += cost.extra_masked
        self._move(key, inputs, out)

    def miss(self, name: str, inputs: list[Any]) -> None:
        """Write down a call that has no formula."""
        missing = self.missing.setdefault(name, Missing())
        missing.calls += 1
        shapes = ", ".join("×".join(map(str, tensor.shape)) or "scalar" for tensor in inputs)
        if shapes in missing.shapes or len(missing.shapes) < MAX_SHAPES:
            missing.shapes[shapes] = missing.shapes.get(shapes, 0) + 1

    def place(self) -> tuple[str, str]:
        """Pass and path of what runs now; a forward's autograd node is remembered for its gradient."""
        import torch  # noqa: PLC0415

        next_node = torch._C._autograd._get_sequence_nr()
        if torch._C._current_graph_task_id() == -1:
            self.places.setdefault(next_node - 1, self.path)
            return FORWARD, self.path
        if self.in_step_backward and (self.stack or torch.is_grad_enabled()):
            self.places.setdefault(next_node - 1, self.path)
            return RECOMPUTE_PASS, self.path
        node = torch._C._current_autograd_node()
        path = self.places.get(node._sequence_nr(), self.path) if node is not None else self.path
        return BACKWARD, path

    def _entry(self, key: Key) -> Entry:
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = Entry()
        return entry

    def _move(self, key: Key, inputs: list[Any], out: Any) -> None:
        entry = self._entry(key)
        entry.read_bytes += sum(tensor_bytes(tensor) for tensor in inputs)
        outputs = out if isinstance(out, tuple | list) else (out,)
        entry.write_bytes += sum(tensor_bytes(each) for each in outputs if hasattr(each, "layout"))


_KIND_OF: dict[Any, str | None] = {}
_ALIAS_OF: dict[Any, bool] = {}


def _kind(func: Any) -> str | None:
    if func not in _KIND_OF:
        _KIND_OF[func] = passive_kind(func)
    return _KIND_OF[func]


def _is_alias(func: Any) -> bool:
    """Whether a call moves nothing: its result is a view."""
    if func not in _ALIAS_OF:
        returns = func._schema.returns
        _ALIAS_OF[func] = bool(returns) and all(
            value.alias_info is not None and not value.alias_info.is_write for value in returns
        )
    return _ALIAS_OF[func]


def too_slow(recorder: Recorder) -> InputError:
    """The error of a trace that passes its time bound."""
    seconds, path = recorder.limits.seconds, recorder.path
    return InputError(
        Fault(
            code="too_slow",
            message=f"the module still runs after {seconds:g} s",
            where=f"module {path or '(root)'}",
            expected=f"a forward that ends within {seconds:g} s",
            hint="Give it more time (--time-limit), or a smaller input; check for a loop that does not end.",
        )
    )
