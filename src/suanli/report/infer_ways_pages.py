"""Blocks of the report of `infer` for ways of serving beside one engine alone, and measured points beside it."""

from __future__ import annotations

from suanli.nouns.infer import Inference
from suanli.nouns.serving import ServingLayout
from suanli.nouns.serving_ways import Neighbour
from suanli.report.common import exact
from suanli.report.document import Block, Facts, Table
from suanli.units import MICRO, format_bytes, format_percent, format_seconds

FULL = "grows without end"


def layout_words(layout: ServingLayout, alone: str = "one GPU a replica") -> str:
    """The degrees above one; `alone` where there is none."""
    names = (("tp", "tp"), ("pp", "pp"), ("ep", "ep"), ("dp_attention", "dp-attention"), ("cp", "cp"))
    parts = [f"{shown} {getattr(layout, name)}" for name, shown in names if getattr(layout, name) > 1]
    return " ".join(parts) or alone


def way_blocks(found: Inference) -> tuple[Block, ...]:
    """Only what was asked for; prefills between decode steps in any case."""
    return (_interference(found), _speculation(found), _pools(found), _service(found), _stages(found))


def _interference(found: Inference) -> Facts:
    each = found.interference
    if each is None:
        return Facts("", ())
    pieces = "whole" if each.chunks == 1 else f"in {each.chunks:,} pieces of {each.chunk_tokens:,.0f}"
    rows = (
        ("without a prompt", format_seconds(each.plain_s), ""),
        ("with one in it", format_seconds(each.mixed_s), f"{format_percent(each.mixed_fraction, 1)} of the steps"),
        ("jitter", format_seconds(each.jitter_s), "standard deviation of the time of a step"),
    )
    return Facts(f"Steps a user waits for, prompts {pieces}", rows)


def _speculation(found: Inference) -> Facts:
    each = found.speculation
    if each is None:
        return Facts("", ())
    rows = (
        (
            "tokens a step",
            f"{each.tokens_per_step:.3g}",
            f"{each.draft_tokens} drafted, taken with {each.acceptance:g} each",
        ),
        ("checking them", format_seconds(each.verify_s), "step of the model"),
        ("drafting them", format_seconds(each.draft_s), each.draft),
        ("without drafts", format_seconds(each.plain_s), "a step, one token"),
        ("speed-up", f"{each.speed_up:.2f}", "of decode, at this batch"),
    )
    return Facts("Speculative decoding", rows)


def _pools(found: Inference) -> Facts:
    each = found.disaggregation
    if each is None:
        return Facts("", ())
    moved = f"{format_bytes(each.transfer_bytes)} over {each.link}"
    rows = (
        ("prefill", f"{each.prefill_gpus:,} GPUs", f"replicas: {each.prefill_replicas:,}; "
         f"{format_percent(each.prefill_busy, 1)} busy, at most {each.prefill_limit_per_s:,.3g} requests/s"),
        ("decode", f"{each.decode_gpus:,} GPUs", f"replicas: {each.decode_replicas:,}; at most "
         f"{each.decode_limit_per_s:,.3g} requests/s"),
        ("a prompt's cache", format_seconds(each.transfer_s), moved),
    )  # fmt: skip
    return Facts("Prefill and decode apart", rows)


def _service(found: Inference) -> Facts:
    each = found.service
    if each is None:
        return Facts("", ())
    model = FULL if each.model_s is None else format_seconds(each.model_s)
    whole = FULL if each.latency_s is None else format_seconds(each.latency_s)
    rows = (
        ("requests", f"{each.requests_per_s:,.3g} a second", f"{each.tokens_per_second:,.0f} output tokens/s"),
        ("at most", f"{each.limit_per_s:,.3g} a second", f"limit: {each.limit}"),
        ("in the model", model, "first to last token"),
        ("a whole request", whole, "all stages and waits"),
    )
    return Facts("The service with its stages", rows)


def _stages(found: Inference) -> Table:
    stages = () if found.service is None else found.service.stages
    rows = tuple(
        (
            each.name, format_seconds(each.service_s), exact(each.workers), f"{each.capacity_per_s:,.4g}",
            format_percent(each.busy, 1), _wait(each.wait_s),
        )
        for each in stages
    )  # fmt: skip
    columns = ("stage", "time", "workers", "requests/s at most", "busy", "mean wait")
    return Table("Stages beside the model", columns, rows, (False, *[True] * 5))


def _wait(seconds: float | None) -> str:
    """A mean wait; what no clock sees is none."""
    if seconds is None:
        return FULL
    return format_seconds(seconds) if seconds >= MICRO else f"below {format_seconds(MICRO, 1)}"


def neighbours_table(found: Inference) -> Table:
    """Measured points near the answer, and what the same preset says of them."""
    rows = tuple(_neighbour(each) for each in found.neighbours)
    columns = ("model", "GPU", "replica", "in/out × users", "measured", "ours", "ratio", "distance", "source")
    right = (False, False, False, *[True] * 5, False)
    return Table("Nearest measured points, and this preset at their set-up", columns, rows, right)


def _neighbour(each: Neighbour) -> tuple[str, ...]:
    time = each.quantity.startswith("time")
    measured, ours = (
        format_seconds(value, 3) if time else f"{value:,.0f} tokens/s" for value in (each.measured, each.predicted)
    )
    users = "most" if each.concurrency is None else f"{each.concurrency:,.0f}"
    source = each.source.split()[0].rpartition("/")[2]
    return (
        each.model, each.gpu, f"{each.dtype}, {layout_words(each.layout, '1 GPU')}",
        f"{each.isl:,.0f}/{each.osl:,.0f} × {users}", measured, ours, f"{each.ratio:.2f}", f"{each.distance:.2f}",
        f"{source} {each.date[:7]}".strip(),
    )  # fmt: skip


def calibration_facts(found: Inference) -> Facts:
    """What the user's own points changed."""
    each = found.calibration
    if each is None:
        return Facts("", ())
    left = "; ".join(f"{count} left out: {why}" for why, count in each.left_out.items())
    before, after = (f"± {format_percent(value, 1)}" for value in (each.half_width_before, each.half_width_after))
    moved = {
        name: factor for name, factor in each.factors.items() if abs(factor - 1) >= 0.005
    }  # two digits of a factor
    rows = (
        ("points", exact(each.points), left),
        ("mean error", format_percent(each.error_before, 1), "of the preset as it ships"),
        ("… drawn to them", format_percent(each.error_after, 1),
         f"{format_percent(each.error_held_out, 1)} with each left out in turn"),
        ("80 % interval", after, f"{before} before"),
        *((name, f"× {factor:.2f}", "of the preset's") for name, factor in moved.items()),
    )  # fmt: skip
    return Facts("Calibration to your points", rows)
