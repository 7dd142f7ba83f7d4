"""Worker processes: answers, faults, time limits, cancelling, death, and the queue before them."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from suanli.errors import InputError, UnreadableFileError
from suanli.web import workers as module
from suanli.web.call import reply
from suanli.web.workers import BrokenError, BusyError, EndedError, Pool, TooSlowError, Work


def run(act: Callable[[Pool], Awaitable[Any]], number: int = 1, waiting: int = 10) -> Any:
    async def whole() -> Any:
        pool = Pool(number, waiting)
        try:
            return await act(pool)
        finally:
            pool.close()

    return asyncio.run(whole())


# functions of a module that a worker has: tests' own would have to be imported there
def work(do: Any, *args: Any) -> Work:
    return Work(do=do, args=args)


COUNT = work(reply, "count", {"model": "gpt2"}, {})


def test_an_answer_and_the_next() -> None:
    async def act(pool: Pool) -> list[str]:
        return [await pool.run(COUNT, 60), await pool.run(work(reply, "gpus", {"name": "h100-sxm"}, {}), 60)]

    first, second = run(act)
    assert '"total": 124439808' in first
    assert '"kind": "gpus"' in second


REFUSED = [
    ("count", {"model": "nobody"}, {}, InputError, "unknown model 'nobody'"),
    ("scale", {"metric": "wrong", "points": "1:2"}, {}, InputError, "wrong"),
]


@pytest.mark.parametrize(("verb", "given", "files", "error", "said"), REFUSED)
def test_faults_come_back_as_they_are(verb: str, given: Any, files: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        run(lambda pool: pool.run(work(reply, verb, given, files), 60))


def test_a_fault_of_a_file_is_no_broken_pipe() -> None:
    """UnreadableFileError is an OSError, as a broken pipe is."""
    with pytest.raises(UnreadableFileError):
        run(lambda pool: pool.run(work(_raiser), 60))


def _raiser(*, tell: Any) -> None:
    from suanli.errors import Fault

    raise UnreadableFileError(Fault(code="x", message="y"))


def _sleep(seconds: float, *, tell: Any) -> int:
    tell(1, 2, "asleep")
    time.sleep(seconds)
    return os.getpid()


def _mistake(*, tell: Any) -> None:
    raise RuntimeError("of ours")


def _die(*, tell: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _unsendable(*, tell: Any) -> Any:
    return lambda: None


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of this file are forked with the worker, and sent by where they stand in it."""
    import multiprocessing

    monkeypatch.setattr(module, "_context", lambda: multiprocessing.get_context("fork"))


def test_too_slow_is_killed_and_the_next_is_answered() -> None:
    async def act(pool: Pool) -> float:
        with pytest.raises(TooSlowError, match=r"the answer takes longer than 0\.5 s"):
            await pool.run(work(_sleep, 60), 0.5)
        start = time.monotonic()
        assert await pool.run(work(_sleep, 0), 60)
        return time.monotonic() - start

    assert run(act) < 10


def test_cancelling_kills() -> None:
    async def act(pool: Pool) -> bool:
        told: list[Any] = []
        task = asyncio.create_task(pool.run(work(_sleep, 20), 20, lambda *parts: told.append(parts)))
        while not told:
            await asyncio.sleep(0.01)
        process = pool._all[0].process
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told == [(1, 2, "asleep")]
        assert await pool.run(work(_sleep, 0), 60) != process.pid
        return bool(process.is_alive())

    assert run(act) is False


MISTAKES = [
    (_mistake, "the server made a mistake; got RuntimeError: of ours"),
    (_die, "the process that did the work ended before its answer"),
    (_unsendable, "the server made a mistake; got the answer cannot be sent"),
]


@pytest.mark.parametrize(("do", "said"), MISTAKES)
def test_mistakes_end_their_request_alone(do: Any, said: str) -> None:
    async def act(pool: Pool) -> Any:
        with pytest.raises(EndedError if do is _die else BrokenError, match=said):
            await pool.run(work(do), 60)
        return await pool.run(work(_sleep, 0), 60)

    assert run(act)


def test_the_queue_is_bounded() -> None:
    async def act(pool: Pool) -> None:
        tasks = []
        for _ in range(3):
            tasks.append(asyncio.create_task(pool.run(work(_sleep, 20), 20)))
            await asyncio.sleep(0.05)
        with pytest.raises(BusyError, match="too many requests wait for an answer; got 2 waiting"):
            await pool.run(work(_sleep, 0), 20)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert pool.waiting == 0
        assert await pool.run(work(_sleep, 0), 60)

    run(act, 1, 2)


@pytest.mark.parametrize("first", [1.85, 1.2])
def test_who_waited_most_of_its_time_is_told_that_it_was_busy(first: float) -> None:
    """Not that its work is slow: of 2 s it had less than half. With too little left nothing is begun and killed."""

    async def act(pool: Pool) -> list[Any]:
        await pool.run(work(_sleep, 0), 60)
        tasks = [asyncio.create_task(pool.run(work(_sleep, seconds), 2)) for seconds in (first, 20)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    done, waited = run(act)
    assert not isinstance(done, Exception)
    assert isinstance(waited, BusyError)
    assert waited.faults[0].message == "no process was free in time"


def test_nobody_waits_for_ever() -> None:
    async def act(pool: Pool) -> None:
        task = asyncio.create_task(pool.run(work(_sleep, 20), 20))
        await asyncio.sleep(0.05)
        with pytest.raises(BusyError, match="no process was free in time"):
            await pool.run(work(_sleep, 0), 0.2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(act)


def test_long_work_leaves_a_worker_for_short() -> None:
    async def act(pool: Pool) -> None:
        long = [asyncio.create_task(pool.run(Work(do=_sleep, args=(20,), long=True), 20)) for _ in range(4)]
        await asyncio.sleep(0.05)
        assert await pool.run(work(_sleep, 0), 60)
        for task in long:
            task.cancel()
        await asyncio.gather(*long, return_exceptions=True)

    run(act, 2)


def test_what_a_worker_started_ends_with_it() -> None:
    async def act(pool: Pool) -> int:
        pids: list[int] = []
        task = asyncio.create_task(pool.run(work(_starts), 20, lambda done, *_: pids.append(done)))
        while not pids:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return pids[0]

    child = run(act)
    for _ in range(100):
        if not _lives(child):
            return
        time.sleep(0.05)
    pytest.fail(f"process {child} lives on")


def _starts(*, tell: Any) -> None:
    import subprocess
    import sys

    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(20)"])
    tell(child.pid, child.pid, "started")
    time.sleep(20)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().split()[2]
    except OSError:
        return False
    return state != "Z"
