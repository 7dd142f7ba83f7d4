"""Results of every kind that has pictures: the requests of `made_results`, and more."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import made_results
from made_trace import EXAMPLE

import suanli
from suanli.nouns.result import Result

EVENTS = '''start,end,kind,cause
0h,22h,training,
22h,22.5h,restart,gpu
22.5h,24h,replay,gpu
24h,46h,training,
46h,47h,restart,"<script>network & ""switch"""
47h,70h,training,
'''


def from_events() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        path.write_text(EVENTS)
        return suanli.goodput(events=path, gpus=16)


def summarised() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        return suanli.summarise(EXAMPLE, output=Path(folder) / "step.parquet")


MORE: dict[str, Callable[[], Result]] = {
    "count_weights": lambda: suanli.count("linear(64, 64)", phase="forward"),
    "layout_pipeline": lambda: suanli.layout("gpt2", gpu="h100-sxm", gpus=8, global_batch=64, seq=512, top=2,
                                             pin={"pp": 4, "tp": 1}),
    "goodput_measured": from_events,
    "infer_users": lambda: suanli.infer("llama-3.1-8b", gpu="h100-sxm", gpus=1, concurrency=16, price=2),
    "models_all": suanli.models,
    "gpus_all": suanli.gpus,
    "learn_transformer": lambda: suanli.learn("transformer"),
    "learn_parallel": lambda: suanli.learn("parallel"),
    "learn_flops_zh": lambda: suanli.learn("flops", lang="zh"),
    "explain_folder": lambda: suanli.explain(made_results.EXAMPLES / "fleet"),
    "summarise": summarised,
}  # fmt: skip
NAMES = (*(name for name in made_results.REQUESTS if not name.startswith("why")), *MORE)
_MADE: dict[str, Result] = {}


def drawn_result(name: str) -> Result:
    """A result by name, made once a process."""
    if name not in MORE:
        return made_results.made(name)
    if name not in _MADE:
        _MADE[name] = MORE[name]()
    return _MADE[name]
