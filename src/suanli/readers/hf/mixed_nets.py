"""Nets that mix convolutions with attention: MobileViT, CvT, LeViT, SwiftFormer, Hiera."""

from __future__ import annotations

from functools import partial
from math import prod

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Parameter
from suanli.readers.config import Config
from suanli.readers.hf.convnets import divisible, number
from suanli.readers.hf.maps import Net, Size, attend, linear, per_stage, plain_norm, start
from suanli.readers.hf.vision import image_size

# --- MobileViT ----------------------------------------------------------------------------------------------------


def _residual(net: Net, at: str, c_out: int, stride: int, ratio: float) -> None:
    """MobileNet v2's block: widen, filter, narrow."""
    wide = divisible(round(net.channels * ratio), 8)
    net.conv_norm(f"{at}.expand_1x1", wide, 1)
    net.conv_norm(f"{at}.conv_3x3", wide, 3, stride, groups=wide)
    net.conv_norm(f"{at}.reduce_1x1", c_out, 1)


def _strides(config: Config) -> tuple[int, int, int]:
    """Strides of the three mixed layers; dilation takes the place of the last ones."""
    return {8: (2, 1, 1), 16: (2, 2, 1)}.get(config.whole("output_stride", default=32), (2, 2, 2))


def _mixed_start(config: Config) -> tuple[Net, int, int, int, float]:
    net, labels = start(config, 256)
    patch, taps = config.whole("patch_size", default=2, high=1000), config.whole("conv_kernel_size", default=3)
    return net, labels, patch, taps, number(config, "expand_ratio", 4.0)


def read_mobilevit(config: Config, name: str) -> Arch:
    """MobileViT (arXiv:2110.02178): pixels of the same place in every patch attend to each other."""
    net, labels, patch, taps, expand = _mixed_start(config)
    widths, necks = config.wholes("hidden_sizes", low=1) or (), config.wholes("neck_hidden_sizes", low=1) or ()
    heads, ratio = config.need("num_attention_heads"), number(config, "mlp_ratio", 2.0)
    bias, steps = config.flag("qkv_bias", default=True), _strides(config)
    if len(widths) != 3 or len(necks) != 7:
        config.fault("bad_value", "hidden_sizes and neck_hidden_sizes are not three and seven numbers", "hidden_sizes")
    if any(width % heads for width in widths):
        config.fault("contradiction", "the heads do not divide the widths", "num_attention_heads")
    config.check()

    def layer(whole: Size) -> None:
        h, at = net.channels, "attention.attention"
        net.over(
            plain_norm("layernorm_before", h),
            linear(f"{at}.query", h, h, bias=bias),
            linear(f"{at}.key", h, h, bias=bias),
            linear(f"{at}.value", h, h, bias=bias),
            attend(f"{at}.attention", heads, h, keys=prod(whole) // patch**2),
            linear("attention.output.dense", h, h),
            plain_norm("layernorm_after", h),
            linear("intermediate.dense", h, int(h * ratio)),
            linear("output.dense", int(h * ratio), h),
            size=whole,
        )

    net.conv_norm("mobilevit.conv_stem", necks[0], 3, 2)
    at = "mobilevit.encoder.layer"
    _residual(net, f"{at}.0.layer.0", necks[1], 1, expand)
    for i in range(3):
        _residual(net, f"{at}.1.layer.{i}", necks[2], 2 if i == 0 else 1, expand)
    for i, (width, neck, stride, depth) in enumerate(zip(widths, necks[3:6], steps, (2, 4, 3), strict=True), 2):
        _residual(net, f"{at}.{i}.downsampling_layer", neck, stride, expand)
        net.conv_norm(f"{at}.{i}.conv_kxk", neck, taps)
        net.conv(f"{at}.{i}.conv_1x1.convolution", width, 1)
        whole = tuple(-(-each // patch) * patch for each in net.size)
        net.stage(f"{at}.{i}.transformer.layer", depth, lambda _, s=whole: layer(s))  # type: ignore[misc]
        net.norm(f"{at}.{i}.layernorm")
        net.conv_norm(f"{at}.{i}.conv_projection", neck, 1)
        net.channels = 2 * neck
        net.conv_norm(f"{at}.{i}.fusion", neck, taps)
    net.conv_norm("mobilevit.conv_1x1_exp", necks[6], 1)
    net.head("classifier", labels)
    return net.arch(name)


def read_mobilevit_v2(config: Config, name: str) -> Arch:
    """MobileViT v2 (arXiv:2206.02680): attention whose cost is linear, made of 1×1 convolutions alone."""
    net, labels, patch, taps, expand = _mixed_start(config)
    factor, steps = number(config, "width_multiplier", 1.0), _strides(config)
    depths, units = per_stage(config, "n_attn_blocks", "base_attn_unit_dims")
    ratio = number(config, "ffn_multiplier", 2.0)
    if len(depths) != 3:
        config.fault("bad_value", "n_attn_blocks is not three numbers", "n_attn_blocks")
    config.check()

    def layer() -> None:
        h = net.channels
        ffn = int(ratio * h // 16 * 16)
        net.norm("layernorm_before")
        net.conv("attention.qkv_proj.convolution", 2 * h + 1, 1, bias=True)
        net.channels = h
        net.conv("attention.out_proj.convolution", h, 1, bias=True)
        net.norm("layernorm_after")
        net.conv("ffn.conv1.convolution", ffn, 1, bias=True)
        net.conv("ffn.conv2.convolution", h, 1, bias=True)

    at = "mobilevitv2.encoder.layer"
    net.conv_norm("mobilevitv2.conv_stem", divisible(max(16, min(64, 32 * factor)), 8, 16), 3, 2)
    _residual(net, f"{at}.0.layer.0", divisible(64 * factor, 16), 1, expand)
    for i in range(2):
        _residual(net, f"{at}.1.layer.{i}", divisible(128 * factor, 8), 2 if i == 0 else 1, expand)
    for i, (base, unit, stride, depth) in enumerate(zip((256, 384, 512), units, steps, depths, strict=True), 2):
        neck = divisible(base * factor, 8)
        _residual(net, f"{at}.{i}.downsampling_layer", neck, stride, expand)
        net.conv_norm(f"{at}.{i}.conv_kxk", neck, taps, groups=neck)
        net.conv(f"{at}.{i}.conv_1x1.convolution", divisible(unit * factor, 8), 1)
        kept = net.size
        net.size = tuple(each // patch * patch for each in kept)
        net.stage(f"{at}.{i}.transformer.layer", depth, lambda _: layer())
        net.size = kept
        net.norm(f"{at}.{i}.layernorm")
        net.conv_norm(f"{at}.{i}.conv_projection", neck, 1)
    net.head("classifier", labels)
    return net.arch(name)


# --- CvT, LeViT ---------------------------------------------------------------------------------------------------


def _flags(config: Config, key: str, length: int) -> tuple[bool, ...]:
    value = config.values.get(key)
    if isinstance(value, list | tuple) and len(value) == length and all(isinstance(each, bool) for each in value):
        return tuple(value)
    config.fault("bad_value", f"{key} is not a list of one flag a stage", key)
    return (False,) * length


def read_cvt(config: Config, name: str) -> Arch:
    """CvT (arXiv:2103.15808): queries, keys and values pass a depthwise convolution first, keys and values strided."""
    net, labels = start(config)
    keys = ("patch_sizes", "patch_stride", "embed_dim", "num_heads", "depth", "mlp_ratio", "kernel_qkv", "stride_kv")
    patches, strides, widths, all_heads, depths, ratios, kernels, kv_strides = per_stage(config, *keys)
    pads = {key: config.wholes(key) or () for key in ("patch_padding", "padding_q", "padding_kv", "stride_q")}
    if any(len(each) != len(depths) for each in pads.values()):
        config.fault("contradiction", "paddings and strides are not one number a stage", "patch_padding")
    biases, tokens = (_flags(config, key, len(depths)) for key in ("qkv_bias", "cls_token"))
    if config.names("qkv_projection_method", len(depths), ("dw_bn", "avg", "linear")) != ("dw_bn",) * len(depths):
        config.fault("unsupported", "only depthwise projections are read", "qkv_projection_method")
    if set(pads["stride_q"]) - {1}:
        config.fault("unsupported", "strided queries are not read", "stride_q")
    config.check()

    def block(i: int) -> None:
        h, more, size, at = net.channels, int(tokens[i]), net.size, "attention.attention"
        maps: dict[str, Size] = {}
        for side, pad, step in (("query", "padding_q", 1), ("key", "padding_kv", kv_strides[i]),
                                ("value", "padding_kv", kv_strides[i])):  # fmt: skip
            net.size = size
            where = f"{at}.convolution_projection_{side}.convolution_projection"
            net.conv_norm(where, h, kernels[i], step, groups=h, padding=pads[pad][i])
            maps[side] = net.size
        for side, seen in maps.items():
            net.over(linear(f"{at}.projection_{side}", h, h, bias=biases[i]), size=seen, more=more)
        net.size = size
        core = attend(f"{at}.attention", all_heads[i], h, key_stream=net.stream(maps["key"], more))
        net.over(
            core,
            linear("attention.output.dense", h, h),
            plain_norm("layernorm_before", h),
            plain_norm("layernorm_after", h),
            linear("intermediate.dense", h, ratios[i] * h),
            linear("output.dense", ratios[i] * h, h),
            more=more,
        )

    for i, width in enumerate(widths):
        at = f"cvt.encoder.stages.{i}"
        embed = f"{at}.embedding.convolution_embeddings"
        net.conv(f"{embed}.projection", width, patches[i], strides[i], padding=pads["patch_padding"][i], bias=True)
        net.norm(f"{embed}.normalization")
        if tokens[i]:
            net.add(Parameter(name=f"{at}.cls_token", shape=(1, 1, widths[-1])))
        net.stage(f"{at}.layers", depths[i], lambda _, n=i: block(n))  # type: ignore[misc]
    net.norm("layernorm")
    net.head("classifier", labels)
    return net.arch(name)


def _offsets(queries: int, keys: int, stride: int) -> int:
    """Distinct distances between two grids: as many biases as pairs of distances along each side."""
    return len({abs(q * stride - k) for q in range(queries) for k in range(keys)}) ** 2


def _subsamples(config: Config) -> list[tuple[int, ...]]:
    """Key width, heads, value ratio, MLP ratio and stride of each step between stages."""
    value = config.values.get("down_ops")
    rows = value if isinstance(value, list | tuple) else ()
    found = [tuple(row[1:]) for row in rows if isinstance(row, list | tuple) and len(row) == 6]
    return [row for row in found if all(type(each) is int and each > 0 for each in row)]


def _levit_stem(net: Net, width: int, kernel: int, stride: int, padding: int) -> None:
    """Four convolutions, each twice as wide as the one before."""
    for i, part in enumerate((8, 4, 2, 1), 1):
        at = f"levit.patch_embeddings.embedding_layer_{i}"
        names = ("convolution", "batch_norm")
        net.conv_norm(at, width // part, kernel, stride, padding=padding, at=names)


def read_levit(config: Config, name: str) -> Arch:
    """LeViT (arXiv:2104.01136): a convolutional stem, attention with narrow keys, subsampled between stages."""
    net, labels = start(config)
    keys = ("hidden_sizes", "num_attention_heads", "depths", "key_dim", "mlp_ratio", "attention_ratio")
    widths, all_heads, depths, dims, ratios, wider = per_stage(config, *keys)
    kernel, stride = config.whole("kernel_size", default=3), config.whole("stride", default=2)
    padding, patch = config.whole("padding", default=1, low=0), config.whole("patch_size", default=16, high=10_000)
    downs = _subsamples(config)
    if len(downs) < len(depths) - 1:
        config.fault("missing_key", "down_ops does not say how each stage is subsampled", "down_ops")
    side = net.size[0] // patch
    if len(set(net.size)) != 1 or side > 1000:
        config.fault("unsupported", "only square pictures are read", "image_size")
    config.check()

    def dense(at: str, c_in: int, c_out: int) -> None:
        net.over(linear(f"{at}.linear", c_in, c_out, bias=False), plain_norm(f"{at}.batch_norm", c_out))

    def mlp(at: str, ratio: int) -> None:
        h = net.channels
        dense(f"{at}.module.linear_up", h, ratio * h)
        dense(f"{at}.module.linear_down", ratio * h, h)

    def core(at: str, heads: int, dim: int, ratio: int, stream: str | None) -> None:
        net.over(
            attend(f"{at}.scores", heads, heads * dim, key_stream=stream, values=0),
            attend(f"{at}.context", heads, heads * dim, key_stream=stream, values=ratio * dim, keys_width=0),
        )

    def block(at: str, i: int) -> None:
        h, n, d, r = net.channels, all_heads[i], dims[i], wider[i]
        net.add(Parameter(name=f"{at}.module.attention_biases", shape=(n, _offsets(net.size[0], net.size[0], 1))))
        dense(f"{at}.module.queries_keys_values", h, n * d * (r + 2))
        core(f"{at}.module", n, d, r, None)
        dense(f"{at}.module.projection", r * d * n, h)

    def subsample(at: str, down: tuple[int, ...], c_out: int) -> int:
        d, n, r, ratio, step = down
        h, size = net.channels, net.size
        fewer = tuple((each - 1) // step + 1 for each in size)
        net.add(Parameter(name=f"{at}.attention_biases", shape=(n, _offsets(fewer[0], size[0], step))))
        dense(f"{at}.keys_values", h, n * d * (r + 1))
        stream, net.size = net.stream(size), fewer
        dense(f"{at}.queries", h, n * d)
        core(at, n, d, r, stream)
        dense(f"{at}.projection", r * d * n, c_out)
        net.channels = c_out
        return ratio

    _levit_stem(net, widths[0], kernel, stride, padding)
    if net.size != (side, side):
        config.fault("contradiction", "patch_size is not what the stem leaves", "patch_size", got=str(patch))
        config.check()
    for i, depth in enumerate(depths):
        at, index = f"levit.encoder.stages.{i}.layers", 2 * depth
        for each in range(0, index, 2):
            block(f"{at}.{each}", i)
            mlp(f"{at}.{each + 1}", ratios[i])
        if i < len(depths) - 1:
            ratio = subsample(f"{at}.{index}", downs[i], widths[i + 1])
            mlp(f"{at}.{index + 1}", ratio)
    net.add(plain_norm("classifier.batch_norm", net.channels))
    net.head("classifier.linear", labels)
    return net.arch(name)


# --- SwiftFormer, Hiera -------------------------------------------------------------------------------------------


def read_swiftformer(config: Config, name: str) -> Arch:
    """SwiftFormer (arXiv:2303.15446): convolutional blocks, the last of each stage with additive attention."""
    net, labels = start(config)
    depths, widths = per_stage(config, "depths", "embed_dims")
    ratio, scaled = config.whole("mlp_ratio", default=4), config.flag("use_layer_scale", default=True)
    kernel, stride = config.whole("down_patch_size", default=3), config.whole("down_stride", default=2)
    padding = config.whole("down_pad", default=1, low=0)
    downs = _flags(config, "downsamples", len(depths))
    config.check()

    def local(at: str, wide: int) -> None:
        h = net.channels
        net.conv(f"{at}depth_wise_conv", h, 3, groups=h, bias=True)
        net.batch_norm(f"{at}norm")
        net.conv(f"{at}point_wise_conv1", wide, 1, bias=True)
        net.conv(f"{at}point_wise_conv2", h, 1, bias=True)
        net.scale(f"{at}layer_scale")

    def attention() -> None:
        h = net.channels
        local("local_representation.", h)
        net.over(
            linear("attn.to_query", h, h),
            linear("attn.to_key", h, h),
            linear("attn.w_g", h, 1, bias=False),
            linear("attn.proj", h, h),
            linear("attn.final", h, h),
        )
        net.batch_norm("linear.norm1")
        net.conv("linear.fc1", ratio * h, 1, bias=True)
        net.conv("linear.fc2", h, 1, bias=True)
        if scaled:
            net.scale("layer_scale_1")
            net.scale("layer_scale_2")

    for i, width in ((0, widths[0] // 2), (3, widths[0])):
        net.conv(f"swiftformer.patch_embed.patch_embedding.{i}", width, 3, 2, bias=True)
        net.batch_norm(f"swiftformer.patch_embed.patch_embedding.{i + 1}")
    index = 0
    for i, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        at = f"swiftformer.encoder.network.{index}.blocks"
        if depth > 1:
            net.block(at, lambda w=width: local("", ratio * w), 0, depth - 1)  # type: ignore[misc]
        net.block(at, attention, depth - 1)
        index += 1
        if i < len(depths) - 1 and (downs[i] or width != widths[i + 1]):
            at = f"swiftformer.encoder.network.{index}"
            net.conv(f"{at}.proj", widths[i + 1], kernel, stride, padding=padding, bias=True)
            net.batch_norm(f"{at}.norm")
            index += 1
    net.batch_norm("norm")
    net.head("head", labels)
    net.head("dist_head", labels)
    return net.arch(name)


def read_hiera(config: Config, name: str) -> Arch:
    """Hiera (arXiv:2306.00989): attention within units in the first stages, queries pooled between stages."""
    net, labels = start(config)
    depths, all_heads = per_stage(config, "depths", "num_heads")
    pairs = {key: config.wholes(key) or () for key in (
        "patch_size", "patch_stride", "patch_padding", "query_stride", "masked_unit_size"
    )}  # fmt: skip
    if any(len(each) != 2 for each in pairs.values()):
        config.fault("bad_value", "patch, stride, query and unit sizes are not pairs", "patch_size")
    local = _flags(config, "masked_unit_attention", len(depths))
    width, grow = config.need("embed_dim"), config.whole("embed_dim_multiplier", default=2)
    pools, ratio = config.whole("num_query_pool", default=3, low=0), number(config, "mlp_ratio", 4.0)
    config.check()
    steps, unit = pairs["patch_stride"], prod(pairs["masked_unit_size"])
    fewer = prod(pairs["query_stride"])
    net.conv("hiera.embeddings.patch_embeddings.projection", width, pairs["patch_size"], steps,
             padding=pairs["patch_padding"], bias=True)  # fmt: skip
    if net.size != tuple(each // step for each, step in zip(image_size(config), steps, strict=True)):
        config.fault("unsupported", "a picture that is no multiple of the stride is not read", "image_size")
        config.check()
    net.add(Parameter(name="hiera.embeddings.position_embeddings", shape=(1, prod(net.size), width)))

    def block(heads: int, c_out: int, pooled: bool, keys: int | None) -> None:
        h = net.channels
        size = net.size
        net.norm("layernorm_before")
        net.over(*((linear("proj", h, c_out),) if h != c_out else ()), linear("attn.qkv", h, 3 * c_out))
        stream = net.stream(size)
        if pooled:
            net.size = tuple(each // step for each, step in zip(size, pairs["query_stride"], strict=True))
        core = attend("attn.attention", heads, c_out, keys=keys, key_stream=None if keys else stream)
        net.channels = c_out
        net.over(core, linear("attn.proj", c_out, c_out))
        net.norm("layernorm_after")
        net.mlp("mlp.fc1", "mlp.fc2", int(c_out * ratio))

    for i, (depth, heads) in enumerate(zip(depths, all_heads, strict=True)):
        at, pooled, c_out = f"hiera.encoder.stages.{i}.layers", 0 < i <= pools, net.channels * (grow if i else 1)
        units = local[i - 1] if pooled else local[i]  # the pooling layer still works as the stage before
        net.block(at, partial(block, heads, c_out, pooled, unit if units else None), 0)
        unit //= fewer if pooled else 1
        if depth > 1:
            net.block(at, partial(block, heads, c_out, False, unit if local[i] else None), 1, depth - 1)
    net.norm("hiera.pooler.layernorm")
    net.head("classifier", labels)
    return net.arch(name)


FAMILIES = {
    "mobilevit": read_mobilevit,
    "mobilevitv2": read_mobilevit_v2,
    "cvt": read_cvt,
    "levit": read_levit,
    "swiftformer": read_swiftformer,
    "hiera": read_hiera,
}
