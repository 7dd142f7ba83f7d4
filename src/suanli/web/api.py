"""/api/VERB: JSON or a form in, what `--json` prints out. One error shape, files as uploads alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from suanli.errors import SuanliError
from suanli.readers.files import parse_json_object
from suanli.web.call import call, reply
from suanli.web.desk import Desk
from suanli.web.errors import json_response, refusal
from suanli.web.given import find_verb
from suanli.web.jobs import Jobs
from suanli.web.kept import CONFIG, FILE, NAMED
from suanli.web.uploads import Form, bounded, read_form
from suanli.web.verbs import verbs

__all__ = ["call", "read_request", "router"]

JSON, FORM = "application/json", "multipart/form-data"


async def read_request(request: Request, desk: Desk) -> Form:
    """The options and uploads of a request. Raises HttpError 400, 413, 415."""
    content_type = request.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if kind == FORM:
        return await read_form(request.stream(), content_type, desk.settings, desk.folder)
    if kind not in (JSON, ""):
        raise refusal(415, "bad_content_type", "the body is of a kind that is not read", where="Content-Type",
                      got=repr(kind[:60]), expected=f"{JSON} or {FORM}")  # fmt: skip
    body = b"".join([block async for block in bounded(request.stream(), desk.settings.max_json_bytes)])
    return Form(values=_object(body)) if body or kind else Form()


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises HttpError 400."""
    try:
        return parse_json_object(body.decode(), Path("the request"), "Options are one JSON object.")
    except UnicodeDecodeError:
        raise refusal(400, "not_utf8", "the body is not UTF-8", where="the request") from None
    except SuanliError as problem:
        fault = problem.faults[0]
        message = fault.message.replace("the file", "the body")
        raise refusal(400, fault.code, message, where="the request", got=fault.got or "",
                      expected=fault.expected or "one JSON object of options") from None  # fmt: skip


def router(desk: Desk, jobs: Jobs, document: Mapping[str, Any]) -> APIRouter:
    """The addresses of /api. `document` is its OpenAPI description."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/openapi.json")
    async def openapi() -> Response:
        return json_response(document)

    @routes.get("/api")
    async def known() -> Response:
        return json_response({"ok": True, "kind": "api", "verbs": {each.name: each.doc for each in verbs().values()},
                              "openapi": "/openapi.json"})  # fmt: skip

    _add_uploads(routes, desk)
    _add_jobs(routes, desk, jobs)

    @routes.post("/api/{verb}")
    async def verb_(request: Request, verb: str) -> Response:
        _known_verb(verb)
        form = await read_request(request, desk)
        try:
            return json_response(await desk.ask(request, reply, verb, form.values, form.files))
        finally:
            form.close()

    return routes


def _known_verb(verb: str) -> None:
    """Raise HttpError 404 where there is no such verb."""
    try:
        find_verb(verb)
    except SuanliError as problem:
        raise _not_found(problem) from None


def _not_found(problem: SuanliError) -> Exception:
    found = refusal(404, "", "")
    found.faults = problem.faults
    return found


def _add_jobs(routes: APIRouter, desk: Desk, jobs: Jobs) -> None:
    @routes.post("/api/jobs/{verb}")
    async def start(request: Request, verb: str) -> Response:
        _known_verb(verb)
        form = await read_request(request, desk)
        try:
            job = jobs.start(desk.question(reply, verb, form.values, form.files), form.close)
        except BaseException:
            form.close()
            raise
        return json_response(job.to_dict(), 202, {"location": f"/api/jobs/{job.id}"})

    @routes.get("/api/jobs/{id_}")
    async def look(id_: str) -> Response:
        return json_response(jobs.find(id_).to_dict())

    @routes.delete("/api/jobs/{id_}")
    async def cancel(id_: str) -> Response:
        return json_response((await jobs.cancel(id_)).to_dict())


def _add_uploads(routes: APIRouter, desk: Desk) -> None:
    @routes.post("/api/config")
    async def config(request: Request) -> Response:
        """A config, as JSON or as the one file of a form, kept under a name that addresses can hold."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == FORM:
            return json_response(await _kept(request, desk, CONFIG), 201)
        body = b"".join([block async for block in bounded(request.stream(), desk.settings.max_json_bytes)])
        _object(body)
        return json_response(_kept_config(body, desk), 201)

    @routes.post("/api/uploads")
    async def upload(request: Request) -> Response:
        """Files of a form, kept under names that addresses can hold."""
        return json_response(await _kept(request, desk, FILE), 201)

    @routes.delete("/api/uploads/{name}")
    async def drop(name: str) -> Response:
        if not NAMED.fullmatch(name) or desk.kept.find(name).users:
            raise refusal(409, "in_use", "the upload is in use, or is none", where=repr(name[:40]))
        desk.kept.drop(name)
        return json_response({"ok": True, "kind": "upload", "dropped": name})


def _kept_config(body: bytes, desk: Desk) -> dict[str, Any]:
    import hashlib  # noqa: PLC0415  of pasted configs alone
    import tempfile  # noqa: PLC0415

    from suanli.web.uploads import Upload  # noqa: PLC0415

    place = Path(tempfile.mkdtemp(prefix="config-", dir=desk.folder)) / "config.json"
    place.write_bytes(body)
    name = desk.kept.keep(Upload(path=place, size=len(body), sha256=hashlib.sha256(body).hexdigest()), CONFIG)
    place.unlink(missing_ok=True)
    place.parent.rmdir()
    return {"ok": True, "kind": "upload", "names": {"model": [name]}}


async def _kept(request: Request, desk: Desk, kind: str) -> dict[str, Any]:
    form = await read_request(request, desk)
    try:
        if not form.files:
            raise refusal(400, "no_file", "the form brings no file", where="the request",
                          expected="a multipart form whose files are named after their options")  # fmt: skip
        names = {option: [desk.kept.keep(each, kind) for each in several] for option, several in form.files.items()}
    finally:
        form.close()
    return {"ok": True, "kind": "upload", "names": names}
