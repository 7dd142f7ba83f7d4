"""What is no request of HTTP is answered in the one shape, with the headers of every answer."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from suanli.web.guard import HEADERS
from suanli.web.wire import Wire


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(PlainTextResponse("here"), http=Wire, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()


def answer(port: int, sent: bytes) -> tuple[str, dict[str, str], str]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as wire:
        wire.sendall(sent)
        got = b""
        while block := wire.recv(65536):
            got += block
    head, _, body = got.decode().partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    return status, {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}, body


NO_REQUESTS = [
    b"garbage\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: many\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize("sent", NO_REQUESTS)
def test_no_request(port: int, sent: bytes) -> None:
    status, headers, body = answer(port, sent)
    assert status == "HTTP/1.1 400 Bad Request"
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert headers["connection"] == "close"
    said = json.loads(body)
    assert set(said) == {"ok", "error", "errors"}
    assert said["error"]["message"] == "what came is no request of HTTP/1.1"
    assert int(headers["content-length"]) == len(body.encode())


def test_a_request(port: int) -> None:
    status, _, body = answer(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert (status, body) == ("HTTP/1.1 200 OK", "here")
