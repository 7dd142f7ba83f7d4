"""The front door: a request as typed (names, paths, numbers with units) becomes nouns, a verb, and its result.

The command line, notebooks and the web API all enter here, so they give the same result for the same request.
"""

from suanli.api.calibration import calibrate
from suanli.api.catalogues import gpus, models
from suanli.api.comparing import compare
from suanli.api.counting import count
from suanli.api.explaining import explain
from suanli.api.folders import explain_folder, summarise
from suanli.api.learning import learn
from suanli.api.measuring import mfu
from suanli.api.planning import layout
from suanli.api.reasons import why
from suanli.api.reliability import goodput
from suanli.api.repeating import diff, rerun
from suanli.api.scaling import scale
from suanli.api.serving import infer
from suanli.api.training import train
from suanli.api.verifying import verify

__all__ = [
    "calibrate", "compare", "count", "diff", "explain", "explain_folder", "goodput", "gpus", "infer", "layout", "learn",
    "mfu", "models", "rerun", "scale", "summarise", "train", "verify", "why",
]  # fmt: skip
