"""Results that Suanli wrote itself (`suanli VERB … --json`, or `-o FILE.json`), read again as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suanli.errors import Fault, InputError, shown
from suanli.nouns.result import SCHEMA
from suanli.readers.files import read_json_object

SUFFIX = ".json"


def read_result(path: Path, kind: str) -> dict[str, Any]:
    """The envelope of a result of that kind. Raises UnreadableFileError, or InputError where it is another file."""
    found = read_json_object(path, f"a result of `suanli {kind} --json`")
    where, hint = str(path), f"Make one with `suanli {kind} … -o FILE.json`."
    if found.get("kind") != kind or not isinstance(found.get("inputs"), dict) or found.get("schema") != SCHEMA:
        got = f"kind {shown(found.get('kind'))}, schema {shown(found.get('schema'))}"
        raise InputError(Fault(code="other_result", message=f"the file is no result of `suanli {kind}`", where=where,
                               got=got, expected=f"kind '{kind}', schema {SCHEMA}", hint=hint))  # fmt: skip
    if found.get("ok") is not True or not isinstance(found.get("result"), dict):
        got = f"ok {shown(found.get('ok'))}"
        raise InputError(Fault(code="failed_result", message="the result in the file is an error", where=where,
                               got=got, expected="a result that came out", hint=hint))  # fmt: skip
    return found
