"""Laws that hold for every decoder, over random shapes: hand formulas, sums over positions, order of conventions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.adapters import Lora, with_lora
from suanli.catalog.conventions import CONVENTIONS, find_convention
from suanli.count import build_ledger, count
from suanli.footprint import kv_cache
from suanli.nouns.arch import Arch
from suanli.nouns.layers import Attention
from suanli.nouns.ledger import BACKWARD, FORWARD, RECOMPUTE_PASS
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config
from suanli.readers.paper import read_paper_decoder

FEW = settings(max_examples=40, deadline=None)
NORMS = {"layernorm": 2, "rmsnorm": 1, "layernorm_no_bias": 1}  # vectors of h


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The letters of a decoder, and what a hand would make of them."""

    num_layers: int
    hidden: int
    kv_heads: int
    groups: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool
    tied: bool
    norm: str
    final_norm: bool
    attention_bias: bool
    mlp_bias: bool
    parallel: bool
    positions: int
    experts: int
    top_k: int
    expert_ffn: int
    shared: int
    shared_ffn: int
    dense_first: int

    @property
    def heads(self) -> int:
        return self.kv_heads * self.groups

    @property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "num_layers": self.num_layers, "hidden": self.hidden, "heads": self.heads, "kv_heads": self.kv_heads,
            "head_dim": self.head_dim, "ffn": self.ffn, "vocab": self.vocab, "gated": self.gated, "tied": self.tied,
            "norm": self.norm, "final_norm": self.final_norm, "attention_bias": self.attention_bias,
            "mlp_bias": self.mlp_bias, "parallel_block": self.parallel,
        }  # fmt: skip
        if self.positions:
            found |= {"learned_positions": True, "max_positions": self.positions}
        if self.experts:
            found |= {
                "experts": self.experts, "experts_per_token": self.top_k, "expert_ffn": self.expert_ffn,
                "shared_experts": self.shared, "shared_ffn": self.shared_ffn, "first_dense_layers": self.dense_first,
            }  # fmt: skip
        return found

    @property
    def arch(self) -> Arch:
        return read_paper_decoder(self.config, "random")

    # --- by hand ---

    @property
    def sparse_layers(self) -> int:
        return max(0, self.num_layers - self.dense_first) if self.experts else 0

    @property
    def matrices(self) -> int:
        return 3 if self.gated else 2

    @property
    def attention_matrices(self) -> int:
        """h·Hd of queries, h·Kd of keys and of values, Hd·h of the output."""
        return self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)

    def mixture(self, experts: int) -> int:
        """Router, that many experts, and the shared ones, which are one MLP of their joined width."""
        h, m = self.hidden, self.matrices
        return h * self.experts + experts * m * h * self.expert_ffn + m * h * self.shared * self.shared_ffn

    def matmul_params(self, experts: int) -> int:
        """Weights multiplied, the head's in any case."""
        dense = (self.num_layers - self.sparse_layers) * self.matrices * self.hidden * self.ffn
        routed = self.sparse_layers * self.mixture(experts) if self.experts else 0
        return self.num_layers * self.attention_matrices + dense + routed + self.hidden * self.vocab

    def params(self, experts: int) -> int:
        h, vector = self.hidden, NORMS[self.norm] * self.hidden
        attention_biases = (self.heads + 2 * self.kv_heads) * self.head_dim + h if self.attention_bias else 0
        mlp_biases = (self.matrices - 1) * self.ffn + h if self.mlp_bias else 0
        norms = self.num_layers * (1 if self.parallel else 2) + (1 if self.final_norm else 0)
        return (
            self.matmul_params(experts)
            - (h * self.vocab if self.tied else 0)
            + h * self.vocab  # the lookup
            + h * self.positions
            + self.num_layers * attention_biases
            + (self.num_layers - self.sparse_layers) * mlp_biases
            + norms * vector
        )

    def attention(self, pairs: int) -> int:
        """Scores and context of one sequence: 2·P·H·d each."""
        return self.num_layers * 4 * pairs * self.heads * self.head_dim


SMALL = st.integers(1, 9)


@st.composite
def specs(draw: st.DrawFn, mixture: bool | None = None) -> Spec:
    routed = draw(st.booleans()) if mixture is None else mixture
    experts = draw(st.integers(1, 6)) if routed else 0
    layers = draw(st.integers(1, 4))
    return Spec(
        num_layers=layers, hidden=draw(SMALL), kv_heads=draw(st.integers(1, 3)), groups=draw(st.integers(1, 3)),
        head_dim=draw(SMALL), ffn=draw(SMALL), vocab=draw(SMALL), gated=draw(st.booleans()), tied=draw(st.booleans()),
        norm=draw(st.sampled_from(sorted(NORMS))), final_norm=draw(st.booleans()), attention_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()), parallel=draw(st.booleans()), positions=draw(st.integers(0, 9)),
        experts=experts, top_k=draw(st.integers(1, experts)) if routed else 0, expert_ffn=draw(SMALL),
        shared=draw(st.integers(0, 2)), shared_ffn=draw(SMALL), dense_first=draw(st.integers(0, layers + 1)),
    )  # fmt: skip


def flops(arch: Arch, convention: str = "causal", pass_: str | None = None, **workload: Any) -> int:
    return build_ledger(arch, Workload(**workload), find_convention(convention)).flops(pass_)


# --- against the hand ---------------------------------------------------------------------------------------------


@FEW
@given(specs())
def test_parameters_are_those_of_the_hand(spec: Spec) -> None:
    assert spec.arch.params_total == spec.params(spec.experts)
    assert spec.arch.params_active == spec.params(spec.top_k)
    assert spec.arch.params_embedding == spec.hidden * (spec.vocab + spec.positions)
    assert spec.arch.params_active <= spec.arch.params_total == spec.arch.params_trainable


@FEW
@given(specs(), st.integers(1, 20), st.integers(1, 4))
def test_forward_is_two_flops_a_weight_and_position_and_attention(spec: Spec, seq: int, batch: int) -> None:
    products = 2 * spec.matmul_params(spec.top_k) * seq * batch
    triangle = seq * (seq + 1) // 2
    assert flops(spec.arch, seq=seq, batch=batch) == products + batch * spec.attention(triangle)
    assert flops(spec.arch, "full", seq=seq, batch=batch) == products + batch * spec.attention(seq * seq)


@FEW
@given(specs(), st.integers(1, 20), st.integers(1, 4))
def test_training_is_three_forwards(spec: Spec, seq: int, batch: int) -> None:
    """Every product lies behind the embedding: both its gradients are needed, under every convention of products."""
    for convention in ("causal", "full", "megatron", "megatron-full"):
        forward = flops(spec.arch, convention, seq=seq, batch=batch)
        assert flops(spec.arch, convention, seq=seq, batch=batch, phase="train") == 3 * forward


@FEW
@given(specs(), st.integers(1, 30))
def test_only_attention_makes_tokens_dearer(spec: Spec, seq: int) -> None:
    """FLOPs of s+1 positions less FLOPs of s: the products of one token, and one more row of scores."""
    step = flops(spec.arch, seq=seq + 1) - flops(spec.arch, seq=seq)
    assert step == 2 * spec.matmul_params(spec.top_k) + spec.attention(seq + 1)


@FEW
@given(specs(), st.integers(1, 20), st.integers(1, 20))
def test_the_cache_holds_keys_and_values_of_every_layer(spec: Spec, keys: int, batch: int) -> None:
    found = kv_cache(spec.arch, Workload(phase="decode", kv_len=keys, batch=batch))
    assert found == spec.num_layers * 2 * batch * keys * spec.kv_heads * spec.head_dim * 2  # two bytes each


# --- decoding, token after token ------------------------------------------------------------------------------------


def llama(spec: Spec) -> dict[str, Any]:
    return {
        "hidden_size": spec.hidden, "num_hidden_layers": spec.num_layers, "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.kv_heads, "head_dim": spec.head_dim, "intermediate_size": spec.ffn,
        "vocab_size": spec.vocab,
    }  # fmt: skip


def windows(spec: Spec) -> Arch:
    return read_hf_config({**llama(spec), "model_type": "gemma2", "sliding_window": spec.expert_ffn}, "windows")


def chunks(spec: Spec) -> Arch:
    config = {
        **llama(spec), "model_type": "llama4_text", "num_local_experts": 2, "num_experts_per_tok": 1,
        "attention_chunk_size": spec.expert_ffn, "no_rope_layer_interval": 2,
    }  # fmt: skip
    return read_hf_config(config, "chunks")


def latent(spec: Spec) -> Arch:
    config = {
        **llama(spec), "model_type": "deepseek_v3", "n_routed_experts": 3, "num_experts_per_tok": 2,
        "moe_intermediate_size": spec.expert_ffn, "first_k_dense_replace": 1, "q_lora_rank": 3, "kv_lora_rank": 2,
        "qk_nope_head_dim": 3, "qk_rope_head_dim": 2, "v_head_dim": spec.head_dim,
    }  # fmt: skip
    return read_hf_config(config, "latent")


def lightning(spec: Spec) -> Arch:
    config = {**llama(spec), "model_type": "minimax", "num_local_experts": 3, "num_experts_per_tok": 2}
    return read_hf_config(config, "lightning")


SHAPES: dict[str, Callable[[Spec], Arch]] = {
    "paper": lambda spec: spec.arch, "windows": windows, "chunks": chunks, "latent": latent, "lightning": lightning,
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("convention", ["causal", "megatron", "palm-like"])
@settings(max_examples=15, deadline=None)
@given(spec=specs(), seq=st.integers(1, 12), batch=st.integers(1, 3))
def test_decoding_every_position_is_one_causal_forward(
    shape: str, convention: str, spec: Spec, seq: int, batch: int
) -> None:
    """Σ_t decode(t keys) = forward(s): the mask's rows, and S²/2 as Σ (2t − 1)/2."""
    arch = SHAPES[shape](spec)
    rule = find_convention("palm" if convention == "palm-like" else convention)
    if convention == "palm-like":
        rule = replace(rule, name="palm-like", pairs="mask")
    steps = [
        build_ledger(arch, Workload(phase="decode", kv_len=t, batch=batch), rule).model_flops
        for t in range(1, seq + 1)
    ]  # fmt: skip
    whole = build_ledger(arch, Workload(seq=seq, batch=batch), rule).model_flops
    assert sum(steps) == whole


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=15, deadline=None)
@given(spec=specs(), prompt=st.integers(1, 10), new=st.integers(1, 6))
def test_a_prompt_and_its_answer(shape: str, spec: Spec, prompt: int, new: int) -> None:
    """Prefill of p and n decoded tokens: a forward over p + n without the p − 1 logits nobody asks for."""
    arch = SHAPES[shape](spec)
    answer = sum(flops(arch, phase="decode", kv_len=prompt + i) for i in range(1, new + 1))
    head = 2 * spec.hidden * spec.vocab
    assert flops(arch, phase="prefill", seq=prompt) + answer == flops(arch, seq=prompt + new) - (prompt - 1) * head


@FEW
@given(specs(), st.integers(1, 12), st.integers(1, 12))
def test_a_window_past_every_position_is_no_window(spec: Spec, seq: int, more: int) -> None:
    arch = windows(replace(spec, expert_ffn=seq + more))
    assert flops(arch, seq=seq) == flops(windows(replace(spec, expert_ffn=10**6)), seq=seq)


# --- order of conventions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=15, deadline=None)
@given(spec=specs(), seq=st.integers(1, 20), batch=st.integers(1, 3))
def test_conventions_in_their_order(shape: str, spec: Spec, seq: int, batch: int) -> None:
    arch = SHAPES[shape](spec)

    def of(convention: str) -> int:
        return flops(arch, convention, seq=seq, batch=batch, phase="train")

    assert of("causal") <= of("full")
    assert of("megatron") <= of("megatron-full") <= of("full")
    assert of("causal") <= of("hardware")
    assert of("6n-all") <= of("palm")
    assert of("palm-noemb") <= of("palm")


@FEW
@given(specs(), st.integers(1, 20), st.integers(1, 3))
def test_what_halving_leaves_out_is_the_diagonals_half(spec: Spec, seq: int, batch: int) -> None:
    """causal − megatron = s/2 pairs of every layer, less the routers: nothing else."""
    halved = flops(spec.arch, "megatron", seq=2 * seq, batch=batch)
    routers = 2 * 2 * seq * batch * spec.sparse_layers * spec.hidden * spec.experts
    assert flops(spec.arch, seq=2 * seq, batch=batch) - halved == batch * spec.attention(seq) + routers


@FEW
@given(specs(), st.integers(1, 20), st.integers(1, 3))
def test_6n_and_palm(spec: Spec, seq: int, batch: int) -> None:
    arch, tokens = spec.arch, seq * batch
    n = spec.params(spec.top_k)
    assert flops(arch, "6n-all", seq=seq, batch=batch) == 2 * n * tokens
    train = {name: flops(arch, name, seq=seq, batch=batch, phase="train") for name in ("6n-all", "palm", "palm-noemb")}
    assert train["6n-all"] == 6 * n * tokens
    assert train["palm"] - train["6n-all"] == 12 * spec.num_layers * spec.heads * spec.head_dim * seq * tokens
    left_out = spec.hidden * (spec.positions if spec.tied else spec.vocab + spec.positions)
    assert train["palm"] - train["palm-noemb"] == 6 * left_out * tokens
    held = spec.params(spec.experts) - spec.hidden * (spec.vocab + spec.positions)
    assert flops(arch, "6n", seq=seq, batch=batch, phase="train") == 6 * held * tokens


@FEW
@given(specs(), st.integers(1, 20), st.integers(1, 3))
def test_full_recompute_adds_at_most_a_third(spec: Spec, seq: int, batch: int) -> None:
    for name, convention in CONVENTIONS.items():
        if convention.basis != "ops" or convention.recompute_blocks:
            continue
        books = build_ledger(spec.arch, Workload(seq=seq, batch=batch, phase="train", recompute="full"), convention)
        again = books.hardware_flops - books.model_flops
        head = 2 * seq * batch * spec.hidden * spec.vocab
        lookup = head if convention.embedding_as_matmul else 0
        assert again == books.flops(FORWARD) - head - lookup, name
        assert 3 * books.hardware_flops <= 4 * books.model_flops
    hardware = flops(spec.arch, "hardware", seq=seq, batch=batch, phase="train")
    full = build_ledger(
        spec.arch, Workload(seq=seq, batch=batch, phase="train", recompute="full"), CONVENTIONS["causal"]
    )
    assert hardware == full.hardware_flops


# --- sums ---------------------------------------------------------------------------------------------------------


@FEW
@given(specs(), st.integers(1, 20), st.integers(1, 5), st.sampled_from(sorted(CONVENTIONS)))
def test_the_batch_multiplies_and_the_rows_add_up(spec: Spec, seq: int, batch: int, convention: str) -> None:
    work = {"seq": 2 * seq, "phase": "train", "recompute": "full"}  # an even length: no half pairs
    one, many = (
        build_ledger(spec.arch, Workload(batch=n, **work), find_convention(convention)) for n in (1, batch)
    )  # fmt: skip
    assert many.model_flops == batch * one.model_flops == batch * sum(row.model_flops for row in one.rows)
    assert many.hardware_flops == batch * sum(row.hardware_flops for row in one.rows)
    assert many.model_flops == many.flops(FORWARD) + many.flops(BACKWARD) + many.flops(RECOMPUTE_PASS)
    assert one.params == sum(row.params for row in one.rows) == spec.arch.params_total


@FEW
@given(specs(), st.integers(1, 8), st.integers(1, 8))
def test_copies_multiply(spec: Spec, seq: int, more: int) -> None:
    """A layer more costs what each of the dense layers costs."""
    spec = replace(spec, experts=0, top_k=0)

    def of(layers: int) -> int:
        return flops(replace(spec, num_layers=layers).arch, seq=seq)

    assert of(spec.num_layers + more) - of(spec.num_layers) == more * (of(2) - of(1))


@FEW
@given(specs(), st.integers(1, 12), st.sampled_from(["module", "kind", "layer", "pass"]))
def test_groups_lose_nothing(spec: Spec, seq: int, by: str) -> None:
    books = count(spec.arch, Workload(seq=seq, phase="train", recompute="selective"), find_convention("causal"), by=by)
    for column in ("params", "model_flops", "hardware_flops", "read_bytes", "write_bytes"):
        rows = sum(getattr(row, column) for row in books.rows)
        assert rows == sum(getattr(row, column) for row in books.ledger.rows)
    assert books.flops_per_token * seq == pytest.approx(books.flops.model)


# --- adapters -----------------------------------------------------------------------------------------------------


@FEW
@given(specs(mixture=False), st.integers(1, 4), st.integers(1, 12))
def test_adapters_on_every_matrix(spec: Spec, rank: int, seq: int) -> None:
    """All weights frozen: the forward and the input's gradient remain, but none reaches layer 0's q, k and v."""
    spec = replace(spec, parallel=False)
    h, query, key = spec.hidden, spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    wide = (h + query) + 2 * (h + key) + (query + h) + spec.matrices * (h + spec.ffn)
    added = spec.num_layers * rank * wide
    tuned = with_lora(spec.arch, Lora(rank))
    assert tuned.params_trainable == added
    assert tuned.params_total == spec.arch.params_total + added
    forward = flops(spec.arch, seq=seq)
    assert flops(tuned, seq=seq) == forward + 2 * seq * added
    attention = spec.attention(seq * (seq + 1) // 2)
    products = forward - attention
    first = 2 * seq * (h * (query + 2 * key) + 3 * h * rank)
    trained = flops(tuned, seq=seq, phase="train")
    assert trained == 2 * products + 3 * attention + 3 * 2 * seq * added - first
    assert trained <= flops(spec.arch, seq=seq, phase="train") + 3 * 2 * seq * added


def test_adapters_of_a_parallel_block() -> None:
    """h = 4, one layer, f = 8, s = 3, rank 1: no gradient reaches the first norm, hence none is made by q, k, v and up,
    nor by their adapters' A."""
    config = {"num_layers": 1, "hidden": 4, "heads": 2, "ffn": 8, "vocab": 5, "parallel_block": True}
    tuned = with_lora(read_paper_decoder(config, "x"), Lora(1))
    weights, head, attention = 64 + 64, 20, 4 * 6 * 4
    adapters = 4 * (4 + 4) + 2 * (4 + 8)
    unneeded = 3 * 16 + 32 + 4 * 4
    by_hand = 2 * 2 * 3 * (weights + head) + 3 * attention + 3 * 2 * 3 * adapters - 2 * 3 * unneeded
    assert flops(tuned, seq=3, phase="train") == by_hand


@FEW
@given(specs(), st.integers(1, 4))
def test_fewer_targets_train_less(spec: Spec, rank: int) -> None:
    one, two, every = (
        with_lora(spec.arch, Lora(rank, targets)).params_trainable
        for targets in (("q_proj",), ("q_proj", "v_proj"), ("all",))
    )  # fmt: skip
    assert one == spec.num_layers * rank * (spec.hidden + spec.heads * spec.head_dim)
    assert two - one == spec.num_layers * rank * (spec.hidden + spec.kv_heads * spec.head_dim)
    assert two <= every


# --- a mixture and its dense cousin ---------------------------------------------------------------------------------


@FEW
@given(specs(mixture=True), st.integers(1, 12))
def test_a_mixture_that_uses_all_its_experts_is_dense_but_for_the_router(spec: Spec, seq: int) -> None:
    """k = E experts of width f are one MLP of width E·f and a router."""
    spec = replace(spec, top_k=spec.experts, shared=0, dense_first=0, mlp_bias=False)
    dense = replace(spec, experts=0, top_k=0, ffn=spec.experts * spec.expert_ffn)
    router = spec.num_layers * spec.hidden * spec.experts
    assert spec.arch.params_total - dense.arch.params_total == router
    assert flops(spec.arch, seq=seq) - flops(dense.arch, seq=seq) == 2 * router * seq
    assert flops(spec.arch, "megatron", seq=2 * seq) == flops(dense.arch, "megatron", seq=2 * seq)


@FEW
@given(specs(), st.integers(1, 12))
def test_grouped_queries_save_keys_and_no_attention(spec: Spec, seq: int) -> None:
    """As many key heads as query heads: wider k and v, the same scores."""
    wide = replace(spec, kv_heads=spec.heads, groups=1)

    def attention(which: Spec) -> int:
        paths = {placed.path for placed in which.arch.leaves() if isinstance(placed.layer, Attention)}
        books = build_ledger(which.arch, Workload(seq=seq), find_convention("causal"))
        return sum(row.model_flops for row in books.rows if row.path in paths)

    assert attention(wide) == attention(spec)
    saved = spec.num_layers * 2 * spec.hidden * (spec.heads - spec.kv_heads) * spec.head_dim
    assert flops(wide.arch, seq=seq) - flops(spec.arch, seq=seq) == 2 * seq * saved


# --- the policies side by side --------------------------------------------------------------------------------------


@FEW
@given(specs(), st.integers(1, 12), st.sampled_from(sorted(CONVENTIONS)), st.sampled_from([None, 10**6]))
def test_hardware_under_every_policy_is_that_of_its_own_ledger(
    spec: Spec, seq: int, convention: str, params: int | None
) -> None:
    rule, work = find_convention(convention), Workload(seq=seq, phase="train")
    found = count(spec.arch, work, rule, params=params).flops.hardware_by_recompute
    assert found == {
        policy: build_ledger(spec.arch, replace(work, recompute=policy), rule, params).hardware_flops
        for policy in ("none", "selective", "full")
        if policy != "selective" or rule.basis != "closed"
    }


def test_hardware_under_every_policy_with_frozen_weights() -> None:
    config = {"num_layers": 2, "hidden": 4, "heads": 2, "ffn": 8, "vocab": 5}
    tuned, rule, work = with_lora(read_paper_decoder(config, "x"), Lora(1)), CONVENTIONS["causal"], Workload(
        seq=3, phase="train"
    )  # fmt: skip
    found = count(tuned, work, rule).flops.hardware_by_recompute
    assert found is not None
    assert found["full"] == build_ledger(tuned, replace(work, recompute="full"), rule).hardware_flops
