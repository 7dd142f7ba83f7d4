"""Uploads that are named in addresses: kept for a while, bounded in number and bytes, deleted after.

The name is made from the content (`cfg-…` of a config, `up-…` of another file), so the same file has one name and an
address that holds it means the same wherever it is opened, as long as this server keeps it.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suanli.web.errors import refusal
from suanli.web.settings import Settings
from suanli.web.uploads import FOLDER, Upload

CONFIG, FILE = "cfg", "up"
NAMED = re.compile(r"(cfg|up)-[0-9a-f]{12}")
LETTERS = 12


@dataclass
class Held:
    """An upload, when it was last asked for, and how many requests are using it."""

    upload: Upload
    kind: str
    asked: float
    users: int = 0


class Kept:
    """Uploads by their names. Runs on the server's event loop alone."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        self.held: OrderedDict[str, Held] = OrderedDict()

    def keep(self, upload: Upload, kind: str) -> str:
        """The upload's name; its file is moved here. Raises HttpError 413 where nothing can make room for it."""
        name = f"{kind}-{upload.sha256[:LETTERS]}"
        known = self.held.get(name)
        if known is not None and known.upload.path.name == upload.path.name:
            known.asked = time.monotonic()
            self.held.move_to_end(name)
            return name
        if known is not None:
            self.drop(name)
        self._make_room(upload.size)
        place = self.folder / name / FOLDER / upload.path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(upload.path, place)
        moved = Upload(path=place, size=upload.size, sha256=upload.sha256)
        self.held[name] = Held(moved, kind, time.monotonic())
        return name

    def find(self, name: str) -> Held:
        """The upload called so. Raises HttpError 404 where it is not kept, or no longer."""
        self.expire()
        found = self.held.get(name)
        if found is None:
            raise refusal(404, "upload_gone", "the upload is not kept here, or no longer", where=name,
                          expected=f"one of the last {self.settings.kept_s / 60:,.0f} minutes",
                          hint="Send the file again.")  # fmt: skip
        found.asked = time.monotonic()
        self.held.move_to_end(name)
        return found

    def drop(self, name: str) -> None:
        """Delete an upload."""
        found = self.held.pop(name, None)
        if found is not None:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def expire(self) -> None:
        """Delete what nobody asked for in a while, and nobody uses."""
        old = time.monotonic() - self.settings.kept_s
        for name in [name for name, each in self.held.items() if each.asked < old and not each.users]:
            self.drop(name)

    def _make_room(self, size: int) -> None:
        self.expire()
        while self.held and (self._bytes() + size > self.settings.max_uploads_bytes or
                             len(self.held) >= self.settings.max_kept):  # fmt: skip
            idle = next((name for name, each in self.held.items() if not each.users), None)
            if idle is None:
                raise refusal(413, "no_room", "the server keeps as many uploads as it may, all in use",
                              hint="Try again when their work is done.")  # fmt: skip
            self.drop(idle)

    def _bytes(self) -> int:
        return sum(each.upload.size for each in self.held.values())


def resolve(given: Mapping[str, Any], kept: Kept) -> tuple[dict[str, Any], dict[str, list[Held]]]:
    """Values without the names of kept uploads, and these uploads by option. Raises HttpError for one that is gone."""
    values: dict[str, Any] = {}
    files: dict[str, list[Held]] = {}
    for option, value in given.items():
        named = value if isinstance(value, list) else [value]
        if named and all(isinstance(each, str) and NAMED.fullmatch(each.strip()) for each in named):
            files[option] = [kept.find(each.strip()) for each in named]
        else:
            values[option] = value
    return values, files
