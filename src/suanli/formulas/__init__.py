"""Pure arithmetic: one registered function a quantity. Importing this package registers them all."""

from suanli.formulas import (
    articles,
    backprop,
    collectives,
    counting,
    electra,
    gpt,
    kernels,
    memory,
    operators,
    parallel,
    reliability,
    running,
    scaling,
    scans,
    serving,
    steps,
    trainers,
)
from suanli.formulas.registry import Formula, all_formulas

__all__ = [
    "Formula",
    "all_formulas",
    "articles",
    "backprop",
    "collectives",
    "counting",
    "electra",
    "gpt",
    "kernels",
    "memory",
    "operators",
    "parallel",
    "reliability",
    "running",
    "scaling",
    "scans",
    "serving",
    "steps",
    "trainers",
]
