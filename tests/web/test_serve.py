"""`suanli web`: ports, tokens, extras; what is said when it cannot start."""

from __future__ import annotations

import socket
from importlib import util
from typing import Any

import pytest
from typer.testing import CliRunner

from suanli.cli.main import app
from suanli.errors import InputError
from suanli.web import serve
from suanli.web.settings import Settings

RUNNER = CliRunner()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Servers that would have run."""
    found: list[Settings] = []

    class Server:
        def __init__(self, settings: Settings) -> None:
            found.append(settings)

        def run(self, sockets: Any) -> None:
            sockets[0].close()

    monkeypatch.setattr(serve, "_server", Server)
    return found


def test_local_by_default_without_a_token(started: list[Settings]) -> None:
    done = RUNNER.invoke(app, ["web", "--port", "0"])
    assert done.exit_code == 0, done.output
    assert started[0].host == "127.0.0.1"
    assert started[0].token is None
    assert done.stdout == f"Suanli is at http://127.0.0.1:{started[0].port}/\nCtrl-C ends it.\n"


def test_bound_elsewhere_a_token_is_made_and_printed(started: list[Settings]) -> None:
    done = RUNNER.invoke(app, ["web", "--port", "0", "--host", "0.0.0.0"])
    token = started[0].token
    assert token is not None and len(token) >= 20
    assert f"?token={token}\n" in done.stdout
    assert "It can be reached from other machines" in done.stdout


def test_a_token_of_ones_own(started: list[Settings]) -> None:
    done = RUNNER.invoke(app, ["web", "--port", "0", "--token", "of-my-own-making", "--max-upload", "10MB",
                               "--allow-host", "lab", "--workers", "3", "--time-limit", "5s"])  # fmt: skip
    assert done.exit_code == 0
    found = started[0]
    assert (found.token, found.max_upload_bytes, found.max_uploads_bytes) == ("of-my-own-making", 10**7, 5 * 10**7)
    assert (found.hosts, found.workers, found.time_limit_s) == (("lab",), 3, 5)


REFUSED = [
    ("--port 99999", "error: not possible in --port; got '99999'; expected 0 to 65,535."),
    ("--port x", "error: not possible in --port; got 'x'; expected 0 to 65,535."),
    ("--token short", "error: not a token in --token; got 5 characters; expected at least 8, letters"),
    ("--workers 0", "error: not possible in --workers; got '0'; expected 1 to 256."),
    ("--max-upload 0", "error: not possible in --max-upload; got '0'; expected above 0."),
    ("--max-upload big", "in --max-upload"),
    ("--time-limit 0s", "error: not possible in --time-limit; got '0s'; expected above 0."),
    ("--host 203.0.113.7 --port 0", "error: the address cannot be used: "),
]


@pytest.mark.parametrize(("line", "said"), REFUSED)
def test_refused(line: str, said: str, started: list[Settings]) -> None:
    done = RUNNER.invoke(app, ["web", *line.split()])
    assert done.exit_code == 2
    assert said in done.stderr
    assert started == []


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError) as caught:
            serve.bind("127.0.0.1", port)
    assert str(caught.value) == (
        f"the port is taken in --port; got {port}. Name another, or leave it out: a free one is taken."
    )


def test_the_next_free_port_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setattr(serve, "Settings", lambda: Settings(port=port))
        with serve.bind("127.0.0.1", None) as found:
            assert port < found.getsockname()[1] < port + serve.TRIED


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, started: list[Settings]) -> None:
    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name in ("fastapi", "uvicorn") else found(name))
    done = RUNNER.invoke(app, ["web"])
    assert done.exit_code == 2
    assert done.stderr == (
        "error: the page needs libraries that are not installed in suanli web; got no fastapi, uvicorn. "
        "In a checkout: `python -m pip install '.[web]'`.\n"
    )


def test_addresses() -> None:
    assert serve.address(Settings(host="::1"), 80) == "http://[::1]:80/"
    assert serve.address(Settings(host="0.0.0.0", token="t"), 80) == "http://127.0.0.1:80/?token=t"


def test_open_asks_a_browser(monkeypatch: pytest.MonkeyPatch, started: list[Settings]) -> None:
    import webbrowser

    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    RUNNER.invoke(app, ["web", "--port", "0"])
    assert opened == []
    RUNNER.invoke(app, ["web", "--port", "0", "--open"])
    assert opened == [f"http://127.0.0.1:{started[1].port}/"]
