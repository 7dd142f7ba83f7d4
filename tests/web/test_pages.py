"""The addresses of the page: HTML that is whole and escaped, answers and faults with their fields, files, jobs."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from suanli.web import answered
from suanli.web.app import create_app
from suanli.web.forms import entries
from suanli.web.html import ASSETS
from suanli.web.settings import Settings

EVIL = "<img src=x onerror=alert(1)>\"'"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ASSETS_FOLDER = Path(answered.__file__).parent / "assets"
GPT2 = {"model_type": "gpt2", "n_layer": 2, "n_embd": 96, "n_head": 4, "vocab_size": 1000, "n_positions": 128}
VOID = {"meta", "link", "input", "br", "img", "hr"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """A browser's place: the application in this process, its workers beside it."""
    with TestClient(create_app(Settings(workers=2)), base_url="http://127.0.0.1") as opened:
        yield opened


class Parsed(HTMLParser):
    """Elements that close, ids, handlers and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.names: set[str] = set()
        self.inline: list[str] = []
        self.unclosed: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"]] if found.get("id") else []
        self.names |= {found["name"]} if found.get("name") else set()
        self.inline += [name for name in found if name == "style" or name.startswith("on")]
        if tag == "script" and not found.get("src") and found.get("type") != "application/json":
            self.inline.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.unclosed.append(tag)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("verb", ["", *entries()])
def test_a_page_is_whole_and_holds_nothing_inline(client: TestClient, verb: str, lang: str) -> None:
    answer = client.get(f"/{verb}?lang={lang}")
    assert answer.status_code == 200
    page = Parsed(answer.text)
    assert (page.open, page.unclosed, page.inline) == ([], [], [])
    assert len(page.ids) == len(set(page.ids))
    assert f'lang="{"zh-CN" if lang == "zh" else "en"}"' in answer.text
    if verb:
        assert (
            entries()[verb].names - {each.name for each in entries()[verb].fields if each.kind == "file"} <= page.names
        )


@pytest.mark.parametrize("name", ASSETS)
def test_assets_are_of_this_server_and_may_be_kept(client: TestClient, name: str) -> None:
    answer = client.get(f"/assets/{name}")
    assert answer.headers["content-type"].startswith(ASSETS[name])
    assert "immutable" in answer.headers["cache-control"]
    assert len(answer.content) > 200


def test_other_files_are_no_assets(client: TestClient) -> None:
    assert client.get("/assets/forms.toml").status_code == 404
    assert client.get("/assets/..%2fpages.py").status_code == 404
    assert client.get("/assets/nope").json()["error"]["message"] == "the page has no such file"


def test_a_browser_is_shown_a_page_where_there_is_none_and_a_program_json(client: TestClient) -> None:
    seen = client.get("/nope?lang=zh", headers={"accept": "text/html,*/*"})
    assert seen.status_code == 404 and "没有这个页面" in seen.text and 'href="/?lang=zh"' in seen.text
    assert not Parsed(seen.text).unclosed
    for address, accept in (("/nope", "*/*"), ("/api/nope", "text/html")):
        told = client.get(address, headers={"accept": accept})
        assert told.status_code in (404, 405) and told.json()["ok"] is False


def test_no_script_or_style_names_another_origin(client: TestClient) -> None:
    for name in ("page.css", "page.js", "shell.js", "widgets.js", "report.css", "report.js"):
        text = client.get(f"/assets/{name}").text
        assert re.findall(r"https?://|//[a-z]+\.[a-z]", text) == []


def test_names_to_choose_from(client: TestClient) -> None:
    found = client.get("/page/names.json").json()
    assert ["llama-3.1-8b", "Llama 3.1 8B", "8.03 B"] in found["models"]
    assert any(each[0] == "h100-sxm" and each[2] == "80 GB" for each in found["gpus"])


def test_an_answer_with_what_can_be_taken_along(client: TestClient) -> None:
    answer = client.get("/page/mfu/result?model=gpt2&gpu=h100-sxm&tokens_per_second=1e5")
    assert answer.status_code == 200
    assert 'data-headline="MFU ' in answer.text
    assert "suanli mfu gpt2 --gpu h100-sxm --tokens-per-second 1e5" in answer.text
    assert "http://127.0.0.1/api/mfu" in answer.text
    assert "/page/mfu/report.json?model=gpt2&amp;gpu=h100-sxm&amp;tokens_per_second=1e5" in answer.text
    assert Parsed(answer.text).inline == []


def test_an_answer_in_chinese(client: TestClient) -> None:
    text = client.get("/page/goodput/result?gpus=1024&mtbf=50000h&restart=10min&checkpoint_save=60s&lang=zh").text
    assert "下载" in text
    assert re.search(r"data-headline=\"[^\"]*[\u4e00-\u9fff]", text)


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("model=gpt2&gpu=h100-smx&tokens_per_second=1", "gpu", "unknown device 'h100-smx'"),
        ("model=gpt-2-giant&gpu=h100-sxm&tokens_per_second=1", "model", "unknown model 'gpt-2-giant'"),
        ("model=gpt2&gpu=h100-sxm&tokens_per_second=many", "tokens_per_second", "not a number with a unit"),
        ("model=gpt2&gpu=h100-sxm&globl_batch=1", "", "the page has no field 'globl_batch'"),
    ],
)
def test_a_fault_stands_at_its_field(client: TestClient, query: str, field: str, words: str) -> None:
    answer = client.get(f"/page/mfu/result?{query}")
    assert answer.status_code == 200, "a browser would print an error of its own"
    assert f'<li data-field="{field}">' in answer.text
    assert words in html.unescape(answer.text)
    if field in ("gpu", "model"):
        assert f'data-set="{field}" data-value="' in answer.text


def test_nothing_typed_comes_back_unescaped(client: TestClient) -> None:
    for path in ("/mfu", "/page/mfu/result", "/page/mfu/why"):
        text = client.get(path, params={"model": EVIL, "gpu": EVIL, "tokens_per_second": EVIL, "label": EVIL}).text
        assert "<img" not in text
        assert "onerror=alert(1)&gt;" in text or "onerror" not in text
    assert "<img" not in client.get("/mfu", params={EVIL: EVIL, "lang": EVIL}).text


def test_a_cookie_keeps_the_theme_and_nothing_else(client: TestClient) -> None:
    assert 'data-theme="dark"' in client.get("/count", headers={"cookie": "theme=dark"}).text
    assert "data-theme" not in client.get("/count", headers={"cookie": "theme=evil"}).text.split("<body")[0]


@pytest.mark.parametrize(
    ("suffix", "kind", "start"),
    [
        ("json", "application/json", b'{\n  "ok": true'), ("csv", "text/csv", b""), ("md", "text/markdown", b"# "),
        ("html", "text/html", b"<!doctype html>"), ("svg", "image/svg+xml", b"<svg"), ("png", "image/png", b"\x89PNG"),
    ],
)  # fmt: skip
def test_the_answer_as_a_file(client: TestClient, suffix: str, kind: str, start: bytes) -> None:
    answer = client.get(f"/page/scale/report.{suffix}?points=64:10,128:5.5&metric=time")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith(kind)
    assert answer.headers["content-disposition"] == f'attachment; filename="suanli-scale.{suffix}"'
    assert answer.content.startswith(start)
    assert len(answer.content) > 100


def test_a_file_of_no_answer_is_an_error(client: TestClient) -> None:
    assert client.get("/page/scale/report.json?points=64:x").status_code == 422
    found = client.get("/page/scale/report.pdf?points=64:10,128:5.5&metric=time")
    assert (found.status_code, found.json()["error"]["code"]) == (422, "unknown_format")


@pytest.mark.parametrize("suffix", ["HTML", "Png", "toml", "x" * 3000])
def test_a_suffix_is_one_of_the_pages(client: TestClient, suffix: str) -> None:
    found = client.get(f"/page/gpus/report.{suffix}")
    assert (found.status_code, found.json()["error"]["code"]) == (422, "unknown_format")
    assert found.json()["error"]["expected"] == "one of html, json, csv, md, svg, png"


UPLOADED = [("explain", "traces", "step.json", (EXAMPLES / "step.json").read_bytes()),
            ("explain", "traces", "broken.json", b"{"), ("count", "model", "config.json", b'{"model_type": "gpt2"}'),
            ("count", "model", "config.json", json.dumps(GPT2).encode())]  # fmt: skip
PARTS = ("result", "why?block=Parameters&label=total", "why?block=Where+the+time+went&label=idle",
         *(f"report.{suffix}" for suffix in ("html", "json", "csv", "md", "svg")))  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "option", "name", "content"), UPLOADED, ids=["trace", "no trace", "no config", "config"]
)
def test_no_folder_of_the_server_is_told(client: TestClient, verb: str, option: str, name: str, content: bytes) -> None:
    kept = client.post("/api/uploads", files={option: (name, content)}).json()["names"][option][0]
    folder = str(client.app.state.desk.folder)  # type: ignore[attr-defined]
    for part in PARTS:
        answer = client.get(f"/page/{verb}/{part}{'&' if '?' in part else '?'}{option}={kept}")
        assert answer.status_code in (200, 422), part
        assert folder not in answer.text, part
    assert name in client.get(f"/page/{verb}/report.json?{option}={kept}").text


def test_the_example_is_called_by_its_name_alone(client: TestClient) -> None:
    for part in ("result", "report.html", "report.json", "report.csv", "report.md"):
        answer = client.get(f"/page/explain/{part}?traces=example")
        assert answer.status_code == 200
        assert str(ASSETS_FOLDER) not in answer.text
        assert "example.pt.trace.json" in answer.text


def test_a_job_of_another_page_or_of_the_api_is_none(client: TestClient) -> None:
    query = "only=articles"
    own = client.post(f"/page/verify/job?{query}").json()["id"]
    assert client.get(f"/page/explain/job/{own}").json() == {"state": "gone"}
    assert client.delete(f"/page/explain/job/{own}").json() == {"state": "gone"}
    assert "Articles" in ended(client, "verify", own, query)["html"]
    other = client.post("/api/jobs/verify", json={"only": "articles"}).json()["id"]
    while client.get(f"/api/jobs/{other}").json()["state"] in ("waiting", "running"):
        time.sleep(0.05)
    assert client.get(f"/page/verify/job/{other}?{query}").json() == {"state": "gone"}


def test_a_server_that_is_busy_says_when_to_come_again(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.app.state.desk.pool, "most_waiting", 0)  # type: ignore[attr-defined]
    for part in ("result", "why", "report.json"):
        answer = client.get(f"/page/train/{part}?model=gpt2&tokens=7B")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "too many requests wait for an answer" in answer.text


def ended(client: TestClient, verb: str, job: str, query: str = "") -> dict[str, Any]:
    """What a job says when it has ended."""
    for _ in range(400):
        found: dict[str, Any] = client.get(f"/page/{verb}/job/{job}?{query}").json()
        if found["state"] not in ("running", "waiting"):
            return found
        time.sleep(0.05)
    raise AssertionError("the job does not end")


def test_long_work_is_a_job(client: TestClient) -> None:
    begun = client.post("/page/explain/job?traces=example").json()
    found = ended(client, "explain", begun["id"], "traces=example")
    assert found["state"] == "done"
    assert "40.1 % of peak useful" in found["html"]


def test_a_job_that_fails_says_why(client: TestClient) -> None:
    begun = client.post("/page/explain/job?traces=example&gpu=h100-smx").json()
    found = ended(client, "explain", begun["id"], "traces=example&gpu=h100-smx")
    assert 'data-field="gpu"' in found["html"]


def test_a_job_is_cancelled_and_a_forgotten_one_is_gone(client: TestClient) -> None:
    begun = client.post("/page/verify/job?only=predictions").json()
    assert client.delete(f"/page/verify/job/{begun['id']}").json() == {"state": "cancelled"}
    assert ended(client, "verify", begun["id"])["state"] == "cancelled"
    assert client.get("/page/verify/job/nobody").json() == {"state": "gone"}


def test_a_job_that_cannot_begin_says_why(client: TestClient) -> None:
    assert "no field" in client.post("/page/verify/job?olny=runs").json()["html"]


def test_pages_without_a_file_say_what_to_drop(client: TestClient) -> None:
    text = client.get("/page/diff/result").text
    assert "Drop two reports of the same kind" in text


def test_why_of_an_unknown_number_says_so(client: TestClient) -> None:
    text = client.get("/page/mfu/why?model=gpt2&gpu=h100-sxm&tokens_per_second=1e5&block=a&label=b&column=c").text
    assert "Nothing more is known of this number." in text


def test_a_page_of_files_waits_for_all_of_them(client: TestClient) -> None:
    """No fault is told before every file is there; and where the server keeps them is told nowhere."""
    tokens = [_uploaded(client, name) for name in ("gpt2.json", "gpt2-longer.json")]
    one = client.get(f"/page/diff/result?first={tokens[0]}").text
    assert "Drop two reports" in one and "problem" not in one
    assert "Drop a CSV" in client.post("/page/calibrate/job?gpu=h100-sxm").json()["html"]
    state = f"first={tokens[0]}&second={tokens[1]}"
    both = client.get(f"/page/diff/result?{state}").text
    assert "27 of 52 numbers differ" in both
    for text in (
        both,
        client.get(f"/page/diff/report.html?{state}").text,
        client.get(f"/page/diff/report.md?{state}").text,
    ):
        assert "gpt2-longer.json" in text
        assert "uploaded/" not in text


def _uploaded(client: TestClient, name: str) -> str:
    content = (EXAMPLES / name).read_bytes()
    sent = client.post("/api/uploads", files={"file": (name, content)}, headers={"origin": "http://127.0.0.1"})
    return str(sent.json()["names"]["file"][0])
