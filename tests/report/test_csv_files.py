"""Results as CSV: raw numbers with their unit in the head, the JSON's keys, a table for every list."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

import suanli
from suanli.nouns.result import Result
from suanli.report.csv_files import as_csv
from suanli.report.files import WRITERS


def doc(unit: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": "x", **more})


@dataclass(frozen=True)
class Part:
    name: str = doc("")
    step_s: float = doc("s")


@dataclass(frozen=True)
class Row:
    gpus: int = doc("GPUs")
    parts: tuple[Part, ...] = doc("")
    memory: dict[str, int] = doc("bytes")
    words: tuple[str, ...] = doc("")


@dataclass(frozen=True)
class Made:
    model: str = doc("")
    flops: int = doc("FLOPs")
    mfu: float | None = doc("fraction")
    fits: bool = doc("")
    best: Part = doc("")
    bytes_: dict[str, int] = doc("bytes")
    rows: tuple[Row, ...] = doc("")
    by_name: dict[str, Part] = doc("")
    warnings: tuple[str, ...] = doc("")
    nothing: tuple[Part, ...] = doc("")
    inner: str = doc("", hidden=True)


ROWS = (
    Row(8, (Part("a", 0.5), Part("b", 1e-7)), {"weights": 10}, ("x", "y")),
    Row(16, (), {"weights": 5, "states": 7}, ()),
)
MADE = Made(
    model="gpt, 9", flops=10**24, mfu=None, fits=True, best=Part("c", 2.0), bytes_={"weights": 3}, rows=ROWS,
    by_name={"palm": Part("d", 1.5)}, warnings=("one", "two"), nothing=(), inner="not shown",
)  # fmt: skip
TEXT = """\
quantity,value,unit
model,"gpt, 9",
flops,1000000000000000000000000,FLOPs
mfu,,fraction
fits,true,
best.name,c,
best.step_s,2.0,s
bytes.weights,3,bytes
warnings[1],one,
warnings[2],two,

rows[].gpus [GPUs],rows[].memory.weights [bytes],rows[].words,rows[].memory.states [bytes]
8,10,"[""x"", ""y""]",
16,5,,7

rows[] (place),rows[].parts[].name,rows[].parts[].step_s [s]
1,a,0.5
1,b,1e-07

by_name{} (name),by_name{}.name,by_name{}.step_s [s]
palm,d,1.5
"""


def test_the_whole_file() -> None:
    assert as_csv(Result(kind="count", inputs={}, result=MADE)) == TEXT


def tables(result: Any) -> list[list[dict[str, str]]]:
    return [list(csv.DictReader(io.StringIO(part))) for part in as_csv(result).split("\n\n")]


def test_numbers_are_the_json_s() -> None:
    result = suanli.scale(points="3072:23.66,12288:6.34", metric="time", global_batch=6144, project="16384")
    sizes = next(table for table in tables(result) if "sizes[].gpus [GPUs]" in table[0])
    told = json.loads(result.to_json())["result"]["sizes"]
    assert [int(row["sizes[].gpus [GPUs]"]) for row in sizes] == [row["gpus"] for row in told] == [3072, 12288]
    assert [float(row["sizes[].ratio [fraction]"]) for row in sizes] == [row["ratio"] for row in told]
    assert [float(row["sizes[].value [s]"]) for row in sizes] == [23.66, 6.34]  # the unit of the figure compared


def test_units_of_goodput_and_of_a_count() -> None:
    found = suanli.goodput(gpus=16384, failures="llama-3-405b", restart="10min", checkpoint_save="60s")
    values = {row["quantity"]: (row["value"], row["unit"]) for row in tables(found)[0]}
    assert values["mtti_s"] == (repr(found.mtti_s), "s") and values["goodput"] == (
        repr(found.result.goodput),
        "fraction",
    )
    books = {row["quantity"]: (row["value"], row["unit"]) for row in tables(suanli.count("gpt2"))[0]}
    assert books["params.total"] == ("124439808", "parameters") and books["flops.forward"][1] == "FLOPs"
    rows = tables(suanli.count("gpt2"))[1]
    assert sum(int(row["rows[].params [parameters]"]) * int(row["rows[].times"]) for row in rows) >= 124439808


def test_a_mapping_of_records_names_them_in_a_column_of_its_own() -> None:
    found = suanli.mfu("llama-3-8b", gpu="h100-sxm", seq=8192, tokens_per_second=8000)
    views = next(table for table in tables(found) if "by_convention{} (name)" in table[0])
    assert {row["by_convention{} (name)"]: float(row["by_convention{}.mfu [fraction]"]) for row in views} == {
        name: view.mfu for name, view in found.by_convention.items()
    }


@pytest.mark.parametrize(
    "result",
    [lambda: suanli.gpus("h100-sxm"), lambda: suanli.models("gpt2"), lambda: suanli.why("gpt_model_flops"),
     lambda: suanli.verify("articles"), lambda: suanli.count("gpt2", symbolic=True)],
    ids=["gpus", "models", "why", "verify", "symbolic"],
)  # fmt: skip
def test_no_cell_is_a_display_of_a_number(result: Any) -> None:
    """No bars, no separators of thousands in what is a number, and one head for every cell."""
    for table in tables(result()):
        for row in table:
            assert None not in row and None not in row.values()
            assert "█" not in "".join(row.values())


def test_csv_is_among_the_writers() -> None:
    assert WRITERS[".csv"] is as_csv
