"""Formula against trace for a model type of transformers: what both say of a config, and how the type came out."""

from __future__ import annotations

from dataclasses import dataclass, field

SMALL, DEFAULT = "small", "default"  # the two configs of a type

EXACT = "exact"
DECLARED = "exact but for a declared difference"
WRONG = "wrong"  # formula and trace differ, and nobody has said why
PARTLY = "exact where it runs"  # transformers builds or runs only one of the two configs
BY_TRACE = "by trace only"
NOT_RUN = "not run"  # by transformers as it is here
STATUSES = (EXACT, DECLARED, PARTLY, BY_TRACE, NOT_RUN, WRONG)


@dataclass(frozen=True, kw_only=True)
class ScanCounts:
    """FLOPs of a model's scans: as recurrences, as the usual kernel runs them, as transformers does without it."""

    recurrence: int = field(metadata={"unit": "FLOPs", "doc": "one step after another"})
    kernel: int = field(metadata={"unit": "FLOPs", "doc": "in chunks, as the usual kernel"})
    fallback: int = field(metadata={"unit": "FLOPs", "doc": "in plain tensor operations, as transformers without it"})
    padding: int = field(metadata={"unit": "FLOPs", "doc": "positions that padded convolutions compute and drop"})
    solved: int = field(default=0, metadata={"unit": "FLOPs", "doc": "triangular systems solved in the fallback"})

    @property
    def beside(self) -> int:
        """What a trace sees more than recurrences would make."""
        return self.fallback - self.recurrence + self.padding + self.solved


@dataclass(frozen=True, kw_only=True)
class LengthCheck:
    """One forward pass: FLOPs by formula under convention `full`, and by trace."""

    seq: int = field(metadata={"unit": "tokens", "doc": "words, without those of a picture or a sound"})
    of: str = field(default="", metadata={"doc": "size of the picture or length of the sound"})
    flops_formula: int | None = field(default=None, metadata={"unit": "FLOPs", "doc": "convention full"})
    flops_trace: int | None = field(default=None, metadata={"unit": "FLOPs", "doc": "seen by the dispatcher"})
    scans: ScanCounts | None = field(default=None, metadata={"doc": "None where the model has no scan"})
    declared: int = field(default=0, metadata={"unit": "FLOPs", "doc": "what a declared difference adds to the trace"})

    @property
    def expected(self) -> int | None:
        """What a trace should see: scans as transformers runs them here, and what was declared."""
        if self.flops_formula is None:
            return None
        other = 0 if self.scans is None else self.scans.beside
        return self.flops_formula + other + self.declared

    @property
    def error(self) -> int | None:
        """Trace less what was expected; None where either is missing."""
        if self.expected is None or self.flops_trace is None:
            return None
        return self.flops_trace - self.expected


@dataclass(frozen=True, kw_only=True)
class ConfigCheck:
    """One config of a type: parameters of formula and class, and a forward pass at two lengths."""

    config: str = field(metadata={"doc": "small or default"})
    made: str = field(default="", metadata={"doc": "how the config was made, where not simply taken"})
    params_formula: int | None = field(default=None, metadata={"unit": "parameters"})
    params_torch: int | None = field(default=None, metadata={"unit": "parameters", "doc": "of the class on meta"})
    lengths: tuple[LengthCheck, ...] = ()
    not_read: str = field(default="", metadata={"doc": "why there is no formula"})
    not_run: str = field(default="", metadata={"doc": "why transformers could not build or run it"})
    uncounted: tuple[str, ...] = field(default=(), metadata={"doc": "operators the trace has no formula for"})
    terms: tuple[str, ...] = field(default=(), metadata={"doc": "terms that differ"})

    @property
    def params_error(self) -> int | None:
        """The class's parameters less the formula's."""
        if self.params_formula is None or self.params_torch is None:
            return None
        return self.params_torch - self.params_formula

    @property
    def compared(self) -> bool:
        """Whether parameters and FLOPs of both sides are there."""
        return self.params_error is not None and bool(self.lengths) and all(x.error is not None for x in self.lengths)

    @property
    def wrong(self) -> bool:
        """Whether a figure of the formula is not the one found."""
        return bool(self.params_error) or any(length.error for length in self.lengths)


@dataclass(frozen=True, kw_only=True)
class MemoryCheck:
    """Activations kept for backward in training of the small config, without recomputation."""

    seq: int = field(metadata={"unit": "tokens"})
    by_formula: int = field(metadata={"unit": "bytes", "doc": "the memory model, norms and activations fused"})
    by_trace: int = field(metadata={"unit": "bytes", "doc": "kept by autograd as transformers runs, in small steps"})

    @property
    def ratio(self) -> float:
        """By trace over by formula."""
        return self.by_trace / self.by_formula


@dataclass(frozen=True, kw_only=True)
class Covered:
    """A model type in a task, checked."""

    mapping: str
    model_type: str
    class_name: str
    checks: tuple[ConfigCheck, ...]
    status: str
    why: str = field(default="", metadata={"doc": "why not exact, or which difference is declared"})
    seconds: float = field(default=0.0, metadata={"unit": "s"})
    memory: MemoryCheck | None = field(default=None, metadata={"doc": "None where it is not compared"})

    @property
    def terms(self) -> tuple[str, ...]:
        """Terms that differ, over all configs."""
        return tuple(dict.fromkeys(term for check in self.checks for term in check.terms))


def status_of(checks: tuple[ConfigCheck, ...], declared: str) -> tuple[str, str]:
    """How a type came out, and why where not simply exact."""
    if any(check.wrong for check in checks):
        return WRONG, "; ".join(term for check in checks for term in check.terms[:1]) or "parameters differ"
    ran = [check for check in checks if not check.not_run]
    if not ran:
        return NOT_RUN, next((check.not_run for check in checks), "")
    if any(check.not_read for check in ran):
        return BY_TRACE, next(check.not_read for check in ran if check.not_read)
    unrun = "; ".join(f"{check.config}: {check.not_run}" for check in checks if check.not_run)
    if any(length.declared for check in ran for length in check.lengths):
        return (PARTLY, f"{declared}; {unrun}") if unrun else (DECLARED, declared)
    return (PARTLY, unrun) if unrun else (EXACT, "")


@dataclass(frozen=True, kw_only=True)
class MappingSummary:
    """How the types of one task came out."""

    mapping: str
    types: int
    exact: int = field(metadata={"doc": "parameters and FLOPs to the last digit, all configs and lengths run"})
    declared: int = field(metadata={"doc": "the same with a difference that is known and said"})
    partly: int = field(metadata={"doc": "the same, of the one config that transformers builds and runs"})
    by_trace: int = field(metadata={"doc": "no formula; counted by running transformers' class"})
    not_run: int = field(metadata={"doc": "transformers itself builds or runs none of the configs here"})
    wrong: int = field(metadata={"doc": "formula and trace differ"})


ALL = "all, each type once"


def summarise_coverage(found: tuple[Covered, ...]) -> tuple[MappingSummary, ...]:
    """A row a task in order, and one of all types, each by the worst it came out."""
    tasks: dict[str, list[str]] = {}
    types: dict[str, str] = {}
    for each in found:
        tasks.setdefault(each.mapping, []).append(each.status)
        before = types.get(each.model_type, STATUSES[0])
        types[each.model_type] = max(before, each.status, key=STATUSES.index)
    rows = [_summary(mapping, statuses) for mapping, statuses in tasks.items()]
    return (*rows, _summary(ALL, list(types.values()))) if rows else ()


def _summary(mapping: str, statuses: list[str]) -> MappingSummary:
    counts = [statuses.count(status) for status in STATUSES]
    names = ("exact", "declared", "partly", "by_trace", "not_run", "wrong")
    return MappingSummary(mapping=mapping, types=len(statuses), **dict(zip(names, counts, strict=True)))
