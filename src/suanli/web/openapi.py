"""The OpenAPI document of /api: a schema a verb, from the options of its command."""

from __future__ import annotations

from typing import Any

from suanli.errors import Fault
from suanli.version import VERSION
from suanli.web import verbs as kinds
from suanli.web.settings import Settings
from suanli.web.verbs import Option, Verb, verbs

_SCALAR: tuple[dict[str, Any], ...] = ({"type": "string"}, {"type": "number"})
_TEXT = {"type": ["string", "null"]}
ERRORS = {
    "400": "the request cannot be read", "401": "the token is missing", "403": "a page of another site asks",
    "404": "no such verb, job or upload", "413": "too large", "415": "neither JSON nor a form",
    "421": "not a name of this server", "422": "what was asked is wrong: every fault is listed",
    "500": "a mistake of the server's", "503": "too many ask: come again",
    "504": "too slow: ask for less, or for a job",
}  # fmt: skip


def openapi(settings: Settings) -> dict[str, Any]:
    """The document."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {"Fault": _fault(), "Error": _error(), "Envelope": _envelope(), "Job": _job(),
                               "Kept": _kept()}  # fmt: skip
    for verb in verbs().values():
        schemas[verb.name] = _request(verb)
        paths[f"/api/{verb.name}"] = {"post": _operation(verb, "Envelope", "200", verb.name)}
        paths[f"/api/jobs/{verb.name}"] = {"post": _operation(verb, "Job", "202", f"job_{verb.name}")}
    paths |= _job_paths() | _upload_paths()
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Suanli", "version": VERSION, "description": "The verbs of the command line over HTTP: the "
                 "answer is what `--json` prints. A file is an upload, never a path."},
        "paths": paths,
        "components": {"schemas": schemas},
    }  # fmt: skip
    if settings.token is not None:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found


def _request(verb: Verb) -> dict[str, Any]:
    """The JSON body of a verb. Options that take a file alone are for forms."""
    options = [each for each in verb.options if each.kind not in (kinds.FILE, kinds.FILES)]
    found: dict[str, Any] = {
        "type": "object", "title": verb.name, "description": verb.doc, "additionalProperties": False,
        "properties": {each.name: _property(each) for each in options},
    }  # fmt: skip
    required = [each.name for each in options if each.required]
    return found | ({"required": required} if required else {})


def _property(option: Option) -> dict[str, Any]:
    found: dict[str, Any] = {"description": option.help, "title": option.flag}
    if option.kind == kinds.FLAG:
        return found | {"type": "boolean", "default": False}
    shapes: list[dict[str, Any]] = [_SCALAR[0]] if option.word else list(_SCALAR)
    if option.lists:
        bounds = {"minItems": 2, "maxItems": 2} if option.kind == kinds.PAIR else {}
        shapes.append({"type": "array", "items": {"anyOf": list(_SCALAR)}, **bounds})
    if option.objects:
        shapes.append({"type": "object"})
    examples = option.choices()[:20]
    return found | {"anyOf": shapes} | ({"examples": examples} if examples else {})


def _form(verb: Verb) -> dict[str, Any]:
    """The same as a form, files among it."""
    properties: dict[str, Any] = {}
    for each in verb.options:
        file = {"type": "string", "contentMediaType": "application/octet-stream"}
        if each.kind == kinds.FILES:
            properties[each.name] = {"type": "array", "items": file, "description": each.help}
        elif each.kind == kinds.FILE:
            properties[each.name] = file | {"description": each.help}
        else:
            properties[each.name] = {"type": "string"}
    required = [each.name for each in verb.options if each.required]
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _operation(verb: Verb, answer: str, status: str, id_: str) -> dict[str, Any]:
    said = verb.doc.partition("\n")[0]
    return {
        "operationId": id_,
        "summary": said if answer == "Envelope" else f"As a job: {said}",
        "requestBody": {
            "required": any(each.required for each in verb.options),
            "content": {
                "application/json": {"schema": _ref(verb.name)},
                "multipart/form-data": {"schema": _form(verb)},
            },
        },
        "responses": _responses(status, answer),
    }


def _responses(status: str, schema: str) -> dict[str, Any]:
    good = {"description": "what was found", "content": {"application/json": {"schema": _ref(schema)}}}
    bad = {
        code: {"description": what, "content": {"application/json": {"schema": _ref("Error")}}}
        for code, what in ERRORS.items()
    }
    return {status: good, **bad}


def _job_paths() -> dict[str, Any]:
    place = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "/api/jobs/{id}": {
            "parameters": [place],
            "get": {"operationId": "look_at_job", "summary": "How far a job is; its result when it is done.",
                    "responses": _responses("200", "Job")},
            "delete": {"operationId": "cancel_job", "summary": "Stop a job.", "responses": _responses("200", "Job")},
        }
    }  # fmt: skip


def _upload_paths() -> dict[str, Any]:
    file = {"type": "string", "contentMediaType": "application/octet-stream"}
    form = {"multipart/form-data": {"schema": {"type": "object", "properties": {"model": file}}}}
    config = {"application/json": {"schema": {"type": "object"}}, **form}
    answers = _responses("201", "Kept")
    return {
        "/api/config": {"post": {
            "operationId": "keep_config", "summary": "Keep a config under a name that addresses can hold, as MODEL.",
            "requestBody": {"required": True, "content": config}, "responses": answers}},
        "/api/uploads": {"post": {
            "operationId": "keep_upload", "summary": "Keep files, each named after the option it is for.",
            "requestBody": {"required": True, "content": form}, "responses": answers}},
    }  # fmt: skip


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _fault() -> dict[str, Any]:
    properties: dict[str, Any] = {name: _TEXT for name in Fault.__dataclass_fields__ if name not in ("code", "message")}
    properties |= {"code": {"type": "string"}, "message": {"type": "string"},
                   "nearest": {"type": "array", "items": {"type": "string"}}}  # fmt: skip
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def _error() -> dict[str, Any]:
    properties = {"ok": {"const": False}, "error": _ref("Fault"), "errors": {"type": "array", "items": _ref("Fault")}}
    return {"type": "object", "properties": properties, "required": ["ok", "error", "errors"]}


def _envelope() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "ok": {"type": "boolean"}, "kind": {"type": "string"}, "schema": {"type": "integer"},
        "version": {"type": "string"}, "inputs": {"type": "object"}, "convention": _TEXT, "result": {"type": "object"},
        "uncounted": {"type": "array"}, "sources": {"type": "array", "items": {"type": "string"}},
        "notes": {"type": "array", "items": {"type": "string"}},
    }  # fmt: skip
    return {"type": "object", "properties": properties, "required": list(properties)}


def _job() -> dict[str, Any]:
    states = ["waiting", "running", "done", "failed", "cancelled"]
    properties: dict[str, Any] = {
        "ok": {"type": "boolean"}, "kind": {"const": "job"}, "id": {"type": "string"}, "verb": {"type": "string"},
        "state": {"enum": states}, "done": {"type": "integer"}, "total": {"type": "integer"},
        "what": {"type": "string"}, "seconds": {"type": "number"},
    }  # fmt: skip
    required = list(properties)
    properties |= {"result": _ref("Envelope"), "error": _ref("Fault"), "errors": {"type": "array"}}
    return {"type": "object", "properties": properties, "required": required}


def _kept() -> dict[str, Any]:
    names = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}
    return {"type": "object", "properties": {"ok": {"const": True}, "kind": {"const": "upload"}, "names": names},
            "required": ["ok", "kind", "names"]}  # fmt: skip
