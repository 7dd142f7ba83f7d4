"""`suanli web`: an address is chosen, the server runs until Ctrl-C."""

from __future__ import annotations

import contextlib
import errno
import secrets
import signal
import socket
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from suanli.errors import Fault, InputError, MissingExtraError
from suanli.units import KIBI
from suanli.web.settings import Settings

if TYPE_CHECKING:
    import uvicorn

TRIED = 20  # ports after the usual one, where none was asked for
TOKEN_BYTES = 16
MOST_PORT = 65_535


def check_extras() -> None:
    """Raise MissingExtraError naming the pip command where a library of the page is not installed."""
    from importlib.util import find_spec  # noqa: PLC0415

    needed = {"fastapi": "fastapi", "uvicorn": "uvicorn", "jinja2": "jinja2", "python_multipart": "python-multipart"}
    missing = [package for module, package in needed.items() if find_spec(module) is None]
    if missing:
        raise MissingExtraError(Fault(code="missing_extra", message="the page needs libraries that are not installed",
                                      where="suanli web", got="no " + ", ".join(missing),
                                      hint="In a checkout: `python -m pip install '.[web]'`."))  # fmt: skip


def bind(host: str, port: int | None) -> socket.socket:
    """A socket at `port`, or at the first free one from the usual on. Raises InputError saying what holds it."""
    first = Settings().port if port is None else port
    for number in range(first, first + (TRIED if port is None else 1)):
        try:
            return _bound(host, number)
        except OSError as problem:
            if problem.errno == errno.EADDRINUSE and port is None:
                continue
            raise _cannot_bind(host, number, problem) from None
    raise InputError(Fault(code="port_taken", message="every port tried is taken", where="--port",
                           got=f"{first} to {first + TRIED - 1}", hint="Name a free one, or --port 0."))  # fmt: skip


def _bound(host: str, port: int) -> socket.socket:
    family, kind, proto, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM,
                                                         flags=socket.AI_PASSIVE)[0]  # fmt: skip
    found = socket.socket(family, kind, proto)
    try:
        if sys.platform != "win32":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError:
        found.close()
        raise
    return found


def _cannot_bind(host: str, port: int, problem: OSError) -> InputError:
    if problem.errno == errno.EADDRINUSE:
        return InputError(Fault(code="port_taken", message="the port is taken", where="--port", got=str(port),
                                hint="Name another, or leave it out: a free one is taken."))  # fmt: skip
    return InputError(Fault(code="cannot_bind", message=f"the address cannot be used: {problem.strerror or problem}",
                            where="--host, --port", got=f"{host}:{port}"))  # fmt: skip


def with_token(settings: Settings) -> Settings:
    """With a token where the server can be reached from outside this machine and none was given."""
    if settings.token is not None or settings.is_local:
        return settings
    return replace(settings, token=secrets.token_urlsafe(TOKEN_BYTES))


def address(settings: Settings, port: int) -> str:
    """Where a browser opens the page; the token is in it, and the page takes it out of the address at once."""
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "") else settings.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + (f"?token={settings.token}" if settings.token else "")


def serve(settings: Settings, port: int | None, *, open_: bool = False) -> None:
    """Run until Ctrl-C. Raises InputError, MissingExtraError."""
    check_extras()
    listening = bind(settings.host, port)
    number = listening.getsockname()[1]
    set_up = with_token(replace(settings, port=number))
    server = _server(set_up)
    sys.stdout.write(f"Suanli is at {address(set_up, number)}\n")
    if set_up.token is not None:
        sys.stdout.write("It can be reached from other machines: who has the token can ask it. It is not encrypted.\n")
    sys.stdout.write("Ctrl-C ends it.\n")
    sys.stdout.flush()
    if open_:
        import webbrowser  # noqa: PLC0415  only where it was asked for

        webbrowser.open(address(set_up, number))
    with contextlib.suppress(ValueError):  # not the main thread: no signals there
        signal.signal(signal.SIGTERM, _end)  # uvicorn ends in order, then raises it again
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn raises it again after a clean end
        pass
    finally:
        listening.close()


def _end(number: int, _: object) -> None:
    """End as Python does, so that what is deleted at its end is."""
    raise SystemExit(128 + number)


def _server(settings: Settings) -> uvicorn.Server:
    import uvicorn  # noqa: PLC0415  an optional extra

    from suanli.web.app import create_app  # noqa: PLC0415  fastapi comes with it
    from suanli.web.wire import Wire  # noqa: PLC0415

    config = uvicorn.Config(
        create_app(settings), log_level="warning", access_log=False, http=Wire, ws="none", proxy_headers=False,
        server_header=False,
        timeout_keep_alive=30, timeout_graceful_shutdown=2, h11_max_incomplete_event_size=64 * KIBI,
    )  # fmt: skip
    return uvicorn.Server(config)
