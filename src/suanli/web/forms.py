"""The table of pages: which fields a verb's page has, in which order, of which kind; help from its command."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from suanli.errors import unknown_name
from suanli.web.verbs import verbs

KINDS = ("model", "gpu", "number", "text", "choice", "switch", "file", "area", "pins", "pair")
GROUPS = ("Count and measure", "Plan", "Look up", "Reports")
SCALES = ("double", "log", "linear")
# The command's help of MODEL speaks of files and hubs, which a page never opens.
HUB = "hub id"  # in the help of every MODEL
MODEL_HELP = "A preset: type to search. Or a layer expression like linear(4096, 11008), or a config.json pasted below."


@dataclass(frozen=True, kw_only=True)
class Slider:
    """A range beside a number: `by` doubling, logarithmic or linear in `step`; `unit` stands behind what it writes."""

    low: float
    high: float
    by: str
    step: float = 1
    unit: str = ""
    suffix: bool = False


@dataclass(frozen=True, kw_only=True)
class Field:
    """One option of a verb as a person gives it."""

    name: str
    kind: str
    label: str
    choices: tuple[str, ...] = ()
    list: str = ""
    slider: Slider | None = None
    either: tuple[str, str] | None = None
    when: tuple[str, ...] = ()
    hint: str = ""
    accept: str = ""
    example: str = ""
    help: str = ""
    more: bool = False
    many: bool = False
    search: bool = False
    listed: bool = False
    segmented: bool = False


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The page of one verb."""

    verb: str
    title: str
    group: str
    lead: str
    example: Mapping[str, str]
    fields: tuple[Field, ...]
    start: str = ""
    job: bool = False
    pick: str = ""
    names: frozenset[str] = field(default_factory=frozenset)


@functools.cache
def entries() -> dict[str, Entry]:
    """Every page by its verb, in reading order."""
    text = resources.files("suanli.web").joinpath("forms.toml").read_text(encoding="utf-8")
    return {verb: _entry(verb, table) for verb, table in tomllib.loads(text).items()}


def entry(verb: str) -> Entry:
    """The page of a verb. Raises UnknownNameError."""
    known = entries()
    if verb not in known:
        raise unknown_name("page", verb, known, where="the address", hint="Pages: " + ", ".join(known) + ".")
    return known[verb]


def grouped() -> list[tuple[str, list[Entry]]]:
    """Pages under the headings of the menu."""
    return [(group, [each for each in entries().values() if each.group == group]) for group in GROUPS]


def _entry(verb: str, table: dict[str, Any]) -> Entry:
    helps = option_help(verb)
    fields = tuple(_field(each, helps) for each in table.pop("fields"))
    return Entry(verb=verb, fields=fields, names=frozenset(each.name for each in fields), **table)


def _field(table: dict[str, Any], helps: Mapping[str, str]) -> Field:
    slider = table.pop("slider", None)
    for name in ("choices", "either", "when"):
        if name in table:
            table[name] = tuple(table[name])
    if "list" in table:
        table["choices"] = LISTS[table["list"]]()
    said = helps[table["name"]]
    table.setdefault("help", MODEL_HELP if HUB in said else said)
    return Field(slider=Slider(**slider) if slider else None, **table)


def option_help(verb: str) -> dict[str, str]:
    """What the command `suanli VERB` says of each of its options and arguments, by keyword."""
    return {each.name: each.help for each in verbs()[verb].options}


def _conventions() -> tuple[str, ...]:
    from suanli.catalog.conventions import CONVENTIONS  # noqa: PLC0415

    return tuple(CONVENTIONS)


def _failures() -> tuple[str, ...]:
    from suanli.catalog.failures import failure_tables  # noqa: PLC0415

    return tuple(failure_tables())


def _stacks() -> tuple[str, ...]:
    from suanli.catalog.stacks import list_stacks  # noqa: PLC0415

    return tuple(each.name for each in list_stacks())


def _engines() -> tuple[str, ...]:
    from suanli.catalog.serving_presets import serving_preset_names  # noqa: PLC0415

    return serving_preset_names()


def _topics() -> tuple[str, ...]:
    from suanli.catalog.lessons import TOPICS  # noqa: PLC0415

    return tuple(TOPICS)


def _quantities() -> tuple[str, ...]:
    from suanli.why import known_ids  # noqa: PLC0415

    return tuple(known_ids())


LISTS: dict[str, Callable[[], tuple[str, ...]]] = {
    "conventions": _conventions,
    "failures": _failures,
    "stacks": _stacks,
    "engines": _engines,
    "quantities": _quantities,
    "topics": _topics,
}
