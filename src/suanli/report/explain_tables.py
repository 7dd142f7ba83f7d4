"""Tables of the report of `explain`: kernels, their roofline, communication, graph replays."""

from __future__ import annotations

from suanli.explain.short_names import short
from suanli.nouns.explained import Explained, KernelRow
from suanli.nouns.roofline import KernelGroup
from suanli.report.common import NOT_GIVEN
from suanli.report.document import Table
from suanli.units import format_bytes_per_s, format_flop_per_s, format_percent, format_seconds

KERNELS_SHOWN, GROUPS_SHOWN, COLLECTIVES_SHOWN, GRAPHS_SHOWN = 15, 12, 12, 8
SHAPES = 40  # characters


def _percent(value: float | None) -> str:
    return NOT_GIVEN if value is None else format_percent(value, 1)


def _several(found: Explained) -> bool:
    return len(found.devices) > 1


def kernel_table(found: Explained, matmul: str) -> Table:
    """The kernels that own most of the time."""
    rows = tuple(_kernel(each, _several(found)) for each in found.kernels[:KERNELS_SHOWN])
    columns = ("kernel", "kind", "runs", "time owned", "share", "achieved", "of peak", "of roof")
    right = (False, False, *(True for _ in columns[2:]))
    more = len(found.kernels) - len(rows)
    title = f"Kernels ({matmul}{f'; {more} more in --json' if more > 0 else ''})"
    return Table(title, columns, rows, right)


def _kernel(each: KernelRow, several: bool) -> tuple[str, ...]:
    if each.achieved_flop_per_s is not None:
        rate = format_flop_per_s(each.achieved_flop_per_s)
    else:
        rate = NOT_GIVEN if each.achieved_bytes_per_s is None else format_bytes_per_s(each.achieved_bytes_per_s)
    kind = each.kind if each.dtype is None else f"{each.kind} {each.dtype}"
    return (
        (f"{each.device}: " if several else "") + short(each.name), kind, f"{each.count:,}",
        format_seconds(each.owned_s), _percent(each.fraction), rate, _percent(each.peak_fraction),
        _percent(each.roof_fraction),
    )  # fmt: skip


def roofline_table(found: Explained, matmul: str) -> Table:
    """Products and memory-bound kernels that have a place under the roof, by operator and shapes."""
    placed = [each for each in found.roofline if each.roof_fraction is not None]
    rows = tuple(_group(each) for each in placed[:GROUPS_SHOWN])
    columns = ("operator", "shapes", "runs", "time", "FLOP/B", "achieved", "of roof", "bound")
    right = (False, False, True, True, True, True, True, False)
    return Table(f"Roofline by operator and shapes ({matmul})", columns, rows, right)


def _group(each: KernelGroup) -> tuple[str, ...]:
    if each.achieved_flop_per_s is not None:
        rate = format_flop_per_s(each.achieved_flop_per_s)
    else:
        rate = NOT_GIVEN if each.achieved_bytes_per_s is None else format_bytes_per_s(each.achieved_bytes_per_s)
    intensity = NOT_GIVEN if each.intensity is None else f"{each.intensity:,.4g}"
    return (
        each.op or short(each.name), _shapes(each.shapes), f"{each.count:,}", format_seconds(each.seconds), intensity,
        rate, _percent(each.roof_fraction), each.bound or "",
    )  # fmt: skip


def _shapes(shapes: object) -> str:
    """`4096×1024 · 1024×4096`: tensors alone, scalars left out."""
    parts = [_shape(each) for each in shapes if each] if isinstance(shapes, tuple) else []
    text = " · ".join(parts)
    return text if len(text) <= SHAPES else text[: SHAPES - 1] + "…"


def _shape(dims: object) -> str:
    if isinstance(dims, tuple) and all(isinstance(each, int) for each in dims):
        return "×".join(map(str, dims))
    return "[" + ", ".join(_shape(each) for each in dims if each) + "]" if isinstance(dims, tuple) else str(dims)


def collective_table(found: Explained) -> Table:
    """Communication by collective and group; its time holds the waiting for other ranks."""
    rows = tuple(
        (
            (f"{each.device}: " if _several(found) else "") + short(each.collective), each.group or "",
            NOT_GIVEN if each.group_size is None else f"{each.group_size:,}", f"{each.count:,}",
            format_seconds(each.total_s), format_seconds(each.overlapped_s), format_seconds(each.exposed_s),
            NOT_GIVEN if each.busbw_bytes_per_s is None else format_bytes_per_s(each.busbw_bytes_per_s),
            "above the link" if each.above_link else "",
        )
        for each in found.collectives[:COLLECTIVES_SHOWN]
    )  # fmt: skip
    columns = ("collective", "group", "ranks", "calls", "total", "overlapped", "exposed", "busbw", "")
    right = (False, False, True, True, True, True, True, True, False)
    return Table("Communication (time holds waiting for other ranks; busbw is a lower bound)", columns, rows, right)


def graph_table(found: Explained) -> Table:
    """Replays of graphs."""
    rows = tuple(
        (
            f"device {each.device}, graph {'not numbered' if each.graph is None else each.graph}", f"{each.launches:,}",
            f"{each.work:,}", format_seconds(each.total_s), ", ".join(short(name, 24) for name in each.kernels[:3]),
        )
        for each in found.graphs[:GRAPHS_SHOWN]
    )  # fmt: skip
    columns = ("graph replay", "launches", "kernels", "total", "most of it")
    return Table("Graph replays", columns, rows, (False, True, True, True, False))
