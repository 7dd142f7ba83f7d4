"""Makes what the documentation takes from the code: `make docs`. With `--check`, names the files that are stale.

Three kinds of things are made, all of them again and again the same:

- whole files (formulas, conventions, accuracy, catalogue, pictures);
- blocks of hand-written pages between `<!-- generated: NAME -->` and `<!-- end -->`;
- the output under `$ suanli …` where a comment `<!-- shows: TITLE, TITLE:ROWS -->` stands before the console block: the
  command is run, and of its report the blocks with those titles are kept (the first ROWS lines where a number is
  given), `...` standing for what is left out. `headline` is the first line, `all` everything.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer.main
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from typer.testing import CliRunner

import suanli
from suanli.api.catalogues import Devices, Models
from suanli.catalog.conventions import CONVENTIONS
from suanli.catalog.curves import DeviceCurves, devices_with_curves, find_curves
from suanli.catalog.devices import list_devices, source_texts
from suanli.catalog.fabrics import node_fabric
from suanli.catalog.presets import presets
from suanli.catalog.serving_presets import find_serving_preset, serving_errors, serving_preset_names
from suanli.cli.main import app
from suanli.formulas import all_formulas
from suanli.formulas.registry import Formula
from suanli.nouns.calibrated import Calibrated
from suanli.nouns.claim import (
    ARTICLE_WRONG,
    DIFFERS,
    FLAGGED,
    HOLDS,
    QUOTED,
    REPRODUCED,
    RULE,
    UNSUPPORTED,
    ClaimResult,
    Verification,
)
from suanli.nouns.comparison import Comparison
from suanli.nouns.convention import Convention
from suanli.nouns.counts import Count
from suanli.nouns.explained import Explained
from suanli.nouns.goodput import Goodput
from suanli.nouns.infer import Inference
from suanli.nouns.lesson import Lesson
from suanli.nouns.measures import Mfu, TrainPlan
from suanli.nouns.reason import Why
from suanli.nouns.repeated import Changes
from suanli.nouns.result import Result
from suanli.nouns.scaling import Scaling
from suanli.nouns.serving_profile import NUMBERS
from suanli.nouns.summarised import Summarised
from suanli.nouns.summary import COLUMNS
from suanli.plan.layout import LayoutPlan
from suanli.readers.diffusers import known_classes
from suanli.report import Document, document_of
from suanli.report.text import print_document
from suanli.report.verify_pages import shown
from suanli.units import GIGA, KILO, MICRO, MILLI, TERA, format_bytes, format_count, format_percent, format_seconds
from suanli.verify import POINT

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BENCHMARK = ROOT / "benchmarks" / "count.json"
MADE = "<!-- made by scripts/make_docs.py from the code: change it there, then `make docs` -->\n\n"
NOTHING = Path(os.devnull)  # no prices of the user's own in what is published

PLAIN = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None}  # no colours, whatever the environment asks for

Rows = list[tuple[str, ...]]


# --- Markdown -----------------------------------------------------------------------------------------------------


def table(columns: tuple[str, ...], rows: Rows, right: str = "") -> str:
    """A table; `right` has an `r` for every column set flush right."""
    rule = tuple("---:" if right[index : index + 1] == "r" else "---" for index in range(len(columns)))
    lines = [columns, rule, *(tuple(cell(each) for each in row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(text: object) -> str:
    """Text that may stand in a table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Text as code; nothing stays nothing."""
    return f"`{text}`" if text else ""


# --- running commands ---------------------------------------------------------------------------------------------


def output_of(command: str) -> str:
    """What `suanli …` prints where the output is no terminal, lines without trailing blanks; files it writes go.

    It runs in an empty folder that has `examples` in it, and copies of the CSV files there.
    """
    words = shlex.split(command)
    assert words[0] == "suanli", command
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("examples").symlink_to(ROOT / "examples")
        for file in (ROOT / "examples").glob("*.csv"):
            shutil.copy(file, folder)
        found = CliRunner().invoke(app, words[1:], env={"XDG_CONFIG_HOME": folder, **PLAIN})
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return "\n".join(line.rstrip() for line in found.output.splitlines())


def excerpt(output: str, titles: str) -> str:
    """The blocks of a report with these titles, `...` where something is left out."""
    blocks = output.split("\n\n")
    if titles == "all":
        return output
    parts = [part.strip() for part in titles.split(",")]
    wanted = [part.rpartition(":")[::2] if part[-1:].isdigit() else (part, "") for part in parts]
    kept: list[str] = []
    last = -1
    for title, rows in wanted:
        index = _index(blocks, title or rows)
        lines = blocks[index].splitlines()
        cut = int(rows) if title and rows else len(lines)
        gap = [] if not kept else ["..."] if index > last + 1 else [""]
        kept += [*gap, *lines[:cut], *(["..."] if cut < len(lines) else [])]
        last = index
    whole = last == len(blocks) - 1 or kept[-1] == "..."
    return "\n".join(kept if whole else [*kept, "..."])


def _index(blocks: list[str], title: str) -> int:
    if title == "headline":
        return 0
    found = [index for index, block in enumerate(blocks) if index and block.strip().startswith(title)]
    assert found, f"no block {title!r} among {[block.strip().splitlines()[0] for block in blocks]}"
    return found[0]


_SHOWS = re.compile(r"(<!-- shows: (.+?) -->\n+```console\n\$ (suanli [^\n]*)\n).*?(```)", re.DOTALL)


def with_outputs(text: str) -> str:
    """A page with the output of its commands."""
    return _SHOWS.sub(lambda m: f"{m[1]}{excerpt(output_of(m[3]), m[2])}\n{m[4]}", text)


# --- options and JSON keys of a verb ------------------------------------------------------------------------------

RESULTS: dict[str, type] = {
    "count": Count, "compare": Comparison, "mfu": Mfu, "train": TrainPlan, "layout": LayoutPlan, "goodput": Goodput,
    "scale": Scaling, "calibrate": Calibrated, "gpus": Devices, "models": Models, "why": Why, "verify": Verification,
    "infer": Inference, "explain": Explained, "summarise": Summarised, "learn": Lesson,
    "rerun": Changes, "diff": Changes,
}  # fmt: skip


def commands() -> Mapping[str, Any]:
    """The verbs of the command line by name."""
    group: Any = typer.main.get_command(app)
    found: Mapping[str, Any] = group.commands
    return found


def options(verb: str) -> str:
    """Arguments and options of a verb with their help."""
    rows: Rows = []
    for param in commands()[verb].params:
        named = ", ".join(code(name) for name in (*param.opts, *param.secondary_opts))
        flag = getattr(param, "is_flag", False)
        takes = "" if flag else param.metavar or ("FILE" if param.name == "output" else "")
        if param.param_type_name == "argument":
            named, takes = code((param.metavar or param.name).strip("[]").upper()), "required" if param.required else ""
        rows.append((named, takes if takes == "required" else code(takes), _help(param)))
    return table(("option", "takes", "meaning"), rows)


def _help(param: Any) -> str:
    required = " Required." if param.required and param.param_type_name == "option" else ""
    return (param.help or "") + required


def summary(verb: str) -> str:
    """What the verb does, as its help says."""
    return " ".join(commands()[verb].help.split("Example:")[0].split())


def json_keys(verb: str) -> str:
    """Keys under `result` of the JSON, from the fields that make it."""
    rows: Rows = list(_keys(RESULTS[verb], ""))
    return table(("key under `result`", "type", "unit", "meaning"), rows)


def _keys(record: type, prefix: str) -> Iterator[tuple[str, ...]]:
    hints = typing.get_type_hints(record)
    for each in fields(record):
        if each.metadata.get("hidden"):
            continue
        name, hint = prefix + each.name.rstrip("_"), hints[each.name]
        inner, suffix = _inner(hint)
        if inner is not None:
            yield from _keys(inner, f"{name}{suffix}.")
        else:
            yield code(name), _json_type(hint), *_meaning(each)


def _inner(hint: Any) -> tuple[type | None, str]:
    """The record a field holds, and how its place is written: itself, `[]` for a list, `.NAME` for a mapping."""
    candidates = [(hint, "")]
    for option in _alternatives(hint):
        arguments = typing.get_args(option)
        suffix = ".NAME" if len(arguments) == 2 and arguments[0] is str else "[]"
        candidates += [(option, ""), *((argument, suffix) for argument in arguments)]
    return next(((each, suffix) for each, suffix in candidates if isinstance(each, type) and is_dataclass(each)),
                (None, ""))  # fmt: skip


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """What a hint allows, None left out."""
    arguments = typing.get_args(hint)
    union = type(None) in arguments or "Union" in type(hint).__name__
    return tuple(each for each in arguments if each is not type(None)) if union else (hint,)


_JSON = {int: "number", float: "number", str: "text", bool: "true or false"}


def _json_type(hint: Any) -> str:
    names = []
    for each in _alternatives(hint):
        origin = typing.get_origin(each)
        is_list = origin in (tuple, list)
        names.append("list" if is_list else "object" if origin is not None else _JSON.get(each, "any"))
    may_be_null = ["null"] if type(None) in typing.get_args(hint) else []
    return " or ".join(dict.fromkeys([*names, *may_be_null]))


def _meaning(each: Field[Any]) -> tuple[str, str]:
    return each.metadata.get("unit", ""), each.metadata.get("doc", "")


# --- whole files --------------------------------------------------------------------------------------------------


def formulas_page() -> str:
    """docs/formulas.md."""
    parts = [
        "# Formulas\n",
        f"{len(all_formulas())} formulas, one function a quantity. `suanli why ID` prints any of them, and with a "
        "model the numbers put in.\n",
    ]
    module = ""
    for formula in all_formulas().values():
        if formula.function.__module__ != module:
            module = formula.function.__module__
            doc = (inspect.getdoc(sys.modules[module]) or "").split("\n\n")[0].replace("\n", " ")
            parts.append(f"## {module.rpartition('.')[2].capitalize()}\n\n{doc}\n")
        parts.append(_formula(formula))
    return MADE + "\n".join(parts)


def _formula(formula: Formula) -> str:
    letters = "".join(f"\n- `{name}`: {text}" for name, text in formula.legend.items())
    unit = f" [{formula.unit}]" if formula.unit else ""
    expression = f"```text\n{formula.expression}{unit}\n```"
    return f"### `{formula.id}`\n\n{formula.doc}\n\n{expression}\n\nSource: {formula.source}.\n{letters}\n"


EXAMPLE: dict[str, Any] = {"gpu": "h100-sxm", "seq": 8192, "tokens_per_second": 8000}
EXAMPLE_WORDS = "Llama-3-8B, sequences of 8,192 tokens, 8,000 tokens/s on one H100 SXM (dense bf16 peak 989.4 TFLOP/s)"


def conventions_page() -> str:
    """docs/conventions.md."""
    rows: Rows = [(code(each.name), each.doc, each.source) for each in CONVENTIONS.values()]
    counted = [each for each in fields(Convention) if each.metadata and each.name != "common"]
    meaning: Rows = [(code(each.name), each.metadata["doc"]) for each in counted]
    names = [each.name for each in counted]
    values: Rows = [
        (code(each.name), *(_value(getattr(each, name)) for name in names)) for each in CONVENTIONS.values()
    ]
    return MADE + "\n".join((
        "# Conventions\n",
        "A convention says what a FLOP figure includes. It is data, a row of the table below; the code that counts "
        "reads its fields and never asks for its name. `--convention NAME` chooses one, `causal` is the default, and "
        "every figure names the one it was counted under.\n",
        table(("name", "what is counted", "where it is read"), rows),
        f"\n## One run under each\n\n{EXAMPLE_WORDS}.\n",
        one_run(tuple(CONVENTIONS)),
        "\n## The fields of a convention\n",
        table(("field", "meaning"), meaning),
        "\n## The rows\n",
        table(("name", *(code(name) for name in names)), values),
        "\nThe backward pass is twice the forward pass, but where `exact_backward` is set it is what autograd needs: "
        "no gradient of a frozen weight, and none of an input behind which nothing is trained.",
        "",
    ))  # fmt: skip


def _value(value: object) -> str:
    return {True: "yes", False: "no", None: ""}.get(value, str(value)) if isinstance(value, bool | None) else str(value)


def one_run(names: tuple[str, ...]) -> str:
    """The example run under each convention."""
    rows: Rows = []
    for name in names:
        view = suanli.mfu("llama-3-8b", convention=name, **EXAMPLE).by_convention[name]
        rows.append((code(name), f"{view.flops_per_token / GIGA:,.3f}", format_percent(view.mfu)))
    return table(("convention", "GFLOP/token", "utilisation"), rows, "-rr")


def accuracy_page() -> str:
    """docs/accuracy.md."""
    found: Verification = suanli.verify().result
    sources: Rows = []
    for row in found.summary:
        error = _error(row.median_error, row.section)
        mape = "" if row.mape_held_out is None else f"{row.mape_held_out:.2g}"
        if row.n and row.section != "predictions" and (row.section != "serving" or row.within is not None):
            sources.append((row.source, row.section, f"{row.n:,}", f"{row.within:,}", error, mape))
    wrong: Rows = [
        (each.source, each.statement, _figure(each.article), _figure(each.expected), each.unit, each.why)
        for each in found.claims if each.status == ARTICLE_WRONG
    ]  # fmt: skip
    open_: Rows = [
        (each.source, each.statement, each.status, each.why)
        for each in found.claims if each.status in (UNSUPPORTED, RULE, QUOTED)
    ]  # fmt: skip
    return MADE + "\n".join((
        "# Accuracy\n",
        "What `suanli verify` prints, kept here so that it can be read without running it. The sources S0, S1, S2 and "
        "S4 are articles in Chinese on compute platforms, utilisation and the cost of large models, every number of "
        "which is recomputed; the others are papers, logs and repositories, as they are named.\n",
        accuracy(),
        "\n## Step times\n\n" + STEP_TIMES + "\n",
        step_times(),
        "\n## Serving\n\nTimes, throughput and energy of served models as they were when the presets were fitted; a "
        "fold is one architecture on one GPU. [How long serving takes](serving.md) has the model.\n",
        serving_shown(),
        "\n## By source\n\n`within`: claims that hold; for runs, those within one point of the peak. `relative` is "
        "the mean of |error| over the expected figure.\n",
        table(("source", "section", "compared", "within", "median error", "relative"), sources, "--rrrr"),
        f"\n## Where an article is wrong\n\n{len(wrong)} figures or words of the articles do not come out.\n",
        table(("source", "statement", "printed", "right", "unit", "why"), wrong, "--rr"),
        "\n## Without a number to check\n",
        table(("source", "statement", "what it is", "why"), open_),
        "",
    ))  # fmt: skip


def _figure(value: float | None) -> str:
    return "" if value is None else shown(value)


def _error(value: float | None, section: str) -> str:
    """An error of a section; runs are off by points of the peak."""
    return "" if value is None else f"{value * 100:.3f} points" if section == "runs" else f"{value:.3g}"


def accuracy() -> str:
    """Agreement by section, in one table and one sentence."""
    found: Verification = suanli.verify().result
    rows: Rows = []
    for what, section, chosen in SECTIONS:
        claims = [each for each in found.claims if each.section == section and each.error is not None and chosen(each)]
        close = [each for each in claims if each.status == HOLDS or abs(each.error or 0) <= POINT]
        worst = max(abs(claim.error or 0) for claim in claims)
        one_unit = len({claim.unit for claim in claims}) == 1 or not worst
        error = _error(worst, section) if one_unit else "each within its tolerance"
        agree = len([each for each in claims if not each.failed]) if section != "runs" else len(close)
        rows.append((what, f"{len(claims):,}", f"{agree:,}", error))
    note = next(row.why_not_fitted for row in found.summary if row.section == "runs")
    heading = ("what is recomputed", "numbers", "agree", "largest error")
    return table(heading, rows, "-rrr") + f"\n\nOf the runs: {note}. See [accuracy]({{docs}}accuracy.md)."


STEP_TIMES = (
    "Training steps predicted from model, layout, device and stack, beside measured ones (`suanli verify --only "
    "predictions`). A stack's few numbers are fitted to runs; *held out* is the mean |error| on the runs of a fold "
    "that was left out, *fitted* the same when nothing is. *Constant utilisation* is the simplest rule on these folds: "
    "the "
    "median utilisation of the other folds on the same GPU and dtype, FLOPs counted in the way that serves it best. "
    "What is believed before any run is seen (`nouns/profile.py`, `catalog/stack_time.toml`) was written with these "
    "sets in sight; no held-out row enters a fit."
)


def step_times() -> str:
    """The planner's error by set, fitted and held out apart."""
    found: Verification = suanli.verify().result
    rows: Rows = [
        (row.source, f"{row.n:,}", row.fold, *map(_percent, (row.mape_fitted, row.mape_held_out, row.mape_constant)),
         _percent(row.coverage), _percent(row.bar))
        for row in found.summary if row.section == "predictions"
    ]  # fmt: skip
    heading = (
        "steps of", "runs", "left out together", "fitted", "held out", "constant utilisation",
        "inside the 80 % interval", "aim",
    )  # fmt: skip
    return table(heading, rows, "-r-rrrrr")


def _percent(value: float | None) -> str:
    return "" if value is None else format_percent(value, 1)


SECTIONS: tuple[tuple[str, str, Callable[[ClaimResult], bool]], ...] = (
    ("every number of four articles and of the papers behind them", "articles", lambda each: bool(each.id)),
    ("published runs that must come out (`holds`), each to its own bound", "runs", lambda claim: claim.status == HOLDS),
    ("other published runs, to one point of the peak", "runs", lambda claim: claim.status in (REPRODUCED, DIFFERS)),
    (
        "runs whose source contradicts itself or names no convention, to one point",
        "runs",
        lambda claim: claim.status == FLAGGED,
    ),
    ("parameters of known models, to the last digit", "models", lambda claim: claim.unit == "parameters"),
    ("forward FLOPs of known models, to the last digit", "models", lambda claim: claim.unit == "FLOPs"),
    ("caches, weights and waits of serving, to the digits given", "serving", lambda each: bool(each.id)),
)


def catalogue_page() -> str:
    """docs/catalogue.md."""
    devices = list_devices()
    keys = dict.fromkeys(key for device in devices for key in device.sources)
    texts = source_texts()
    models = suanli.models().result.models
    return MADE + "\n".join((
        "# Catalogue\n",
        f"{len(devices)} accelerators and {len(models)} model presets. `suanli gpus NAME` and `suanli models NAME` "
        "show one in full, with notes; `suanli gpus NAME` also the prices seen.\n",
        "## Accelerators\n\nDense peaks of one package in TFLOP/s; empty where no source was found, and then no MFU is "
        "given.\n",
        table(("id", "name", "fp16", "bf16", "fp8", "memory", "GB/s", "W", "sources"),
              [_device(device) for device in devices], "--rrrrrr"),
        "\n### Sources\n",
        "\n".join(f"- `{key}`: {texts.get(key, key)}" for key in keys),
        "\n## Models\n",
        table(("name", "parameters", "active", "positions", "source"), [_model(row) for row in models], "-rrr"),
        "",
    ))  # fmt: skip


def curves_page() -> str:
    """docs/curves.md."""
    every = [find_curves(name) for name in devices_with_curves()]
    h100 = find_curves("h100-sxm")
    rate = 2 * 8192**3 / h100.matmul_s(8192, 8192, 8192) / TERA
    reduce_s = h100.collective_s("all_reduce", 2**30, 64, node_fabric("hgx-h100"))
    example = EXAMPLE_CURVES.replace("{RATE}", f"{rate:.0f}").replace("{MS}", f"{reduce_s * KILO:.1f}")
    measured, scaled = ([each for each in every if (each.extrapolated is None) == own] for own in (True, False))
    first = measured[0].file
    relatives: Rows = [(code(each.device.short_id), code(str(each.extrapolated)), each.note) for each in scaled]
    return MADE + "\n".join((
        "# Device curves\n",
        "How long a kernel or a collective takes on a device. The forms are [formulas](formulas.md) (`matmul_s`, "
        "`attention_s`, `memory_pass_s`, `link_transfer_s`, `ring_s`, `tree_all_reduce_s` and those they call); the "
        "numbers of a device are fitted to measured kernel times and ship as data, `src/suanli/catalog/curves/*.toml`. "
        "All of it takes arrays, so that a grid of layouts is one call.\n",
        example,
        f"## Measured\n\nData: {first.data}. Command: `{first.command}`. Errors are means of |predicted/measured − 1|; "
        "held out are whole shapes, a fifth at a time. The times are those of a micro-benchmark, forward layout only: "
        "no launch from Python, operands warm in the cache, clocks free to boost. A long run reaches about 0.8 to 0.9 "
        "of these rates, which is for the software stack's profile to say (`at_sustained`). Nothing was timed across "
        "nodes and no backward kernel of attention: the latencies and ratios used there, with their sources, stand in "
        "`networks.toml` and beside each attention curve.\n",
        table(("device", "curve", "kernels of", "counted on", "n", "fitted", "held out", "median", "9th decile"),
              [row for each in measured for row in _fits(each)], "----rrrrr"),
        "\n## Scaled from a relative\n\nNothing was measured on these. They take the curves of a relative, scaled by "
        "their own peaks, memory bandwidth and multiprocessors, and say so (`extrapolated`).\n",
        table(("device", "curves of", "why"), relatives),
        "",
    ))  # fmt: skip


EXAMPLE_CURVES = """```python
>>> from suanli.catalog.curves import find_curves
>>> from suanli.catalog.fabrics import node_fabric
>>> h100 = find_curves("h100-sxm")
>>> f"{2 * 8192**3 / h100.matmul_s(8192, 8192, 8192) / 1e12:.0f} TFLOP/s"
'{RATE} TFLOP/s'
>>> f"{h100.collective_s('all_reduce', 2**30, 64, node_fabric('hgx-h100')) * 1e3:.1f} ms"
'{MS} ms'
```
"""


def _fits(curves: DeviceCurves) -> Rows:
    """A row for every curve of a measured device."""
    file = curves.file
    sections = {"product": file.matmul, "attention": file.attention, "experts": file.experts, "": file.collectives}
    fits = [(f"{name} {key}", curve.fit) for name, kind in sections.items() for key, curve in kind.items()]
    return [
        (code(curves.device.short_id), name.strip(), fit.engine, fit.on + (f"; {fit.aside}" if fit.aside else ""),
         f"{fit.n:,}", *(f"{error:.1%}" for error in (fit.mape_fitted, fit.mape_held_out, fit.median_held_out,
                                                      fit.p90_held_out)))
        for name, fit in [*fits, ("memory", file.memory.fit)]
    ]  # fmt: skip


def _device(device: Any) -> tuple[str, ...]:
    def tera(dtype: str) -> str:
        value = device.peaks_flop_per_s.get(dtype)
        return "" if value is None else f"{value / TERA:,.6g}"

    memory, rate = device.memory_advertised_gb, device.memory_bytes_per_s
    return (
        code(device.short_id), device.name, tera("fp16"), tera("bf16"), tera("fp8"),
        "" if memory is None else f"{memory:g} {device.memory_unit or 'GB'}",
        "" if rate is None else f"{rate / GIGA:,.5g}", "" if device.tdp_w is None else f"{device.tdp_w:g}",
        ", ".join(device.sources),
    )  # fmt: skip


def _model(row: Any) -> tuple[str, ...]:
    active = "" if row.params_active == row.params else format_count(row.params_active)
    positions = "" if row.max_positions is None else f"{row.max_positions:,}"
    return code(row.name), f"{row.params:,}", active, positions, row.source


# --- blocks of hand-written pages ---------------------------------------------------------------------------------


def speed() -> str:
    """The benchmark's tables where it was run, else how to run it."""
    if not BENCHMARK.exists():
        return "Not measured in this checkout; `python benchmarks/count.py --json benchmarks/count.json` does."
    found = json.loads(BENCHMARK.read_text(encoding="utf-8"))
    named = ", ".join(f"{name} {value}" for name, value in found["machine"].items() if value)
    own: Rows = [
        (code(name), "one call, warm" if kind == "warm" else "whole process", format_seconds(row["median_s"], 3))
        for kind in ("warm", "cold")
        for name, row in found[kind].items() if "median_s" in row
    ]  # fmt: skip
    peers: Rows = [_peer(name, row) for name, row in found["peers"].items() if row["status"] == "ok"]
    heading = ("counter", "version", "FLOPs / exact", "first call", "process", "× Suanli", "peak memory")
    return "\n\n".join((
        f"Medians, {found['date']}, {named}. The calls and the last process count Llama-3.1-405B.",
        table(("what", "how", "time"), own, "--r"),
        f"Beside other counters, each in its own process: one forward pass of `{found['model']}`, "
        f"{found['seq']:,} tokens, every pair of positions ({found['exact_flops']:,} FLOPs), MACs taken as two "
        "FLOPs. A call is after imports and model building, a process is all of it.",
        table(heading, peers, "--rrrrr"),
    ))  # fmt: skip


def _peer(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    times = row.get("over_suanli", {}).get("process_s")
    return (
        name, row["version"], f"{row['flops_over_exact']:.4f}", format_seconds(row["first_call_s"], 3),
        format_seconds(row["process_s"], 3), "" if times is None else f"{times:.3g}",
        format_bytes(row["peak_rss_bytes"], 3),
    )  # fmt: skip


def verbs() -> str:
    """The verbs with what they do."""
    return table(("verb", "does"), [(f"[`{name}`]({{docs}}verbs/{name}.md)", summary(name)) for name in commands()])


def diffusers_classes() -> str:
    """Classes of diffusers read by formula, with the presets of each."""
    found: dict[str, list[str]] = {name: [] for name in known_classes()}
    for preset in presets().values():
        if preset.format == "diffusers":
            word = preset.config["_class_name"]
            kinds = {"ada_norm_zero": "DiTTransformer2DModel", "ada_norm_single": "PixArtTransformer2DModel"}
            found[kinds[preset.config["norm_type"]] if word == "Transformer2DModel" else word].append(preset.name)
    return table(("class", "presets"), [(f"`{name}`", ", ".join(names) or "—") for name, names in found.items()])


def serving_presets() -> str:
    """The engines' numbers."""
    names = serving_preset_names()[1:]
    rows: Rows = []
    for name in names:
        preset = find_serving_preset(name)
        numbers = (getattr(preset.profile, each) for each in NUMBERS)
        shown_numbers = (f"{value:.3g}" if value >= MILLI else f"{value / MICRO:.3g}e-6" for value in numbers)
        rows.append((code(name), f"{preset.rows:,}", *shown_numbers, format_percent(preset.half_width, 0)))
    return table(("preset", "points", *(code(each) for each in NUMBERS), "width"), rows, "-" + "r" * 11)


def serving_shown() -> str:
    """Errors recorded when the presets were fitted."""
    rows: Rows = []
    for each in serving_errors():
        mean, middle = ((each.mean_fitted, each.mean_held_out), (each.median_fitted, each.median_held_out))
        bars = " / ".join(format_percent(bar, 0) for bar in (each.bar_fitted, each.bar_held_out) if bar is not None)
        aim = f"{each.judged} {bars}" if each.judged else ""
        rows.append(
            (each.quantity, each.source, f"{each.n:,}", *map(_percent, (*mean, *middle, each.bias_held_out)), aim)
        )
    heading = (
        "quantity",
        "points",
        "n",
        "mean fitted",
        "mean held out",
        "median fitted",
        "median held out",
        "bias",
        "aim",
    )
    return table(heading, rows, "--rrrrrr-")


BLOCKS: dict[str, Callable[[], str]] = {
    "speed": speed,
    "accuracy": accuracy,
    "step times": lambda: f"{STEP_TIMES}\n\n{step_times()}",
    "verbs": verbs,
    "serving presets": serving_presets,
    "serving errors": serving_shown,
    "columns summarise": lambda: table(
        ("column", "type", "meaning"), [(code(name), kind, doc) for name, (kind, doc) in COLUMNS.items()]
    ),
    "diffusers": diffusers_classes,
    "one run": lambda: one_run(tuple(each.name for each in CONVENTIONS.values() if each.common)),
    **{f"summary {verb}": partial(summary, verb) for verb in RESULTS},
    **{f"options {verb}": partial(options, verb) for verb in RESULTS},
    **{f"json {verb}": partial(json_keys, verb) for verb in RESULTS},
}

_GENERATED = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_blocks(text: str, page: Path) -> str:
    """A page with its generated blocks made again; `{docs}` in a block becomes the way to docs/ from the page."""
    up = os.path.relpath(DOCS, page.parent)
    docs = "" if up == "." else f"{up}/"
    return _GENERATED.sub(lambda m: f"{m[1]}{BLOCKS[m[2]]().replace('{docs}', docs)}\n{m[3]}", text)


# --- pictures -----------------------------------------------------------------------------------------------------

_FACE = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)


def picture(command: str, result: Result, blocks: int) -> str:
    """The first blocks of a report as the terminal shows them, as SVG with no font from elsewhere."""
    document = document_of(result)
    screen = Console(record=True, width=92, file=io.StringIO(), force_terminal=True, color_system="truecolor",
                     highlight=False)  # fmt: skip
    screen.print(f"$ {command}", style="bold green", markup=False)
    screen.print()
    print_document(Document(document.headline, document.blocks[:blocks]), screen)
    layout = _FACE.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", "Menlo, Consolas, monospace")
    return screen.export_svg(title="suanli", code_format=layout, unique_id="suanli") + "\n"


def mfu_picture() -> str:
    """docs/img/mfu.svg."""
    command = "suanli mfu llama-3-8b --gpu h100-sxm --seq 8192 --tokens-per-second 8000"
    return picture(command, suanli.mfu("llama-3-8b", **EXAMPLE), 2)


# --- all of it ----------------------------------------------------------------------------------------------------

FILES: dict[str, Callable[[], str]] = {
    "docs/formulas.md": formulas_page,
    "docs/conventions.md": conventions_page,
    "docs/accuracy.md": lambda: accuracy_page().replace("{docs}", "").replace(" See [accuracy](accuracy.md).", ""),
    "docs/catalogue.md": catalogue_page,
    "docs/curves.md": curves_page,
    "docs/img/mfu.svg": mfu_picture,
}


def pages() -> list[Path]:
    """Hand-written pages."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    return [path for path in found if path.exists() and path.relative_to(ROOT).as_posix() not in FILES]


def made() -> dict[Path, str]:
    """What every file should hold."""
    os.environ["XDG_CONFIG_HOME"] = str(NOTHING)
    texts = {ROOT / name: make() for name, make in FILES.items()}
    for path in pages():
        texts[path] = with_outputs(with_blocks(path.read_text(encoding="utf-8"), path))
    return texts


def stale() -> list[str]:
    """Files that do not hold what they should; of a picture the words count, not how they are drawn."""
    found = []
    for path, text in made().items():
        held = path.read_text(encoding="utf-8") if path.exists() else ""
        if _words(path, held) != _words(path, text):
            found.append(path.relative_to(ROOT).as_posix())
    return found


def _words(path: Path, text: str) -> object:
    return re.findall(r"<text[^>]*>(.*?)</text>", text) if path.suffix == ".svg" else text


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or with `--check` name the stale ones and return 1 where there are any."""
    parser = argparse.ArgumentParser(description="Make what the documentation takes from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 with the names of stale files")
    wanted = parser.parse_args(arguments)
    names = stale()
    if wanted.check:
        sys.stdout.write("".join(f"{name} is stale: make docs\n" for name in names))
        return 1 if names else 0
    texts = made()
    for name in names:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(texts[ROOT / name], encoding="utf-8")
        sys.stdout.write(f"wrote {name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
