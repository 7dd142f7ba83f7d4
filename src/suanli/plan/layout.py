"""The verb `layout`: every legal way to lay a training run over GPUs, ranked; why one beats another; what to change."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from suanli.errors import InputError
from suanli.nouns.arch import SAMPLE, Arch
from suanli.nouns.estimate import MemoryEstimate, StageMemory
from suanli.nouns.layers import Attention, Scan
from suanli.nouns.layout import ZERO, Layout
from suanli.nouns.measures import Peak
from suanli.nouns.plans import Counts, Difference, FrontPoint, Lever, PlannedLayout
from suanli.nouns.profile import StackProfile
from suanli.nouns.stack import Stack
from suanli.nouns.workload import Workload
from suanli.plan.advice import advise, changes, lever_of, ordered
from suanli.plan.difference import difference
from suanli.plan.enumerate import Enumeration, enumerate_grid
from suanli.plan.launch import Job as LaunchJob
from suanli.plan.launch import Launch, launch
from suanli.plan.limits import BLOCK, Space, cuts_of, possible
from suanli.plan.memory import memory_estimate
from suanli.plan.nothing import nothing_fits, nothing_legal
from suanli.plan.pins import Pins, read_pins
from suanli.plan.planned import model_of
from suanli.plan.predict import estimate
from suanli.plan.pricing import Books, Prices
from suanli.plan.refine import Step, best_steps, too_long_to_play
from suanli.plan.search import Timed, search
from suanli.plan.step_time import Job, job_of

ROOMY = 1 << 60  # bytes that every layout fits into
POOL = 4  # layouts played out for one that is shown: the closed form and the played pipeline may differ in order
Progress = Callable[[float], None]
FLASH_KEEPS_NO_SCORES = "selective recompute makes scores again, which fused attention never stores: left out"


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: what is trained, on what, with what, within how much memory."""

    arch: Arch
    workload: Workload
    gpus: tuple[int, ...]
    global_batch: int
    curves: Any
    fabric: Any
    stack: Stack
    profile: StackProfile
    labels: tuple[str, ...]
    peak: Peak
    step_flops: int
    limit_bytes: int
    pins: Any = None
    top: int = 5
    price: float | None = None

    @property
    def space(self) -> Space:
        """Where layouts are looked for."""
        job = self.job
        return Space(
            cuts=cuts_of(job.parts), gpus=self.gpus, global_batch=self.global_batch, seq=self.workload.seq,
            per_node=self.fabric.gpus_per_node, pipeline_zero=self.stack.pipeline_zero, hybrid=self.stack.hybrid,
        )  # fmt: skip

    @cached_property
    def steps(self) -> dict[Layout, Step]:
        """Steps worked out so far."""
        return {}

    @cached_property
    def memories(self) -> dict[Layout, MemoryEstimate]:
        """Memory worked out so far."""
        return {}

    @cached_property
    def job(self) -> Job:
        """What step times are worked out for."""
        return job_of(self.arch, self.workload.seq, self.workload.dtype, self.curves, self.fabric, self.profile.traits)


@dataclass(frozen=True, kw_only=True)
class LayoutPlan:
    """The layouts of a training run, best first, and how they were found."""

    model: str = _doc("", "name of the model")
    stack: str = _doc("", "software stack whose profile was used")
    fabric: str = _doc("", "links and network")
    layouts: tuple[PlannedLayout, ...] = _doc("", "fastest first, by the step with its pipeline played out")
    evaluated: int = _doc("layouts", "legal ones: timed, or ruled out for certain")
    search_s: float = _doc("s", "enumeration, pruning and ranking")
    refine_s: float = _doc("s", "playing out the pipelines of the best")
    counts: Counts = _doc("", "how many layouts came how far")
    front: tuple[FrontPoint, ...] = _doc("", "as fast as can be for their memory, GPUs and cost")
    memory_limit_bytes: int = _doc("bytes", "of one GPU")
    advice: tuple[Lever, ...] = _doc("", "what one change to the first layout would do, best first", default=())
    why: Difference | None = _doc("", "two layouts entry by entry; with --why", default=None)
    emit: Launch | None = _doc("", "the first layout as a tool's flags; with --emit", default=None)
    extrapolates: tuple[str, ...] = _doc("", "what lies beyond the runs the profile was fitted to", default=())
    stages: tuple[StageMemory, ...] = _doc("", "memory of the first layout, a row a pipeline stage", default=())


def layout(
    question: Question,
    *,
    why: Sequence[int | str | Mapping[str, Any]] = (),
    emit: str | None = None,
    progress: Progress | None = None,
) -> LayoutPlan:
    """The plan. `why` is two places in the ranking (from 1) or two sets of pins, each fastest layout compared.

    Raises InputError where pins cannot be, no layout is legal, nothing fits (by how much, and what would), or a tool
    cannot express the first layout.
    """
    pins = read_pins(question.pins, question.space)
    space = _allowed(question, pins)
    started = time.perf_counter()
    found, result = _search(question, space, pins, POOL * question.top, progress)
    searched = time.perf_counter()
    rows = _refined(question, result.best)
    refined = time.perf_counter()
    best = rows[0]
    return LayoutPlan(
        model=question.arch.name,
        stack=question.profile.name,
        fabric=question.fabric.name,
        layouts=rows,
        evaluated=found.legal,
        search_s=searched - started,
        refine_s=refined - searched,
        counts=Counts(enumerated=found.enumerated, by_rule=found.by_rule, legal=found.legal, fit=result.fit,
                      timed=result.timed),
        front=_front(question, result.front, best),
        memory_limit_bytes=question.limit_bytes,
        advice=_advice(question, space, best.as_layout()),
        why=_why(question, space, rows, why) if why else None,
        emit=launch(emit, best.as_layout(), _launch_job(question)) if emit else None,
        extrapolates=_one(question, best.as_layout())[1],
        stages=_memory(question, best.as_layout()).stages,
    )  # fmt: skip


def fastest_layout(question: Question) -> PlannedLayout:
    """The first layout of the plan alone. Raises InputError where none is legal or fits."""
    pins = read_pins(question.pins, question.space)
    _, result = _search(question, _allowed(question, pins), pins, POOL)
    return _refined(replace(question, top=1), result.best)[0]


def _search(
    question: Question, space: Space, pins: Pins, top: int, progress: Progress | None = None
) -> tuple[Enumeration, Any]:
    """The enumeration and what was found in it. Raises InputError where nothing is legal or fits."""
    books = _books(question)
    axes = _axes(question, pins)
    found = enumerate_grid(space, axes, books.keep(question.limit_bytes))
    if not found.legal:
        raise _nothing(question, space, pins, found)
    result = search(found, Prices(books, found), question.limit_bytes, top, progress)
    if result.best is None:
        raise _nothing(question, space, pins, found)
    return found, result


def _axes(question: Question, pins: Pins) -> Pins:
    """What is pinned, and of the other axes what the stack can run."""
    own = _policies(question)
    if "recompute_layers" in pins:
        own.pop("recompute")
    return own | pins


def _policies(question: Question) -> Pins:
    """What the stack can run, and recompute policies that differ: with fused attention there are no scores to make
    again.
    """
    stack = question.stack
    same = stack.flash and stack.selective == "scores"
    left_out = {"selective"} if same else set()
    left_out |= set() if stack.block_recompute else {BLOCK}
    recompute = tuple(each for each in possible(question.space, "recompute") if each not in left_out)
    found: Pins = {"recompute": recompute, "schedule": stack.schedules, "zero": stack.zero}
    return found if stack.hybrid else found | {"shards": (0,)}


def _allowed(question: Question, pins: Pins) -> Space:
    """The space with what pins ask for beyond the stack: ZeRO stages beside a pipeline, groups that share states."""
    space = question.space
    piped = "pp" in pins or bool(space.pipeline_zero)
    asked = tuple(pins["zero"]) if "zero" in pins and piped else ()
    return replace(
        space, pipeline_zero=tuple(sorted({*space.pipeline_zero, *asked})),
        hybrid=ZERO[1:] if "shards" in pins else space.hybrid,
    )  # fmt: skip


def _nothing(question: Question, space: Space, pins: Pins, found: Enumeration) -> Exception:
    """The error where no layout is legal, or none fits: then the smallest is shown."""
    axes = _axes(question, pins)
    unlimited = enumerate_grid(space, axes)
    if not unlimited.legal:
        return nothing_legal(found, pins)
    return nothing_fits(
        _books(question), space, pins, axes, unlimited, question.limit_bytes, question.stack.offloads,
        lambda layout: _memory(question, layout).fullest,
    )  # fmt: skip


def _books(question: Question) -> Books:
    return Books(
        model=model_of(question.arch, question.workload, question.stack),
        job=question.job,
        profile=question.profile.at(*question.labels),
        global_batch=question.global_batch,
    )


# --- one layout ---------------------------------------------------------------------------------------------------


def _memory(question: Question, layout: Layout) -> MemoryEstimate:
    """The memory of every stage, worked out once."""
    if layout not in question.memories:
        question.memories[layout] = memory_estimate(
            question.arch, question.workload, layout, question.stack, global_batch=question.global_batch,
            capacity=question.limit_bytes, imbalance=question.profile.at(*question.labels).imbalance,
        )  # fmt: skip
    return question.memories[layout]


def _one(question: Question, layout: Layout) -> tuple[PlannedLayout, tuple[str, ...]]:
    """One layout with its step and memory, and what of it extrapolates."""
    step = estimate(
        question.job, layout, question.global_batch, question.profile, question.labels, question.step_flops,
        question.peak.flop_per_s, _step(question, layout),
    )  # fmt: skip
    memory = _memory(question, layout)
    fullest, margin = memory.fullest, memory.margin
    assert margin is not None, "a question has a limit"
    axes = {each.name: getattr(layout, each.name) for each in fields(Layout)} | {"gpus": layout.gpus}
    return PlannedLayout(
        **axes,
        step_time_s=step.step_time_s,
        step_time_interval_s=step.step_time_interval_s,
        closed_form_step_time_s=step.closed_form_step_time_s,
        played=step.played,
        mfu=step.mfu,
        tokens_per_second_per_gpu=step.tokens_per_second_per_gpu,
        memory_bytes={**{name: int(getattr(fullest, name)) for name in memory_terms()}, "total": memory.total},
        fullest_stage=fullest.stage,
        largest_term=fullest.largest,
        margin_bytes=margin,
        account=step.account,
        usd_per_step=_cost(question, layout.gpus, step.step_time_s),
    ), tuple(step.extrapolates)


def memory_terms() -> tuple[str, ...]:
    """Terms of a rank's memory that add up to its total."""
    from suanli.nouns.estimate import TERMS  # noqa: PLC0415  named where it is used

    return TERMS


def _cost(question: Question, gpus: int, seconds: float) -> float | None:
    from suanli.units import HOUR  # noqa: PLC0415

    return None if question.price is None else gpus * question.price * seconds / HOUR


def _refined(question: Question, best: Timed) -> tuple[PlannedLayout, ...]:
    """The best with their pipelines played out, fastest first by that; by the closed form where that is too long."""
    layouts = best.grid.layouts()
    steps = [each.seconds for each in _steps(question, layouts)]
    order = sorted(range(len(best)), key=lambda place: (steps[place], float(best.fullest_bytes[place]), place))
    return tuple(_one(question, layouts[place])[0] for place in order[: question.top])


def _steps(question: Question, layouts: Sequence[Layout]) -> list[Step]:
    """The steps that are ranked, each worked out once, and those that are new together."""
    new = [layout for layout in dict.fromkeys(layouts) if layout not in question.steps]
    found = best_steps(question.job, question.profile.at(*question.labels), new, question.global_batch)
    question.steps.update(zip(new, found, strict=True))
    return [question.steps[layout] for layout in layouts]


def _step(question: Question, layout: Layout) -> Step:
    return _steps(question, [layout])[0]


def _front(question: Question, front: Timed, best: PlannedLayout) -> tuple[FrontPoint, ...]:
    """What nothing beats once played out: the closed form's front and the best of the ranking."""
    layouts = dict(zip(front.grid.layouts(), front.fullest_bytes.tolist(), strict=True))
    layouts[best.as_layout()] = float(best.memory_bytes["total"])
    _steps(question, list(layouts))  # together, so that below each is known
    points = sorted((_step(question, each).seconds, size, each.gpus, each.short) for each, size in layouts.items())
    kept: list[FrontPoint] = []
    for seconds, size, gpus, short in points:  # an earlier one is as fast
        if not any(each.memory_bytes <= size and each.gpus <= gpus for each in kept):
            kept.append(FrontPoint(layout=short, gpus=gpus, step_time_s=seconds, memory_bytes=int(size),
                                   usd_per_step=_cost(question, gpus, seconds)))  # fmt: skip
    return tuple(kept)


# --- advice, comparison, launch -----------------------------------------------------------------------------------

FASTER = 2  # times the rate of a link, as a lever


def _advice(question: Question, space: Space, layout: Layout) -> tuple[Lever, ...]:
    """Levers of the layout, and those of the machine: 8-bit products, faster links."""
    found = [change for change in changes(space, layout) if _runs(question, change[2], layout)]
    levers = list(advise(layout, found, lambda layouts: _prices(question, layouts), question.limit_bytes))
    now, size = _step(question, layout).seconds, _memory(question, layout).total
    for lever, change, other in _machines(question):  # which changes no memory
        seconds = _step(other, layout).seconds
        levers.append(lever_of(lever, change, layout, seconds, now, size, question.limit_bytes))
    return ordered(levers)


def _runs(question: Question, layout: Layout, now: Layout) -> bool:
    """Whether the stack can run a layout, what the present one has being so in any case."""
    stack, own = question.stack, _policies(question)
    can = (
        layout.recompute in (*own["recompute"], now.recompute),
        layout.schedule in (*stack.schedules, now.schedule),
        layout.zero in (*stack.zero, now.zero),
        not layout.offload or stack.offloads or now.offload,
        layout.recompute_layers is None or stack.block_recompute or now.recompute_layers is not None,
    )
    return all(can)


def _prices(question: Question, layouts: Sequence[Layout]) -> list[tuple[float, float]]:
    """Steps as they are ranked, and memory; all by the closed form where one is too long to be played."""
    played = not any(too_long_to_play(layout, question.global_batch) for layout in layouts)
    steps = _steps(question, layouts)
    return [
        (step.seconds if played else step.closed_s, _memory(question, layout).total)
        for step, layout in zip(steps, layouts, strict=True)
    ]


def _machines(question: Question) -> list[tuple[str, str, Question]]:
    """The same question on other links, or in 8 bits where the device has them."""
    fabric, found = question.fabric, []
    for name, what in (("link_bytes_per_s", "links inside a node"), ("nics_bytes_per_s", "network between nodes")):
        rate = getattr(fabric, name)
        if rate is not None:
            faster = replace(question, fabric=replace(fabric, **{name: FASTER * rate}))
            found.append(("faster links", f"{what} × {FASTER}", faster))
    if question.workload.dtype in ("bf16", "fp16") and "fp8" in question.curves.device.peaks_flop_per_s:
        narrow = replace(question, workload=replace(question.workload, dtype="fp8"))
        found.append(("8-bit products", f"dtype {question.workload.dtype} → fp8", narrow))
    return found


def _why(
    question: Question, space: Space, rows: Sequence[PlannedLayout], asked: Sequence[int | str | Mapping[str, Any]]
) -> Difference:
    """Two layouts compared: places in the ranking, or the fastest under pins of their own."""
    first, second = (
        rows[min(each, len(rows)) - 1] if isinstance(each, int) else _fastest(question, space, each) for each in asked
    )
    return difference(first, second)


def _fastest(question: Question, space: Space, own: str | Mapping[str, Any]) -> PlannedLayout:
    """The fastest layout under pins of its own beside the question's: of those that fit, or where none does of all."""
    pins = read_pins(question.pins, space) | read_pins(own, space)
    allowed = _allowed(question, pins)
    try:
        _, result = _search(question, allowed, pins, POOL * question.top)
    except InputError:
        roomy = replace(question, limit_bytes=max(question.limit_bytes, ROOMY))
        _, result = _search(roomy, allowed, pins, POOL * question.top)
    return _refined(replace(question, top=1), result.best)[0]


def _launch_job(question: Question) -> LaunchJob:
    space = question.space
    inside = [placed for placed in question.arch.leaves() if placed.in_block]
    masks = {placed.layer.mask for placed in inside if isinstance(placed.layer, Attention)}
    return LaunchJob(
        model=question.arch.name, layers=space.cuts.layers, seq=question.workload.seq,
        global_batch=question.global_batch, dtype=question.workload.dtype, experts=bool(space.cuts.experts),
        per_node=question.fabric.gpus_per_node, masked=masks <= {"causal"},
        stacks=tuple(dict.fromkeys(placed.stream for placed in inside if placed.stream != SAMPLE)),
        scans=tuple(sorted({placed.layer.rule for placed in inside if isinstance(placed.layer, Scan)})),
    )  # fmt: skip
