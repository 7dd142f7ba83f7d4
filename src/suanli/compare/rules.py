"""What each tool counts, as data: for every call it looks at, the terms it charges, in its own unit.

Keys are names at one height: a class of torch.nn, a Python function by the place it is looked up, an operator. A rule
is a sum of terms `k form`; the forms are in `forms.py`. Read in calflops 0.3.2, DeepSpeed 0.19.8, ptflops 0.7.5, thop
0.1.1, fvcore 0.1.5, torchinfo 1.8.0, torchprofile 0.1.0 and torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from suanli.compare.peers import CPU, META

Rules = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A tool's rules by height. `products` are rules of single operators inside composite ones."""

    modules: Rules = field(default_factory=dict)
    functions: Rules = field(default_factory=dict)
    operators: Rules = field(default_factory=dict)
    products: Rules = field(default_factory=dict)
    any_leaf: str = ""  # a rule of every module without children, whatever its class
    whole: tuple[str, ...] = ()  # classes counted in one piece: functions called inside them are not
    only_on: Mapping[str, str] = field(default_factory=dict)  # names that count on one device alone
    per_sample: bool = False  # modules are divided by the batch where the first input is positional


def _same(rule: str, names: str | Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(names.split() if isinstance(names, str) else names, rule)


def _of(place: str, rules: Rules) -> dict[str, str]:
    return {f"{place}.{name}": rule for name, rule in rules.items()}


_ACTIVATIONS = "relu prelu elu relu6 silu gelu"
_POOLS = " ".join(f"{kind}_pool{n}d" for kind in ("avg", "max", "adaptive_avg", "adaptive_max") for n in (1, 2, 3))
_CONVS, _TRANSPOSED = "conv1d conv2d conv3d", "conv_transpose1d conv_transpose2d conv_transpose3d"
_RECURRENT = ("RNN", "GRU", "LSTM")

_PROFILER_FUNCTIONS = (
    _same("read", f"{_ACTIVATIONS} leaky_relu softmax {_POOLS}")
    | _same("4 read + affine", "layer_norm group_norm instance_norm")
    | _same("2 conv + bias", _CONVS)
    | {"linear": "2 linear", "batch_norm": "read + affine"}
)
_PROFILER_MODULES = _same("profiler_recurrent", _RECURRENT)
CALFLOPS = Table(
    functions=_of("F", {**_PROFILER_FUNCTIONS, **_same("2 transposed + shrunk_bias", _TRANSPOSED)})
    | _of("torch", {"matmul": "2 matmul", "addmm": "2 second + read", "baddbmm": "2 second + read",
                    "mul": "leading", "add": "leading", "einsum": "einsum"})
    | _of("Tensor", {"matmul": "2 matmul", "addmm": "2 second + read", "mul": "leading", "add": "leading"}),
    modules=_PROFILER_MODULES,
    whole=_RECURRENT,
)  # fmt: skip
DEEPSPEED = Table(
    functions=_of("F", {**_PROFILER_FUNCTIONS, **_same("2 transposed + bias", _TRANSPOSED),
                        "scaled_dot_product_attention": "2 attention"})
    | _of("torch", {**_same("2 matmul", "matmul mm bmm"), **_same("2 second + read", "addmm baddbmm"),
                    **_same("written", "mul add"), "einsum": "einsum"})
    | _of("Tensor", {**_same("2 matmul", "matmul __matmul__ mm bmm"), "addmm": "2 second + read",
                     **_same("written", "mul add")}),
    modules=_PROFILER_MODULES,
    whole=_RECURRENT,
)  # fmt: skip
PTFLOPS = Table(
    modules=_same("conv + bias", "Conv1d Conv2d Conv3d")
    | _same("transposed + bias", "ConvTranspose1d ConvTranspose2d ConvTranspose3d")
    | _same("written", "ReLU PReLU ELU LeakyReLU ReLU6 GELU")
    | _same("read", "MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
                    "AdaptiveMaxPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d LayerNorm")
    | _same("read + affine", "BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d "
                             "GroupNorm")
    | _same("macs_recurrent", _RECURRENT)
    | {"Linear": "linear + bias", "MultiheadAttention": "multihead"},
    functions=_of("F", _same("read", f"{_ACTIVATIONS} softmax {_POOLS}"))
    | _of("torch", {**_same("matmul", "matmul mm bmm"), **_same("second + read", "addmm baddbmm"),
                    **_same("leading", "mul add")})
    | _of("Tensor", {**_same("matmul", "matmul mm bmm"), "addmm": "second + read", **_same("leading", "mul add")}),
    per_sample=True,
)  # fmt: skip
THOP = Table(
    modules=_same("by_output", "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d")
    | _same("2 read + 2 affine", "BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm InstanceNorm1d InstanceNorm2d "
                                 "InstanceNorm3d SyncBatchNorm")
    | _same("written", "AvgPool1d AvgPool2d AvgPool3d")
    | _same("window + written", "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d")
    | {"Linear": "linear", "PReLU": "read", "Softmax": "softmax", "RNN": "thop_recurrent", "GRU": "thop_recurrent",
       "LSTM": "thop_recurrent"},
)  # fmt: skip
TORCHINFO = Table(any_leaf="parameters")
FVCORE = Table(
    operators=_same("conv", f"{_CONVS} convolution _convolution")
    | _same("transposed", _TRANSPOSED)
    | _same("matmul", "matmul mm bmm")
    | _same("4 read + affine", "layer_norm group_norm instance_norm")
    | _same("4 written", "upsample_bilinear2d grid_sampler")
    | {"linear": "linear", "addmm": "second", "einsum": "einsum_macs", "batch_norm": "read + affine",
       "upsample_nearest2d": "written", "adaptive_avg_pool2d": "read"},
)  # fmt: skip
TORCHPROFILE = Table(
    operators=_same("by_output", f"{_CONVS} {_TRANSPOSED} convolution _convolution")
    | _same("affine", "batch_norm instance_norm layer_norm group_norm")
    | _same("written", "mul mul_ mean adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d "
                       "avg_pool2d avg_pool3d leaky_relu")
    | {"linear": "linear", "matmul": "product", "bmm": "product", "addmm": "second", "baddbmm": "product",
       "addmv": "product", "scaled_dot_product_attention": "product", "einsum": "product", "lstm": "product",
       "upsample_bilinear2d": "4 written"},
)  # fmt: skip
_DISPATCHED = "linear mm addmm bmm baddbmm convolution _convolution"
FLOP_COUNTER_MODE = Table(
    products=_same("2 product", f"{_DISPATCHED} scaled_dot_product_attention lstm gru rnn_tanh rnn_relu _scaled_mm"),
    only_on={"scaled_dot_product_attention": META, "lstm": META},
)
PTFLOPS_ATEN = Table(
    products=_same("product + bias", f"{_DISPATCHED} gru rnn_tanh rnn_relu lstm")
    | {"baddbmm": "", "bmm": "product", "mm": "product", "scaled_dot_product_attention": "product"},
    only_on={"scaled_dot_product_attention": META, "lstm": META},
)
TABLES: Mapping[str, Table] = {
    "flop_counter_mode": FLOP_COUNTER_MODE,
    "calflops": CALFLOPS,
    "deepspeed": DEEPSPEED,
    "ptflops": PTFLOPS,
    "ptflops-aten": PTFLOPS_ATEN,
    "thop": THOP,
    "fvcore": FVCORE,
    "torchinfo": TORCHINFO,
    "torchprofile": TORCHPROFILE,
}
DEVICES = (META, CPU)
