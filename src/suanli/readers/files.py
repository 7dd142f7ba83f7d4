"""Files that describe a model: a `config.json`, or a folder with one. Read as data within bounds, never run."""

from __future__ import annotations

import codecs
import json
import math
import os
import stat
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from suanli.errors import Fault, UnreadableFileError, shown
from suanli.nouns.arch import Arch
from suanli.readers import gate
from suanli.readers.configs import read_config
from suanli.units import MEGA

CONFIG = "config.json"
PIPELINE = "model_index.json"  # beside it the parts of a pipeline of diffusers, each in a folder
DENOISERS = ("transformer", "unet", "prior")
MAX_BYTES = 20 * MEGA
MAX_NESTING = 100
MAX_DIGITS = 100

_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}  # fmt: skip


def read_model_path(path: str | os.PathLike[str]) -> Arch:
    """The architecture of a `config.json` or of a folder with one. Raises UnreadableFileError or ConfigError."""
    file = config_file(Path(path))
    return read_config(read_json_config(file), model_name(file), str(file))


def config_file(path: Path) -> Path:
    """The file meant by `path`: itself, the config.json of a folder, or that of a pipeline's denoiser."""
    if not stat.S_ISDIR(_status(path).st_mode):
        return path
    inside = path / CONFIG
    if (path / PIPELINE).exists() and not inside.exists():
        inside = next((path / part / CONFIG for part in DENOISERS if (path / part / CONFIG).exists()), inside)
    try:
        inside.stat()
    except OSError:
        _refuse(
            path,
            "no_config",
            f"the folder holds no {CONFIG}",
            expected=CONFIG,
            hint=f"Give a folder of a model in Hugging Face's layout, or the path of its {CONFIG}.",
        )
    return inside


def model_name(file: Path) -> str:
    """What a model is called that is known by its file: the folder's name, or the file's where it says more."""
    if file.name != CONFIG:
        return file.stem
    folder = file.absolute().parent
    whole = folder.parent if folder.name in DENOISERS and (folder.parent / PIPELINE).exists() else folder
    return whole.name or file.stem


def read_json_config(path: Path) -> dict[str, Any]:
    """The object that describes a model, every key once, every number finite. Raises UnreadableFileError."""
    return read_json_object(path, f"a {CONFIG}", "A model is described by one JSON object.")


def read_json_object(path: Path, what: str, hint: str | None = None) -> dict[str, Any]:
    """The object in a JSON file, within the same bounds. Raises UnreadableFileError."""
    return parse_json_object(_decoded(path, _bytes(path, what)), path, hint)


def parse_json_object(text: str, path: Path, hint: str | None = None) -> dict[str, Any]:
    """The object in a JSON text that came from `path`, within the same bounds. Raises UnreadableFileError."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except _RefusedError as problem:
        _refuse(path, "bad_json", str(problem), hint="Write each key once and plain finite numbers.")
    except json.JSONDecodeError as problem:
        place = f"line {problem.lineno}, column {problem.colno}: {problem.msg}"
        _refuse(path, "not_json", "the file is not JSON", got=place, hint=hint)
    except RecursionError:
        _too_deep(path)
    if not isinstance(value, dict):
        kind = type(value).__name__
        _refuse(path, "not_an_object", "the JSON is no object", got=kind, expected="an object of keys and values")
    if not _shallow(value):
        _too_deep(path)
    return value


def _status(path: Path) -> os.stat_result:
    gate.check_path(path)
    try:
        return path.stat()
    except (OSError, ValueError) as problem:
        _refuse(path, "no_file", f"the file cannot be opened: {_reason(problem)}", hint="Check the path.")


def _reason(problem: Exception) -> str:
    """The system's own words, without the path again."""
    return problem.strerror or type(problem).__name__ if isinstance(problem, OSError) else str(problem)


def read_table_text(path: Path) -> str:
    """The text of a CSV file, the mark that spreadsheets put before it left out. Raises UnreadableFileError."""
    content = _bytes(path, "a CSV file").removeprefix(codecs.BOM_UTF8)
    return _decoded(path, content, "a table with a header")


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file. Raises UnreadableFileError."""
    text = _decoded(path, _bytes(path, "a TOML file"), "tables of keys and values")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        _refuse(path, "not_toml", "the file is not TOML", got=str(problem) or "nested too deep")


def _bytes(path: Path, what: str = f"a {CONFIG}") -> bytes:
    """The content of a regular file within bounds; asked before it is opened and again once open."""
    _check_regular(path, _status(path), what)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as problem:
        _refuse(path, "no_file", f"the file cannot be opened: {_reason(problem)}", hint="Check its permissions.")
    with os.fdopen(handle, "rb") as stream:
        _check_regular(path, os.fstat(stream.fileno()), what)
        try:
            content = stream.read(MAX_BYTES + 1)
        except OSError as problem:
            _refuse(path, "no_file", f"the file cannot be read: {_reason(problem)}")
    if len(content) > MAX_BYTES:
        _too_large(path, "more than it says")
    return content


def _check_regular(path: Path, status: os.stat_result, what: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        _refuse(path, "not_a_file", "not a regular file", got=kind, expected=what)
    if status.st_size > MAX_BYTES:
        _too_large(path, f"{status.st_size:,} bytes")


_MARKS = {codecs.BOM_UTF8: "UTF-8", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def _decoded(path: Path, content: bytes, what: str = "a JSON object") -> str:
    for mark, name in _MARKS.items():  # JSON has none (RFC 8259 §8.1), and tools that read on disagree about it
        if content.startswith(mark):
            hint = "Save it as UTF-8 without a mark."
            _refuse(path, "byte_order_mark", "the file starts with a byte order mark", got=name, hint=hint)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as problem:
        hint = "Save it as UTF-8; weights (safetensors, gguf, bin) are other formats."
        _refuse(path, "not_utf8", "the file is not UTF-8 text", got=f"a stray byte at {problem.start:,}", hint=hint)
    if not text.strip():
        _refuse(path, "empty_file", "the file is empty", expected=what)
    return text


class _RefusedError(Exception):
    """JSON that parses but is refused; raised out of the parser's hooks."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _RefusedError(f"the key {shown(twice)} is given twice")
    return found


def _constant(word: str) -> NoReturn:
    raise _RefusedError(f"{word} is no number of JSON")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _RefusedError(f"the number {shown(text)} is too large")
    return number


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _RefusedError(f"a whole number of {len(text):,} digits is too long")
    return int(text)


def _shallow(value: Any) -> bool:
    """Whether containers are nested at most MAX_NESTING deep."""
    level: list[Any] = [value]
    for _ in range(MAX_NESTING):
        level = [item for node in level for item in _items(node) if isinstance(item, dict | list)]
        if not level:
            return True
    return False


def _items(node: Any) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node


def _too_deep(path: Path) -> NoReturn:
    _refuse(path, "too_deep", "the JSON is nested too deep", expected=f"at most {MAX_NESTING} levels")


def _too_large(path: Path, got: str) -> NoReturn:
    limit = f"at most {MAX_BYTES // MEGA} MB"
    _refuse(path, "too_large", "the file is too large for a config", got=got, expected=limit, hint="Is it the weights?")


def _refuse(path: Path, code: str, message: str, **parts: Any) -> NoReturn:
    where = str(path) if len(str(path)) < 300 else f"{str(path)[:299]}…"
    raise UnreadableFileError(Fault(code=code, message=message, where=where.replace("\0", "\\0"), **parts))
