"""The worked lessons, one a file: each computes what it shows with the functions the verbs use.

Their words stand in `catalog/lessons/`, English and 中文 side by side; a lesson is a list of blocks
(`nouns/lesson.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from suanli.catalog.lessons import LANGUAGES, TOPICS, lesson_file, part
from suanli.nouns.lesson import Contents, Lesson, Topic

__all__ = ["LANGUAGES", "TOPICS", "contents", "teach"]


def teach(topic: str, lang: str, options: Mapping[str, Any] | None = None) -> Lesson:
    """The lesson, computed now. `options` are keywords of its `lesson` function."""
    assert topic in TOPICS and lang in LANGUAGES, (topic, lang)
    lesson: Callable[..., Lesson] = import_module(f"{__name__}.{topic}").lesson
    return lesson(lang, **(options or {}))


def contents(lang: str) -> Contents:
    """The lessons that there are."""
    titles = ((topic, part(lesson_file(topic)["lesson"], "title", lang)) for topic in TOPICS)
    return Contents(lang=lang, topics=tuple(Topic(topic=topic, title=title) for topic, title in titles))
