"""A factory named on the command line: `jax:package.module:function`. It is the user's own code, run because asked."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from suanli.errors import ConfigError, Fault, MissingExtraError, SuanliError, nearest_names, shown
from suanli.readers import gate
from suanli.readers.bounded import is_interruption, stopped_after, time_limit

_NAMED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def call_factory(text: str, prefix: str) -> Any:
    """What the factory returns. Raises ConfigError saying what is not there, or what the factory raised."""
    gate.check_run(text)
    name = text.removeprefix(prefix)
    if not _NAMED.fullmatch(name):
        _refuse(
            "bad_factory", "not the name of a factory", got=shown(text), expected=f"{prefix}package.module:function"
        )
    module_name, _, attribute = name.partition(":")
    with _working_folder():
        factory: Any = _module(module_name)
        for part in attribute.split("."):
            if not hasattr(factory, part):
                known = [each for each in dir(factory) if not each.startswith("_")]
                near = nearest_names(part, known)
                _refuse("no_factory", f"{module_name} has no {part}", got=shown(text), nearest=near)
            factory = getattr(factory, part)
        if not callable(factory):
            _refuse("bad_factory", "the factory cannot be called", got=type(factory).__name__)
        return run_theirs(factory, "the factory")


def run_theirs(function: Callable[..., Any], what: str, *args: Any, **kwargs: Any) -> Any:
    """Call the user's code; what it raises comes back as one ConfigError."""
    try:
        with stopped_after(time_limit(), lambda: _too_slow(what)):
            return function(*args, **kwargs)
    except SuanliError:
        raise
    except BaseException as problem:  # sys.exit among them: it is not our command that ends
        if is_interruption(problem):
            raise
        fault = Fault(
            code="factory_raised", message=f"{what} raised {type(problem).__name__}", where="MODEL",
            got=shown(str(problem)[:300], 300),
        )  # fmt: skip
        raise ConfigError(fault) from problem


def _too_slow(what: str) -> ConfigError:
    """The error of code that passes its time bound."""
    return ConfigError(
        Fault(
            code="too_slow", message=f"{what} still runs after {time_limit():g} s", where="MODEL",
            hint="Give it more time with --time-limit; check for a loop that does not end.",
        )
    )  # fmt: skip


def _module(name: str) -> Any:
    try:
        with stopped_after(time_limit(), lambda: _too_slow(f"importing {name}")):
            return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        _refuse("no_module", f"no module {problem.name}", got=name, hint="Run where it can be imported from.")
    except SuanliError:
        raise
    except BaseException as problem:  # whatever the user's module does when imported
        if is_interruption(problem):
            raise
        fault = Fault(
            code="module_raised", message=f"importing {name} raised {type(problem).__name__}", where="MODEL",
            got=shown(str(problem)[:300], 300),
        )  # fmt: skip
        raise ConfigError(fault) from problem


@contextmanager
def _working_folder() -> Iterator[None]:
    """The working folder is searched for modules while the factory is looked up, as `python -m` does."""
    here, before = str(Path.cwd()), list(sys.path)
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path[:] = before


def _refuse(code: str, message: str, **parts: Any) -> None:
    raise ConfigError(Fault(code=code, message=message, where="MODEL", **parts))


def missing_extra(extra: str, what: str) -> MissingExtraError:
    """The error where an optional library is not installed."""
    return MissingExtraError(
        Fault(
            code="missing_extra", message=f"reading {what} needs {extra}", where="MODEL",
            hint=f'Run `pip install "suanli[{extra}]"`.',
        )
    )  # fmt: skip
