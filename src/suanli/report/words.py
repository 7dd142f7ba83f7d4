"""What a report says in another language: titles, headers and labels word for word, sentences by their pattern.

The texts lie in `words_zh/*.toml`, English = 中文. A key with braces is a pattern: `{n}`, `{m}`, `{k}` stand for a
number, `{q…}` for a number with its unit, `{t…}` for a text that is translated in turn, `{parts}` for names with their
amounts, `{counts}` for numbers of named things, `{each}` for a list of texts, `{w…}` for one word, `{o…}` for a name
that may hold blanks, `{file}` for a path, any other name for what stays as it is. What stands behind the letter of a
legend (`T: tokens [B]`), and the parts of a list of sources, are looked up by themselves.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from suanli.errors import unknown_name

LANGUAGES = {"en": "English", "zh": "中文"}
_LANGUAGE: ContextVar[str] = ContextVar("language of reports", default="en")

_NUMBER = r"[+\-−$±]?\d[\d.,]*(?:e[+-]?\d+)?"
_QUANTITY = rf"n/a|[+\-−±]? ?\$?{_NUMBER}(?: ?(?:%|[A-Za-zµ/·²]+))?"
_HOLE = re.compile(r"\{(\w+)\}")
_HOLES = {  # what stands in a hole, by the first letter of its name
    "n": _NUMBER, "m": _NUMBER, "k": _NUMBER, "q": _QUANTITY, "w": r"[^\s;]+", "o": r"(?:(?!; ).)+?",
    "f": r"(?:(?!: |; ).)*\.[^\s:;]+",
}  # fmt: skip
# What is the same in every language: figures with their units, names without a blank.
_NEUTRAL = re.compile(rf"(?:{_QUANTITY})|[^\s一-鿿]*[\d_./:=#()\-][^\s一-鿿]*|[\W\d]*")
_DAYS = re.compile(rf"({_NUMBER}) days?")
_LETTER = re.compile(r"([^\s:]{1,10}(?:, \S+| … \S+)?): ([^\[\]]+)(| \[[^\]]+\])")  # its letter, its words, its unit


@contextmanager
def spoken_in(lang: str | None) -> Iterator[None]:
    """Reports inside are in this language where none is named; None leaves it. Raises UnknownNameError."""
    token = _LANGUAGE.set(known_language(lang or _LANGUAGE.get()))
    try:
        yield
    finally:
        _LANGUAGE.reset(token)


def language() -> str:
    """The language reports are in where none is named."""
    return _LANGUAGE.get()


def known_language(lang: str) -> str:
    """The language itself. Raises UnknownNameError where reports are not written in it."""
    if lang not in LANGUAGES:
        hint = "Languages: " + ", ".join(LANGUAGES) + "."
        raise unknown_name("language", lang, LANGUAGES, where="--lang", hint=hint)
    return lang


def translate(text: str, lang: str) -> str:
    """The text in `lang`; as it is where there is no translation."""
    return said(text, lang)[0]


@lru_cache(maxsize=8192)
def said(text: str, lang: str) -> tuple[str, bool]:
    """The text in `lang`, and whether all of it is in that language, or the same in every one."""
    if lang == "en":
        return text, True
    bare = text.strip()
    exact = _table(lang).get(bare)
    if exact is not None:
        return exact, True
    days = _DAYS.fullmatch(bare)
    if days:
        return f"{days[1]} 天", True
    if _NEUTRAL.fullmatch(bare):
        return text, True
    found = next((made for each in _patterns(lang) if (made := each.applied(bare, lang)) is not None), None)
    if found is not None:
        return found
    if "; " in bare:
        return _listed(bare, lang)
    letter = _LETTER.fullmatch(bare)
    if letter and letter[2] in _table(lang) and not (len(letter[1]) > 2 and letter[1] in _table(lang)):
        return f"{letter[1]}：{_table(lang)[letter[2]]}{letter[3]}", True
    return text, bool(re.search(r"[一-鿿]", bare))


def _listed(text: str, lang: str) -> tuple[str, bool]:
    """Sources in one line: each by itself, where one of them is known; English to its last mark where none is."""
    parts = [said(each, lang) for each in text.split("; ")]
    if all(made == each for (made, _), each in zip(parts, text.split("; "), strict=True)):
        return text, False
    return "；".join(made for made, _ in parts), all(known for _, known in parts)


@dataclass(frozen=True)
class _Pattern:
    """A sentence with holes."""

    match: re.Pattern[str]
    to: str

    def applied(self, text: str, lang: str) -> tuple[str, bool] | None:
        """The translation, None where the text is another sentence."""
        found = self.match.fullmatch(text)
        if found is None:
            return None
        parts = {name: _part(name, part, lang) for name, part in found.groupdict().items()}
        made = _HOLE.sub(lambda hole: parts[hole[1]][0], self.to)
        return made, all(known for _, known in parts.values())


def _part(name: str, text: str, lang: str) -> tuple[str, bool]:
    """What stands in a hole: figures and texts in the language, names as they are, amounts part by part."""
    if name == "parts":
        return "，".join(_amount(each, lang) for each in text.split(", ")), True
    if name == "counts":
        return "，".join(_counted(each, lang) for each in text.split(", ")), True
    if name == "each":
        return "，".join(translate(each, lang) for each in text.split(", ")), True
    return said(text, lang) if name[0] in "tq" else (text, True)


def _amount(text: str, lang: str) -> str:
    """`embedding 1.957 GiB`: the name in the language."""
    name, blank, amount = text.partition(" ")
    return f"{translate(name, lang)}{blank}{amount}"


def _counted(text: str, lang: str) -> str:
    """`26 article wrong`: the name in the language, its number behind it."""
    number, _, name = text.partition(" ")
    return f"{translate(name, lang)} {number}"


@cache
def _table(lang: str) -> dict[str, str]:
    """Every text of a language, patterns too."""
    found: dict[str, str] = {}
    for file in sorted((resources.files("suanli.report") / f"words_{lang}").iterdir(), key=lambda each: each.name):
        found |= {key.strip(): text for key, text in tomllib.loads(file.read_text(encoding="utf-8")).items()}
    return found


@cache
def _patterns(lang: str) -> tuple[_Pattern, ...]:
    """Those with holes, the ones that say most first."""
    holed = {key: text for key, text in _table(lang).items() if _HOLE.search(key)}
    order = sorted(holed, key=lambda key: -len(_HOLE.sub("", key)))
    return tuple(_Pattern(_expression(key), holed[key]) for key in order)


def _expression(key: str) -> re.Pattern[str]:
    parts = _HOLE.split(key)  # text, name, text, name, text
    made = "".join(re.escape(part) if not place % 2 else _hole(part) for place, part in enumerate(parts))
    return re.compile(made)


def _hole(name: str) -> str:
    return f"(?P<{name}>{_HOLES.get(name[0], '.+?')})"
