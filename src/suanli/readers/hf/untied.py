"""Heads and tables with weights of their own: what a family is that usually ties them and is told not to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any

from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Embedding, Layer, Linear, Parameter
from suanli.readers.config import Config

Node = Module | Layer


def unties(read: Callable[..., Arch]) -> Callable[..., Arch]:
    """A reader of a family that ties its head unless `tie_word_embeddings` is false."""

    @wraps(read)
    def reading(config: Config, *rest: Any) -> Arch:
        tied = config.flag("tie_word_embeddings", default=True)
        arch = read(config, *rest)
        return arch if tied else untied(arch)

    return reading


def untied(arch: Arch) -> Arch:
    """The same model with every tied weight its own.

    Where encoder and decoder shared one table, each gets one, and the shared one stays unused as the class holds it;
    a head whose bias was tied to one beside it gets a bias too.
    """
    names = [placed.path for placed in arch.leaves() if isinstance(placed.layer, Parameter)]
    shared = next((p.layer for p in arch.leaves() if isinstance(p.layer, Embedding) and p.layer.tied), None)
    again = shared.name if isinstance(shared, Embedding) else None

    def changed(node: Node) -> Iterator[Node]:
        if isinstance(node, Module):
            yield replace(node, children=tuple(each for child in node.children for each in changed(child)))
        elif isinstance(node, Linear) and node.tied:
            yield replace(node, tied=False, bias=node.bias or _bias_beside(node.name, names))
        elif isinstance(node, Embedding) and node.tied:
            yield replace(node, tied=False)
        elif isinstance(node, Embedding) and node.role == "token" and again is not None:
            yield Parameter(name=node.name, shape=(node.num, node.dim))
            yield replace(node, name=again.replace("decoder", "encoder"))
        else:
            yield node

    (root,) = changed(arch.root)
    assert isinstance(root, Module)
    return replace(arch, root=root)


def _bias_beside(head: str, names: list[str]) -> bool:
    """Whether the head's bias is a parameter of the module it is in, rather than its own."""
    return f"{head.rpartition('.')[0]}.bias".lstrip(".") in names and f"{head}.bias" not in names
