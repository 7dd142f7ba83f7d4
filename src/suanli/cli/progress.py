"""A progress bar on stderr, where that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """What to tell of each thing done (done, of how many, which); None where nobody would see it.

    The bar appears with the first of them and goes with the context.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  only where there is something to show
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, visible=False)
        yield lambda done, total, which: bar.update(
            task, completed=done, total=total, description=which, visible=True
        )  # fmt: skip


PATIENCE_S = 1.0  # shorter work shows no bar


class Bar:
    """A bar on the terminal for work that takes longer than a second; nothing where stderr is no terminal."""

    def __init__(self, what: str = "layouts") -> None:
        self.what = what
        self.started = time.monotonic()
        self.shown: Any = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self.shown is not None:
            self.shown[0].stop()

    def __call__(self, part: float) -> None:
        """Show the part of the work that is done."""
        if not sys.stderr.isatty() or time.monotonic() - self.started < PATIENCE_S:
            return
        if self.shown is None:
            from rich.console import Console  # noqa: PLC0415  only for a bar
            from rich.progress import Progress  # noqa: PLC0415

            bar = Progress(console=Console(stderr=True), transient=True)
            bar.start()
            self.shown = bar, bar.add_task(self.what, total=1.0)
        bar, task = self.shown
        bar.update(task, completed=part)
