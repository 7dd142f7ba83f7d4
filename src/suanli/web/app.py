"""The application: guard, /api, and the page where it is there."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from suanli.errors import Fault, SuanliError
from suanli.version import VERSION
from suanli.web import api
from suanli.web.desk import Desk
from suanli.web.errors import error_response, refusal
from suanli.web.guard import HEADERS, Guard
from suanli.web.jobs import Jobs
from suanli.web.openapi import openapi
from suanli.web.settings import Settings
from suanli.web.workers import BrokenError

PAGE = "suanli.web.pages"
SWEEP_S = 30.0  # between two looks for uploads and jobs that are to be forgotten


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application, its workers started with it and ended with it. `app.state.desk` and `.jobs` are for the page."""
    set_up = settings or Settings()
    desk = Desk(set_up)
    jobs = Jobs(desk)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        started = [asyncio.create_task(desk.pool.warm()), asyncio.create_task(_sweep(desk, jobs))]
        try:
            yield
        finally:
            for task in started:
                task.cancel()
            await asyncio.gather(*started, return_exceptions=True)
            await jobs.close()
            desk.close()

    app = FastAPI(title="Suanli", version=VERSION, openapi_url=None, docs_url=None, redoc_url=None, lifespan=life,
                  redirect_slashes=False)  # fmt: skip
    app.state.desk, app.state.jobs, app.state.settings = desk, jobs, set_up
    app.include_router(api.router(desk, jobs, openapi(set_up)))
    if find_spec(PAGE) is not None:
        app.include_router(import_module(PAGE).router(desk, jobs))
    app.add_exception_handler(SuanliError, _told)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _mistake)
    app.add_middleware(Guard, settings=set_up)
    return app


async def _sweep(desk: Desk, jobs: Jobs) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        desk.kept.expire()
        jobs.expire()


async def _told(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, SuanliError)
    return error_response(problem)


async def _http(request: Request, problem: Exception) -> Response:
    """What the framework refuses: no such address, no such method. A browser is shown a page, a program JSON."""
    assert isinstance(problem, HTTPException)
    reads = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api")
    if problem.status_code == 404 and reads and find_spec(PAGE) is not None:
        page: Response = import_module(PAGE).missing(request)
        return page
    found = error_response(refusal(problem.status_code, f"http_{problem.status_code}", str(problem.detail).lower()))
    for name, value in (problem.headers or {}).items():
        found.headers[name] = value
    return found


async def _left(_: Request, __: Exception) -> Response:
    """A browser that leaves before its request is whole is no mistake of anybody's."""
    return error_response(refusal(499, "left", "the request ended before its end"))


async def _mistake(_: Request, problem: Exception) -> Response:
    traceback.print_exception(problem)
    fault: dict[str, Any] = {"got": type(problem).__name__, "hint": "Please report it with the request."}
    found = error_response(BrokenError(Fault(code="internal", message="the server made a mistake", **fault)))
    for name, value in {**HEADERS, "cache-control": "no-store"}.items():  # this answer is given outside the guard
        found.headers[name] = value
    return found
