"""What requests have in common: reading the model, the convention, the device, the workload."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from suanli.api.request import Request, read_image
from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.errors import Fault, SuanliError, unknown_name
from suanli.measure import RECOMPUTE_CHOICES
from suanli.nouns.arch import Arch
from suanli.nouns.convention import Convention
from suanli.nouns.hardware import DTYPES, Device
from suanli.nouns.layers import Conv
from suanli.nouns.profile import StackProfile
from suanli.nouns.workload import Workload, option
from suanli.readers.model import read_model

DEFAULT_SEQ = 2048


def as_text(value: Any) -> str | None:
    """A bare number takes the unit that the option's name says."""
    return None if value is None else str(value)


def read_model_of(request: Request, model: Any, image: Any = None, frames: Any = None) -> Arch | None:
    """The model, for another picture size or length of clip where one is given."""
    size = request.attempt(lambda: read_image(image))
    if image is not None:
        request.given["image"] = image
    length = request.whole("frames", frames, low=1)
    return request.attempt(lambda: read_model(model, size, frames=length))


def read_convention(request: Request, name: str | None) -> Convention | None:
    """The convention, `causal` unless given."""
    return request.attempt(lambda: find_convention(request.word("convention", name, DEFAULT)))


def read_device(request: Request, gpu: str | None) -> Device | None:
    """The device of the catalogue, None where none is named."""
    from suanli.catalog.devices import find_device  # noqa: PLC0415  the table is read only when asked for

    if gpu is None:
        return None
    request.given["gpu"] = gpu
    return request.attempt(lambda: find_device(gpu))


def read_stack(request: Request, stack: Any, default: str) -> StackProfile | None:
    """The profile of a stack that ships, or of a file that `calibrate` wrote (a path, or a text ending in .toml)."""
    from suanli.catalog.profiles import find_profile  # noqa: PLC0415  read only when asked for
    from suanli.readers.stack_file import is_stack_file, read_stack_file  # noqa: PLC0415

    if not is_stack_file(stack):
        return request.attempt(lambda: find_profile(request.word("stack", stack, default)))
    request.given["stack"] = str(stack)
    return request.attempt(lambda: read_stack_file(Path(str(stack).strip()).expanduser()))


def read_recompute(request: Request, policy: str | None) -> str:
    """The recompute policy, a printed equation among them."""
    word = request.word("recompute", policy, "none")
    if word not in RECOMPUTE_CHOICES:
        hint = "Policies: " + ", ".join(RECOMPUTE_CHOICES) + "."
        error = unknown_name("recompute policy", word, RECOMPUTE_CHOICES, where="--recompute", hint=hint)
        request.errors.append(error)
    return word


# torch's names
DTYPE_NAMES = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32", "float64": "fp64",
    "double": "fp64", "float8": "fp8",
}  # fmt: skip
WORKLOAD_DEFAULTS: dict[str, Any] = {
    "batch": 1,
    "phase": "forward",
    "dtype": "bf16",
    "optimizer": "adamw",
    "recompute": "none",
}
LENGTHS = ("batch", "kv_len")


def read_workload(
    request: Request,
    arch: Arch | None,
    typed: Mapping[str, Any],
    fixed: Mapping[str, Any] | None = None,
    *,
    called: Mapping[str, str] | None = None,
) -> Workload | None:
    """The workload: `typed` holds the options a verb offers (None where not given), `fixed` what the verb sets.
    `called` says which option of the verb gives a field, where that is not the field's own name.

    What was not given is remembered as assumed.
    """
    values: dict[str, Any] = {"seq": _seq(request, arch, typed.get("seq"))}
    for name, value in typed.items():
        default = WORKLOAD_DEFAULTS.get(name)
        if name == "seq" or (value is None and default is None):
            continue
        values[name] = request.whole(name, value, default) if name in LENGTHS else request.word(name, value, default)
        values[name] = DTYPE_NAMES.get(values[name], values[name]) if name.endswith("dtype") else values[name]
    values |= fixed or {}
    # a None is a fault already recorded; 1 stands in so that the other fields are still checked
    sound: dict[str, Any] = {name: 1 if value is None else value for name, value in values.items()}
    return request.attempt(lambda: _workload(sound, called or {}))


def _workload(values: Mapping[str, Any], called: Mapping[str, str]) -> Workload:
    """The workload; its faults name the options that were typed."""
    try:
        return Workload(**values)
    except SuanliError as problem:
        words = {option(name): (name, given) for name, given in called.items()}
        raise type(problem)(*(_renamed(fault, *words[fault.where]) if fault.where in words else fault
                              for fault in problem.faults)) from None  # fmt: skip


def _renamed(fault: Fault, name: str, given: str) -> Fault:
    words = given.replace("_", " ")
    return replace(fault, where=option(given), message=fault.message.replace(f"{name} is", f"{words} is"))


def _seq(request: Request, arch: Arch | None, seq: Any) -> int | None:
    """Positions of a sequence: as given, else the default where the model has positions to choose."""
    default = min(DEFAULT_SEQ, arch.max_positions or DEFAULT_SEQ) if arch else DEFAULT_SEQ
    if seq is None and arch is not None and not chooses_positions(arch):
        return default
    return request.whole("seq", seq, default)


def chooses_positions(arch: Arch) -> bool:
    """Whether the length of a sequence is the user's to say: a picture's positions are not."""
    return any(stream.length is None for stream in arch.streams)


def assumed_line(request: Request) -> tuple[str, ...]:
    """What was assumed, as a line."""
    if not request.assumed:
        return ()
    parts = (f"{name.replace('_', ' ')} {value:,}" if isinstance(value, int) else f"{name} {value}"
             for name, value in request.assumed.items())  # fmt: skip
    return ("assumed: " + ", ".join(parts),)


def length_notes(arch: Arch, workload: Workload, seq: Any) -> tuple[str, ...]:
    """What is odd about the length asked for."""
    longest = arch.max_positions
    if seq is not None and not chooses_positions(arch):
        return (f"--seq changes nothing: the positions of {arch.name} are fixed by its input",)
    if longest is None or workload.seq <= longest or not chooses_positions(arch):
        return ()
    return (f"seq {workload.seq:,} is past the model's {longest:,} positions; the arithmetic holds, the model may not",)


def sweep_notes(arch: Arch, sweep: tuple[str, Any] | None) -> tuple[str, ...]:
    """That a sweep of lengths goes past the model's positions."""
    longest = arch.max_positions
    if sweep is None or sweep[0] not in ("seq", "kv_len") or longest is None or max(sweep[1]) <= longest:
        return ()
    past = min(value for value in sweep[1] if value > longest)
    return (
        f"the sweep is past the model's {longest:,} positions from {sweep[0].replace('_', ' ')} {past:,} on; the "
        "arithmetic holds, the model may not",
    )


def idle_notes(
    arch: Arch, workload: Workload, *, image: Any, kv_len: Any, kv_dtype: Any, frames: Any = None
) -> tuple[str, ...]:
    """Options that were given and change nothing for this model and phase."""
    notes = []
    pictured = "latent_height" in arch.extra or any(isinstance(placed.layer, Conv) for placed in arch.leaves())
    if image is not None and not pictured:
        notes.append(f"--image changes nothing: {arch.name} takes no picture")
    if frames is not None and "latent_frames" not in arch.extra:
        notes.append(f"--frames changes nothing: {arch.name} makes no clip")
    if kv_len is not None and workload.phase != "decode":
        notes.append("--kv-len changes nothing but in --phase decode")
    if kv_dtype is not None and not arch.decodes:
        notes.append(f"--kv-dtype changes nothing: {arch.name} keeps no KV cache")
    return tuple(notes)


def read_dtype(request: Request, dtype: str | None) -> str:
    """A dtype that a peak may be of; torch's names are understood."""
    word = request.word("dtype", dtype, "bf16")
    word = DTYPE_NAMES.get(word, word)
    if word not in DTYPES:
        hint = "Dtypes: " + ", ".join(DTYPES) + "."
        request.errors.append(unknown_name("dtype", word, DTYPES, where="--dtype", hint=hint))
    return word


def as_asked(model: Any) -> Any:
    """The model as it was asked for, in a form JSON can hold."""
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    return dict(model) if isinstance(model, Mapping) else getattr(model, "name", type(model).__name__)
