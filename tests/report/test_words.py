"""Every title, header, label and word of a picture of every verb is there in 中文; sentences are, or are marked."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from made_results import REQUESTS, made

import suanli
from suanli.errors import UnknownNameError
from suanli.formulas import all_formulas
from suanli.nouns.result import Result
from suanli.report import whys
from suanli.report import words as module
from suanli.report.chart import Chart
from suanli.report.document import Block, Document, Facts, Lines, Prose, Table
from suanli.report.figures import figures_of
from suanli.report.pages import document_of
from suanli.report.translated import translated
from suanli.report.words import known_language, language, said, spoken_in, translate
from suanli.why import QUANTITIES

CHINESE = re.compile(r"[一-鿿]")
FILES = sorted((resources.files("suanli.report") / "words_zh").iterdir(), key=lambda each: each.name)
NAMES = {"peak → useful               "}  # set wide for the terminal


def headings(block: Block) -> Iterator[str]:
    """What of a block must be translated."""
    yield block.title
    if isinstance(block, Facts):
        yield from (label for label, _, _ in block.rows)
    if isinstance(block, Table):
        yield from block.columns
    if isinstance(block, Chart):
        yield from (block.x_label, block.y_label, *(curve.name for curve in block.curves))


def seen(result: Result) -> Iterator[str]:
    """The same of the pictures: titles, the words in their place, axes, names of series."""
    for figure in figures_of(result):
        yield from (figure.title, figure.words)
        yield from (text for text in axes(figure.spec))
        for name in figure.spec.get("usermeta", {}).get("words", ()):
            yield from (row[name] for row in figure.spec["data"]["values"] if row.get(name))


def axes(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "title" and isinstance(value, str):
                label, bracket, unit = value.partition(" [")
                yield label
                if bracket and unit.endswith("s]") and "/" in unit:
                    yield unit[:-1]
            elif key != "data":
                yield from axes(value)
    elif isinstance(node, list):
        for each in node:
            yield from axes(each)


def untranslated(texts: Iterator[str]) -> list[str]:
    return sorted({text for text in texts if text and text not in NAMES and not said(text, "zh")[1]})


VERBS = sorted({request[0] for request in REQUESTS.values()})


def results(verb: str) -> list[Result]:
    return [made(name) for name, request in REQUESTS.items() if request[0] == verb]


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "learn"])
def test_every_heading_of_a_verb_is_translated(verb: str) -> None:
    blocks = [block for result in results(verb) for block in document_of(result).blocks]
    assert untranslated(text for block in blocks for text in headings(block)) == []


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "learn"])
def test_every_word_of_a_picture_is_translated(verb: str) -> None:
    assert untranslated(text for result in results(verb) for text in seen(result)) == []


OF_NAMES = ("learn", "models", "gpus", "verify")  # headlines that are a name, or in the lesson's own language


@pytest.mark.parametrize("name", [name for name in REQUESTS if REQUESTS[name][0] not in OF_NAMES])
def test_the_headline_is_translated(name: str) -> None:
    headline = document_of(made(name)).headline
    assert said(headline, "zh")[1], headline


def test_reports_of_reports_are_translated(tmp_path: Any) -> None:
    for name, seq in (("a.json", 128), ("b.json", 256)):
        (tmp_path / name).write_text(suanli.count("gpt2", seq=seq).to_json())
    for result in (suanli.diff(tmp_path / "a.json", tmp_path / "b.json"), suanli.rerun(tmp_path / "a.json")):
        document = document_of(result)
        assert (
            untranslated(iter((document.headline, *(each for block in document.blocks for each in headings(block)))))
            == []
        )


SOURCES = sorted(Path(module.__file__).parent.glob("*.py"))


def written_titles(source: str) -> Iterator[str]:
    """Titles and headers that stand in the code as they are shown, shown in a test or not."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "Facts",
            "Table",
            "Lines",
            "Picture",
            "Chart",
        ):
            yield from (each.value for each in node.args[:1] if isinstance(each, ast.Constant))
            yield from _constants(node.args[1]) if node.func.id == "Table" and len(node.args) > 1 else ()  # type: ignore[attr-defined]
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("columns", "header", "title"):
            yield from _constants(node.value)


def _constants(node: ast.AST) -> Iterator[str]:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    yield from (each.value for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, str))


PAGES_OF_VERBS = [each for each in SOURCES if each.stem.endswith(("_pages", "_tables", "_differences"))]


@pytest.mark.parametrize("file", PAGES_OF_VERBS, ids=lambda each: each.stem)
def test_every_title_and_header_in_the_code_is_translated(file: Path) -> None:
    assert untranslated(written_titles(file.read_text(encoding="utf-8"))) == []


def test_titles_in_code_are_found() -> None:
    code = "columns = ('new header', *more)\nTable('new title', columns, rows)\nFacts(f'{x}', rows)\nTable(t, ('b', c))"
    assert sorted(written_titles(code)) == ["b", "new header", "new title"]


def test_what_a_note_says_is_translated() -> None:
    """The meaning of every number that can be clicked, and of every quantity of `suanli why`."""
    rules = [rule for sections in whys._table().values() for section in sections for rule in section.values()]
    meanings = {rule["d"] for rule in rules if isinstance(rule, dict) and "d" in rule}
    quantities = {text for each in QUANTITIES.values() for text in (each.doc, each.unit)}
    assert len(meanings) > 100
    assert untranslated(iter(meanings | quantities)) == []


def test_most_letters_of_legends_are_translated() -> None:
    letters = {text for each in all_formulas().values() for text in each.legend.values()}
    assert len(untranslated(iter(letters))) / len(letters) < 0.2


def test_most_sentences_are_translated() -> None:
    lines = {
        line
        for name in REQUESTS if REQUESTS[name][0] not in ("learn", "verify", "gpus", "compare", "why")
        for block in document_of(made(name)).blocks if isinstance(block, Lines)
        for line in block.lines if not line.startswith("-")
    }  # fmt: skip
    assert sum(said(line, "zh")[1] for line in lines) / len(lines) > 0.6


def test_a_title_without_a_translation_is_found() -> None:
    assert untranslated(headings(Facts("A new title", (("a new label", "", ""),)))) == ["A new title", "a new label"]


# --- how texts are found ------------------------------------------------------------------------------------------

TEXTS = [
    ("Parameters", "参数量", True),
    ("  Parameters ", "参数量", True),
    ("Ideal forms, N = 174,615,846,912", "理想公式，N = 174,615,846,912", True),
    ("Finish, 1,000 simulated runs, seed 0", "完成时间，模拟 1,000 次，随机种子 0", True),
    ("recompute selective", "重计算：选择性", True),
    ("of 80.00 GiB: 20.00 GiB left", "共 80.00 GiB，余 20.00 GiB", True),
    ("25.29 days", "25.29 天", True),
    ("734.9 TFLOPs", "734.9 TFLOPs", True),
    ("-2.67 %", "-2.67 %", True),
    ("model.layers.0-31.mlp", "model.layers.0-31.mlp", True),
    ("linear(4096, 11008) is unheard of", "linear(4096, 11008) is unheard of", False),
    ("fp8: linear 63.75 GiB, embedding 1.957 GiB", "fp8：线性层 63.75 GiB，词嵌入 1.957 GiB", True),
    ("limit: model", "受限于 模型", True),
    ("limit: nobody knows", "受限于 nobody knows", False),  # a part without a translation
    ("T: tokens (positions) in all", "T：词元（位置）总数", True),
    ("B: global batch [sequences]", "B：全局批 [sequences]", True),
    ("t1, t2: wanted outputs", "t1, t2：目标输出", True),
    ("config.json of a/b; arXiv:2407.21783 Table 3", "a/b 的 config.json；arXiv:2407.21783 Table 3", False),
    ("nobody knows; nobody at all", "nobody knows; nobody at all", False),
    ("Q: nobody knows", "Q: nobody knows", False),
    ("all claims hold: 151 holds, 26 article wrong", "全部结论成立：成立 151，文章有误 26", True),
    ("linear counted twice, as mm and as Linear [says 5 MACs: doubled]",
     "linear 重复计算，既作 mm 又作 Linear[自报 5 次乘加：已加倍]", True),
    ("", "", True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "chinese", "known"), TEXTS)
def test_a_text(text: str, chinese: str, known: bool) -> None:
    assert said(text, "zh") == (chinese, known)
    assert said(text, "en") == (text, True)


@pytest.mark.parametrize("file", FILES, ids=lambda each: each.name)
def test_patterns_keep_their_numbers(file: Any) -> None:
    """What stands in the holes of a sentence stands in its translation too, once."""
    hole = re.compile(r"\{\w+\}")
    for english, chinese in tomllib.loads(file.read_text(encoding="utf-8")).items():
        assert sorted(set(hole.findall(english))) == sorted(hole.findall(chinese)), english
        assert len(hole.findall(english)) == len(set(hole.findall(english))), english


def test_no_text_stands_twice_with_two_translations() -> None:
    found: dict[str, str] = {}
    for file in FILES:
        for english, chinese in tomllib.loads(file.read_text(encoding="utf-8")).items():
            assert english == english.strip() and chinese == chinese.strip(), english
            assert found.setdefault(english, chinese) == chinese, (english, file.name)


def test_terms_are_those_of_the_glossary() -> None:
    """Where the glossary has a term, its first translation stands in ours."""

    rows = re.findall(
        r"^\| (.+?) \| (.+?) \|", (Path(__file__).parents[2] / "docs/glossary.md").read_text("utf-8"), re.M
    )
    glossary = {english.split(",")[0].strip().lower(): chinese for english, chinese in rows}
    table = module._table("zh")
    common = {
        term: glossary[term.lower()] for term in table if term.lower() in glossary and CHINESE.search(table[term])
    }
    kept = {term for term, chinese in common.items() if table[term] in chinese or chinese in table[term]}
    assert len(common) > 20
    assert len(kept) / len(common) > 0.9, set(common) - kept


def test_amounts_are_never_lost() -> None:
    """A number of the English text stands in the Chinese one."""
    for name in REQUESTS:
        document = document_of(made(name))
        there = translated(document, "zh")
        assert numbers(there) == numbers(document)


def numbers(document: Document) -> list[str]:
    texts = [document.headline]
    for block in document.blocks:
        rows = block.lines if isinstance(block, Lines) else block.paragraphs if isinstance(block, Prose) else ()
        texts += [*rows, *(cell for row in getattr(block, "rows", ()) if isinstance(row, tuple) for cell in row)]
    whole = (text.replace("1M ", "million ") for text in texts)  # 百万
    return sorted(each for text in whole for each in re.findall(r"\d[\d.,]*\d|\d", text))


# --- which language -----------------------------------------------------------------------------------------------


def test_a_language_is_spoken_inside_alone() -> None:
    assert language() == "en"
    with spoken_in("zh"):
        assert language() == "zh"
        with spoken_in(None):
            assert language() == "zh"
        with spoken_in("en"):
            assert language() == "en"
    assert language() == "en"
    assert translate("Notes", "zh") == "说明"


def test_an_unknown_language() -> None:
    with pytest.raises(UnknownNameError) as caught:
        known_language("zh-CN")
    assert str(caught.value) == (
        "unknown language 'zh-CN' in --lang; expected one of 2 known; nearest: zh. Languages: en, zh."
    )
