"""Processes that do the verbs' work: bounded in number and time, killed when nobody waits for them, started again.

A verb is arithmetic in Python: in a thread it would hold up every other request, and could not be stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from suanli.errors import Fault, SuanliError
from suanli.web.call import Tell

PRELOADED = ["suanli.web.preloaded"]
LEAST = 0.1  # of its time that a request must have left when its turn comes
GRACE_S = 1.0  # that a worker may take to end by itself when the server does


_REPORT = "Please report it with the request."
_AGAIN = "Ask again in some seconds."
_NOT_FREE = Fault(code="busy", message="no process was free in time", hint=_AGAIN)
_ENDED = Fault(code="worker_ended", message="the process that did the work ended before its answer",
               hint="Ask again; where it ends again it has run out of memory: ask for less.")  # fmt: skip


class BusyError(SuanliError):
    """More requests wait than the server takes."""


class EndedError(SuanliError):
    """A process ended before its answer: it was killed, by a person or for want of memory."""


class TooSlowError(SuanliError):
    """The work took longer than a request may."""


def _too_slow(seconds: float) -> TooSlowError:
    return TooSlowError(Fault(code="too_slow", message=f"the answer takes longer than {seconds:,.3g} s",
                              hint="Ask for less, or post it as a job: /api/jobs/VERB."))  # fmt: skip


class BrokenError(SuanliError):
    """A fault of ours: a verb raised what it should not."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a worker does: call `do(*args, tell=…)`; a function of a module, so that it can be sent."""

    do: Callable[..., Any]
    args: tuple[Any, ...] = ()
    long: bool = False  # leaves one worker free for short work


def _serve(pipe: Connection) -> None:
    """The life of a worker: one piece of work after another, until the pipe is closed."""
    if hasattr(os, "setsid"):
        os.setsid()  # it and what it starts can be ended together, and Ctrl-C is the server's
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"  # nothing is fetched for a request
    while True:
        try:
            do, args = pipe.recv()
        except (EOFError, OSError):
            os._exit(0)
        _answer(pipe, do, args)


def _answer(pipe: Connection, do: Callable[..., Any], args: tuple[Any, ...]) -> None:
    told = [0.0]

    def tell(done: int, total: int, what: str) -> None:
        now = time.monotonic()
        if now - told[0] > 0.1 or done >= total:  # a pipe is no place for every layout of a search
            told[0] = now
            pipe.send(("tell", (done, total, what)))

    try:
        answer: tuple[str, Any] = ("done", do(*args, tell=tell))
    except SuanliError as problem:
        answer = ("fault", problem)
    except BaseException as problem:  # noqa: BLE001  a verb's mistake ends its request, not the server
        traceback.print_exc()
        answer = ("broken", f"{type(problem).__name__}: {problem}"[:300])
    try:
        pipe.send(answer)
    except (OSError, ValueError, TypeError, AttributeError) as problem:
        with contextlib.suppress(OSError):
            pipe.send(("broken", f"the answer cannot be sent: {type(problem).__name__}"))


def _context() -> multiprocessing.context.BaseContext:
    """Processes forked from one that has loaded the verbs and nothing else; where there are none, fresh ones."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


@dataclass
class Worker:
    """One process, started with its first work. Used by one thread at a time; `kill` may come from any."""

    context: Any
    process: Any = None
    pipe: Connection | None = None
    closed: bool = False

    def start(self) -> None:
        """Start the process where there is none."""
        if self.process is not None and self.process.is_alive():
            return
        self.pipe, inner = self.context.Pipe()
        self.process = self.context.Process(target=_serve, args=(inner,), daemon=False, name="suanli-web")
        self.process.start()
        inner.close()
        if self.closed:  # while it was being started
            self.kill()

    def ask(self, work: Work, seconds: float, tell: Tell | None, left: threading.Event) -> Any:
        """The answer. Raises what the work raised, TooSlowError after `seconds`, EndedError, BrokenError. `left` is
        set before `kill` is called: a process that is being started just then is seen by this thread alone.
        """
        try:
            kind, value = self._answer(work, time.monotonic() + seconds, tell, left)
        except (EOFError, OSError):  # the pipe broke: the process is gone
            self.kill()
            raise EndedError(_ENDED) from None
        if kind == "fault":
            raise value
        if kind == "broken":
            raise BrokenError(Fault(code="internal", message="the server made a mistake", got=value, hint=_REPORT))
        if kind == "late":
            self.kill()
            raise _too_slow(seconds)
        return value

    def _answer(self, work: Work, end: float, tell: Tell | None, left: threading.Event) -> tuple[str, Any]:
        """Kind and value of what the process sends at last."""
        self.start()
        assert self.pipe is not None
        if left.is_set():
            raise EOFError
        self.pipe.send((work.do, work.args))
        while ready := wait([self.pipe, self.process.sentinel], max(0.0, end - time.monotonic())):
            if self.pipe not in ready:
                raise EOFError
            kind, value = self.pipe.recv()
            if kind != "tell":
                return kind, value
            if tell is not None:
                tell(*value)
        return "late", None

    def kill(self) -> None:
        """End the process and all it started; the next work starts a new one."""
        process = self.process
        if process is None or process.pid is None:
            return
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (OSError, AttributeError):
            process.kill()
        process.join(GRACE_S)

    def close(self) -> None:
        """Let the process end by itself, for it is idle; kill it where it does not."""
        self.closed = True
        if self.pipe is not None:
            self.pipe.close()
        if self.process is not None and self.process.pid is not None:
            self.process.join(GRACE_S)
            if self.process.is_alive():
                self.kill()


@dataclass
class Pool:
    """Workers, and the queue before them. Everything here runs on the server's event loop."""

    number: int
    most_waiting: int
    waiting: int = 0
    _free: asyncio.Queue[Worker] = field(default_factory=asyncio.Queue)
    _all: list[Worker] = field(default_factory=list)
    _long: asyncio.Semaphore = field(init=False)
    _threads: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        context = _context()
        self._all = [Worker(context) for _ in range(self.number)]
        for worker in self._all:
            self._free.put_nowait(worker)
        self._long = asyncio.Semaphore(max(1, self.number - 1))
        self._threads = ThreadPoolExecutor(self.number, "suanli-web")

    async def warm(self) -> None:
        """Start every process before the first question."""
        loop = asyncio.get_running_loop()
        starts = (loop.run_in_executor(self._threads, each.start) for each in self._all)
        await asyncio.gather(*starts, return_exceptions=True)  # one that cannot start is started by its first question

    async def run(self, work: Work, seconds: float, tell: Tell | None = None) -> Any:
        """The answer of a worker, the wait for one included in `seconds`. Raises BusyError, TooSlowError, BrokenError,
        or what the work raised. Where the caller is cancelled the worker is killed.
        """
        if self.waiting >= self.most_waiting:
            raise BusyError(Fault(code="busy", message="too many requests wait for an answer",
                                  got=f"{self.waiting:,} waiting", hint=_AGAIN))  # fmt: skip
        end = time.monotonic() + seconds
        async with contextlib.AsyncExitStack() as stack:
            self.waiting += 1
            try:
                worker = await asyncio.wait_for(self._next(stack, long=work.long), seconds)
            except TimeoutError:
                raise BusyError(_NOT_FREE) from None
            finally:
                self.waiting -= 1
            rest = end - time.monotonic()
            if rest < LEAST * seconds:  # too late to begin: it would be killed at once
                raise BusyError(_NOT_FREE)
            try:
                return await self._on(worker, work, rest, tell)
            except TooSlowError:
                if rest < seconds / 2:  # it waited longer than it worked
                    raise BusyError(_NOT_FREE) from None
                raise _too_slow(seconds) from None

    async def _next(self, stack: contextlib.AsyncExitStack, *, long: bool) -> Worker:
        """A free worker, given back when the stack is left."""
        if long:
            await stack.enter_async_context(self._long)
        worker = await self._free.get()
        stack.callback(self._free.put_nowait, worker)
        return worker

    async def _on(self, worker: Worker, work: Work, seconds: float, tell: Tell | None) -> Any:
        loop = asyncio.get_running_loop()

        def told(done: int, total: int, what: str) -> None:
            if tell is not None:
                loop.call_soon_threadsafe(tell, done, total, what)

        left = threading.Event()
        asked = loop.run_in_executor(self._threads, worker.ask, work, seconds, told, left)
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            left.set()
            worker.kill()
            with contextlib.suppress(Exception):
                await asked  # its thread is done with the worker before another uses it
            raise

    def close(self) -> None:
        """End all processes."""
        for worker in self._all:
            if self._free.qsize() < self.number:
                worker.kill()
            else:
                worker.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
