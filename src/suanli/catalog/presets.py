"""Model presets: facts from public configs and papers, found by name, forgivingly.

Names match without regard to case, dashes, underscores and spaces; a dot counts (`gpt3-1.3b` is not `gpt3-13b`),
but may be left out where only one name fits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from suanli.errors import AmbiguousNameError, Fault, UnknownNameError, nearest_names, shown

SHOWN_CANDIDATES = 8


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One model. `params` is the count of its PyTorch class, None where no class exists to check it against."""

    name: str
    title: str
    format: str = field(metadata={"doc": "hf, diffusers, decoder, encoder-decoder, estimate or expression"})
    config: Mapping[str, Any]
    source: str
    task: str = ""
    aliases: tuple[str, ...] = ()
    params: int | None = None
    params_published: str | None = None
    date: str | None = None
    max_positions: int | None = None
    notes: str = ""
    family: str = ""


@cache
def presets() -> dict[str, Preset]:
    """Every preset by name, sorted by family file and by place in it."""
    found = {}
    for path in sorted(files("suanli.catalog").joinpath("models").iterdir(), key=lambda p: p.name):
        if path.name.endswith(".json"):
            family = msgspec.json.decode(path.read_bytes())
            for row in family["models"]:
                known = {key: row[key] for key in Preset.__dataclass_fields__ if key in row}
                known["aliases"] = tuple(row.get("aliases", ()))
                preset = Preset(**known | {"family": family["family"]})
                found[preset.name] = preset
    return found


def _key(name: str) -> str:
    """What must agree for two spellings to be one name."""
    return re.sub(r"[-_\s]+", "", name.lower())


@cache
def _spellings() -> dict[str, str]:
    """Every spelling, normalised, to the preset's name."""
    table: dict[str, str] = {}
    for preset in presets().values():
        for spelling in (preset.name, *preset.aliases):
            table.setdefault(_key(spelling), preset.name)
            table.setdefault(_key(spelling.split("/")[-1]), preset.name)
    return table


def find_preset(name: str, where: str = "MODEL") -> Preset:
    """The preset a name means. Raises AmbiguousNameError listing candidates, UnknownNameError naming the nearest."""
    spellings = _spellings()
    key = _key(name)
    if key in spellings:
        return presets()[spellings[key]]
    undotted = {target for spelling, target in spellings.items() if spelling.replace(".", "") == key.replace(".", "")}
    if len(undotted) == 1:
        return presets()[undotted.pop()]
    candidates = sorted(undotted or _fitting(name))
    if len(candidates) == 1:
        return presets()[candidates[0]]
    raise _ambiguous(name, candidates, where) if candidates else _unknown(name, where)


def _tokens(name: str) -> list[str]:
    """Words and numbers of a name: `Llama3-405B` gives llama, 3, 405b."""
    return re.findall(r"\d+(?:\.\d+)?[a-z]?(?![a-z])|[a-z]+", name.lower())


def _fitting(name: str) -> set[str]:
    """Presets one of whose spellings holds every word asked for, a number also as the start of a dotted one."""
    wanted = _tokens(name)
    if not wanted:
        return set()
    exact, begun = set(), set()
    for preset in presets().values():
        for spelling in (preset.name, *preset.aliases):
            held = _tokens(spelling)
            if all(word in held for word in wanted):
                exact.add(preset.name)
            if all(any(word == have or have.startswith(f"{word}.") for have in held) for word in wanted):
                begun.add(preset.name)
    return exact or begun


def _ambiguous(name: str, candidates: list[str], where: str) -> AmbiguousNameError:
    listed = ", ".join(candidates[:SHOWN_CANDIDATES])
    more = f" and {len(candidates) - SHOWN_CANDIDATES} more" if len(candidates) > SHOWN_CANDIDATES else ""
    return AmbiguousNameError(
        Fault(
            code="ambiguous_model",
            message=f"model name {shown(name)} fits {len(candidates)} presets",
            where=where,
            expected=f"one of {listed}{more}",
            nearest=tuple(candidates[:SHOWN_CANDIDATES]),
            hint="Give the whole name; `suanli models` lists them.",
        )
    )


def _unknown(name: str, where: str) -> UnknownNameError:
    known = presets()
    return UnknownNameError(
        Fault(
            code="unknown_model",
            message=f"unknown model {shown(name)}",
            where=where,
            expected=f"one of {len(known)} presets, a config.json, a folder with one, or a layer expression",
            nearest=nearest_names(name, known),
            hint="`suanli models` lists the presets.",
        )
    )
