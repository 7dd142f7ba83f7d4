"""`suanli.verify` as called from Python: what are no names is refused word by word."""

from __future__ import annotations

from typing import Any

import pytest

import suanli
from suanli.errors import InputError

NAMES = "expected names with commas between them, or a list of names."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"only": 3}, f"these are no names in --only; got 3; {NAMES}"),
        ({"only": ["articles", None]}, f"these are no names in --only; got ['articles', None]; {NAMES}"),
        ({"types": 3}, f"these are no names in --types; got 3; {NAMES}"),
        ({"only": "models", "types": [3]}, f"these are no names in --types; got [3]; {NAMES}"),
        ({"only": b"articles"}, f"these are no names in --only; got b'articles'; {NAMES}"),
        ({"types": "gpt2"}, "types are checked with the models in --types; got gpt2. Add --only models."),
    ],
)
def test_what_are_no_names(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        suanli.verify(**given)
    assert str(caught.value) == said


@pytest.mark.parametrize("only", ["articles", " articles ", ["articles"], ("articles",), {"articles"}])
def test_names_in_every_form(only: Any) -> None:
    found = suanli.verify(only)
    assert found.inputs["only"] == ["articles"]
    assert {claim.section for claim in found.claims} == {"articles"}
