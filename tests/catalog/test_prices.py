"""Prices: dated, sourced, never a silent one; the user's own file comes first and its faults are all told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog import prices
from suanli.catalog.devices import find_device, list_devices, source_texts
from suanli.catalog.prices import find_price, list_prices, read_prices, user_prices_path
from suanli.errors import ConfigError, UnknownNameError, UnreadableFileError
from suanli.nouns.hardware import PRICE_KINDS


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads the prices of whoever runs it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


MINE = """
[[price]]
device = "H100 SXM"
kind = "on-demand"
usd_per_gpu_hour = 1.75
date = "2024-01"
source = "our contract"
"""


def test_every_shipped_price_is_dated_and_sourced() -> None:
    ids = {device.id for device in list_devices()}
    for price in list_prices():
        assert price.device in ids
        assert price.kind in PRICE_KINDS
        assert 0 < price.usd_per_gpu_hour < 50
        assert "2024" <= price.date < "2027"
        assert price.source in source_texts()


DEFAULTS = [
    ("h100-sxm", "$2.99 per GPU-hour, on-demand, Lambda, 2026-03 (costnimbus)"),
    ("h200-sxm", "$3.50 per GPU-hour, on-demand, Nebius, 2026 (skypilot-nebius)"),
    ("b200", "$5.50 per GPU-hour, on-demand, Nebius, 2026 (skypilot-nebius)"),
    ("a100-40gb-sxm", "$4.097 per GPU-hour, on-demand, AWS, 2026-04 (unit-cost-note-2026-04)"),
    ("v100-16gb-sxm", "$0.79 per GPU-hour, on-demand, Lambda, 2026 (skypilot-lambda)"),
]


@pytest.mark.parametrize(("name", "sentence"), DEFAULTS)
def test_the_default_is_the_latest_on_demand_price_and_names_itself(name: str, sentence: str) -> None:
    assert find_price(find_device(name)).sentence() == sentence


# Prices of a node in nodes.csv and hardware.md §5, and what they are for one device.
NODE_PRICES = [
    ("a100-40gb-sxm", "on-demand", 32.7726 / 8),
    ("a100-40gb-sxm", "reserved", 22.104 / 8),
    ("a100-40gb-sxm", "reserved", 19.22 / 8),
    ("a100-40gb-sxm", "reserved", 14.75 / 8),
    ("a100-80gb-sxm", "on-demand", 40.9658 / 8),
    ("a100-80gb-sxm", "reserved", 27.6518 / 8),
    ("h100-80gb-sxm", "on-demand", 98.32 / 8),
    ("h100-80gb-sxm", "on-demand", 80.62 / 8),
    ("h100-80gb-sxm", "on-demand", 23.6 / 8),
    ("h100-80gb-sxm", "spot", 10.0 / 8),
    ("h100-80gb-sxm", "reserved", 39.33 / 8),
    ("h200-141gb-sxm", "reserved", 43.26 / 8),
    ("h200-141gb-sxm", "on-demand", 84.8 / 8),
    ("h200-141gb-sxm", "on-demand", 28.0 / 8),
    ("h200-141gb-sxm", "spot", 11.6 / 8),
    ("b200-180gb-sxm", "on-demand", 44.0 / 8),
    ("trainium1-32gb-module", "on-demand", 21.5 / 16),
    ("trainium1-32gb-module", "reserved", 15.49 / 16),
    ("inferentia2-32gb-module", "on-demand", 12.98 / 12),
    ("a10g-24gb-pcie", "on-demand", 5.672 / 4),
    ("l4-24gb-pcie", "on-demand", 13.3523 / 8),
    ("l40s-48gb-pcie", "on-demand", 1.5484),
    ("v100-16gb-sxm", "on-demand", 6.32 / 8),
    ("rtx-a6000-48gb-pcie", "on-demand", 1.09),
]


@pytest.mark.parametrize(("device_id", "kind", "usd"), NODE_PRICES)
def test_every_price_of_the_reference_is_listed(device_id: str, kind: str, usd: float) -> None:
    found = [price.usd_per_gpu_hour for price in list_prices() if (price.device, price.kind) == (device_id, kind)]
    assert any(abs(value - usd) < 1e-6 for value in found)


def test_the_users_price_comes_first_whatever_its_date(tmp_path: Path) -> None:
    path = _write(tmp_path / "mine.toml", MINE)
    price = find_price(find_device("h100-sxm"), user_path=path)
    assert (price.usd_per_gpu_hour, price.source, price.origin) == (1.75, "our contract", str(path))
    assert find_price(find_device("b200"), user_path=path).provider == "Nebius"
    assert list_prices(path)[0] == price


def test_the_usual_file_is_read_without_being_asked_for() -> None:
    assert find_price(find_device("h100-sxm")).usd_per_gpu_hour == 2.99
    _write(user_prices_path(), MINE)
    assert find_price(find_device("h100-sxm")).usd_per_gpu_hour == 1.75


def test_where_the_usual_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    assert user_prices_path() == Path("/elsewhere/suanli/prices.toml")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "/people/me")
    assert user_prices_path() == Path("/people/me/.config/suanli/prices.toml")


def test_no_price_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    with pytest.raises(UnknownNameError) as caught:
        find_price(find_device("rtx-4090"))
    assert str(caught.value) == (
        "no on-demand price for rtx-4090 in prices.toml. "
        "Pass --price in $ per GPU-hour, or add it to /elsewhere/suanli/prices.toml."
    )
    with pytest.raises(UnknownNameError, match="no spot price for b200"):
        find_price(find_device("b200"), "spot")


def test_an_unknown_kind_word_by_word() -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_price(find_device("b200"), "spott")
    assert str(caught.value) == (
        "unknown kind of price 'spott'; expected one of on-demand, spot, reserved; nearest: spot."
    )


def test_all_faults_of_a_users_file_are_told_together(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "mine.toml",
        """
        currency = "EUR"
        [[price]]
        device = "H100-Ultra"
        kind = "spott"
        usd_per_gpu_hour = -1
        date = "March"
        source = 5
        colour = "red"
        [[price]]
        device = "b200"
        kind = "spot"
        usd_per_gpu_hour = "cheap"
        date = "2026-13"
        """,
    )
    with pytest.raises(ConfigError) as caught:
        read_prices(path)
    told = {(fault.code, (fault.where or "").removeprefix(f"{path}")) for fault in caught.value.faults}
    assert told == {
        ("unknown_key", ""),
        ("unknown_key", ": price[0]"),
        ("unknown_device", ": price[0].device"),
        ("unknown_price_kind", ": price[0].kind"),
        ("negative_quantity", ": price[0].usd_per_gpu_hour"),
        ("bad_date", ": price[0].date"),
        ("bad_value", ": price[0].source"),
        ("missing_key", ": price[1].source"),
        ("bad_quantity", ": price[1].usd_per_gpu_hour"),
        ("bad_date", ": price[1].date"),
    }


def test_messages_of_a_users_file_word_by_word(tmp_path: Path) -> None:
    path = _write(tmp_path / "mine.toml", MINE.replace("kind = ", "knd = "))
    with pytest.raises(ConfigError) as caught:
        read_prices(path)
    assert str(caught.value) == (
        f"unknown key 'knd' in {path}: price[0]; nearest: kind, node.\nmissing key in {path}: price[0].kind."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("price = 3", "not a list in .*: price; expected"),
        ("price = [1]", r"not a table in .*: price\[0\]; got 1"),
    ],
)
def test_a_users_file_of_another_shape(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_prices(_write(tmp_path / "mine.toml", text))


def test_an_empty_users_file_is_no_fault(tmp_path: Path) -> None:
    assert read_prices(_write(tmp_path / "mine.toml", "")) == ()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match=r"No such file or directory in .*absent\.toml"):
        read_prices(tmp_path / "absent.toml")
    with pytest.raises(UnreadableFileError, match="not a regular file"):
        read_prices(tmp_path)
    with pytest.raises(UnreadableFileError, match="not a TOML file"):
        read_prices(_write(tmp_path / "mine.toml", "price = ["))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UnreadableFileError, match="not a TOML file"):
        read_prices(tmp_path / "bytes.toml")
    with pytest.raises(UnreadableFileError, match="a file too large for a price list"):
        read_prices(_write(tmp_path / "large.toml", "#" * (prices._MAX_BYTES + 1)))


_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just([]))
_ENTRIES = st.dictionaries(st.sampled_from(prices._REQUIRED + prices._OPTIONAL), _SCALARS)


@given(st.dictionaries(st.sampled_from(["price", "x"]), st.one_of(_SCALARS, st.lists(st.one_of(_SCALARS, _ENTRIES)))))
def test_any_table_gives_prices_or_one_config_error(table: dict[str, object]) -> None:
    try:
        assert prices._prices(table, "file") == ()
    except ConfigError as problem:
        assert problem.faults
