"""Reading a config.json: what is accepted, and each kind of wrong file with the one error it gives."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest

from suanli.errors import ConfigError, UnreadableFileError
from suanli.readers.files import MAX_BYTES, MAX_NESTING, config_file, read_json_config, read_model_path

LLAMA = {
    "model_type": "llama", "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 3,
    "num_attention_heads": 6, "num_key_value_heads": 2,
}  # fmt: skip


def refusal(path: Path) -> str:
    """The one fault of reading `path`; in well under a second."""
    start = time.process_time()
    with pytest.raises(UnreadableFileError) as caught:
        read_json_config(config_file(path))
    assert time.process_time() - start < 0.5
    assert len(caught.value.faults) == 1
    assert str(path)[:200] in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("start", [b"", b" \n"], ids=["plain", "space"])
def test_a_folder_or_its_config(tmp_path: Path, start: bytes) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_bytes(start + json.dumps(LLAMA).encode())
    # embedding and head 2·96·72, layers 3·(72·72·2 + 2·72·24 + 3·72·104 + 2·72), last norm 72
    params = 2 * 96 * 72 + 3 * (2 * 72 * 72 + 2 * 72 * 24 + 3 * 72 * 104 + 2 * 72) + 72
    for path in (folder, folder / "config.json"):
        arch = read_model_path(path)
        assert (arch.name, arch.params_total) == ("my-model", params)
    other = tmp_path / "other.json"
    other.write_bytes((folder / "config.json").read_bytes())
    assert read_model_path(other).name == "other"


def test_a_relative_path_takes_the_folder_as_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    monkeypatch.chdir(tmp_path)
    assert read_model_path("config.json").name == read_model_path(".").name == tmp_path.name


CONTENT = [
    (b"", "the file is empty", "empty_file"),
    (b"\xef\xbb\xbf \n", "the file starts with a byte order mark", "byte_order_mark"),
    (b"{", "the file is not JSON in", "not_json"),
    (b'{"a": 1,}', "line 1, column 9", "not_json"),
    (b"{'a': 1}", "the file is not JSON", "not_json"),
    (b'{"a": 1} x', "Extra data", "not_json"),
    (b"\x00\x01", "the file is not JSON", "not_json"),
    (b'{"a": "\xff"}', "the file is not UTF-8 text in", "not_utf8"),
    ('{"a": 1}'.encode("utf-16"), "byte order mark", "byte_order_mark"),
    (b"[1, 2]", "the JSON is no object in", "not_an_object"),
    (b'"model"', "got str; expected an object", "not_an_object"),
    (b"null", "got NoneType", "not_an_object"),
    (b'{"a": 1, "b": 2, "a": 3}', "the key 'a' is given twice", "bad_json"),
    (b'{"x": {"a": 1, "a": 1}}', "the key 'a' is given twice", "bad_json"),
    (b'{"a": NaN}', "NaN is no number of JSON", "bad_json"),
    (b'{"a": Infinity}', "Infinity is no number of JSON", "bad_json"),
    (b'{"a": -Infinity}', "-Infinity is no number of JSON", "bad_json"),
    (b'{"a": 1e999}', "the number '1e999' is too large", "bad_json"),
    (b'{"a": ' + b"9" * 5000 + b"}", "a whole number of 5,000 digits is too long", "bad_json"),
    (b'{"a": ' + b"9" * 101 + b"}", "a whole number of 101 digits is too long", "bad_json"),
    (b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", "the JSON is nested too deep", "too_deep"),
    (b'{"a": ' + b"[" * 100_000, "the JSON is nested too deep", "too_deep"),
    (b'{"a": ' * 100_000, "the JSON is nested too deep", "too_deep"),
]


@pytest.mark.parametrize(("content", "words", "code"), CONTENT, ids=range(len(CONTENT)))
def test_content_that_is_refused(tmp_path: Path, content: bytes, words: str, code: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert words in refusal(path)
    with pytest.raises(UnreadableFileError) as caught:
        read_json_config(path)
    assert caught.value.faults[0].code == code


def test_nesting_up_to_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    depth = MAX_NESTING - 1  # the object itself is one
    path.write_text('{"a": ' + "[" * depth + "]" * depth + "}")
    assert list(read_json_config(path)) == ["a"]


def test_a_file_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as stream:
        stream.truncate(200_000_000)  # sparse
    text = refusal(path)
    assert "the file is too large for a config" in text
    assert "got 200,000,000 bytes; expected at most 20 MB. Is it the weights?" in text
    path.write_text("{" + " " * MAX_BYTES + "}")
    assert "too large" in refusal(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    fifo, sock = tmp_path / "fifo", tmp_path / "s"
    os.mkfifo(fifo)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(sock))
        assert "not a regular file" in refusal(sock)
        assert "got a socket; expected a config.json" in refusal(sock)
    assert "got a pipe" in refusal(fifo)
    for device in ("/dev/zero", "/dev/null"):
        assert "got a device" in refusal(Path(device))
    link = tmp_path / "link.json"
    link.symlink_to("/dev/zero")
    assert "got a device" in refusal(link)


def test_folders_without_a_config(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith("the folder holds no config.json in ")
    assert "Give a folder of a model in Hugging Face's layout" in refusal(tmp_path)
    (tmp_path / "config.json").mkdir()
    assert "got a folder; expected a config.json" in refusal(tmp_path)


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    assert "the file cannot be opened: No such file or directory" in refusal(tmp_path / "none.json")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "the file cannot be opened: Too many levels of symbolic links" in refusal(loop)
    assert "File name too long" in refusal(tmp_path / ("n" * 5000))
    with pytest.raises(UnreadableFileError, match="embedded null"):
        read_model_path("a\0b")
    if os.geteuid():
        closed = tmp_path / "closed.json"
        closed.write_text("{}")
        closed.chmod(0)
        assert "Permission denied" in refusal(closed)


def test_code_of_a_config_is_named_and_never_run(tmp_path: Path) -> None:
    folder = tmp_path / "evil"
    folder.mkdir()
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (folder / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": {"AutoModel": "evil.Model"}}))
    with pytest.raises(ConfigError, match="names code of its own, which is never run") as caught:
        read_model_path(folder)
    assert str(folder) in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_faults_of_the_config_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"hidden_size": 0}))
    with pytest.raises(ConfigError, match=r"hidden_size is not possible in .*config\.json: hidden_size; got 0"):
        read_model_path(path)
