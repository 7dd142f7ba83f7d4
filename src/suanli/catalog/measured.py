"""The measured training steps of `measured_runs.csv`, and what is known of the machine and stack of each source."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources

from suanli.catalog.devices import Row, read_rows
from suanli.nouns.measured import MeasuredStep

FILE, SOURCES = "measured_runs.csv", "measured_sources.toml"
_RECOMPUTE = {"sel": "selective", "none": "none", "full": "full"}
_WHOLE = {
    "gpus": "gpus", "tp": "tp", "pp": "pp", "dp": "dp", "cp": "cp", "global_batch": "gbs", "seq": "seq",
    "hidden": "h", "num_layers": "l", "heads": "a", "kv_heads": "kv", "ffn": "ff", "vocab": "V", "zero": "zero",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SourceFacts:
    """Stack, node and adapters of one source's runs; "usual": those of the GPU's usual node."""

    source: str
    stack: str
    node: str
    nics: str
    why: str


@functools.cache
def measured_steps() -> tuple[MeasuredStep, ...]:
    """Every measured step, in the file's order."""
    return tuple(_step(row) for row in read_rows(FILE))


def _step(row: Row) -> MeasuredStep:
    return MeasuredStep(
        source=row["source"], id=row["id"], model=row["model"], gpu=row["gpu"],
        vpp=int(row["interleave(0=unpublished)"]) or None, micro_batch=int(row["mbs"]) or None,
        gated=row["gated"] == "1", sp=row["sp"] == "1", recompute=_RECOMPUTE[row["recompute"]], dtype=row["prec"],
        step_s=float(row["measured_step_s"]), note=row["note"],
        **{name: int(row[column]) for name, column in _WHOLE.items()},
    )  # fmt: skip


@functools.cache
def source_facts() -> dict[str, SourceFacts]:
    """Stack and network by source, as `measured_sources.toml` has them."""
    text = (resources.files("suanli.catalog") / SOURCES).read_text(encoding="utf-8")
    return {entry["source"]: SourceFacts(**entry) for entry in tomllib.loads(text)["source"]}
