"""A layer expression as a torch module, so that other counters can run what Suanli reads as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from suanli.errors import ConfigError, Fault
from suanli.readers.layer_elements import Element
from suanli.readers.layer_expr import read_elements
from suanli.readers.torch_module.load import import_torch

_PLACES = {
    "linear": ("inputs", "outputs"), "embedding": ("num", "dim"), "maxpool": ("kernel", "stride", "padding"),
    "avgpool": ("kernel", "stride", "padding"), "adaptiveavgpool": ("size",), "layernorm": ("dim",),
    "rmsnorm": ("dim",), "batchnorm": ("dim",), "lstm": ("input", "hidden", "layers"),
    "gru": ("input", "hidden", "layers"), "rnn": ("input", "hidden", "layers"), "dropout": ("p",),
}  # fmt: skip
_CONV_PLACES = ("inputs", "outputs", "kernel", "stride", "padding")


def module_of(text: str, batch: int, seq: int) -> tuple[Any, Any]:
    """The module of an expression and its input. Raises ConfigError for an element that torch has no layer of."""
    torch = import_torch()
    elements, size = read_elements(text)
    rank = len(size or ())
    features: int | None = None
    layers: list[Any] = []
    for element in elements:
        layer, features = _layer(element, rank, features)
        layers.append(layer)
    return torch.nn.Sequential(*layers), _input(elements[0], batch, seq, size)


def _input(first: Element, batch: int, seq: int, size: tuple[int, ...] | None) -> Any:
    torch = import_torch()
    values = _values(first)
    if first.name == "embedding":
        return torch.zeros(batch, seq, dtype=torch.int64)
    wide = next((values[name] for name in ("inputs", "input", "dim") if name in values), 1)
    return torch.zeros(batch, wide, *size) if size else torch.zeros(batch, seq, wide)


def _values(element: Element) -> dict[str, Any]:
    places = _CONV_PLACES if element.name.startswith("conv") else _PLACES.get(element.name, ())
    return dict(zip(places, element.args, strict=False)) | element.options


def _layer(element: Element, rank: int, features: int | None) -> tuple[Any, int | None]:
    """The torch layer of an element, and the features it leaves."""
    values, nn = _values(element), import_torch().nn
    name = element.name
    if name.startswith("conv"):
        return _conv(name, values), values["outputs"]
    if name in _PLAIN:
        return getattr(nn, _PLAIN[name])(), features
    made = _MADE.get(name)
    if made is None:
        raise ConfigError(
            Fault(code="no_layer", message=f"torch has no layer like {name} to be run", where=element.where)
        )
    if name in ("lstm", "gru", "rnn"):
        left = (values.get("proj") or values["hidden"]) * (2 if values.get("bidirectional") else 1)
    else:
        left = values.get("outputs", values.get("dim", features))
    return made(nn, values, max(rank, 1), features), left


_PLAIN = {
    "relu": "ReLU", "gelu": "GELU", "silu": "SiLU", "sigmoid": "Sigmoid", "tanh": "Tanh", "flatten": "Flatten",
    "dropout": "Dropout",
}  # fmt: skip


def _conv(name: str, values: Mapping[str, Any]) -> Any:
    nn = import_torch().nn
    turned = values.get("transposed", False) or "transpose" in name
    kind = f"Conv{'Transpose' if turned else ''}{name[-2]}d"
    options = {torch_name: values[ours] for ours, torch_name in _CONV_OPTIONS.items() if ours in values}
    return getattr(nn, kind)(values["inputs"], values["outputs"], values["kernel"], **options)


_CONV_OPTIONS = {
    "stride": "stride", "padding": "padding", "dilation": "dilation", "groups": "groups", "bias": "bias",
    "output_padding": "output_padding",
}  # fmt: skip


def _recurrent(kind: str) -> Callable[..., Any]:
    def made(nn: Any, values: Mapping[str, Any], _rank: int, _features: int | None) -> Any:
        more = {"proj_size": values["proj"]} if values.get("proj") else {}

        alone = getattr(nn, kind)(
            values["input"], values["hidden"], values.get("layers", 1), batch_first=True,
            bidirectional=values.get("bidirectional", False), bias=values.get("bias", True), **more,
        )  # fmt: skip
        return _first(nn, alone)

    return made


def _first(nn: Any, stack: Any) -> Any:
    class First(nn.Module):  # type: ignore[misc]
        """The outputs of a recurrent stack, without its states."""

        def __init__(self) -> None:
            super().__init__()
            self.stack = stack

        def forward(self, x: Any) -> Any:
            return self.stack(x)[0]

    return First()


_MADE: dict[str, Callable[..., Any]] = {
    "linear": lambda nn, at, _rank, _features: nn.Linear(at["inputs"], at["outputs"], bias=at.get("bias", True)),
    "embedding": lambda nn, at, _rank, _features: nn.Embedding(at["num"], at["dim"]),
    "maxpool": lambda nn, at, rank, _: getattr(nn, f"MaxPool{rank}d")(
        at["kernel"], at.get("stride"), at.get("padding", 0)
    ),
    "avgpool": lambda nn, at, rank, _: getattr(nn, f"AvgPool{rank}d")(
        at["kernel"], at.get("stride"), at.get("padding", 0)
    ),
    "adaptiveavgpool": lambda nn, at, rank, _: getattr(nn, f"AdaptiveAvgPool{rank}d")(at.get("size", 1)),
    "layernorm": lambda nn, at, _rank, features: nn.LayerNorm(at.get("dim", features)),
    "rmsnorm": lambda nn, at, _rank, features: nn.RMSNorm(at.get("dim", features)),
    "batchnorm": lambda nn, at, rank, features: getattr(nn, f"BatchNorm{rank}d")(at.get("dim", features)),
    "softmax": lambda nn, _at, _rank, _features: nn.Softmax(dim=-1),
    "lstm": _recurrent("LSTM"),
    "gru": _recurrent("GRU"),
    "rnn": _recurrent("RNN"),
}
