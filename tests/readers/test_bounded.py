"""Code that does not end, ends the process, or catches everything: stopped, and no timer, handler or tracer is left."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from suanli.errors import ConfigError, SuanliError
from suanli.readers import bounded
from suanli.readers.bounded import Stopped, is_interruption, stopped_after, time_limit, within
from suanli.readers.factory import run_theirs


class TooLongError(Exception):
    pass


def state() -> tuple[Any, ...]:
    return signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = state()
    yield
    assert state() == before
    assert threading.active_count() < 20


def spins() -> None:
    while True:
        pass


def sleeps() -> None:
    time.sleep(60)


def waits() -> None:
    threading.Event().wait(60)


def catches_all() -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException:  # noqa: BLE001
            continue


def catches_all_nested() -> None:
    while True:
        try:
            try:
                spins()
            finally:
                time.sleep(0)
        except BaseException:  # noqa: BLE001
            continue


def turns_it_into_another() -> None:
    try:
        spins()
    except BaseException as problem:
        raise ValueError("mine") from problem


def swallows_and_ends() -> None:
    try:
        spins()
    except BaseException:  # noqa: BLE001
        return


ENDLESS = [spins, sleeps, waits, catches_all, catches_all_nested, turns_it_into_another, swallows_and_ends]


@pytest.mark.parametrize("code", ENDLESS)
def test_it_is_stopped_on_the_main_thread(code: Callable[[], None]) -> None:
    start = time.monotonic()
    with pytest.raises(TooLongError), stopped_after(0.05, TooLongError):
        code()
    assert time.monotonic() - start < 30  # a moment, but the machine may be busy


@pytest.mark.parametrize("code", [spins, turns_it_into_another, swallows_and_ends])
def test_it_is_stopped_on_another_thread(code: Callable[[], None]) -> None:
    found: list[type[BaseException]] = []

    def run() -> None:
        try:
            with stopped_after(0.05, TooLongError):
                code()
        except BaseException as problem:  # noqa: BLE001
            found.append(type(problem))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert found == [TooLongError]


def test_what_ends_in_time_is_left_alone() -> None:
    for _ in range(100):
        with stopped_after(5, TooLongError):
            pass
    with pytest.raises(ValueError, match="mine"), stopped_after(5, TooLongError):
        raise ValueError("mine")


def test_a_bound_inside_a_bound() -> None:
    """The inner one ends alone; the outer one still ends after it."""
    with pytest.raises(TooLongError), stopped_after(0.6, TooLongError):
        with pytest.raises(KeyError), stopped_after(0.05, KeyError):
            spins()
        spins()


def test_a_timer_of_somebody_else_is_not_taken() -> None:
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(TooLongError), stopped_after(0.05, TooLongError):
            spins()
        time.sleep(0.4)
        assert rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Slow:
    """Its finalizer, in which nothing can be raised, takes longer than there is time."""

    def __init__(self, error: type[BaseException] | None = None) -> None:
        self.error = error

    def __del__(self) -> None:
        if self.error:
            raise self.error
        end = time.monotonic() + 2 * bounded.GRACE
        while time.monotonic() < end:
            pass


def test_an_interrupted_finalizer_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", hook := lambda what: told.append(what.exc_type))
    with pytest.raises(TimeoutError), stopped_after(0.01, TimeoutError):
        _Slow()
        _Slow(KeyError)  # what is the code's own still is
        while True:
            pass
    assert sys.unraisablehook is hook
    assert Stopped not in told
    with stopped_after(9, TimeoutError), stopped_after(9, TimeoutError):
        _Slow(KeyError)
    assert told[-1] is KeyError and sys.unraisablehook is hook


def test_the_keyboard_comes_first() -> None:
    def interrupted() -> None:
        try:
            spins()
        except bounded.Stopped:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt), stopped_after(0.05, TooLongError):
        interrupted()
    assert is_interruption(KeyboardInterrupt()) and is_interruption(bounded.Stopped())
    assert not is_interruption(SystemExit())


def test_the_limit_is_that_of_the_request() -> None:
    assert time_limit() == 300
    with within(2.5):
        assert time_limit() == 2.5
        with within(None):
            assert time_limit() == 2.5
    assert time_limit() == 300


class OddError(BaseException):
    pass


@pytest.mark.parametrize("problem", [ValueError("no"), SystemExit(3), OddError("no"), GeneratorExit()])
def test_whatever_a_factory_raises_is_one_error(problem: BaseException) -> None:
    def factory() -> None:
        raise problem

    with pytest.raises(ConfigError) as caught:
        run_theirs(factory, "the factory")
    assert caught.value.faults[0].message == f"the factory raised {type(problem).__name__}"


def test_a_factory_that_does_not_end() -> None:
    with within(0.05), pytest.raises(SuanliError) as caught:
        run_theirs(catches_all, "the factory")
    assert str(caught.value) == (
        "the factory still runs after 0.05 s in MODEL. Give it more time with --time-limit; check for a loop that does "
        "not end."
    )
