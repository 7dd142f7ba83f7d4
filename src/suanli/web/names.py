"""Names that forms can choose from, with what tells them apart: models and their size, devices and memory."""

from __future__ import annotations

import functools
import json

from suanli.nouns.hardware import Device
from suanli.units import format_count


@functools.cache
def names_json() -> str:
    """`{"models": [[name, title, size]], "gpus": [[id, name, memory]]}`."""
    from suanli.catalog.devices import list_devices  # noqa: PLC0415  read once, when a form is first searched
    from suanli.catalog.presets import presets  # noqa: PLC0415

    models = [[name, each.title, _params(each.params)] for name, each in presets().items()]
    gpus = [[each.short_id, f"{each.name} {each.vendor} {each.arch}", _memory(each)] for each in list_devices()]
    return json.dumps({"models": models, "gpus": gpus}, ensure_ascii=False)


def _params(count: int | None) -> str:
    return "" if count is None else format_count(count, digits=3)


def _memory(device: Device) -> str:
    size = device.memory_advertised_gb
    return "" if size is None else f"{size:g} {device.memory_unit or 'GB'}"
