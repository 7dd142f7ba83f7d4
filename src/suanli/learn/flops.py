"""From one product of matrices to 6N, to the closed form of a GPT, to models that the closed form does not fit."""

from __future__ import annotations

from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.count import count
from suanli.formulas.articles import matmul_flops
from suanli.formulas.counting import attention_flops, causal_pairs, full_pairs, ideal_flops
from suanli.formulas.gpt import gpt_attention_layer_flops, gpt_logits_flops, gpt_mlp_layer_flops, gpt_model_flops
from suanli.learn.book import Book
from suanli.nouns.lesson import Lesson, Series
from suanli.nouns.workload import Workload
from suanli.readers.model import read_model
from suanli.units import FLOPS_PER_MAC
from suanli.verify import claim_inputs

PRODUCT = (4, 3, 5)
MODELS = (("gpt3-175b", "MHA"), ("llama-3-8b", "GQA"), ("mixtral-8x7b", "GQA, MoE"), ("deepseek-v3", "MLA, MoE"))
SEQ = 4096
_MULTIPLES = (("inference", 2), ("training", 6), ("recomputed", 8))
_PASSES = 3  # forward once, backward twice
_HIDDEN = 4096
_OVER = tuple(2.0**power for power in range(-6, 7))  # h/s
_EQUAL, _LONG = 1.0, 1 / 16


def lesson(lang: str) -> Lesson:
    """The lesson."""
    book = Book("flops", lang)
    _matmul(book)
    _ideal(book)
    _layer(book)
    _error(book)
    _families(book)
    return book.lesson()


def _matmul(book: Book) -> None:
    m, n, p = PRODUCT
    found = matmul_flops(m, n, p)
    book.say("matmul", m=m, n=n, p=p, flops=found, macs=found // FLOPS_PER_MAC)


def _ideal(book: Book) -> None:
    run = claim_inputs("gpt3-flops")
    params, tokens = run["params"], run["tokens"]
    book.say("ideal", params=params, tokens=tokens)
    rows = [(book.word(name), multiple, ideal_flops(multiple, params, tokens)) for name, multiple in _MULTIPLES]
    book.table("ideal", ("text", ",", ".3e"), rows)
    book.keep(**{f"{multiple}n": flops for _, multiple, flops in rows})


def _layer(book: Book) -> None:
    shape = claim_inputs("gpt3-model-1")
    layers, hidden, seq, vocab = (shape[name] for name in ("num_layers", "hidden", "seq", "vocab"))
    whole = gpt_model_flops(**shape)
    attention = _PASSES * layers * attention_flops(full_pairs(seq, seq), 1, hidden, hidden)
    head = _PASSES * gpt_logits_flops(1, seq, hidden, vocab)
    first = whole - attention - head
    book.say("layer", layers=layers, hidden=hidden, seq=seq, vocab=vocab)
    parts = (("part_linear", first), ("part_attention", attention), ("part_head", head), ("total", whole))
    book.table("layer", ("text", ",", ".4f"), [(book.word(name), flops, flops / first) for name, flops in parts])
    book.keep(gpt3_model_flops=whole, attention_over_first=attention / first, head_over_first=head / first)


def missed(over: float, *, causal: bool) -> float:
    """Part of a layer's work that 6N leaves out where the width is so many times the length."""
    seq = round(_HIDDEN / over)
    every = attention_flops(full_pairs(seq, seq), 1, _HIDDEN, _HIDDEN)
    linear = gpt_attention_layer_flops(1, seq, _HIDDEN) - every + gpt_mlp_layer_flops(1, seq, _HIDDEN)
    pairs = causal_pairs(seq, seq, seq) if causal else full_pairs(seq, seq)
    attention = attention_flops(pairs, 1, _HIDDEN, _HIDDEN)
    return attention / (linear + attention)


def _error(book: Book) -> None:
    book.say("error", equal=_EQUAL, long=_LONG, at_equal=missed(_EQUAL, causal=False),
             at_equal_causal=missed(_EQUAL, causal=True), at_long=missed(_LONG, causal=False),
             at_long_causal=missed(_LONG, causal=True))  # fmt: skip
    book.plot("error", ("g", "percent1"), [
        Series(name=book.word(name), points=tuple((over, missed(over, causal=causal)) for over in _OVER))
        for name, causal in (("all_pairs", False), ("causal", True))
    ], log_y=False)  # fmt: skip


def _families(book: Book) -> None:
    book.say("families", seq=SEQ)
    rule, rows = find_convention(DEFAULT), []
    for name, kind in MODELS:
        arch = read_model(name)
        found = count(arch, Workload(phase="train", seq=SEQ), rule)
        cache = count(arch, Workload(phase="decode", seq=1, kv_len=1), rule).bytes.kv_cache
        rows.append(
            (name, kind, found.params.total, found.params.active, found.flops_per_token, found.ideal_error["6n"], cache)
        )
    book.table("families", ("text", "text", "count", "count", "flops", "change", ","), rows)
