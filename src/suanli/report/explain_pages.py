"""The report of `explain` over one file."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath

from suanli.errors import shown
from suanli.nouns.explained import Account, AccountEntry, DeviceAccount, Explained, Step
from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN, closing
from suanli.report.document import Block, Document, Facts, Lines, Table
from suanli.report.explain_tables import collective_table, graph_table, kernel_table, roofline_table
from suanli.report.trace_differences import difference_blocks
from suanli.report.waterfall import BAR, bars
from suanli.units import format_flop_per_s, format_flops, format_percent, format_seconds

STEPS_SHOWN, WARNINGS_SHOWN = 12, 12
ENOUGH = 0.98  # of matmul time with FLOPs: with less, what is useful is a lower bound
IDLE, COMMUNICATION, OTHER = "idle", "exposed communication", "non-matmul kernels"
USEFUL = "useful model FLOPs"
PRODUCTS = (
    "matmul", "matmul, not attributed", "matmul, no peak of its dtype", "matmul inefficiency", "recompute", USEFUL,
)  # fmt: skip


def explain_document(result: Result) -> Document:
    """The headline, the waterfall, steps, idle time, kernels, communication, the model, levers, warnings.

    An answer over many ranks has a page of its own.
    """
    if not isinstance(result.result, Explained):
        many: Document = import_module("suanli.report.fleet_pages").fleet_document(result)
        return many
    found: Explained = result.result
    matmul = attributed(found)
    blocks: tuple[Block, ...] = (
        _waterfall(found, matmul),
        _idle(found),
        _devices(found),
        _steps(found),
        _model(found, matmul),
        *difference_blocks(found),
        kernel_table(found, matmul),
        roofline_table(found, matmul),
        collective_table(found),
        graph_table(found),
        _advice(found),
        Lines("Warnings", _warnings(found)),
        Lines("Why it is not split further", _reasons(found)),
    )
    return Document(_headline(found), (*blocks, *closing(result)))


# that nothing communicates: there is no table of it; that there is no matmul time: it stands above the account
_SHOWN_ALREADY = "overlapped_fraction", "attributed_fraction"


def attributed(found: Explained) -> str:
    """`attributed 92.0 % of matmul time`, beside every FLOP figure."""
    if found.attributed_fraction is None:
        return "no matmul time"
    return f"attributed {format_percent(found.attributed_fraction, 1)} of matmul time"


def _headline(found: Explained) -> str:
    name = PurePath(found.path).name
    if not found.devices:
        return f"{name}: no device work [{found.format}]"
    device = found.devices[0]
    of = device.catalogue or _plain(device.name) or f"device {device.device}"
    many = f"{len(found.devices)} × " if len(found.devices) > 1 else ""
    rank = "" if found.rank is None else f", rank {found.rank}"
    useful, idle = _seconds(found.account, USEFUL), _starting(found.account, IDLE)
    parts = [f"{format_percent(idle / found.peak_s, 1)} idle"] if found.peak_s else []
    if useful and found.peak_s:  # without a peak, or FLOPs, nothing is known of it
        bound = "at least " if (found.attributed_fraction or 0.0) < ENOUGH else ""
        parts.insert(0, f"{bound}{format_percent(useful / found.peak_s, 1)} of peak useful")
    time = f"{format_seconds(found.peak_s)} of {many}{of}"
    return f"{name}: {', '.join(parts) or 'no time'} in {time} [{found.format}{rank}]"


def _plain(name: str | None) -> str:
    """A name that a file gives a device, on one line that is not too long."""
    return shown(name, 60).strip("'\"") if name else ""


def _seconds(entries: tuple[AccountEntry, ...], name: str) -> float:
    return sum(each.seconds for each in entries if each.entry == name)


def _starting(entries: tuple[AccountEntry, ...], name: str) -> float:
    return sum(each.seconds for each in entries if each.entry.startswith(name))


def merged(entries: tuple[AccountEntry, ...]) -> list[tuple[str, float]]:
    """Entries in their order with all idle parts as one, told apart in a table of their own."""
    idle = _starting(entries, IDLE)
    rest = [(each.entry, each.seconds) for each in entries if not each.entry.startswith(IDLE)]
    return [(IDLE, idle), *rest] if idle else rest


def _waterfall(found: Explained, matmul: str) -> Table:
    """Peak → … → useful; the parts close to 100 %."""
    rows, whole = merged(found.account), found.peak_s
    columns = ("entry", "seconds", "of peak", "peak → useful".ljust(BAR))
    title = f"Where the time went ({matmul})"
    if not whole:
        return Table(title, columns, ())
    drawn = bars([seconds / whole for _, seconds in rows])
    lines = [
        (name, format_seconds(seconds), format_percent(seconds / whole, 1), bar)
        for (name, seconds), bar in zip(rows, drawn, strict=True)
    ]
    first = ("peak", format_seconds(whole), format_percent(1.0, 1), "█" * BAR)
    return Table(title, columns, (first, *lines), (False, True, True, False))


def _idle(found: Explained) -> Table:
    parts = [each for each in found.account if each.entry.startswith(IDLE)]
    whole = sum(each.seconds for each in parts)
    rows = tuple(
        (
            each.entry.removeprefix("idle: "),
            format_seconds(each.seconds),
            format_percent(each.fraction or 0.0, 1),
            format_percent(each.seconds / whole, 1),
        )
        for each in parts
    )
    return Table("Idle", ("what the host did", "seconds", "of peak", "of idle"), rows)


def _devices(found: Explained) -> Table:
    columns = (
        "device", "window", "idle", "compute", "matmul", "comm.", "exposed", "overlapped", "copies",
        "attributed",
    )  # fmt: skip
    rows = tuple(_device(each) for each in found.devices)
    return Table("Devices (unions; communication less compute is exposed)", columns, rows)


def _device(each: DeviceAccount) -> tuple[str, ...]:
    used = each.usage
    times = (used.compute_s, used.matmul_s, used.communication_s, used.exposed_communication_s)
    return (
        f"{each.device}: {each.catalogue or each.name or 'not named'}",
        format_seconds(used.window_s),
        _percent(used.idle_fraction),
        *map(format_seconds, times),
        _percent(used.overlapped_fraction),
        format_seconds(used.copies_s),
        _percent(each.attributed_fraction),
    )


def _percent(value: float | None) -> str:
    return NOT_GIVEN if value is None else format_percent(value, 1)


def _steps(found: Explained) -> Table:
    columns = ("step", "seconds", "idle", "exposed", "other kernels", "matmul", "useful")
    shown = [_step(each, len(found.devices) > 1) for each in found.steps[:STEPS_SHOWN]]
    more = len(found.steps) - len(shown)
    if more > 0:
        shown.append((f"… {more} more", *("",) * (len(columns) - 1)))
    if len(found.steps) > 1:
        mean = sum(each.seconds for each in found.steps) / len(found.steps)
        shown.append(("mean", format_seconds(mean), *("",) * (len(columns) - 2)))
    return Table(f"Steps ({found.steps_found}; exposed: communication)", columns, tuple(shown))


def _step(each: Step, several: bool) -> tuple[str, ...]:
    account: Account = each.account
    whole = account.peak_s
    owned = [account.idle_s, *(account.seconds(entry) for entry in (COMMUNICATION, OTHER))]
    matmul = sum(row.seconds for row in account.entries if row.entry in PRODUCTS)
    name = f"{each.name}, device {each.device}" if several else each.name
    parts = (_percent(part / whole if whole else None) for part in (*owned, matmul, account.seconds(USEFUL)))
    return (name, format_seconds(each.seconds), *parts)


def _model(found: Explained, matmul: str) -> Facts:
    used = found.model
    if used is None:
        return Facts("Model", ())
    of = f"dense {used.dtype} of the device" if used.peak_flop_per_s else used.reasons.get("mfu", "")
    rows = [
        ("model FLOPs a step", format_flops(used.step_flops),
         f"{used.model}, {used.phase}, {used.batch:,} × {used.seq:,}, convention {used.convention}"),
        ("step", format_seconds(used.step_s), f"{used.basis}, {used.steps:,} counted"),
        ("peak", NOT_GIVEN if used.peak_flop_per_s is None else format_flop_per_s(used.peak_flop_per_s), of),
        ("MFU by the model", _percent(used.mfu), used.reasons.get("mfu", "the model's FLOPs over peak × step")),
        ("MFU by the kernels", _percent(used.mfu_attributed), used.reasons.get("mfu_attributed", matmul)),
        ("HFU by the kernels", _percent(used.hfu_attributed),
         used.reasons.get("hfu_attributed", f"recomputation included; {matmul}")),
        ("check", _percent(used.check.ratio), used.check.message),
    ]  # fmt: skip
    return Facts("Model", tuple(rows))


def _advice(found: Explained) -> Table:
    rows = tuple(
        (
            each.lever,
            NOT_GIVEN if each.seconds is None else format_seconds(each.seconds),
            "figures" if each.fraction is None else format_percent(each.fraction, 1),
            each.evidence,
        )
        for each in found.advice
    )
    title = "What would help, by the most the account says it could return"
    return Table(title, ("lever", "at most", "of peak", "evidence"), rows, (False, True, True, False))


def _warnings(found: Explained) -> tuple[str, ...]:
    lines = [each.message for each in found.warnings]
    more = len(lines) - WARNINGS_SHOWN
    return tuple(lines[:WARNINGS_SHOWN]) + ((f"… {more} more, in --json",) if more > 0 else ())


def _reasons(found: Explained) -> tuple[str, ...]:
    """Each reason once, beside the first that it is the reason of; none of what the page shows already."""
    said: dict[str, str] = {}
    for device in found.devices:
        for entry, why in (*device.account.reasons.items(), *device.reasons.items()):
            if entry not in _SHOWN_ALREADY:
                said.setdefault(why, entry)
    for name, why in found.reasons.items():
        if name not in _SHOWN_ALREADY:
            said.setdefault(why, name)
    return tuple(f"{name}: {why}" for why, name in said.items())
