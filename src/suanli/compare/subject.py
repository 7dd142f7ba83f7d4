"""The model a counter is run on: built here, in the process of the counter, from a description that JSON can hold.

No weights are read. A config that names code of its own is refused, as everywhere.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suanli.compare.layers import module_of
from suanli.errors import Fault, InputError
from suanli.readers.torch_module import hf_meta, load_factory
from suanli.readers.torch_module.load import copied, import_torch, looks_meta, moved_inputs, read_inputs, shorten


@dataclass
class Subject:
    """A module in evaluation mode on a device, and what it is called with."""

    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    device: str
    main_input: int = 0
    names: dict[int, str] = field(default_factory=dict)  # id of a module -> its path

    def run(self) -> Any:
        """One forward pass without gradients."""
        torch = import_torch()
        with torch.no_grad():
            return self.module(*self.args, **self.kwargs)

    def params(self) -> int:
        """Parameters, tied ones once."""
        return sum(each.numel() for each in self.module.parameters())

    def batch(self) -> int:
        """First axis of the first input, where tools look for a batch."""
        first = next(iter(tensors_of([*self.args, *self.kwargs.values()])), None)
        return int(first.shape[0]) if first is not None and first.dim() else 1

    def positional(self) -> tuple[Any, tuple[Any, ...]]:
        """The same as a module of positional tensors that gives a tuple of tensors: for tools that trace graphs."""
        return _positional(self), (*self.args, *self.kwargs.values())


def build(description: Mapping[str, Any], device: str) -> Subject:
    """The subject a description names. Raises SuanliError where it cannot be built or run."""
    maker: Callable[[Mapping[str, Any], str], Subject] = _MAKERS[description["form"]]
    subject = maker(description, device)
    subject.module.eval()
    subject.names = {id(child): name for name, child in subject.module.named_modules()}
    subject.main_input = _main_input(subject)
    return subject


def _main_input(subject: Subject) -> int:
    """Elements of the input that Hugging Face's trainer calls the main one."""
    name = getattr(subject.module, "main_input_name", None)
    given = [subject.kwargs[name]] if name in subject.kwargs else [*subject.args, *subject.kwargs.values()]
    tensor = next((each for each in given if hasattr(each, "numel")), None)
    return int(tensor.numel()) if tensor is not None else 0


# --- a config -----------------------------------------------------------------------------------------------------


def _of_config(description: Mapping[str, Any], device: str) -> Subject:
    """Transformers' own model of a config, with the first inputs that run without a value being asked for."""
    failed: Exception | None = None
    for dtype in ("bfloat16", "float32") if device == "meta" else ("float32",):
        module = hf_meta.build_model(
            description["config"], head=description.get("head"), dtype=dtype, where=description["where"]
        )
        if device != "meta":
            module = _materialised(module, device)
        for kwargs in _inputs(module, description):
            subject = Subject(module.eval(), (), moved_inputs(kwargs, device), device)
            try:
                subject.run()
            except Exception as problem:  # noqa: BLE001  the next way of asking may run; the first failure is the one told
                failed = failed or problem
                continue
            return subject
    assert failed is not None
    raise _cannot_run(failed, description["where"])


def _inputs(module: Any, description: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Inputs to try: with a mask of every pair, so that no model has to look at values to make one; then without."""
    torch = import_torch()
    plain = hf_meta.model_inputs(module, description["batch"], description.get("seq"))
    tokens = plain.get("input_ids")
    if tokens is None or "attention_mask" not in inspect.signature(module.forward).parameters:
        return [plain]
    rows, length = tokens.shape
    mask = torch.zeros(rows, 1, length, length, dtype=module.dtype, device="meta")
    return [{**plain, "attention_mask": mask}, plain]


def _materialised(module: Any, device: str) -> Any:
    """The module with memory for its weights, all zero: no count looks at a value."""
    torch = import_torch()
    made = module.to_empty(device=device)
    with torch.no_grad():
        for tensor in (*made.parameters(), *made.buffers()):
            tensor.zero_()
    return made


def _cannot_run(problem: Exception, where: str) -> InputError:
    return InputError(
        Fault(
            code="needs_values" if looks_meta(problem) else "module_failed",
            message=f"the model cannot be run: {type(problem).__name__}: {shorten(problem)}",
            where=where,
        )
    )


# --- the user's own module ----------------------------------------------------------------------------------------


def _of_factory(description: Mapping[str, Any], device: str) -> Subject:
    """`torch:package.module:factory`."""
    module, made = load_factory(description["name"])
    given = description.get("input")
    return _of_module(module, made if given is None else given, device)


def _of_expression(description: Mapping[str, Any], device: str) -> Subject:
    """A layer expression, as a chain of torch's layers."""
    torch = import_torch()
    with torch.device("meta"):
        module, inputs = module_of(description["text"], description["batch"], description["seq"])
    return _of_module(module, inputs, device)


def _of_pickle(description: Mapping[str, Any], device: str) -> Subject:
    """A live module of the parent process, written by it to a file of its own."""
    module, inputs = pickle.loads(Path(description["path"]).read_bytes())
    return _of_module(module, inputs, device)


def _of_module(module: Any, inputs: Any, device: str) -> Subject:
    args, kwargs = read_inputs(inputs, module)
    held = [*module.parameters(), *module.buffers()]
    empty = device != "meta" and any(tensor.device.type == "meta" for tensor in held)
    own = _materialised(module, device) if empty else copied(module, device)
    return Subject(own, moved_inputs(args, device), moved_inputs(kwargs, device), device)


_MAKERS: dict[str, Callable[[Mapping[str, Any], str], Subject]] = {
    "config": _of_config,
    "factory": _of_factory,
    "expression": _of_expression,
    "pickle": _of_pickle,
}


# --- tensors in, tensors out --------------------------------------------------------------------------------------


def _positional(subject: Subject) -> Any:
    torch = import_torch()
    names = list(subject.kwargs)
    count = len(subject.args)

    class Positional(torch.nn.Module):  # type: ignore[misc, name-defined]
        """The module as a function of tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.model = subject.module

        def forward(self, *tensors: Any) -> Any:
            return tuple(tensors_of(self.model(*tensors[:count], **dict(zip(names, tensors[count:], strict=True)))))

    return Positional().eval()


def tensors_of(value: Any) -> list[Any]:
    """Tensors in what a module returns; a cache is no result."""
    if hasattr(value, "layout"):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []
