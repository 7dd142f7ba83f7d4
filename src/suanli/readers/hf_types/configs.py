"""The two configs every type is tried with: its default, and a small odd one; and what is said of some by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from suanli.nouns.coverage import DEFAULT, SMALL
from suanli.readers.hf_types.shrink import PLAINER, shrunk


@dataclass(frozen=True)
class Given:
    """Keys to build a config with, and how they were found where they are not simply the defaults."""

    keys: Mapping[str, Any]
    made: str = ""


@cache
def declared_configs() -> dict[str, dict[str, Any]]:
    """By kind of config, keys by model type (or `type@mapping`): small ones no rule makes, defaults that lack a key."""
    text = resources.files(__package__).joinpath("configs.json").read_text("utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


def declared(kind: str, model_type: str, mapping: str = "") -> Mapping[str, Any] | None:
    """What is said by hand of one type; None where nothing is."""
    table = declared_configs()[kind]
    found: Mapping[str, Any] | None = table.get(f"{model_type}@{mapping}", table.get(model_type))
    return found


def given_configs(config: str, model_type: str, mapping: str) -> Iterator[Given]:
    """Configs to try in turn until transformers builds and runs one."""
    by_hand = declared(config, model_type, mapping)
    if config == DEFAULT:
        yield Given(by_hand or {}, "completed: " + ", ".join(by_hand) if by_hand else "")
        joined = {} if by_hand else _joined(default_values(model_type))
        if joined:
            yield Given(joined, "completed: the tower made as wide as its decoder")
        return
    assert config == SMALL
    if by_hand is not None:
        yield Given(by_hand, "declared")
        return
    base = default_values(model_type)
    seen: list[Any] = []
    for oddity in PLAINER:
        keys = shrunk(base, oddity)
        if keys not in seen:
            seen.append(keys)
            yield Given(keys)


def _joined(values: Mapping[str, Any]) -> dict[str, Any]:
    """Some defaults give a tower and a decoder that do not fit: the tower's last width is made the decoder's."""
    tower, decoder = values.get("vision_config"), values.get("text_config")
    if not isinstance(tower, Mapping) or not isinstance(decoder, Mapping):
        return {}
    wanted = decoder.get("hidden_size")
    misfits = "out_hidden_size" in tower and tower["out_hidden_size"] != wanted
    return {"vision_config": {**tower, "out_hidden_size": wanted}} if misfits else {}


def default_values(model_type: str) -> dict[str, Any]:
    """The default config of a type as its file would hold it; empty where the class makes none."""
    from transformers import AutoConfig  # noqa: PLC0415

    try:
        return file_values(AutoConfig.for_model(model_type))
    except Exception:  # noqa: BLE001  whatever a config class does on its own defaults
        return {}


def file_values(config: Any) -> dict[str, Any]:
    """A config object as `config.json` would hold it."""
    found: dict[str, Any] = json.loads(json.dumps(config.to_dict(), default=str))
    return found | {"model_type": config.model_type}
