"""Blocks of hand-written pages between `<!-- generated: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from making_docs.accuracy_page import STEP_TIMES, accuracy, serving_shown, step_times
from making_docs.conventions_page import one_run
from making_docs.markdown import Rows, code, table
from making_docs.shown import ROOT
from making_docs.verbs import RESULTS, commands, json_keys, options, summary
from suanli.catalog.conventions import CONVENTIONS
from suanli.catalog.presets import presets
from suanli.catalog.serving_presets import find_serving_preset, serving_preset_names
from suanli.nouns.serving_profile import NUMBERS
from suanli.nouns.summary import COLUMNS
from suanli.readers.diffusers import known_classes
from suanli.units import MICRO, MILLI, format_bytes, format_percent, format_seconds

DOCS = ROOT / "docs"
BENCHMARK = ROOT / "benchmarks" / "count.json"


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
    **{f"summary {verb}": partial(summary, verb) for verb in commands()},
    **{f"options {verb}": partial(options, verb) for verb in commands()},
    **{f"json {verb}": partial(json_keys, verb) for verb in RESULTS},
}

_GENERATED = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_blocks(text: str, page: Path) -> str:
    """A page with its generated blocks made again; `{docs}` in a block becomes the way to docs/ from the page."""
    up = os.path.relpath(DOCS, page.parent)
    docs = "" if up == "." else f"{up}/"
    return _GENERATED.sub(lambda m: f"{m[1]}{BLOCKS[m[2]]().replace('{docs}', docs)}\n{m[3]}", text)
