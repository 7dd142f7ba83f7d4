"""Formulas of a training step that need no tool: their number for a model, and why it is not the right one.

Right is convention `full` for a whole step. Where a formula is a convention of ours, the two ledgers are subtracted
row by row; the ELECTRA script is taken apart term by term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from suanli.catalog.conventions import CONVENTIONS
from suanli.compare.explain import Found, grouped
from suanli.compare.peers import Peer
from suanli.count import build_ledger
from suanli.formulas.counting import ideal_flops
from suanli.formulas.electra import MASKED, electra_terms, electra_train_flops
from suanli.nouns.arch import Arch
from suanli.nouns.comparison import Cause
from suanli.nouns.layers import Layer, Linear
from suanli.nouns.ledger import BACKWARD, FORWARD, Ledger
from suanli.nouns.workload import Workload

CONVENTION_OF = {"megatron": "megatron", "palm": "palm", "6nd": "6n-all", "hf-trainer": "6n"}
_PREDICTED = {"causal-lm": Fraction(1), "masked-lm": MASKED}


@dataclass(frozen=True, kw_only=True)
class Closed:
    """A formula's number, or why it has none."""

    flops: int | None
    causes: tuple[Cause, ...] = ()
    unexplained: int | None = None
    reason: str | None = None


def right_step(arch: Arch, workload: Workload) -> Ledger:
    """The right books of a training step: convention full."""
    return build_ledger(arch, workload, CONVENTIONS["full"])


def closed(peer: Peer, arch: Arch, workload: Workload, main_input: int | None = None) -> Closed:
    """What a formula says of a training step. `main_input`: elements of the model's main input, where known."""
    if peer.name == "electra":
        return _electra(arch, workload)
    if peer.name == "hf-trainer":
        return _hf_trainer(arch, workload, main_input)
    if peer.name == "megatron":
        return _megatron(arch, workload) if arch.shape is not None else _none(arch, "a transformer")
    found = _by_ledger(CONVENTION_OF[peer.name], arch, workload)
    return _answer(found, right_step(arch, workload))


def _none(arch: Arch, what: str) -> Closed:
    return Closed(flops=None, reason=f"the formula is for {what}; {arch.name} is none that it describes")


def _answer(found: tuple[int, list[Found]], right: Ledger) -> Closed:
    flops, causes = found
    rest = flops - right.model_flops - sum(each.flops for each in causes)
    return Closed(flops=flops, causes=grouped(causes), unexplained=rest)


# --- a convention against convention full -------------------------------------------------------------------------


def _by_ledger(name: str, arch: Arch, workload: Workload) -> tuple[int, list[Found]]:
    """The number under a convention, and every row that differs from convention full."""
    ledger, right = build_ledger(arch, workload, CONVENTIONS[name]), right_step(arch, workload)
    layers = {placed.path: placed.layer for placed in arch.leaves()}
    sums = [_sums(each) for each in (ledger, right)]
    found: list[Found] = []
    for path in {**sums[0], **sums[1]}:
        said, true = (each.get(path, (0, 0)) for each in sums)
        found.extend(_row(path, layers.get(path), said, true))
    return ledger.model_flops, found


def _sums(ledger: Ledger) -> dict[str, tuple[int, int]]:
    """Forward and backward FLOPs of every path."""
    found: dict[str, tuple[int, int]] = {}
    for row in ledger.rows:
        before, after = found.get(row.path, (0, 0))
        forward, backward = (row.model_flops if row.pass_ == each else 0 for each in (FORWARD, BACKWARD))
        found[row.path] = before + forward, after + backward
    return found


def _row(path: str, layer: Layer | None, said: tuple[int, int], true: tuple[int, int]) -> Iterator[Found]:
    """Causes at one row: what the forward is charged, then the rule for backward."""
    kind = layer.kind if layer is not None else "formula"
    forward, right = said[0], true[0]
    backward_of_right = 2 * right
    yield Found(_forward_words(kind, layer, forward, right), 3 * (forward - right), path)
    yield Found(_BACKWARD_WORDS, backward_of_right - true[1], path)
    yield Found("backward charged otherwise than 2 × forward", said[1] - 2 * forward, path)


_BACKWARD_WORDS = "backward taken as 2 × forward where a gradient is not needed"
_CHARGED = {
    "embedding": "embedding tables charged as products",
    "norm": "norm weights charged as products",
    "parameter": "raw parameters charged as products",
    "conv": "convolution weights charged once, not at every position",
    "experts": "experts charged otherwise than routed",
    "attention": "attention charged otherwise than every pair",
}


def _forward_words(kind: str, layer: Layer | None, said: int, true: int) -> str:
    role = layer.role if isinstance(layer, Linear) else ""
    if said == 0:
        return "router left out" if role == "router" else f"{kind} left out"
    if kind == "attention" and 2 * said == true:
        return "attention by half of the pairs"
    if kind == "linear":
        return "biases charged as products" if said > true else f"{role} weights charged at other positions"
    return _CHARGED.get(kind, f"{kind} charged otherwise")


# --- Megatron-LM --------------------------------------------------------------------------------------------------


def _megatron(arch: Arch, workload: Workload) -> Closed:
    """Convention megatron for the layers and the logits; the formula knows no other matrices."""
    flops, found = _by_ledger("megatron", arch, workload)
    known = {placed.path for placed in arch.leaves() if placed.in_block or _is_logits(placed.layer)}
    ledger = build_ledger(arch, workload, CONVENTIONS["megatron"])
    for row in ledger.rows:
        if row.path not in known and row.model_flops:
            found.append(Found("outside the layers and the logits, left out", -row.model_flops, row.path))
            flops -= row.model_flops
    return _answer((flops, found), right_step(arch, workload))


def _is_logits(layer: Layer) -> bool:
    return isinstance(layer, Linear) and layer.role == "lm_head"


# --- Hugging Face total_flos --------------------------------------------------------------------------------------


def _hf_trainer(arch: Arch, workload: Workload, main_input: int | None) -> Closed:
    """6 × elements of the main input × parameters outside embedding modules, all experts."""
    flops, found = _by_ledger("6n", arch, workload)
    units = workload.batch * (workload.seq if arch.unit == "token" else 0)
    elements = main_input or units
    if not elements:
        return Closed(flops=None, reason="the elements of its main input are known only where the model is built")
    n = _outside_embeddings(arch)
    said = ideal_flops(6, n, elements)
    found.append(Found(f"elements of the input ({elements:,}) taken for tokens", said - flops, ""))
    return _answer((said, found), right_step(arch, workload))


def _outside_embeddings(arch: Arch) -> int:
    return arch.params_total - arch.params_embedding


# --- the ELECTRA script -------------------------------------------------------------------------------------------


def _electra(arch: Arch, workload: Workload) -> Closed:
    """The script with its defaults: 5/32 of the positions predicted, all of them for a decoder."""
    shape = arch.shape
    if shape is None or arch.task not in _PREDICTED:
        return _none(arch, "an encoder or a decoder of text")
    letters = {
        "seq": workload.seq, "num_layers": shape.num_layers, "hidden": shape.hidden, "ffn": shape.ffn,
        "heads": shape.heads, "head_dim": shape.head_dim, "vocab": shape.vocab,
    }  # fmt: skip
    predicted = _PREDICTED[arch.task]
    exact = electra_train_flops(batch=workload.batch, predicted=predicted, **letters)
    right = right_step(arch, workload)
    found = list(_electra_terms(arch, workload, right, electra_terms(**letters, predicted=predicted)))
    flops = round(exact)
    if flops != exact:
        whole = sum(each.flops for each in found)
        found.append(Found("a part of a position, rounded", flops - right.model_flops - whole, ""))
    return _answer((flops, found), right)


def _electra_terms(
    arch: Arch, workload: Workload, right: Ledger, terms: Mapping[str, int | Fraction]
) -> Iterator[Found]:
    """Twice every term that is no product; products of the layers and of the head against the right ones."""
    inside = {placed.path for placed in arch.leaves() if placed.in_block}
    rows = [row for row in right.rows if row.pass_ == FORWARD]
    layers = sum(row.model_flops for row in rows if row.path in inside)
    head = sum(row.model_flops for row in rows) - layers
    charged = {name: int(2 * workload.batch * value) for name, value in terms.items()}
    yield Found(_ELECTRA_LAYERS, charged.pop("layers") - 2 * layers, "")
    yield Found("head: other positions or matrices than the script's", charged.pop("head") - 2 * head, "")
    for name, flops in charged.items():
        yield Found(f"{name} charged", flops, "")
    yield Found("backward taken as once the forward", 2 * (layers + head) - right.model_flops, "")


_ELECTRA_LAYERS = "layers: matrices other than the script's (gating, grouped queries, experts)"
