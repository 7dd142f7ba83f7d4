"""The time of a training step, as entries that add up to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from suanli.nouns.layout import Layout


@dataclass(frozen=True)
class Entry:
    """One part of a step."""

    entry: str = field(metadata={"unit": "", "doc": "what the time goes to"})
    seconds: float = field(metadata={"unit": "s", "doc": "on the rank that works longest, not hidden by anything"})


@dataclass(frozen=True, kw_only=True)
class StepEstimate:
    """The predicted step of one layout."""

    layout: Layout = field(metadata={"unit": "", "doc": "how the run is laid over GPUs"})
    step_time_s: float = field(metadata={"unit": "s", "doc": "of one optimizer step: the sum of the account"})
    step_time_interval_s: tuple[float, float] = field(
        metadata={"unit": "s", "doc": "80 %, from the errors on runs left out of the fit"}
    )
    account: tuple[Entry, ...] = field(metadata={"unit": "s", "doc": "where it goes"})
    mfu: float = field(metadata={"unit": "fraction", "doc": "model FLOPs over peak FLOPs of the dtype in that time"})
    tokens_per_second_per_gpu: float = field(metadata={"unit": "tokens/s", "doc": "of one GPU"})
    stack: str = field(metadata={"unit": "", "doc": "the stack whose profile was used"})
    closed_form_step_time_s: float = field(
        metadata={"unit": "s", "doc": "by the closed form, which profiles are fitted with"}
    )
    played: bool = field(metadata={"unit": "", "doc": "the step is with its pipeline played out, not the closed form"})
    extrapolates: tuple[str, ...] = field(default=(), metadata={"doc": "what lies beyond the runs it was fitted to"})

    def seconds(self, entry: str) -> float:
        """One entry; 0 where the step has none of that name."""
        return next((each.seconds for each in self.account if each.entry == entry), 0.0)
