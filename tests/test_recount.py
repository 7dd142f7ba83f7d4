"""Published runs counted again: the letters of a row, its model, every rule by hand, why a row is not counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Attention, Embedding, Linear
from suanli.nouns.run import PublishedRun
from suanli.recount import RULES, Letters, Rule, arch_of, flops_per_token, letters_of, recount, rule_of

# h = 8, two layers of 4 heads, f = 32, V = 16, s = 6. Weights: 2·(256 + 512) + 128 = 1,664.
# Parameters: 12·2·64 + 13·2·8 + (16 + 6)·8 + 16 = 1,936 as a GPT with learned positions and a tied head.
RUN = PublishedRun(
    id="x-1", group="x", model="net", task="pretraining", gpu="H100 SXM", source="s", check_status="checked",
    flag=False, n_layers=2, hidden=8, heads=4, ffn=32, vocab=16, seq_len=6, params_total_b=1.936e-6,
    tokens_per_s_per_gpu=1000.0, peak_tflops_bf16=1e-3, published_pct_compared=40.0,
)  # fmt: skip
WEIGHTS, HEAD = 1664, 128
FULL, HALF = 2 * 4 * 8 * 6, 2 * 4 * 8 * 3  # attention forward of a token: six keys, or three, in both layers
N = 1936


def run(**changed: Any) -> PublishedRun:
    return replace(RUN, **changed)


# --- letters ------------------------------------------------------------------------------------------------------


def test_letters_of_a_row() -> None:
    assert letters_of(RUN) == Letters(
        num_layers=2, hidden=8, heads=4, kv_heads=4, head_dim=2, ffn=32, vocab=16, seq=6, gated=False, experts=0,
        top_k=0, expert_ffn=32, shared=0, extra="", params=pytest.approx(1936),
    )  # fmt: skip


def test_letters_that_are_printed() -> None:
    row = run(
        kv_heads=2, head_dim=3, gated_mlp=True, moe_experts=8, moe_topk=2, moe_ffn=12, moe_shared=1, arch_extra="MLA",
        params_active_b=1e-6,
    )  # fmt: skip
    found = letters_of(row)
    assert found is not None
    assert (found.kv_heads, found.head_dim, found.gated, found.experts, found.top_k) == (2, 3, True, 8, 2)
    assert (found.expert_ffn, found.shared, found.extra, found.params) == (12, 1, "MLA", pytest.approx(1000))


@pytest.mark.parametrize("column", ["n_layers", "hidden", "heads", "ffn", "vocab", "seq_len"])
def test_a_row_without_its_shape_has_no_letters(column: str) -> None:
    row = run(**{column: None})
    assert letters_of(row) is None
    assert flops_per_token(row, RULES["palm"]) is None


# --- the model of a row -------------------------------------------------------------------------------------------


def tied(arch: Arch) -> bool:
    head = arch.leaves()[-1].layer
    assert isinstance(head, Linear)
    return head.tied


def positions(arch: Arch) -> bool:
    return any(isinstance(placed.layer, Embedding) and placed.layer.role == "position" for placed in arch.leaves())


# printed parameters: whether tied, whether positions are learned
CLOSEST = [
    (1936, True, True),  # biased
    (1936 + HEAD, False, True),
    (1936 - 48, True, False),
    (1936 + HEAD - 48, False, False),
    (0, True, False),  # none printed: the smallest
]


@pytest.mark.parametrize(("params", "is_tied", "learned"), CLOSEST)
def test_what_columns_leave_open_is_taken_nearest_to_what_is_printed(params: int, is_tied: bool, learned: bool) -> None:
    letters = letters_of(run(params_total_b=params * 1e-9 or None))
    assert letters is not None
    arch = arch_of(letters)
    assert (tied(arch), positions(arch)) == (is_tied, learned)
    if params:
        assert arch.params_total == params


def test_latent_attention_by_its_words() -> None:
    """q 8·6 + 6·4·5, latent 8·(4 + 2), kv 4·4·(3 + 7), o 28·8: with norms 6 + 4."""
    letters = letters_of(
        run(
            arch_extra="MLA q_lora6 kv_lora4 nope3 rope2 v7, first 1 layer dense", moe_experts=4, moe_topk=2, moe_ffn=5,
            moe_shared=1, gated_mlp=True,
        )
    )  # fmt: skip
    assert letters is not None
    arch = arch_of(letters)
    attention = 48 + 120 + 48 + 160 + 224 + 10
    dense, mixture = 3 * 8 * 32, 8 * 4 + 5 * 3 * 8 * 5
    assert arch.params_total == 2 * 128 + 8 + 2 * (attention + 16) + dense + mixture


def test_windows_lie_on_every_other_layer_where_they_are_asked_for() -> None:
    letters = letters_of(run(arch_extra="alternate layers sliding window 2"))
    assert letters is not None
    for asked, windows in ((False, [None]), (True, [2, None])):
        cores = [placed.layer for placed in arch_of(letters, asked).leaves() if isinstance(placed.layer, Attention)]
        assert [core.window for core in cores] == windows
    none = letters_of(run())
    assert none is not None
    assert arch_of(none, True).params_total == arch_of(none).params_total


# --- rules --------------------------------------------------------------------------------------------------------

# rule: FLOPs of a token in training
BY_HAND = {
    "palm": 6 * N + 3 * FULL,
    "6n-all": 6 * N,
    "8n": 8 * N,
    "megatron-full": 3 * (2 * WEIGHTS + FULL),
    "megatron": 3 * (2 * WEIGHTS + HALF),
    "hardware-full": 4 * (2 * WEIGHTS + FULL) - 2 * HEAD,
    "hardware-half": 4 * (2 * WEIGHTS + HALF) - 2 * HEAD,
    "megatron-windows": 3 * (2 * WEIGHTS + 2 * 4 * 8 * 21 / 6),  # no window in its words: S(S+1)/2 pairs
    "megatron-ungated": 3 * (2 * WEIGHTS + HALF),
    # a layer more, a matrix of [16, 8] and another head
    "megatron-mtp": 3 * (2 * (WEIGHTS + 768) + HALF * 3 / 2) + 3 * 2 * (16 * 8 + HEAD),
    "lora-4n": 4 * WEIGHTS,
    "matmuls-6n": 6 * WEIGHTS,
    "gpt-72": 3 * (2 * (24 * 64 + 4 * 6 * 8) + 2 * HEAD),
    "gpt-96": 4 * 2 * (24 * 64 + 4 * 6 * 8) + 3 * 2 * HEAD,
}


@pytest.mark.parametrize(("rule", "flops"), BY_HAND.items())
def test_rules_by_hand(rule: str, flops: float) -> None:
    assert flops_per_token(RUN, RULES[rule]) == pytest.approx(flops)


def test_every_rule_is_in_the_table() -> None:
    assert set(RULES) - set(BY_HAND) == {"printed-rate"}


def test_an_ungated_count_of_a_gated_model() -> None:
    """Three matrices of 256 as they are, two as the trainer takes them."""
    row = run(gated_mlp=True)
    found = {name: flops_per_token(row, RULES[name]) or 0 for name in ("megatron", "megatron-ungated")}
    assert found["megatron"] - found["megatron-ungated"] == 6 * 2 * 256


def test_windows_are_kept_by_their_own_rule_alone() -> None:
    """A window of two in the first of two layers: 1 + 2·5 pairs in place of 21."""
    row = run(arch_extra="alternate layers sliding window 2")
    plain, near = (flops_per_token(row, RULES[name]) for name in ("megatron", "megatron-windows"))
    assert plain == pytest.approx(BY_HAND["megatron"])
    assert near == pytest.approx(3 * (2 * WEIGHTS + 4 * 8 * (11 + 21) / 6))


# printed billions of parameters: N of 6N
UNSHAPED = [
    (N * 1.02, N * 1.0),  # within two percent: the shape holds them all
    (N * 1.5, N * 1.5),  # what the shape does not hold is charged too
    (N * 3.0, N * 3.0),
]


@pytest.mark.parametrize(("printed", "charged"), UNSHAPED)
def test_parameters_the_shape_does_not_hold(printed: float, charged: float) -> None:
    row = run(params_total_b=printed * 1e-9)
    letters = letters_of(row)
    assert letters is not None
    shaped = arch_of(letters).params_active
    expected = shaped if abs(printed - shaped) <= 0.02 * printed else charged
    for name, multiple in (("6n-all", 6), ("8n", 8)):
        assert flops_per_token(row, RULES[name]) == pytest.approx(multiple * expected, rel=1e-3)


# --- which rule a row means ---------------------------------------------------------------------------------------

WORDS = [
    ("6N", "6n-all"),
    ("6N+12LHQT (PaLM)", "palm"),
    ("8N hardware FLOPs", "8n"),
    ("Megatron full attention, no window", "megatron-full"),
    ("Megatron with causal-halved attention", "megatron"),
    ("hardware FLOPs (full recompute, full attention)", "hardware-full"),
    ("hardware FLOPs with causal-halved attention", "hardware-half"),
    ("MLP counted with 2 matrices", "megatron-ungated"),
    ("causal-halved + one MTP layer", "megatron-mtp"),
    ("LoRA: 4 x matmul parameters", "lora-4n"),
    ("6 x matmul parameters", "matmuls-6n"),
    ("72BSLh^2(…)", "gpt-72"),
    ("96BSLh^2(…)", "gpt-96"),
    ("TFLOP/s / peak only", "printed-rate"),
    ("6N but another way", None),
    ("a rule nobody knows", None),
    (None, None),
]


@pytest.mark.parametrize(("words", "name"), WORDS)
def test_the_rule_a_rows_words_mean(words: str | None, name: str | None) -> None:
    found = rule_of(run(best_convention=words))
    assert (found.name if found else None) == name


def test_half_pairs_of_a_windowed_model_keep_its_windows() -> None:
    row = run(best_convention="Megatron with causal-halved attention", arch_extra="alternate layers sliding window 128")
    found = rule_of(row)
    assert found is not None and found.name == "megatron-windows"


# --- the recount --------------------------------------------------------------------------------------------------


def test_a_row_counted_again() -> None:
    """1,000 tokens a second of 6·1,936 FLOPs on 10⁹ FLOP/s."""
    found = recount(run(best_convention="6N"))
    assert (found.rule, found.why) == ("6n-all", "")
    assert found.got == pytest.approx(6 * N * 1000 / 1e9)


def test_a_rule_may_be_told() -> None:
    assert recount(run(best_convention="6N"), RULES["8n"]).got == pytest.approx(8 * N * 1000 / 1e9)


def test_the_sources_own_peak_comes_first() -> None:
    assert recount(run(best_convention="6N", peak_tflops_used=2e-3)).got == pytest.approx(6 * N * 1000 / 2e9)


def test_a_printed_rate_over_the_peak() -> None:
    words = "TFLOP/s / peak only"
    assert recount(run(best_convention=words, tflops_per_gpu=4e-4)).got == pytest.approx(0.4)
    assert recount(run(best_convention=words)).why == "no rate printed"


# what is changed of a row: the rule found, why it cannot be counted
WHY = [
    ({"best_convention": "6N", "peak_tflops_bf16": None}, "6n-all", "no peak known"),
    ({"best_convention": "6N", "tokens_per_s_per_gpu": None}, "6n-all", "no throughput printed"),
    ({"best_convention": "6N", "seq_len": None}, "6n-all", "no throughput printed"),
    ({"best_convention": "6N", "heads": None}, "6n-all", "no shape of the model printed"),
    ({"best_convention": "own way"}, "", "the source's own figure, no formula: own way"),
    ({"published_pct_compared": None}, "", "no utilisation printed (checked)"),
    ({}, "", "no convention found (checked)"),
]


@pytest.mark.parametrize(("changed", "rule", "why"), WHY)
def test_why_a_row_is_not_counted(changed: dict[str, Any], rule: str, why: str) -> None:
    found = recount(run(**changed))
    assert (found.got, found.rule, found.why) == (None, rule, why)


def test_rules_are_made_of_a_convention_or_a_closed_form_or_a_ratio() -> None:
    for rule in RULES.values():
        assert isinstance(rule, Rule)
        assert sum((rule.convention is not None, rule.closed is not None, rule.ratio_only)) == 1
