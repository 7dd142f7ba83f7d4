"""However a server ends, nothing of it stays: no process, no file, and no page of Python in the terminal."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

SLOW = {
    "model": "llama-3.1-405b",
    "gpu": "h100-sxm",
    "gpus": [1024 * n for n in range(1, 65)],
    "global_batch": 16384,
    "top": 1000,
}  # a thousand layouts played out: some twenty seconds
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")


def started(folder: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "suanli", "web", "--port", "0", "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=os.environ | {"TMPDIR": str(folder)})  # fmt: skip
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found
    for _ in range(200):
        with suppress(httpx.TransportError):
            httpx.get(f"{found[0]}api").raise_for_status()
            break
        time.sleep(0.05)
    return process, found[0]


def parents() -> dict[int, int]:
    """Every process that lives, and its parent."""
    found = {}
    for each in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            state, parent = (each / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(each.name)] = int(parent)
    return found


def below(pid: int) -> list[int]:
    """Processes that a process has started, and those they have."""
    own, known = [pid], parents()
    for each in own:
        own += [child for child, parent in known.items() if parent == each]
    return own[1:]


def busy(pid: int) -> list[int]:
    """Those of them that have worked for a while, the most first."""

    def ticks(each: int) -> int:
        return int(Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[11])

    before = {each: ticks(each) for each in below(pid)}
    time.sleep(0.5)
    return sorted((each for each, known in before.items() if ticks(each) > known + 10), key=ticks, reverse=True)


def left_after(seconds: float, pids: list[int]) -> set[int]:
    """Those that still live then: what was killed is not gone at once where the machine has much to do."""
    deadline = time.monotonic() + seconds
    while (left := set(pids) & set(parents())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def kill_all(pid: int) -> None:
    """The workers, and what starts them."""
    for each in below(pid):
        with suppress(OSError):
            if b"resource_tracker" not in Path(f"/proc/{each}/cmdline").read_bytes():
                os.kill(each, signal.SIGKILL)


def half_an_upload(address: str) -> socket.socket:
    host, port = re.findall(r"//([\d.]+):(\d+)", address)[0]
    head = (
        f"POST /api/explain HTTP/1.1\r\nHost: {host}\r\nContent-Type: multipart/form-data; boundary=cut\r\n"
        "Content-Length: 99999\r\n\r\n--cut\r\nContent-Disposition: form-data; name=traces; filename=a\r\n\r\nx"
    )
    upload = socket.create_connection((host, int(port)))
    upload.sendall(head.encode())
    return upload


def asked(address: str, said: list[Any]) -> threading.Thread:
    def ask() -> None:
        with suppress(httpx.TransportError):
            said.append(httpx.post(f"{address}api/layout", json=SLOW, timeout=60))

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_nothing_stays(number: signal.Signals, code: int, tmp_path: Path) -> None:
    process, address = started(tmp_path)
    said: list[Any] = []
    with half_an_upload(address):
        thread = asked(address, said)
        httpx.post(f"{address}api/jobs/layout", json=SLOW | {"global_batch": 8192})
        while not busy(process.pid):
            pass
        workers = below(process.pid)
        process.send_signal(number)
        printed, warned = process.communicate(timeout=30)
    thread.join()
    assert process.returncode == code
    assert "Traceback" not in printed + warned
    for answer in said:
        assert (answer.status_code, answer.json()["error"]["message"]) == (503, "the server is being ended")
    assert left_after(10, workers) == set()
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_is_killed_is_told_and_replaced(tmp_path: Path) -> None:
    process, address = started(tmp_path)
    said: list[Any] = []
    try:
        httpx.post(f"{address}api/count", json={"model": "gpt2"}, timeout=60)  # the workers are there
        thread = asked(address, said)
        while not (working := busy(process.pid)):
            pass
        os.kill(working[0], signal.SIGKILL)
        thread.join()
        assert (said[0].status_code, said[0].headers["retry-after"]) == (503, "5")
        assert said[0].json()["error"]["message"] == "the process that did the work ended before its answer"
        kill_all(process.pid)
        for seq in (64, 65, 66):
            answer = httpx.post(f"{address}api/count", json={"model": "gpt2", "seq": seq}, timeout=60)
            assert answer.status_code == 200, answer.text
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_workers_that_are_killed_while_they_start(tmp_path: Path) -> None:
    process, address = started(tmp_path)
    kill_all(process.pid)
    answers = [httpx.post(f"{address}api/count", json={"model": "gpt2"}, timeout=60).status_code for _ in range(3)]
    process.send_signal(signal.SIGINT)
    _, warned = process.communicate(timeout=30)
    assert (process.returncode, warned) == (0, "")
    assert answers[1:] == [200, 200]
    assert answers[0] in (200, 503)


def test_a_browser_that_leaves_amid_an_upload(tmp_path: Path) -> None:
    process, address = started(tmp_path)
    with half_an_upload(address):
        while not (there := list(tmp_path.glob("suanli-web-*/form-*"))):
            time.sleep(0.02)
    for _ in range(200):
        if not there[0].exists():
            break
        time.sleep(0.02)
    assert not there[0].exists()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[1] == ""
