"""Counts any torch module by running it once under torch's dispatcher, on the meta device unless told otherwise."""

from suanli.readers.kinds import is_module
from suanli.readers.torch_module.books import Traced
from suanli.readers.torch_module.load import PREFIX, load_factory
from suanli.readers.torch_module.trace import trace

__all__ = ["PREFIX", "Traced", "is_module", "load_factory", "trace"]
