"""The user's own code (factories, forwards), bounded in time, on the main thread and on others, without a new process.

On the main thread of a system with timers a signal interrupts even a call that waits; elsewhere an exception is thrown
in at the next step of Python. Code that catches everything is interrupted again at once, until it is caught outside its
`try`. A single call of compiled code that never returns cannot be stopped.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType

GRACE = 0.25  # seconds from the end of the time to the first interruption: checks of our own come first
AGAIN = 0.05  # seconds from one interruption to the next, for code that caught it
SOON = (2e-6, 1e-4)  # the same by the system's timer
_SECONDS: ContextVar[float] = ContextVar("seconds", default=300.0)


def time_limit() -> float:
    """Seconds that code of the user's may run: 300, or what `within` says."""
    return _SECONDS.get()


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Inside, the user's code may run so long; None changes nothing."""
    if seconds is None:
        yield
        return
    token = _SECONDS.set(seconds)
    try:
        yield
    finally:
        _SECONDS.reset(token)


class Stopped(BaseException):
    """Thrown into code that passes its bound; no `except Exception` swallows it."""


def is_interruption(problem: BaseException) -> bool:
    """Whether it comes from the person at the keyboard or the clock, and not from the code that ran."""
    return isinstance(problem, KeyboardInterrupt | Stopped)


class _Bound:
    """Interrupts this thread when the time is over, and again until the context is left."""

    def __init__(self, seconds: float, error: Callable[[], Exception]) -> None:
        self.seconds, self.error = seconds, error
        self.running, self.fired = False, 0

    def __enter__(self) -> None:
        self.running = True
        self.arm()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.leave()
        except Stopped:  # it came while leaving
            self.leave()
        if self.fired and not (kind and issubclass(kind, KeyboardInterrupt)):
            raise self.error() from None

    def leave(self) -> None:
        """From here on nothing is interrupted."""
        self.running = False
        self.disarm()

    def arm(self) -> None:
        """Set the timer."""
        raise NotImplementedError

    def disarm(self) -> None:
        """Take the timer away."""
        raise NotImplementedError


class _Alarm(_Bound):
    """By the system's timer; for the main thread where nobody else uses it."""

    def arm(self) -> None:
        self.before = signal.signal(signal.SIGALRM, self.fire)
        signal.setitimer(signal.ITIMER_REAL, self.seconds + GRACE, AGAIN)

    def disarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def fire(self, _number: int, frame: FrameType | None) -> None:
        """The time is over: raise where the code stands, and again moments later should it catch that."""
        if not self.running:
            return
        if frame is not None and frame.f_code.co_filename in _OURS:
            signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
            return
        self.fired += 1
        soon = random.uniform(*SOON) * 2 ** (self.fired % 8)  # at random, to meet it between two tries
        signal.setitimer(signal.ITIMER_REAL, soon, AGAIN)
        raise Stopped


_OURS = (__file__, contextlib.__file__)  # on the way out: not interrupted


class _Thrower(_Bound):
    """By a thread that throws an exception into this one."""

    def arm(self) -> None:
        self.thread, self.lock, self.over = threading.get_ident(), threading.Lock(), threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        wait = self.seconds + GRACE
        while not self.over.wait(wait):
            wait = AGAIN
            with self.lock:
                if self.running:
                    self.fired += 1
                    _throw(self.thread, Stopped)

    def disarm(self) -> None:
        self.over.set()
        with self.lock:
            _throw(self.thread, None)  # one that was thrown and has not arrived


def _throw(thread: int, error: type[BaseException] | None) -> None:
    set_error: Callable[..., int] = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_error(ctypes.c_ulong(thread), ctypes.py_object(error) if error else None)


def _can_alarm() -> bool:
    """Whether this is the main thread of a system with timers, and nobody uses the timer or its signal."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return False
    free = signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, signal.SIG_IGN)
    return free and signal.getitimer(signal.ITIMER_REAL)[0] == 0


@contextmanager
def stopped_after(seconds: float, error: Callable[[], Exception]) -> Iterator[None]:
    """Stop what runs inside when the time is over and raise `error()`. Reentrant; leaves no timer and no handler."""
    bound = (_Alarm if _can_alarm() else _Thrower)(seconds, error)
    with _QUIET, bound:
        yield


class _Quiet:
    """Inside, an interruption that comes where nothing can be raised (in a finalizer, while collecting garbage) is not
    told: the next one comes.
    """

    def __init__(self) -> None:
        self.lock, self.inside, self.before = threading.Lock(), 0, sys.unraisablehook

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.before, sys.unraisablehook = sys.unraisablehook, self.told
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside and sys.unraisablehook == self.told:
                sys.unraisablehook = self.before

    def told(self, what: sys.UnraisableHookArgs) -> None:
        """Whatever else cannot be raised goes to who was told before."""
        if not issubclass(what.exc_type, Stopped):
            self.before(what)


_QUIET = _Quiet()
