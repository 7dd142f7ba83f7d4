"""The common end of every causal family: what stands where in a decoder, and what a spec may leave out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suanli.nouns.arch import TOKENS, Shape, Stream
from suanli.nouns.layers import Linear, Norm
from suanli.readers.blocks import Node
from suanli.readers.decoder import DecoderNames, DecoderSpec, decoder

SHAPE = Shape(num_layers=3, hidden=4, heads=2, kv_heads=1, head_dim=2, ffn=6, vocab=10)


def make(kind: str) -> tuple[Node, ...]:
    return (Linear(name=kind, in_features=4, out_features=4),)


SPEC = DecoderSpec(shape=SHAPE, kinds=("a", "b", "a"), make=make)
BARE = 10 * 4 + 3 * 16 + 4 + 4 * 10  # lookup, layers, last norm, head

# what is changed: names in order, parameters
SPECS = [
    (
        {},
        ["model.embed_tokens", "model.layers.0-2:2.a", "model.layers.1.b", "model.norm", "lm_head"],
        BARE,
    ),
    (
        {"learned_positions": 7},
        ["model.embed_tokens", "model.embed_positions", "model.layers.0-2:2.a", "model.layers.1.b", "model.norm",
         "lm_head"],
        BARE + 7 * 4,
    ),
    ({"norm_kind": None}, ["model.embed_tokens", "model.layers.0-2:2.a", "model.layers.1.b", "lm_head"], BARE - 4),
    (
        {"norm_kind": "layer"},
        ["model.embed_tokens", "model.layers.0-2:2.a", "model.layers.1.b", "model.norm", "lm_head"],
        BARE + 4,
    ),
    (
        {"tied": True, "head_bias": True},
        ["model.embed_tokens", "model.layers.0-2:2.a", "model.layers.1.b", "model.norm", "lm_head"],
        BARE - 40 + 10,
    ),
    (  # narrower tables: lookup and head of 3, positions as wide as the model
        {"embed_dim": 3, "learned_positions": 7},
        ["model.embed_tokens", "model.embed_positions", "model.layers.0-2:2.a", "model.layers.1.b", "model.norm",
         "lm_head"],
        BARE - 2 * 10 + 28,
    ),
    (
        {"after_embedding": (Norm(name="in", dim=4),), "before_head": (Norm(name="out", dim=4),)},
        ["model.embed_tokens", "in", "model.layers.0-2:2.a", "model.layers.1.b", "model.norm", "out", "lm_head"],
        BARE + 8,
    ),
    (
        {"names": DecoderNames(embed="e", layers="l", norm="n", head="h")},
        ["e", "l.0-2:2.a", "l.1.b", "n", "h"],
        BARE,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "paths", "params"), SPECS)
def test_decoders(changed: dict[str, object], paths: list[str], params: int) -> None:
    arch = decoder("net", replace(SPEC, **changed))  # type: ignore[arg-type]
    assert [placed.path for placed in arch.leaves()] == paths
    assert arch.params_total == params


def test_what_a_decoder_is() -> None:
    arch = decoder("net", replace(SPEC, max_positions=99, notes=("a note",)))
    assert (arch.name, arch.task, arch.shape, arch.max_positions, arch.notes) == (
        "net", "causal-lm", SHAPE, 99, ("a note",),
    )  # fmt: skip
    assert arch.streams == (Stream(name=TOKENS, decodes=True),)
    assert arch.decodes


def test_the_head_is_the_head_and_only_layers_are_blocks() -> None:
    leaves = decoder("net", SPEC).leaves()
    head = leaves[-1].layer
    assert isinstance(head, Linear) and head.role == "lm_head"
    assert [placed.in_block for placed in leaves] == [False, True, True, False, False]
    assert [placed.times for placed in leaves] == [1, 2, 1, 1, 1]


def test_positions_are_told_from_words() -> None:
    leaves = decoder("net", replace(SPEC, learned_positions=7)).leaves()
    assert [getattr(placed.layer, "role", "") for placed in leaves[:2]] == ["token", "position"]
