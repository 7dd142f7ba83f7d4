"""MODEL of a server: its architecture, the header of its weights where there is one, what its config says of them.

Nothing is loaded: headers are read as data, within the bounds of their readers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from suanli.catalog.presets import find_preset
from suanli.errors import ConfigError, Fault, UnknownNameError
from suanli.nouns.arch import Arch
from suanli.nouns.formats import Scheme
from suanli.nouns.tensors import TensorTable
from suanli.readers import files, gate, hub
from suanli.readers.binary import place, refuse
from suanli.readers.gguf import read_gguf
from suanli.readers.gguf_arch import with_arch
from suanli.readers.kinds import INDEX_SUFFIX, WEIGHTS
from suanli.readers.model import read_model
from suanli.readers.quantization import KEY, read_scheme
from suanli.readers.tensor_headers import NO_ARCH, read_folder, read_index, read_safetensors

GGUF, SAFETENSORS = ".gguf", ".safetensors"
MODELOPT = "hf_quant_config.json"  # beside the config, as TensorRT Model Optimizer writes it
_SHARD = re.compile(r"(?P<stem>.+)-\d{5}-of-(?P<count>\d{5})(?P<kind>\.safetensors|\.gguf)")


@dataclass(frozen=True, kw_only=True)
class GivenModel:
    """A model as it was given. `file` is what the header is of; `total` what an index says where its shards are not
    here; `scheme` what the config says of the weights."""

    arch: Arch
    table: TensorTable | None = None
    file: str = ""
    total: int | None = None
    scheme: Scheme | None = None
    unknown_scheme: ConfigError | None = None
    notes: tuple[str, ...] = ()


def read_served(model: Any) -> GivenModel:
    """The model meant by `model`. Raises InputError saying what was tried, UnreadableFileError for a header that cannot
    be true."""
    if isinstance(model, Mapping):
        return _with_scheme(GivenModel(arch=read_model(model)), model, "the config")
    path = _path(model)
    if path is None:
        return _named(model)
    if path.name.endswith(WEIGHTS):
        return _of_weights(path)
    if path.is_dir() and not (path / files.CONFIG).exists() and any(path.glob(f"*{SAFETENSORS}")):
        raise _undescribed(path, NO_ARCH)
    return _of_config(path)


def _path(model: Any) -> Path | None:
    """The file or folder meant; None where it is a name, an expression, a module."""
    if isinstance(model, Path):
        gate.check_path(model)
        return model
    text = model.strip() if isinstance(model, str) else ""
    if not text or len(text) > 4096 or "\0" in text:
        return None
    path = Path(text).expanduser()
    if not gate.may_open(path):  # refused with its reason where a model is read
        return None
    if text.endswith(WEIGHTS):
        return path
    try:
        return path if path.is_dir() or (text.endswith(".json") and path.exists()) else None
    except OSError:
        return None


def _named(model: Any) -> GivenModel:
    """A preset, a hub id, a config object, an architecture."""
    found = GivenModel(arch=read_model(model))
    if isinstance(model, str) and hub.HUB_ID.fullmatch(model.strip()) and not _is_preset(model):
        return _with_scheme(found, hub.read_hub_config(model.strip()), f"{model.strip()} {files.CONFIG}")
    to_dict = getattr(model, "to_dict", None)
    if callable(to_dict) and hasattr(model, "model_type"):
        return _with_scheme(found, to_dict(), "the config")
    return found


def _is_preset(name: str) -> bool:
    try:
        find_preset(name)
    except UnknownNameError:
        return False
    return True


def _with_scheme(found: GivenModel, config: Mapping[str, Any], where: str) -> GivenModel:
    try:
        return replace(found, scheme=read_scheme(config, where))
    except ConfigError as problem:
        return replace(found, unknown_scheme=problem)


# --- files --------------------------------------------------------------------------------------------------------


def _of_config(path: Path) -> GivenModel:
    """A folder with a config.json and, perhaps, weights; or the config alone."""
    if not path.is_dir():
        return _described(path)
    arch = read_model(path)
    config = path / files.CONFIG
    found = (
        _with_scheme(GivenModel(arch=arch), _quantised(config), config.name)
        if config.exists()
        else GivenModel(arch=arch)
    )
    index = _index(path)
    if index is not None:
        return _indexed(found, index)
    for name in ("model.safetensors", "consolidated.safetensors"):
        if (path / name).is_file():
            return replace(found, table=read_safetensors(path / name), file=name)
    shards = [each for each in sorted(path.glob(f"*{SAFETENSORS}")) if not each.name.startswith("adapter")]
    if len(shards) == 1:
        return replace(found, table=read_safetensors(shards[0]), file=shards[0].name)
    if shards:
        return replace(found, table=read_folder(path), file=f"{path.absolute().name}/*{SAFETENSORS}")
    packed = sorted(path.glob(f"*{GGUF}"))
    if len(packed) == 1 or (packed and _SHARD.fullmatch(packed[0].name)):
        table, file = _gguf(packed[0])
        return replace(found, table=table, file=file)
    return found


def _described(config: Path) -> GivenModel:
    return _with_scheme(GivenModel(arch=read_model(config)), _quantised(config), config.name)


def _quantised(config: Path) -> Mapping[str, Any]:
    """The config, with what Model Optimizer wrote beside it."""
    values = files.read_json_config(config)
    beside = config.parent / MODELOPT
    if KEY in values or not beside.is_file():
        return values
    return {**values, KEY: {"quant_method": "modelopt", **files.read_json_config(beside)}}


def _index(folder: Path) -> Path | None:
    """The index of a folder's shards: the usual one, or the only one."""
    usual = folder / f"model{INDEX_SUFFIX}"
    if usual.is_file():
        return usual
    found = sorted(folder.glob(f"*{INDEX_SUFFIX}"))
    return found[0] if len(found) == 1 else None


def _indexed(found: GivenModel, index: Path) -> GivenModel:
    """The shards of an index; where some are not here, no more than the total it says."""
    values = files.read_json_config(index)
    named = values.get("weight_map")
    shards = {name for name in named.values() if isinstance(name, str)} if isinstance(named, dict) else set()
    missing = [name for name in sorted(shards) if not (index.parent / Path(name).name).exists()]
    if not missing:
        table = read_index(index)
        return replace(found, table=table, file=index.name, notes=table.notes)
    metadata = values.get("metadata")
    said = metadata.get("total_size") if isinstance(metadata, dict) else None
    some = f"{len(missing):,} of the {len(shards):,} files that {index.name} names are not here: weights by the config"
    good = isinstance(said, int) and not isinstance(said, bool) and said > 0
    return replace(found, total=said if good else None, file=index.name, notes=(some,))


def _of_weights(path: Path) -> GivenModel:
    """A weight file, with its own description or the config.json beside it."""
    config = path.parent / files.CONFIG
    if path.name.endswith(GGUF):
        table, file = _gguf(path)
        if table.arch is not None:
            return GivenModel(arch=table.arch, table=table, file=file)
        if not config.is_file():
            raise _undescribed(path, table.arch_missing)
        return replace(_described(config), table=table, file=file)
    if path.name.endswith(INDEX_SUFFIX):
        table, file = read_index(path), path.name
    else:
        table, file = _safetensors(path)
    if not config.is_file():
        raise _undescribed(path, table.arch_missing)
    return replace(_described(config), table=table, file=file, notes=table.notes)


def _undescribed(path: Path, why: str) -> ConfigError:
    return ConfigError(
        Fault(code="no_architecture", message="the weights do not describe their model", where=place(path), got=why,
              expected=f"a {files.CONFIG} beside them", hint="Give the folder that has both.")
    )  # fmt: skip


def _safetensors(path: Path) -> tuple[TensorTable, str]:
    """One file; of a shard the whole set."""
    shard = _SHARD.fullmatch(path.name)
    if shard is None:
        return read_safetensors(path), path.name
    index = path.parent / f"{shard['stem']}{INDEX_SUFFIX}"
    if index.is_file():
        return read_index(index), index.name
    tables = [read_safetensors(each) for each in _set_of(path, shard)]
    tensors = tuple(tensor for table in tables for tensor in table.tensors)
    return replace(tables[0], tensors=tensors), f"{shard['stem']}-*{SAFETENSORS}"


def _gguf(path: Path) -> tuple[TensorTable, str]:
    """One file; of a split one all of it."""
    shard = _SHARD.fullmatch(path.name)
    if shard is None:
        return read_gguf(path), path.name
    tables = [read_gguf(each) for each in _set_of(path, shard)]
    tensors = tuple(tensor for table in tables for tensor in table.tensors)
    joined = replace(tables[0], name=shard["stem"], tensors=tensors, arch=None, arch_missing="")
    return with_arch(joined), f"{shard['stem']}-*{GGUF}"


def _set_of(path: Path, shard: re.Match[str]) -> list[Path]:
    """Every file of a set, from any of them. Raises UnreadableFileError where some are missing."""
    count = int(shard["count"])
    every = [path.parent / f"{shard['stem']}-{at:05d}-of-{count:05d}{shard['kind']}" for at in range(1, count + 1)]
    missing = [each.name for each in every if not each.is_file()]
    if missing:
        listed = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
        refuse(path, "missing_shards", f"{len(missing):,} of its {count:,} files are not beside it", got=listed)
    return every
