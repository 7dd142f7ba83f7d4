"""Traces of profilers, one file a format, one Trace out."""

from suanli.readers.traces.front import read_trace

__all__ = ["read_trace"]
