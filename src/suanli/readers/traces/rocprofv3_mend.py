"""What is whole of a JSON file of rocprofv3 that is cut or broken: members of objects and elements of lists, each by
itself.

An element of a list is read whole or not at all; `None` stands for one that is lost, so that those behind it keep their
places. A break costs the text up to the next element that begins as its neighbours do, or to the end of its list.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

LISTS = "kernel_dispatch", "hip_api", "hsa_api", "marker_api", "rccl_api", "memory_copy", "memory_allocation"
_OTHERS = (
    "metadata", "agents", "counters", "strings", "code_objects", "kernel_symbols", "host_functions", "summary",
    "callback_records", "buffer_records", "counter_collection", "scratch_memory", "rocdecode_api", "rocjpeg_api",
    "pc_sample_host_trap", "pc_sample_stochastic", "correlation_id", "dimension_ids", "pc_sample_instructions",
    "pc_sample_comments", "att_filenames", "code_object_snapshot_filenames",
)  # fmt: skip
PROCESSES = "rocprofiler-sdk-tool"
_SHORT, _LONGEST_WORD = 8192, 16  # what is cut within a word or an escape may be whole behind the cut
_MOST_DEPTH = 8  # of objects that are read member by member
_JSON = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
_GAP = re.compile(r"[\s,]*")
_COLON = re.compile(r"\s*:\s*")
_KEY = re.compile(r'\{\s*("\w{1,40}")\s*:')
_MEMBER = re.compile(r',\s*(?="\w{1,40}"\s*:)|\}')
# Where a list ends: before a key that stands beside lists, before another process, or before the end of everything.
_LIST_END = re.compile(
    r'\](?=\s*(?:\}\s*)*(?:,\s*"(?:' + "|".join((*LISTS, *_OTHERS)) + r')"\s*:|\}\s*\}\s*,\s*\{|\}\s*\]\s*\}\s*\Z))'
)


@dataclass(frozen=True)
class Salvaged:
    """What could be read, and what could not."""

    document: Any
    lost_pieces: int
    lost_bytes: int
    cut: bool  # the document has no end
    bytes_behind: int  # behind its end


def salvage_document(content: bytes) -> Salvaged:
    """The document in a text. Raises RecursionError where it is nested too deeply."""
    mender = _Mender(content.decode("utf-8", "replace").strip())
    document, end = mender.value(0, 0)
    behind = mender.text[end:].strip("\0 \t\r\n")
    return Salvaged(document, mender.pieces, mender.bytes, mender.cut, len(behind.encode()))


class _Mender:
    """One text, read from the left to the right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pieces = self.bytes = 0
        self.cut = False

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """What stands at a place, and where it ends. Raises ValueError where nothing of it can be read."""
        try:
            return _JSON.raw_decode(self.text, at)
        except (ValueError, RecursionError):
            if depth >= _MOST_DEPTH or self.text[at : at + 1] not in ("{", "["):
                raise
        return self._object(at, depth) if self.text[at] == "{" else self._list(at, depth)

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._next(at + 1)
        while not self._over(at):
            if self.text[at] == "}":
                return found, at + 1
            try:
                key, after = self._decoded(at)
                colon = _COLON.match(self.text, after)
                if colon is None or not isinstance(key, str):
                    raise ValueError
                found[key], end = self.value(colon.end(), depth + 1)
            except ValueError:
                match = _MEMBER.search(self.text, at)
                end = self._lose(at, match.start() if match else len(self.text))
            at = self._next(end)
        return found, at

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        key, most = None, -1
        at = self._next(at + 1)
        while not self._over(at):
            if self.text[at] == "]":
                return found, at + 1
            key = _KEY.match(self.text, at) or key
            try:
                each, end = self.value(at, depth + 1) if depth == 1 else self._decoded(at)
            except (ValueError, RecursionError):
                most = most if most >= at else self._list_end(at)  # looked for once: it may be far behind
                each, end = None, self._lose(at, self._border(at, key, most))
            found.append(each)
            at = self._next(end)
        return found, at

    def _decoded(self, at: int) -> tuple[Any, int]:
        """The value at a place, and its end. Of a short text first: an error takes as long as all that stands before
        it, because it counts the lines.
        """
        text = self.text[at : at + _SHORT]
        try:
            value, end = _JSON.raw_decode(text)
            if end < len(text):
                return value, at + end
        except json.JSONDecodeError as problem:
            if problem.pos < len(text) - _LONGEST_WORD and not problem.msg.startswith("Unterminated"):
                raise
        return _JSON.raw_decode(self.text, at)

    def _list_end(self, at: int) -> int:
        end = _LIST_END.search(self.text, at)
        return end.start() if end else len(self.text)

    def _border(self, at: int, key: re.Match[str] | None, most: int) -> int:
        """Where the list goes on, or ends at `most`, behind an element that is broken."""
        like = r'"\w{1,40}"' if key is None else re.escape(key[1])
        border = re.compile(rf",\s*(?=\{{\s*{like}\s*:)").search(self.text, at, most)
        return border.start() if border else most

    def _next(self, at: int) -> int:
        return _GAP.match(self.text, at).end()  # type: ignore[union-attr]

    def _over(self, at: int) -> bool:
        self.cut = self.cut or at >= len(self.text)
        return at >= len(self.text)

    def _lose(self, low: int, high: int) -> int:
        self.pieces += 1
        self.bytes += len(self.text[low:high].encode())
        return high
