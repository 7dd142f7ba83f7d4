"""Data that the project does not ship: where it is, or that it is not there."""

from __future__ import annotations

import os
from pathlib import Path

from suanli.errors import Fault, UnreadableFileError, shown

VARIABLE = "SUANLI_DATA"
BESIDE = "shared"  # a folder beside the checkout


def outside_data(given: str | None) -> Path | None:
    """The folder of outside data: as given, else of the variable SUANLI_DATA, else `shared` beside the checkout.

    None where there is none. Raises UnreadableFileError for a folder that was named and is not there.
    """
    for name, where in ((given, "--data"), (os.environ.get(VARIABLE), VARIABLE)):
        if name:
            folder = Path(name).expanduser()
            if not folder.is_dir():
                raise UnreadableFileError(
                    Fault(code="no_folder", message="no such folder", where=where, got=shown(name),
                          expected="a folder with traces/INDEX.csv and the files it lists")
                )  # fmt: skip
            return folder
    beside = Path(__file__).resolve().parents[4] / BESIDE  # src/suanli/readers/outside.py of a checkout
    return beside if beside.is_dir() else None
