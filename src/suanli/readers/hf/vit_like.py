"""Plain vision transformers with a classifier, one row a family: patches of one size, layers that see all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from suanli.nouns.arch import SAMPLE, Arch, Module, Shape, Stream
from suanli.nouns.layers import Attention, Conv, Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dotted, mlp, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.encoders import refuse
from suanli.readers.hf.vision import PATCHES, heads_of, labels_of, patch_grid

VIT_ATTENTION = AttentionNames(at="attention")
BEIT_ATTENTION = AttentionNames(
    at="attention", q="attention.query", k="attention.key", v="attention.value", o="output.dense"
)
CLIP_ATTENTION = AttentionNames(o="out_proj")


@dataclass(frozen=True, kw_only=True)
class Vit:
    """A family. `tokens` are learned positions before the patches, `counted` of which have a position embedding."""

    base: str
    embeddings: str = "embeddings"
    patches: str = "patch_embeddings.projection"
    patch_bias: bool = True
    tokens: tuple[str, ...] = ("cls_token",)
    counted: int | None = None
    positions: str = "position_embeddings"
    position_table: bool = False
    position_key: str | None = None
    idle: tuple[str, ...] = ()
    layers: str = "layers"
    attention: AttentionNames = VIT_ATTENTION
    k_bias: bool = True
    norms: tuple[str, str] = ("layernorm_before", "layernorm_after")
    mlp: tuple[str, str] = ("mlp.fc1", "mlp.fc2")
    scales: tuple[str, str] | None = None
    scale_key: str | None = None
    first_norm: str | None = None
    last_norm: str | None = "layernorm"
    registers: str | None = None
    head: str = "classifier"
    joined: int = 1
    probe: bool = False
    part: str | None = None
    by_ratio: bool = False
    biased_key: str | None = "qkv_bias"
    refuse: tuple[tuple[str, object, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The shapes of a picture transformer."""

    hidden: int
    heads: int
    ffn: int
    layers: int
    labels: int
    channels: int
    kernel: tuple[int, int]
    size: tuple[int, int]
    grid: tuple[int, int]
    registers: int
    qkv_bias: bool
    scaled: bool
    positions: bool


def _numbers(config: Config, family: Vit) -> Numbers:
    labels = config.maybe("num_labels") or labels_of(config) or 2
    part = config.part(family.part) if family.part else config
    h, patch = part.need("hidden_size"), part.whole("patch_size", default=16, high=100_000)
    size, grid = patch_grid(part, patch)
    ffn = h * part.whole("mlp_ratio", default=4) if family.by_ratio else part.need("intermediate_size")
    absent = {"layer_scale_init_value": 0}
    refuse(config, *family.refuse)
    return Numbers(
        hidden=h, heads=heads_of(part, h), ffn=ffn, layers=part.layers("num_hidden_layers"), labels=labels,
        channels=part.whole("num_channels", default=3), kernel=(patch, patch), size=size, grid=grid,
        registers=part.need("num_register_tokens", low=0) if family.registers else 0,
        qkv_bias=part.flag(family.biased_key, default=True) if family.biased_key else True,
        scaled=family.scale_key is None or _positive(part, family.scale_key, absent),
        positions=family.position_key is None or part.flag(family.position_key, default=False),
    )  # fmt: skip


def _positive(config: Config, key: str, absent: dict[str, int]) -> bool:
    value = config.values.get(key, absent.get(key, 0))
    return isinstance(value, int | float) and value > 0


def layer(n: Numbers, family: Vit) -> tuple[Node, ...]:
    """Norm, attention, norm, MLP, with learned scales where the family has them."""
    h = n.hidden
    spec = AttentionSpec(
        hidden=h, heads=n.heads, kv_heads=n.heads, head_dim=max(1, h // n.heads), names=family.attention,
        qkv_bias=n.qkv_bias, k_bias=family.k_bias, o_bias=True, mask="full",
    )  # fmt: skip
    scales = family.scales if n.scaled else None
    first, second = ((Parameter(name=each, shape=(h,)),) for each in scales) if scales else ((), ())
    return (
        norm(family.norms[0], h, "layer"),
        *attention(spec),
        *first,
        norm(family.norms[1], h, "layer"),
        *mlp(h, n.ffn, at="", names=family.mlp, bias=True),
        *second,
    )


def embeddings(n: Numbers, family: Vit, patches: int) -> tuple[Node, ...]:
    """Tokens, positions, patches; tokens that are held and not used."""
    h, at = n.hidden, dotted(family.base, family.embeddings)
    counted = len(family.tokens) if family.counted is None else family.counted
    conv = Conv(
        name=f"{at}.{family.patches}", in_channels=n.channels, out_channels=h, kernel=n.kernel, in_size=n.size,
        out_size=n.grid, bias=family.patch_bias, raw_input=True,
    )  # fmt: skip
    token_shape = (h,) if family.position_table else (1, 1, h)
    nodes: list[Node] = [Parameter(name=f"{at}.{each}", shape=token_shape) for each in family.tokens]
    nodes += [Parameter(name=f"{at}.{each}", shape=(1, h)) for each in family.idle]
    if family.registers:
        nodes.append(Parameter(name=f"{at}.{family.registers}", shape=(1, n.registers, h)))
    rows = patches + counted
    if family.position_table:
        nodes.append(Embedding(name=f"{at}.{family.positions}", num=rows, dim=h, role="position"))
    elif n.positions:
        nodes.append(Parameter(name=f"{at}.{family.positions}", shape=(1, rows, h)))
    return (*nodes, Module(name="", stream=SAMPLE, children=(conv,)))


def _probe(n: Numbers, at: str) -> tuple[Node, ...]:
    """Pooling by attention (SigLIP): one learned query over all patches, then an MLP."""
    h = n.hidden
    one = Module(
        name="", stream=SAMPLE,
        children=(
            Parameter(name=f"{at}.probe", shape=(1, 1, h)),
            Linear(name=f"{at}.attention.in_proj.q", in_features=h, out_features=h, tied=True),
        ),
    )  # fmt: skip
    both = Linear(name=f"{at}.attention.in_proj_weight", in_features=h, out_features=2 * h, tied=True)
    weights = Parameter(name=f"{at}.attention.in_proj_weight", shape=(3 * h, h))
    bias = Parameter(name=f"{at}.attention.in_proj_bias", shape=(3 * h,))
    d = max(1, h // n.heads)
    core = Attention(
        name=f"{at}.attention.attention", heads=n.heads, kv_heads=n.heads, qk_dim=d, v_dim=d, mask="full",
        key_stream=PATCHES,
    )  # fmt: skip
    out = Linear(name=f"{at}.attention.out_proj", in_features=h, out_features=h, bias=True)
    rest = (
        core,
        out,
        norm(f"{at}.layernorm", h, "layer"),
        *mlp(h, n.ffn, at=f"{at}.mlp", names=("fc1", "fc2"), bias=True),
    )
    return (one, weights, bias, both, Module(name="", stream=SAMPLE, children=rest))


def read_vit_like(config: Config, name: str, family: Vit) -> Arch:
    """A picture classifier of a family. Raises ConfigError with every fault."""
    n = _numbers(config, family)
    config.check()
    h, patches = n.hidden, prod(n.grid)
    inner = layer(n, family)
    length = patches + len(family.tokens) + n.registers
    nodes = [*embeddings(n, family, patches)]
    if family.first_norm:
        nodes.append(norm(dotted(family.base, family.first_norm), h, "layer"))
    nodes.extend(stack(dotted(family.base, family.layers), (0,) * n.layers, lambda _: inner))
    if family.last_norm:
        nodes.append(norm(dotted(family.base, family.last_norm), h, "layer"))
    if family.probe:
        nodes.extend(_probe(n, dotted(family.base, "head")))
    head = Linear(name=family.head, in_features=family.joined * h, out_features=n.labels, bias=True)
    nodes.append(Module(name="", stream=SAMPLE, children=(head,)))
    return picture_arch(name, tuple(nodes), n, length)


def picture_arch(
    name: str, nodes: tuple[Node, ...], n: Numbers, length: int, task: str = "image-classification"
) -> Arch:
    """One stream of patches with their tokens."""
    shape = Shape(
        num_layers=n.layers, hidden=n.hidden, heads=n.heads, kv_heads=n.heads, head_dim=max(1, n.hidden // n.heads),
        ffn=n.ffn, vocab=n.labels,
    )  # fmt: skip
    return Arch(
        name=name, root=Module(name="", children=nodes), streams=(Stream(name=PATCHES, length=length),),
        main_stream=PATCHES, shape=shape, max_positions=length, task=task, unit="patch",
        notes=(f"picture {n.size[0]}x{n.size[1]}: {length} positions",),
    )  # fmt: skip


_RELATIVE = (
    ("use_relative_position_bias", True, "relative position biases are not read"),
    ("use_shared_relative_position_bias", True, "relative position biases are not read"),
    ("use_mask_token", True, "a mask token is not read"),
    ("use_mean_pooling", False, "pooling by the first token is not read"),
)
_DINO = Vit(
    base="dinov2", idle=("mask_token",), layers="encoder.layer", norms=("norm1", "norm2"), by_ratio=True, joined=2,
    scales=("layer_scale1.lambda1", "layer_scale2.lambda1"),
    refuse=(("use_swiglu_ffn", True, "a gated MLP is not read"),),
)  # fmt: skip
_SIGLIP = Vit(
    base="vision_model", part="vision_config", patches="patch_embedding", tokens=(), position_table=True,
    positions="position_embedding", layers="encoder.layers", attention=CLIP_ATTENTION,
    norms=("layer_norm1", "layer_norm2"), last_norm="post_layernorm", probe=True, biased_key=None,
)  # fmt: skip
ROWS: dict[str, Vit] = {
    "deit": Vit(base="deit", tokens=("cls_token", "distillation_token")),
    "ijepa": Vit(base="ijepa", tokens=()),
    "vit_msn": Vit(base="vit"),
    "beit": Vit(
        base="beit", k_bias=False, position_key="use_absolute_position_embeddings", biased_key=None,
        scales=("lambda_1", "lambda_2"), scale_key="layer_scale_init_value", last_norm="pooler.layernorm",
        refuse=_RELATIVE,
    ),
    "data2vec-vision": Vit(
        base="data2vec_vision", layers="encoder.layer", attention=BEIT_ATTENTION, k_bias=False,
        mlp=("intermediate.dense", "output.dense"), position_key="use_absolute_position_embeddings", biased_key=None,
        scales=("lambda_1", "lambda_2"), scale_key="layer_scale_init_value", last_norm="pooler.layernorm",
        refuse=_RELATIVE,
    ),
    "dinov2": _DINO,
    "dinov2_with_registers": Vit(
        base="dinov2_with_registers", idle=("mask_token",), registers="register_tokens", layers="encoder.layer",
        norms=("norm1", "norm2"), by_ratio=True, joined=2, scales=("layer_scale1.lambda1", "layer_scale2.lambda1"),
        refuse=_DINO.refuse,
    ),
    "siglip": _SIGLIP,
    "metaclip_2": Vit(
        base="vision_model", part="vision_config", patches="patch_embedding", patch_bias=False,
        tokens=("class_embedding",), position_table=True, positions="position_embedding", first_norm="pre_layrnorm",
        layers="encoder.layers", attention=CLIP_ATTENTION, norms=("layer_norm1", "layer_norm2"),
        last_norm="post_layernorm", biased_key=None,
    ),
}  # fmt: skip


def _reader(family: Vit) -> Callable[[Config, str], Arch]:
    return lambda config, name: read_vit_like(config, name, family)


FAMILIES = {model_type: _reader(family) for model_type, family in ROWS.items()}
