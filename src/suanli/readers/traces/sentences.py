"""What is wrong with a file, in sentences that several readers say: each with `{count}` and both numbers of its words,
as `suanli.units.counted` chooses them.
"""

from __future__ import annotations

from suanli.units import counted

EVENTS, SPANS, WORK = "{events|event}", "host {spans|span}", "{pieces|piece} of device work"
NO_DEVICE = f"{{count}} {WORK} without a device {{are|is}} left out"
BROKEN_OFF = "{count} {records|record} of the file {break off and are|breaks off and is} left out"
CUT = "the file ends within its list of events: it was cut, or never finished"


def no_time(what: str) -> str:
    """Of `what` (EVENTS, SPANS …) that has no possible time."""
    return f"{{count}} {what} without a time that can be {{are|is}} left out"


def backward(what: str) -> str:
    """Of `what` (EVENTS, SPANS …) that ends before it starts."""
    return f"{{count}} {what} that {{end before they start are|ends before it starts is}} left out"


def broken_json(size_bytes: int) -> str:
    """Of pieces of JSON, so many bytes together, that no reading mends."""
    return f"{{count}} {{pieces|piece}} of broken JSON ({_bytes(size_bytes)}) could not be read"


def behind(size_bytes: int) -> str:
    """The whole sentence about bytes behind the first document of a file."""
    said = "{count} {bytes stand|byte stands} behind the first document of the file: only it was read"
    return counted(size_bytes, said)


def unpacked(size_bytes: int) -> str:
    """The whole sentence about a gzip of which only so many bytes come out."""
    return f"the gzip file is cut off or broken: {_bytes(size_bytes)} of it could be unpacked"


def _bytes(size_bytes: int) -> str:
    return counted(size_bytes, "{count} {bytes|byte}")
