"""A denoiser as an architecture: its streams, and what one forward pass of it is."""

from __future__ import annotations

from collections.abc import Iterator

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Attention
from suanli.readers.blocks import Node
from suanli.readers.diffusers.canvas import FRAMES, JOINT, PAIR, PATCHES, Canvas

STEP = "one forward is one denoising step of one picture or clip; its autoencoder and text encoders are models apart"
GUIDED = "guidance is an input of the model, so a step is one forward"
DOUBLED = "with classifier-free guidance a step is two forwards, one of an empty prompt"


def denoiser(
    name: str, nodes: tuple[Node, ...], canvas: Canvas, *, text: int | None = None, guided: bool = False,
    streams: tuple[Stream, ...] = (), notes: tuple[str, ...] = (),
) -> Arch:  # fmt: skip
    """The tree with the streams its nodes run in. `text` is the usual number of the prompt's tokens where `--seq`
    says how many; `streams` are those of a class's own.
    """
    used = set(_streams(nodes))
    length = canvas.positions
    known = {
        PATCHES: Stream(name=PATCHES, length=length),
        TOKENS: Stream(name=TOKENS),
        JOINT: Stream(name=JOINT, extra=length),
        FRAMES: Stream(name=FRAMES, length=canvas.latent[0]),
        PAIR: Stream(name=PAIR, length=2),
    } | {stream.name: stream for stream in streams}
    clip = len(canvas.grid) == 3
    prompt = () if text is None else ("the prompt is --seq tokens, as the text encoder leaves them",)
    return Arch(
        name=name,
        root=Module(name="", stream=PATCHES, children=nodes),
        streams=tuple(known[each] for each in known if each in used | {PATCHES}),
        main_stream=PATCHES,
        max_positions=text,
        task=("text-to-video" if clip else "text-to-image") if TOKENS in used or streams else "class-to-image",
        unit="patch",
        extra=latent_sizes(canvas),
        notes=(canvas.note, *prompt, STEP, GUIDED if guided else DOUBLED, *notes),
    )


def latent_sizes(canvas: Canvas) -> dict[str, int]:
    """The latent and its patches, as a trace of the class needs them for its inputs."""
    sides = ("frames", "height", "width")[-len(canvas.latent) :]
    found = {f"latent_{side}": size for side, size in zip(sides, canvas.latent, strict=True)}
    return found | {f"patches_{side}": size for side, size in zip(sides, canvas.grid, strict=True)}


def _streams(nodes: tuple[Node, ...]) -> Iterator[str]:
    """Every stream that is run in or looked at."""
    for node in nodes:
        if isinstance(node, Module):
            if node.stream and node.stream != SAMPLE:
                yield node.stream
            yield from _streams(node.children)
        elif isinstance(node, Attention) and node.key_stream:
            yield node.key_stream
