"""The OpenAPI document: a schema a verb, valid, and requests made from it at random find no mistake of ours."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from starlette.testclient import TestClient

from suanli.web.openapi import openapi
from suanli.web.settings import Settings
from suanli.web.verbs import REFUSED, verbs

DOCUMENT = openapi(Settings())
SCHEMAS = DOCUMENT["components"]["schemas"]


def test_a_schema_a_verb() -> None:
    assert set(verbs()) <= set(SCHEMAS)
    for verb in verbs().values():
        assert f"/api/{verb.name}" in DOCUMENT["paths"]
        assert f"/api/jobs/{verb.name}" in DOCUMENT["paths"]
        assert SCHEMAS[verb.name]["additionalProperties"] is False
        for option in verb.options:
            assert option.help, (verb.name, option.name)


def test_help_is_that_of_the_command_line() -> None:
    seq = SCHEMAS["count"]["properties"]["seq"]
    assert seq["description"] == "Positions of a sequence: 2048, 8Ki. Default: min(2048, the model's)."
    assert seq["title"] == "--seq"
    assert "h100-sxm" in " ".join(verbs()["mfu"].by_name["gpu"].choices())
    assert SCHEMAS["count"]["required"] == ["model"]


def test_options_that_are_refused_are_not_offered() -> None:
    for (verb, option), why in REFUSED.items():
        assert option not in SCHEMAS[verb]["properties"]
        assert why


def test_files_are_for_forms_alone() -> None:
    form = DOCUMENT["paths"]["/api/explain"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert form["properties"]["traces"]["type"] == "array"
    assert "traces" not in SCHEMAS["explain"]["properties"]


def test_a_token_is_in_the_document() -> None:
    found = openapi(Settings(token="a-long-token"))
    assert found["security"] == [{"token": []}]
    assert "security" not in DOCUMENT


def test_served(client: TestClient) -> None:
    served = client.get("/openapi.json")
    assert served.json()["openapi"] == "3.1.0"
    assert served.json()["paths"].keys() == DOCUMENT["paths"].keys()


# --- at random ----------------------------------------------------------------------------------------------------

RUNS = ("trace", "input", "like")  # of count: they import torch and run a model, in seconds
# Without these a request is work of minutes: every counter, every check.
NEEDED: dict[str, dict[str, list[Any]]] = {
    "compare": {"tools": ["palm", "megatron", "nothing", ["palm"], 5]},
    "verify": {"only": ["articles", "nothing", "", ["articles"], 5]},
}


@pytest.mark.parametrize("verb", verbs())
def test_requests_at_random_find_no_mistake(client: TestClient, verb: str) -> None:
    """JSON drawn from the schema of each verb, right and wrong: every answer has its shape, and none is a 500."""
    schema = schemathesis.openapi.from_dict(only(verb))
    operation = schema[f"/api/{verb}"]["POST"]
    seen: list[int] = []

    @hypothesis.settings(max_examples=10, deadline=None, database=None, derandomize=True,
                         suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        answer = client.post(f"/api/{verb}", json=case.body if isinstance(case.body, dict) else {})
        seen.append(answer.status_code)
        assert answer.status_code in (200, 422, 504), (case.body, answer.text[:500])
        said = answer.json()
        assert set(said) == (
            {"ok", "error", "errors"} if answer.status_code != 200 else set(SCHEMAS["Envelope"]["required"])
        )

    ask()
    assert seen


def only(verb: str) -> dict[str, Any]:
    """The document with the JSON of one verb, its model a preset now and then."""
    operation = DOCUMENT["paths"][f"/api/{verb}"]["post"]
    content = {"application/json": operation["requestBody"]["content"]["application/json"]}
    post = operation | {"requestBody": operation["requestBody"] | {"content": content}}
    properties = dict(SCHEMAS[verb]["properties"])
    for name in RUNS:
        properties.pop(name, None)
    for name, values in {
        "model": ["gpt2", "linear(4, 8)"],
        "gpu": ["h100-sxm"],
        "gpus": [8, "16"],
        "id": ["mfu"],
    }.items():
        if name in properties:
            properties[name] = {"anyOf": [{"enum": values}, {"enum": values}, *properties[name].get("anyOf", [])]}
    needed = NEEDED.get(verb, {})
    properties |= {name: {"enum": values} for name, values in needed.items()}
    required = [*SCHEMAS[verb].get("required", ()), *needed]
    schemas = SCHEMAS | {verb: SCHEMAS[verb] | {"properties": properties, "required": required}}
    return DOCUMENT | {"paths": {f"/api/{verb}": {"post": post}}, "components": {"schemas": schemas}}
