"""Who may ask: Host, Origin and token are checked before anything else, and every answer carries the same headers.

A page of another site can make a browser send requests here, and a name of its own can be made to point at this
machine. So: the Host must be a name this server goes by; what changes something or computes must come from a page of
this server or from no page at all; and where the server is reachable from outside, a token is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import socket
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suanli.errors import Fault
from suanli.web.errors import HttpError, error_response, refusal
from suanli.web.settings import Settings
from suanli.web.uploads import too_large
from suanli.web.workers import BusyError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
LOCAL = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::", "")
COMPUTING = "/page/"  # asked for by the page's own script and its links alone, for some of it is work
COOKIE, PARAMETER = "suanli_token", "token"
_HOW = "Open the address that `suanli web` printed, or send `Authorization: Bearer TOKEN`."
_ENDING = Fault(code="ending", message="the server is being ended")
_SAFE = ("GET", "HEAD")
_ASK = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Suanli</title>
<h1>Suanli</h1><p>This server asks for its token: it is in the address that <code>suanli web</code> printed.</p>
<form method="get"><label>Token <input name="token" type="password" autocomplete="off" required></label>
<button>Open</button></form></html>"""


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self.names = host_names(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then answer; both with the headers."""
        if scope["type"] == "websocket":  # none are served
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headed = _with_headers(send)
        try:
            found = self.check(scope)
        except HttpError as problem:
            found = error_response(problem)
        if found is not None:
            await found(scope, receive, headed)
            return
        try:
            await self.app(scope, receive, headed)
        except asyncio.CancelledError:  # by the server that is ended: nobody is left to hear of it
            with contextlib.suppress(RuntimeError):  # where the answer has begun it stays as it is
                await error_response(BusyError(_ENDING))(scope, receive, headed)

    def check(self, scope: Scope) -> Response | None:
        """None where the request may pass; else the answer. Raises HttpError."""
        headers = Headers(scope=scope)
        self._check_host(headers.get("host", ""))
        if scope["method"] not in _SAFE or scope["path"].startswith(COMPUTING):
            _check_origin(headers)
        self._check_size(headers)
        return self._check_token(scope, headers)

    def _check_host(self, host: str) -> None:
        name = host_name(host)
        if name in self.names:
            return
        if self.settings.host in EVERYWHERE and _is_address(name):  # a rebound name is a name, no address
            return
        raise refusal(421, "bad_host", "this server does not go by that name", where="Host", got=repr(host[:60]),
                      hint="Start it with --allow-host NAME.")  # fmt: skip

    def _check_size(self, headers: Headers) -> None:
        size = headers.get("content-length", "0")
        if size.isdecimal() and len(size) < 20 and int(size) <= self.settings.max_uploads_bytes:
            return
        raise too_large(self.settings.max_uploads_bytes)

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        token = self.settings.token
        if token is None:
            return None
        pairs = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        typed = dict(pairs).get(PARAMETER)
        if typed is not None and scope["method"] in _SAFE and same(typed, token):
            rest = urlencode([pair for pair in pairs if pair[0] != PARAMETER])
            path = "/" + scope["path"].lstrip("/")  # never //host
            answer = RedirectResponse(path + ("?" + rest if rest else ""), 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return answer
        kind, _, shown_ = headers.get("authorization", "").partition(" ")
        if (kind.lower() == "bearer" and same(shown_.strip(), token)) or same(_cookie(headers), token):
            return None
        if scope["method"] == "GET" and not scope["path"].startswith("/api") and "html" in headers.get("accept", ""):
            return HTMLResponse(_ASK, 401)
        raise refusal(401, "no_token", "the server asks for its token", where="Authorization", hint=_HOW)


def same(shown: str, token: str) -> bool:
    """Whether two tokens are the same, told in a time that says nothing of how much of it is."""
    return hmac.compare_digest(shown.encode("utf-8", "surrogateescape"), token.encode())


def host_names(settings: Settings) -> frozenset[str]:
    """Names a request may ask for: this machine's to itself, and those the server was started with."""
    own = [] if settings.is_local else [settings.host, socket.gethostname()]
    return frozenset(name.lower() for name in (*LOCAL, *own, *settings.hosts) if name not in EVERYWHERE)


def host_name(host: str) -> str:
    """The name in a Host header, without the port; empty where it is none."""
    try:
        parts = urlsplit("//" + host)
        _ = parts.port
    except ValueError:
        return ""
    return "" if "@" in host or parts.path or parts.query or parts.fragment else parts.hostname or ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _check_origin(headers: Headers) -> None:
    """Raise HttpError where a page of another site sends the request."""
    origin = headers.get("origin")
    if origin is not None and origin.lower().partition("://")[2] != headers.get("host", "").lower():
        raise refusal(403, "bad_origin", "the request comes from a page of another site", where="Origin",
                      got=repr(origin[:60]))  # fmt: skip
    site = headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none"):
        raise refusal(403, "bad_origin", "the request comes from a page of another site", where="Sec-Fetch-Site",
                      got=repr(site[:20]))  # fmt: skip


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _with_headers(send: Send) -> Send:
    async def headed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if "cache-control" not in headers:
                headers["cache-control"] = "no-store"
        await send(message)

    return headed
