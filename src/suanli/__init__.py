"""Suanli keeps the books of deep-learning compute.

`suanli.VERB(...)` returns the same result object that `suanli VERB --json` prints:

>>> import suanli
>>> suanli.count("gpt2").params.total
124439808
"""

from suanli.api import (
    calibrate,
    compare,
    count,
    diff,
    explain,
    goodput,
    gpus,
    infer,
    layout,
    learn,
    mfu,
    models,
    rerun,
    scale,
    summarise,
    train,
    verify,
    why,
)
from suanli.nouns.result import Result, show_by
from suanli.version import VERSION

__version__ = VERSION


def _in_a_notebook(result: Result) -> str:
    from suanli.report.notebook import notebook_html  # noqa: PLC0415  loaded with the first result that is shown

    return notebook_html(result)


show_by(_in_a_notebook)

__all__ = [
    "__version__", "calibrate", "compare", "count", "diff", "explain", "goodput", "gpus", "infer", "layout", "learn",
    "mfu", "models", "rerun", "scale", "summarise", "train", "verify", "why",
]  # fmt: skip
