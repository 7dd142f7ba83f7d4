"""The autoencoder of latent diffusion: pixels to a latent, and a latent to pixels."""

from __future__ import annotations

from suanli.nouns.arch import SAMPLE, Arch, Module
from suanli.readers.config import Config
from suanli.readers.diffusers.canvas import times
from suanli.readers.diffusers.residual import down, resnet, up
from suanli.readers.hf.maps import Net, attend
from suanli.readers.hf.maps import linear as over_position
from suanli.readers.hf.vision import image_size

MAX_BLOCKS, MAX_STAGES = 100, 20


def read_autoencoder_kl(config: Config, name: str) -> Arch:
    """The autoencoder of latent diffusion (arXiv:2112.10752): pixels to a latent, and the latent to pixels again."""
    widths = config.wholes("block_out_channels", low=1) or (64,)
    depth, latent = (
        config.whole("layers_per_block", default=1, high=MAX_STAGES),
        config.whole("latent_channels", default=4),
    )
    channels, out = config.whole("in_channels", default=3), config.whole("out_channels", default=3)
    for key, word in (("down_block_types", "DownEncoderBlock2D"), ("up_block_types", "UpDecoderBlock2D")):
        config.names(key, len(widths), (word,))
    quantised = tuple(config.flag(f"use_{each}_conv", default=True) for each in ("quant", "post_quant"))
    attended = config.flag("mid_block_add_attention", default=True)
    config.choice("act_fn", ("silu", "swish", "mish", "gelu", "relu"), "silu")
    picture = (
        image_size(config, 0 if not config.has("sample_size") else 1) if config.has("image_size") else _sample(config)
    )
    step = 2 ** (len(widths) - 1)
    if len(widths) > MAX_STAGES:
        config.fault("bad_value", "too many stages", "block_out_channels", expected=f"at most {MAX_STAGES}")
    elif any(side % step for side in picture):
        config.fault(
            "bad_value", "the picture does not divide into cells of the latent", "image_size", got=times(picture),
            expected=f"a multiple of {step:,} pixels",
        )  # fmt: skip
    config.check()
    net = Net(channels, picture)
    net.block("encoder", lambda: _encoder(net, widths, depth, latent, attended))
    if quantised[0]:
        net.conv("quant_conv", 2 * latent, 1, bias=True)
    net.channels = latent
    if quantised[1]:
        net.conv("post_quant_conv", latent, 1, bias=True)
    cells = net.size
    net.block("decoder", lambda: _decoder(net, widths, depth, out, attended))
    return Arch(
        name=name,
        root=Module(name="", stream=SAMPLE, children=tuple(net.nodes)),
        streams=tuple(net.streams.values()),
        main_stream=SAMPLE,
        task="autoencoder",
        unit="image",
        extra={
            "latent_height": cells[0],
            "latent_width": cells[1],
            "pixels_height": picture[0],
            "pixels_width": picture[1],
        },
        notes=(
            f"picture {times(picture)}, encoded to {latent} channels of {times(cells)} and decoded",
            "a generated picture is decoded only: the rows of encoder and decoder stand apart",
        ),
    )


def _sample(config: Config) -> tuple[int, int]:
    """The picture of `sample_size`, which is of pixels here."""
    sizes = Config({"image_size": config.raw("sample_size") or 32}, config.where)
    sizes.faults = config.faults
    return image_size(sizes)


def _middle_of(net: Net, attended: bool) -> None:
    """Two residual blocks, and between them all positions with all."""
    net.block("mid_block.resnets", lambda: resnet(net, net.channels), 0)
    if attended:
        at, width = "mid_block.attentions.0", net.channels
        net.norm(f"{at}.group_norm")
        matrices = [over_position(f"{at}.{each}", width, width) for each in ("to_q", "to_k", "to_v", "to_out.0")]
        net.over(*matrices[:3], attend(f"{at}.attention", 1, width), matrices[3])
    net.block("mid_block.resnets", lambda: resnet(net, net.channels), 1)


def _encoder(net: Net, widths: tuple[int, ...], depth: int, latent: int, attended: bool) -> None:
    net.conv("conv_in", widths[0], 3, bias=True)
    for i, width in enumerate(widths):
        for j in range(depth):
            net.block(f"down_blocks.{i}.resnets", lambda w=width: resnet(net, w), j)  # type: ignore[misc]
        if i < len(widths) - 1:
            down(net, f"down_blocks.{i}", padding=0)
    _middle_of(net, attended)
    net.norm("conv_norm_out")
    net.conv("conv_out", 2 * latent, 3, bias=True)


def _decoder(net: Net, widths: tuple[int, ...], depth: int, out: int, attended: bool) -> None:
    net.conv("conv_in", widths[-1], 3, bias=True)
    _middle_of(net, attended)
    for i, width in enumerate(reversed(widths)):
        for j in range(depth + 1):
            net.block(f"up_blocks.{i}.resnets", lambda w=width: resnet(net, w), j)  # type: ignore[misc]
        if i < len(widths) - 1:
            up(net, f"up_blocks.{i}", tuple(2 * each for each in net.size))
    net.norm("conv_norm_out")
    net.conv("conv_out", out, 3, bias=True)


FAMILIES = {"AutoencoderKL": read_autoencoder_kl}
