"""What each tool says of a model, with its own books: an amount for every module and operator it counted.

One function a tool, run in a process of its own. Where a tool keeps only sums, its lists are read while it fills them;
no amount is ever changed. Amounts are in the tool's own unit.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from suanli.compare.explain import SINGLE
from suanli.compare.subject import Subject
from suanli.readers.torch_module.load import import_torch


@dataclass
class Said:
    """A tool's total (None where it gives none), its parameters, and its books."""

    total: int | None
    params: int | None
    entries: dict[tuple[str, str], int] = field(default_factory=dict)  # (path, operator) -> amount

    def add(self, path: str, operator: str, amount: float) -> None:
        """Write an amount down; zeros are no entries."""
        if amount:
            key = (path, operator)
            self.entries[key] = self.entries.get(key, 0) + int(amount)


@contextlib.contextmanager
def paths(subject: Subject) -> Iterator[list[str]]:
    """The stack of paths of the modules that run."""
    stack: list[str] = []
    handles = []
    for child in subject.module.modules():
        name = subject.names.get(id(child), "")
        handles.append(child.register_forward_pre_hook(lambda _module, _args, name=name: stack.append(name)))
        handles.append(child.register_forward_hook(lambda _module, _args, _out: stack.pop() and None))
    try:
        yield stack
    finally:
        for handle in handles:
            handle.remove()


def _top(stack: list[str]) -> str:
    return stack[-1] if stack else ""


# --- torch itself -------------------------------------------------------------------------------------------------


def flop_counter_mode(subject: Subject) -> Said:
    """torch.utils.flop_counter: a dispatch mode with a table of formulas."""
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415

    said = Said(None, None)
    with paths(subject) as stack:
        mode = FlopCounterMode(display=False)
        mode.flop_registry = {op: _noting(said, stack, op, count) for op, count in mode.flop_registry.items()}
        with mode:
            subject.run()
    said.total = int(mode.get_total_flops())
    return said


def _noting(said: Said, stack: list[str], op: Any, count: Callable[..., Any]) -> Callable[..., Any]:
    """The tool's own formula, its answer written down with the module that runs."""

    def formula(*args: Any, **kwargs: Any) -> Any:
        amount = count(*args, **kwargs)
        said.add(_top(stack), _operator(op), amount)
        return amount

    return formula


def _operator(op: Any) -> str:
    """`aten.mm` as `mm`."""
    return str(op).removeprefix("aten.").partition(".")[0]


# --- tools that patch Python functions ----------------------------------------------------------------------------


def calflops(subject: Subject) -> Said:
    """calflops: patched functionals and hooks."""
    from calflops import calculate_flops, calculate_pipline, pytorch_ops  # noqa: PLC0415

    said = Said(None, None)
    pipeline = calculate_pipline.CalFlopsPipline
    total = pipeline.get_total_flops

    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        _module_sums(said, subject, pytorch_ops.MODULE_HOOK_MAPPING)
        return total(self, *args, **kwargs)

    pipeline.get_total_flops = read
    quiet = {"print_results": False, "print_detailed": False, "output_as_string": False}
    with (
        import_torch().no_grad(),
        _lists(said, subject, calculate_pipline.module_flop_count, pytorch_ops.MODULE_HOOK_MAPPING),
    ):
        found = calculate_flops(subject.module, args=list(subject.args), kwargs=dict(subject.kwargs), **quiet)
    said.total, said.params = int(found[0]), int(found[2])
    return said


def deepspeed(subject: Subject) -> Said:
    """DeepSpeed's flops profiler: patched functionals and hooks."""
    from deepspeed.profiling.flops_profiler import profiler  # noqa: PLC0415

    said = Said(None, None)
    with _lists(said, subject, profiler.module_flop_count, profiler.MODULE_HOOK_MAPPING):
        own = profiler.FlopsProfiler(subject.module)
        own.start_profile()
        subject.run()
    _module_sums(said, subject, profiler.MODULE_HOOK_MAPPING)
    said.total, said.params = int(own.get_total_flops()), int(own.get_total_params())
    own.end_profile()
    return said


@contextlib.contextmanager
def _lists(said: Said, subject: Subject, lists: list[Any], whole: Any) -> Iterator[None]:
    """Read each module's list of calls when it ends, before the tool adds it up."""

    def after(module: Any, _args: Any, _out: Any) -> None:
        for name, amount in lists[-1] if lists else ():
            said.add(subject.names.get(id(module), ""), name.__self__.__name__, amount)

    listed = [child for child in subject.module.modules() if type(child) not in whole]
    handles = [child.register_forward_hook(after) for child in listed]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _module_sums(said: Said, subject: Subject, whole: Any) -> None:
    """Modules that the tool counts in one piece."""
    for name, child in subject.module.named_modules():
        if type(child) in whole:
            said.add(name, type(child).__name__, getattr(child, "__flops__", 0))


def ptflops_pytorch(subject: Subject) -> Said:
    """ptflops, backend "pytorch": hooks on module types and patched functionals."""
    from ptflops import pytorch_engine as engine  # noqa: PLC0415

    said = Said(None, None)
    average, wrapped = engine.compute_average_flops_cost, engine.torch_function_wrapper.__call__

    def read(self: Any) -> Any:
        for name, child in subject.module.named_modules():
            said.add(name, type(child).__name__, getattr(child, "__flops__", 0))
        return average(self)

    with paths(subject) as stack:

        def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
            place, index = _top(stack), len(self.collector)
            out = wrapped(self, *args, **kwargs)
            said.add(place, self.op.__name__, self.collector[index])
            return out

        engine.compute_average_flops_cost, engine.torch_function_wrapper.__call__ = read, noted
        return _ptflops(subject, said, "pytorch")


def ptflops_aten(subject: Subject) -> Said:
    """ptflops, backend "aten": a dispatch mode with a table of formulas."""
    from ptflops import aten_ops  # noqa: PLC0415

    said = Said(None, None)
    with paths(subject) as stack:
        for op, count in list(aten_ops.ATEN_OPS_MAPPING.items()):
            aten_ops.ATEN_OPS_MAPPING[op] = _noting(said, stack, op, count)
        return _ptflops(subject, said, "aten")


def _ptflops(subject: Subject, said: Said, backend: str) -> Said:
    """ptflops hides an error behind None and prints it: here it is raised again from what was printed."""
    from ptflops import get_model_complexity_info  # noqa: PLC0415

    alone = len(subject.args) == 1 and not subject.kwargs
    given = {
        "input_constructor": lambda _: subject.args[0] if alone else _by_name(subject),
        "print_per_layer_stat": False, "as_strings": False, "backend": backend,
    }  # fmt: skip
    printed = io.StringIO()
    with import_torch().no_grad(), contextlib.redirect_stdout(printed):
        total, params = get_model_complexity_info(subject.module, (1,), **given)
    if total is None:
        raise RuntimeError((printed.getvalue().strip().splitlines() or ["no total, no reason"])[-1])
    said.total, said.params = int(total), int(params)
    return said


def _by_name(subject: Subject) -> dict[str, Any]:
    """All inputs by the names of the forward's arguments."""
    names = list(inspect.signature(subject.module.forward).parameters)
    return {**dict(zip(names, subject.args, strict=False)), **subject.kwargs}


# --- tools that hook module types ---------------------------------------------------------------------------------


def thop(subject: Subject) -> Said:
    """thop: hooks on module types; its sums stand in buffers of the modules."""
    from thop import profile  # noqa: PLC0415

    module, inputs = subject.positional()
    with import_torch().device("cpu"):
        total, params, tree = profile(module, inputs=inputs, verbose=False, ret_layer_info=True)
    said = Said(int(total), int(params))
    kinds = {name: type(child).__name__ for name, child in subject.module.named_modules()}
    for path, amount in _leaves(tree, ""):
        inner = path.removeprefix("model").removeprefix(".")
        said.add(inner, kinds.get(inner, ""), amount)
    return said


def _leaves(tree: dict[str, Any], path: str) -> Iterator[tuple[str, float]]:
    """What thop adds up: each branch's own amount less that of its children."""
    for name, (amount, _, children) in tree.items():
        here = f"{path}.{name}".lstrip(".")
        yield here, amount - sum(child[0] for child in children.values())
        yield from _leaves(children, here)


def torchinfo(subject: Subject) -> Said:
    """torchinfo: parameters times the size of the output."""
    from torchinfo import summary  # noqa: PLC0415

    given: Any = dict(_by_name(subject)) if subject.kwargs else list(subject.args)
    found = summary(subject.module, input_data=given, verbose=0, mode="eval", device=subject.device)
    said = Said(int(found.total_mult_adds), int(found.total_params))
    for layer in found.summary_list:
        if layer.is_leaf_layer:
            said.add(subject.names.get(layer.layer_id, ""), layer.class_name, layer.macs)
    return said


def torchsummary(subject: Subject) -> Said:
    """torchsummary: parameters alone, on float inputs of its own making."""
    from torchsummary import summary  # noqa: PLC0415

    module, inputs = subject.positional()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), import_torch().no_grad():
        summary(module, [tuple(each.shape[1:]) for each in inputs], device="cpu")
    line = next(line for line in out.getvalue().splitlines() if line.startswith("Total params"))
    return Said(None, int(line.rpartition(":")[2].replace(",", "")))


def torchstat(subject: Subject) -> Said:
    """torchstat: one picture of floats through a module of known layers."""
    from torchstat import ModelStat  # noqa: PLC0415

    module, inputs = subject.positional()
    collected = ModelStat(module, tuple(inputs[0].shape[1:]))._analyze_model()
    said = Said(None, None)
    kinds = {name: type(child).__name__ for name, child in subject.module.named_modules()}
    for node in collected:
        path = node.name.removeprefix("model").removeprefix(".")
        said.add(path, kinds.get(path, ""), node.Flops)
    said.total = sum(said.entries.values())
    return said


# --- tools that trace graphs --------------------------------------------------------------------------------------


def fvcore(subject: Subject) -> Said:
    """fvcore: formulas on the graph of a JIT trace; calls a multiply-add one flop."""
    from fvcore.nn import FlopCountAnalysis, parameter_count  # noqa: PLC0415

    module, inputs = subject.positional()
    analysis = FlopCountAnalysis(module, inputs).unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    with warnings.catch_warnings(), import_torch().no_grad():
        warnings.simplefilter("ignore")
        said = Said(int(analysis.total()), int(parameter_count(subject.module)[""]))
    for path, operators in own_amounts(analysis.by_module_and_operator()).items():
        for operator, amount in operators.items():
            said.add(path.removeprefix("model").removeprefix("."), operator, amount)
    return said


def own_amounts(totals: Any) -> dict[str, dict[str, float]]:
    """Amounts of each module without those of the modules inside it."""
    own = {path: dict(operators) for path, operators in totals.items()}
    for path, operators in totals.items():
        parent = path
        while parent:
            parent = parent.rpartition(".")[0]
            if parent in own:
                for operator, amount in operators.items():
                    own[parent][operator] = own[parent].get(operator, 0) - amount
                break
    return own


def torchprofile(subject: Subject) -> Said:
    """torchprofile: formulas on the graph of a JIT trace."""
    from torchprofile import profile_macs  # noqa: PLC0415

    module, inputs = subject.positional()
    with warnings.catch_warnings(), import_torch().no_grad(), _scopes(subject):
        warnings.simplefilter("ignore")
        nodes = profile_macs(module, inputs, reduction=None)
    said = Said(int(sum(nodes.values())), None)
    for node, amount in nodes.items():
        path = node.scope.rpartition("/")[2]
        operator = node.operator.partition("::")[2] + ("" if node.outputs[0].shape else SINGLE)
        said.add("" if path == _ROOT else path, operator, amount)
    return said


_ROOT = "(root)"


@contextlib.contextmanager
def _scopes(subject: Subject) -> Iterator[None]:
    """The nodes of a graph that is traced inside know the module they come from."""
    torch = import_torch()
    handles = []

    def enter(module: Any, _args: Any) -> None:
        state = torch._C._get_tracing_state()
        if state:
            state.push_scope(subject.names.get(id(module)) or _ROOT)

    def leave(_module: Any, _args: Any, _out: Any) -> None:
        state = torch._C._get_tracing_state()
        if state:
            state.pop_scope()

    for child in subject.module.modules():
        handles.append(child.register_forward_pre_hook(enter))
        handles.append(child.register_forward_hook(leave))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


BOOKS: dict[str, Callable[[Subject], Said]] = {
    "flop_counter_mode": flop_counter_mode,
    "calflops": calflops,
    "deepspeed": deepspeed,
    "ptflops": ptflops_pytorch,
    "ptflops-aten": ptflops_aten,
    "thop": thop,
    "fvcore": fvcore,
    "torchinfo": torchinfo,
    "torchprofile": torchprofile,
    "torchsummary": torchsummary,
    "torchstat": torchstat,
}
