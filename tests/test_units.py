"""Quantities: what is read, what is refused in which words, and how numbers are printed."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli import units
from suanli.errors import QuantityError, UnknownNameError
from suanli.units import KINDS, counted, parse

READ = [
    # counts: decimal, binary with an i, B is a billion
    ("300B", "count", 300_000_000_000),
    ("15.6T", "count", 15_600_000_000_000),
    ("4K", "count", 4_000),
    ("4Ki", "count", 4_096),
    ("1.5m", "count", 1_500_000),
    ("175b", "count", 175_000_000_000),
    ("128", "count", 128),
    (" 1,234,567 ", "count", 1_234_567),
    ("1_000", "count", 1_000),
    ("3.15e23", "count", 315 * 10**21),
    (".5K", "count", 500),
    ("2.", "count", 2),
    ("0.1", "count", 0.1),
    ("+7", "count", 7),
    ("0e400", "count", 0),
    ("100000000000000000000000000000001", "count", 100000000000000000000000000000001),
    # rates: the unit must be there
    ("989.4TFLOPS", "flop_per_s", 989_400_000_000_000),
    ("989.4 TFLOP/s", "flop_per_s", 989_400_000_000_000),
    ("312T", "flop_per_s", 312 * 10**12),
    ("1 EFLOP/s", "flop_per_s", 10**18),
    ("3350GB/s", "bytes_per_s", 3_350_000_000_000),
    ("1GiB/s", "bytes_per_s", 2**30),
    # sizes: B is a byte
    ("80GB", "bytes", 80_000_000_000),
    ("80GiB", "bytes", 80 * 2**30),
    ("80G", "bytes", 80_000_000_000),
    ("8B", "bytes", 8),
    ("64Ki", "bytes", 65_536),
    # times
    ("54d", "duration", 54 * 86_400),
    ("3.5h", "duration", 12_600),
    ("2min", "duration", 120),
    ("2m", "duration", 120),
    ("1w", "duration", 604_800),
    ("8ms", "duration", 0.008),
    ("5 µs", "duration", 5e-6),
    ("13.75", "duration", 13.75),
    # power, money, fractions, carbon
    ("700W", "power", 700),
    ("1.2MW", "power", 1_200_000),
    ("2.5", "usd", 2.5),
    ("$2.50", "usd", 2.5),
    ("3M$", "usd", 3_000_000),
    ("46%", "fraction", 0.46),
    ("0.46", "fraction", 0.46),
    ("400g/kWh", "carbon", 0.4),
    # what edge devices are advertised in: decimal, although some texts say that each prefix is 1024
    ("5.6TOPS", "op_per_s", 5_600_000_000_000),
    ("102GOPS", "op_per_s", 102_000_000_000),
    ("1 MOPS", "op_per_s", 1_000_000),
    ("9.3TOPS/W", "op_per_s_per_w", 9_300_000_000_000),
    ("500 GOPS/W", "op_per_s_per_w", 500_000_000_000),
    ("22.6GOPs", "operations", 22_600_000_000),
    ("1.4 GOP", "operations", 1_400_000_000),
    ("11.3GMACs", "macs", 11_300_000_000),
    ("4.09GMAC", "macs", 4_090_000_000),
    ("90MIPS", "instructions_per_s", 90_000_000),
    ("2 GIPS", "instructions_per_s", 2_000_000_000),
]


@pytest.mark.parametrize(("text", "kind", "value"), READ)
def test_what_is_read(text: str, kind: str, value: float) -> None:
    read = parse(text, kind)
    assert read == value
    assert type(read) is type(value)  # whole numbers stay exact


def test_the_edge_card_of_the_article() -> None:
    """5.6 TOPS at 9.3 TOPS/W draw 0.60 W."""
    assert parse("5.6TOPS", "op_per_s") / parse("9.3TOPS/W", "op_per_s_per_w") == pytest.approx(0.602, abs=5e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_every_kind_is_read(kind: str) -> None:
    assert parse(KINDS[kind].example, kind) > 0


REFUSED = [
    ("lots", "count", "bad_quantity"),
    ("", "count", "bad_quantity"),
    ("nan", "count", "bad_quantity"),
    ("inf", "count", "bad_quantity"),
    ("1.2.3", "count", "bad_quantity"),
    ("0,5", "count", "bad_quantity"),  # a half, or five? neither is read
    ("1,23", "count", "bad_quantity"),
    ("1__0", "count", "bad_quantity"),
    ("--5", "count", "bad_quantity"),
    ("٣", "count", "bad_quantity"),
    ("1 2", "count", "bad_quantity"),
    ("9" * 61, "count", "bad_quantity"),
    ("1e400", "count", "bad_quantity"),
    ("1e300Z", "count", "bad_quantity"),
    ("1e-400", "count", "bad_quantity"),
    ("$5", "duration", "bad_quantity"),
    ("-1", "count", "negative_quantity"),
    ("-0.5h", "duration", "negative_quantity"),
    ("989", "flop_per_s", "missing_unit"),
    ("5.6", "op_per_s", "missing_unit"),
    ("90", "instructions_per_s", "missing_unit"),
    ("5.6TOPS", "flop_per_s", "unknown_unit"),
    ("80Gb", "bytes", "unknown_unit"),
    ("5.6TFLOPS", "op_per_s", "unknown_unit"),
    ("5TiOPS", "op_per_s", "unknown_unit"),
    (math.nan, "count", "bad_quantity"),
    (math.inf, "count", "bad_quantity"),
    (True, "count", "bad_quantity"),
    (None, "count", "bad_quantity"),
    (b"5", "count", "bad_quantity"),
    (10**400, "count", "bad_quantity"),
    (-(10**5000), "count", "bad_quantity"),
    (-3, "count", "negative_quantity"),
]


@pytest.mark.parametrize(("value", "kind", "code"), REFUSED, ids=lambda value: str(type(value)) if value else "")
def test_what_is_refused(value: object, kind: str, code: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(value, kind)  # type: ignore[arg-type]
    assert [fault.code for fault in caught.value.faults] == [code]
    assert len(str(caught.value)) < 300


MESSAGES = [
    ("lots", "bytes", "not a number with a unit in --memory; got 'lots'; expected a number like 80GB."),
    ("-80GB", "bytes", "a quantity below zero in --memory; got '-80GB'; expected a number like 80GB."),
    (
        "989",
        "flop_per_s",
        "a number without its unit in --memory; got '989'; expected a number like 989TFLOPS.",
    ),
    (
        "1e999B",
        "bytes",
        "a number too large or too small in --memory; got '1e999B'; expected a number like 80GB.",
    ),
    (math.nan, "bytes", "not a finite number in --memory; got nan; expected a number like 80GB."),
    (
        "7kW/h",
        "power",
        "unknown unit 'kW/h' in --memory; got '7kW/h'; expected a number like 700W; nearest: kW, W. "
        "Suffixes are decimal (K M G T P); Ki Mi Gi are binary.",
    ),
]


@pytest.mark.parametrize(("value", "kind", "message"), MESSAGES)
def test_messages_word_by_word(value: str, kind: str, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(value, kind, "--memory")
    assert str(caught.value) == message


def test_signed_quantities_may_be_below_zero() -> None:
    assert parse("-2h", "duration", signed=True) == -7_200
    assert parse(-2.5, "usd", signed=True) == -2.5


def test_numbers_are_already_in_the_base_unit() -> None:
    assert parse(80, "bytes") == 80
    assert parse(0.46, "fraction") == 0.46


@given(st.integers(0, 10**40), st.sampled_from(sorted(KINDS)))
def test_whole_numbers_with_any_suffix_stay_exact(number: int, kind: str) -> None:
    for suffix, factor in KINDS[kind].suffixes.items():
        if (suffix or KINDS[kind].bare) and isinstance(factor, int):
            assert parse(f"{number}{suffix}", kind) == number * factor


@given(st.integers(0, 10**9), st.integers(0, 9999), st.sampled_from("KMGT"))
def test_decimals_are_exact_rationals(whole: int, part: int, prefix: str) -> None:
    value = parse(f"{whole}.{part:04d}{prefix}B", "bytes")
    exact = (Fraction(whole) + Fraction(part, 10_000)) * KINDS["bytes"].suffixes[prefix + "B"]
    assert value == (int(exact) if exact.denominator == 1 else float(exact))


@given(st.text(max_size=80), st.sampled_from(sorted(KINDS)))
def test_any_text_is_a_finite_number_or_a_quantity_error(text: str, kind: str) -> None:
    try:
        value = parse(text, kind)
    except QuantityError as problem:
        assert len(str(problem)) < 400
    else:
        assert math.isfinite(value)
        assert value >= 0


@given(st.one_of(st.integers(), st.floats(), st.none(), st.booleans()))
def test_any_value_is_a_finite_number_or_a_quantity_error(value: object) -> None:
    try:
        assert math.isfinite(parse(value, "count", signed=True))  # type: ignore[arg-type]
    except QuantityError:
        assert not isinstance(value, int | float) or isinstance(value, bool) or not 1e-90 <= abs(value) <= 10**90


def test_scale_factors() -> None:
    assert (units.KILO, units.MEGA, units.GIGA, units.TERA) == (1_000, 10**6, 10**9, 10**12)
    assert (units.PETA, units.EXA, units.ZETTA, units.YOTTA) == (10**15, 10**18, 10**21, 10**24)
    assert (units.KIBI, units.MEBI, units.GIBI) == (1024, 1024**2, 1024**3)
    assert (units.TEBI, units.PEBI) == (1024**4, 1024**5)
    assert (units.MINUTE, units.HOUR, units.DAY, units.WEEK) == (60, 60 * 60, 24 * 3600, 7 * 24 * 3600)


def test_a_mac_is_two_flops() -> None:
    assert units.macs_to_flops(11_300_000_000) == 22_600_000_000  # ResNet-152


PRINTED = [
    (units.format_exact, 1_234_567, "1,234,567"),
    (units.format_exact, 1_234_567.0, "1,234,567"),
    (units.format_exact, 2.5, "2.5"),
    (units.format_exact, 0.123456789, "0.123457"),
    (units.format_count, 405_853_388_800, "405.9 B"),
    (units.format_count, 15_600_000_000_000, "15.60 T"),
    (units.format_count, 124_439_808, "124.4 M"),
    (units.format_count, 999.96, "1.000 K"),
    (units.format_count, 0, "0"),
    (units.format_flops, 734_862_295_040_000, "734.9 TFLOPs"),
    (units.format_flops, 3.14e23, "314.0 ZFLOPs"),
    (units.format_flops, 3.8e25, "38.00 YFLOPs"),
    (units.format_flop_per_s, 989_400_000_000_000, "989.4 TFLOP/s"),
    (units.format_bytes, 16_060_522_496, "14.96 GiB"),
    (units.format_bytes, 512, "512.0 B"),
    (units.format_bytes, 1024, "1.000 KiB"),
    (units.format_bytes_per_s, 3_350_000_000_000, "3,350 GB/s"),
    (units.format_bytes_per_s, 64_000_000_000, "64.00 GB/s"),
    (units.format_percent, 0.4162, "41.62 %"),
    (units.format_percent, 1.04, "104.00 %"),
    (units.format_seconds, 13.75, "13.75 s"),
    (units.format_seconds, 25.3 * 86_400, "25.30 days"),
    (units.format_seconds, 3 * 3600, "3.000 h"),
    (units.format_seconds, 150, "2.500 min"),
    (units.format_seconds, 0.0214, "21.40 ms"),
    (units.format_seconds, 3.2e-5, "32.00 µs"),
    (units.format_seconds, 4e-8, "40.00 ns"),
    (units.format_seconds, 0, "0 s"),
    (units.format_seconds, -5, "-5.000 s"),
    (units.format_usd, 1_234_567.4, "$1,234,567"),
    (units.format_usd, 2.5, "$2.50"),
    (units.format_usd, 12.29, "$12.29"),
    (units.format_usd, 0.003515, "$0.003515"),
    (units.format_usd, 3.5e-6, "$0.0000035"),
    (units.format_usd, 0, "$0.00"),
    (units.format_usd, -4.2, "-$4.20"),
    (units.format_power, 11_470_000, "11.47 MW"),
    (units.format_power, 700, "700.0 W"),
]


@pytest.mark.parametrize(("function", "value", "text"), PRINTED)
def test_what_is_printed(function: object, value: float, text: str) -> None:
    assert function(value) == text  # type: ignore[operator]


def test_digits_can_be_asked_for() -> None:
    assert units.format_flops(734_862_295_040_000, digits=6) == "734.862 TFLOPs"
    assert units.format_percent(0.41623, digits=1) == "41.6 %"


@given(st.floats(1e-9, 1e26))
def test_what_is_printed_is_the_value_to_its_digits(value: float) -> None:
    number, _, unit = units.format_flop_per_s(value).partition(" ")
    assert "e" not in number
    read = parse(number + unit.removesuffix("FLOP/s").replace("Y", "") + "FLOP/s", "flop_per_s")
    assert read * (units.YOTTA if "Y" in unit else 1) == pytest.approx(value, rel=5.1e-4, abs=1e-12)


@given(st.floats(-1e9, 1e9))
def test_seconds_keep_their_sign(value: float) -> None:
    text = units.format_seconds(value)
    assert text.startswith("-") == (value < 0) or float(text.split()[0].replace(",", "")) == 0


# --- by the name of a format --------------------------------------------------------------------------------------

NAMED = [
    (41.62e-2, "percent", "41.62 %"), (0.4162, "percent0", "42 %"), (0.4162, "percent1", "41.6 %"),
    (0.4162, "percent3", "41.620 %"), (3.15e23, "flops", "315.0 ZFLOPs"), (989.4e12, "flop_per_s", "989.4 TFLOP/s"),
    (175e9, "count", "175.0 B"), (2**30, "bytes", "1.000 GiB"), (3.35e12, "bytes_per_s", "3,350 GB/s"),
    (1234567, "exact", "1,234,567"), (13.75, "seconds", "13.75 s"), (2.5, "usd", "$2.50"),
    (-0.3195, "change", "-31.95 %"),
    (0.1252, "change", "+12.52 %"), (1e-7, "change", "0.00 %"), (-1e-7, "change", "0.00 %"), (0.5, ".3f", "0.500"),
    (1234, ",", "1,234"), (1234, "", "1234"), ("as it is", "percent", "as it is"), (None, "flops", ""),
]  # fmt: skip


@pytest.mark.parametrize(("value", "spec", "text"), NAMED)
def test_a_value_by_the_name_of_its_format(value: object, spec: str, text: str) -> None:
    assert units.format_as(value, spec) == text


def test_every_format_has_a_case() -> None:
    assert set(units.FORMATS) <= {spec for _, spec, _ in NAMED}


# --- systems of units ---------------------------------------------------------------------------------------------

SYSTEMS_OF = [
    ("iec", 80e9, "74.51 GiB"),
    ("si", 80e9, "80.00 GB"),
    ("exact", 80_000_000_000, "80,000,000,000 B"),
    (None, 80e9, "74.51 GiB"),
    ("si", 999, "999.0 B"),
    ("si", 999_999, "1.000 MB"),
    ("si", 1_500, "1.500 kB"),
    ("exact", 0, "0 B"),
]


@pytest.mark.parametrize(("system", "value", "text"), SYSTEMS_OF)
def test_sizes_in_a_system(system, value, text):
    with units.units_as(system):
        assert units.format_bytes(value) == text
    assert units.format_bytes(80e9) == "74.51 GiB"


def test_exact_figures_have_every_digit():
    with units.units_as("exact"):
        assert units.format_flops(2_204_555_173_429_248) == "2,204,555,173,429,248 FLOPs"
        assert units.format_count(405_853_388_800) == "405,853,388,800"
        assert units.format_flop_per_s(989.4e12) == "989,400,000,000,000 FLOP/s"
    assert units.format_flops(2_204_555_173_429_248) == "2.205 PFLOPs"


def test_systems_nest_and_end_with_an_error():
    with units.units_as("si"), pytest.raises(ZeroDivisionError), units.units_as("exact"):
        assert units.format_bytes(1000) == "1,000 B"
        raise ZeroDivisionError
    with units.units_as("si"):
        with units.units_as(None):
            assert units.format_bytes(1000) == "1.000 kB"
        assert units.format_bytes(1000) == "1.000 kB"
    assert units.format_bytes(1024) == "1.000 KiB"


def test_an_unknown_system_is_refused():
    with pytest.raises(UnknownNameError) as caught, units.units_as("gb"):
        pass
    assert str(caught.value) == (
        "unknown system of units 'gb' in --units; expected one of 3 known. Systems: iec, si, exact."
    )


@pytest.mark.parametrize(
    ("count", "sentence", "said"),
    [
        (1, "{count} {events|event} without a time {are|is} left out", "1 event without a time is left out"),
        (0, "{count} {events|event} without a time {are|is} left out", "0 events without a time are left out"),
        (2, "{count} {copies and sets|copy or set}", "2 copies and sets"),
        (1, "{count} {copies and sets|copy or set}", "1 copy or set"),
        (1234567, "{count} of {count} {pieces|piece}", "1,234,567 of 1,234,567 pieces"),
        (1, "{braces} and {a: b} stay, {count} {times|time}", "{braces} and {a: b} stay, 1 time"),
    ],
)
def test_a_count_and_its_words_agree(count: int, sentence: str, said: str) -> None:
    assert counted(count, sentence) == said
