"""Serving: what a replica holds, how much of it is left for users, what their tokens cost.

`kv_cache`, `weight_bytes` and `stored_weights` give bytes; `activation_bytes`, `asked` and `memory_budget` what is left
for the cache; `check_fits` refuses; `token_cost` and `token_energy` follow a measured or predicted rate.
"""

from suanli.plan.serving.budget import Asked, activation_bytes, asked, memory_budget
from suanli.plan.serving.cache import kv_cache
from suanli.plan.serving.cost import (
    Load,
    catalogue_price,
    energy_read,
    token_cost,
    token_energy,
    utilisation_for_cost,
)
from suanli.plan.serving.fits import DoesNotFitError, Remedy, check_fits, fits
from suanli.plan.serving.stored import stored_weights
from suanli.plan.serving.weights import weight_bytes

__all__ = [
    "Asked",
    "DoesNotFitError",
    "Load",
    "Remedy",
    "activation_bytes",
    "asked",
    "catalogue_price",
    "check_fits",
    "energy_read",
    "fits",
    "kv_cache",
    "memory_budget",
    "stored_weights",
    "token_cost",
    "token_energy",
    "utilisation_for_cost",
    "weight_bytes",
]
