"""Where the numbers of a report come from, laid into it: notes that a click opens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from suanli.nouns.result import Result
from suanli.report.html_blocks import words
from suanli.report.html_tags import esc, tag
from suanli.report.whys import WhyNote, reason_of
from suanli.report.words import said, translate


@dataclass
class Notes:
    """The notes of a report's numbers, gathered while its blocks are written."""

    result: Result
    found: dict[tuple[str, str, str], WhyNote] = field(default_factory=dict)

    def asked(self, block: str, label: str, column: str) -> bool:
        """Whether something can be said of a number; the note is kept."""
        note = reason_of(self.result, block, label, column)
        if note is not None:
            self.found[block, label, column] = note
        return note is not None

    def html(self, lang: str) -> str:
        """A template for every number; notes that are the same are written once."""
        first: dict[str, str] = {}
        parts = []
        for key, note in self.found.items():
            body, name = note_html(note, lang), "|".join(key)
            if body in first:
                parts.append(tag("template", "", data_why=name, data_same=first[body]))
            else:
                first[body] = f"why-{len(first) + 1}"
                parts.append(tag("template", body, data_why=name, id=first[body]))
        return "\n".join(parts)


def note_html(note: WhyNote, lang: str) -> str:
    """A note: what the number is, its formula with the numbers put in, its source; what stands in a dialog."""
    close = tag("button", "×", type="button", class_="close", aria_label=translate("close", lang))
    parts = [tag("h3", _title(note.title, lang)), tag("p", words(note.doc, lang), class_="doc")]
    if note.formula:
        parts.append(tag("p", esc(translate(note.formula, lang)), class_="formula"))
    parts += [_pairs("numbers put in", note.values, lang), _pairs("legend", note.legend, lang)]
    if note.source:
        parts.append(tag("p", f"{words('source', lang)}: {words(note.source, lang)}", class_="source"))
    return "".join(parts) + close


def _title(text: str, lang: str) -> str:
    """`Time: MFU`: block, label and column, each in the language; labels may hold a colon of their own."""
    left, made = text.split(": "), []
    while left:
        ends = range(len(left), 0, -1)
        end = next((end for end in ends if said(": ".join(left[:end]), lang)[1]), 1)
        made.append(translate(": ".join(left[:end]), lang))
        left = left[end:]
    return esc(("：" if lang == "zh" else ": ").join(made))


def _pairs(title: str, pairs: Iterable[tuple[str, str]], lang: str) -> str:
    inner = "".join(tag("dt", esc(name)) + tag("dd", words(text, lang)) for name, text in pairs)
    return tag("h4", words(title, lang)) + tag("dl", inner) if inner else ""
