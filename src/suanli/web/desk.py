"""Where requests become answers: uploads found, answers that are known given again, work handed to a worker."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import pickle
import shutil
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request

from suanli.web.call import Tell
from suanli.web.errors import refusal
from suanli.web.given import find_verb
from suanli.web.kept import Held, Kept, resolve
from suanli.web.settings import Settings
from suanli.web.uploads import Upload, digests, private_folder
from suanli.web.verbs import LONG
from suanli.web.workers import Pool, Work

# Verbs whose answer to a request is always the same; the others measure time, or look at the disk.
PURE = frozenset({"count", "explain", "goodput", "gpus", "infer", "layout", "learn", "mfu", "models", "scale", "train",
                  "why"})  # fmt: skip
PATIENCE_S = 2.0  # that work goes on for a browser that has left: its answer may be asked for again
LOOKED_S = 0.25


class Cache:
    """Answers by request, the least recently asked for thrown away first; bounded in bytes."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self.found: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def get(self, key: str) -> Any:
        """The answer, or None."""
        known = self.found.get(key)
        if known is None:
            return None
        self.found.move_to_end(key)
        return known[0]

    def put(self, key: str, value: Any) -> None:
        """Keep an answer; one that is a large part of the whole is not kept."""
        size = len(value) if isinstance(value, str | bytes) else len(pickle.dumps(value))
        if size > self.most_bytes // 4 or key in self.found:
            return
        self.found[key] = value, size
        self.bytes += size
        while self.bytes > self.most_bytes:
            self.bytes -= self.found.popitem(last=False)[1][1]


@dataclass
class Question:
    """A request as it goes to a worker; `close` lets go of the uploads it uses."""

    do: Callable[..., Any]
    verb: str
    given: dict[str, Any]
    files: dict[str, list[Upload]]
    extra: tuple[Any, ...] = ()
    held: list[Held] = field(default_factory=list)

    def work(self) -> Work:
        """What a worker does."""
        paths = {option: [each.path for each in several] for option, several in self.files.items()}
        return Work(do=self.do, args=(self.verb, self.given, paths, *self.extra), long=self.verb in LONG)

    def key(self) -> str | None:
        """What tells its answer from others; None where it is not to be given again."""
        if self.verb not in PURE:
            return None
        name = f"{self.do.__module__}.{self.do.__qualname__}"
        told = [name, self.verb, self.given, digests(self.files), [repr(each) for each in self.extra]]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def close(self) -> None:
        """Let go of kept uploads."""
        for each in self.held:
            each.users -= 1
        self.held.clear()


class Desk:
    """What a server has beside its addresses: workers, kept uploads, known answers. For one event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder: Path = private_folder()
        self.pool = Pool(settings.workers, settings.max_waiting)
        self.kept = Kept(self.folder, settings)
        self.cache = Cache(settings.cache_bytes)

    def question(
        self, do: Callable[..., Any], verb: str, given: Mapping[str, Any],
        files: Mapping[str, list[Upload]] | None = None, extra: tuple[Any, ...] = (),
    ) -> Question:  # fmt: skip
        """`do(verb, given, files, *extra, tell=…)` as a question, kept uploads in the place of their names.

        Raises UnknownNameError for no verb, HttpError for an upload that is gone.
        """
        find_verb(verb)
        values, held = resolve(given, self.kept)
        users = [each for several in held.values() for each in several]
        for each in users:
            each.users += 1
        named = {option: [each.upload for each in several] for option, several in held.items()}
        return Question(do, verb, values, {**named, **(files or {})}, extra, users)

    async def answer(self, asked: Question, *, seconds: float | None = None, tell: Tell | None = None) -> Any:
        """The answer, known or made. Raises what the work raised, BusyError, TooSlowError, BrokenError."""
        try:
            key = asked.key()
            known = None if key is None else self.cache.get(key)
            if known is not None:
                return known
            found = await self.pool.run(asked.work(), seconds or self.settings.time_limit_s, tell)
            if key is not None:
                self.cache.put(key, found)
            return found
        finally:
            asked.close()

    async def ask(
        self, request: Request, do: Callable[..., Any], verb: str, given: Mapping[str, Any],
        files: Mapping[str, list[Upload]] | None = None, extra: tuple[Any, ...] = (),
    ) -> Any:  # fmt: skip
        """As `answer`, for a browser: where it leaves, the work is stopped moments later."""
        return await while_there(request, self.answer(self.question(do, verb, given, files, extra)))

    def close(self) -> None:
        """End the workers and delete every upload."""
        self.pool.close()
        shutil.rmtree(self.folder, ignore_errors=True)


async def while_there(request: Request, work: Awaitable[Any]) -> Any:
    """What `work` gives; cancelled `PATIENCE_S` after the browser has left."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    left: float | None = None
    try:
        while not (await asyncio.wait({task}, timeout=LOOKED_S))[0]:
            if left is None and await request.is_disconnected():
                left = loop.time()
            if left is not None and loop.time() - left > PATIENCE_S:
                task.cancel()
        if task.cancelled() and left is not None:
            raise refusal(499, "left", "nobody waits for the answer any more")  # which nobody reads
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
