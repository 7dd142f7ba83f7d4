"""The modules of a counted model as a tree that unfolds: parameters, FLOPs and bytes of every part and of its parts."""

from __future__ import annotations

from dataclasses import dataclass, field

from suanli.nouns.counts import Count
from suanli.nouns.ledger import FORWARD, Ledger, Op
from suanli.nouns.result import Result
from suanli.report.common import share
from suanli.report.html_blocks import Setting, words
from suanli.report.html_tags import esc, tag
from suanli.report.words import translate
from suanli.units import format_bytes, format_count, format_flops

TITLE = "Modules"
_OPEN = 2  # levels that are unfolded at first
_COLUMNS = ("module", "parameters", "hardware FLOPs", "", "bytes moved")


@dataclass
class Branch:
    """A module with what lies in it; figures are sums over all of it."""

    name: str
    params: int = 0
    flops: int = 0
    moved: int = 0
    times: int = 1
    kind: str = ""
    parts: dict[str, Branch] = field(default_factory=dict)

    def add(self, row: Op) -> None:
        """A row of the ledger that lies in it."""
        self.params += row.params
        self.flops += row.hardware_flops
        self.moved += row.read_bytes + row.write_bytes


def module_tree(result: Result, at: Setting) -> str:
    """The tree as a section, nothing where the result has no modules."""
    if not isinstance(result.result, Count):
        return ""
    books: Count = result.result
    root = tree_of(books.ledger)
    if len(root.parts) < 2:
        return ""
    head = "".join(
        tag("span", words(each, at.lang), class_="name" if not place else "n") for place, each in enumerate(_COLUMNS)
    )
    button = tag("button", words("unfold all", at.lang), type="button", class_="unfold", aria_pressed="false")
    items = "".join(_item(each, root.flops, 1, at) for each in root.parts.values())
    tree = tag("div", head, class_="tree-head", aria_hidden="true") + tag("ul", items, class_="tree")
    name = translate(TITLE, at.lang)
    frame = tag("div", tree, class_="scroll", tabindex="0", role="region", aria_label=name)
    return tag("section", tag("h2", words(TITLE, at.lang)) + button + frame, class_="block modules", data_block=TITLE)


def tree_of(ledger: Ledger) -> Branch:
    """Rows by the parts of their paths, `model.layers.0-31.mlp.up_proj`."""
    root = Branch("")
    for row in ledger.rows:
        at = root
        at.add(row)
        for name in row.path.split("."):
            at = at.parts.setdefault(name, Branch(name))
            at.add(row)
        if row.pass_ == FORWARD:
            at.times, at.kind = row.times, row.kind
    return _shortened(root)


def _shortened(branch: Branch) -> Branch:
    """A module that holds nothing but one module is written with it, `model.layers`."""
    for name, part in list(branch.parts.items()):
        branch.parts[name] = _shortened(part)
    if branch.name and len(branch.parts) == 1:
        (only,) = branch.parts.values()
        only.name = f"{branch.name}.{only.name}"
        return only
    return branch


def _item(branch: Branch, whole: int, depth: int, at: Setting) -> str:
    cells = _cells(branch, whole, at)
    if not branch.parts:
        return tag("li", tag("div", cells, class_="leaf"))
    inner = "".join(_item(each, whole, depth + 1, at) for each in branch.parts.values())
    is_open = "" if depth < _OPEN else None
    return tag("li", tag("details", tag("summary", cells) + tag("ul", inner), open=is_open))


def _cells(branch: Branch, whole: int, at: Setting) -> str:
    copies = tag("span", f" × {branch.times:,}", class_="times") if branch.times > 1 and not branch.parts else ""
    figures = (
        (translate("parameters", at.lang), format_count(branch.params) if branch.params else ""),
        (translate("hardware FLOPs", at.lang), format_flops(branch.flops) if branch.flops else ""),
        ("", share(branch.flops, whole) if branch.flops else ""),
        (translate("bytes moved", at.lang), format_bytes(branch.moved) if branch.moved else ""),
    )
    named = tag("span", esc(branch.name) + copies, class_="name")
    return named + "".join(_figure(label, text) for label, text in figures)


def _figure(label: str, text: str) -> str:
    spoken = tag("span", esc(f"{label} "), class_="unseen") if label and text else ""
    return tag("span", spoken + esc(text), class_="n")
