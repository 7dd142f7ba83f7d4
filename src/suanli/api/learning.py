"""`suanli.learn`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from suanli.api.keeping import keeps_request
from suanli.api.request import Request
from suanli.catalog.lessons import LANGUAGES, TOPICS
from suanli.errors import shown, unknown_name
from suanli.learn import contents, teach
from suanli.nouns.result import Result
from suanli.units import parse

# Options of each lesson that has some.
OPTIONS: dict[str, tuple[str, ...]] = {
    "backprop": ("inputs", "targets", "weights", "hidden_bias", "output_bias", "rate", "steps"),
    "transformer": ("prompt", "new_tokens", "seed"),
}
_COUNTS = {"inputs": 2, "targets": 2, "weights": 8}
_KEYWORDS = {"rate": "learning_rate"}
MOST_STEPS, MOST_SIZE, MOST_PROMPT, MOST_SEED = 100_000, 1e6, 2000, 2**32 - 1


@keeps_request
def learn(
    topic: str | None = None,
    *,
    lang: str | None = None,
    inputs: Any = None,
    targets: Any = None,
    weights: Any = None,
    hidden_bias: Any = None,
    output_bias: Any = None,
    rate: Any = None,
    steps: Any = None,
    prompt: str | None = None,
    new_tokens: Any = None,
    seed: Any = None,
) -> Result:
    """A worked lesson, computed now, in English (`lang` en) or 中文 (zh); without a topic the list of them.

    `inputs`, `targets`, `weights`, the biases, `rate` and `steps` change the example of backprop; `prompt`,
    `new_tokens` and `seed` that of transformer. Raises InputError listing every fault.

    >>> round(learn("backprop").values["out_h2"], 8)
    0.63064853
    """
    typed = {name: value for name, value in locals().items() if name not in ("topic", "lang") and value is not None}
    request = Request()
    language = request.word("lang", lang, LANGUAGES[0])
    _check_name(request, "language", language, LANGUAGES, "--lang")
    name = None if topic is None else str(topic).strip().lower()
    if name is not None:
        _check_name(request, "topic", name, TOPICS, "TOPIC")
    options = _read(request, name, typed)
    request.check()
    found = contents(language) if name is None else teach(name, language, options)
    return Result(
        kind="learn",
        inputs={"topic": name, **request.given, "assumed": request.assumed},
        result=found,
    )


def _check_name(request: Request, kind: str, name: str, known: Sequence[str], where: str) -> None:
    if name not in known:
        hint = f"{kind.capitalize()}s: " + ", ".join(known) + "."
        request.errors.append(unknown_name(kind, name, known, where=where, hint=hint))


def _read(request: Request, topic: str | None, typed: dict[str, Any]) -> dict[str, Any]:
    """Options as keywords of the lesson; a fault for one that belongs to another lesson."""
    own = OPTIONS.get(topic or "", ())
    found: dict[str, Any] = {}
    for name, value in typed.items():
        if name not in own:
            where = next(each for each, options in OPTIONS.items() if name in options)
            request.fault("no_such_option", f"an option of the lesson {where}", name, got=shown(value),
                          hint=f"`suanli learn {where}` takes it.")  # fmt: skip
            continue
        found[_KEYWORDS.get(name, name)] = _value(request, name, value)
    return found


def _value(request: Request, name: str, value: Any) -> Any:
    if name in _COUNTS:
        return _numbers(request, name, value)
    if name in ("steps", "new_tokens", "seed"):
        return _whole(request, name, value)
    if name == "prompt":
        return _prompt(request, value)
    request.given[name] = value
    return _number(request, name, value)


def _number(request: Request, name: str, value: Any) -> float | None:
    """A finite number that the example can bear."""
    read = request.attempt(lambda: float(parse(value, "factor", f"--{name.replace('_', '-')}", signed=True)))
    if read is not None and (not math.isfinite(read) or abs(read) > MOST_SIZE):
        request.fault(f"bad_{name}", "a number too large", name, got=shown(value), expected=f"at most {MOST_SIZE:,.0f}")
    return read


def _numbers(request: Request, name: str, value: Any) -> tuple[float, ...] | None:
    """So many numbers: a text with commas, or a list."""
    request.given[name] = value if isinstance(value, str) else list(value) if isinstance(value, Sequence) else value
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or len(parts) != _COUNTS[name]:
        request.fault(f"bad_{name}", f"{name} are not what the network has", name, got=shown(value),
                      expected=f"{_COUNTS[name]} numbers with commas between them")  # fmt: skip
        return None
    read = [_number(request, name, part) for part in parts]
    return None if None in read else tuple(each for each in read if each is not None)


def _whole(request: Request, name: str, value: Any) -> int | None:
    found = request.whole(name, value)
    most = {"steps": MOST_STEPS, "seed": MOST_SEED}.get(name)
    if found is not None and most is not None and found > most:
        request.fault(f"bad_{name}", f"{name} is not possible", name, got=shown(value), expected=f"at most {most:,}")
    if found == 0 and name == "new_tokens":
        request.fault("bad_new_tokens", "no token to put out", name, got=shown(value), expected="at least 1")
    return found


def _prompt(request: Request, value: Any) -> str | None:
    request.given["prompt"] = value
    if not isinstance(value, str) or not value or len(value) > MOST_PROMPT or not _encodable(value):
        request.fault("bad_prompt", "no prompt that can be read", "prompt", got=shown(value),
                      expected=f"1 to {MOST_PROMPT:,} characters")  # fmt: skip
        return None
    return value


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as a broken terminal sends it
        return False
    return True
