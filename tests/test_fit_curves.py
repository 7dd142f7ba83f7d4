"""The fitting command: it finds the numbers that made the times, writes files that read, and the same ones twice."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from suanli.catalog.curve_files import read_curve_text
from suanli.report.kernel_tables import COLUMNS

pytest.importorskip("scipy", reason="the fit needs scipy: pip install '.[calibrate]'")
pytest.importorskip("pyarrow", reason="the fit reads with pyarrow: pip install '.[calibrate]'")

ROOT = Path(__file__).resolve().parents[1]
TRUE = {
    "efficiency": 0.8,
    "wave_exponent": 0.5,
    "short_k": 150.0,
    "small_tile": 0.1,
    "sharpness": 3.0,
    "memory_fraction": 0.7,
    "floor_s": 5e-6,
    "peak_flop_per_s": 989.4e12,
    "operand_bytes": 2.0,
    "output_bytes": 2.0,
    "quantise_bytes": 0.0,
}


@pytest.fixture(scope="module")
def fitting() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fit_curves", ROOT / "scripts" / "fit_curves.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fit_curves"] = module  # its dataclasses look their annotations up there
    spec.loader.exec_module(module)
    return module


def products(fitting: ModuleType, machine: Any, rows: int = 1500) -> dict[str, Any]:
    """A table of products whose times come from TRUE, with 1 % of noise."""
    draw = np.random.default_rng(7)
    m, n, k = (2.0 ** draw.uniform(9, 14, rows) // 1 for _ in range(3))
    n, k = (np.repeat(each[: rows // 6], 6)[:rows] for each in (n, k))  # six products of each (n, k)
    seconds = fitting.product_s(machine, TRUE, m, n, k) * np.exp(draw.normal(0, 0.01, rows))
    words = {"gpu": machine.gpu, "engine": "made", "engine_version": "1", "gemm_dtype": "bfloat16"}
    table = {name: np.full(rows, word, object) for name, word in words.items()}
    return table | {"m": m, "n": n, "k": k, "milliseconds": seconds * 1e3}


def test_the_fit_finds_what_made_the_times(fitting: ModuleType) -> None:
    machine = next(each for each in fitting.MACHINES if each.gpu == "h100_sxm")
    curve = fitting.fit_matmul(machine, products(fitting, machine), "made", "1", "bfloat16")
    found = fitting.in_units(curve.fitted.names, curve.fitted.values)
    assert curve.fitted.held_out < 0.012
    assert found["efficiency"] == pytest.approx(0.8, rel=0.03)
    assert found["wave_exponent"] == pytest.approx(0.5, abs=0.05)
    assert found["short_k"] == pytest.approx(150, rel=0.1)
    assert found["floor_s"] == pytest.approx(5e-6, rel=0.1)


def test_the_fit_says_when_times_have_no_form(fitting: ModuleType) -> None:
    """Times shuffled over shapes cannot be held out well: the error is no formality."""
    machine = next(each for each in fitting.MACHINES if each.gpu == "h100_sxm")
    table = products(fitting, machine)
    table["milliseconds"] = np.random.default_rng(1).permutation(table["milliseconds"])
    assert fitting.fit_matmul(machine, table, "made", "1", "bfloat16").fitted.held_out > 0.5


def test_a_shape_is_never_in_two_folds(fitting: ModuleType) -> None:
    n, k = np.arange(100) % 10, np.arange(100) % 5
    folds = fitting.folds_of(n * 1.0, k * 1.0)
    assert all(len(set(folds[(n == a) & (k == b)])) <= 1 for a in range(10) for b in range(5))
    assert len(set(folds)) > 1
    assert (folds == fitting.folds_of(n * 1.0, k * 1.0)).all()


def test_the_fastest_accurate_engine_ships(fitting: ModuleType) -> None:
    def engine(error: float, speed: float, section: str = "matmul") -> SimpleNamespace:
        return SimpleNamespace(section=section, error=error, speed=speed)

    exact, fast, wild = engine(0.03, 2.0), engine(0.07, 1.0), engine(0.30, 0.5)
    assert fitting.chosen([exact, fast, wild]) is fast
    assert fitting.chosen([wild, engine(0.2, 9.0)]).error == 0.2
    assert fitting.chosen([engine(0.05, 1.0, "experts"), engine(0.04, 2.0, "experts")]).error == 0.04
    assert fitting.chosen([]) is None


def test_too_few_rows_give_no_curve(fitting: ModuleType) -> None:
    machine = next(each for each in fitting.MACHINES if each.gpu == "h100_sxm")
    assert fitting.fit_matmul(machine, products(fitting, machine, rows=120), "made", "1", "bfloat16") is None


@pytest.mark.shared
@pytest.mark.full
def test_the_command_writes_what_ships(fitting: ModuleType, shared: Path) -> None:
    """One device fitted again: the file is the one in the repository, but for the date."""
    machine = next(each for each in fitting.MACHINES if each.device == "arc-pro-b60-24gb-pcie")
    names = ("gemm", "prefill_attention", "moe", "nccl")
    tables = {name: fitting.read(shared / "data" / "kernels", name) for name in names}
    held = (fitting.FOLDER / f"{machine.device}.toml").read_text(encoding="utf-8")
    file = read_curve_text(held, machine.device)
    again = read_curve_text(
        fitting.toml_of(machine, fitting.fit_machine(machine, tables, lambda _: None), file.date), "again"
    )
    for dtype, curve in again.matmul.items():
        assert curve.efficiency == pytest.approx(file.matmul[dtype].efficiency, rel=1e-2)
    assert (set(again.matmul), set(again.attention)) == (set(file.matmul), set(file.attention))


def as_csv(path: Path, table: dict[str, Any], calls: list[str] | None = None) -> Path:
    """Products, and lines of collectives, as `suanli explain --kernels-csv` writes them."""
    lines = [",".join(COLUMNS)]
    for gpu, m, n, k, time in zip(*(table[name] for name in ("gpu", "m", "n", "k", "milliseconds")), strict=True):
        lines.append(f"gemm,{gpu},trace,,bfloat16,{int(m)},{int(n)},{int(k)},,,,,{float(time)!r},3")
    path.write_text("\n".join([*lines, *(calls or [])]) + "\n", encoding="utf-8")
    return path


def test_kernels_of_traces_are_fitted_too(
    fitting: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = next(each for each in fitting.MACHINES if each.gpu == "h100_sxm")
    calls = [
        f"nccl,h100_sxm,trace,,,,,,all_reduce,int8,8,{size},{(20e-6 + 1.75 * size / 340e9) * 1e3!r},5"
        for size in (2**20 * (i + 1) for i in range(20))
    ]
    path = as_csv(tmp_path / "own.csv", products(fitting, machine), calls)
    tables = fitting.read_csv(path)
    first, second = fitting.fit_own(machine, tables, lambda _: None)
    found = fitting.in_units(first.fitted.names, first.fitted.values)
    assert found["efficiency"] == pytest.approx(0.8, rel=0.03)
    assert (second.key, second.fitted.n, second.fitted.fitted < 0.02) == ("all_reduce", 20, True)
    fitting.main(["--kernels", str(path), "--only", machine.device])
    printed = capsys.readouterr().out
    assert "matmul bf16" in printed
    assert "collectives all_reduce" in printed


CURVE = {
    "efficiency": 0.7, "wave_exponent": 0.3, "edge_pairs": 50.0, "narrow_head": 40.0, "wide_head": 0.1,
    "sharpness": 3.0, "memory_fraction": 0.7, "floor_s": 8e-6, "peak_flop_per_s": 989.4e12, "operand_bytes": 2.0,
}  # fmt: skip
SHAPE = "batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim"


def attention(fitting: ModuleType, machine: Any, rows: int) -> list[str]:
    """Lines of attention whose times come from CURVE."""
    draw = np.random.default_rng(7)
    b, h = draw.choice([1, 2, 4], rows), draw.choice([16, 32, 64], rows)
    t = 2 ** draw.uniform(7, 14, rows) // 1
    shape = (b, t, h, h // 4, np.full(rows, 128), t)
    seconds = fitting.attention_s(machine, CURVE, tuple(np.asarray(each, float) for each in shape))
    return [
        f"attention,h100_sxm,trace,,,,,,,,,,{time * 1e3!r},3,bfloat16,bfloat16,{bi},{int(ti)},{int(ti)},{hi},{hi // 4},"
        "128,128,1,forward"
        for bi, ti, hi, time in zip(b, t, h, seconds.tolist(), strict=True)
    ]


def test_attention_of_traces_is_fitted_too(fitting: ModuleType, tmp_path: Path) -> None:
    """A trace's causal forward attention over its own positions; other rows are not what the curve is of."""
    machine = next(each for each in fitting.MACHINES if each.gpu == "h100_sxm")
    rows = attention(fitting, machine, 700)
    odd = [rows[0].replace("forward", "backward"), rows[0].replace(",1,forward", ",0,forward"),
           rows[0].replace("128,128,", "128,64,"), rows[0].replace(rows[0].split(",")[18], "1", 1)]  # fmt: skip
    tables = fitting.read_csv(as_csv(tmp_path / "own.csv", products(fitting, machine, rows=6), [*rows, *odd]))
    assert len(tables["prefill_attention"]["isl"]) == 700
    (found,) = fitting.fit_own(machine, tables, lambda _: None)
    long = int((tables["prefill_attention"]["isl"] >= 1024).sum())
    assert (found.section, found.key, found.engine, found.fitted.n) == ("attention", "bf16", "trace ", long)
    assert fitting.in_units(found.fitted.names, found.fitted.values)["efficiency"] == pytest.approx(0.7, rel=0.05)
    few = fitting.read_csv(as_csv(tmp_path / "few.csv", products(fitting, machine, rows=6), rows[:400]))
    assert fitting.fit_own(machine, few, lambda _: None) == []


def test_a_csv_without_columns_of_attention_is_one(fitting: ModuleType, tmp_path: Path) -> None:
    machine = next(each for each in fitting.MACHINES if each.gpu == "h100_sxm")
    path = as_csv(tmp_path / "own.csv", products(fitting, machine, rows=6))
    head = path.read_text(encoding="utf-8").replace(",".join(COLUMNS), ",".join(COLUMNS[: COLUMNS.index("runs") + 1]))
    path.write_text(head, encoding="utf-8")
    assert fitting.fit_own(machine, fitting.read_csv(path), lambda _: None) == []


def test_another_csv_is_refused(fitting: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="no kernels of suanli explain --kernels-csv"):
        fitting.read_csv(path)
