"""Where measured data lies that does not ship with the package: kernels, served points, traces.

The folder is named on the command line (`--data`), else by the environment (`SUANLI_DATA`), else `../shared/data`
beside the working directory or the checkout. Nothing is fetched.
"""

from __future__ import annotations

import os
from pathlib import Path

from suanli.errors import Fault, InputError, shown
from suanli.readers import gate

VARIABLE = "SUANLI_DATA"
BESIDE = Path("shared") / "data"
MEASURED_SERVING = "measured_serving.csv"


def outside_data(given: str | Path | None = None) -> Path | None:
    """The folder of measured data: as given, else as the environment says, else beside; None where there is none.

    Raises InputError where a folder that was named is none.
    """
    for place, where in ((given, "--data"), (os.environ.get(VARIABLE) or None, VARIABLE)):
        if place is None:
            continue
        if place is given:
            gate.check_path(place, where)
        folder = Path(place).expanduser()
        if not folder.is_dir():
            raise InputError(
                Fault(code="no_folder", message="there is no such folder", where=where, got=shown(str(place)),
                      expected=f"a folder with {MEASURED_SERVING} and its neighbours")
            )  # fmt: skip
        return folder
    return next((folder for folder in _beside() if folder.is_dir()), None)


def _beside() -> list[Path]:
    """`../shared/data` of the working directory, and of the checkout this file lies in."""
    root = Path(__file__).resolve().parents[3]
    checkout = [root.parent] if (root / "pyproject.toml").is_file() else []
    return [parent / BESIDE for parent in (Path.cwd().parent, *checkout)]
