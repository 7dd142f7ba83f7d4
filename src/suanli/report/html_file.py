"""One self-contained HTML file of a result: styles, scripts, pictures and the JSON inside; no request is made of it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib import resources

from suanli.nouns.result import Result
from suanli.report.about import about
from suanli.report.drawn import converter
from suanli.report.html import blocks_html
from suanli.report.html_blocks import Setting, section, words
from suanli.report.html_notes import Notes
from suanli.report.html_tags import esc, json_script, tag
from suanli.report.pages import document_of
from suanli.report.words import known_language, language, translate
from suanli.units import units_as
from suanli.version import VERSION

HTML_LANG = {"en": "en", "zh": "zh-Hans"}
_SAFE = "default-src 'none'; img-src data: blob:; base-uri 'none'; form-action 'none'"


def html_file(result: Result, lang: str | None = None, units: str | None = None) -> str:
    """The file's text, in the language of `spoken_in` where none is named.

    Raises MissingExtraError where what draws the pictures is not installed, UnknownNameError for another language.
    """
    lang = known_language(lang or language())
    with units_as(units):
        document, notes = document_of(result), Notes(result)
        at = Setting(lang, notes.asked)
        blocks = blocks_html(result, document, at)
        facts = section(about(result), at)
        report = tag("div", blocks + facts, class_="report")
        body = "\n".join((
            _top(result, document.headline, lang), tag("main", report), notes.html(lang),
            json_script(result.to_dict(), id="suanli-result"),
        ))  # fmt: skip
    scripts = [*([vega_bundle()] if 'class="chart"' in blocks else []), asset("report.js")]
    return _whole(document.headline, body, scripts, lang)


def _whole(title: str, body: str, scripts: Iterable[str], lang: str) -> str:
    """Head and body; the policy names what is inside by its hash, and nothing else."""
    styles = [asset("report.css"), asset("file.css")]
    policy = f"{_SAFE}; script-src {_hashes(scripts)}; style-src {_hashes(styles)}"
    head = "\n".join((
        '<meta charset="utf-8">', '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f'<meta name="generator" content="Suanli {VERSION}">', tag("title", words_plain(title, lang)),
        *(tag("style", each) for each in styles),
    ))  # fmt: skip
    tail = "\n".join(tag("script", each) for each in scripts)
    page = tag("html", f"\n{tag('head', head)}\n{tag('body', body + tail)}\n", lang=HTML_LANG[lang])
    return f"<!doctype html>\n{page}\n"


def words_plain(text: str, lang: str) -> str:
    """A text where no element may stand."""
    return esc(translate(text, lang))


def _hashes(texts: Iterable[str]) -> str:
    found = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{each}'" for each in found)


@cache
def asset(name: str) -> str:
    """A file shipped beside this one."""
    return (resources.files("suanli.report") / "assets" / name).read_text(encoding="utf-8")


@cache
def vega_bundle() -> str:
    """What draws pictures in a browser, as one script. Raises MissingExtraError."""
    return str(converter().javascript_bundle())


# --- head and foot of the page ------------------------------------------------------------------------------------


def _top(result: Result, headline: str, lang: str) -> str:
    brand = tag("p", tag("b", "Suanli 算力") + tag("span", f" {result.kind}"), class_="brand")
    theme = tag("button", words("dark / light", lang), type="button", class_="theme", aria_pressed="false")
    save = tag("button", words("save the JSON", lang), type="button", data_save=f"suanli-{result.kind}.json")
    tools = tag("div", theme + save, class_="tools")
    return tag("header", tag("div", brand + tools, class_="bar") + tag("h1", words(headline, lang)), class_="top")
