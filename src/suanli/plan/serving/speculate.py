"""Speculative decoding: a few tokens are drafted, one step of the model checks them all.

A step reads weights and cache once, whatever it checks, so drafts are nearly free while reading limits; once products
do, every drafted row costs its arithmetic, taken or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from suanli.formulas.decoding import speculative_tokens
from suanli.nouns.serving_ways import Speculation
from suanli.plan.serving.rank import SEQUENCE
from suanli.plan.serving.times import Replica

Numbers = Any
OWN_LAYER = "MTP"


@dataclass(frozen=True, kw_only=True)
class Drafting:
    """How tokens are drafted. `replica` None: by one more layer of the model itself (multi-token prediction)."""

    draft_tokens: int = field(metadata={"unit": "tokens", "doc": "before each step, at least 1"})
    acceptance: float = field(metadata={"unit": "fraction", "doc": "of a token where those before were taken"})
    name: str = field(default=OWN_LAYER, metadata={"doc": "of what drafts"})
    replica: Replica | None = field(default=None, metadata={"doc": "the draft model on the same GPUs"})

    @property
    def tokens_per_step(self) -> float:
        """Mean tokens of a sequence from one step."""
        return speculative_tokens(self.draft_tokens, self.acceptance)


@dataclass(frozen=True, kw_only=True)
class Speculating:
    """A replica that drafts: what `ServingRates` asks for, a step's time spread over the tokens it gives."""

    replica: Replica
    drafting: Drafting

    def decode_s(self, sequences: Numbers, keys: Numbers) -> Numbers:
        """Seconds of one token of each sequence on average."""
        step = self.verify_s(sequences, keys) + self.draft_s(sequences, keys)
        return step / self.drafting.tokens_per_step

    def prefill_s(self, tokens: Numbers, keys: Numbers) -> Numbers:
        """Seconds of a prefill; a draft model reads the prompt too."""
        found = self.replica.prefill_s(tokens, keys)
        drafts = self.drafting.replica
        return found if drafts is None else found + drafts.prefill_s(tokens, keys)

    def verify_s(self, sequences: Numbers, keys: Numbers) -> Numbers:
        """Seconds of the model's step over the drafts and its own token."""
        return self.replica.decode_s(sequences, keys, 1.0 + self.drafting.draft_tokens)

    def draft_s(self, sequences: Numbers, keys: Numbers) -> Numbers:
        """Seconds of all drafts, one after another."""
        drafts = self.drafting.replica
        once = own_layer_s(self.replica, sequences, keys) if drafts is None else drafts.decode_s(sequences, keys)
        return self.drafting.draft_tokens * once


def own_layer_s(replica: Replica, sequences: Numbers, keys: Numbers) -> Numbers:
    """Seconds of one more layer with the model's head, inside a step that runs anyway."""
    whole, head = _work_s(replica, sequences, keys), _work_s(head_of(replica), sequences, keys)
    return (whole - head) / max(replica.work.layers, 1) + head


def _work_s(replica: Replica, sequences: Numbers, keys: Numbers) -> Numbers:
    """A step without what belongs to the step and its sequences as a whole."""
    found = replica.decode_parts(sequences, keys).seconds(replica.profile)
    return sum(seconds for name, seconds in found.items() if name not in ("step", "sequences"))


def head_of(replica: Replica) -> Replica:
    """The replica with the head alone."""
    work = replica.work
    heads = tuple(each for each in work.products if each.row == SEQUENCE)
    talks = tuple(each for each in work.exchanges if each.row == SEQUENCE)
    alone = replace(work, layers=0, products=heads, mixtures=(), attending=(), passes=(), exchanges=talks, hidden=0)
    return replace(replica, work=alone)


def speculation(rates: Speculating, sequences: float, keys: float) -> Speculation:
    """What drafting does at a batch."""
    plain, token = float(rates.replica.decode_s(sequences, keys)), float(rates.decode_s(sequences, keys))
    drafting = rates.drafting
    return Speculation(
        draft=drafting.name, draft_tokens=drafting.draft_tokens, acceptance=drafting.acceptance,
        tokens_per_step=drafting.tokens_per_step, verify_s=float(rates.verify_s(sequences, keys)),
        draft_s=float(rates.draft_s(sequences, keys)), plain_s=plain, speed_up=plain / token,
    )  # fmt: skip
