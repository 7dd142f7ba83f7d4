"""Files that a request brings: streamed to disk within bounds, each under a name of its own, deleted after."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from python_multipart.multipart import MultipartParser, parse_options_header

from suanli.units import KIBI, MEGA
from suanli.web.errors import HttpError, refusal
from suanli.web.settings import Settings

MAX_PARTS = 1000  # ranks of a job, and options
MAX_HEADERS = 8 * KIBI  # of one part
MAX_NAME = 100
FOLDER = "uploaded"  # a config.json is known by the folder it lies in
_NOT_IN_NAMES = re.compile(r"[^\w .,=+@()\[\]-]")


@dataclass(frozen=True, kw_only=True)
class Upload:
    """One file as it lies on the server's disk."""

    path: Path
    size: int
    sha256: str


@dataclass
class Form:
    """What a form brought: values by option, files by option. `close` deletes the files."""

    folder: Path | None = None
    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, list[Upload]] = field(default_factory=dict)

    def close(self) -> None:
        """Delete the files."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def safe_name(name: str) -> str:
    """The last part of a name that a browser gave, of harmless characters; its ending tells the kind of file."""
    last = _NOT_IN_NAMES.sub("_", re.split(r"[/\\]", name)[-1]).strip(" .")
    stem, dot, end = last.rpartition(".")
    if len(last) > MAX_NAME:
        last = f"{stem[: MAX_NAME - 20]}{dot}{end[-19:]}"
    return last or "upload"


async def bounded(stream: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """The blocks of a body. Raises HttpError 413 where it is larger than it may be, having kept none of it."""
    size = 0
    async for block in stream:
        size += len(block)
        if size > most:
            raise too_large(most)
        yield block


def too_large(most: int) -> HttpError:
    """The error of a body or a file over its bound."""
    return refusal(413, "too_large", "the upload is too large", where="the request",
                   expected=f"at most {most / MEGA:,.0f} MB",
                   hint="Run Suanli where the file lies; or start the server with a larger --max-upload.")  # fmt: skip


async def read_form(stream: AsyncIterator[bytes], content_type: str, settings: Settings, root: Path) -> Form:
    """The parts of a multipart body, its files below `root`. Raises HttpError; nothing stays then."""
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if not boundary:
        raise refusal(400, "bad_form", "the form has no boundary", where="Content-Type", got=content_type[:60])
    form = Form(Path(tempfile.mkdtemp(prefix="form-", dir=root)))
    reader = _Reader(form, settings)
    try:
        parser = MultipartParser(boundary, reader.callbacks())
        async for block in bounded(stream, settings.max_uploads_bytes):
            parser.write(block)
        parser.finalize()
        if not reader.ended:
            raise refusal(400, "bad_form", "the form ends before its end", where="the request")
    except BaseException as problem:
        reader.close()
        form.close()
        if isinstance(problem, ValueError) and not isinstance(problem, HttpError):  # the parser's own
            raise refusal(400, "bad_form", "the form cannot be read", got=str(problem)[:100]) from None
        raise
    return form


class _Reader:
    """Takes what the parser finds: values into memory, files onto disk."""

    def __init__(self, form: Form, settings: Settings) -> None:
        self.form, self.settings = form, settings
        self.parts = self.values_bytes = 0
        self.ended = False
        self.file: IO[bytes] | None = None

    def callbacks(self) -> Any:
        """As the parser wants them."""
        return {
            "on_part_begin": self._begin, "on_header_field": self._header_name, "on_header_value": self._header_value,
            "on_header_end": self._header_end, "on_headers_finished": self._headers, "on_part_data": self._data,
            "on_part_end": self._end, "on_end": self._finished,
        }  # fmt: skip

    def _begin(self) -> None:
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise refusal(413, "too_many_parts", "the form has too many parts", expected=f"at most {MAX_PARTS:,}")
        self.headers: dict[bytes, bytes] = {}
        self.header_name = self.header_value = b""
        self.value = bytearray()
        self.size, self.digest = 0, hashlib.sha256()

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self.header_name = self._header(self.header_name, data[start:end])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self.header_value = self._header(self.header_value, data[start:end])

    def _header(self, known: bytes, more: bytes) -> bytes:
        if len(known) + len(more) > MAX_HEADERS:
            raise refusal(400, "bad_form", "a header of a part is too long", expected=f"at most {MAX_HEADERS:,} bytes")
        return known + more

    def _header_end(self) -> None:
        self.headers[self.header_name.lower()] = self.header_value
        self.header_name = self.header_value = b""

    def _headers(self) -> None:
        _, options = parse_options_header(self.headers.get(b"content-disposition", b""))
        name, file = options.get(b"name"), options.get(b"filename")
        if not name:
            raise refusal(400, "bad_form", "a part of the form has no name", hint="A file is named after its option.")
        self.name = name.decode("utf-8", "replace")[:MAX_NAME]
        if file is not None:
            assert self.form.folder is not None
            place = self.form.folder / str(self.parts) / FOLDER / safe_name(file.decode("utf-8", "replace"))
            place.parent.mkdir(parents=True)
            self.path, self.file = place, place.open("xb")

    def _data(self, data: bytes, start: int, end: int) -> None:
        self.size += end - start
        if self.file is None:
            self.values_bytes += end - start
            if self.values_bytes > self.settings.max_json_bytes:
                raise too_large(self.settings.max_json_bytes)
            self.value += data[start:end]
            return
        if self.size > self.settings.max_upload_bytes:
            raise too_large(self.settings.max_upload_bytes)
        self.digest.update(data[start:end])
        self.file.write(data[start:end])

    def _end(self) -> None:
        if self.file is None:
            self._keep_value()
            return
        self.close()
        if self.size == 0 and self.path.name == "upload":  # a file field that was left empty
            return
        found = Upload(path=self.path, size=self.size, sha256=self.digest.hexdigest())
        self.form.files.setdefault(self.name, []).append(found)

    def _keep_value(self) -> None:
        try:
            text = self.value.decode()
        except UnicodeDecodeError:
            raise refusal(400, "bad_form", "a value of the form is not UTF-8", where=self.name) from None
        known = self.form.values.get(self.name)
        many = [*(known if isinstance(known, list) else [known]), text]
        self.form.values[self.name] = text if known is None else many

    def _finished(self) -> None:
        self.ended = True

    def close(self) -> None:
        """Close the file that is being written."""
        if self.file is not None:
            self.file.close()
            self.file = None


def private_folder() -> Path:
    """A new folder for uploads that nobody else on the machine can read."""
    folder = Path(tempfile.mkdtemp(prefix="suanli-web-"))
    os.chmod(folder, 0o700)  # noqa: PTH101  what mkdtemp gives already, said aloud
    return folder


def digests(files: Mapping[str, list[Upload]]) -> list[tuple[str, str, str]]:
    """What tells the files of two requests apart."""
    return [(option, each.path.name, each.sha256) for option in sorted(files) for each in files[option]]
