"""The same request as a command, in Python and by curl: what is printed gives the same answer."""

from __future__ import annotations

import contextlib
import io
import json
import shlex

import pytest

import suanli
from suanli.cli.main import app
from suanli.web.call import call
from suanli.web.elsewhere import command, curl, python
from suanli.web.forms import entries, entry
from suanli.web.state import given, read_state

QUICK = ["count", "mfu", "train", "infer", "scale", "goodput", "gpus", "models", "learn"]


def asked(verb: str) -> dict[str, object]:
    return given(entry(verb), read_state(entry(verb), []))


CASES = [
    ("count", {"model": "gpt2", "symbolic": True}, "suanli count gpt2 --symbolic"),
    ("layout", {"model": "gpt2", "gpus": "8", "why": ["1", "2"]}, "suanli layout gpt2 --gpus 8 --why 1 2"),
    ("count", {"model": "linear(4, 8)"}, "suanli count 'linear(4, 8)'"),
    ("count", {"model": "cfg-0123456789ab"}, "suanli count config.json"),
    ("verify", {"only": "runs", "every": True}, "suanli verify --only runs --all"),
    ("scale", {"points": "1:2,2:3", "model": "gpt2"}, "suanli scale --points 1:2,2:3 --model gpt2"),
    ("learn", {"topic": "moe", "lang": "zh"}, "suanli learn moe --lang zh"),
    ("learn", {"topic": "moe", "lang": "en"}, "suanli learn moe"),
    ("gpus", {"name": "h100-sxm"}, "suanli gpus h100-sxm"),
    ("explain", {"traces": ["up-0123456789ab"], "gpu": "a100"}, "suanli explain FILE --gpu a100"),
    ("count", {"model": "$(rm -rf /)"}, "suanli count '$(rm -rf /)'"),
]


@pytest.mark.parametrize(("verb", "request_", "line"), CASES)
def test_the_line_for_a_terminal(verb: str, request_: dict[str, object], line: str) -> None:
    assert command(entry(verb), request_) == line


@pytest.mark.parametrize("verb", QUICK)
def test_the_line_gives_the_pages_answer(verb: str) -> None:
    words = shlex.split(command(entry(verb), asked(verb)))
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        app([*words[1:], "--json"], standalone_mode=False)
    assert json.loads(told.getvalue())["result"] == call(verb, asked(verb)).to_dict()["result"]


@pytest.mark.parametrize("verb", QUICK)
def test_the_call_gives_the_pages_answer(verb: str) -> None:
    code = python(entry(verb), asked(verb))
    head, _, expression = code.partition("\n\n")
    assert head == "import suanli"
    assert eval(expression, {"suanli": suanli}).to_dict()["result"] == call(verb, asked(verb)).to_dict()["result"]


@pytest.mark.parametrize(
    ("verb", "request_", "text"),
    [
        ("layout", {"model": "gpt2", "why": ["1", "2"]}, "suanli.layout('gpt2', why=['1', '2'])"),
        ("count", {"model": "gpt2", "symbolic": True}, "suanli.count('gpt2', symbolic=True)"),
        ("scale", {"points": "1:2", "model": "gpt2"}, "suanli.scale(points='1:2', model='gpt2')"),
        ("goodput", {"gpus": "8"}, "suanli.goodput(gpus='8')"),
    ],
)
def test_the_call_in_python(verb: str, request_: dict[str, object], text: str) -> None:
    assert python(entry(verb), request_) == f"import suanli\n\n{text}"


@pytest.mark.parametrize("verb", list(entries()))
def test_the_request_by_curl_holds_the_same(verb: str) -> None:
    words = shlex.split(curl(entry(verb), asked(verb), "http://127.0.0.1:8765"))
    assert words[:3] == ["curl", "-s", f"http://127.0.0.1:8765/api/{verb}"]
    assert json.loads(words[-1]) == asked(verb)
