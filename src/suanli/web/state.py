"""The state of a page: what its address says. Copying the address copies the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from suanli.errors import FaultList, nearest_names, shown
from suanli.web.forms import Entry

LANGUAGES = ("en", "zh")
UNITS = ("iec", "si", "exact")
ASKED = ("block", "label", "column")  # of which number, beside the state
LONGEST = 4000  # characters of one value


@dataclass(frozen=True, kw_only=True)
class State:
    """Fields as typed, in the order of the page; language and units beside them."""

    verb: str
    fields: Mapping[str, tuple[str, ...]]
    lang: str = "en"
    units: str = "iec"

    def value(self, name: str) -> str:
        """What was typed, empty where nothing was."""
        return next(iter(self.fields.get(name, ())), "")

    def query(self, **changed: str) -> str:
        """The state as a query string, language and units where they are not the usual."""
        pairs = [(name, value) for name, values in self.fields.items() for value in values]
        own = {"lang": self.lang, "units": self.units} | changed
        usual = {"lang": LANGUAGES[0], "units": UNITS[0]}
        return urlencode([*pairs, *((name, value) for name, value in own.items() if usual.get(name) != value)])


def read_state(entry: Entry, pairs: Iterable[tuple[str, str]]) -> State:
    """The state an address tells; the page's example where it tells none. Raises InputError for what no page has."""
    faults = FaultList()
    given: dict[str, list[str]] = {}
    lang, units = LANGUAGES[0], UNITS[0]
    for name, value in pairs:
        if name == "lang":
            lang = _one_of(name, value, LANGUAGES, faults)
        elif name == "units":
            units = _one_of(name, value, UNITS, faults)
        elif name in entry.names:
            _take(given, name, value, faults)
        elif name not in ASKED:
            faults.add(code="unknown_option", message=f"the page has no field {shown(name)}", where="the address",
                       nearest=nearest_names(name, entry.names))  # fmt: skip
    faults.raise_if_any()
    kept = {name: tuple(given[name]) for name in _order(entry) if given.get(name)}
    return State(verb=entry.verb, fields=kept or example(entry), lang=lang, units=units)


def _take(given: dict[str, list[str]], name: str, value: str, faults: FaultList) -> None:
    if len(value) > LONGEST:
        faults.add(code="too_long", message="the value is too long", where=f"--{name.replace('_', '-')}",
                   got=f"{len(value):,} characters", expected=f"at most {LONGEST:,}")  # fmt: skip
    elif value.strip():
        given.setdefault(name, []).append(value.strip())


def example(entry: Entry) -> dict[str, tuple[str, ...]]:
    """The fields a page opens with."""
    return {name: (value,) for name, value in entry.example.items()}


def _order(entry: Entry) -> tuple[str, ...]:
    return tuple(each.name for each in entry.fields)


def _one_of(name: str, value: str, known: tuple[str, ...], faults: FaultList) -> str:
    if value not in known:
        faults.add(code=f"unknown_{name}", message=f"no such {name}", where="the address", got=shown(value),
                   expected="one of " + ", ".join(known))  # fmt: skip
        return known[0]
    return value


def given(entry: Entry, state: State) -> dict[str, Any]:
    """The request to the verb: texts, true for switches, lists where an option takes several."""
    found: dict[str, Any] = {}
    for each in entry.fields:
        values = state.fields.get(each.name)
        if not values:
            continue
        if each.kind == "switch":
            found[each.name] = True
        elif each.kind == "pair" or each.many:
            found[each.name] = list(values)
        else:
            found[each.name] = values[0]
    if entry.verb == "learn":
        found["lang"] = state.lang
    return found
