"""The command line: read → verb → report. One file a verb."""

from __future__ import annotations

from suanli.cli.main import main

__all__ = ["main"]
