"""`suanli.calibrate` of kernels: the CSV of `explain --kernels-csv`, or the trace itself."""

from __future__ import annotations

import datetime
import hashlib
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from suanli.api.links import read_fabric
from suanli.api.request import Request
from suanli.catalog.devices import find_device
from suanli.errors import Fault, InputError, SuanliError
from suanli.nouns.calibrated import Origin
from suanli.nouns.hardware import Device
from suanli.nouns.profile import StackProfile
from suanli.nouns.result import Result
from suanli.nouns.trace_times import MeasuredKernels
from suanli.plan.own_kernels import calibrate_kernels
from suanli.readers import files
from suanli.readers.kernel_rows import is_kernels_text, read_kernel_rows
from suanli.readers.stack_file import is_stack_file
from suanli.units import MEBI

TABLES = (".csv", ".tsv", ".txt", "")


def holds_kernels(path: Path) -> bool:
    """Whether a file is a table of kernels or a trace, and no table of runs. A missing file is the reader's to tell."""
    if path.suffix.lower() not in TABLES:
        return path.is_file()
    try:
        return is_kernels_text(files.read_table_text(path))
    except SuanliError:
        return False


def calibrate_to_kernels(
    request: Request, path: Path, profile: StackProfile, typed: dict[str, Any], label: str
) -> Result:
    """The calibration as a Result. `typed`: gpu and fabric as given. Raises InputError, UnreadableFileError."""
    gpu, fabric = typed.get("gpu"), typed.get("fabric")
    asked = None if gpu is None else request.attempt(lambda: find_device(gpu, where="--gpu"))
    request.check()
    measured, digest = _measured(path, asked)
    device = asked or _device(measured, path)
    measured = _named(measured, device) if asked is not None else measured
    links, notes = None, []
    if measured.collectives:
        try:
            links = read_fabric(fabric, device)
            notes.append(f"links: {links.name}")
        except SuanliError as problem:
            if fabric is not None:
                raise
            notes.append(f"collectives are left out: {problem.faults[0].message}")
    books = calibrate_kernels(measured, device, links, profile, label)
    origin = _origin(path, digest, request.given.get("stack"), typed)
    source = f"{sum(each.runs for each in books.classes):,} kernels of {origin.data}, {origin.date}"
    own = replace(books.profile, sources=(*profile.sources, source), command=origin.command, date=origin.date)
    assumed = ", ".join(f"{name} {value}" for name, value in request.assumed.items())
    return Result(
        kind="calibrate",
        inputs={"file": str(path), **request.given, **{key: value for key, value in typed.items() if value is not None},
                "assumed": request.assumed},
        result=replace(books, profile=own),
        sources=(f"kernels: {origin.data}, sha256 {origin.data_sha256}",
                 *(f"stack: {each}" for each in profile.sources)),
        notes=(*((f"assumed: {assumed}",) if assumed else ()), *notes,
               "own step times tell the other numbers: suanli calibrate runs.csv --stack FILE.toml"),
        asked={"origin": origin},
    )  # fmt: skip


def _measured(path: Path, gpu: Device | None) -> tuple[MeasuredKernels, str]:
    """Kernels of a table or trace, and the SHA-256 of the file."""
    if path.suffix.lower() in TABLES:
        return read_kernel_rows(path)
    from suanli.explain.attribute import attribute  # noqa: PLC0415  readers and attribution come with a trace alone
    from suanli.explain.classify import classify  # noqa: PLC0415
    from suanli.explain.measured import measured_kernels  # noqa: PLC0415
    from suanli.readers.traces import read_trace  # noqa: PLC0415

    trace = read_trace(path)
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(MEBI):
            digest.update(block)
    return measured_kernels(trace, attribute(trace, classify(trace)), gpu), digest.hexdigest()


def _device(measured: MeasuredKernels, path: Path) -> Device:
    """The device of most rows. Raises InputError where the catalogue does not know it, or there are no rows."""
    names = Counter(row.gpu for each in (measured.products, measured.attentions, measured.collectives) for row in each)
    if not names:
        why = "; ".join(f"{reason}: {count:,}" for reason, count in measured.left_out.items())
        raise InputError(
            Fault(code="no_kernels", message="no product or collective of a known size", where=path.name,
                  got=why or "none at all", hint="Record shapes: see docs/capture.md.")
        )  # fmt: skip
    name = names.most_common(1)[0][0]
    if name.startswith("device "):
        raise InputError(
            Fault(code="missing_value", message="the file does not name the device", where=path.name,
                  expected="--gpu, like h100-sxm")
        )  # fmt: skip
    try:
        return find_device(name, where="gpu")
    except SuanliError as problem:
        raise InputError(
            *(replace(each, where=f"{path.name}, gpu", hint="Name the device with --gpu.") for each in problem.faults)
        ) from problem


def _named(measured: MeasuredKernels, device: Device) -> MeasuredKernels:
    """The same as of the device that was asked for: it stands above what the file says."""
    return replace(
        measured,
        products=tuple(replace(row, gpu=device.short_id) for row in measured.products),
        attentions=tuple(replace(row, gpu=device.short_id) for row in measured.attentions),
        collectives=tuple(replace(row, gpu=device.short_id) for row in measured.collectives),
    )


def _origin(path: Path, digest: str, stack: Any, typed: dict[str, Any]) -> Origin:
    """Where the numbers come from: the command without folders of this machine."""
    parts = ["suanli", "calibrate", path.name]
    for name, value in {"stack": stack, **typed}.items():
        if value is not None:
            parts += [f"--{name}", Path(str(value)).name if is_stack_file(value) else str(value)]
    return Origin(command=shlex.join(parts), date=datetime.date.today().isoformat(),
                  data=path.name if path.name.isprintable() else ascii(path.name), data_sha256=digest)  # fmt: skip
