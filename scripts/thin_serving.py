"""Choose the measured serving points that ship beside the presets and write catalog/serving_points.csv.

    python scripts/thin_serving.py POINTS.csv [--out FILE]

POINTS.csv has the columns of `suanli.readers.serving_points`. Only rows of sources under the Apache licence are taken:
of each model, GPU, layout, dtype and engine one or two numbers of users, at prompts and answers of about 1,024 tokens
where there are such rows.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import math
from collections.abc import Sequence
from pathlib import Path

from suanli.catalog import serving_points
from suanli.nouns.measured_serving import ServingPoint
from suanli.plan.serving.points import keep_points
from suanli.readers.preset import read_named_preset
from suanli.readers.serving_points import read_serving_points

_TARGET = Path(__file__).resolve().parents[1] / "src" / "suanli" / "catalog" / serving_points.FILE
KINDS = ("served", "offline")
USERS = (4, 64)  # of each set-up the rows nearest to these
ENOUGH = 4  # rows of a set-up that two are taken of
USUAL = (512, 2048)  # lengths that are about 1,024
MOST = 120


def main() -> None:
    """Read the points, choose, write the file beside its old one and rename it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", type=Path)
    parser.add_argument("--out", type=Path, default=_TARGET)
    given = parser.parse_args()
    kept = keep_points(read_serving_points(given.points), functools.cache(read_named_preset)).points
    text = rendered(thinned([point for point in kept if source_of(point) and point.kind in KINDS]))
    temporary = given.out.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(given.out)


def source_of(point: ServingPoint) -> str | None:
    """Key of the source; None where it may not ship."""
    named = {key: words.split()[0] for key, words in serving_points.SOURCES.items()}
    return next((key for key, name in named.items() if point.source.startswith(name)), None)


def thinned(points: Sequence[ServingPoint]) -> list[ServingPoint]:
    """At most `MOST` rows: the usual lengths first, of each set-up those nearest to the numbers of users."""
    groups: dict[object, list[ServingPoint]] = {}
    for point in points:
        key = (point.preset, point.gpu, point.layout, point.dtype, point.engine, point.kind)
        groups.setdefault(key, []).append(point)
    chosen: dict[ServingPoint, None] = {}
    for rows in groups.values():
        usual = [row for row in rows if _usual(row)]
        for users in USERS if len(usual) >= ENOUGH else USERS[-1:]:
            chosen[
                min(usual or rows, key=lambda row, users=users: abs(math.log((row.concurrency or users) / users)))
            ] = None
    assert len(chosen) <= MOST, f"{len(chosen)} rows: fewer numbers of users"
    return sorted(chosen, key=lambda row: (str(row.preset), str(row.gpu), row.engine, row.dtype, row.gpus, row.row))


def _usual(point: ServingPoint) -> bool:
    low, high = USUAL
    return low <= (point.isl or 0) <= high and low <= point.osl <= high


def rendered(points: Sequence[ServingPoint]) -> str:
    """The file's text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(serving_points.COLUMNS)
    for point in points:
        at = point.layout
        writer.writerow([
            point.preset, point.gpu, at.tp, at.ep, at.dp_attention, point.dtype, point.engine, point.version,
            point.kind,
            *(_cell(value) for value in (point.isl, point.osl, point.concurrency, point.ttft_s, point.tpot_s,
                                         point.tokens_per_s)),
            source_of(point), point.measured,
        ])  # fmt: skip
    return out.getvalue()


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


if __name__ == "__main__":
    main()
