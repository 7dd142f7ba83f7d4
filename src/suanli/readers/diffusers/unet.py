"""The UNet of Stable Diffusion 1, 2 and XL: residual blocks over smaller and smaller maps, transformers between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Embedding, Parameter
from suanli.readers.blocks import Node, stack
from suanli.readers.config import Config
from suanli.readers.diffusers.canvas import Usual, read_canvas
from suanli.readers.diffusers.denoiser import DOUBLED, STEP, latent_sizes
from suanli.readers.diffusers.pictures import Basic, basic_block
from suanli.readers.diffusers.pieces import Heads, linear, two_matrices
from suanli.readers.diffusers.residual import down, resnet, up
from suanli.readers.hf.maps import Net
from suanli.readers.hf.maps import linear as over_position

MAX_STAGES = 100
DOWN, CROSS_DOWN = "DownBlock2D", "CrossAttnDownBlock2D"
UP, CROSS_UP = "UpBlock2D", "CrossAttnUpBlock2D"
MID, CROSS_MID, NO_MID = "UNetMidBlock2D", "UNetMidBlock2DCrossAttn", "null"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One resolution of a UNet. `layers` are transformer blocks after each residual block; none where not `crossed`."""

    width: int
    depth: int
    crossed: bool
    heads: int
    cross: int
    layers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """What holds for the whole UNet."""

    temb: int
    scaled: bool
    linear: bool
    raw: bool
    padding: int


def _transformer(net: Net, name: str, stage: Stage, layers: int, facts: _Facts) -> None:
    """Every position looks at the others and at the prompt, `layers` times, between two 1×1."""
    width = net.channels
    dim = max(1, width // stage.heads)
    inner = stage.heads * dim
    spec = Basic(
        heads=Heads(hidden=inner, heads=stage.heads, dim=dim, bias=False), kind="geglu", modulated="none",
        cross=stage.cross, raw=facts.raw, affine=True, stream=net.stream(),
    )  # fmt: skip
    block = basic_block(spec)
    net.norm(f"{name}.norm")
    for end, out in (("proj_in", inner), ("proj_out", width)):
        if end == "proj_out":
            net.add(*stack(f"{name}.transformer_blocks", (0,) * layers, lambda _: block))
        if facts.linear:
            net.over(over_position(f"{name}.{end}", net.channels, out))
            net.channels = out
        else:
            net.conv(f"{name}.{end}", out, 1, bias=True)


def read_unet(config: Config, name: str) -> Arch:
    """The UNet of latent diffusion (arXiv:2112.10752, arXiv:2307.01952): residual blocks, transformers between them."""
    downs, mid, ups = _stages(config)
    channels, out = config.whole("in_channels", default=4), config.whole("out_channels", default=4)
    first, last = (config.whole(f"conv_{end}_kernel", default=3, high=1000) for end in ("in", "out"))
    canvas = read_canvas(config, Usual(picture=(512, 512)), (1, 1))
    widths = tuple(stage.width for stage in downs) or (1,)
    time = config.maybe("time_embedding_dim") or 4 * widths[0]
    hidden = config.maybe("encoder_hid_dim")
    extra = _conditions(config, widths[0], time)
    facts = _Facts(
        temb=2 * time if config.flag("class_embeddings_concat", default=False) else time, raw=hidden is None,
        scaled=config.choice("resnet_time_scale_shift", ("default", "scale_shift"), "default") == "scale_shift",
        linear=config.flag("use_linear_projection", default=False),
        padding=config.whole("downsample_padding", default=1, low=0, high=1),
    )  # fmt: skip
    normed = "norm_num_groups" not in config.values or config.has("norm_num_groups")
    _refuse(config)
    config.check()
    net = Net(channels, canvas.latent)
    net.conv("conv_in", widths[0], first, padding=(first - 1) // 2, bias=True)
    net.add(*two_matrices("time_embedding", widths[0], time), *extra)
    if hidden is not None:
        words = linear("encoder_hid_proj", hidden, downs[0].cross, raw=True)
        net.add(Module(name="", stream=TOKENS, children=(words,)))
    skips = [(net.channels, net.size)]
    for i, stage in enumerate(downs):
        skips += _down_stage(net, f"down_blocks.{i}", stage, facts, last=i == len(downs) - 1)
    _middle(net, mid, facts)
    for i, stage in enumerate(ups):
        _up_stage(net, f"up_blocks.{i}", stage, facts, skips, last=i == len(ups) - 1)
    if normed:
        net.norm("conv_norm_out")
    net.conv("conv_out", out, last, padding=(last - 1) // 2, bias=True)
    told = any(stage.crossed for stage in (*downs, mid, *ups) if stage is not None)
    return Arch(
        name=name,
        root=Module(name="", stream=SAMPLE, children=tuple(net.nodes)),
        streams=(*net.streams.values(), *((Stream(name=TOKENS),) if told else ())),
        main_stream=SAMPLE,
        max_positions=77 if told else None,
        task="text-to-image" if told else "class-to-image",
        unit="image",
        extra=latent_sizes(canvas),
        notes=(canvas.latent_note, STEP, DOUBLED),
    )


def _down_stage(net: Net, at: str, stage: Stage, facts: _Facts, *, last: bool) -> list[tuple[int, tuple[int, ...]]]:
    """Residual blocks and transformers in turn, then half the size; every map on the way is kept."""
    kept = []
    for j in range(stage.depth):
        net.block(f"{at}.resnets", lambda: resnet(net, stage.width, facts.temb, scaled=facts.scaled), j)
        if stage.crossed:
            _transformer(net, f"{at}.attentions.{j}", stage, stage.layers[j], facts)
        kept.append((net.channels, net.size))
    if not last:
        down(net, at, padding=facts.padding)
        kept.append((net.channels, net.size))
    return kept


def _middle(net: Net, stage: Stage | None, facts: _Facts) -> None:
    """A residual block, and where the prompt is looked at, a transformer and another."""
    if stage is None:
        return
    for j in range(2 if stage.crossed else 1):
        if j:
            _transformer(net, "mid_block.attentions.0", stage, stage.layers[0], facts)
        net.block("mid_block.resnets", lambda: resnet(net, stage.width, facts.temb, scaled=facts.scaled), j)


def _up_stage(
    net: Net, at: str, stage: Stage, facts: _Facts, skips: list[tuple[int, tuple[int, ...]]], *, last: bool
) -> None:
    """Residual blocks, each of which also reads a map kept on the way down, then twice the size."""
    for j in range(stage.depth + 1):
        more, net.size = skips.pop()
        net.channels += more
        net.block(f"{at}.resnets", lambda: resnet(net, stage.width, facts.temb, scaled=facts.scaled), j)
        if stage.crossed:
            _transformer(net, f"{at}.attentions.{j}", stage, stage.layers[j], facts)
    if not last:
        up(net, at, skips[-1][1])


def _conditions(config: Config, sinusoids: int, time: int) -> tuple[Node, ...]:
    """What is embedded beside the step: a class, or the pooled prompt with the picture's sizes."""
    nodes: list[Node] = []
    guided = config.maybe("time_cond_proj_dim")
    if guided is not None:  # run where a distilled model is given its guidance
        nodes.append(Parameter(name="time_embedding.cond_proj", shape=(sinusoids, guided)))
    kind = config.choice("class_embed_type", ("timestep", "projection", "simple_projection", "identity"), "")
    classes = config.maybe("num_class_embeds")
    if not kind and classes is not None:
        nodes.append(Embedding(name="class_embedding", num=classes, dim=time, role="class"))
    width = sinusoids
    if kind in ("projection", "simple_projection"):
        width = config.need("projection_class_embeddings_input_dim")
    if kind in ("timestep", "projection"):
        nodes += two_matrices("class_embedding", width, time)
    elif kind == "simple_projection":
        nodes.append(linear("class_embedding", width, time, raw=True))
    if config.choice("addition_embed_type", ("text_time",), "") == "text_time":
        nodes += two_matrices("add_embedding", config.need("projection_class_embeddings_input_dim"), time)
    return tuple(nodes)


def _refuse(config: Config) -> None:
    """Keys with values that change the arithmetic and are not read."""
    config.choice("time_embedding_type", ("positional",), "positional")
    config.choice("encoder_hid_dim_type", ("text_proj",), "text_proj")
    config.choice("attention_type", ("default",), "default")
    for key in ("only_cross_attention", "dual_cross_attention", "mid_block_only_cross_attention"):
        if config.raw(key) not in (None, False):
            config.fault("unsupported", f"{key} is not read by formula", key)


def _each(config: Config, name: str, default: int, count: int) -> tuple[int, ...]:
    """A number for every stage, or one for all."""
    value = config.raw(name)
    if not isinstance(value, list | tuple):
        return (config.whole(name, default=default),) * count
    found = config.wholes(name, low=1) or (1,) * count
    if len(found) != count:
        config.fault(
            "contradiction", f"{name} has not one entry a stage", name, got=f"{len(found):,}", expected=f"{count:,}"
        )
        return (1,) * count
    return found


def _depths(config: Config, name: str, depths: Sequence[int]) -> list[tuple[int, ...]]:
    """Transformer blocks after each residual block of a stage: one number, one a stage, or a list for a stage."""
    value = config.raw(name)
    entries = list(value) if isinstance(value, list | tuple) else [value or 1] * len(depths)
    if len(entries) != len(depths):
        config.fault(
            "contradiction", f"{name} has not one entry a stage", name, got=f"{len(entries):,}",
            expected=f"{len(depths):,}",
        )  # fmt: skip
        return [(1,) * depth for depth in depths]
    found = []
    for entry, depth in zip(entries, depths, strict=True):
        inner = _with(config, name, entry if isinstance(entry, list | tuple) else [entry] * depth)
        each = inner.wholes(name, low=1, high=10_000) or (1,) * depth
        if len(each) < depth:
            expected = f"at least {depth:,}"
            config.fault(
                "contradiction", f"{name} is too short for a stage", name, got=f"{len(each):,}", expected=expected
            )
        found.append(each)
    return found


def _with(config: Config, name: str, value: object) -> Config:
    """The same config with another value, sharing the faults."""
    changed = Config({**config.values, name: value}, config.where)
    changed.faults = config.faults
    return changed


def _stages(config: Config) -> tuple[list[Stage], Stage | None, list[Stage]]:
    """The way down, the middle, and the way up."""
    widths = config.wholes("block_out_channels", low=1) or (320, 640, 1280, 1280)
    count = len(widths)
    usual_down, usual_up = (CROSS_DOWN,) * (count - 1) + (DOWN,), (UP,) + (CROSS_UP,) * (count - 1)
    downs = config.names("down_block_types", count, (DOWN, CROSS_DOWN)) or usual_down
    ups = config.names("up_block_types", count, (UP, CROSS_UP)) or usual_up
    absent = "mid_block_type" in config.values and not config.has("mid_block_type")
    middle = NO_MID if absent else config.choice("mid_block_type", (MID, CROSS_MID), CROSS_MID)
    heads = _each(config, "attention_head_dim", 8, count)  # the key's name notwithstanding, the number of heads
    if config.has("num_attention_heads"):
        config.fault("unsupported", "the class takes its heads under attention_head_dim", "num_attention_heads")
    cross, depths = _each(config, "cross_attention_dim", 1280, count), _each(config, "layers_per_block", 2, count)
    if count > MAX_STAGES or max(depths) > MAX_STAGES:
        config.fault("bad_value", "too many stages or blocks", "block_out_channels", expected=f"at most {MAX_STAGES}")
    config.check()
    name = "transformer_layers_per_block"
    below = _depths(config, name, depths)
    upwards = [depth + 1 for depth in reversed(depths)]
    if config.has(f"reverse_{name}"):
        above = _depths(config, f"reverse_{name}", upwards)
    else:
        value = config.raw(name)
        mirrored = list(reversed(value)) if isinstance(value, list | tuple) else value
        above = _depths(_with(config, name, mirrored), name, upwards)
    for width, number in zip(widths, heads, strict=True):
        if width % number:
            config.fault(
                "contradiction", "the heads of a stage do not divide its width", "attention_head_dim",
                got=f"{number} heads, width {width}",
            )  # fmt: skip

    def stage(i: int, crossed: bool, layers: tuple[int, ...]) -> Stage:
        return Stage(width=widths[i], depth=depths[i], crossed=crossed, heads=heads[i], cross=cross[i], layers=layers)

    going_down = [stage(i, downs[i] == CROSS_DOWN, below[i]) for i in range(count)]
    going_up = [stage(count - 1 - i, ups[i] == CROSS_UP, above[i]) for i in range(count)]
    return going_down, None if middle == NO_MID else stage(count - 1, middle == CROSS_MID, below[-1]), going_up


FAMILIES = {"UNet2DConditionModel": read_unet}
