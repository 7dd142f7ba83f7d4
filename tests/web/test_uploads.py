"""Files a request brings: streamed within bounds, harmless names, deleted after; broken forms are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from suanli.web.errors import HttpError
from suanli.web.settings import Settings
from suanli.web.uploads import Form, private_folder, read_form, safe_name

TYPE = "multipart/form-data; boundary=cut"
SMALL = Settings(max_upload_bytes=1000, max_uploads_bytes=3000, max_json_bytes=500)


def part(name: str, content: bytes, file: str | None = None) -> bytes:
    named = f'; filename="{file}"' if file is not None else ""
    return f'--cut\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode() + content + b"\r\n"


END = b"--cut--\r\n"


def read(body: bytes, root: Path, settings: Settings = SMALL, kind: str = TYPE, step: int = 7) -> Form:
    async def blocks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), step):
            yield body[at : at + step]

    return asyncio.run(read_form(blocks(), kind, settings, root))


def test_values_and_files(tmp_path: Path) -> None:
    form = read(part("model", b"{}", "config.json") + part("seq", b"8") + part("traces", b"a", "r0.json")
                + part("traces", b"bb", "r1.json") + part("x", b"1") + part("x", b"2") + END, tmp_path)  # fmt: skip
    assert form.values == {"seq": "8", "x": ["1", "2"]}
    assert [(each.path.name, each.size) for each in form.files["traces"]] == [("r0.json", 1), ("r1.json", 2)]
    assert form.files["model"][0].path.read_bytes() == b"{}"
    assert len(form.files["model"][0].sha256) == 64
    assert form.folder is not None and form.folder.is_dir()
    form.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_field_left_empty_is_none(tmp_path: Path) -> None:
    assert read(part("model", b"", "") + END, tmp_path).files == {}


REFUSED: list[tuple[str, bytes, str, int, str]] = [
    ("a file", part("f", b"x" * 1001, "f") + END, TYPE, 413, "too_large"),
    ("all files", b"".join(part("f", b"x" * 900, f"{n}") for n in range(4)) + END, TYPE, 413, "too_large"),
    ("values", part("v", b"x" * 501) + END, TYPE, 413, "too_large"),
    ("no boundary", END, "multipart/form-data", 400, "bad_form"),
    ("no end", part("v", b"x"), TYPE, 400, "bad_form"),
    ("no form", b"hello", TYPE, 400, "bad_form"),
    ("empty", b"", TYPE, 400, "bad_form"),
    ("no name", b"--cut\r\nContent-Disposition: form-data\r\n\r\nx\r\n" + END, TYPE, 400, "bad_form"),
    ("no headers", b"--cut\r\n\r\nx\r\n" + END, TYPE, 400, "bad_form"),
    ("no UTF-8", part("v", b"\xff\xfe") + END, TYPE, 400, "bad_form"),
    ("long header", b"--cut\r\nA: " + b"x" * 2900 + b"\r\n\r\n" + END, TYPE, 400, "bad_form"),
]


@pytest.mark.parametrize(("what", "body", "kind", "status", "code"), REFUSED, ids=[each[0] for each in REFUSED])
def test_refused_and_nothing_left(what: str, body: bytes, kind: str, status: int, code: str, tmp_path: Path) -> None:
    with pytest.raises(HttpError) as caught:
        read(body, tmp_path, kind=kind, step=64)
    assert (caught.value.status, caught.value.faults[0].code) == (status, code)
    assert list(tmp_path.iterdir()) == []


def test_many_parts(tmp_path: Path) -> None:
    body = b"".join(part("v", b"") for _ in range(1001)) + END
    with pytest.raises(HttpError, match="too many parts; expected at most 1,000"):
        read(body, tmp_path, Settings(), step=4096)


NAMES = [
    ("config.json", "config.json"), ("../../etc/passwd", "passwd"), ("C:\\dir\\a.gguf", "a.gguf"), ("", "upload"),
    ("..", "upload"), (".", "upload"), ("a\0b\n.json", "a_b_.json"), ("模型.json", "模型.json"),
    ("<b>.json", "_b_.json"),
    (" .hidden", "hidden"), ("x" * 300 + ".safetensors", "x" * 80 + ".safetensors"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "kept"), NAMES)
def test_safe_name(given: str, kept: str) -> None:
    assert safe_name(given) == kept


def test_the_folder_is_private() -> None:
    folder = private_folder()
    assert folder.stat().st_mode & 0o077 == 0
    folder.rmdir()


def test_every_byte_arrives_whatever_the_blocks(tmp_path: Path) -> None:
    content = bytes(range(256)) * 3
    for step in (1, 3, 64, 10_000):
        form = read(part("f", content, "f.bin") + END, tmp_path, step=step)
        assert form.files["f"][0].path.read_bytes() == content


def test_boundary_inside_a_file(tmp_path: Path) -> None:
    content: Any = b"--cut is no end\r\n--cu\r\n"
    assert read(part("f", content, "f") + END, tmp_path).files["f"][0].path.read_bytes() == content
