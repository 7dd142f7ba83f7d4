"""The documentation is current, complete, and true: every command and every Python example of it is run."""

from __future__ import annotations

import doctest
import re
from collections import Counter
from pathlib import Path

import pytest

import make_docs
from making_docs.shown import output_of

pytestmark = pytest.mark.xdist_group("published steps")  # judged once, being slow
ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "README.zh.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    ROOT.glob("docs/**/*.md")
)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def fences(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def nobodys_prices(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")


# --- generated files ----------------------------------------------------------------------------------------------


def test_generated_files_are_current(capsys):
    """Pages are made from themselves, so this also says that making them twice changes nothing."""
    assert make_docs.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_file_is_named(monkeypatch, capsys):
    monkeypatch.setitem(make_docs.FILES, "docs/formulas.md", lambda: "another text\n")
    assert make_docs.main(["--check"]) == 1
    assert capsys.readouterr().out == "docs/formulas.md is stale: make docs\n"


def test_a_stale_block_and_a_stale_output_are_seen():
    page = ROOT / "docs" / "verbs" / "models.md"
    text = page.read_text(encoding="utf-8")
    for old, new in (("One preset in full.", "Two presets."), ("405,853,388,800", "405,853,388,801")):
        assert old in text
        tampered = text.replace(old, new)
        assert make_docs.with_outputs(make_docs.with_blocks(tampered, page)) == text != tampered


# --- examples -----------------------------------------------------------------------------------------------------


def commands() -> list[tuple[str, str, str]]:
    """Page, command and shown output of every `$ suanli …` in a console block."""
    found = []
    for page in PAGES:
        for block in fences(page, "console"):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                if command.startswith("suanli "):
                    found.append((name_of(page), command, shown.rstrip("\n")))
    return found


def matches(shown: str, actual: str) -> bool:
    """Whether the output is as shown, a line `...` standing for any lines."""
    parts = [
        r"(?:.*\n)*?" if line == "..." else re.escape(line.rstrip()) + r"\n" for line in shown.splitlines()
    ]  # fmt: skip
    return re.fullmatch("".join(parts), actual.rstrip("\n") + "\n") is not None


@pytest.mark.parametrize(("page", "command", "shown"), commands(), ids=lambda value: value[:60].replace("\n", " "))
def test_every_command_prints_what_is_shown(page, command, shown):
    actual = output_of(command)
    assert matches(shown, actual), f"{page}: $ {command}\n{actual}"


def test_the_comparison_can_fail():
    assert matches("a\n...\nd", "a\nb\nc\nd\n")
    assert matches("a\n...", "a")
    assert not matches("a\n...\nd", "a\nb\nc\n")
    assert not matches("a\nc", "a\nb\nc\n")
    assert not matches("a", "a\nb")


SERVES = {"web"}  # runs until it is stopped, and gives no result of its own


def test_every_verb_has_an_example():
    shown = {command.split()[1] for page, command, _ in commands() if page == "README.md"}
    assert shown == set(verbs()) - SERVES
    assert "suanli web --open" in (ROOT / "README.md").read_text(encoding="utf-8")


PYTHON = [(page, block) for page in PAGES for block in fences(page, "python")]


@pytest.mark.parametrize("page", sorted({page for page, _ in PYTHON}), ids=name_of)
def test_every_python_example_holds(page):
    names: dict[str, object] = {}
    for found, block in PYTHON:
        if found == page:
            test = doctest.DocTestParser().get_doctest(block, names, name_of(page), name_of(page), 0)
            assert test.examples, f"{name_of(page)}: a python block without >>> is not checked"
            said: list[str] = []
            failed = doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=False).failed
            assert not failed, "".join(said)
            names.update(test.globs)


# --- completeness -------------------------------------------------------------------------------------------------


def verbs() -> list[str]:
    import typer.main

    from suanli.cli.main import app

    return list(typer.main.get_command(app).commands)


def test_every_verb_is_a_function_of_the_package():
    """`web` serves the others and has no answer of its own."""
    import suanli

    assert set(suanli.__all__) - {"__version__"} == set(verbs()) - {"web"}


def test_every_verb_has_its_page_and_no_page_is_without_verb():
    assert sorted(path.stem for path in ROOT.glob("docs/verbs/*.md")) == sorted(verbs())


@pytest.mark.parametrize("verb", verbs())
def test_a_verb_s_page_has_examples_options_keys_and_exit_codes(verb):
    text = (ROOT / "docs" / "verbs" / f"{verb}.md").read_text(encoding="utf-8")
    assert f"$ suanli {verb}" in text
    keys = () if verb in SERVES else (f"generated: json {verb} ",)
    for part in (f"generated: options {verb} ", *keys, "## Exit codes"):
        assert part in text


def test_json_tables_name_the_keys_that_come():
    import suanli

    page = (ROOT / "docs" / "verbs" / "mfu.md").read_text(encoding="utf-8")
    result = suanli.mfu("gpt2", gpu="h100-sxm", tokens_per_second=1000).to_dict()["result"]
    for key in result:
        assert re.search(rf"^\| `{key}[`.]", page, re.MULTILINE), key


def test_every_formula_and_convention_is_documented():
    from suanli.catalog.conventions import CONVENTIONS
    from suanli.formulas import all_formulas

    formulas = (ROOT / "docs" / "formulas.md").read_text(encoding="utf-8")
    conventions = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")
    assert [name for name in all_formulas() if f"### `{name}`" not in formulas] == []
    assert [name for name in CONVENTIONS if f"| `{name}` |" not in conventions] == []


# --- links, recipes, glossary, decisions --------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [target for target in targets if target and "://" not in target and not (page.parent / target).exists()]
    assert missing == []


def test_recipes_name_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:src|tests)/[\w./-]+)`", text)
    assert len(paths) >= 18
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_readme_s_tree_is_the_source_s():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = text.split("```text\nsrc/suanli/\n")[1].split("```")[0]
    named = {line.split()[0].rstrip("/") for line in tree.splitlines() if line.startswith("  ")}
    kept_out = {"__init__.py", "__main__.py", "version.py", "py.typed", "__pycache__"}
    assert named == {path.name for path in (ROOT / "src" / "suanli").iterdir()} - kept_out


@pytest.mark.parametrize(("page", "first"), [("README.md", "Keeps the books"), ("README.zh.md", "深度学习的算力账本")])
def test_what_it_is_then_the_two_commands_then_the_page_come_first(page, first):
    text = (ROOT / page).read_text(encoding="utf-8")
    opening = [line for line in text.splitlines() if line][:14]
    assert opening[0].startswith("# Suanli") and opening[2].startswith(first)
    assert opening[3] == "```sh"
    assert opening[4].startswith("make run ")
    assert opening[5].startswith("make test ")
    assert ".venv/bin/suanli web --open" in opening[7]
    assert any("](docs/images/page-" in line for line in opening[8:])


def test_make_run_installs_what_the_page_needs():
    assert "install -e '.[web]'" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_glossary_has_each_term_once():
    rows = re.findall(
        r"^\| (?!English|---)(.+?) \| (.+?) \|", (ROOT / "docs/glossary.md").read_text("utf-8"), re.MULTILINE
    )
    assert len(rows) >= 60
    for column in (0, 1):
        twice = [term for term, times in Counter(row[column] for row in rows).items() if times > 1]
        assert twice == []
    assert all(re.search(r"[一-鿿]", chinese) for _, chinese in rows)


def test_every_decision_is_dated():
    text = re.sub(r"```.*?```", "", (ROOT / "docs/decisions.md").read_text("utf-8"), flags=re.DOTALL)
    bold = re.findall(r"^\*\*(.+?)\*\*", text, re.MULTILINE)
    assert len(bold) >= 15
    assert all(re.match(r"\d{4}-\d{2}-\d{2}: ", title) for title in bold)


def test_the_licence_is_the_whole_of_apache_2():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.splitlines()[1].strip() == "Apache License"
    assert all(f"\n   {number}. " in text for number in range(1, 10))
    assert "END OF TERMS AND CONDITIONS" in text
    assert text.rstrip().endswith("limitations under the License.")
