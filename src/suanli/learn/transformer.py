"""The five steps of inference on a tiny model made on the spot, its FLOPs beside those of `count`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.catalog.lessons import own_text
from suanli.count import count
from suanli.errors import Fault, InputError
from suanli.learn.book import Book
from suanli.learn.bpe import Tokeniser, train
from suanli.learn.tiny import DTYPE, HEADS, LAYERS, POSITIONS, WIDTH, Tiny, arch_of, generate, softmax
from suanli.nouns.arch import Arch
from suanli.nouns.counts import Count
from suanli.nouns.lesson import Lesson
from suanli.nouns.workload import Workload

MERGES = 256
PROMPT = "算力 counts every token"
NEW_TOKENS = 8
MOST_DRAWN = 24  # tokens of the picture
_TOP = 5
_LABEL = 10  # characters of a token that are shown
# Which step of the lesson a leaf of the model belongs to, by the end of its path.
_STEPS = {
    "wte": "embed", "wpe": "position", "attn.c_attn": "qkv", "attn.attention": "attention", "attn.c_proj": "out",
    "mlp.c_fc": "mlp", "mlp.act": "mlp", "mlp.c_proj": "mlp", "ln_1": "norm", "ln_2": "norm", "ln_f": "norm",
    "lm_head": "head", "attn.dropout": "out", "mlp.dropout": "mlp",
}  # fmt: skip
_ORDER = ("embed", "position", "qkv", "attention", "out", "mlp", "norm", "head")


@dataclass(frozen=True)
class Shown:
    """What the lesson looks at: a tokeniser, a prompt in tokens, a model."""

    tokeniser: Tokeniser
    prompt: str
    seed: int
    new_tokens: int

    @cached_property
    def tokens(self) -> list[int]:
        """The prompt in tokens."""
        return self.tokeniser.encode(self.prompt)

    @cached_property
    def arch(self) -> Arch:
        """The model as `count` reads it."""
        return arch_of(self.tokeniser.size)

    def model(self) -> Tiny:
        """The model, its book empty."""
        return Tiny(self.tokeniser.size, self.seed)

    def counted(self, phase: str, length: int, convention: str = DEFAULT) -> Count:
        """Its books by `count`: a prompt of that length, or one token that sees so many."""
        workload = Workload(phase=phase, seq=length, kv_len=length if phase == "decode" else None, dtype=DTYPE)
        return count(self.arch, workload, find_convention(convention))

    def label(self, token: int) -> str:
        """A token's text as it is shown: blanks visible, bytes that are no text as numbers."""
        text = self.tokeniser.decode([token]).replace(" ", "␣").replace("\n", "⏎")
        return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)[:_LABEL]


@cache
def tokeniser() -> Tokeniser:
    """Trained when it is first needed, on the lesson's own text."""
    return train(own_text("transformer"), MERGES)


def lesson(lang: str, *, prompt: str = PROMPT, new_tokens: int = NEW_TOKENS, seed: int = 0) -> Lesson:
    """The lesson. Raises InputError for a prompt that is empty or too long for the model."""
    shown = Shown(tokeniser(), prompt, seed, new_tokens)
    _check(shown)
    book, model = Book("transformer", lang), shown.model()
    logits = model.run(shown.tokens)
    arch = shown.arch
    book.say("model", layers=LAYERS, heads=HEADS, width=WIDTH, params=arch.params_total, dtype=DTYPE, seed=seed)
    _tokens(book, shown)
    _steps(book, shown, model)
    _picture(book, shown, model)
    _chances(book, shown, softmax(logits))
    _phases(book, shown)
    _cache(book, shown)
    return book.lesson()


def _check(shown: Shown) -> None:
    got = len(shown.tokens)
    if not got or got + shown.new_tokens > POSITIONS:
        raise InputError(
            Fault(code="bad_prompt", message="the prompt does not fit the model", where="--prompt",
                  got=f"{got:,} tokens, and {shown.new_tokens:,} to put out", expected=f"1 to {POSITIONS:,} together")
        )  # fmt: skip


def _tokens(book: Book, shown: Shown) -> None:
    corpus = len(own_text("transformer").encode())
    book.say("tokens", corpus=corpus, merges=len(shown.tokeniser.merges), vocab=shown.tokeniser.size,
             bytes=len(shown.prompt.encode()), tokens=len(shown.tokens),
             shown=min(len(shown.tokens), MOST_DRAWN))  # fmt: skip
    rows = [
        (place, token, len(shown.tokeniser.bytes_of(token)), shown.label(token))
        for place, token in enumerate(shown.tokens[:MOST_DRAWN])
    ]
    book.table("tokens", (",", "d", ",", "text"), rows)
    book.keep(vocab=shown.tokeniser.size, tokens=len(shown.tokens))


def step_of(path: str) -> str:
    """The step of the lesson a leaf belongs to."""
    return next(step for end, step in _STEPS.items() if path.endswith(end))


def _steps(book: Book, shown: Shown, model: Tiny) -> None:
    found = shown.counted("prefill", len(shown.tokens))
    flops, moved = dict.fromkeys(_ORDER, 0), dict.fromkeys(_ORDER, 0)
    for row in found.ledger.rows:
        step = step_of(row.path)
        flops[step] += row.model_flops
        moved[step] += row.read_bytes + row.write_bytes
    rows: list[tuple[Any, ...]] = []
    for step in _ORDER:
        shape = "×".join(map(str, model.shapes[step])) if step in model.shapes else ""
        rows.append(
            (
                book.word(f"step_{step}"),
                shape,
                flops[step],
                moved[step],
                flops[step] / moved[step] if flops[step] else None,
            )
        )
    whole, bytes_ = sum(flops.values()), sum(moved.values())
    assert whole == found.flops.model
    rows.append((book.word("total"), "", whole, bytes_, whole / bytes_))
    book.say("steps", vocab=shown.tokeniser.size)
    book.table("steps", ("text", "text", ",", ",", ".1f"), rows)
    made, full = model.flops.total(), shown.counted("prefill", len(shown.tokens), "full").flops.model
    book.say("books", made=made, full=full, causal=whole)
    book.keep(flops_made=made, flops_full=full, flops_causal=whole)


def _picture(book: Book, shown: Shown, model: Tiny) -> None:
    layer, head = LAYERS - 1, 0
    labels = [shown.label(token) for token in shown.tokens[:MOST_DRAWN]]
    book.say("picture", layer=layer + 1, head=head + 1)
    book.shades("picture", labels, labels, model.attention[layer][head][:MOST_DRAWN, :MOST_DRAWN])


def _chances(book: Book, shown: Shown, chances: Any) -> None:
    best = [int(each) for each in (-chances).argsort(kind="stable")[:_TOP]]
    book.say("chances", vocab=shown.tokeniser.size, even=1 / shown.tokeniser.size)
    book.table(
        "chances", ("d", "text", "percent"), [(token, shown.label(token), float(chances[token])) for token in best]
    )


def _phases(book: Book, shown: Shown) -> None:
    length = len(shown.tokens)
    rows, per_byte = [], {}
    for phase, tokens, at in (("prefill", length, length), ("decode", 1, length + 1)):
        found = shown.counted(phase, at)
        moved = sum(row.read_bytes + row.write_bytes for row in found.ledger.rows)
        per_byte[phase] = found.flops.model / moved
        rows.append((book.word(phase), tokens, found.flops.model, moved, per_byte[phase], found.flops.model / tokens))
    book.say("phases", tokens=length, **per_byte)
    book.table("phases", ("text", ",", ",", ",", ".2f", ",.0f"), rows)


def _cache(book: Book, shown: Shown) -> None:
    length, new = len(shown.tokens), shown.new_tokens
    rows, with_, without = [], 0, 0
    for done in range(new):
        with_ += shown.counted("decode" if done else "prefill", length + done).flops.model
        without += shown.counted("prefill", length + done).flops.model
        rows.append((done + 1, with_, without, shown.counted("decode", length + done).bytes.kv_cache))
    each = shown.counted("decode", 1).bytes.kv_cache
    out = [generate(shown.model(), shown.tokens, new, cached=cached) for cached in (True, False)]
    same = sum(a == b for a, b in zip(*out, strict=True))  # rounding may part two tokens of nearly one score
    book.say("cache", new=new, each=each, with_=with_, without=without, times=without / with_, same=same,
             held=rows[-1][-1])  # fmt: skip
    book.table("cache", (",", ",", ",", ","), rows)
    book.keep(flops_with_cache=with_, flops_without_cache=without, cache_bytes=rows[-1][-1],
              text_out=shown.tokeniser.decode(out[0]))  # fmt: skip
