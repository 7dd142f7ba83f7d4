"""The GPT-4 estimate worked through: what a mixture of experts holds, and what a token pays for."""

from __future__ import annotations

from suanli.catalog.claims import article_claims
from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.count import count
from suanli.formulas.articles import mixture_params
from suanli.formulas.counting import ideal_flops
from suanli.formulas.memory import weights_bytes
from suanli.formulas.running import gpu_hours, wall_days
from suanli.learn.book import Book
from suanli.nouns.lesson import Lesson, Value
from suanli.nouns.workload import DTYPE_BITS, Workload
from suanli.readers.model import read_model
from suanli.verify import claim_inputs

MODELS = ("mixtral-8x7b", "qwen3-235b-a22b", "deepseek-v3")
SEQ = 4096
_TRAINING = 6  # FLOPs for each parameter and token
_PER_ROW = 6


def lesson(lang: str) -> Lesson:
    """The lesson."""
    book = Book("moe", lang)
    held, routed = claim_inputs("gpt4-total"), claim_inputs("gpt4-active")
    total, active = mixture_params(**held), mixture_params(**routed)
    tokens = claim_inputs("gpt4-flops")["tokens"]
    experts, passed = held["experts_per_token"], routed["experts_per_token"]
    each, shared = held["params_per_expert"], held["shared_params"]
    book.say(
        "estimate", experts=experts, each=each, shared=shared, routed=passed, tokens=tokens, active=active, total=total
    )
    _drawn(book, experts, passed)
    _flops(book, int(active), int(total), tokens)
    bits = DTYPE_BITS["bf16"]
    book.say("memory", weights=weights_bytes(int(total), bits), active_weights=weights_bytes(int(active), bits))
    _real(book)
    book.keep(total=total, active=active)
    return book.lesson()


def _drawn(book: Book, experts: int, passed: int) -> None:
    taken = {place * experts // passed + 1 for place in range(passed)}  # some two of them: the router decides
    boxes = [(book.word("shared_part"), (book.word("passed"),))]
    boxes += [
        (book.word("expert", number=i + 1), (book.word("passed" if i in taken else "held"),)) for i in range(experts)
    ]
    book.boxes("drawn", boxes, per_row=_PER_ROW)


def _flops(book: Book, active: int, total: int, tokens: int) -> None:
    right, wrong = (ideal_flops(_TRAINING, params, tokens) for params in (active, total))
    claims = {claim.id: claim for claim in article_claims()}
    book.say("flops", active=active, tokens=tokens, right=right, wrong=wrong, times=wrong / right,
             public=claims["gpt4-flops-public"].article)  # fmt: skip
    run, cluster = claim_inputs("gpt4-gpu-hours"), claim_inputs("gpt4-days")
    peak, mfu, gpus = run["peak_flop_per_s"], run["mfu"], cluster["gpus"]
    rows = []
    for name, params, flops in (("active", active, right), ("all", total, wrong)):
        hours = gpu_hours(flops, peak, mfu)
        rows.append((book.word(name), params, flops, hours, wall_days(hours, gpus, 1)))
        book.keep(**{f"flops_by_{name}": flops, f"gpu_hours_by_{name}": hours, f"days_by_{name}": rows[-1][-1]})
    book.table("flops", ("text", "count", ".4e", ",.0f", ",.2f"), rows)
    slower = claim_inputs("gpt4-days-32")
    other = claims["gpt4-days-32"].inputs["hours"]["mfu"]
    book.say("time", peak=peak, mfu=mfu, printed=claims["gpt4-gpu-hours"].article, gpus=gpus, other=other,
             other_days=wall_days(slower["hours"], gpus, 1))  # fmt: skip


def _real(book: Book) -> None:
    rows: list[tuple[Value, ...]] = []
    for name in MODELS:
        found = count(read_model(name), Workload(phase="train", seq=SEQ), find_convention(DEFAULT))
        off = [
            ideal_flops(_TRAINING, n, 1) / found.flops_per_token - 1 for n in (found.params.active, found.params.total)
        ]
        rows.append((name, found.params.total, found.params.active, found.flops_per_token, *off))
    book.say("real", seq=SEQ)
    book.table("real", ("text", "count", "count", "flops", "change", "change"), rows)
