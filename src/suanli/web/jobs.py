"""Long work: asked for once, looked after by its id, so that it goes on while a page is closed or loaded again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from suanli.errors import Fault, SuanliError
from suanli.web.desk import Desk, Question
from suanli.web.errors import refusal
from suanli.web.workers import BusyError

WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
ENDED = (DONE, FAILED, CANCELLED)


@dataclass
class Job:
    """One piece of long work, and how far it is."""

    id: str
    verb: str
    given: dict[str, Any]
    after: Callable[[], None]  # deletes its uploads
    state: str = WAITING
    done: int = 0
    total: int = 0
    what: str = ""
    answer: Any = None
    error: SuanliError | None = None
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    task: asyncio.Task[None] | None = None

    def told(self, done: int, total: int, what: str) -> None:
        """Note how far it is."""
        if self.state in (WAITING, RUNNING):
            self.state, self.done, self.total, self.what = RUNNING, done, total, what

    def to_dict(self, *, whole: bool = True) -> dict[str, Any]:
        """As `/api/jobs/ID` says it; with `result` when it is done, `error` and `errors` when it failed."""
        seconds = (self.ended or time.monotonic()) - self.started
        said: dict[str, Any] = {
            "ok": self.state != FAILED, "kind": "job", "id": self.id, "verb": self.verb, "state": self.state,
            "done": self.done, "total": self.total, "what": self.what, "seconds": round(seconds, 3),
        }  # fmt: skip
        if self.error is not None:
            said |= {key: value for key, value in self.error.to_dict().items() if key != "ok"}
        if whole and isinstance(self.answer, str):
            said["result"] = json.loads(self.answer)
        return said


class Jobs:
    """The jobs of a server: bounded in number, forgotten some time after their end."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.jobs: dict[str, Job] = {}

    def start(self, asked: Question, after: Callable[[], None] = lambda: None) -> Job:
        """Begin; `after` is called at the end, however it ends. Raises BusyError where there are too many."""
        self.expire()
        if len(self.jobs) >= self.desk.settings.max_jobs:
            ended = sorted((each for each in self.jobs.values() if each.state in ENDED), key=lambda each: each.started)
            if not ended:
                asked.close()
                raise BusyError(Fault(code="busy", message="too many jobs run", got=f"{len(self.jobs):,}",
                                      hint="Cancel one, or wait for one."))  # fmt: skip
            del self.jobs[ended[0].id]
        job = Job(secrets.token_urlsafe(12), asked.verb, dict(asked.given), after)
        self.jobs[job.id] = job
        job.task = asyncio.get_running_loop().create_task(self._run(job, asked))
        return job

    async def _run(self, job: Job, asked: Question) -> None:
        try:
            job.answer = await self.desk.answer(asked, seconds=self.desk.settings.job_limit_s, tell=job.told)
            job.state = DONE
        except SuanliError as problem:
            job.state, job.error = FAILED, problem
        except asyncio.CancelledError:
            job.state = CANCELLED
        finally:
            asked.close()
            job.ended = time.monotonic()
            job.after()

    def find(self, id_: str) -> Job:
        """The job. Raises HttpError 404 where there is none of that id, or no longer."""
        self.expire()
        found = self.jobs.get(id_)
        if found is None:
            raise refusal(404, "no_job", "there is no such job, or no longer", where=repr(id_[:40]),
                          expected=f"one that ended at most {self.desk.settings.kept_s / 60:,.0f} minutes ago",
                          hint="Ask again.")  # fmt: skip
        return found

    async def cancel(self, id_: str) -> Job:
        """Stop the job; one that has ended stays as it is."""
        job = self.find(id_)
        if job.task is not None and not job.task.done():
            job.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await job.task
            if job.state not in ENDED:  # cancelled before its first step
                job.state, job.ended = CANCELLED, time.monotonic()
                job.after()
        return job

    def expire(self) -> None:
        """Forget jobs that ended a while ago."""
        old = time.monotonic() - self.desk.settings.kept_s
        for id_ in [id_ for id_, each in self.jobs.items() if each.ended is not None and each.ended < old]:
            del self.jobs[id_]

    async def close(self) -> None:
        """Stop all."""
        for id_ in list(self.jobs):
            await self.cancel(id_)
