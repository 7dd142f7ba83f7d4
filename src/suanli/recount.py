"""Published runs counted again: the model of a row, its FLOPs per token under the convention named, its utilisation."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from suanli.catalog.conventions import CONVENTIONS
from suanli.catalog.runs import rate_per_gpu
from suanli.count import build_ledger
from suanli.formulas.counting import ideal_flops, linear_flops
from suanli.formulas.gpt import gpt_hardware_flops_full, gpt_model_flops
from suanli.formulas.running import utilisation
from suanli.nouns.arch import Arch, Module
from suanli.nouns.convention import Convention
from suanli.nouns.layers import Attention, Layer
from suanli.nouns.ledger import FORWARD
from suanli.nouns.run import PublishedRun
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config
from suanli.readers.paper import read_paper_decoder
from suanli.units import GIGA, TERA

PERCENT = 0.01
SHAPE_TOLERANCE = 0.02  # a shape further from the printed parameters does not hold them all


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a trainer's figure is made: a convention on the row's model, or a closed form on its letters."""

    name: str
    convention: Convention | None = None
    recompute: str = "none"
    gated: bool | None = None  # the MLP as the trainer takes it, None: as it is
    extra_layers: int = 0  # multi-token-prediction layers, each with its joining matrix and one more head
    windows: bool = False  # sliding windows of the row's words are kept
    frozen: bool = False  # weights need no gradient of their own: forward and one product backward
    closed: Callable[[int, int, int, int, int], int] | None = None
    ratio_only: bool = False  # printed TFLOP/s over the peak


_MATMULS = replace(CONVENTIONS["megatron"], name="matmuls", pairs="none")
_FULL, _HALF = CONVENTIONS["megatron-full"], CONVENTIONS["megatron"]
_RULES = (
    Rule(name="palm", convention=CONVENTIONS["palm"]),
    Rule(name="6n-all", convention=CONVENTIONS["6n-all"]),
    Rule(name="8n", convention=CONVENTIONS["6n-all"], recompute="full"),
    Rule(name="megatron-full", convention=_FULL),
    Rule(name="megatron", convention=_HALF),
    Rule(name="hardware-full", convention=_FULL, recompute="full"),
    Rule(name="hardware-half", convention=_HALF, recompute="full"),
    Rule(name="megatron-windows", convention=replace(_HALF, name="megatron-windows", pairs="mask"), windows=True),
    Rule(name="megatron-ungated", convention=_HALF, gated=False),
    Rule(name="megatron-mtp", convention=_HALF, extra_layers=1),
    Rule(name="lora-4n", convention=_MATMULS, frozen=True),
    Rule(name="matmuls-6n", convention=_MATMULS),
    Rule(name="gpt-72", closed=gpt_model_flops),
    Rule(name="gpt-96", closed=gpt_hardware_flops_full),
    Rule(name="printed-rate", ratio_only=True),
)
RULES = {rule.name: rule for rule in _RULES}

# What `best_convention` of published_runs.csv says, by how it begins.
_WORDS = {
    "6N+12LHQT": "palm",
    "8N hardware": "8n",
    "Megatron full attention": "megatron-full",
    "Megatron with causal-halved": "megatron",
    "hardware FLOPs (full recompute": "hardware-full",
    "hardware FLOPs with causal-halved": "hardware-half",
    "MLP counted with 2 matrices": "megatron-ungated",
    "causal-halved + one MTP layer": "megatron-mtp",
    "LoRA: 4 x matmul": "lora-4n",
    "6 x matmul parameters": "matmuls-6n",
    "72BSLh^2": "gpt-72",
    "96BSLh^2": "gpt-96",
    "TFLOP/s / peak only": "printed-rate",
}


@dataclass(frozen=True)
class Recount:
    """A row counted again: utilisation 0..1 under a rule, or why it cannot be."""

    got: float | None
    rule: str = ""
    why: str = ""


def rule_of(run: PublishedRun) -> Rule | None:
    """The rule a row's `best_convention` means; None where it names none that can be counted."""
    words = run.best_convention or ""
    fitting = ["6n-all"] if words == "6N" else [name for start, name in _WORDS.items() if words.startswith(start)]
    if fitting == ["megatron"] and _window(run.arch_extra or ""):
        return RULES["megatron-windows"]  # "no window" is a convention of its own in those words
    return RULES[fitting[0]] if fitting else None


def recount(run: PublishedRun, rule: Rule | None = None) -> Recount:
    """Utilisation of a published run under a rule (its own where none is given)."""
    rule = rule or rule_of(run)
    if rule is None:
        return Recount(None, "", _no_rule(run))
    if not run.peak_tflops:
        return Recount(None, rule.name, "no peak known")
    peak = run.peak_tflops * TERA
    if rule.ratio_only:
        return _printed_rate(run, rule, peak)
    rate = rate_per_gpu(run)
    if rate is None or not run.seq_len:
        return Recount(None, rule.name, "no throughput printed")
    flops = flops_per_token(run, rule)
    if flops is None:
        return Recount(None, rule.name, "no shape of the model printed")
    return Recount(utilisation(flops * rate, peak), rule.name)


def _no_rule(run: PublishedRun) -> str:
    if run.best_convention:
        return f"the source's own figure, no formula: {run.best_convention}"
    if run.published_pct_compared is None:
        return f"no utilisation printed ({run.check_status})"
    return f"no convention found ({run.check_status})"


def _printed_rate(run: PublishedRun, rule: Rule, peak: float) -> Recount:
    if run.tflops_per_gpu is None:
        return Recount(None, rule.name, "no rate printed")
    return Recount(utilisation(run.tflops_per_gpu * TERA, peak), rule.name)


def flops_per_token(run: PublishedRun, rule: Rule) -> float | None:
    """Training FLOPs of one token of the row's model; None where its shape is not printed."""
    letters = letters_of(run)
    if letters is None or not run.seq_len:
        return None
    if rule.closed is not None:
        return rule.closed(1, run.seq_len, letters.num_layers, letters.hidden, letters.vocab) / run.seq_len
    if rule.gated is not None:
        letters = replace(letters, gated=rule.gated)
    return _counted(letters, rule.name)


@cache
def _counted(letters: Letters, rule_name: str) -> float:
    """The same by the ledger of one sequence."""
    rule = RULES[rule_name]
    assert rule.convention is not None
    deeper = replace(letters, num_layers=letters.num_layers + rule.extra_layers)
    arch = arch_of(deeper, rule.windows)
    workload = Workload(phase="train", seq=letters.seq, recompute=rule.recompute)
    ledger = build_ledger(arch, workload, rule.convention)
    if rule.frozen:
        return 2 * ledger.flops(FORWARD) / letters.seq
    per_token = (ledger.hardware_flops if rule.recompute == "full" else ledger.model_flops) / letters.seq
    if rule.convention.basis == "params":
        per_token += ideal_flops(8 if rule.recompute == "full" else 6, _unshaped(letters, arch), 1)
    return per_token + rule.extra_layers * _prediction_flops(letters)


def _prediction_flops(letters: Letters) -> int:
    """What a multi-token-prediction layer has beside the layer: [2h, h] to join two inputs, and the head again."""
    h = letters.hidden
    return 3 * (linear_flops(1, 2 * h, h) + linear_flops(1, h, letters.vocab))


# --- the model of a row -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Letters:
    """The columns of a row that make its model; equal rows are counted once."""

    num_layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    seq: int
    gated: bool
    experts: int
    top_k: int
    expert_ffn: int
    shared: int
    extra: str
    params: float  # active parameters as printed, 0 for none


def letters_of(run: PublishedRun) -> Letters | None:
    """The letters of a row's model; None where its shape is not printed."""
    layers, hidden, heads, ffn, vocab, seq = run.n_layers, run.hidden, run.heads, run.ffn, run.vocab, run.seq_len
    if not (layers and hidden and heads and ffn and vocab and seq):
        return None
    return Letters(
        num_layers=layers, hidden=hidden, heads=heads, kv_heads=run.kv_heads or heads,
        head_dim=run.head_dim or hidden // heads, ffn=ffn, vocab=vocab, seq=seq, gated=bool(run.gated_mlp),
        experts=run.moe_experts or 0, top_k=run.moe_topk or 0, expert_ffn=run.moe_ffn or ffn,
        shared=run.moe_shared or 0, extra=run.arch_extra or "",
        params=(run.params_active_b or run.params_total_b or 0) * GIGA,
    )  # fmt: skip


@cache
def arch_of(letters: Letters, windows: bool = False) -> Arch:
    """The model of a row. What its columns leave open (tied head, learned positions, biases) is taken as it comes
    nearest to the printed parameters; FLOPs of products are the same either way."""
    if letters.extra.startswith("MLA"):
        return _latent(letters)
    ways = product((True, False), repeat=3)
    models = (_decoder(letters, *way) for way in ways)
    arch = min(models, key=lambda model: abs(model.params_active - letters.params))
    return _windowed(arch, _window(letters.extra)) if windows else arch


def _window(extra: str) -> int:
    """The window of every other layer that a row's words tell of, 0 for none."""
    found = re.search(r"alternate layers sliding window (\d+)", extra)
    return int(found[1]) if found else 0


def _windowed(arch: Arch, window: int) -> Arch:
    """The same model with that window in the layers of even index."""
    children: list[Module | Layer] = []
    for child in arch.root.children:
        if isinstance(child, Module) and child.indices is not None and window:
            leaves = child.children
            near = tuple(replace(leaf, window=window) if isinstance(leaf, Attention) else leaf for leaf in leaves)
            children += [
                replace(child, indices=child.indices[::2], children=near),
                replace(child, indices=child.indices[1::2]),
            ]
        else:
            children.append(child)
    return replace(arch, root=replace(arch.root, children=tuple(children)))


def _unshaped(letters: Letters, arch: Arch) -> int:
    """Printed parameters that the shape does not hold (relative positions of Gopher, adapters of a tower …)."""
    missing = letters.params - arch.params_active
    return round(missing) if letters.params and abs(missing) > SHAPE_TOLERANCE * letters.params else 0


def _decoder(letters: Letters, tied: bool, positions: bool, biased: bool) -> Arch:
    config: dict[str, object] = {
        "num_layers": letters.num_layers, "hidden": letters.hidden, "heads": letters.heads,
        "kv_heads": letters.kv_heads, "head_dim": letters.head_dim, "ffn": letters.ffn, "vocab": letters.vocab,
        "gated": letters.gated, "norm": "rmsnorm" if letters.gated else "layernorm", "tied": tied,
        "learned_positions": positions, "max_positions": letters.seq, "attention_bias": biased, "mlp_bias": biased,
    }  # fmt: skip
    if letters.experts:
        config |= {
            "experts": letters.experts, "experts_per_token": letters.top_k, "expert_ffn": letters.expert_ffn,
            "shared_experts": letters.shared, "shared_ffn": letters.expert_ffn,
        }  # fmt: skip
    return read_paper_decoder(config, "published run")


def _latent(letters: Letters) -> Arch:
    """A mixture with latent attention, whose ranks stand in words like `q_lora1536 kv_lora512 nope128`."""
    ranks = {key: int(value) for key, value in re.findall(r"(q_lora|kv_lora|nope|rope|v)(\d+)", letters.extra)}
    dense = re.search(r"first (\d+) layers? dense", letters.extra)
    config = {
        "model_type": "deepseek_v3", "vocab_size": letters.vocab, "hidden_size": letters.hidden,
        "intermediate_size": letters.ffn, "moe_intermediate_size": letters.expert_ffn,
        "num_hidden_layers": letters.num_layers, "num_attention_heads": letters.heads,
        "num_key_value_heads": letters.heads, "n_shared_experts": letters.shared,
        "n_routed_experts": letters.experts, "num_experts_per_tok": letters.top_k,
        "first_k_dense_replace": int(dense[1]) if dense else 0, "kv_lora_rank": ranks["kv_lora"],
        "q_lora_rank": ranks["q_lora"], "qk_nope_head_dim": ranks["nope"], "qk_rope_head_dim": ranks["rope"],
        "v_head_dim": ranks["v"], "max_position_embeddings": letters.seq, "tie_word_embeddings": False,
        "attention_bias": False,
    }  # fmt: skip
    return read_hf_config(config, "published run")
