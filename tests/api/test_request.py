"""A request value by value: what is given, what is assumed, and every fault kept until the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.api.request import Request, read_image, read_time_limit
from suanli.errors import ConfigError, Fault, InputError, QuantityError, SuanliError


def sentences(request: Request) -> list[str]:
    return [fault.sentence() for error in request.errors for fault in error.faults]


Read = Callable[[Request], Any]

# read: value; what is given, what is assumed
READS: list[tuple[Read, Any, dict[str, Any], dict[str, Any]]] = [
    (lambda r: r.quantity("peak", None, "flop_per_s"), None, {}, {}),
    (lambda r: r.quantity("peak", "989TFLOPS", "flop_per_s"), 989 * 10**12, {"peak": "989TFLOPS"}, {}),
    (lambda r: r.quantity("price", 2, "usd"), 2, {"price": 2}, {}),
    (lambda r: r.whole("gpus", None), None, {}, {}),
    (lambda r: r.whole("gpus", None, 1), 1, {}, {"gpus": 1}),
    (lambda r: r.whole("gpus", None, 0), 0, {}, {"gpus": 0}),
    (lambda r: r.whole("gpus", 8, 1), 8, {"gpus": 8}, {}),
    (lambda r: r.whole("gpus", "8", 1), 8, {"gpus": "8"}, {}),
    (lambda r: r.whole("seq", "8Ki"), 8192, {"seq": "8Ki"}, {}),
    (lambda r: r.whole("seq", "1.5K"), 1500, {"seq": "1.5K"}, {}),
    (lambda r: r.whole("tokens", 1e3), 1000, {"tokens": 1e3}, {}),
    (lambda r: r.word("dtype", None, "bf16"), "bf16", {}, {"dtype": "bf16"}),
    (lambda r: r.word("dtype", "fp8", "bf16"), "fp8", {"dtype": "fp8"}, {}),
    (lambda r: r.word("dtype", 8, "bf16"), "8", {"dtype": 8}, {}),
    (lambda r: r.attempt(lambda: 5), 5, {}, {}),
]


@pytest.mark.parametrize(("read", "value", "given", "assumed"), READS)
def test_reads(read: Read, value: Any, given: dict[str, Any], assumed: dict[str, Any]) -> None:
    request = Request()
    found = read(request)
    assert found == value and type(found) is type(value)
    assert (request.given, request.assumed, request.errors) == (given, assumed, [])
    request.check()


FAULTS: list[tuple[Read, type[SuanliError], str]] = [
    (lambda r: r.whole("global_batch", "2.5"), InputError,
     "not a whole number in --global-batch; got '2.5'; expected a whole number."),
    (lambda r: r.whole("gpus", 0.5), InputError, "not a whole number in --gpus; got 0.5; expected a whole number."),
    (lambda r: r.whole("seq", "-4"), QuantityError, "a quantity below zero in --seq; got '-4'"),
    (lambda r: r.quantity("step_time", "abc", "duration"), QuantityError, "in --step-time; got 'abc'"),
    (lambda r: r.fault("bad_gpus", "gpus is not possible", "gpus", got="0", expected="at least 1"), InputError,
     "gpus is not possible in --gpus; got 0; expected at least 1."),
]  # fmt: skip


@pytest.mark.parametrize(("read", "kind", "words"), FAULTS)
def test_faults_are_kept_and_raised_at_the_end(read: Read, kind: type[SuanliError], words: str) -> None:
    request = Request()
    assert read(request) is None
    assert words in sentences(request)[0]
    with pytest.raises(kind) as caught:
        request.check()
    assert caught.value is request.errors[0]  # one error is raised as it is


def test_a_value_that_cannot_be_read_was_given_all_the_same() -> None:
    request = Request()
    request.whole("seq", "abc", 2048)
    assert (request.given, request.assumed) == ({"seq": "abc"}, {})


def test_several_errors_are_one_with_all_their_faults_in_order() -> None:
    def fail(kind: type[SuanliError], *messages: str) -> Callable[[], None]:
        def read() -> None:
            raise kind(*(Fault(code="x", message=message) for message in messages))

        return read

    request = Request()
    request.attempt(fail(ConfigError, "one", "two"))
    request.attempt(lambda: 3)
    request.attempt(fail(QuantityError, "three"))
    with pytest.raises(InputError) as caught:
        request.check()
    assert type(caught.value) is InputError
    assert [fault.message for fault in caught.value.faults] == ["one", "two", "three"]


def test_only_errors_of_ours_are_kept() -> None:
    def mistake() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Request().attempt(mistake)


IMAGES = [
    (None, None),
    ("224x224", (224, 224)),
    ("224X384", (224, 384)),
    ("7", (7,)),
    ("2x3x4", (2, 3, 4)),
    ((8, 12), (8, 12)),
    ([8, 12], (8, 12)),
    (224, (224,)),
    ("100000x1", (100_000, 1)),
]


@pytest.mark.parametrize(("text", "size"), IMAGES)
def test_pictures(text: Any, size: tuple[int, ...] | None) -> None:
    assert read_image(text) == size


@pytest.mark.parametrize("text", ["100001x1", "0x1", "1x0", "1x2x3x4", "x", " 8 x 8", "8.0x8", (), (8, "a"), (-1, 2)])
def test_no_pictures(text: Any) -> None:
    with pytest.raises(InputError) as caught:
        read_image(text)
    assert str(caught.value) == (
        f"the size cannot be read in --image; got {text!r}; expected height and width, like 224x224."
    )
    assert caught.value.faults[0].code == "bad_image"


@pytest.mark.parametrize(("given", "seconds"), [("30d", 2_592_000.0), (2_592_000, 2_592_000.0), ("0.5s", 0.5)])
def test_time_limits(given: Any, seconds: float) -> None:
    assert read_time_limit(given) == seconds


@pytest.mark.parametrize(
    ("given", "expected"), [(0, "more than 0 s"), ("0s", "more than 0 s"), ("31d", "at most 30 days (30d)")]
)
def test_time_limits_that_are_not_possible(given: Any, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        read_time_limit(given)
    assert str(caught.value) == (f"the time limit is not possible in --time-limit; got {given!r}; expected {expected}.")
