"""A check of HTML without a browser: every tag closed in order, and what stands in the document."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "hr", "input"}


@dataclass
class Element:
    """A tag with its attributes, the text in it and the elements around it."""

    name: str
    attributes: dict[str, str]
    around: tuple[str, ...]
    text: str = ""

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()


@dataclass
class Parsed(HTMLParser):
    """Elements in order; raises AssertionError for tags that are not closed, or closed out of order."""

    source: str
    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.source)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice: {tag} {names}"
        found = Element(tag, {name: value or "" for name, value in attrs}, tuple(each.name for each in self.open))
        self.elements.append(found)
        if tag not in VOID:
            self.open.append(found)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1].name == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for each in self.open:
            each.text += data

    def all(self, name: str, class_: str = "") -> list[Element]:
        """Elements of a name, and of a class where one is given."""
        return [each for each in self.elements if each.name == name and (not class_ or class_ in each.classes)]
