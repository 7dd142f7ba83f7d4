"""docs/catalogue.md: accelerators, models and their sources."""

from __future__ import annotations

from typing import Any

import suanli
from making_docs.markdown import MADE, code, table
from suanli.catalog.devices import list_devices, source_texts
from suanli.units import GIGA, TERA, format_count


def catalogue_page() -> str:
    """docs/catalogue.md."""
    devices = list_devices()
    keys = dict.fromkeys(key for device in devices for key in device.sources)
    texts = source_texts()
    models = suanli.models().result.models
    return MADE + "\n".join((
        "# Catalogue\n",
        f"{len(devices)} accelerators and {len(models)} model presets. `suanli gpus NAME` and `suanli models NAME` "
        "show one in full, with notes; `suanli gpus NAME` also the prices seen.\n",
        "## Accelerators\n\nDense peaks of one package in TFLOP/s; empty where no source was found, and then no MFU is "
        "given.\n",
        table(("id", "name", "fp16", "bf16", "fp8", "memory", "GB/s", "W", "sources"),
              [_device(device) for device in devices], "--rrrrrr"),
        "\n### Sources\n",
        "\n".join(f"- `{key}`: {texts.get(key, key)}" for key in keys),
        "\n## Models\n",
        table(("name", "parameters", "active", "positions", "source"), [_model(row) for row in models], "-rrr"),
        "",
    ))  # fmt: skip


def _device(device: Any) -> tuple[str, ...]:
    def tera(dtype: str) -> str:
        value = device.peaks_flop_per_s.get(dtype)
        return "" if value is None else f"{value / TERA:,.6g}"

    memory, rate = device.memory_advertised_gb, device.memory_bytes_per_s
    return (
        code(device.short_id), device.name, tera("fp16"), tera("bf16"), tera("fp8"),
        "" if memory is None else f"{memory:g} {device.memory_unit or 'GB'}",
        "" if rate is None else f"{rate / GIGA:,.5g}", "" if device.tdp_w is None else f"{device.tdp_w:g}",
        ", ".join(device.sources),
    )  # fmt: skip


def _model(row: Any) -> tuple[str, ...]:
    active = "" if row.params_active == row.params else format_count(row.params_active)
    positions = "" if row.max_positions is None else f"{row.max_positions:,}"
    return code(row.name), f"{row.params:,}", active, positions, row.source
