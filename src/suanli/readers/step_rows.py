"""A CSV of a user's own step times, a run a row; every fault of it with its line and column.

The columns are those of `measured_runs.csv` under plainer names; each name of `COLUMNS` has its aliases. A column that
is not needed may be left out, and what it is taken to be is kept to be said.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suanli.errors import FaultList, InputError, SuanliError, nearest_names, shown
from suanli.nouns.layout import SCHEDULES, ZERO
from suanli.nouns.measured import OwnRun, OwnRuns
from suanli.nouns.workload import RECOMPUTE
from suanli.readers import files
from suanli.units import parse

MOST_ROWS, MOST_FAULTS, MOST = 10_000, 50, 10**9
_WORDS = {"sel": "selective"}
_YES, _NO = ("1", "true", "yes"), ("0", "false", "no")
_DTYPES = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
_UNKNOWN = "0 where it is not known"


@dataclass(frozen=True)
class Column:
    """A column: the names it may have, how a cell is read, what it is taken to be where it is not there."""

    aliases: tuple[str, ...]
    read: Callable[[str], Any]
    expected: str
    default: Any = None
    needed: bool = False


def _whole(low: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        found = parse(text, "count", "cell")
        if not low <= found <= MOST or not float(found).is_integer():
            raise ValueError(text)
        return int(found)

    return read


def _seconds(text: str) -> float:
    found = float(parse(text, "duration", "cell"))
    if not found > 0:
        raise ValueError(text)
    return found


def _word(*known: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        found = _WORDS.get(text.lower(), text.lower())
        if found not in known:
            raise ValueError(text)
        return found

    return read


def _flag(text: str) -> bool:
    if text.lower() not in (*_YES, *_NO):
        raise ValueError(text)
    return text.lower() in _YES


def _stage(text: str) -> int:
    if text not in map(str, ZERO):
        raise ValueError(text)
    return int(text)


_ONE_UP, _NONE_UP = "a whole number, 1 or more", "a whole number, 0 or more"
# Of one run; in each the first name is the column's own.
RUN = {
    "id": Column(("run",), str, "a name"),
    "model": Column((), str, "a preset, a config.json, or a name beside the columns of a shape"),
    "gpu": Column((), str, "a device of the catalogue, like h100-sxm"),
    "fabric": Column(("links",), str, "links as --fabric takes them, like hgx-h100"),
    "gpus": Column(("gpu_count", "n_gpus", "num_gpus"), _whole(1), _ONE_UP, needed=True),
    "tp": Column(("tensor_parallel",), _whole(1), _ONE_UP, 1),
    "pp": Column(("pipeline_parallel",), _whole(1), _ONE_UP, 1),
    "dp": Column(("data_parallel",), _whole(1), _ONE_UP),
    "cp": Column(("context_parallel",), _whole(1), _ONE_UP, 1),
    "ep": Column(("expert_parallel",), _whole(1), _ONE_UP, 1),
    "etp": Column((), _whole(1), _ONE_UP, 1),
    "vpp": Column(("interleave", "interleave(0=unpublished)"), _whole(0), f"{_NONE_UP}: {_UNKNOWN}", 1),
    "micro_batch": Column(("mbs", "micro_batch_size"), _whole(0), f"{_NONE_UP}: {_UNKNOWN}", needed=True),
    "global_batch": Column(("gbs", "gbs_seqs"), _whole(1), f"{_ONE_UP}, of sequences", needed=True),
    "seq": Column(("seq_len", "seq_length"), _whole(1), f"{_ONE_UP}, of tokens", needed=True),
    "recompute": Column((), _word(*RECOMPUTE), "none, selective or full", needed=True),
    "sp": Column(("sequence_parallel",), _flag, "0 or 1", False),
    "zero": Column(("zero_stage",), _stage, "0, 1, 2 or 3 (FSDP is 3)", needed=True),
    "schedule": Column((), _word(*SCHEDULES), "one of " + ", ".join(SCHEDULES)),
    "dtype": Column(("prec", "precision"), _word(*_DTYPES), "one of " + ", ".join(_DTYPES), "bf16"),
    "step_s": Column(
        ("step_time_s", "measured_step_s", "step_time"), _seconds, "a time like 6.72, 6.72s or 6720ms", needed=True
    ),
}  # fmt: skip
SHAPE = {
    "hidden": Column(("h", "hidden_size"), _whole(1), _ONE_UP),
    "num_layers": Column(("l", "layers"), _whole(1), _ONE_UP),
    "heads": Column(("a",), _whole(1), _ONE_UP),
    "kv_heads": Column(("kv",), _whole(1), _ONE_UP),
    "ffn": Column(("ff",), _whole(1), _ONE_UP),
    "vocab": Column(("v", "vocab_size"), _whole(1), _ONE_UP),
    "gated": Column((), _flag, "0 or 1"),
}
COLUMNS = RUN | SHAPE
IGNORED = ("source", "note", "notes", "comment", "date", "mfu", "hfu", "tflops")
DEGREES = ("tp", "pp", "dp", "cp", "ep", "etp")
_MODEL = "a column model with a preset's name, or the columns " + ", ".join(SHAPE)
_NEEDED = ", ".join(name for name, column in COLUMNS.items() if column.needed)


@dataclass
class _Sheet:
    """What is known of the table while its rows are read."""

    where: str
    faults: FaultList
    width: int = 0
    names: dict[int, str] = field(default_factory=dict)  # place → column
    heads: dict[str, str] = field(default_factory=dict)  # column → what its head says

    def fault(self, code: str, message: str, line: int, column: str = "", **parts: Any) -> None:
        """Record a fault of a line, or of a cell."""
        at = f"{self.where}, line {line}" + (f", column {self.heads.get(column, column)}" if column else "")
        self.faults.add(code=code, message=message, where=at, **parts)


def read_step_rows(path: Path) -> OwnRuns:
    """The runs of a file. Raises UnreadableFileError for what is no table, InputError listing every fault."""
    text = files.read_table_text(path)
    sheet = _Sheet(path.name, FaultList(InputError))
    lines = _lines(text, sheet)
    sheet.faults.raise_if_any()
    _header(lines[0][1], sheet)
    runs = [_run(line, cells, sheet) for line, cells in lines[1:]]
    if not runs:
        sheet.fault("empty", "no runs", 1, expected="a row for each run")
    _raise(sheet)
    assumed = {
        name: each.default for name, each in RUN.items()
        if each.default is not None and name not in sheet.names.values()
    }  # fmt: skip
    digest = hashlib.sha256(text.encode()).hexdigest()
    return OwnRuns(runs=tuple(run for run in runs if run is not None), assumed=assumed, sha256=digest)


def _raise(sheet: _Sheet) -> None:
    """All faults, or the first of very many."""
    found = sheet.faults.faults
    if len(found) > MOST_FAULTS:
        more = len(found) - MOST_FAULTS
        del found[MOST_FAULTS:]
        sheet.faults.add(code="more_faults", message=f"and {more:,} faults more", where=sheet.where)
    sheet.faults.raise_if_any()


def _lines(text: str, sheet: _Sheet) -> list[tuple[int, list[str]]]:
    """Rows that are not empty, each with the line it ends on."""
    reader = csv.reader(io.StringIO(text), strict=True)
    found: list[tuple[int, list[str]]] = []
    try:
        found.extend(
            (reader.line_num, [cell.strip() for cell in cells]) for cells in reader if any(map(str.strip, cells))
        )
    except csv.Error as problem:
        sheet.fault("not_csv", "not a CSV table", reader.line_num, got=str(problem),
                    expected=f"a header and rows; needed: {_NEEDED}")  # fmt: skip
    if len(found) > MOST_ROWS + 1:
        sheet.fault("too_large", "too many rows", MOST_ROWS + 2, got=f"{len(found) - 1:,}",
                    expected=f"at most {MOST_ROWS:,}")  # fmt: skip
    return found


def _header(cells: Sequence[str], sheet: _Sheet) -> None:
    """Which column stands where. Faults for unknown, doubled and missing ones."""
    known = {alias: name for name, column in COLUMNS.items() for alias in (name, *column.aliases)}
    places: dict[str, int] = {}
    for place, cell in enumerate(cells):
        name = known.get(cell.lower())
        if name is None and cell.lower() not in IGNORED:
            sheet.fault("unknown_column", f"unknown column {shown(cell)}", 1, expected="one of " + ", ".join(COLUMNS),
                        nearest=nearest_names(cell, known))  # fmt: skip
        elif name in places:
            sheet.fault("column_twice", f"the column {name} is there twice", 1, got=f"{cells[places[name]]} and {cell}")
        elif name is not None:
            places[name] = place
    for name, column in COLUMNS.items():
        if column.needed and name not in places:
            sheet.fault("missing_column", f"no column {name}", 1, expected=f"{name}: {column.expected}")
    if "model" not in places and not any(name in places for name in SHAPE):
        sheet.fault("missing_column", "no column that tells the model", 1, expected=_MODEL)
    sheet.width, sheet.names = len(cells), {place: name for name, place in places.items()}
    sheet.heads = {name: cells[place] for name, place in places.items()}


def _run(line: int, cells: Sequence[str], sheet: _Sheet) -> OwnRun | None:
    """A row; None where something of it is a fault."""
    before = len(sheet.faults.faults)
    if any(cells[sheet.width :]):
        sheet.fault("not_csv", "a row has more cells than there are columns", line)
    found = {
        name: _cell(name, cells[place] if place < len(cells) else "", line, sheet)
        for place, name in sheet.names.items()
    }
    given = {name: value for name, value in found.items() if value is not None}
    values = {name: given.get(name, each.default) for name, each in RUN.items()}
    shape = _shape(given, values["model"], line, sheet)
    lacks = any(column.needed and name not in sheet.heads for name, column in COLUMNS.items())
    if lacks or len(sheet.faults.faults) > before:
        return None  # a column that is not there was told of the header
    degrees = {name: values.pop(name) for name in DEGREES}
    degrees["dp"] = _replicas(values["gpus"], degrees, line, sheet)
    if len(sheet.faults.faults) > before:
        return None
    values |= {name: values[name] or None for name in ("vpp", "micro_batch")}  # 0 is not known
    return OwnRun(line=line, shape=shape, degrees=degrees, **{**values, "id": values["id"] or f"line {line}"})


def _shape(given: Mapping[str, Any], model: str | None, line: int, sheet: _Sheet) -> dict[str, Any] | None:
    """The shape of a row's model, None where a preset names it; a fault where there is neither, or a part of one."""
    found = {name: given[name] for name in SHAPE if name in given}
    if not found:
        if model is None and any(name in sheet.names.values() for name in ("model", *SHAPE)):
            sheet.fault("missing_value", "no model", line, expected=_MODEL)
        return None
    lacking = [name for name in SHAPE if name not in found and name != "kv_heads"]
    if lacking:
        sheet.fault("missing_value", "a shape is not whole", line, expected="values for " + ", ".join(lacking))
    return {"kv_heads": found.get("heads")} | found


def _cell(name: str, cell: str, line: int, sheet: _Sheet) -> Any:
    column = COLUMNS[name]
    if not cell:
        if column.needed:
            sheet.fault("missing_value", f"{name} is not given", line, name, expected=column.expected)
        return None
    try:
        return column.read(cell)
    except (SuanliError, ValueError):
        sheet.fault(f"bad_{name}", f"{name} cannot be that", line, name, got=shown(cell), expected=column.expected)
    return None


def _replicas(gpus: int, degrees: Mapping[str, Any], line: int, sheet: _Sheet) -> int:
    """dp: as given where the degrees multiply up to the GPUs, else what is left of them."""
    left, rest = divmod(gpus, degrees["tp"] * degrees["pp"] * degrees["cp"])
    if rest or (degrees["dp"] is not None and degrees["dp"] != left):
        got = " · ".join(f"{name} {degrees[name]}" for name in ("tp", "pp", "cp", "dp") if degrees[name] is not None)
        sheet.fault("contradiction", "the degrees do not multiply up to the GPUs", line, got=f"{got} on {gpus:,} GPUs",
                    expected="tp · pp · cp · dp = gpus")  # fmt: skip
    return max(int(left), 1)
