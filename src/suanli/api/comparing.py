"""`suanli.compare`."""

from __future__ import annotations

from typing import Any

from suanli.api.keeping import keeps_request
from suanli.compare.peers import Progress  # loads the package before `suanli.compare` is bound to the verb
from suanli.nouns.result import Result


@keeps_request
def compare(
    model: Any,
    *,
    seq: Any = None,
    batch: Any = None,
    input: Any = None,
    device: str | None = None,
    tools: Any = None,
    time_limit: Any = None,
    memory_limit: Any = None,
    progress: Progress | None = None,
) -> Result:
    """The same model through every third-party counter installed, and why each differs. Raises InputError.

    Each counter runs in a process of its own within `time_limit` (seconds, 120) and `memory_limit` (bytes, 8 GiB); one
    that fails is a row with the reason. `tools` names some of them, `device` is auto, meta or cpu. `progress` is called
    with a title, how many are done, and of how many.

    >>> compare("gpt2", tools="megatron,palm").right[1].equal is None
    True
    """
    from suanli.api.compared import compare_model  # noqa: PLC0415  loaded where it is needed

    return compare_model(
        model, seq=seq, batch=batch, input_=input, device=device, tools=tools, time_limit=time_limit,
        memory_limit=memory_limit, progress=progress,
    )  # fmt: skip
