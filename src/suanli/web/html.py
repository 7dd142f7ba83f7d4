"""Templates of the page, its assets, and errors as the page shows them."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from suanli.errors import Fault, SuanliError
from suanli.report.html_file import asset as report_asset
from suanli.report.html_file import vega_bundle
from suanli.report.words import said as worded
from suanli.web.forms import Entry
from suanli.web.verbs import verbs
from suanli.web.words import said

OWN = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "shell.js": "text/javascript",
    "widgets.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
REPORTS = {"report.css": "text/css", "report.js": "text/javascript"}
VEGA = {"vega.js": "text/javascript"}
ASSETS = OWN | REPORTS | VEGA


@functools.cache
def asset(name: str) -> bytes:
    """A style, script or picture the page loads. Raises MissingExtraError where what draws charts is absent."""
    if name in VEGA:
        return vega_bundle().encode()
    if name in REPORTS:
        return report_asset(name).encode()
    return (resources.files("suanli.web") / "assets" / name).read_bytes()


@functools.cache
def asset_address(name: str) -> str:
    """The address of an asset, which changes with its content: it may be kept for ever."""
    from suanli.version import VERSION  # noqa: PLC0415

    if name in VEGA:  # not read before a picture is drawn: it is large
        return f"/assets/{name}?v={VERSION}"
    return f"/assets/{name}?v={hashlib.sha256(asset(name)).hexdigest()[:10]}"


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("suanli.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.globals["asset"] = asset_address
    return made


def render(template: str, lang: str, **values: Any) -> str:
    """A template in the language; every value is escaped."""
    return _environment().get_template(template).render(_=lambda text: said(text, lang), lang=lang, **values)


def field_of(entry: Entry, fault: Fault) -> str:
    """The field a fault belongs to, empty where it belongs to none: `--global-batch` or `MODEL` to a name."""
    first = (fault.where or "").split()[0:1]
    word = first[0].strip(":,") if first else ""
    flags = {each.flag: each.name for each in verbs()[entry.verb].options}
    found = flags.get(word) or word.lower()
    return found if found in entry.names else ""


def problem_html(entry: Entry, problem: SuanliError, lang: str) -> str:
    """Faults as a list: each with its field, and the nearest names to choose."""
    return render("problem.html", lang, faults=[_fault(entry, each, lang) for each in problem.faults])


def _fault(entry: Entry, fault: Fault, lang: str) -> Mapping[str, Any]:
    field = field_of(entry, fault)
    message, known = worded(fault.message, lang)
    parts = [message if field or fault.where is None else _placed(message, fault.where, lang)]
    parts += [worded(f"got {fault.got}", lang)[0]] if fault.got else []
    if fault.expected:
        expected, both = worded(f"expected {fault.expected}", lang)
        known = known and both
        parts.append(expected)
    hint, hint_known = worded(fault.hint or "", lang)
    stop, between = (".", "; ") if lang == "en" else ("。", "；")
    return {
        "field": field, "text": between.join(parts) + stop, "nearest": fault.nearest if field else (), "hint": hint,
        "foreign": not known, "hint_foreign": not hint_known,
    }  # fmt: skip


def _placed(message: str, place: str, lang: str) -> str:
    """A message with the place it is of."""
    return f"{message} in {place}" if lang == "en" else f"{place}：{message}"
