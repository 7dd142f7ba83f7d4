"""What a request may reach beside itself: everything on the command line; its own uploads alone over the web.

Readers ask here before they look at a path, import what somebody named, or fetch it. Inside `only(paths)` nothing but
those files may be opened, and nothing is imported or fetched: such names are refused before anything is tried, so that
not even whether a file exists can be told from an answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from suanli.errors import Fault, InputError, shown

_ALLOWED: ContextVar[frozenset[str] | None] = ContextVar("allowed", default=None)
FETCH = "`suanli models` lists the presets; of another model give its config.json."
NOT_BUILT = "a config of a request over the web is read, never built and run"  # it may name code and weights
PRESET = "preset "  # what stands before the name of a config that ships with Suanli
UPLOAD = "Upload the file, or run Suanli on the machine where it lies."


@contextmanager
def only(paths: Iterable[str | os.PathLike[str]]) -> Iterator[None]:
    """Inside, these files may be opened and nothing else that a request names; no import, no fetch."""
    token = _ALLOWED.set(frozenset(os.fspath(path) for path in paths))
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def is_closed() -> bool:
    """Whether a request may reach its own uploads alone."""
    return _ALLOWED.get() is not None


def may_open(path: str | os.PathLike[str]) -> bool:
    """Whether a path that a request names may be looked at. What lies in an allowed folder is allowed."""
    allowed = _ALLOWED.get()
    if allowed is None:
        return True
    text = os.fspath(path)
    return text in allowed or (
        ".." not in Path(text).parts and any(str(each) in allowed for each in Path(text).parents)
    )


def may_build(where: str) -> bool:
    """Whether a framework may build a module from the config that is from `where`: over the web presets alone."""
    return not is_closed() or where.startswith(PRESET)


def check_path(path: str | os.PathLike[str], where: str | None = None) -> None:
    """Raise InputError where the path may not be looked at."""
    if not may_open(path):
        raise InputError(Fault(code="path_refused", message="no path of the server's is opened for a request over the "
                               "web", where=where, got=shown(os.fspath(path)), hint=UPLOAD))  # fmt: skip


def check_run(text: str, where: str = "MODEL") -> None:
    """Raise InputError where nothing that a request names may be imported and run."""
    if is_closed():
        raise InputError(Fault(code="import_refused", message="nothing that a request over the web names is imported "
                               "or run", where=where, got=shown(text),
                               hint="Run Suanli on a machine of yours for code of yours."))  # fmt: skip


def check_fetch(text: str, where: str = "MODEL") -> None:
    """Raise InputError where nothing that a request names may be fetched."""
    if is_closed():
        raise InputError(Fault(code="fetch_refused", message="nothing is fetched, and no other machine is asked, for a "
                               "request over the web", where=where, got=shown(text), hint=FETCH))  # fmt: skip
