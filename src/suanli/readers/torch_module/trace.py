"""Run a module once and give its books: `trace(module, inputs)`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from suanli.errors import Fault, InputError, SuanliError, shown
from suanli.readers import bounded
from suanli.readers.torch_module import repeats
from suanli.readers.torch_module.books import Traced, books
from suanli.readers.torch_module.guard import put_back
from suanli.readers.torch_module.load import copied, import_torch, looks_meta, moved_inputs, read_inputs, shorten
from suanli.readers.torch_module.memory import too_large
from suanli.readers.torch_module.modes import counting, warm_up
from suanli.readers.torch_module.recorder import Answers, Limits, Recorder
from suanli.readers.torch_module.saved import keeping
from suanli.readers.torch_module.whole_numbers import whole_numbers
from suanli.units import GIBI

__all__ = ["Options", "Run", "trace"]

DEVICES = ("auto", "meta", "cpu")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a module is traced."""

    train: bool = field(default=False, metadata={"doc": "run the backward pass too"})
    mode: str | None = field(default=None, metadata={"doc": "train or eval; that of the pass where not given"})
    device: str = field(default="auto", metadata={"doc": "meta, cpu, or auto: meta and, if values are needed, cpu"})
    whole: bool = field(default=False, metadata={"doc": "run every layer, not one and two of each kind"})
    flash: bool = field(default=False, metadata={"doc": "hardware FLOPs of a fused attention backward: 5 products"})
    no_padding: bool = field(default=False, metadata={"doc": "answer `all` with yes and `any` with no on meta"})
    values: bool = field(default=False, metadata={"doc": "on meta, keep and compute the values of whole numbers"})
    time_limit: float = field(default_factory=bounded.time_limit, metadata={"unit": "s", "doc": "longest run"})
    memory_limit: int = field(default=4 * GIBI, metadata={"unit": "bytes", "doc": "largest memory off the meta device"})


@dataclass
class Run:
    """What one run wrote down."""

    recorder: Recorder
    kept: dict[str, int]


def trace(
    module: Any, inputs: Any = None, *, train: bool = False, mode: str | None = None, device: str = "auto",
    whole: bool = True, flash: bool = False, time_limit: float | None = None, memory_limit: int = 4 * GIBI,
) -> Traced:  # fmt: skip
    """Count a torch module by running a copy of it once on `inputs` (tensors, a shape text, or keyword inputs).

    Rows hold FLOPs, bytes and calls by module, operator and pass; what has no formula is in `uncounted`.
    Without `whole`, layers that look equal run once and twice: quicker; right where a layer's number changes nothing.
    Raises InputError where the module fails (naming where), runs too long, or needs values the meta device lacks.
    """
    options = Options(
        train=train, mode=mode, device=device, whole=whole, flash=flash,
        time_limit=bounded.time_limit() if time_limit is None else time_limit, memory_limit=memory_limit,
    )  # fmt: skip
    import_torch()
    _check(options)
    with put_back() as left:
        found = _on_a_device(module, *read_inputs(inputs, module), options)
    return replace(found, notes=(*found.notes, *left.notes))


def _on_a_device(module: Any, args: Any, kwargs: Any, options: Options) -> Traced:
    """On the device asked for; where that is left open on meta, or the CPU for a module that looks at values."""
    if options.device != "auto":
        return _traced(module, args, kwargs, options)
    try:
        return _traced(module, args, kwargs, replace(options, device="meta"))
    except ModuleError as problem:
        if not problem.needs_values or not _fits(module, options):
            raise
    found = _traced(module, args, kwargs, replace(options, device="cpu"))
    note = "the module looks at values: traced on the CPU with its own weights and the inputs given"
    return replace(found, notes=(*found.notes, note))


class ModuleError(InputError):
    """The module's own code failed. `needs_values` where it asked for values the meta device has not."""

    needs_values = False


def _check(options: Options) -> None:
    for name, allowed in (("device", DEVICES), ("mode", (None, "train", "eval"))):
        value = getattr(options, name)
        if value not in allowed:
            expected = "one of " + ", ".join(str(each) for each in allowed if each)
            raise InputError(
                Fault(code=f"unknown_{name}", message=f"unknown {name} {shown(value)}", where=name, expected=expected)
            )


def _fits(module: Any, options: Options) -> bool:
    """Whether the module has values of its own, few enough to copy."""
    held = [*module.parameters(), *module.buffers()]
    real = all(tensor.device.type == "cpu" for tensor in held)
    return real and sum(tensor.numel() * tensor.element_size() for tensor in held) <= options.memory_limit


def _traced(module: Any, args: Any, kwargs: Any, options: Options) -> Traced:
    """One device: a copy of the module in the mode of the pass, its inputs there, a run, its books."""
    if options.device == "cpu":
        _refuse_large(module, options)
    model = copied(module, options.device)
    model.train({"train": True, "eval": False, None: options.train}[options.mode])
    try:
        here = moved_inputs(args, options.device), moved_inputs(kwargs, options.device)
    except (NotImplementedError, RuntimeError) as problem:  # kinds of tensors that the device has not
        raise _failed(problem, "", "the inputs", options.device) from problem
    return trace_copy(model, *here, options)


def trace_copy(model: Any, args: Any, kwargs: Any, options: Options) -> Traced:
    """Trace a module that is ours to run: equal layers once and twice, unless that does not hold or is not wanted."""
    names = {id(child): name for name, child in model.named_modules()}
    stacks = repeats.find_stacks(model, options.train)
    if stacks and not options.whole and options.device == "meta":  # values may send different rows through equal layers
        found = repeats.run_repeated(stacks, lambda: run(model, args, kwargs, options, names))
        if found is not None:
            return books(model, found, stacks, (args, kwargs), options.train)
    done = run(model, args, kwargs, options, names)
    labels = {path: label for stack in stacks for path, label in stack.labels().items()}
    return books(model, repeats.merge_labels(done, labels), stacks, (args, kwargs), options.train)


def _refuse_large(module: Any, options: Options) -> None:
    held = sum(tensor.numel() * tensor.element_size() for tensor in (*module.parameters(), *module.buffers()))
    if held > options.memory_limit:
        raise too_large(held, options.memory_limit, "")


def run(model: Any, args: Any, kwargs: Any, options: Options, names: dict[int, str]) -> Run:
    """One forward, and backward where asked. Raises ModuleError naming the module that failed."""
    torch = import_torch()
    real = None if options.device == "meta" else options.memory_limit
    warm_up()
    recorder = Recorder(names, Limits(options.time_limit, real))
    recorder.answers = Answers() if options.no_padding else None
    try:
        with (
            torch.inference_mode(False),
            torch.set_grad_enabled(options.train),
            whole_numbers() if options.values else nullcontext(),
            counting(recorder, options.flash),
        ):
            with keeping(recorder, model) if options.train else nullcontext() as kept:
                out = model(*args, **kwargs)
            if options.train:
                _backward(out, recorder, model)
    except SuanliError:
        raise
    except BaseException as problem:  # sys.exit among them: it is not our command that ends
        if bounded.is_interruption(problem):
            raise
        path = recorder.failed_at if recorder.failed_at is not None else recorder.path
        raise _failed(problem, path, type(model).__name__, options.device) from problem
    finally:
        model.zero_grad(set_to_none=True)
    return Run(recorder, kept.bytes if kept else {})


def _backward(out: Any, recorder: Recorder, model: Any) -> None:
    """Gradients of every differentiable result, each given a whole gradient as a loss would give it."""
    torch = import_torch()
    parts = [tensor for tensor in _results(out, set()) if tensor.requires_grad]
    if not parts:
        raise InputError(
            Fault(
                code="nothing_to_train",
                message="no result needs a gradient, so there is no backward pass to count",
                where=type(model).__name__,
                hint="Set requires_grad on parameters or inputs, or count the forward pass.",
            )
        )
    with recorder.silence():
        given = [torch.ones_like(part, memory_format=torch.contiguous_format) for part in parts]
    recorder.in_step_backward = True
    torch.autograd.backward(parts, given)


def _results(value: Any, seen: set[int]) -> Any:
    """Floating tensors in what a module returns, each once."""
    if hasattr(value, "layout"):
        if id(value) not in seen and (value.dtype.is_floating_point or value.dtype.is_complex):
            seen.add(id(value))
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _results(item, seen)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _results(item, seen)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _results(getattr(value, name, None), seen)


def _failed(problem: BaseException, path: str, name: str, device: str) -> ModuleError:
    """The module's error as ours: where it was, what it said, what to do."""
    values = device == "meta" and looks_meta(problem)
    hint = (
        "The module looks at values (a branch, .item(), nonzero), and the meta device has only shapes. Give a module "
        "with real weights and device='cpu', or make its shapes independent of values (for a Hugging Face model: "
        "grouped experts, a 4-D mask)."
        if values
        else "The trace ran the module with the inputs given; run module(*inputs) yourself to see the whole error."
    )
    error = ModuleError(
        Fault(
            code="needs_values" if values else "module_failed",
            message=f"{type(problem).__name__}: {shorten(problem)}",
            where=f"module {path or '(root)'} of {name}",
            hint=hint,
        )
    )
    error.needs_values = values
    return error
