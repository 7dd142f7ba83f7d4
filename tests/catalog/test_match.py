"""What devices are called, and what they must not be taken for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog import match
from suanli.catalog.devices import find_device, list_devices
from suanli.errors import AmbiguousNameError, InputError, UnknownNameError
from suanli.units import GIBI, GIGA, TERA

# Device strings and right dense bf16 TFLOP/s of reference/hardware.md §2 (rounded there).
HARDWARE_MD = [
    ("NVIDIA L40S", "l40s", 362),
    ("NVIDIA L40", "l40", 181),
    ("NVIDIA RTX A6000", "rtx-a6000", 154.8),
    ("NVIDIA A10G", "a10g", 70),
    ("NVIDIA H100 NVL", "h100-nvl", 835.5),
    ("NVIDIA H100 PCIe", "h100-pcie", 756),
    ("NVIDIA H200 NVL", "h200-nvl", 836),
    ("NVIDIA H800", "h800-sxm", 989),
    ("NVIDIA B300 SXM6 AC", "b300", 2250),
    ("GB300", "gb300", 2500),
    ("NVIDIA GB300", "gb300", 2500),
    ("AMD Instinct MI250X", "mi250x", 191.5),
    ("AMD Instinct MI300A", "mi300a", 980.6),
    ("AMD Instinct MI350X", "mi350x", 2307),
    ("TPU v5 lite", "tpu-v5e", 197),
    ("TPU v5", "tpu-v5p", 459),
    ("TPU v6 lite", "tpu-v6e", 918),
    ("TPU7x", "tpu7x", 1153.5),
]

# The same of reference/meters.md §2.3.
METERS_MD = [
    ("H100 SXM", "h100-sxm", 989.4),
    ("H100 PCIe", "h100-pcie", 756),
    ("H100 NVL", "h100-nvl", 835),
    ("H200", "h200-sxm", 989.4),
    ("GH200", "gh200", 989.4),
    ("B200", "b200", 2250),
    ("GB200", "gb200", 2500),
    ("H800 SXM", "h800-sxm", 989.4),
    ("H20", "h20", 148),
    ("L40S", "l40s", 362),
    ("L40", "l40", 181),
    ("A40", "a40", 149.7),
    ("RTX A6000", "rtx-a6000", 154.8),
    ("A10G", "a10g", 70),
    ("RTX 4090", "rtx-4090", 165.2),
    ("RTX 3090", "rtx-3090", 71),
    ("MI250X", "mi250x", 191.5),
]


@pytest.mark.parametrize(("text", "short_id", "tflops"), HARDWARE_MD + METERS_MD)
def test_reference_strings_give_their_device_and_peak(text: str, short_id: str, tflops: float) -> None:
    device = find_device(text)
    assert device.short_id == short_id
    assert device.peak_flop_per_s("bf16") / TERA == pytest.approx(tflops, abs=0.05 if tflops % 1 else 0.5)


OTHER_NAMES = [
    ("NVIDIA H100 80GB HBM3", "h100-80gb-sxm"),
    ("h100_80gb_hbm3", "h100-80gb-sxm"),
    ("H100-SXM5-80GB", "h100-80gb-sxm"),
    ("H100 80 GB SXM", "h100-80gb-sxm"),
    ("h100 80g sxm", "h100-80gb-sxm"),
    ("H100 94GB", "h100-94gb-nvl"),
    ("H100 SXM 96GB", "h100-64gb-96gb-sxm"),
    ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"),
    ("A100-SXM4-80GB", "a100-80gb-sxm"),
    ("a100-80gb-sxm", "a100-80gb-sxm"),
    ("NVIDIA A100-PCIE-40GB", "a100-40gb-pcie"),
    ("NVIDIA A100 80GB PCIe", "a100-80gb-pcie"),
    ("A100 PCIe 80GB", "a100-80gb-pcie"),
    ("Tesla V100-SXM2-16GB", "v100-16gb-sxm"),
    ("v100 sxm2 32gb", "v100-32gb-sxm"),
    ("gh200 480GB", "gh200-96gb-superchip"),  # 480 GB is LPDDR
    ("NVIDIA GH200 120GB", "gh200-96gb-superchip"),
    ("NVIDIA GH200 144G HBM3e", "gh200-141gb-superchip"),
    ("gh200 144gb", "gh200-141gb-superchip"),
    ("AMD_Instinct_MI300X", "mi300x-192gb-oam"),
    ("0x74a1", "mi300x-192gb-oam"),
    ("0x74b5", "mi300x-192gb-oam"),  # the virtual function
    ("0x74b9", "mi325x-256gb-oam"),
    ("MI300X OAM 192GB HBM3", "mi300x-192gb-oam"),
    ("AMD Instinct MI100", "mi100-32gb-pcie"),
    ("Google TPU v5e", "tpu-v5e-16gb-board"),
    ("TPU v4 lite", "tpu-v4i-8gb-board"),
    ("TPU v6e", "tpu-v6e-32gb-board"),
    ("NVIDIA GeForce RTX 4090 D", "rtx-4090-d-24gb-pcie"),
    ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada-48gb-pcie"),
    ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q-96gb-pcie"),
    ("Intel(R) Arc(TM) Pro B60 Graphics", "arc-pro-b60-24gb-pcie"),
    ("Intel(R) Data Center GPU Max 1550", "max-1550-128gb-oam"),
    ("Ascend910_9391", "ascend-910c-128gb-module"),
    ("Ascend910B3", "ascend-910b-64gb-module"),
    ("Apple M1 Max", "m1-max-64gb-soc"),
    ("trn2", "trainium2-96gb-module"),
    ("Gaudi 2", "gaudi-2-96gb-oam"),
    ("NCC S1", "ncc-s1-module"),
    ("eie", "eie-asic"),
]


@pytest.mark.parametrize(("text", "device_id"), OTHER_NAMES)
def test_names_of_drivers_and_people(text: str, device_id: str) -> None:
    assert find_device(text).id == device_id


UNKNOWN = [
    "H100-Ultra",
    "NVIDIA RTX A4000",  # contains A40
    "RTX 4090 Laptop GPU",
    "4090",
    "A10X",
    "H2000",
    "H100 SXM4",  # no form of that device
    "H100 48GB",
    "H100 PCIe HBM4",
    "H200 PCIe",
    "L40S 24GB",
    "AMD H100",
    "GeForce A100",
    "Intel MI300X",
    "TPU v5 large",
    "TPU",
    "NVIDIA",
    "AMD Radeon VII",
    "gfx999",
    "MIG 1g.10gb",
    "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    "h100-sxm, a100-80gb-sxm",
    "sxm h100 sxm nvl",
    "",
    " ",
    "H100\0",
    "h" * 100_000,
]


@pytest.mark.parametrize("text", UNKNOWN, ids=lambda text: text[:20])
def test_near_misses_are_unknown(text: str) -> None:
    with pytest.raises(UnknownNameError, match="unknown device"):
        find_device(text)


AMBIGUOUS = [
    ("H100", {"h100-sxm", "h100-pcie", "h100-nvl", "h100-64gb-96gb-sxm"}),
    ("NVIDIA H100", {"h100-sxm", "h100-pcie", "h100-nvl", "h100-64gb-96gb-sxm"}),
    ("h100 80gb", {"h100-sxm", "h100-pcie"}),
    ("a100", {"a100-40gb-sxm", "a100-80gb-sxm", "a100-40gb-pcie", "a100-80gb-pcie"}),
    ("a100 80gb", {"a100-80gb-sxm", "a100-80gb-pcie"}),
    ("A100 SXM", {"a100-40gb-sxm", "a100-80gb-sxm"}),
    ("V100", {"v100-16gb-sxm", "v100-16gb-pcie", "v100-32gb-sxm", "v100-32gb-pcie"}),
    ("gfx90a", {"mi210", "mi250", "mi250x"}),
    ("gfx942", {"mi300a", "mi300x", "mi325x"}),
    ("gfx950", {"mi350x", "mi355x"}),
    ("AMD Instinct MI250X / MI250", {"mi250", "mi250x"}),
    ("NC_v2", {"trainium1", "inferentia2"}),
    ("RTX PRO 6000", {"rtx-pro-6000-workstation", "rtx-pro-6000-max-q", "rtx-pro-6000-server"}),
]


@pytest.mark.parametrize(("text", "short_ids"), AMBIGUOUS)
def test_names_that_fit_several_list_them(text: str, short_ids: set[str]) -> None:
    with pytest.raises(AmbiguousNameError) as caught:
        find_device(text)
    assert set(caught.value.faults[0].nearest) == short_ids


MEMORY = [
    ("NVIDIA H100", 94 * GIGA, "h100-94gb-nvl"),
    ("NVIDIA H100", 93 * GIBI, "h100-94gb-nvl"),
    ("NVIDIA H100", 64 * GIGA, "h100-64gb-96gb-sxm"),
    ("NVIDIA H100", 95 * GIBI, "h100-64gb-96gb-sxm"),
    ("H100 SXM", 80 * GIBI, "h100-80gb-sxm"),
    ("A100 SXM", 40 * GIGA, "a100-40gb-sxm"),
    ("A100 SXM", 42_298_834_944, "a100-40gb-sxm"),  # 39.4 GiB, what a driver shows of 40 GB
    ("A100 SXM", 80 * GIBI, "a100-80gb-sxm"),
    ("GH200", 141 * GIBI, "gh200-141gb-superchip"),  # the plain name, but the other size
    ("gfx942", 192 * GIBI, "mi300x-192gb-oam"),
    ("gfx942", 256 * GIBI, "mi325x-256gb-oam"),
    ("Orin", 16 * GIGA, "jetson-orin-nx-16gb-module"),
    ("H200", 10 * GIGA, "h200-141gb-sxm"),  # a slice of one: the name alone decides
    ("a100-80gb-sxm", 40 * GIGA, "a100-80gb-sxm"),
]


@pytest.mark.parametrize(("text", "memory_bytes", "device_id"), MEMORY)
def test_memory_size_splits_what_fits_several(text: str, memory_bytes: int, device_id: str) -> None:
    assert find_device(text, memory_bytes=memory_bytes).id == device_id


def test_memory_that_splits_nothing_leaves_the_name_ambiguous() -> None:
    with pytest.raises(AmbiguousNameError, match="h100-sxm, h100-pcie"):
        find_device("NVIDIA H100", memory_bytes=80 * GIBI)


def test_unknown_message_word_by_word() -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_device("H100-Ultra")
    assert str(caught.value) == (
        "unknown device 'H100-Ultra' in --gpu; expected one of 125 known; "
        "nearest: h100-sxm, h100-pcie, h100-nvl. "
        "`suanli gpus` lists them; for another device pass its dense peak, like --peak 989TFLOPS."
    )
    assert caught.value.faults[0].code == "unknown_device"


def test_ambiguous_message_word_by_word() -> None:
    with pytest.raises(AmbiguousNameError) as caught:
        find_device("a100 80gb", where="gpu")
    assert str(caught.value) == (
        "ambiguous device 'a100 80gb' in gpu; expected one of the 2 it fits; "
        "nearest: a100-80gb-sxm, a100-80gb-pcie. "
        "Give one of these ids, or the form or memory size that tells them apart."
    )
    assert caught.value.faults[0].code == "ambiguous_device"


def test_nearest_names_of_a_typing_error() -> None:
    with pytest.raises(UnknownNameError, match="nearest: rtx-a6000"):
        find_device("NVIDIA RTX A4000")
    with pytest.raises(UnknownNameError, match="nearest: h200-sxm, h200-nvl"):
        find_device("H200-NVL2")


@pytest.mark.parametrize("value", [None, 1, b"h100", ["h100-sxm"]])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"not a device name in --gpu; got .*; expected a text"):
        find_device(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("NVIDIA A100-SXM4-80GB", ("nvidia", "a100", "sxm4", "80gb")),
        ("A100 80 GB", ("a100", "80gb")),
        ("a100_80g", ("a100", "80gb")),
        ("a100 80GiB", ("a100", "80gb")),
        ("Intel(R) Arc(TM) Pro B60", ("intel", "arc", "pro", "b60")),
        ("GB200 (per GPU)", ("gb200", "per", "gpu")),
        ("", ()),
    ],
)
def test_normalised(text: str, tokens: tuple[str, ...]) -> None:
    assert match.normalised(text) == tokens


_CATALOGUE_WORDS = frozenset(
    token
    for device in list_devices()
    for text in (
        device.id,
        device.name,
        *device.aliases,
        *device.device_strings,
        device.memory_kind or "",
        device.form,
    )
    for token in match.normalised(text)
)
_EVERY_NAME = [name for d in list_devices() for name in (d.id, *d.aliases, *d.device_strings)]


def _is_new_word(token: str) -> bool:
    known = _CATALOGUE_WORDS | match._VENDOR_WORDS | {"sxm", "gb", "g", "gib"}
    return token not in known and not re.fullmatch(r"\d+(gb|gib|g)", token)


@given(
    name=st.sampled_from(_EVERY_NAME),
    extra=st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True).filter(_is_new_word),
    at=st.integers(0, 6),
)
def test_an_extra_token_makes_any_device_unknown(name: str, extra: str, at: int) -> None:
    tokens = name.split(" ")
    tokens.insert(at, extra)
    with pytest.raises(UnknownNameError):
        find_device(" ".join(tokens))


@given(st.text(max_size=300))
def test_any_text_is_a_device_or_an_error_of_ours(text: str) -> None:
    try:
        assert find_device(text) in list_devices()
    except (UnknownNameError, AmbiguousNameError) as problem:
        assert len(str(problem)) < 700


@given(st.sampled_from(_EVERY_NAME), st.sampled_from([str.upper, str.lower, str.title]), st.sampled_from("-_ "))
def test_case_and_separators_do_not_matter(name: str, change: object, separator: str) -> None:
    written = re.sub(r"[-_ ]", separator, change(name))  # type: ignore[operator]
    assert match.normalised(written) == match.normalised(name)
