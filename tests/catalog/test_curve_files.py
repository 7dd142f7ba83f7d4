"""Curve files: what is shipped reads, what is broken is refused with every fault."""

from __future__ import annotations

from importlib import resources

import pytest

from suanli.catalog.curve_files import read_curve_text, read_relatives_text
from suanli.errors import ConfigError, InputError, UnreadableFileError

FOLDER = resources.files("suanli.catalog") / "curves"
GOOD = (FOLDER / "h100-80gb-sxm.toml").read_text(encoding="utf-8")


def broken(old: str, new: str) -> str:
    """The good file with its first `old` replaced."""
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def line_of(key: str) -> str:
    """The first line of the good file that sets `key`."""
    return next(line for line in GOOD.splitlines() if line.startswith(f"{key} = "))


def test_the_good_file_reads() -> None:
    file = read_curve_text(GOOD, "h100.toml")
    assert (file.device, file.units) == ("h100-80gb-sxm", 132)
    assert set(file.matmul) == {"bf16", "fp8", "fp8_block"}
    assert file.matmul["bf16"].dtype == "bf16"
    assert set(file.collectives) == {"all_reduce", "all_reduce_switch", "all_gather", "reduce_scatter", "all_to_all"}


# what is replaced, by what, the sentence that says so
FAULTS = [
    ("units = 132", 'units = "132"', "not a finite number in h.toml: units; got '132'."),
    ("units = 132", "units = 0", "too small in h.toml: units; got 0; expected above 0."),
    ("units = 132", "units = true", "not a finite number in h.toml: units; got True."),
    ('date = "', 'day = "', "unknown key 'day' in h.toml; nearest: date"),
    (line_of("efficiency"), "efficiency = nan", "not a finite number in h.toml: matmul.bf16.efficiency; got nan."),
    (line_of("efficiency"), "efficiency = inf", "not a finite number in h.toml: matmul.bf16.efficiency; got inf."),
    (
        line_of("efficiency"),
        "efficiency = 0.0",
        "out of bounds in h.toml: matmul.bf16.efficiency; got 0.0; expected above 0.",
    ),
    (
        line_of("wave_exponent"),
        "wave_exponent = 1.5",
        "out of bounds in h.toml: matmul.bf16.wave_exponent; got 1.5; expected at least 0, at most 1.",
    ),
    (
        line_of("sharpness"),
        "sharpness = 0.5",
        "out of bounds in h.toml: matmul.bf16.sharpness; got 0.5; expected at least 1.",
    ),
    (line_of("sharpness"), "", "not a finite number in h.toml: matmul.bf16.sharpness; got None."),
    (line_of("engine"), "engine = 3", "not a text in h.toml: matmul.bf16.fit: engine; got 3."),
    ("[matmul.bf16]", "[matmul.bf17]", "unknown key 'bf17' in h.toml: matmul; nearest: bf16"),
    ("[memory]", "[memories]", "not a finite number in h.toml: memory.fraction; got None."),
    ('fp16 = "bf16"', 'fp16 = "bf61"', "a curve that the file does not have in h.toml: stands_for.fp16; got 'bf61'"),
]


@pytest.mark.parametrize(("old", "new", "sentence"), FAULTS)
def test_a_fault_is_said(old: str, new: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_curve_text(broken(old, new), "h.toml")
    assert any(line.startswith(sentence) for line in str(caught.value).splitlines()), str(caught.value)


def test_all_faults_are_listed_together() -> None:
    text = broken("units = 132", "units = -1").replace(line_of("efficiency"), "efficiency = -1.0", 1)
    with pytest.raises(ConfigError) as caught:
        read_curve_text(text, "h.toml")
    assert [fault.where for fault in caught.value.faults] == ["h.toml: units", "h.toml: matmul.bf16.efficiency"]


@pytest.mark.parametrize(
    "text", ["", "device = 3", "matmul = 1", "[matmul]\nbf16 = 1", "stands_for = 1", "x = " + "[" * 60 + "]" * 60]
)
def test_other_tables_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_curve_text(text, "h.toml")


@pytest.mark.parametrize("text", ["device = ", "\x00", "{}", "[" * 5000])
def test_no_toml_is_refused(text: str) -> None:
    with pytest.raises(UnreadableFileError, match="not a TOML file"):
        read_curve_text(text, "h.toml")


RELATIVES = [
    ('[x]\nof = "h101"\nwhy = "w"', "no curves of 'h101' in r.toml: x.of; nearest: h100."),
    ('[x]\nof = "h100"', "not a text in r.toml: x: why; got None."),
    ('[x]\nof = "h100"\nwhy = "w"\nrate = { bf16 = 0 }', "too small in r.toml: x.rate.bf16; got 0; expected above 0."),
    ('[x]\nof = "h100"\nwhy = "w"\nrate = { bf61 = 1 }', "unknown key 'bf61' in r.toml: x.rate; nearest: bf16"),
    ('[x]\nof = "h100"\nwhy = "w"\nrate = 2', "not a table in r.toml: x.rate; got 2."),
    ("x = 1", "not a table in r.toml: x; got 1."),
]


@pytest.mark.parametrize(("text", "sentence"), RELATIVES)
def test_a_broken_relative_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_relatives_text(text, "r.toml", {"h100"})
    assert str(caught.value).splitlines()[0].startswith(sentence)


def test_a_good_relative_reads() -> None:
    text = '[h800]\nof = "h100"\nwhy = "same chip"\nrate = { bf16 = 0.9 }'
    relative = read_relatives_text(text, "r.toml", {"h100"})["h800"]
    assert (relative.of, relative.why, relative.rate) == ("h100", "same chip", (("bf16", 0.9),))
