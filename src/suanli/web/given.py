"""What a browser sent becomes keywords of a verb; everything that would reach beyond the request is refused here first.

Readers hold the same line further down (`suanli.readers.gate`): this module gives the reason in the sender's terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suanli.catalog.presets import find_preset
from suanli.errors import Fault, FaultList, InputError, SuanliError, nearest_names, shown, unknown_name
from suanli.readers import files as json_files
from suanli.readers.gate import UPLOAD
from suanli.readers.hub import HUB_ID
from suanli.readers.kinds import JAX, KERAS, TORCH
from suanli.readers.layer_expr import looks_like_expression
from suanli.web import verbs as kinds
from suanli.web.verbs import Option, Verb, verbs

MODEL_IS = "a preset, a config pasted or uploaded, a .safetensors or .gguf header uploaded, or a layer expression"
_FILE_ENDS = (".json", ".toml", ".csv", ".onnx", ".safetensors", ".gguf", ".parquet", ".sqlite", ".pb", ".gz", ".py")
MOST_GIVEN = 100  # each unknown one is a fault of its own
_YES, _NO = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


def find_verb(name: str) -> Verb:
    """The verb. Raises UnknownNameError with the nearest names."""
    known = verbs()
    if name not in known:
        raise unknown_name("verb", name, known, where="the address", hint="/openapi.json lists what each takes.")
    return known[name]


def read_given(verb: Verb, given: Mapping[str, Any], files: Mapping[str, Sequence[Path]]) -> dict[str, Any]:
    """Keywords of the verb: values as sent, uploads as paths. Raises InputError listing every fault."""
    faults, found = FaultList(InputError), {}
    if len(given) > MOST_GIVEN:
        faults.add(code="too_many_options", message=f"{verb.name} has no so many options", where="the request",
                   got=f"{len(given):,}", expected=f"at most {len(verb.options)}")  # fmt: skip
        faults.raise_if_any()
    options = verb.by_name
    for name, value in given.items():
        option = options.get(name)
        if option is None:
            _unknown(faults, verb, name, value)
        elif value is not None:
            found[name] = _value(faults, option, value)
    for name, paths in files.items():
        option = options.get(name)
        if option is None:
            _unknown(faults, verb, name, paths[0].name)
        else:
            found[name] = _uploaded(faults, option, paths, name in given)
    for option in verb.options:
        if option.required and found.get(option.name) is None and not faults.faults:
            faults.add(code="missing_option", message=f"{option.name.replace('_', ' ')} is needed", where=option.flag,
                       expected=MODEL_IS if option.kind == kinds.MODEL else option.help.rstrip("."))  # fmt: skip
    faults.raise_if_any()
    return found


def _unknown(faults: FaultList, verb: Verb, name: str, value: Any) -> None:
    if name in verb.refused:
        faults.add(code="option_refused", message=f"the option is not taken over the web: {verb.refused[name]}",
                   where=name, got=shown(value))  # fmt: skip
        return
    faults.add(code="unknown_option", message=f"{verb.name} has no option {shown(name)}", where=shown(name),
               nearest=nearest_names(str(name), verb.by_name), hint="/openapi.json lists what it takes.")  # fmt: skip


def _uploaded(faults: FaultList, option: Option, paths: Sequence[Path], twice: bool) -> Any:
    if option.kind not in kinds.UPLOADED:
        faults.add(code="not_a_file_option", message="the option takes no file", where=option.flag, got=paths[0].name,
                   expected=option.help)  # fmt: skip
    elif twice:
        faults.add(code="contradiction", message="both a file and a value are given", where=option.flag,
                   got=paths[0].name, expected="one of them")  # fmt: skip
    elif option.kind == kinds.FILES:
        return [str(path) for path in paths]
    elif len(paths) > 1:
        faults.add(code="contradiction", message="several files for an option that takes one", where=option.flag,
                   got=", ".join(path.name for path in paths)[:100], expected="one file")  # fmt: skip
    return str(paths[0]) if option.kind == kinds.FILE else paths[0]


def _value(faults: FaultList, option: Option, value: Any) -> Any:
    """The value as the verb takes it; None where a fault was recorded."""
    if option.kind in (kinds.FILE, kinds.FILES):
        faults.add(code="path_refused", message="a file is an upload, never a path: nothing of the server's is opened",
                   where=option.flag, got=shown(value), hint=UPLOAD)  # fmt: skip
        return None
    if option.kind == kinds.FLAG:
        return _flag(faults, option, value)
    if not _fits(option, value):
        faults.add(code="bad_type", message=f"{option.name.replace('_', ' ')} is not a value that can be read",
                   where=option.flag, got=shown(value), expected=_taken(option))  # fmt: skip
        return None
    if option.kind == kinds.MODEL:
        return _model(faults, option, value)
    if option.kind == kinds.TEXT_OR_FILE and isinstance(value, str) and _is_file_name(value):
        faults.add(code="path_refused", message="a file is an upload, never a path: nothing of the server's is opened",
                   where=option.flag, got=shown(value), hint=UPLOAD)  # fmt: skip
        return None
    return [value] if option.kind == kinds.MANY and not isinstance(value, list) else value


def _flag(faults: FaultList, option: Option, value: Any) -> bool:
    word = str(value).strip().lower() if isinstance(value, bool | int | str) else ""
    if word not in (*_YES, *_NO):
        faults.add(code="bad_type", message=f"{option.name} is yes or no", where=option.flag, got=shown(value),
                   expected="true or false")  # fmt: skip
    return word in _YES


def _fits(option: Option, value: Any) -> bool:
    if isinstance(value, Mapping):
        return option.objects and (option.kind == kinds.MODEL or all(_scalar(each) for each in value.values()))
    if isinstance(value, list):
        return option.lists and (option.kind != kinds.PAIR or len(value) == 2) and all(map(_plain, value))
    return isinstance(value, str) or (_scalar(value) and not option.word)


def _scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _plain(value: Any) -> bool:
    """A scalar, or a pair of a point."""
    return _scalar(value) or (isinstance(value, list) and len(value) == 2 and all(map(_scalar, value)))


def _taken(option: Option) -> str:
    parts = ["a text"] if option.word else ["a text or a number"]
    return " or ".join(
        [*parts, *(["a list of them"] if option.lists else []), *(["an object"] if option.objects else [])]
    )


# --- MODEL --------------------------------------------------------------------------------------------------------


def _model(faults: FaultList, option: Option, value: Any) -> Any:
    """A model that a request may name; a config pasted as text becomes the object it is."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("{"):
        try:
            return json_files.parse_json_object(text, Path(option.flag), "Paste one whole config.json.")
        except SuanliError as problem:
            faults.faults.extend(problem.faults)
            return None
    fault = _refusal(text, option.flag)
    if fault is not None:
        faults.faults.append(fault)
        return None
    return value


def _refusal(text: str, where: str) -> Fault | None:
    """Why a text is not taken as MODEL; None where it may be one."""
    if looks_like_expression(text) or _is_preset(text, where):
        return None
    if text.startswith((TORCH, JAX, KERAS)):
        return Fault(code="import_refused", message="nothing that a request over the web names is imported or run",
                     where=where, got=shown(text), expected=MODEL_IS,
                     hint="Run `suanli` in a terminal for code of your own.")  # fmt: skip
    if _is_file_name(text):
        return Fault(code="path_refused", message="no path of the server's is opened for a request over the web",
                     where=where, got=shown(text), expected=MODEL_IS, hint=UPLOAD)  # fmt: skip
    if HUB_ID.fullmatch(text):
        return Fault(code="fetch_refused", message="no preset has that name, and nothing is fetched from a hub for a "
                     "request over the web", where=where, got=shown(text), expected=MODEL_IS,
                     hint="Paste or upload its config.json.")  # fmt: skip
    return None


def _is_preset(text: str, where: str) -> bool:
    try:
        find_preset(text[:300], where)
    except SuanliError:
        return False
    return True


def _is_file_name(text: str) -> bool:
    """Whether a text looks like the name of a file or folder."""
    word = text.strip()
    return (
        word.startswith(("/", "./", "../", "~", "\\", "file:")) or word in (".", "..") or "\\" in word or "\0" in word
        or word.lower().endswith(_FILE_ENDS) or word.count("/") > 1 or word[1:3] in (":/", ":\\")
    )  # fmt: skip
