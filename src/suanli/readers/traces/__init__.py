"""Traces of profilers, one file a format, one Trace out."""
