"""The house rules that a linter does not know: scale factors in one place, sizes, no swallowed errors."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "suanli"
FILES = sorted(SRC.rglob("*.py"))
SCALES = {1000, 1024, 10**6, 10**9, 10**12, 10**15, 2**20, 2**30, 2**40, 1e6, 1e9, 1e12, 1e15, 3600, 86400}
MULTIPLES = {6, 12, 72, 96}
LONGEST_FUNCTION, LONGEST_FILE, MEDIAN_FUNCTION = 80, 420, 10


def stray_factors(source: str) -> list[tuple[int, object]]:
    """Literals that are multiplied or divided by and belong in units.py or formulas/."""
    found: list[tuple[int, object]] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.BinOp):
            continue
        for side in (node.left, node.right):
            value = side.value if isinstance(side, ast.Constant) else None
            scale = isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv) and value in SCALES
            multiple = isinstance(node.op, ast.Mult) and value in MULTIPLES
            if not isinstance(value, bool) and (scale or multiple):
                found.append((node.lineno, value))
    return found


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def owned(path: Path) -> bool:
    """units.py holds scale factors, formulas/ hold multiples."""
    return path.name == "units.py" or "formulas" in path.parts


@pytest.mark.parametrize("path", [path for path in FILES if not owned(path)], ids=lambda p: str(p.relative_to(SRC)))
def test_no_stray_scale_factor(path: Path) -> None:
    assert stray_factors(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("line", ["x * 1e9", "n / 1024", "6 * n", "n * 12 * h", "t / 3600"])
def test_the_search_for_stray_factors_can_fail(line: str) -> None:
    assert stray_factors(line)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_sizes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    long = [(f.name, f.end_lineno - f.lineno + 1) for f in functions(ast.parse(text)) if f.end_lineno]
    assert [each for each in long if each[1] > LONGEST_FUNCTION] == []


def test_functions_can_be_read_at_a_glance() -> None:
    lengths = [
        f.end_lineno - f.lineno + 1 for path in FILES for f in functions(ast.parse(path.read_text())) if f.end_lineno
    ]
    assert median(lengths) <= MEDIAN_FUNCTION


def test_no_error_is_swallowed() -> None:
    """An `except` that catches everything must say or raise something."""
    silent = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                broad = node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException")
                if broad and all(isinstance(each, ast.Pass | ast.Continue) for each in node.body):
                    silent.append(f"{path.name}:{node.lineno}")
    assert silent == []
