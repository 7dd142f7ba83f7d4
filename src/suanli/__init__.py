"""Suanli keeps the books of deep-learning compute.

`suanli.VERB(...)` returns the same result object that `suanli VERB --json` prints:

>>> import suanli
>>> suanli.count("gpt2").params.total
124439808
"""

from suanli.api import calibrate, compare, count, goodput, gpus, layout, learn, mfu, models, scale, train, verify, why
from suanli.version import VERSION

__version__ = VERSION

__all__ = [
    "__version__", "calibrate", "compare", "count", "goodput", "gpus", "layout", "learn", "mfu", "models", "scale",
    "train", "verify", "why",
]  # fmt: skip
