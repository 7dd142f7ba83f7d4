"""A JAX function as a program: its jaxpr walked, scans multiplied by their length, nothing run on data.

`jax:package.module:factory`: the factory returns `(function, arguments)`, `(function, argument, …)`, or a mapping
with `function`, `arguments` and, where they should be told apart, `params`. Arguments may be arrays or
`jax.ShapeDtypeStruct`s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suanli.errors import ConfigError, Fault
from suanli.nouns.graph import Graph, Stored
from suanli.readers.factory import call_factory, missing_extra, run_theirs
from suanli.readers.kinds import JAX

PREFIX = JAX
SOURCE = "the jaxpr of jax.make_jaxpr"
_FORMS = "(function, arguments), (function, argument, …) or a mapping with function and arguments"


def read_jax_function(text: str) -> Graph:
    """The operations of what a factory returns. Raises ConfigError for a factory that is none, MissingExtraError."""
    try:
        import jax  # noqa: PLC0415  an optional extra
    except ImportError as problem:
        raise missing_extra("jax", "a JAX function") from problem
    function, arguments, keywords, params = _parts(call_factory(text, PREFIX))
    jaxpr = run_theirs(jax.make_jaxpr(function), "tracing the function", *arguments, **keywords)
    return _graph(text.removeprefix(PREFIX), jaxpr, params)


def read_jaxpr(jaxpr: Any, name: str = "jaxpr") -> Graph:
    """The operations of a closed jaxpr, as `jax.make_jaxpr` gives it."""
    return _graph(name, jaxpr, None)


def _parts(found: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any], Any]:
    """Function, arguments, keywords, parameters."""
    if isinstance(found, Mapping) and callable(found.get("function")):
        arguments = found.get("arguments", ())
        if isinstance(arguments, tuple | list):
            return found["function"], tuple(arguments), dict(found.get("keywords", {})), found.get("params")
    if isinstance(found, tuple | list) and found and callable(found[0]):
        rest = tuple(found[1:])
        if len(rest) == 1 and isinstance(rest[0], tuple | list):
            rest = tuple(rest[0])
        return found[0], rest, {}, None
    raise ConfigError(
        Fault(
            code="bad_factory", message="the factory returned no function with its arguments", where="MODEL",
            got=type(found).__name__, expected=_FORMS,
        )
    )  # fmt: skip


def _graph(name: str, jaxpr: Any, params: Any) -> Graph:
    from suanli.readers.jaxpr import Walk  # noqa: PLC0415

    walk = Walk()
    walk.jaxpr(jaxpr.jaxpr, "", 1, False)
    stored = None if params is None else _stored(params)
    return Graph(
        name=name,
        format="jax",
        rows=tuple(walk.rows),
        missing=walk.missing.listed(),
        params=None if stored is None else sum(entry.elements for entry in stored.values()),
        stored=stored or {},
        notes=(*walk.notes, _arguments(jaxpr)),
        sources=(SOURCE,),
    )


def _arguments(jaxpr: Any) -> str:
    shapes = [f"{value.dtype}{list(value.shape)}" for value in jaxpr.in_avals[:8]]
    more = "" if len(jaxpr.in_avals) <= 8 else f" and {len(jaxpr.in_avals) - 8} more"
    return "arguments: " + (", ".join(shapes) + more or "none")


def _stored(params: Any) -> dict[str, Stored]:
    import jax  # noqa: PLC0415

    found: dict[str, tuple[int, int]] = {}
    for leaf in jax.tree_util.tree_leaves(params):
        name, count = str(leaf.dtype), int(leaf.size)
        elements, size = found.get(name, (0, 0))
        found[name] = (elements + count, size + count * leaf.dtype.itemsize)
    return {name: Stored(elements=elements, bytes=size) for name, (elements, size) in found.items()}
