"""Own step times in a CSV: names and aliases of columns, what a cell may be, every fault with its line and column."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from suanli.catalog.measured import FILE
from suanli.errors import InputError, UnreadableFileError
from suanli.nouns.measured import OwnRuns
from suanli.readers.step_rows import COLUMNS, IGNORED, MOST_FAULTS, read_step_rows

HEAD = "id,model,gpu,gpus,tp,pp,global_batch,micro_batch,seq,zero,recompute,sp,step_s"
ROW = "a,llama-3.1-8b,h100-sxm,8,2,1,64,1,8192,1,none,1,8.9"


def read(tmp_path: Path, *lines: str) -> OwnRuns:
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_step_rows(path)


def faults(tmp_path: Path, *lines: str) -> list[str]:
    with pytest.raises(InputError) as problem:
        read(tmp_path, *lines)
    return str(problem.value).splitlines()


def test_a_row_in_base_units(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD, ROW)
    (run,) = found.runs
    assert (run.line, run.id, run.model, run.shape, run.gpu) == (2, "a", "llama-3.1-8b", None, "h100-sxm")
    assert run.degrees == {"tp": 2, "pp": 1, "dp": 4, "cp": 1, "ep": 1, "etp": 1}  # dp: 8 / (2 · 1 · 1)
    assert (run.gpus, run.global_batch, run.micro_batch, run.seq, run.zero) == (8, 64, 1, 8192, 1)
    assert (run.recompute, run.sp, run.dtype, run.step_s, run.vpp, run.schedule) == ("none", True, "bf16", 8.9, 1, None)
    assert found.assumed == {"cp": 1, "ep": 1, "etp": 1, "vpp": 1, "dtype": "bf16"}
    assert found.sha256 == hashlib.sha256((HEAD + "\n" + ROW + "\n").encode()).hexdigest()


# a cell of step_s → seconds
TIMES = [("8.9", 8.9), ("8.9s", 8.9), ("8900ms", 8.9), ("2min", 120.0), ("1,200", 1200.0)]


@pytest.mark.parametrize(("cell", "expected"), TIMES)
def test_times_with_and_without_units(tmp_path: Path, cell: str, expected: float) -> None:
    assert read(tmp_path, HEAD, ROW.replace("8.9", f'"{cell}"')).runs[0].step_s == expected


# column → a cell of it and what it is read as
CELLS = [
    ("sp", "yes", "sp", True), ("sp", "FALSE", "sp", False), ("recompute", "sel", "recompute", "selective"),
    ("recompute", "Full", "recompute", "full"), ("zero", "3", "zero", 3), ("micro_batch", "0", "micro_batch", None),
    ("gpus", "1Ki", "gpus", 1024), ("seq", "8Ki", "seq", 8192),
]  # fmt: skip


@pytest.mark.parametrize(("column", "cell", "name", "expected"), CELLS)
def test_cells(tmp_path: Path, column: str, cell: str, name: str, expected: object) -> None:
    cells = ROW.split(",")
    cells[HEAD.split(",").index(column)] = cell
    assert getattr(read(tmp_path, HEAD, ",".join(cells)).runs[0], name) == expected


@pytest.mark.parametrize("alias", [alias for column in COLUMNS.values() for alias in column.aliases])
def test_every_alias_is_its_column(tmp_path: Path, alias: str) -> None:
    name = next(name for name, column in COLUMNS.items() if alias in column.aliases)
    assert alias not in COLUMNS and alias not in IGNORED
    if name in HEAD.split(","):
        head = ",".join(alias if each == name else each for each in HEAD.split(","))
        assert (
            read(tmp_path, head.upper(), ROW).runs == read(tmp_path, head, ROW).runs == read(tmp_path, HEAD, ROW).runs
        )


def test_a_shape_in_place_of_a_preset(tmp_path: Path) -> None:
    """The columns of measured_runs.csv, under their own short names; what is no figure of ours is passed over."""
    head = "model,gpu,gpus,tp,pp,dp,interleave(0=unpublished),gbs,mbs,seq,h,l,a,kv,ff,V,gated,recompute,zero,prec,"
    row = "22B,A100-80GB,8,8,1,1,0,4,4,2048,6144,48,64,64,24576,51200,0,full,0,bf16,1.42,41.5,a note"
    (run,) = read(tmp_path, head + "measured_step_s,mfu,note", row).runs
    assert run.shape == {"hidden": 6144, "num_layers": 48, "heads": 64, "kv_heads": 64, "ffn": 24576, "vocab": 51200,
                         "gated": False}  # fmt: skip
    assert (run.model, run.vpp, run.step_s, run.id) == ("22B", None, 1.42, "line 2")


def test_key_and_value_heads_are_the_heads_where_not_given(tmp_path: Path) -> None:
    head = "gpus,gbs,mbs,seq,hidden,layers,heads,ffn,vocab,gated,recompute,zero,step_s"
    (run,) = read(tmp_path, head, "8,8,1,2048,64,2,4,256,512,1,none,0,1").runs
    assert run.shape is not None and run.shape["kv_heads"] == 4 and run.model is None


def test_the_package_s_own_rows_can_be_read(tmp_path: Path) -> None:
    from importlib import resources

    text = resources.files("suanli.catalog").joinpath(FILE).read_text(encoding="utf-8")
    found = read(tmp_path, *text.splitlines())
    assert len(found.runs) == len(text.splitlines()) - 1 and found.runs[0].id == "22B-full"


def test_empty_lines_and_spaces_are_nothing(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD, "", " , ,", ROW.replace(",", " , "))
    assert [run.line for run in found.runs] == [4] and found.runs[0].model == "llama-3.1-8b"


# --- faults -------------------------------------------------------------------------------------------------------


def test_every_fault_of_every_row_at_once(tmp_path: Path) -> None:
    bad = "b,llama-3.1-8b,h100-sxm,9,2,1,,x,8192,5,nne,2,8.9kg"
    odd = "c,llama-3.1-8b,h100-sxm,9,2,1,64,1,8192,1,none,1,0"
    none = "d,,h100-sxm,8,2,1,64,1,8192,1,none,1,9,more"
    assert faults(tmp_path, HEAD, bad, odd, none, ROW.replace("8,2,1", "9,2,1")) == [
        "global_batch is not given in runs.csv, line 2, column global_batch; expected a whole number, 1 or more, of "
        "sequences.",
        "micro_batch cannot be that in runs.csv, line 2, column micro_batch; got 'x'; expected a whole number, 0 or "
        "more: 0 where it is not known.",
        "zero cannot be that in runs.csv, line 2, column zero; got '5'; expected 0, 1, 2 or 3 (FSDP is 3).",
        "recompute cannot be that in runs.csv, line 2, column recompute; got 'nne'; expected none, selective or full.",
        "sp cannot be that in runs.csv, line 2, column sp; got '2'; expected 0 or 1.",
        "step_s cannot be that in runs.csv, line 2, column step_s; got '8.9kg'; expected a time like 6.72, 6.72s or "
        "6720ms.",
        "step_s cannot be that in runs.csv, line 3, column step_s; got '0'; expected a time like 6.72, 6.72s or "
        "6720ms.",
        "a row has more cells than there are columns in runs.csv, line 4.",
        "no model in runs.csv, line 4; expected a column model with a preset's name, or the columns hidden, "
        "num_layers, heads, kv_heads, ffn, vocab, gated.",
        "the degrees do not multiply up to the GPUs in runs.csv, line 5; got tp 2 · pp 1 · cp 1 on 9 GPUs; expected "
        "tp · pp · cp · dp = gpus.",
    ]  # fmt: skip


def test_columns_are_named_as_the_file_names_them(tmp_path: Path) -> None:
    found = faults(tmp_path, HEAD.replace("micro_batch", "MBS"), ROW.replace("64,1,", "64,-1,"))
    assert found == [
        "micro_batch cannot be that in runs.csv, line 2, column MBS; got '-1'; expected a whole number, 0 or more: 0 "
        "where it is not known."
    ]


def test_faults_of_the_header(tmp_path: Path) -> None:
    found = faults(tmp_path, "modle,gpus,n_gpus,recompte,seq,zero,micro_batch", "x,8,8,none,1,0,1")
    known = ", ".join(COLUMNS)
    assert found.pop(2).startswith(f"unknown column 'recompte' in runs.csv, line 1; expected one of {known}; near")
    assert found == [
        f"unknown column 'modle' in runs.csv, line 1; expected one of {known}; nearest: model, schedule, num_layers.",
        "the column gpus is there twice in runs.csv, line 1; got gpus and n_gpus.",
        "no column global_batch in runs.csv, line 1; expected global_batch: a whole number, 1 or more, of sequences.",
        "no column recompute in runs.csv, line 1; expected recompute: none, selective or full.",
        "no column step_s in runs.csv, line 1; expected step_s: a time like 6.72, 6.72s or 6720ms.",
        "no column that tells the model in runs.csv, line 1; expected a column model with a preset's name, or the "
        "columns hidden, num_layers, heads, kv_heads, ffn, vocab, gated.",
    ]


def test_a_table_of_something_else(tmp_path: Path) -> None:
    found = faults(tmp_path, '"Kind","Queue_Id"', '"KERNEL_DISPATCH",1')
    assert sum(each.startswith("no column ") for each in found) == 8
    assert len(faults(tmp_path, "gpus", "8")) == 7


def test_a_part_of_a_shape(tmp_path: Path) -> None:
    head = "gpus,gbs,mbs,seq,hidden,layers,recompute,zero,step_s"
    assert faults(tmp_path, head, "8,8,1,2048,64,2,none,0,1") == [
        "a shape is not whole in runs.csv, line 2; expected values for heads, ffn, vocab, gated."
    ]


def test_degrees_that_are_given_must_multiply_up(tmp_path: Path) -> None:
    assert faults(tmp_path, HEAD.replace("sp,", "dp,"), ROW.replace("none,1", "none,2")) == [
        "the degrees do not multiply up to the GPUs in runs.csv, line 2; got tp 2 · pp 1 · cp 1 · dp 2 on 8 GPUs; "
        "expected tp · pp · cp · dp = gpus."
    ]


def test_very_many_faults_are_cut_and_counted(tmp_path: Path) -> None:
    found = faults(tmp_path, HEAD, *[ROW.replace("8.9", "x")] * (MOST_FAULTS + 7))
    assert len(found) == MOST_FAULTS + 1 and found[-1] == "and 7 faults more in runs.csv."


def test_a_file_without_rows_or_that_is_no_table(tmp_path: Path) -> None:
    assert faults(tmp_path, HEAD) == ["no runs in runs.csv, line 1; expected a row for each run."]
    assert faults(tmp_path, HEAD, 'a,"b')[0].startswith("not a CSV table in runs.csv, line 2; got unexpected end of")
    with pytest.raises(UnreadableFileError, match="the file is empty"):
        read(tmp_path, "")
    with pytest.raises(UnreadableFileError, match="the file cannot be opened"):
        read_step_rows(tmp_path / "nothing.csv")
