"""`suanli.infer`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suanli.api.keeping import keeps_request
from suanli.nouns.result import Result


@keeps_request
def infer(
    model: Any,
    *,
    gpu: str | None = None,
    gpus: Any = None,
    isl: Any = None,
    osl: Any = None,
    concurrency: Any = None,
    rate: Any = None,
    batch: Any = None,
    ttft: Any = None,
    tpot: Any = None,
    tp: Any = None,
    pp: Any = None,
    ep: Any = None,
    dp_attention: Any = None,
    cp: Any = None,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    preset: str | None = None,
    calibrate: str | Path | None = None,
    draft_tokens: Any = None,
    acceptance: Any = None,
    draft_model: Any = None,
    chunk: Any = None,
    disaggregate: Any = None,
    link: Any = None,
    stages: Any = None,
    price: Any = None,
    sell: Any = None,
    utilisation: Any = None,
    pue: Any = None,
    carbon: Any = None,
    seed: Any = None,
) -> Result:
    """Whether a model fits, how fast one user is, how many users, how many tokens a second, at what cost and energy.

    With `concurrency` (users who never rest), `rate` (requests a second) or `batch` (static) it answers for that load;
    with `ttft` and `tpot` (seconds) it looks for the cheapest layout, and GPU of those named with commas, that meets
    them. `calibrate` is a CSV of measured points of one's own; `draft_tokens`, `acceptance` and `draft_model` are of
    speculative decoding, `chunk` of prefill in pieces, `disaggregate` ("P:D") and `link` of prefill and decode on GPUs
    of their own, `stages` ("pre=5ms:4,post=2ms:4") of work beside the model.
    Raises InputError listing every fault of the request; DoesNotFitError where weights leave no room.

    >>> infer("llama-3-8b", gpu="h100-sxm", concurrency=16).kv_bytes_per_token
    131072
    """
    typed = {name: value for name, value in locals().items() if name != "model"}
    from suanli.api.serving_answers import infer_model  # noqa: PLC0415  loaded where it is needed

    return infer_model(model, typed)
