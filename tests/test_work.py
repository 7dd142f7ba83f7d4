"""Work of one forward pass, a layer kind at a time: FLOPs, reads and writes worked out by hand at tiny sizes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.conventions import find_convention
from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Placed, Stream
from suanli.nouns.convention import Convention
from suanli.nouns.layers import (
    Attention,
    BlockLinear,
    Buffer,
    CausalConv,
    Conv,
    Elementwise,
    Embedding,
    Experts,
    KeptState,
    Layer,
    Linear,
    LinearAttention,
    Norm,
    Opaque,
    Parameter,
    Recurrent,
    Scan,
    Similarity,
    StateSpace,
)
from suanli.nouns.workload import Workload
from suanli.work import NOTHING, Setting, Work, attended_pairs, charged_params, layer_work, passive_width, product

FRAMES = "frames"
STREAMS = (Stream(name=TOKENS, decodes=True), Stream(name=FRAMES, length=7))
BARE = Arch(name="x", root=Module(name="", children=()), streams=STREAMS)
CAUSAL = find_convention("causal")


def setting(convention: Convention | str = CAUSAL, **workload: object) -> Setting:
    rule = find_convention(convention)
    return Setting(BARE, Workload(**{"seq": 5, "batch": 2, **workload}), rule)  # type: ignore[arg-type]


def work(layer: Layer, at: Setting | None = None, stream: str = TOKENS) -> Work:
    return layer_work(Placed("x", layer, 1, stream), at or setting())


def figures(found: Work) -> tuple[int, int, int, int]:
    return found.flops, found.reads, found.writes, found.weights


LINEAR = Linear(name="x", in_features=3, out_features=4)
ATTENTION = Attention(name="x", heads=4, kv_heads=2, qk_dim=3, v_dim=6)
EXPERTS = Experts(name="x", num=8, top_k=2, hidden=3, ffn=4)
CONV = Conv(name="x", in_channels=4, out_channels=6, kernel=(3, 3), in_size=(8, 8), out_size=(6, 6), bias=False)

# Two sequences of five positions: T = 10. Layer; FLOPs, elements read, written, weights.
FORWARD: list[tuple[Layer, tuple[int, int, int, int]]] = [
    (LINEAR, (2 * 10 * 3 * 4, 10 * 3, 10 * 4, 12)),
    (replace(LINEAR, bias=True), (240, 30, 40, 12)),  # the addition is not counted
    (replace(LINEAR, tied=True), (240, 30, 40, 12)),  # a tied weight is multiplied and read all the same
    (replace(LINEAR, role="lm_head"), (240, 30, 40, 12)),
    (Embedding(name="x", num=100, dim=3), (0, 10 * 3, 10 * 3, 0)),  # rows looked up, not the table
    # pairs of a causal mask 1+2+3+4+5 = 15, twice; read 4·3 of each query, 2·(3 + 6) of each key
    (ATTENTION, (2 * 30 * 4 * 3 + 2 * 30 * 4 * 6, 2 * (5 * 12 + 5 * 18), 2 * 5 * 4 * 6, 0)),
    # window 2: 1+2+2+2+2 = 9 pairs a sequence; all five keys are read
    (replace(ATTENTION, window=2), (2 * 18 * 4 * (3 + 6), 2 * (60 + 5 * 18), 240, 0)),
    # chunks of 2: 1+2+1+2+1 = 7
    (replace(ATTENTION, chunk=2), (2 * 14 * 4 * 9, 2 * (60 + 5 * 18), 240, 0)),
    (replace(ATTENTION, mask="full"), (2 * 50 * 4 * 9, 300, 240, 0)),
    # a latent of 7 numbers is all that is read of a key
    (replace(ATTENTION, latent_dim=7), (2 * 30 * 4 * 9, 2 * (60 + 5 * 7), 240, 0)),
    # across to seven frames: 5·7 pairs
    (replace(ATTENTION, mask="full", key_stream=FRAMES), (2 * 70 * 4 * 9, 2 * (60 + 7 * 18), 240, 0)),
    # 10 tokens × 2 experts × 3 matrices of 3·4; all 8 experts read: 20 tokens reach them
    (EXPERTS, (2 * 20 * 3 * 12, 20 * 3, 20 * 3, 8 * 36)),
    (replace(EXPERTS, gated=False), (2 * 20 * 2 * 12, 60, 60, 8 * 24)),
    (replace(EXPERTS, num=50), (1440, 60, 60, 20 * 36)),  # no more experts than the 20 that tokens ask for
    (replace(EXPERTS, top_k=9), (2 * 80 * 36, 240, 240, 8 * 36)),  # all eight, no ninth
    # 10 samples · 36 positions · 6·(4·9)
    (CONV, (2 * 10 * 36 * 6 * 36, 10 * 4 * 64, 10 * 6 * 36, 4 * 6 * 9)),
    (replace(CONV, groups=2), (2 * 10 * 36 * 6 * 18, 2560, 2160, 2 * 6 * 9)),
    (replace(CONV, transposed=True), (2 * 10 * 64 * 6 * 36, 2560, 2160, 216)),  # once for each input position
    # 4 gates of 4 units: 10·16·(3 + 4) MACs; reads x, writes h
    (Recurrent(name="x", cell="lstm", input_size=3, hidden_size=4), (2 * 10 * 16 * 7, 30, 40, 144)),
    (
        Recurrent(name="x", cell="gru", input_size=3, hidden_size=4, num_layers=2, bidirectional=True),
        # both ways 12·(3 + 4), then 12·(8 + 4); reads 3 and 8 wide, writes 4 two ways, two deep
        (2 * 10 * 2 * (84 + 144), 10 * (3 + 8), 10 * 4 * 2 * 2, 2 * (84 + 24 + 144 + 24)),
    ),
    # the state gains kᵀv and answers q: twice 2·10·2·3·5
    (LinearAttention(name="x", heads=2, key_dim=3, value_dim=5), (1200, 10 * 2 * (3 + 3 + 5), 10 * 2 * 5, 0)),
    (Scan(name="x", heads=2, key_dim=3, value_dim=5), (1200, 220, 100, 0)),
    (LinearAttention(name="x", heads=2, key_dim=3, value_dim=5, rule="delta"), (1800, 220, 100, 0)),  # three products
    (LinearAttention(name="x", heads=2, key_dim=3, value_dim=5, rule="sum"), (1200, 220, 100, 0)),  # as where it decays
    (StateSpace(name="x", heads=2, key_dim=3, value_dim=5, groups=1), (1200, 10 * (2 * 3 + 10), 100, 0)),  # shared keys
    (CausalConv(name="x", channels=6, kernel=4), (2 * 10 * 6 * 4, 60, 60, 24)),
    (CausalConv(name="x", channels=6, kernel=4, groups=2), (2 * 10 * 6 * 3 * 4, 60, 60, 72)),
    (BlockLinear(name="x", in_features=6, out_features=8, blocks=2), (2 * 10 * 3 * 8, 60, 80, 24)),
    (KeptState(name="x", elements=6), (0, 0, 0, 0)),
    (Similarity(name="x", dim=3), (2 * 10 * 3 * 10, 2 * 10 * 3, 10 * 10, 0)),
    (Opaque(name="x", total=100, active=30), (2 * 30 * 10, 0, 0, 30)),
    (Norm(name="x", dim=3, bias=True), (0, 30, 30, 6)),
    (Norm(name="x", dim=3, per=4), (0, 120, 120, 3)),
    (Elementwise(name="x", op="gelu", width=7), (0, 70, 70, 0)),
    (Parameter(name="x", shape=(2, 2)), (0, 0, 0, 4)),
    (Buffer(name="x", shape=(2, 2)), (0, 0, 0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "expected"), FORWARD, ids=[f"{n}-{row[0].kind}" for n, row in enumerate(FORWARD)])
def test_forward(layer: Layer, expected: tuple[int, int, int, int]) -> None:
    assert figures(work(layer)) == expected


def test_every_kind_of_layer_is_worked_out() -> None:
    ours = {kind for kind in Layer.__subclasses__() if kind.__module__.startswith("suanli.")}
    assert ours <= {type(layer) for layer, _ in FORWARD}


# --- pairs under each rule ----------------------------------------------------------------------------------------

PLAIN, WINDOW, CHUNK = (replace(ATTENTION, **more) for more in ({}, {"window": 2}, {"chunk": 3}))
BOTH_WAYS = replace(ATTENTION, mask="full")
NEAR = replace(ATTENTION, mask="full", window=2)
ACROSS = replace(ATTENTION, mask="full", key_stream=FRAMES)

# layer, queries, keys: pairs under mask, full, half
PAIRS = [
    (PLAIN, 4, 4, 10, 16, 8),  # 1+2+3+4; 4²; 4²/2
    (PLAIN, 3, 3, 6, 9, Fraction(9, 2)),
    (PLAIN, 1, 6, 6, 6, Fraction(11, 2)),  # decode: (2·6 − 1)/2
    (PLAIN, 2, 6, 5 + 6, 12, 10),  # 2·(12 − 2)/2
    (WINDOW, 4, 4, 1 + 2 + 2 + 2, 16, 8),
    (WINDOW, 1, 6, 2, 6, Fraction(11, 2)),
    (WINDOW, 1, 1, 1, 1, Fraction(1, 2)),
    (CHUNK, 4, 4, 1 + 2 + 3 + 1, 16, 8),
    (CHUNK, 1, 4, 1, 4, Fraction(7, 2)),  # the fourth position opens a chunk
    (BOTH_WAYS, 4, 4, 16, 16, 8),
    (NEAR, 4, 4, 4 * 2, 16, 8),
    (replace(NEAR, window=9), 4, 4, 16, 16, 8),  # a window wider than the keys
    (ACROSS, 4, 7, 28, 28, 28),  # nothing is masked across streams, so nothing is halved
    (replace(ACROSS, mask="causal"), 4, 7, 28, 28, 28),
]


@pytest.mark.parametrize(("layer", "queries", "keys", "mask", "full", "half"), PAIRS)
def test_pairs(layer: Attention, queries: int, keys: int, mask: int, full: int, half: Fraction) -> None:
    found = {rule: attended_pairs(layer, queries, keys, rule) for rule in ("mask", "full", "half", "none")}
    assert {rule: each.value for rule, each in found.items()} == {"mask": mask, "full": full, "half": half, "none": 0}
    assert found["none"] is NOTHING
    assert found["half"].formula == ("half_pairs" if layer.key_stream is None else "full_pairs")
    assert found["full"].formula == "full_pairs"


@pytest.mark.parametrize(("queries", "keys"), [(9, 4), (4096, 1500)])
def test_pairs_across_streams_are_never_below_zero(queries: int, keys: int) -> None:
    """9·(8 − 9)/2 = −4.5 pairs; whisper-small at --seq 4096 under `megatron` gets rows below zero."""
    assert attended_pairs(ACROSS, queries, keys, "half").value >= 0


def test_whole_fractions_become_ints_again() -> None:
    assert type(attended_pairs(PLAIN, 4, 4, "half").value) is int
    assert type(attended_pairs(PLAIN, 3, 3, "half").value) is Fraction


@pytest.mark.parametrize(
    ("layer", "formula"),
    [(PLAIN, "causal_pairs"), (WINDOW, "causal_pairs"), (CHUNK, "chunked_pairs"), (BOTH_WAYS, "full_pairs")],
)
def test_the_formula_of_a_mask_is_named(layer: Attention, formula: str) -> None:
    assert attended_pairs(layer, 4, 4, "mask").formula == formula


@pytest.mark.parametrize(("rule", "pairs"), [("causal", 30), ("full", 50), ("megatron", 25), ("6n-all", 0)])
def test_attention_is_charged_for_the_conventions_pairs(rule: str, pairs: int) -> None:
    """Two sequences of five: 2·15, 2·25, 25²/2 twice."""
    found = work(ATTENTION, setting(rule))
    assert found.flops == 2 * pairs * 4 * (3 + 6)
    assert found.product.inputs["pairs"] == pairs


def test_half_a_pair_is_kept_until_the_batch_is_in() -> None:
    """Batch 1, five positions: 25/2 pairs; times 2·4·9 that is 900."""
    assert work(ATTENTION, setting("megatron", batch=1)).flops == 900


# --- which keys are read ------------------------------------------------------------------------------------------

# layer, convention, phase, keys of a sequence: keys read
KEYS_READ = [
    (PLAIN, "causal", "decode", 9, 9),
    (WINDOW, "causal", "decode", 9, 2),
    (WINDOW, "full", "decode", 9, 9),
    (CHUNK, "causal", "decode", 9, 3),
    (replace(ATTENTION, window=4, chunk=3), "causal", "decode", 9, 3),
    (replace(ATTENTION, window=99), "causal", "decode", 9, 9),
    (WINDOW, "causal", "prefill", 9, 9),  # nine queries reach 2 + 8 back: all there are
    (WINDOW, "causal", "forward", 9, 9),
]


@pytest.mark.parametrize(("layer", "convention", "phase", "keys", "read"), KEYS_READ)
def test_keys_read(layer: Attention, convention: str, phase: str, keys: int, read: int) -> None:
    at = setting(convention, phase=phase, seq=keys, kv_len=keys if phase == "decode" else None)
    queries = 1 if phase == "decode" else keys
    assert work(layer, at).reads == 2 * (queries * 12 + read * 18)


# --- phases -------------------------------------------------------------------------------------------------------

DECODE = setting(phase="decode", kv_len=9)

DECODING: list[tuple[Layer, str, tuple[int, int, int, int]]] = [
    (LINEAR, TOKENS, (2 * 2 * 12, 6, 8, 12)),  # two sequences, a token each
    (LINEAR, FRAMES, (0, 0, 0, 12)),  # the encoder ran once, before
    (LINEAR, SAMPLE, (0, 0, 0, 12)),
    (ATTENTION, TOKENS, (2 * 18 * 4 * 9, 2 * (12 + 9 * 18), 2 * 24, 0)),
    (ATTENTION, FRAMES, (0, 0, 0, 0)),
    (ACROSS, TOKENS, (2 * 14 * 4 * 9, 2 * (12 + 7 * 18), 2 * 24, 0)),  # seven frames, not nine keys
    (EXPERTS, TOKENS, (2 * 4 * 36, 12, 12, 4 * 36)),  # two tokens touch at most four of eight experts
    # the state of 2·15 in fp32, read and written beside what the tokens bring
    (
        LinearAttention(name="x", heads=2, key_dim=3, value_dim=5),
        TOKENS,
        (4 * 2 * 2 * 15, 2 * 2 * 11 + 120, 20 + 120, 0),
    ),
    (LinearAttention(name="x", heads=2, key_dim=3, value_dim=5), FRAMES, (0, 0, 0, 0)),
    (CausalConv(name="x", channels=6, kernel=4), TOKENS, (2 * 2 * 24, 12, 12, 24)),
    (Norm(name="x", dim=3), TOKENS, (0, 6, 6, 3)),
]


@pytest.mark.parametrize(("layer", "stream", "expected"), DECODING)
def test_decode(layer: Layer, stream: str, expected: tuple[int, int, int, int]) -> None:
    assert figures(work(layer, DECODE, stream)) == expected


def test_keys_of_decode_are_seq_where_no_length_is_given() -> None:
    assert figures(work(ATTENTION, setting(phase="decode", seq=9))) == figures(work(ATTENTION, DECODE))


@pytest.mark.parametrize(("phase", "positions"), [("forward", 10), ("train", 10), ("prefill", 2), ("decode", 2)])
def test_positions_of_the_head(phase: str, positions: int) -> None:
    """Prefill makes logits for the last position of each of two sequences."""
    head = replace(LINEAR, role="lm_head")
    assert figures(work(head, setting(phase=phase))) == (positions * 24, positions * 3, positions * 4, 12)


@pytest.mark.parametrize("role", ["matmul", "router", "lora"])
def test_prefill_runs_all_positions_elsewhere(role: str) -> None:
    assert work(replace(LINEAR, role=role), setting(phase="prefill")).flops == 240


# phase, stream: queries and keys of one sample (five positions, nine keys cached, seven frames)
POSITIONS = [
    ("forward", TOKENS, 5, 5),
    ("train", TOKENS, 5, 5),
    ("prefill", TOKENS, 5, 5),
    ("decode", TOKENS, 1, 9),
    ("forward", FRAMES, 7, 7),
    ("decode", FRAMES, 0, 7),
    ("forward", SAMPLE, 1, 1),
    ("decode", SAMPLE, 0, 1),
]


@pytest.mark.parametrize(("phase", "stream", "queries", "keys"), POSITIONS)
def test_positions_of_streams(phase: str, stream: str, queries: int, keys: int) -> None:
    at = setting(phase=phase, kv_len=9)
    assert (at.queries(stream), at.keys(stream), at.tokens(stream)) == (queries, keys, 2 * queries)


# --- conventions --------------------------------------------------------------------------------------------------


def test_routers_count_where_the_convention_says_so() -> None:
    router = replace(LINEAR, role="router")
    assert work(router, setting("causal")).flops == 240
    assert figures(work(router, setting("megatron"))) == (0, 30, 40, 12)  # moved, not counted


def test_a_lookup_charged_as_a_matmul() -> None:
    """veRL: 2·10·100·3 for a table of 100 rows of 3; positions and types are looked up for nothing."""
    table = Embedding(name="x", num=100, dim=3)
    assert figures(work(table, setting("verl"))) == (6000, 30, 30, 0)
    assert work(replace(table, role="position"), setting("verl")).flops == 0


TABLE = Embedding(name="x", num=100, dim=3)
HEAD = Linear(name="x", in_features=3, out_features=100, role="lm_head", tied=True)

# layer: parameters in N under palm (all embeddings), palm-noemb (output only), 6n (none, all experts)
CHARGED = [
    (LINEAR, 12, 12, 12),
    (replace(LINEAR, bias=True), 16, 16, 16),
    (TABLE, 300, 0, 0),
    (HEAD, 0, 300, 0),  # tied: the table stands for it, unless the table is left out and the product is not
    (replace(HEAD, bias=True), 100, 400, 100),
    (replace(HEAD, tied=False), 300, 300, 300),
    (EXPERTS, 2 * 36, 2 * 36, 8 * 36),
    (Norm(name="x", dim=3), 3, 3, 3),
    (Opaque(name="x", total=100, active=30), 30, 30, 100),
]


@pytest.mark.parametrize(("layer", "all_", "output", "none"), CHARGED)
def test_charged_parameters(layer: Layer, all_: int, output: int, none: int) -> None:
    found = [charged_params(layer, find_convention(name)) for name in ("palm", "palm-noemb", "6n")]
    assert found == [all_, output, none]
    flops = [work(layer, setting(name)).flops for name in ("palm", "palm-noemb", "6n")]
    assert flops == [2 * n * 10 for n in found]


def test_what_is_charged_nothing_names_no_formula() -> None:
    assert work(TABLE, setting("6n")).formula == ""
    assert work(LINEAR, setting("6n")).formula == "ideal_flops"


def test_parameters_are_charged_for_positions_of_the_main_stream() -> None:
    """An encoder's weights times the decoder's ten tokens, though fourteen frames pass them."""
    assert work(LINEAR, setting("palm"), FRAMES).flops == 2 * 12 * 10
    assert work(LINEAR, setting("causal"), FRAMES).flops == 2 * 12 * 14


@pytest.mark.parametrize(
    "layer", [ATTENTION, LinearAttention(name="x", heads=2, key_dim=3, value_dim=5), Similarity(name="x", dim=3)]
)
def test_products_of_activations_are_counted_in_every_basis(layer: Layer) -> None:
    assert work(layer, setting("palm")).flops == work(layer, setting("full")).flops > 0


# --- small parts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "width"),
    [
        (Norm(name="x", dim=3), 3),
        (Norm(name="x", dim=3, per=5), 15),
        (Elementwise(name="x", op="a", width=7, saved=21), 7),
        (Parameter(name="x", shape=(4,)), 0),
        (LINEAR, 0),
    ],
)
def test_passive_width(layer: Layer, width: int) -> None:
    assert passive_width(layer) == width


def test_a_product_remembers_its_formula_and_numbers() -> None:
    def third(a: int) -> Fraction:
        return Fraction(a, 3)

    found = product(third, a=6)
    assert (found.formula, found.inputs, found.value) == ("third", {"a": 6}, 2)
    assert type(found.value) is int
    assert product(third, a=1).value == Fraction(1, 3)


@given(st.integers(1, 30), st.integers(1, 5), st.integers(1, 40))
def test_flops_follow_the_batch_and_the_reads_of_weights_do_not(seq: int, batch: int, width: int) -> None:
    layer = Linear(name="x", in_features=width, out_features=3)
    one, many = (work(layer, setting(seq=seq, batch=n)) for n in (1, batch))
    assert (many.flops, many.reads, many.writes) == (batch * one.flops, batch * one.reads, batch * one.writes)
    assert many.weights == one.weights


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 6), st.integers(1, 6))
def test_no_more_experts_are_read_than_there_are_or_are_asked_for(num: int, k: int, seq: int, batch: int) -> None:
    layer = Experts(name="x", num=num, top_k=k, hidden=3, ffn=4)
    touched, rest = divmod(work(layer, setting(seq=seq, batch=batch)).weights, layer.params_per_expert)
    assert rest == 0
    assert touched == (num if seq * batch * min(k, num) >= num else seq * batch * min(k, num))
