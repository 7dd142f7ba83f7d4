"""Streams longer than the text, and streams that stand in copies: how many positions, sequences, pairs and bytes."""

from __future__ import annotations

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.footprint import kv_cache
from suanli.nouns.arch import Arch, Module, Stream
from suanli.nouns.layers import Attention, Linear
from suanli.nouns.workload import Workload
from suanli.work import Setting

CORE = Attention(name="core", heads=3, kv_heads=1, qk_dim=5, v_dim=7)
TILED = Attention(name="tiles", heads=2, kv_heads=2, qk_dim=4, v_dim=4, mask="full")
ARCH = Arch(
    name="pictures",
    root=Module(
        name="",
        children=(
            Module(name="tower", stream="tiles", children=(Linear(name="in", in_features=6, out_features=8), TILED)),
            CORE,
        ),
    ),
    streams=(Stream(name="tokens", decodes=True, extra=4), Stream(name="tiles", length=9, copies=5)),
)


def _at(**workload: object) -> Setting:
    return Setting(ARCH, Workload(**workload), find_convention("full"))  # type: ignore[arg-type]


def _rows(convention: str, **workload: object) -> dict[str, int]:
    ledger = build_ledger(ARCH, Workload(**workload), find_convention(convention))  # type: ignore[arg-type]
    return {row.path: row.model_flops for row in ledger.rows if row.pass_ == "forward"}


def test_positions() -> None:
    at = _at(seq=10, batch=2)
    assert (at.queries("tokens"), at.keys("tokens"), at.tokens("tokens")) == (14, 14, 28)
    assert (at.queries("tiles"), at.keys("tiles"), at.sequences("tiles"), at.tokens("tiles")) == (9, 9, 10, 90)


def test_a_decoded_token_adds_no_picture_but_sees_it() -> None:
    at = _at(seq=10, batch=2, phase="decode")
    assert (at.queries("tokens"), at.keys("tokens"), at.tokens("tokens"), at.tokens("tiles")) == (1, 14, 2, 0)
    at = _at(seq=10, kv_len=30, phase="decode")
    assert at.keys("tokens") == 34


def test_products() -> None:
    full, causal = (_rows(name, seq=10, batch=2) for name in ("full", "causal"))
    assert full["tower.in"] == causal["tower.in"] == 2 * 90 * 6 * 8
    assert full["tower.tiles"] == causal["tower.tiles"] == 2 * (2 * 5 * 9 * 9) * 2 * (4 + 4)  # no tile sees another
    assert full["core"] == 2 * (2 * 14 * 14) * 3 * (5 + 7)
    assert causal["core"] == 2 * (2 * 14 * 15 // 2) * 3 * (5 + 7)


def test_the_cache_holds_the_picture() -> None:
    assert kv_cache(ARCH, Workload(seq=10, batch=2, dtype="bf16")) == 2 * 14 * (5 + 7) * 2
