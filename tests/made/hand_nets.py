"""Nets that can be added up by hand, and their ledgers."""

from __future__ import annotations

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.nouns.arch import Arch, Module
from suanli.nouns.convention import Convention
from suanli.nouns.layers import Attention, Layer, Linear
from suanli.nouns.ledger import Ledger
from suanli.nouns.workload import Workload

CAUSAL = find_convention("causal")
T = 10  # two sequences of five
UNIT = 2 * T * 8 * 8  # FLOPs of a square of eight
ATTENTION = Attention(name="x", heads=4, kv_heads=2, qk_dim=3, v_dim=6)


def square(name: str, **more: object) -> Linear:
    return Linear(name=name, in_features=8, out_features=8, **more)  # type: ignore[arg-type]


def frozen(name: str, **more: object) -> Linear:
    return square(name, trainable=False, **more)


def arch(*children: Module | Layer, **more: object) -> Arch:
    return Arch(name="net", root=Module(name="", children=children), **more)  # type: ignore[arg-type]


def workload(phase: str = "train", **more: object) -> Workload:
    return Workload(**{"seq": 5, "batch": 2, "phase": phase, **more})  # type: ignore[arg-type]


def ledger(net: Arch, convention: Convention = CAUSAL, phase: str = "train", **more: object) -> Ledger:
    return build_ledger(net, workload(phase, **more), convention)
