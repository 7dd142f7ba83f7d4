"""The catalogue of devices: ids, peaks, memory, statuses, sources; and it agrees with the shared table."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import pytest

from suanli.catalog import devices
from suanli.catalog.devices import find_device, list_devices, load, read_rows, source_texts
from suanli.errors import AmbiguousNameError, ConfigError, UnknownNameError
from suanli.nouns.hardware import DTYPES, STATUSES, Device
from suanli.units import GIBI, GIGA, MEBI, MEGA, TERA

CATALOG = Path(devices.__file__).parent
SHARED = Path(__file__).resolve().parents[3] / "shared"

EVERY = pytest.mark.parametrize("device", list_devices(), ids=lambda device: device.id)


@EVERY
def test_every_id_and_short_id_means_its_device(device: Device) -> None:
    for name in (device.id, *device.aliases):
        assert find_device(name) is device
        assert re.fullmatch(r"[a-z0-9-]+", name)


@EVERY
def test_every_figure_is_positive_and_finite(device: Device) -> None:
    figures = [device.memory_bytes, device.memory_bytes_per_s, device.l2_bytes, device.boost_hz, device.tdp_w]
    figures += [device.link_bytes_per_s, device.sparse_multiple, device.torch_devices_per_package]
    figures += device.peaks_flop_per_s.values()
    for figure in figures:
        assert figure is None or (0 < figure < math.inf)
    assert set(device.peaks_flop_per_s) <= set(DTYPES)
    assert device.memory_unit in (None, "GB", "GiB")


# What drivers report of several devices alike; memory size or form tells these apart.
SHARED_NAMES = {
    "RTX PRO 6000", "RTX PRO 6000 Blackwell", "Orin", "gfx90a", "AMD Instinct MI250X / MI250", "gfx942", "gfx950",
    "NC_v2",
}  # fmt: skip


@EVERY
def test_every_name_of_a_row_finds_it_alone(device: Device) -> None:
    for name in (device.name, *device.device_strings):
        if name in SHARED_NAMES:
            with pytest.raises(AmbiguousNameError) as caught:
                find_device(name)
            assert device.short_id in caught.value.faults[0].nearest
        else:
            assert find_device(name) is device


@EVERY
def test_every_row_has_its_date_and_known_sources(device: Device) -> None:
    assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", device.compiled)
    assert device.compiled >= "2026-11"
    assert device.sources or device.confidence == "none"
    assert set(device.sources) <= set(source_texts())


@EVERY
def test_status_says_whether_there_is_a_peak(device: Device) -> None:
    assert device.status in STATUSES
    assert (device.status == "ok") == bool(device.peaks_flop_per_s)
    assert (device.status == "formula") == bool(device.formulas)
    for dtype in DTYPES:
        if dtype in device.peaks_flop_per_s:
            parts = device.torch_devices_per_package
            assert device.peak_flop_per_s(dtype) * parts == device.peaks_flop_per_s[dtype]
        else:
            with pytest.raises(UnknownNameError, match="MFU cannot be given without a peak"):
                device.peak_flop_per_s(dtype)


REFUSED = ["ascend-310", "kunlun", "nxp-s32v234", "m4", "h20-3e", "mi308x", "ascend-910b", "dcu-k100"]
FORMULAS = ["cpu-avx2", "cpu-avx512", "cpu-amx", "cpu-neoverse", "cpu-memory"]


@pytest.mark.parametrize("name", REFUSED)
def test_rows_without_figures_are_listed_and_refused(name: str) -> None:
    assert find_device(name).status == "no_figures"
    with pytest.raises(UnknownNameError, match=f"{name} has no sourced peak at all"):
        find_device(name).peak_flop_per_s("bf16")


@pytest.mark.parametrize("name", FORMULAS)
def test_rows_with_a_formula_are_listed_and_refused(name: str) -> None:
    assert find_device(name).status == "formula"
    with pytest.raises(UnknownNameError, match=f"{name} has no sourced peak, only a formula"):
        find_device(name).peak_flop_per_s("fp32")


def test_a_device_may_lack_the_dtype_asked_for() -> None:
    with pytest.raises(UnknownNameError, match="v100-16gb-sxm has no sourced 'bf16' peak"):
        find_device("v100-16gb-sxm").peak_flop_per_s("bf16")


MEMORY_BYTES = [
    ("a100-80gb-sxm", 80 * GIGA),
    ("h100-sxm", 80 * GIGA),
    ("h200-sxm", 141 * GIBI),  # these four are GiB (hardware.md §1)
    ("h200-nvl", 141 * GIBI),
    ("b200", 180 * GIBI),
    ("gb200", 189_471 * MEBI),  # visible
    ("b300", 275_040 * MEBI),  # 288.4e9 bytes: the advertised 288 GB are decimal
    ("gb300", 284_208 * MEBI),
    ("l40s", 46_068 * MEBI),
    ("gh200", 96 * GIGA),  # not the 480 GB of LPDDR in its name
    ("mi250x", 128 * GIGA),
    ("mi300x", 192 * GIGA),
]


@pytest.mark.parametrize(("name", "memory_bytes"), MEMORY_BYTES)
def test_memory_bytes(name: str, memory_bytes: int) -> None:
    assert find_device(name).memory_bytes == memory_bytes


def test_the_b300_figure_of_the_reference() -> None:
    memory = find_device("b300").memory_bytes
    assert memory is not None
    assert memory / GIGA == pytest.approx(288.4, abs=0.05)
    assert memory / GIBI == pytest.approx(268.6, abs=0.05)


def test_two_torch_devices_share_a_package() -> None:
    device = find_device("mi250x")
    assert device.peaks_flop_per_s["bf16"] == 383 * TERA
    assert device.peak_flop_per_s("bf16") == 383 * TERA // 2
    assert device.memory_bytes_per_torch_device == 64 * GIGA


def test_one_row_field_by_field() -> None:
    device = find_device("h100-sxm")
    assert device.id == "h100-80gb-sxm"
    assert device.vendor == "NVIDIA"
    assert device.form == "SXM5"
    assert device.arch == "Hopper"
    assert device.peak_flop_per_s("bf16") == 989_400_000_000_000
    assert device.peak_flop_per_s("fp8") == 1_978_900_000_000_000
    assert device.sparse_multiple == 2
    assert device.memory_kind == "HBM3"
    assert device.memory_bytes_per_s == 3_350_000_000_000
    assert device.l2_bytes == 50 * MEBI
    assert device.sm_count == 132
    assert device.boost_hz == 1830 * MEGA
    assert (device.link, device.link_bytes_per_s) == ("NVLink4", 900 * GIGA)
    assert (device.pcie_gen, device.tdp_w, device.release) == (5, 700, "2022-10")
    assert device.confidence == "high"
    assert "nvidia-open-kernel" in device.sources


SPARSE = [("trainium2", 4), ("trainium3", 3.75), ("h100-sxm", 2), ("b300", 2)]


@pytest.mark.parametrize(("name", "multiple"), SPARSE)
def test_sparsity_is_not_always_twice(name: str, multiple: float) -> None:
    assert find_device(name).sparse_multiple == multiple


def test_b300_names_its_own_sparse_fp4() -> None:
    assert any("18, not twice 14" in note for note in find_device("b300").notes)


EDGE = [("ncc-s1", "int8", 5_600_000_000_000, 0.6), ("eie", "int8", 102_000_000_000, 0.6)]


@pytest.mark.parametrize(("name", "dtype", "op_per_s", "watts"), EDGE)
def test_the_edge_devices_of_the_articles(name: str, dtype: str, op_per_s: int, watts: float) -> None:
    device = find_device(name)
    assert device.peak_flop_per_s(dtype) == op_per_s
    assert device.tdp_w == watts


# Units × FMA × clock misses these two by more than 3 % (hardware.md §1): L4 125.3 for 121, A10G 63 for 70.
FORMULA_MISSES = {"l4", "a10g"}


@pytest.mark.parametrize(
    "device", [d for d in list_devices() if d.formula_fp16_flop_per_s], ids=lambda device: device.id
)
def test_the_formula_confirms_the_fp16_peak(device: Device) -> None:
    peak = device.peaks_flop_per_s.get("bf16") or device.peaks_flop_per_s["fp16"]
    assert device.formula_fp16_flop_per_s is not None
    error = abs(device.formula_fp16_flop_per_s / peak - 1)
    assert (error > 0.03) == (device.short_id in FORMULA_MISSES)


def test_all_faults_of_a_table_are_reported_together() -> None:
    rows = [dict(row) for row in read_rows("accelerators.csv")[:3]]
    rows[0] |= {"fp16": "fast", "mem_gb": "-16"}
    rows[1] |= {"sources": "hearsay", "compiled": ""}
    rows[2] |= {"id": rows[1]["id"], "aliases": ""}
    with pytest.raises(ConfigError) as caught:
        load(rows)
    assert [fault.code for fault in caught.value.faults] == [
        "bad_quantity",
        "repeated_id",
        "no_source",
        "no_date",
    ]
    assert "accelerators.csv: p100-16gb-sxm: fp16; got 'fastTFLOPS'" in str(caught.value)


def test_every_source_is_explained_and_used() -> None:
    text = "".join((CATALOG / name).read_text() for name in ("accelerators.csv", "nodes.csv", "prices.toml"))
    for key, words in source_texts().items():
        assert key in text, f"{key} is used nowhere"
        assert ": " in words


def test_the_files_speak_for_the_project_alone() -> None:
    for name in ("accelerators.csv", "nodes.csv", "prices.toml", "sources.toml"):
        text = (CATALOG / name).read_text()
        assert "UNVERIFIED" not in text, name
        assert not re.search(r"(?<![\w/:.-])/\w+/\w", text), f"{name}: a path of some machine"


# --- against the shared table -------------------------------------------------------------------------

COPIED = [
    *DTYPES,
    *(
        "sparse_mult",
        "mem_gb",
        "visible_mib",
        "mem_kind",
        "mem_bw_gbs",
        "l2_mb",
        "sm_count",
        "boost_mhz",
        "link",
    ),
    *("link_bidir_gbs", "pcie_gen", "tdp_w", "release", "torch_devices_per_package", "formula_fp16_tflops"),
    *("vendor", "form", "arch"),
]
_UNVERIFIED = re.compile(r"UNVERIFIED (\w+)~([^;]+)")


def _pairs() -> list[tuple[dict[str, str], dict[str, str]]]:
    path = SHARED / "data" / "accelerators.csv"
    if not path.exists():
        pytest.skip(f"the shared table is not beside the checkout: {path}")
    with path.open(encoding="utf-8", newline="") as file:
        theirs = list(csv.DictReader(file))
    ours = read_rows("accelerators.csv")
    assert len(ours) >= len(theirs), "rows of our own stand after theirs"
    return list(zip(ours, theirs, strict=False))


@pytest.mark.shared
def test_every_sourced_cell_of_the_shared_table_is_here() -> None:
    for ours, theirs in _pairs():
        assert {key: ours[key] for key in COPIED} == {key: theirs[key].strip() for key in COPIED}, ours["id"]
        assert len(ours["sources"]) > 0 or not theirs["sources"], ours["id"]


# Device strings left out on purpose: the name of another product, and one that fits four rows by its family.
LEFT_OUT = {"AMD Radeon VII / gfx906", "NVIDIA H100"}


@pytest.mark.shared
def test_every_device_string_of_the_shared_table_is_known() -> None:
    for ours, theirs in _pairs():
        strings = {text.strip().replace("(VF)", "") for text in theirs["aliases"].split(";")} - {""} - LEFT_OUT
        known = set(ours["device_strings"].split(";"))
        known |= {text.removeprefix("Ascend910_") for text in known}
        assert strings <= known, ours["id"]


# A sourced note that happens to have the digits of another, unverified cell.
COINCIDENCES = {("rtx-5090", "fp8")}  # 419 TFLOP/s is bf16 with fp16 accumulate


@pytest.mark.shared
def test_no_unverified_value_leaked() -> None:
    seen = 0
    for ours, theirs in _pairs():
        for key, value in _UNVERIFIED.findall(theirs["notes"]):
            seen += 1
            assert ours[key] == "", (ours["id"], key)
            written = rf"(?<![\w.]){re.escape(value.strip())}(?![\d.])"
            leaked = re.search(written, ours["notes"]) and (ours["family"], key) not in COINCIDENCES
            assert not leaked, (ours["id"], key)
    assert seen > 52  # one or more in each of the 52 rows that have any
