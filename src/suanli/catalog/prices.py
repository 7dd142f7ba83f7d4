"""Dated rental prices: those shipped in `prices.toml`, and the user's own, which come before them.

The user's file is `$XDG_CONFIG_HOME/suanli/prices.toml`, by default `~/.config/suanli/prices.toml`.
"""

from __future__ import annotations

import functools
import os
import re
import stat
import tomllib
from importlib import resources
from pathlib import Path

from suanli.catalog.devices import find_device, source_texts
from suanli.errors import (
    ConfigError,
    Fault,
    FaultList,
    InputError,
    UnknownNameError,
    UnreadableFileError,
    nearest_names,
    shown,
)
from suanli.nouns.hardware import PRICE_KINDS, Device, Price
from suanli.units import MEBI, format_usd, parse

FILE = "prices.toml"
_REQUIRED = ("device", "kind", "usd_per_gpu_hour", "date", "source")
_OPTIONAL = ("provider", "node", "note")
_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")
_MAX_BYTES = MEBI  # a price list is small; a larger file is some other file


def user_prices_path() -> Path:
    """Where the user's own prices are looked for."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "suanli" / "prices.toml"


def list_prices(user_path: Path | None = None) -> tuple[Price, ...]:
    """Every price, the user's own first. Raises as `read_prices` does."""
    return _user_prices(user_path) + _shipped()


def find_price(device: Device, kind: str = "on-demand", user_path: Path | None = None) -> Price:
    """The price to assume for `device`, in $ per GPU-hour: the user's own, else the most recently dated one.

    Raises UnknownNameError where there is none, ConfigError or UnreadableFileError for a faulty user's file.
    """
    if kind not in PRICE_KINDS:
        raise _unknown_kind(kind)
    for prices in (_user_prices(user_path), _shipped()):
        fitting = [price for price in prices if price.device == device.id and price.kind == kind]
        if fitting:
            return max(fitting, key=lambda price: price.date)  # max keeps the first among equals
    raise UnknownNameError(
        Fault(
            code="unknown_price",
            message=f"no {kind} price for {device.short_id}",
            where="prices.toml",
            hint=f"Pass --price in $ per GPU-hour, or add it to {user_prices_path()}.",
        )
    )


def price_sentence(price: Price, user_path: Path | None = None) -> str:
    """The price as outputs name it, with the spread of those of its kind and date where they differ."""
    alike = [
        each.usd_per_gpu_hour
        for each in list_prices(user_path)
        if (each.device, each.kind, each.date, each.origin) == (price.device, price.kind, price.date, price.origin)
    ]
    if min(alike) == max(alike):
        return price.sentence()
    spread = f"{format_usd(min(alike))} to {format_usd(max(alike))}"
    return f"{price.sentence()}; the first of {len(alike)} of that date, {spread}"


def _unknown_kind(kind: str) -> UnknownNameError:
    return UnknownNameError(
        Fault(
            code="unknown_price_kind",
            message=f"unknown kind of price {shown(kind)}",
            expected=f"one of {', '.join(PRICE_KINDS)}",
            nearest=nearest_names(str(kind), PRICE_KINDS),
        )
    )


@functools.cache
def _shipped() -> tuple[Price, ...]:
    text = (resources.files("suanli.catalog") / FILE).read_text(encoding="utf-8")
    prices = _prices(tomllib.loads(text), FILE)
    unknown = {price.source for price in prices} - set(source_texts())
    assert not unknown, f"{FILE} names sources that sources.toml does not have: {sorted(unknown)}"
    return prices


def _user_prices(path: Path | None) -> tuple[Price, ...]:
    """The user's prices; none where no path was asked for and the usual file is absent."""
    if path is None and not os.path.lexists(user_prices_path()):
        return ()
    return read_prices(path or user_prices_path())


def read_prices(path: Path) -> tuple[Price, ...]:
    """The prices of a user's file.

    Raises UnreadableFileError where it is absent, too large or no TOML, or one ConfigError of all its faults.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe or a device would be read for ever
            raise _unreadable(path, "not a regular file")
        if status.st_size > _MAX_BYTES:
            raise _unreadable(path, "a file too large for a price list")
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        if isinstance(problem, UnreadableFileError):
            raise
        raise _unreadable(path, problem.strerror or type(problem).__name__) from problem
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as problem:
        raise _unreadable(path, f"not a TOML file: {problem}") from problem
    return _prices(table, str(path))


def _unreadable(path: Path, what: str) -> UnreadableFileError:
    hint = "Each entry is a [[price]] with device, kind, usd_per_gpu_hour, date and source."
    return UnreadableFileError(Fault(code="unreadable_file", message=what, where=str(path), hint=hint))


def _prices(table: dict[str, object], file: str) -> tuple[Price, ...]:
    """The prices of a parsed file. Raises one ConfigError that lists every fault of it."""
    faults = FaultList(ConfigError)
    for key in table.keys() - {"price"}:
        faults.add(**_unknown_key(key, file, ("price",)))
    entries = table.get("price", [])
    if not isinstance(entries, list):
        faults.add(code="bad_price", message="not a list", where=f"{file}: price", expected="[[price]] entries")
        entries = []
    found = [_price(entry, f"{file}: price[{at}]", file, faults) for at, entry in enumerate(entries)]
    faults.raise_if_any()
    return tuple(price for price in found if price is not None)


def _price(entry: object, where: str, file: str, faults: FaultList) -> Price | None:
    if not isinstance(entry, dict):
        faults.add(code="bad_price", message="not a table", where=where, got=shown(entry))
        return None
    before = len(faults.faults)
    for key in entry.keys() - set(_REQUIRED + _OPTIONAL):
        faults.add(**_unknown_key(key, where, _REQUIRED + _OPTIONAL))
    for key in _REQUIRED:
        if key not in entry:
            faults.add(code="missing_key", message="missing key", where=f"{where}.{key}")
    texts = {key: _text(entry, key, where, faults) for key in (*_REQUIRED, *_OPTIONAL) if key != "usd_per_gpu_hour"}
    device = _device_id(texts["device"], where, faults)
    usd = _usd(entry, where, faults)
    _check_kind_and_date(texts, where, faults)
    if len(faults.faults) > before:
        return None
    others = {key: text for key, text in texts.items() if key != "device"}
    return Price(device=device, usd_per_gpu_hour=usd, origin=file, **others)


def _unknown_key(key: str, where: str, known: tuple[str, ...]) -> dict[str, object]:
    return {
        "code": "unknown_key",
        "message": f"unknown key {shown(key)}",
        "where": where,
        "nearest": nearest_names(key, known),
    }


def _text(entry: dict[str, object], key: str, where: str, faults: FaultList) -> str:
    """The text under `key`; "" with a fault where it is no text or an empty required one."""
    value = entry.get(key, "")
    if not isinstance(value, str) or (key in _REQUIRED and key in entry and not value):
        faults.add(code="bad_value", message="not a text", where=f"{where}.{key}", got=shown(value))
        return ""
    return value


def _device_id(text: str, where: str, faults: FaultList) -> str:
    if not text:
        return ""  # already a fault
    try:
        return find_device(text, where=f"{where}.device").id
    except InputError as problem:
        faults.faults.extend(problem.faults)
        return ""


def _usd(entry: dict[str, object], where: str, faults: FaultList) -> int | float:
    value = entry.get("usd_per_gpu_hour", 0)
    try:
        return parse(value, "usd", f"{where}.usd_per_gpu_hour")  # type: ignore[arg-type]
    except InputError as problem:
        faults.faults.extend(problem.faults)
        return 0


def _check_kind_and_date(texts: dict[str, str], where: str, faults: FaultList) -> None:
    kind, date = texts["kind"], texts["date"]
    if kind and kind not in PRICE_KINDS:
        faults.add(
            code="unknown_price_kind",
            message=f"unknown kind of price {shown(kind)}",
            where=f"{where}.kind",
            expected=f"one of {', '.join(PRICE_KINDS)}",
            nearest=nearest_names(kind, PRICE_KINDS),
        )
    if date and not _DATE.fullmatch(date):
        faults.add(
            code="bad_date",
            message="not a date",
            where=f"{where}.date",
            got=shown(date),
            expected="a year, month or day like 2026-03",
        )
