"""`suanli.calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suanli.api.keeping import keeps_request
from suanli.nouns.result import Result


@keeps_request
def calibrate(
    file: str | Path | None = None,
    *,
    stack: Any = None,
    gpu: str | None = None,
    fabric: str | None = None,
    name: str | None = None,
    shipped: str | None = None,
    rows: str | Path | None = None,
) -> Result:
    """A stack's profile fitted to own step times of a CSV file, each run predicted by the others; `result.profile` is
    the stack as it is now, and `suanli.report.files.write_result(result, Path("mystack.toml"))` writes it for the
    `stack` of `layout`.

    `file` may hold kernels instead: the CSV that `suanli explain --kernels-csv` writes, or a trace, whose products and
    collectives tell `matmul` and `network` beside the device's curves; no interval changes by them.
    With `shipped` (a stack, or "all") instead the profiles that ship are fitted again, to the package's runs and those
    of `rows`. Raises InputError listing every fault with its line and column, and for fewer than three runs.
    """
    from suanli.api.calibrating import calibrate_stack  # noqa: PLC0415  the planner comes with the first calibration

    return calibrate_stack(file, stack=stack, gpu=gpu, fabric=fabric, name=name, shipped=shipped, rows=rows)
