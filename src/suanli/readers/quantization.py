"""`quantization_config` of a config.json as a Scheme: how a checkpoint says that its weights are stored.

Read as data, never run: https://huggingface.co/docs/transformers/main_classes/quantization, the schema of
compressed-tensors, and hf_quant_config.json of TensorRT Model Optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from suanli.catalog.schemes import find_scheme
from suanli.errors import ConfigError, FaultList, nearest_names, shown
from suanli.nouns.formats import Scheme

KEY = "quantization_config"
_SKIPPED = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules")
_BOTH = ("linear", "experts")
_MAX_BITS = 16


def read_scheme(config: Mapping[str, Any], where: str = "config.json") -> Scheme | None:
    """The scheme a model's config names; None where it names none.

    Raises ConfigError for a method nobody knows here, and for values that cannot be.
    """
    entry = config.get(KEY)
    if entry is None:
        return None
    at = f"{where}: {KEY}"
    faults = FaultList(ConfigError)
    if not isinstance(entry, Mapping):
        faults.add(code="bad_value", message="not an object", where=at, got=shown(entry))
        faults.raise_if_any()
    reader = _Reader(entry, at, faults)
    method = entry.get("quant_method")
    make = _METHODS.get(str(method).replace("_", "-").lower())
    if make is None:
        faults.add(
            code="unknown_quant_method",
            message=f"unknown method of quantisation {shown(method)}",
            where=f"{at}.quant_method",
            expected="one of " + ", ".join(_METHODS),
            nearest=nearest_names(str(method), _METHODS),
            hint="Give --dtype a scheme by name, or the folder with the weights: their headers say all.",
        )
    found = make(reader) if make else None
    faults.raise_if_any()
    assert found is not None
    return replace(found, skip=reader.skipped(), source=f"{at}, quant_method {method}")


class _Reader:
    """Values of one quantization_config, faults collected."""

    def __init__(self, values: Mapping[str, Any], at: str, faults: FaultList) -> None:
        self.values, self.at, self.faults = values, at, faults

    def whole(self, *keys: str, default: int | None = None, low: int = 1, high: int = 2**20) -> int:
        """The whole number under the first key that is there; 1 with a fault where it is none."""
        for key in keys:
            value = self.values.get(key, default if key == keys[-1] else None)
            if value is None:
                continue
            if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
                return value
            self.faults.add(code="bad_value", message="not a possible number", where=f"{self.at}.{key}",
                            got=shown(value), expected=f"a whole number from {low} to {high:,}")  # fmt: skip
            return 1
        self.faults.add(code="missing_key", message="a key is missing", where=f"{self.at}.{keys[0]}",
                        expected="a whole number")  # fmt: skip
        return 1

    def group(self, key: str = "group_size") -> int | None:
        """Inputs that share a scale; −1 is all of them."""
        value = self.values.get(key)
        return None if value in (None, -1) else self.whole(key)

    def skipped(self) -> tuple[str, ...]:
        """Modules left alone, under whichever key the method has."""
        found: list[str] = []
        for key in _SKIPPED:
            listed = self.values.get(key) or ()
            if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
                self.faults.add(code="bad_value", message="not a list of names", where=f"{self.at}.{key}",
                                got=shown(listed))  # fmt: skip
                self.faults.raise_if_any()
            found.extend(listed)
        return tuple(dict.fromkeys(found))

    def part(self, key: str) -> _Reader:
        """An object within."""
        value = self.values.get(key)
        if not isinstance(value, Mapping):
            self.faults.add(code="missing_key", message="an object is missing", where=f"{self.at}.{key}")
            value = {}
        return _Reader(value, f"{self.at}.{key}", self.faults)


def _fp8(reader: _Reader) -> Scheme:
    block = reader.values.get("weight_block_size")
    if block is None:
        return find_scheme("fp8")
    if not isinstance(block, list | tuple) or len(block) != 2 or not all(isinstance(n, int) and n > 0 for n in block):
        reader.faults.add(code="bad_value", message="not two whole numbers", where=f"{reader.at}.weight_block_size",
                          got=shown(block))  # fmt: skip
        return find_scheme("fp8")
    outputs, inputs = block
    return replace(find_scheme("fp8-block"), group_in=inputs, group_out=outputs)


def _gptq(reader: _Reader) -> Scheme:
    bits, group = reader.whole("bits", high=_MAX_BITS), reader.group()
    title = f"GPTQ, {bits} bits, " + ("one group" if group is None else f"groups of {group}")
    return replace(find_scheme("gptq-4bit-128"), name="gptq", title=title, bits=bits, zero_bits=bits, group_in=group)


def _awq(reader: _Reader) -> Scheme:
    bits, group = reader.whole("bits", "w_bit", high=_MAX_BITS), reader.group()
    zero = bits if reader.values.get("zero_point", True) else 0
    title = f"AWQ, {bits} bits, " + ("one group" if group is None else f"groups of {group}")
    return replace(find_scheme("awq-4bit-128"), name="awq", title=title, bits=bits, zero_bits=zero, group_in=group)


def _compressed(reader: _Reader) -> Scheme:
    """compressed-tensors: the weights of its one group of modules."""
    groups = reader.part("config_groups")
    if len(groups.values) != 1:
        reader.faults.add(code="unsupported", message="several groups of modules", where=groups.at,
                          got=f"{len(groups.values)} groups", expected="one",
                          hint="Give the folder with the weights: their headers say all.")  # fmt: skip
        return find_scheme("fp8")
    weights = groups.part(next(iter(groups.values))).part("weights")
    bits = weights.whole("num_bits", high=_MAX_BITS)
    strategy, kind = weights.values.get("strategy"), weights.values.get("type")
    shapes = {"tensor": (None, None), "channel": (None, 1), "group": (weights.group(), 1),
              "tensor_group": (weights.group(), 1)}  # fmt: skip
    if strategy == "block":
        return replace(_fp8(_Reader({"weight_block_size": weights.values.get("block_structure")}, weights.at,
                                    weights.faults)), name="compressed-tensors")  # fmt: skip
    if strategy not in shapes:
        reader.faults.add(code="unknown_strategy", message=f"unknown strategy {shown(strategy)}",
                          where=f"{weights.at}.strategy",
                          expected="one of " + ", ".join((*shapes, "block")))  # fmt: skip
        return find_scheme("fp8")
    group_in, group_out = shapes[strategy]
    nvfp4 = bits == 4 and kind == "float"
    return Scheme(
        name="compressed-tensors", title=f"compressed-tensors: {kind} of {bits} bits, a scale a {strategy}", bits=bits,
        group_in=group_in, group_out=group_out, scale_bytes=1 if nvfp4 else 2,
        zero_bits=0 if weights.values.get("symmetric", True) else bits, targets=_BOTH,
        tensor_bytes=8 if nvfp4 else 16 if bits < 8 else 0,
    )  # fmt: skip


def _modelopt(reader: _Reader) -> Scheme:
    named = {"fp8": "fp8", "nvfp4": "nvfp4", "fp8-pb-wo": "fp8-block"}
    inner = reader.values.get("quantization")
    values = inner if isinstance(inner, Mapping) else reader.values
    algorithm = str(values.get("quant_algo")).replace("_", "-").lower()
    if algorithm not in named:
        reader.faults.add(code="unknown_quant_algo", message=f"unknown quant_algo {shown(values.get('quant_algo'))}",
                          where=f"{reader.at}.quant_algo", expected="one of FP8, NVFP4, FP8_PB_WO")  # fmt: skip
        return find_scheme("fp8")
    return find_scheme(named[algorithm])


def _bitsandbytes(reader: _Reader) -> Scheme:
    if reader.values.get("load_in_4bit"):
        double = reader.values.get("bnb_4bit_use_double_quant", False)
        return replace(find_scheme("nf4"), scale_bytes=1 if double else 4)
    return replace(find_scheme("int8"), name="llm.int8", scale_bytes=4)


_METHODS: dict[str, Callable[[_Reader], Scheme]] = {
    "fp8": _fp8, "gptq": _gptq, "awq": _awq, "mxfp4": lambda _: find_scheme("mxfp4"),
    "compressed-tensors": _compressed, "modelopt": _modelopt, "bitsandbytes": _bitsandbytes,
}  # fmt: skip
