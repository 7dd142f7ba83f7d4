"""Measured serving points as a CSV with the columns of the public compilation this project was fitted to.

Columns: model, hw, n_gpus, tp, ep, dp_attn, precision, framework, isl, osl, concurrency, ttft_ms, tpot_ms, out_tok_s,
energy_j_per_tok, gpu_power_w, measured, source. `derived_tok_s` is not read: it follows from the two times.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from suanli.catalog.devices import find_device
from suanli.catalog.presets import find_preset
from suanli.errors import FaultList, InputError, SuanliError, shown
from suanli.nouns.measured_serving import ServingPoint
from suanli.nouns.serving import ServingLayout
from suanli.readers import files
from suanli.units import MILLI

NEEDED = ("model", "hw", "n_gpus", "tp", "precision", "framework", "osl", "source")
ENGINES = {"vllm": "vllm", "trtllm": "tensorrt-llm", "tensorrt-llm": "tensorrt-llm", "sglang": "sglang"}
_DTYPES = {"bf16": "bf16", "bf16?": "bf16", "bfloat16": "bf16", "fp16": "fp16", "fp8": "fp8", "fp4": "nvfp4",
           "nvfp4": "nvfp4", "mxfp4": "mxfp4", "int4": "int4"}  # fmt: skip
_MXFP4 = ("gpt-oss",)  # published in MXFP4, whatever a table calls it
# One architecture under several names.
_SAME = {"deepseek-r1": "deepseek-v3", "deepseek-v3.1": "deepseek-v3", "deepseek-r1-0528": "deepseek-v3"}
_SUFFIXES = ("-instruct-fp8", "-instruct", "-fp8", "-it")
_KINDS = (("offline", "offline"), ("median itl", "chat"), ("batch run", "batch"))
_GPU_WORDS = ("nvidia ", "amd ", "intel ", " gpu")
_FORMS = {"h100": "h100-sxm", "a100": "a100-80gb-sxm"}  # what these sources ran on, where they name a family alone
MOST_FAULTS = 20


def read_serving_points(path: Path) -> tuple[ServingPoint, ...]:
    """Every row of the file. A model or GPU the catalogue does not know stays None; what is no number is a fault.

    Raises InputError listing the faults (the first twenty), UnreadableFileError for what is no table.
    """
    faults = FaultList(InputError)
    reader = csv.DictReader(io.StringIO(files.read_table_text(path)))
    missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
    if missing:
        faults.add(code="missing_columns", message=f"no column {', '.join(missing)}", where=str(path),
                   expected=", ".join(NEEDED))  # fmt: skip
        faults.raise_if_any()
    found = list(_points(reader, str(path), faults))
    faults.raise_if_any()
    return tuple(found)


def _points(reader: csv.DictReader[str], where: str, faults: FaultList) -> Iterator[ServingPoint]:
    for line, row in enumerate(reader, start=2):
        if len(faults.faults) >= MOST_FAULTS:
            return
        try:
            yield _point(row, line)
        except ValueError as problem:
            faults.add(code="bad_row", message=str(problem), where=f"{where}, line {line}")


def _point(row: Mapping[str, str], line: int) -> ServingPoint:
    engine = row["framework"].lower().split()[0]
    precision = row["precision"].strip().lower()
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {shown(row['framework'])}; known: {', '.join(sorted(set(ENGINES.values())))}")
    if precision not in _DTYPES:
        raise ValueError(f"unknown precision {shown(row['precision'])}; known: {', '.join(_DTYPES)}")
    preset = _preset(row["model"])
    layout = _layout(row)
    return ServingPoint(
        model=row["model"], preset=preset, gpu=_device(row["hw"]), gpus=int(_number(row, "n_gpus")), layout=layout,
        dtype="mxfp4" if preset and preset.startswith(_MXFP4) and precision == "fp4" else _DTYPES[precision],
        engine=ENGINES[engine], version=row["framework"],
        isl=_text_number(row, "isl"), osl=_number(row, "osl"), concurrency=_text_number(row, "concurrency"),
        ttft_s=_milli(row, "ttft_ms"), tpot_s=_milli(row, "tpot_ms"), tokens_per_s=_optional(row, "out_tok_s"),
        joules_per_token=_optional(row, "energy_j_per_tok"), power_w=_optional(row, "gpu_power_w"),
        measured=row.get("measured") or "", source=row["source"], kind=_kind(row), row=line,
    )  # fmt: skip


def _layout(row: Mapping[str, str]) -> ServingLayout:
    """A row that says tp 1 on several GPUs and has an expert degree runs its attention data-parallel."""
    tp, gpus = int(_number(row, "tp")), int(_number(row, "n_gpus"))
    groups = int(_optional(row, "dp_attn") or 1)
    experts = int(_optional(row, "ep") or 1)
    if tp * groups < gpus and experts > 1:
        groups = gpus // tp
    return ServingLayout(tp=tp, ep=experts, dp_attention=groups)


def _kind(row: Mapping[str, str]) -> str:
    notes = (row.get("notes") or "").lower()
    return next((kind for words, kind in _KINDS if words in notes), "served")


def _preset(model: str) -> str | None:
    """The preset with this model's shape, by its name without what tuning adds."""
    name = model.rsplit("/", maxsplit=1)[-1].lower()
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    name = _SAME.get(name, name)
    try:
        return find_preset(name).name
    except SuanliError:
        return None


def _device(name: str) -> str | None:
    text = name.lower().replace("_", "-")
    for word in _GPU_WORDS:
        text = text.replace(word, "")
    try:
        return find_device(_FORMS.get(text.strip(), text.strip())).short_id
    except SuanliError:
        return None


def _number(row: Mapping[str, str], column: str) -> float:
    value = _optional(row, column)
    if value is None:
        raise ValueError(f"no {column}")
    return value


def _optional(row: Mapping[str, str], column: str) -> float | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{column} is no number: {shown(text)}") from None
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{column} is not above 0: {shown(text)}")
    return value


def _text_number(row: Mapping[str, str], column: str) -> float | None:
    """A number, or None where the table has words (`max`, a data set's name)."""
    text = (row.get(column) or "").strip()
    return None if not text or not text.replace(".", "", 1).isdigit() else _optional(row, column)


def _milli(row: Mapping[str, str], column: str) -> float | None:
    value = _optional(row, column)
    return None if value is None else value * MILLI
