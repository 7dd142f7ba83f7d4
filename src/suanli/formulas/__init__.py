"""Pure arithmetic: one registered function a quantity. Importing this package registers them all."""

from suanli.formulas import counting, gpt, memory, running, trainers
from suanli.formulas.registry import Formula, all_formulas

__all__ = ["Formula", "all_formulas", "counting", "gpt", "memory", "running", "trainers"]
