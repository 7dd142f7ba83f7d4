"""Over the web nothing but uploads is opened, imported or fetched: names are refused before anything is tried."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.errors import SuanliError
from suanli.readers import gate

SECRET = "secret-7f3a"


def refused(act: Any) -> SuanliError:
    with gate.only([]), pytest.raises(SuanliError) as caught:
        act()
    return caught.value


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Real files that a request might name."""
    for name in (
        "config.json",
        "m.safetensors",
        "m.gguf",
        "m.onnx",
        "runs.csv",
        "stack.toml",
        "goodput.json",
        "t.json",
    ):
        (tmp_path / name).write_text("{}")
    return tmp_path


# what a request may name and where, so that a reader deep inside would open, import or fetch it
NAMED: list[tuple[str, Any]] = [
    ("a config", lambda at: suanli.count(f"{at}/config.json")),
    ("a folder", lambda at: suanli.count(str(at))),
    ("a path object", lambda at: suanli.count(at / "config.json")),
    ("a header", lambda at: suanli.count(f"{at}/m.safetensors")),
    ("a gguf", lambda at: suanli.count(f"{at}/m.gguf")),
    ("a graph", lambda at: suanli.count(f"{at}/m.onnx")),
    ("traced", lambda at: suanli.count(f"{at}/config.json", trace=True)),
    ("a draft", lambda at: suanli.infer("gpt2", gpu="h100-sxm", draft_tokens=2, acceptance=1, draft_model=f"{at}/m")),
    ("points", lambda at: suanli.infer("gpt2", gpu="h100-sxm", calibrate=f"{at}/runs.csv")),
    ("a stack", lambda at: suanli.layout("gpt2", gpu="h100-sxm", gpus=8, global_batch=8, stack=f"{at}/stack.toml")),
    ("goodput", lambda at: suanli.train("gpt2", tokens="1B", gpu="h100-sxm", gpus=8, goodput=f"{at}/goodput.json")),
    ("events", lambda at: suanli.goodput(events=f"{at}/runs.csv")),
    ("sizes", lambda at: suanli.scale(f"{at}/runs.csv", metric="tokens_per_s")),
    ("runs as JSON", lambda at: suanli.scale(f"{at}/t.json")),
    ("own runs", lambda at: suanli.calibrate(f"{at}/runs.csv")),
    ("rows", lambda at: suanli.calibrate(shipped="nemo", rows=f"{at}/runs.csv")),
    ("a trace", lambda at: suanli.explain(f"{at}/t.json")),
    ("several traces", lambda at: suanli.explain(f"{at}/t.json", f"{at}/config.json")),
    ("a folder of traces", lambda at: suanli.explain(str(at))),
    ("a plan", lambda at: suanli.explain(f"{at}/t.json", against=f"{at}/config.json")),
    ("summarised", lambda at: suanli.summarise(f"{at}/t.json", at / "out.parquet")),
    ("data", lambda at: suanli.verify("serving", data=str(at))),
    ("another machine", lambda at: suanli.explain("a.json", "b.json", engine="ray://10.0.0.1:10001")),
    ("code of torch", lambda at: suanli.count(f"torch:{SECRET}.mod:make", input="1x3")),
    ("code of jax", lambda at: suanli.count("jax:os:getcwd")),
    ("code of keras", lambda at: suanli.count("keras:os:getcwd")),
    ("code, compared", lambda at: suanli.compare("torch:os:getcwd")),
    ("a hub id", lambda at: suanli.count("some-org/some-model")),
    ("a hub id, traced", lambda at: suanli.count("some-org/some-model", trace=True)),
]  # fmt: skip
CODES = {"path_refused", "import_refused", "fetch_refused", "needs_run", "unknown_model", "no_samples"}
EVENTS = {"open", "import", "os.listdir", "os.scandir", "socket.connect", "socket.getaddrinfo", "subprocess.Popen",
          "sqlite3.connect"}  # fmt: skip
LISTENING, SEEN = {0: False}, list[str]()


def _listen(event: str, args: tuple[Any, ...]) -> None:
    if LISTENING[0] and event in EVENTS:
        SEEN.append(f"{event} {args[0]!r} {args[1:]!r}")


sys.addaudithook(_listen)


@pytest.mark.parametrize(("what", "act"), NAMED, ids=[what for what, _ in NAMED])
def test_refused_and_untouched(what: str, act: Any, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listen(monkeypatch)
    for name in ("stat", "open", "exists", "is_dir", "is_file", "read_bytes", "read_text"):  # no event tells of a stat
        monkeypatch.setattr(Path, name, guarded(getattr(Path, name), there))
    problem = refused(lambda: act(there))
    LISTENING[0] = False
    assert {fault.code for fault in problem.faults} <= CODES, problem
    assert [
        event for event in SEEN if str(there) in event or SECRET in event or "socket." in event[:8] or "Popen" in event
    ] == []


def guarded(method: Any, folder: Path) -> Any:
    def call(self: Path, *args: Any, **kwargs: Any) -> Any:
        assert str(folder) not in str(self), f"{method.__name__} of {self}"
        return method(self, *args, **kwargs)

    return call


def test_the_listener_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: what is opened is heard."""
    listen(monkeypatch)
    Path(__file__).read_bytes()
    LISTENING[0] = False
    assert any("test_gate.py" in event for event in SEEN)


def listen(monkeypatch: pytest.MonkeyPatch) -> None:
    SEEN.clear()
    monkeypatch.setitem(LISTENING, 0, True)


def test_without_a_gate_everything_is_open(there: Path) -> None:
    assert gate.may_open(there)
    assert not gate.is_closed()
    gate.check_path(there)
    gate.check_run("torch:a:b")
    gate.check_fetch("org/name")
    assert gate.may_build("the config")


def test_uploads_are_open_and_the_rest_of_their_folder_is_not(tmp_path: Path) -> None:
    own, other = tmp_path / "a.json", tmp_path / "b.json"
    with gate.only([own]):
        assert gate.may_open(own)
        assert not gate.may_open(other)
        assert not gate.may_open(tmp_path)
        assert gate.may_build("preset gpt2")
        assert not gate.may_build("the config")
    with gate.only([tmp_path]):
        assert gate.may_open(own)
        assert not gate.may_open(f"{tmp_path}/../b.json")
    assert gate.may_open(other)


SAID = [
    (lambda: gate.check_path("/etc/passwd", "--stack"),
     "no path of the server's is opened for a request over the web in --stack; got '/etc/passwd'. Upload the file, or "
     "run Suanli on the machine where it lies."),
    (lambda: gate.check_run("torch:a:b"),
     "nothing that a request over the web names is imported or run in MODEL; got 'torch:a:b'. Run Suanli on a machine "
     "of yours for code of yours."),
    (lambda: gate.check_fetch("org/name"),
     "nothing is fetched, and no other machine is asked, for a request over the web in MODEL; got 'org/name'. `suanli "
     "models` lists the presets; of another model give its config.json."),
]  # fmt: skip


@pytest.mark.parametrize(("act", "said"), SAID)
def test_words(act: Any, said: str) -> None:
    assert str(refused(act)) == said


def test_a_config_from_outside_is_read_and_never_built() -> None:
    """transformers would import and fetch what a config names: an attention kernel of a hub, a quantizer."""
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 9, "n_positions": 64,
              "attn_implementation": "org/kernel"}  # fmt: skip
    with gate.only([]):
        assert suanli.count(config).params.total > 0
        with pytest.raises(SuanliError, match="read, never built and run in MODEL"):
            suanli.count(config, trace=True)
        found = suanli.compare(config, tools="calflops,palm")
    assert "read, never built" in found.counters[0].reason
    assert found.counters[1].flops
