"""/api as a whole: kinds of bodies, one error shape, bombs, several at once, a browser that leaves, two gigabytes."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gzip
import io
import json
import os
import re
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

import suanli
from suanli.units import GIGA, MEBI, MEGA
from suanli.web.app import create_app
from suanli.web.guard import HEADERS
from suanli.web.settings import Settings
from suanli.web.verbs import verbs

CONFIG = {"model_type": "gpt2", "n_layer": 3, "n_embd": 96, "n_head": 4, "vocab_size": 1000, "n_positions": 128}
JSON = {"content-type": "application/json"}

# body, its kind, status, code of the fault
BODIES: list[tuple[str, bytes, str, int, str]] = [
    ("no JSON", b"{", "application/json", 400, "not_json"),
    ("a list", b"[1]", "application/json", 400, "not_an_object"),
    ("empty", b"", "application/json", 400, "empty"),
    ("a key twice", b'{"model": "gpt2", "model": "x"}', "application/json", 400, "bad_json"),
    ("no number", b'{"seq": NaN}', "application/json", 400, "bad_json"),
    ("too large a number", b'{"seq": 1e999}', "application/json", 400, "bad_json"),
    ("many digits", b'{"seq": ' + b"9" * 5000 + b"}", "application/json", 400, "bad_json"),
    ("deep", b'{"model": ' + b"[" * 5000 + b"]" * 5000 + b"}", "application/json", 400, "too_deep"),
    ("very deep", b'{"model": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "application/json", 400, "too_deep"),
    ("no UTF-8", b'{"model": "\xff"}', "application/json", 400, "not_utf8"),
    ("a form of a page", b"model=gpt2", "application/x-www-form-urlencoded", 415, "bad_content_type"),
    ("text", b"gpt2", "text/plain", 415, "bad_content_type"),
    ("XML", b"<a/>", "application/xml", 415, "bad_content_type"),
    ("a broken form", b"x", "multipart/form-data; boundary=b", 400, "bad_form"),
    ("unknown option", b'{"model": "gpt2", "modle": 1}', "application/json", 422, "unknown_option"),
    ("an import", b'{"model": "torch:os:getcwd"}', "application/json", 422, "import_refused"),
    ("a path", b'{"model": "/etc/passwd"}', "application/json", 422, "path_refused"),
    ("a hub id", b'{"model": "org/name"}', "application/json", 422, "fetch_refused"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "body", "kind", "status", "code"), BODIES, ids=[each[0] for each in BODIES])
def test_bodies(client: TestClient, what: str, body: bytes, kind: str, status: int, code: str) -> None:
    answer = client.post("/api/count", content=body, headers={"content-type": kind})
    assert answer.status_code == status
    said = answer.json()
    assert set(said) == {"ok", "error", "errors"}
    assert said["ok"] is False
    assert said["error"] == said["errors"][0]
    assert set(said["error"]) == {"code", "message", "where", "got", "expected", "nearest", "hint"}
    assert said["error"]["code"] == code or (code == "empty" and said["error"]["code"] == "not_json")


def test_verbs_are_those_of_the_command_line(client: TestClient) -> None:
    assert set(client.get("/api").json()["verbs"]) == set(verbs()) == set(suanli.__all__) - {"__version__"}
    for verb in ("nothing", "explain_folder", "web", "__import__"):
        assert client.post(f"/api/{verb}", json={}).status_code == 404


NOWHERE = [("GET", "/api/count", 405), ("PUT", "/api/count", 405), ("GET", "/no/such/place", 404), ("PUT", "/api", 405)]


@pytest.mark.parametrize(("method", "path", "status"), NOWHERE)
def test_addresses_that_are_none(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code in (status, 404)
    assert answer.json()["ok"] is False


def test_model_in_each_of_its_forms(client: TestClient) -> None:
    text = json.dumps(CONFIG)
    totals = [
        client.post("/api/count", json={"model": CONFIG}),
        client.post("/api/count", json={"model": text}),
        client.post("/api/count", files={"model": ("config.json", text)}),
        client.post("/api/count", files={"model": (None, text)}),
    ]
    assert len({each.json()["result"]["params"]["total"] for each in totals}) == 1
    layer = client.post("/api/count", json={"model": "linear(4096, 11008)"}).json()
    assert layer["result"]["params"]["total"] == (4096 + 1) * 11008  # with its bias


def header(tensors: dict[str, Any]) -> bytes:
    text = json.dumps(tensors).encode()
    return len(text).to_bytes(8, "little") + text


def test_a_header_without_the_weights(client: TestClient) -> None:
    content = header({"w": {"dtype": "BF16", "shape": [1024, 4096], "data_offsets": [0, 2 * 1024 * 4096]}})
    found = client.post("/api/count", files={"model": ("m.safetensors", content)})
    assert found.status_code == 200, found.text
    assert found.json()["result"]["params"]["total"] == 1024 * 4096
    broken = header({"w": {"dtype": "BF16", "shape": [1024, 4096], "data_offsets": [0, 7]}})
    assert client.post("/api/count", files={"model": ("m.safetensors", broken)}).status_code == 422


def test_no_folder_of_the_server_is_told(client: TestClient) -> None:
    for name in ("bad.json", "bad.safetensors", "bad.gguf", "bad.onnx", "bad.txt"):
        answer = client.post("/api/count", files={"model": (name, b"\0\1\2")})
        assert answer.status_code == 422
        assert "suanli-web" not in answer.text
        assert "/tmp" not in answer.text
        assert name in answer.text


# --- bombs --------------------------------------------------------------------------------------------------------


def zip_bomb() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("t.json", "w") as file:
        for _ in range(64):
            file.write(b" " * MEBI)
    return packed.getvalue()


@pytest.mark.parametrize(("name", "content"), [("t.json.gz", gzip.compress(b"[" * 64 * MEBI, 1)),
                                               ("t.json.zip", zip_bomb())], ids=["gzip", "zip"])  # fmt: skip
def test_bombs(client: TestClient, name: str, content: bytes) -> None:
    start = time.monotonic()
    answer = client.post("/api/explain", files={"traces": (name, content)})
    assert answer.status_code == 422
    assert time.monotonic() - start < 30


def test_a_json_of_a_million_keys(client: TestClient) -> None:
    body = "{" + ",".join(f'"k{n}": 1' for n in range(200_000)) + "}"
    answer = client.post("/api/count", content=body, headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == "count has no so many options"


# --- a real server ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """`suanli web` as a person starts it: its address and process."""
    command = [sys.executable, "-m", "suanli", "web", "--port", "0", "--workers", "2", "--time-limit", "20s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        said = process.stdout.readline()
        found = re.search(r"http://\S+", said)
        assert found, said
        yield found[0].rstrip("/"), process.pid
        process.send_signal(2)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


def memory(pid: int) -> int:
    """Bytes that the process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def ready(address: str) -> None:
    for _ in range(200):
        try:
            httpx.get(f"{address}/api").raise_for_status()
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the server does not answer")


@pytest.mark.parametrize("told", [True, False], ids=["by its length", "in chunks"])
def test_two_gigabytes_are_refused_in_bounded_memory(server: tuple[str, int], told: bool) -> None:
    """Sent over a bare socket: what is sent is counted, and the server stops it."""
    address, pid = server
    ready(address)
    before = memory(pid)
    host, port = address.removeprefix("http://").split(":")
    size = 2 * GIGA
    lines = ["POST /api/explain HTTP/1.1", f"Host: {host}:{port}", "Content-Type: multipart/form-data; boundary=cut",
             f"Content-Length: {size}" if told else "Transfer-Encoding: chunked", "", ""]  # fmt: skip
    part = b'--cut\r\nContent-Disposition: form-data; name="traces"; filename="t.json"\r\n\r\n'
    block, sent, peak, answer = b"x" * MEBI, 0, 0, b""
    with socket.create_connection((host, int(port))) as wire:
        wire.sendall("\r\n".join(lines).encode())
        wire.setblocking(True)
        try:
            for piece in [part, *[block] * (size // MEBI)]:
                wire.sendall(piece if told else f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                sent += len(piece)
                peak = max(peak, memory(pid))
        except (BrokenPipeError, ConnectionResetError):
            pass
        with contextlib.suppress(ConnectionResetError):
            answer = wire.recv(65536)
    assert sent < 260 * MEGA
    assert answer == b"" or b" 413 " in answer.split(b"\r\n")[0]
    assert max(peak, memory(pid)) - before < 100 * MEGA
    assert httpx.post(f"{address}/api/gpus", json={"name": "h100-sxm"}).status_code == 200


def test_many_at_once_get_their_own_answers(server: tuple[str, int]) -> None:
    address, _ = server
    ready(address)

    def ask(seq: int) -> tuple[int, int]:
        found = httpx.post(f"{address}/api/count", json={"model": "gpt2", "seq": seq}, timeout=60).json()
        return seq, found["inputs"]["seq"]

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        assert all(asked == got for asked, got in threads.map(ask, range(1, 49)))


def test_too_slow_is_told_and_long_work_leaves_room(server: tuple[str, int]) -> None:
    address, _ = server
    ready(address)
    layout = {"model": "llama-3.1-405b", "gpu": "h100-sxm", "gpus": "2048,4096,8192,16384", "global_batch": 16384}
    job = httpx.post(f"{address}/api/jobs/layout", json=layout).json()
    start = time.monotonic()
    assert httpx.post(f"{address}/api/count", json={"model": "gpt2", "seq": 77}, timeout=30).status_code == 200
    assert time.monotonic() - start < 10
    assert httpx.delete(f"{address}/api/jobs/{job['id']}", timeout=30).json()["state"] == "cancelled"


def test_a_browser_that_leaves_stops_its_work(server: tuple[str, int]) -> None:
    address, _ = server
    ready(address)
    slow = {"model": "llama-3.1-405b", "gpu": "h100-sxm", "gpus": "2048,4096,8192,16384", "global_batch": 8192}
    for _ in range(2):
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{address}/api/layout", json=slow, timeout=0.3)
    start = time.monotonic()
    plan = {"model": "gpt2", "gpu": "h100-sxm", "gpus": 8, "global_batch": 64, "pin": "pp=1"}
    assert httpx.post(f"{address}/api/layout", json=plan, timeout=60).status_code == 200
    assert time.monotonic() - start < 30


def test_a_mistake_has_the_shape_and_the_headers_of_every_answer() -> None:
    app = create_app(Settings(workers=1))

    @app.get("/mistake")
    def mistake() -> None:
        raise KeyError("/secret/folder")

    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as asked:
        answer = asked.get("/mistake")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert answer.headers["cache-control"] == "no-store"
