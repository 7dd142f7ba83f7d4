"""A Hugging Face config as a model of transformers on the meta device, and the inputs it takes. No code of a config
is ever run: one that names code of its own is refused.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suanli.errors import ConfigError, Fault, InputError, MissingExtraError, nearest_names, shown
from suanli.readers import bounded
from suanli.readers.torch_module.books import Traced
from suanli.readers.torch_module.load import DTYPES, import_torch, read_inputs, shorten
from suanli.readers.torch_module.trace import ModuleError, Options, trace_copy

# Heads in the order in which a type is looked for where its config names no class.
_HEADS = (
    "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM", "AutoModelForImageTextToText",
    "AutoModelForImageClassification", "AutoModelForSpeechSeq2Seq", "AutoModelForCTC",
    "AutoModelForAudioClassification", "AutoModel",
)  # fmt: skip
_LONGEST = ("max_position_embeddings", "n_positions", "max_target_positions", "max_seq_len", "seq_length")
_TWO_SIDED = ("AutoModelForSpeechSeq2Seq", "AutoModelForSeq2SeqLM", "AutoModelForImageTextToText")
_SAMPLES_PER_TOKEN = 320  # of a wave, where a length is asked for in tokens and the model eats raw audio


def import_transformers() -> Any:
    """Transformers, told to stay offline and quiet while it loads, or the error that says how to get it."""
    import_torch()
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        return importlib.import_module("transformers")
    except ImportError as problem:
        raise MissingExtraError(
            Fault(
                code="missing_extra",
                message="transformers is needed to trace a config",
                hint="Install it with: pip install 'suanli[torch]'",
            )
        ) from problem


def trace_config(
    config: Mapping[str, Any], *, seq: int | None = None, batch: int = 1, train: bool = False, inputs: Any = None,
    head: str | None = None, dtype: str = "bfloat16", whole: bool = True, checkpointing: bool = False,
    flash: bool = False, time_limit: float | None = None, where: str = "config",
) -> Traced:  # fmt: skip
    """Count a config by running transformers' own model of it on the meta device.

    Without `whole`, layers that look equal run once and twice: quicker; right where a layer's number changes nothing.
    `inputs` replaces the inputs made for it; `checkpointing` runs each layer again before its backward.
    Raises ConfigError where no model can be built, InputError where it cannot run without values.
    """
    import_transformers()
    wanted = {
        "seq": seq, "batch": batch, "train": train, "inputs": inputs, "whole": whole, "checkpointing": checkpointing,
        "flash": flash, "time_limit": bounded.time_limit() if time_limit is None else time_limit,
    }  # fmt: skip
    try:
        return _trace_model(build_model(config, head=head, dtype=dtype, where=where), **wanted)
    except ModuleError as problem:
        if "scalar type" not in str(problem) and "same dtype" not in str(problem):
            raise
    # a model that mixes fp32 constants into 16-bit activations runs in fp32 alone
    return _trace_model(build_model(config, head=head, dtype="float32", where=where), **wanted)


def _trace_model(
    model: Any, *, seq: int | None, batch: int, train: bool, inputs: Any, whole: bool, checkpointing: bool,
    flash: bool, time_limit: float,
) -> Traced:  # fmt: skip
    """Run a built model: inputs made for it unless given."""
    if checkpointing:
        _checkpoint(model)
    made = read_inputs(inputs, model) if inputs is not None else ((), model_inputs(model, batch, seq))
    if train:
        drop_cache(model)  # nothing is decoded in training; a cache would copy keys and values
    model.train(train)
    options = Options(train=train, device="meta", no_padding=True, whole=whole, flash=flash, time_limit=time_limit)
    found = _run(model, made, options, inputs is None)
    active = active_params(model, found)
    return replace(found, params=replace(found.params, active=active))


def build_model(
    config: Mapping[str, Any], *, head: str | None = None, dtype: str = "bfloat16", where: str = "config",
    device: str = "meta",
) -> Any:  # fmt: skip
    """Transformers' model of a config, on the meta device unless told. Raises ConfigError."""
    torch, transformers = import_torch(), import_transformers()
    refuse_remote_code(config, where)
    made = _config_object(config, where)
    factory = _model_class(transformers, made, config, head, where)
    try:
        with torch.device(device):
            return factory(made, getattr(torch, DTYPES[dtype]))
    except Exception as problem:
        raise _unbuildable(config, problem, where) from problem


def _run(model: Any, made: Any, options: Options, ours: bool) -> Traced:
    return run_inputs(model, made[1], options) if ours else trace_copy(model, made[0], made[1], options)


def run_inputs(model: Any, inputs: Mapping[str, Any], options: Options) -> Traced:
    """Trace a model of ours on keyword inputs. Without a cache a model takes other ways, some of which a model with
    odd layers (all states, say) needs: they are tried where the first fails.
    """
    try:
        return trace_copy(model, (), inputs, options)
    except ModuleError:
        if not drop_cache(model):
            raise
    return trace_copy(model, (), inputs, options)


def drop_cache(model: Any) -> bool:
    """Tell a model of ours, and its parts, to keep no cache; whether any did."""
    parts = [model.config, *(part for part in vars(model.config).values() if hasattr(part, "model_type"))]
    keeping = [part for part in parts if getattr(part, "use_cache", False)]
    for part in keeping:
        part.use_cache = False
    return bool(keeping)


def _checkpoint(model: Any) -> None:
    """Each layer's forward is run again before its backward; the call has another name from transformers 6 on."""
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable()


def refuse_remote_code(config: Mapping[str, Any], where: str) -> None:
    """Raise where a config, or a part of one, names code of its own."""
    parts = [config, *(part for part in config.values() if isinstance(part, Mapping))]
    if any("auto_map" in part for part in parts):
        raise ConfigError(
            Fault(
                code="remote_code",
                message="the config names code of its own, which is never run",
                where=where,
                got=shown(config.get("auto_map")),
                hint="If you trust that code, import it yourself and give a factory: torch:package.module:factory.",
            )
        )


def _config_object(config: Mapping[str, Any], where: str) -> Any:
    from transformers import AutoConfig  # noqa: PLC0415

    model_type = config.get("model_type")
    known = _known_types()
    if not isinstance(model_type, str) or model_type not in known:
        raise ConfigError(
            Fault(
                code="unknown_model_type",
                message="transformers has no such model type",
                where=where,
                got=shown(model_type),
                expected=f"one of {len(known)} known",
                nearest=nearest_names(str(model_type), known),
            )
        )
    values = {key: value for key, value in config.items() if key not in ("model_type", "name", "auto_map")}
    try:
        return AutoConfig.for_model(model_type, **values)
    except Exception as problem:
        raise _unbuildable(config, problem, where) from problem


def _known_types() -> list[str]:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: PLC0415

    return list(CONFIG_MAPPING.keys())


def _model_class(transformers: Any, made: Any, config: Mapping[str, Any], head: str | None, where: str) -> Any:
    """What builds the model: the class a config names, else the first head that knows the type."""
    names = [head] if head else [*(config.get("architectures") or []), *_first_heads(made), *_HEADS]
    for name in names:
        found = getattr(transformers, name, None) if isinstance(name, str) else None
        if found is None:
            continue
        if hasattr(found, "_model_mapping"):
            if type(made) in found._model_mapping:
                return lambda config, dtype, auto=found: auto.from_config(config, dtype=dtype, trust_remote_code=False)
        elif hasattr(found, "_from_config"):
            return lambda config, dtype, own=found: own._from_config(config, dtype=dtype)
    raise ConfigError(
        Fault(
            code="no_model_class", message="transformers has no model of this type with that head", where=where,
            got=shown(head or config.get("architectures")), expected="one of " + ", ".join(_HEADS),
        )
    )  # fmt: skip


def _first_heads(made: Any) -> tuple[str, ...]:
    """Types with an encoder and a decoder are whole only with both: a causal head leaves the encoder out."""
    return _TWO_SIDED if getattr(made, "is_encoder_decoder", False) else ()


def _unbuildable(config: Mapping[str, Any], problem: Exception, where: str) -> ConfigError:
    return ConfigError(
        Fault(
            code="cannot_build",
            message=f"transformers cannot build the model: {type(problem).__name__}: {shorten(problem)}",
            where=where,
            got=shown(config.get("model_type")),
        )
    )


# --- inputs -------------------------------------------------------------------------------------------------------


def model_inputs(model: Any, batch: int = 1, seq: int | None = None) -> dict[str, Any]:
    """Inputs of a transformers model on the meta device: tokens, pixels, frames or a wave, by what it says it takes."""
    torch = import_torch()
    config, main = model.config, model.main_input_name
    length = seq or min(2048, _number(config, *_LONGEST) or 2048)
    tokens = {"size": (batch, length), "dtype": torch.int64, "device": "meta"}
    if main == "input_ids":
        found = {"input_ids": torch.zeros(**tokens)}
        if getattr(config, "is_encoder_decoder", False):
            found["decoder_input_ids"] = torch.zeros(**tokens)
        if _has_two_towers(model):
            found["pixel_values"] = torch.zeros(batch, *_picture(config), dtype=model.dtype, device="meta")
        return found
    wide = {"dtype": model.dtype, "device": "meta"}
    if main == "pixel_values":
        found = {"pixel_values": torch.zeros(batch, *_picture(config), **wide)}
        if "input_ids" in _parameters(model):
            found["input_ids"] = torch.zeros(**tokens)
        return found
    if main == "input_features":
        frames = 2 * (_number(config, "max_source_positions") or 1500)
        bins = _number(config, "num_mel_bins", "feature_size") or 80
        found = {"input_features": torch.zeros(batch, bins, frames, **wide)}
        return found | (
            {"decoder_input_ids": torch.zeros(**tokens)} if getattr(config, "is_encoder_decoder", False) else {}
        )
    if main == "input_values":
        return {"input_values": torch.zeros(batch, length * _SAMPLES_PER_TOKEN, **wide)}
    raise InputError(
        Fault(
            code="missing_option",
            message=f"inputs of {type(model).__name__} must be given: it takes {main}",
            where="--input",
            expected=f"{main}=SHAPE",
        )
    )


def _has_two_towers(model: Any) -> bool:
    """Whether words and pictures go through towers of their own, no picture among the words."""
    merged = any(hasattr(model.config, name) for name in ("image_token_id", "image_token_index"))
    return hasattr(model.config, "vision_config") and "pixel_values" in _parameters(model) and not merged


def _number(config: Any, *names: str) -> int | None:
    """The first of these keys, in the config or in a part of it, that is a whole number."""
    parts = [config, *(value for value in vars(config).values() if hasattr(value, "model_type"))]
    for name in names:
        for part in parts:
            value = getattr(part, name, None)
            if isinstance(value, int):
                return value
    return None


def _picture(config: Any) -> tuple[int, int, int]:
    parts = [config, *(value for value in vars(config).values() if hasattr(value, "model_type"))]
    size = next((part.image_size for part in parts if getattr(part, "image_size", None)), 224)
    height, width = (size, size) if isinstance(size, int) else _sides(size)
    return _number(config, "num_channels") or 3, height, width


def _sides(size: Any) -> tuple[int, int]:
    if isinstance(size, Mapping):
        return int(size["height"]), int(size["width"])
    return int(size[0]), int(size[-1])


def _parameters(model: Any) -> set[str]:
    import inspect  # noqa: PLC0415

    return set(inspect.signature(model.forward).parameters)


# --- mixtures -----------------------------------------------------------------------------------------------------


def active_params(model: Any, traced: Traced) -> int:
    """Parameters one token passes through: of stacked experts, as many as the config routes a token to."""
    total = traced.params.total
    for name, child in model.named_modules():
        count, each = _stacked_experts(child)
        if count and "expert" in name.rpartition(".")[2]:
            own = _number(child.config, *_OF_LAYER) if hasattr(child, "config") else None
            routed = own or _number(model.config, *_OF_MODEL)
            total -= (count - min(routed or count, count)) * each
    return int(total)


# `top_k` of a whole model's config may be of its sampling
_OF_MODEL = ("num_experts_per_tok", "moe_topk", "experts_per_token", "moe_k")
_OF_LAYER = (*_OF_MODEL[:2], "top_k", "num_experts_per_token", "moe_top_k", "experts_per_token")


def _stacked_experts(module: Any) -> tuple[int, int]:
    """Experts held in 3-D weights, and parameters of one."""
    own = [each for each in module.parameters(recurse=False) if each.dim() >= 2]
    stacked = [each for each in own if each.dim() == 3]
    if not stacked:
        return 0, 0
    count = stacked[0].shape[0]
    held = [each for each in own if each.shape[0] == count]
    return count, sum(each.numel() // count for each in held)
