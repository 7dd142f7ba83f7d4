"""From what a driver, a log or a person calls a device to the one row of the catalogue it means.

1. The whole text equals an id, a short id, a device string or a name.
2. Otherwise a key of the device stands in the text as whole tokens, the longest key first, and every token
   left over is a vendor, form, memory size or memory kind of that same device.
3. Memory size, where it is known, splits what fits several.

Never a substring, never a default: `H100-Ultra` is not an H100, and `A40` is not in `RTX A4000`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from suanli.errors import AmbiguousNameError, Fault, InputError, UnknownNameError, nearest_names, shown
from suanli.nouns.hardware import Device
from suanli.units import GIBI, GIGA

Tokens = tuple[str, ...]

_VENDORS = {
    "NVIDIA": {"nvidia"},
    "AMD": {"amd", "instinct"},
    "Intel": {"intel"},
    "Google": {"google"},
    "AWS": {"aws", "amazon"},
    "Apple": {"apple"},
    "Huawei": {"huawei"},
    "Cambricon": {"cambricon"},
    "Hygon": {"hygon"},
    "Biren": {"biren"},
    "Kunlunxin": {"kunlunxin"},
    "MetaX": {"metax"},
}
# Brands belong to some devices of a vendor only: to those whose own names have them.
_BRANDS = {"tesla", "geforce", "nxp"}
_VENDOR_WORDS = frozenset(_BRANDS.union(*_VENDORS.values()))

_MARKS = re.compile(r"\(r\)|\(tm\)|®|™")
_SEPARATORS = re.compile(r"[\s_\-,/()]+")
_MEMORY_SIZE = re.compile(r"\b(\d+) ?(?:gib|gb|g)\b")
_MAX_NAME = 200  # no device name is longer; what is longer is not searched

# A driver shows less than the advertised size (its own share, ECC), and often has GiB where GB is advertised.
_LEAST_SHOWN, _MOST_SHOWN = 0.93, 1.01


def normalised(text: str) -> Tokens:
    """The lower-case tokens of a device name; `80 GB`, `80G` and `80GiB` all become `80gb`."""
    spaced = _SEPARATORS.sub(" ", _MARKS.sub(" ", text.lower())).strip()
    return tuple(_MEMORY_SIZE.sub(r"\1gb", spaced).split())


def _without_vendors(tokens: Tokens) -> Tokens:
    return tuple(token for token in tokens if token not in _VENDOR_WORDS)


@dataclass(frozen=True)
class Entry:
    """A device with the tokens by which it can be recognised."""

    device: Device
    names: frozenset[Tokens]  # each of these alone means this device (or the few that share it)
    family: Tokens
    details: frozenset[str]  # forms, memory sizes and memory kinds that may stand beside a key
    vendors: frozenset[str]


def index(devices: Iterable[Device]) -> tuple[Entry, ...]:
    """The devices with their keys, ready for `find`."""
    return tuple(_entry(device) for device in devices)


def _entry(device: Device) -> Entry:
    names = [normalised(text) for text in (device.id, *device.aliases, device.name, *device.device_strings)]
    own_words = {token for name in names for token in name if token in _VENDOR_WORDS}
    return Entry(
        device=device,
        names=frozenset(_without_vendors(name) for name in names),
        family=_without_vendors(normalised(device.family)),
        details=frozenset(_details(device)),
        vendors=frozenset(own_words | _VENDORS.get(device.vendor, set())),
    )


def _details(device: Device) -> set[str]:
    form = device.form.lower()
    words = {form, form.rstrip("0123456789")} | set(normalised(device.memory_kind or ""))
    return (words | {f"{size:g}gb" for size in _sizes_gb(device)}) - {""}


def _sizes_gb(device: Device) -> tuple[float, ...]:
    advertised = () if device.memory_advertised_gb is None else (device.memory_advertised_gb,)
    return advertised + device.memory_options_gb


def find(text: str, entries: Sequence[Entry], *, memory_bytes: int | None = None, where: str = "--gpu") -> Device:
    """The one device `text` means.

    Raises UnknownNameError for what is no device, AmbiguousNameError for what is several.
    """
    if not isinstance(text, str):
        raise InputError(
            Fault(
                code="bad_device",
                message="not a device name",
                where=where,
                got=shown(text),
                expected="a text",
            )
        )
    tokens = normalised(text) if len(text) <= _MAX_NAME else ()
    found = _exact(tokens, entries) or _by_tokens(tokens, entries)
    if memory_bytes is not None:
        # A plain name may stand for the usual size of a family whose other size was measured: look there too.
        family = _by_tokens(tokens, entries, prefer_names=False)
        found = _of_memory(found, memory_bytes) or _of_memory(family, memory_bytes) or found
    if not found:
        raise _unknown(text, entries, where)
    if len(found) > 1:
        raise _ambiguous(text, found, where)
    return found[0].device


def _exact(tokens: Tokens, entries: Sequence[Entry]) -> list[Entry]:
    rest, vendors = _without_vendors(tokens), set(tokens) & _VENDOR_WORDS
    return [entry for entry in entries if rest in entry.names and vendors <= entry.vendors]


def _by_tokens(tokens: Tokens, entries: Sequence[Entry], *, prefer_names: bool = True) -> list[Entry]:
    """The entries whose longest key is in `tokens` with every other token explained."""
    scored = [(_longest_key(tokens, entry), entry) for entry in entries]
    longest = max((length for (length, _), _ in scored), default=0)
    best = [(is_name, entry) for (length, is_name), entry in scored if length == longest > 0]
    named = [entry for is_name, entry in best if is_name]
    return named if named and prefer_names else [entry for _, entry in best]


def _longest_key(tokens: Tokens, entry: Entry) -> tuple[int, bool]:
    """Length of the longest key of `entry` that explains `tokens`, and whether it is a name of its own."""
    if not set(tokens) & _VENDOR_WORDS <= entry.vendors:
        return 0, False
    rest = _without_vendors(tokens)
    fitting = [key for key in entry.names | {entry.family} if _explains(key, rest, entry.details)]
    longest = max(fitting, key=len, default=())
    return len(longest), longest in entry.names


def _explains(key: Tokens, tokens: Tokens, details: frozenset[str]) -> bool:
    """Whether `key` stands in `tokens` as neighbours and the others are all `details`."""
    size = len(key)
    return any(
        tokens[start : start + size] == key and details.issuperset(tokens[:start] + tokens[start + size :])
        for start in range(len(tokens) - size + 1)
    )


def _of_memory(entries: Sequence[Entry], memory_bytes: int) -> list[Entry]:
    """Those of `entries` whose memory is nearest to `memory_bytes`, if any is near."""
    distances = [(_distance(entry.device, memory_bytes), entry) for entry in entries]
    near = [(distance, entry) for distance, entry in distances if distance is not None]
    least = min((distance for distance, _ in near), default=None)
    return [entry for distance, entry in near if distance == least]


def _distance(device: Device, memory_bytes: int) -> float | None:
    """How far a measured size is from a size of `device`, as a fraction; None where it cannot be it."""
    parts = {1, device.torch_devices_per_package}
    sizes = [size / part for size in _sizes_gb(device) for part in parts]
    fitting = [
        min(abs(memory_bytes / (size * unit) - 1) for unit in (GIGA, GIBI))
        for size in sizes
        if size * GIGA * _LEAST_SHOWN <= memory_bytes <= size * GIBI * _MOST_SHOWN
    ]
    return min(fitting, default=None)


def _nearest(text: str, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Up to three short ids: first those whose family stands in `text`, then those that look like it."""
    tokens = _without_vendors(normalised(text[:_MAX_NAME]))
    everything = frozenset(tokens)
    kin = [entry for entry in entries if _explains(entry.family, tokens, everything)]
    kin.sort(key=lambda entry: -len(entry.family))
    alike = nearest_names("-".join(tokens), [entry.device.short_id for entry in entries])
    return tuple(dict.fromkeys([entry.device.short_id for entry in kin] + list(alike)))[:3]


def _unknown(text: str, entries: Sequence[Entry], where: str) -> UnknownNameError:
    return UnknownNameError(
        Fault(
            code="unknown_device",
            message=f"unknown device {shown(text)}",
            where=where,
            expected=f"one of {len(entries)} known",
            nearest=_nearest(text, entries),
            hint="`suanli gpus` lists them; for another device pass its dense peak, like --peak 989TFLOPS.",
        )
    )


def _ambiguous(text: str, found: Sequence[Entry], where: str) -> AmbiguousNameError:
    names = tuple(entry.device.short_id for entry in found)
    return AmbiguousNameError(
        Fault(
            code="ambiguous_device",
            message=f"ambiguous device {shown(text)}",
            where=where,
            expected=f"one of the {len(names)} it fits",
            nearest=names,
            hint="Give one of these ids, or the form or memory size that tells them apart.",
        )
    )
