"""The pieces that every class is put together from: what each holds, where it runs, what has a gradient."""

from __future__ import annotations

from math import prod

import pytest

from suanli.errors import ConfigError
from suanli.nouns.arch import SAMPLE, TOKENS, Module, Placed
from suanli.nouns.arch import Arch as Tree
from suanli.nouns.layers import Attention, Conv, Linear
from suanli.readers.config import Config
from suanli.readers.diffusers import mmdit, pieces, residual
from suanli.readers.diffusers.canvas import FRAMES, JOINT, PATCHES, Usual, read_canvas
from suanli.readers.diffusers.denoiser import denoiser
from suanli.readers.diffusers.pieces import Heads, Nodes
from suanli.readers.hf.maps import Net

H, HEADS, DIM = 24, 3, 8
SPEC = Heads(hidden=H, heads=HEADS, dim=DIM)
SQUARE = H * H + H  # a matrix with its bias


def leaves(nodes: Nodes) -> list[Placed]:
    return list(Tree(name="x", root=Module(name="", stream=PATCHES, children=nodes)).leaves())


def params(nodes: Nodes) -> dict[str, int]:
    return {placed.path: placed.layer.params for placed in leaves(nodes) if placed.layer.params}


def where(nodes: Nodes) -> dict[str, str]:
    return {placed.path: placed.stream for placed in leaves(nodes)}


HELD: list[tuple[str, Nodes, dict[str, int]]] = [
    ("two matrices", pieces.two_matrices("t", 10, H, 7), {"t.linear_1": 10 * H + H, "t.linear_2": H * 7 + 7}),
    ("step and prompt", pieces.embedders("e", H, pooled=5),
     {"e.timestep_embedder.linear_1": 256 * H + H, "e.timestep_embedder.linear_2": SQUARE,
      "e.text_embedder.linear_1": 5 * H + H, "e.text_embedder.linear_2": SQUARE}),
    ("step and guidance, no biases", pieces.embedders("e", H, guidance=True, bias=False),
     {f"e.{each}_embedder.linear_{i}": width * H
      for each in ("timestep", "guidance") for i, width in ((1, 256), (2, H))}),
    ("one modulation for all", pieces.single_modulation("a", H),
     {"a.emb.timestep_embedder.linear_1": 256 * H + H, "a.emb.timestep_embedder.linear_2": SQUARE,
      "a.linear": 6 * H * H + 6 * H}),
    ("a last modulation", pieces.final_modulation(H, 10), {"norm_out.linear": 10 * 2 * H + 2 * H}),
    ("self-attention", (pieces.self_attention("s", SPEC),),
     {f"s.{each}": SQUARE for each in ("to_q", "to_k", "to_v", "to_out.0")}),
    ("fewer key heads, normed, no biases",
     (pieces.self_attention("s", Heads(hidden=H, heads=4, dim=6, kv_heads=2, bias=False, out_bias=False,
                                       norm="rms_norm")),),
     {"s.to_q": H * 24, "s.to_k": H * 12, "s.to_v": H * 12, "s.norm_q": 6, "s.norm_k": 6, "s.to_out.0": 24 * H}),
    ("cross-attention, normed over all heads",
     pieces.cross_attention("c", Heads(hidden=H, heads=2, dim=5, norm="rms_norm_across_heads"), 7),
     {"c.to_q": H * 10 + 10, "c.norm_q": 10, "c.to_k": 7 * 10 + 10, "c.to_v": 7 * 10 + 10, "c.norm_k": 10,
      "c.to_out.0": 10 * H + H}),
    ("feed-forward", (pieces.feed("f", H, 30),), {"f.net.0.proj": H * 30 + 30, "f.net.2": 30 * H + H}),
    ("gated feed-forward", (pieces.feed("f", H, 30, "geglu"),), {"f.net.0.proj": H * 60 + 60, "f.net.2": 30 * H + H}),
    ("feed-forward of three matrices", (pieces.gated_feed("f", H, 30, ("a", "b", "c")),),
     {"f.a": H * 30, "f.b": H * 30, "f.c": 30 * H}),
    ("single block", mmdit.single_block(SPEC, 40),
     {"norm.linear": 3 * (H * H + H), "proj_mlp": H * 40 + 40, "attn.to_q": SQUARE, "attn.to_k": SQUARE,
      "attn.to_v": SQUARE, "proj_out": (H + 40) * H + H}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "nodes", "expected"), HELD, ids=[row[0] for row in HELD])
def test_parameters(what: str, nodes: Nodes, expected: dict[str, int]) -> None:
    assert params(nodes) == expected


def test_joint_attention_runs_in_three_streams() -> None:
    streams = where(pieces.joint_attention("j", SPEC, context=10))
    assert streams["j.to_q"] == streams["j.to_out.0"] == PATCHES
    assert streams["j.add_q_proj"] == streams["j.to_add_out"] == TOKENS
    assert streams["j.attention"] == JOINT


ENDS = [(pieces.KEPT, True, False), (pieces.UNREAD, True, True), (pieces.ABSENT, False, False)]


@pytest.mark.parametrize(("ends", "there", "detached"), ENDS)
def test_what_becomes_of_the_prompt(ends: str, there: bool, detached: bool) -> None:
    spec = mmdit.Double(heads=SPEC, feed=mmdit.plain_feed(H, 4 * H))
    found = {placed.path: placed.layer for placed in leaves(mmdit.double_block(spec, ends))}
    for path in ("attn.to_add_out", "ff_context.net.0.proj", "ff_context.net.2"):
        assert (path in found) is there
        assert not there or found[path].detached is detached
    assert found["norm1_context.linear"].out_features == (6 if there else 2) * H  # type: ignore[attr-defined]
    assert not found["attn.to_out.0"].detached


def test_the_last_block_is_read_only_where_single_ones_follow() -> None:
    assert mmdit.last_unread(3, followed=2) == (pieces.KEPT,) * 3
    assert mmdit.last_unread(3, followed=0) == (pieces.KEPT, pieces.KEPT, pieces.UNREAD)
    assert mmdit.last_unread(0, followed=0) == ()


def test_what_comes_from_outside_needs_no_gradient() -> None:
    raw = [placed.path for placed in leaves(pieces.cross_attention("c", SPEC, 7, raw=True)) if placed.layer.raw_input]
    assert raw == ["c.to_k", "c.to_v"]
    assert [each.name for each in pieces.two_matrices("t", 4, 5) if each.raw_input] == ["t.linear_1"]  # type: ignore[union-attr]


def test_a_patch_of_pictures_is_cut_in_every_frame_of_a_clip() -> None:
    canvas = read_canvas(Config({"image_size": [64, 96], "num_frames": 9}, "c"), Usual(frames=9), (1, 2, 2))
    flat = pieces.patch_conv("p", 4, H, canvas, (2, 2))
    deep = pieces.patch_conv("p", 4, H, canvas, (1, 2, 2))
    assert (flat.stream, deep.stream) == (FRAMES, SAMPLE)
    arch = denoiser("x", (flat,), canvas)
    assert arch.stream(FRAMES).length == 3  # (9 - 1) / 4 + 1
    for conv, cells in ((flat.children[0], (4, 6)), (deep.children[0], (3, 4, 6))):
        assert isinstance(conv, Conv) and conv.out_size == cells


def test_only_streams_that_run_are_held() -> None:
    canvas = read_canvas(Config({}, "c"), Usual(), (2, 2))
    alone = denoiser("x", (pieces.self_attention("s", SPEC),), canvas)
    told = denoiser("x", pieces.cross_attention("c", SPEC, 7), canvas, text=77)
    assert [each.name for each in alone.streams] == [PATCHES]
    assert [each.name for each in told.streams] == [PATCHES, TOKENS]
    assert (alone.task, told.task, told.max_positions) == ("class-to-image", "text-to-image", 77)
    assert alone.extra == {"latent_height": 128, "latent_width": 128, "patches_height": 64, "patches_width": 64}
    core = next(p.layer for p in told.leaves() if isinstance(p.layer, Attention))
    assert (core.mask, core.key_stream) == ("full", TOKENS)


NULLABLE = [({}, (5, 9)), ({"out_channels": None}, (5, 5)), ({"out_channels": 7, "in_channels": 3}, (3, 7))]


@pytest.mark.parametrize(("values", "expected"), NULLABLE)
def test_null_is_not_absent(values: dict[str, int | None], expected: tuple[int, int]) -> None:
    assert pieces.read_channels(Config(values, "c"), 5, 9) == expected
    norms = [pieces.read_qk_norm(Config(each, "c"), "rms_norm") for each in ({}, {"qk_norm": None}, {"qk_norm": "l2"})]
    assert norms == ["rms_norm", None, "l2"]


def test_an_unknown_word_is_a_fault() -> None:
    config = Config({"qk_norm": "batch_norm", "activation_fn": "relu"}, "c")
    pieces.read_qk_norm(config)
    pieces.read_feed(config)
    with pytest.raises(ConfigError, match="qk_norm is not possible in c: qk_norm; got 'batch_norm'; expected one of "):
        config.check()
    assert len(config.faults.faults) == 2


SHRINKS = [(8, 1, 4), (9, 1, 5), (8, 0, 4), (9, 0, 4)]  # (n + 2 - 3) / 2 + 1; with one row added (n + 1 - 3) / 2 + 1


@pytest.mark.parametrize(("side", "padding", "half"), SHRINKS)
def test_half_the_size(side: int, padding: int, half: int) -> None:
    net = Net(4, (side, side))
    residual.down(net, "d", padding=padding)
    assert net.size == (half, half)
    residual.up(net, "u", (side, side))
    assert net.size == (side, side)


def test_a_residual_block_by_hand() -> None:
    net = Net(4, (6, 5))
    residual.resnet(net, 8, 10)
    held = {placed.path: placed.layer.params for placed in leaves(tuple(net.nodes)) if placed.layer.params}
    assert held == {
        "norm1": 8, "conv1": 9 * 4 * 8 + 8, "time_emb_proj": 10 * 8 + 8, "norm2": 16, "conv2": 9 * 8 * 8 + 8,
        "conv_shortcut": 4 * 8 + 8,
    }  # fmt: skip
    assert (net.channels, prod(net.size)) == (8, 30)
    steps = [placed.layer for placed in leaves(tuple(net.nodes)) if isinstance(placed.layer, Linear)]
    assert [each.name for each in steps] == ["time_emb_proj"]
