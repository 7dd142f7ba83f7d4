"""MODEL as typed: a preset, a config file or folder, a hub id, a layer expression; or a dict or config object."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suanli.catalog.presets import find_preset
from suanli.errors import ConfigError, Fault, InputError, UnknownNameError, shown
from suanli.nouns.arch import Arch
from suanli.nouns.tensors import TensorTable
from suanli.readers import files, gate, hub, layer_expr
from suanli.readers.configs import Image, read_config
from suanli.readers.kinds import KERAS, TORCH, is_module, is_source
from suanli.readers.preset import read_named_preset

MAX_NAME = layer_expr.MAX_TEXT


def read_model(model: Any, image: Image | None = None, where: str = "MODEL", frames: int | None = None) -> Arch:
    """The architecture meant by `model`. Raises InputError saying what was tried."""
    if isinstance(model, Arch):
        return model
    if isinstance(model, Mapping):
        name = model.get("name") or model.get("model_type") or model.get("_class_name")
        return read_config(model, str(name), "the config", image, frames)
    if isinstance(model, Path):
        return _from_path(model, image, frames)
    if isinstance(model, str):
        return _from_text(model.strip(), image, where, frames)
    if model is None:
        raise InputError(Fault(code="missing_option", message="no model is named", where=where, expected="a model"))
    to_dict = getattr(model, "to_dict", None)
    if callable(to_dict) and hasattr(model, "model_type"):  # a transformers config object
        return read_model(to_dict(), image, where)
    if is_module(model):
        raise needs_run(type(model).__name__, where)
    raise InputError(
        Fault(
            code="unknown_model",
            message="not a model that can be read",
            where=where,
            got=type(model).__name__,
            expected="a preset name, a path, a layer expression, a dict, or a config object",
        )
    )


def _from_path(path: Path, image: Image | None, frames: int | None) -> Arch:
    file = files.config_file(path)
    return read_config(files.read_json_config(file), files.model_name(file), str(file), image, frames)


def _from_text(text: str, image: Image | None, where: str, frames: int | None) -> Arch:
    if not text or len(text) > MAX_NAME:
        what = "the name of the model is too long" if text else "no model is named"
        raise InputError(Fault(code="bad_model", message=what, where=where, got=f"{len(text):,} characters"))
    if layer_expr.looks_like_expression(text):
        return layer_expr.read_layer_expression(text, image=image)
    if text.startswith(TORCH):
        raise needs_run(text, where)
    if text.startswith(KERAS):
        gate.check_run(text, where)
        from suanli.readers import keras_model  # noqa: PLC0415  loaded where it is needed

        return keras_model.read_keras_model(text)
    if is_source(text):
        return _described(text, where)
    if _is_path(text):
        return _from_path(Path(text).expanduser(), image, frames)
    return _named(text, image, where, frames)


def _is_path(text: str) -> bool:
    """Whether the text can only be a path: its look says so, or it exists and is no preset's name."""
    return text.startswith(("/", "./", "../", "~")) or text.endswith(".json") or text in (".", "..")


def _exists(text: str) -> bool:
    """Whether a file or folder has that name; what cannot be a name of one has none."""
    try:
        return gate.may_open(text) and Path(text).exists()
    except (OSError, ValueError):
        return False


def _named(text: str, image: Image | None, where: str, frames: int | None) -> Arch:
    """A preset; else a file or folder of that name; else a hub id."""
    try:
        return read_named_preset(find_preset(text, where).name, image, frames)
    except UnknownNameError:
        if _exists(text):
            return _from_path(Path(text), image, frames)
        if hub.HUB_ID.fullmatch(text):
            return hub.read_hub_model(text, image, frames)
        raise


def needs_run(text: str, where: str) -> ConfigError:
    """The error of a module where only a description will do: `count` alone runs one."""
    return ConfigError(
        Fault(
            code="needs_run",
            message="a module has no description to read: it is counted by running it",
            where=where,
            got=shown(text),
            expected="a preset, a config.json, a folder with one, a hub id, or a layer expression",
            hint="Use `suanli count torch:package.module:factory --input SHAPE`.",
        )
    )


def _described(text: str, where: str) -> Arch:
    """The architecture in the metadata of a weight file. Raises ConfigError where it holds none."""
    from suanli.readers.sources import read_source  # noqa: PLC0415  loaded where it is needed

    source = read_source(text, {}) if text.endswith(".gguf") else None
    if isinstance(source, TensorTable) and source.arch is not None:
        return source.arch
    reason = (
        source.arch_missing if isinstance(source, TensorTable) else "it holds no layers, only tensors or operations"
    )
    raise ConfigError(
        Fault(
            code="no_architecture",
            message="the file or function does not describe a model",
            where=where,
            got=reason,
            hint="`suanli count` counts what is there; other verbs need the config.json.",
        )
    )
