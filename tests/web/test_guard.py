"""Host, Origin, token and headers: what a page of another site, or another machine, may and may not do."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from suanli.web.guard import HEADERS, POLICY, Guard, host_name, host_names
from suanli.web.settings import Settings

TOKEN = "a-long-enough-token"


def served(**given: Any) -> TestClient:
    """A guarded application that answers everything."""

    async def answer(request: Any) -> PlainTextResponse:
        return PlainTextResponse(str(request.url))

    methods = ["GET", "POST", "DELETE", "HEAD"]
    app = Starlette(routes=[Route("/{path:path}", answer, methods=methods)])
    app.add_middleware(Guard, settings=Settings(**given))
    return TestClient(app, base_url="http://localhost:8765", follow_redirects=False)


LOCAL = {"localhost", "localhost:8765", "127.0.0.1:1", "[::1]:8765", "LOCALHOST"}
OTHER = {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.5", "", "localhost:x",
         "a@localhost",          "localhost/x", "[::1", "0.0.0.0", "127.0.0.2"}  # fmt: skip


@pytest.mark.parametrize("host", sorted(LOCAL | OTHER))
def test_host(host: str) -> None:
    answer = served().get("/", headers={"host": host})
    assert answer.status_code == (200 if host in LOCAL else 421), host
    if host in OTHER:
        assert answer.json()["error"]["code"] == "bad_host"


def test_hosts_of_a_server_for_others() -> None:
    names = host_names(Settings(host="0.0.0.0", hosts=("Suanli.Lab",)))
    assert {"suanli.lab", "localhost"} < names
    assert "0.0.0.0" not in names
    open_ = served(host="0.0.0.0", hosts=("suanli.lab",))
    assert open_.get("/", headers={"host": "suanli.lab:80"}).status_code == 200
    assert open_.get("/", headers={"host": "10.0.0.5:80"}).status_code == 200  # an address cannot be rebound
    assert open_.get("/", headers={"host": "evil.example"}).status_code == 421


def test_host_name() -> None:
    assert host_name("Example.org:80") == "example.org"
    assert host_name("[::1]:80") == "::1"
    assert host_name("a:b:c") == ""


FROM = [
    ({}, 200),
    ({"origin": "http://localhost:8765"}, 200),
    ({"origin": "https://localhost:8765"}, 200),
    ({"origin": "http://localhost"}, 403),
    ({"origin": "http://localhost:1"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "http://evil.example"}, 403),
    ({"sec-fetch-site": "same-origin"}, 200),
    ({"sec-fetch-site": "none"}, 200),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), FROM, ids=str)
def test_origin(headers: dict[str, str], status: int) -> None:
    client = served()
    for method in ("POST", "DELETE"):
        assert client.request(method, "/api/count", headers=headers).status_code == status
    assert client.get("/", headers=headers).status_code == 200  # a link from elsewhere may be followed


def test_every_answer_has_the_headers() -> None:
    client, closed = served(), served(token=TOKEN)
    answers = [
        client.get("/"),
        client.get("/", headers={"host": "x"}),
        client.post("/", headers={"origin": "null"}),
        closed.get("/"),
        closed.get("/", headers={"accept": "text/html"}),
        closed.get(f"/?token={TOKEN}"),
    ]
    assert [each.status_code for each in answers] == [200, 421, 403, 401, 401, 303]
    for each in answers:
        assert {name: each.headers[name] for name in HEADERS} == HEADERS
        assert each.headers["cache-control"] == "no-store"


def test_the_policy_names_no_other_origin() -> None:
    parts = dict(part.strip().split(" ", 1) for part in POLICY.split(";"))
    assert parts["default-src"] == parts["frame-ancestors"] == parts["base-uri"] == parts["object-src"] == "'none'"
    assert set(" ".join(parts.values()).split()) <= {"'none'", "'self'", "data:", "blob:"}
    assert parts["script-src"] == parts["style-src"] == "'self'"


SHOWN = [
    ({}, 401), ({"authorization": f"Bearer {TOKEN}"}, 200), ({"authorization": f"bearer {TOKEN}"}, 200),
    ({"authorization": "Bearer wrong"}, 401), ({"authorization": TOKEN}, 401), ({"authorization": "Bearer ünï"}, 401),
    ({"cookie": f"suanli_token={TOKEN}"}, 200), ({"cookie": "suanli_token=wrong"}, 401), ({"cookie": "=;;bad"}, 401),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "status"), SHOWN, ids=str)
def test_token(headers: dict[str, str], status: int) -> None:
    client = served(token=TOKEN)
    raw = {name: value.encode("latin-1") for name, value in headers.items()}
    assert client.get("/", headers=raw).status_code == status  # type: ignore[arg-type]
    assert client.post("/api/count", headers=raw).status_code == status  # type: ignore[arg-type]


def test_the_token_leaves_the_address_at_once() -> None:
    client = served(token=TOKEN)
    first = client.get(f"/count?model=gpt2&token={TOKEN}&seq=1&empty=")
    assert first.status_code == 303
    assert first.headers["location"] == "/count?model=gpt2&seq=1&empty="
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "SameSite=strict" in first.headers["set-cookie"]
    assert client.get("/count").status_code == 200  # the cookie
    assert served(token=TOKEN).get("/?token=wrong").status_code == 401
    assert served(token=TOKEN).post(f"/?token={TOKEN}").status_code == 401


def test_no_open_redirect() -> None:
    found = served(token=TOKEN).get(f"//evil.example/?token={TOKEN}")
    assert found.headers.get("location", "/").startswith("/")
    assert not found.headers.get("location", "/").startswith("//")


def test_a_browser_is_asked_for_the_token_and_a_program_is_told() -> None:
    client = served(token=TOKEN)
    page = client.get("/", headers={"accept": "text/html"})
    assert "asks for its token" in page.text
    assert "<form" in page.text
    assert TOKEN not in page.text
    told = client.get("/api/count", headers={"accept": "text/html"})
    assert told.json()["error"]["message"] == "the server asks for its token"


@pytest.mark.parametrize("size", ["1000000001", "9" * 30, "-5", "many"])
def test_too_large_by_its_own_word(size: str) -> None:
    answer = served().post("/api/count", headers={"content-length": size}, content=b"")
    assert answer.status_code == 413
    assert answer.json()["errors"][0]["code"] == "too_large"


def test_no_websockets() -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), served().websocket_connect("/ws"):
        pass


def test_what_computes_is_asked_by_this_page_alone() -> None:
    """An image of another site whose address is /page/… would make this machine work."""
    client = served()
    for headers, status in FROM:
        assert client.get("/page/layout/result", headers=headers).status_code == status, headers
