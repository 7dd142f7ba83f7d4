"""Errors over the web: one shape, with the HTTP status that fits."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response

from suanli.errors import Fault, InputError, SuanliError
from suanli.web.workers import BrokenError, BusyError, EndedError, TooSlowError

OURS, BUSY = 500, 503  # from the first on the server's fault; the second to be asked again
RETRY_S = "5"
UNREAD = (401, 403, 413, 415, 421)  # answers that may come before the request is read


class HttpError(InputError):
    """A request that is wrong as a request: its status is `status`."""

    def __init__(self, *faults: Fault, status: int = 400) -> None:
        super().__init__(*faults)
        self.status = status


def refusal(status: int, code: str, message: str, **parts: str) -> HttpError:
    """The error of a request, with one fault."""
    return HttpError(Fault(code=code, message=message, **parts), status=status)  # type: ignore[arg-type]


def status_of(problem: SuanliError) -> int:
    """The HTTP status: 422 for what a verb refuses, 503 busy or ended, 504 too slow, 500 a mistake of ours."""
    if isinstance(problem, HttpError):
        return problem.status
    if isinstance(problem, BusyError | EndedError):
        return BUSY
    if isinstance(problem, TooSlowError):
        return 504
    return OURS if isinstance(problem, BrokenError) else 422


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON document as `--json` writes it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    return Response(text + "\n", status, dict(headers or {}), "application/json")


def error_response(problem: SuanliError) -> Response:
    """`{"ok": false, "error": …, "errors": […]}`; a browser that must wait is told how long."""
    status = status_of(problem)
    headers = {"retry-after": RETRY_S} if status == BUSY else {}
    if status in UNREAD:
        headers["connection"] = "close"  # else the rest of the body would be read, gigabytes of it
    return json_response(problem.to_dict(), status, headers)
