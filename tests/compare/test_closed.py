"""Formulas of a training step: their numbers against the sources, their causes against convention full."""

from __future__ import annotations

from fractions import Fraction

import pytest

from suanli.compare.closed import closed, right_step
from suanli.compare.peers import FORMULAS, PEERS
from suanli.formulas.electra import MASKED, electra_train_flops
from suanli.nouns.workload import Workload
from suanli.readers.model import read_model

STEP = Workload(phase="train", seq=128)

# get_train_flops(batch, 1) of TransformerHparams(h, l, s=, v=, output_frac=) in google-research/electra at 62e478a
SCRIPT = [
    (1, 128, 768, 12, 30522, MASKED, Fraction(58_860_278_640)),
    (1, 128, 768, 12, 50257, Fraction(1), Fraction(84_845_622_016)),
    (3, 77, 768, 12, 30522, MASKED, Fraction("105285699028.125")),
]


@pytest.mark.parametrize(("batch", "seq", "hidden", "layers", "vocab", "predicted", "expected"), SCRIPT)
def test_the_electra_script(
    batch: int, seq: int, hidden: int, layers: int, vocab: int, predicted: Fraction, expected: Fraction
) -> None:
    found = electra_train_flops(batch, seq, layers, hidden, 4 * hidden, hidden // 64, 64, vocab, predicted)
    assert found == expected


# model, formula, its number, over the right one; ratios of the reference study where it has them
NUMBERS = [
    ("bert-base", "megatron", 84_138_393_600, 0.9841),
    ("bert-base", "electra", 58_860_278_640, 0.6884),
    ("gpt2", "electra", 84_845_622_016, 0.8776),
    ("gpt2", "hf-trainer", 6 * 128 * (124_439_808 - 39_383_808), 0.6756),
    ("bert-base", "6nd", 6 * 128 * 109_514_298, 0.9837),
    ("mixtral-8x7b", "hf-trainer", 6 * 128 * (46_702_792_704 - 131_072_000), 3.6435),
    ("t5-small", "hf-trainer", 33_835_450_368, 0.7010),
]


@pytest.mark.parametrize(("model", "peer", "flops", "ratio"), NUMBERS)
def test_numbers(model: str, peer: str, flops: int, ratio: float) -> None:
    arch = read_model(model)
    found = closed(PEERS[peer], arch, STEP)
    assert found.flops == flops
    assert flops / right_step(arch, STEP).model_flops == pytest.approx(ratio, abs=5e-5)


@pytest.mark.parametrize("model", ["bert-base", "gpt2", "llama-3.1-8b", "mixtral-8x7b", "t5-small", "gemma-2-9b"])
@pytest.mark.parametrize("peer", FORMULAS)
def test_causes_are_the_whole_difference(model: str, peer: str) -> None:
    arch = read_model(model)
    found = closed(PEERS[peer], arch, STEP)
    if found.flops is None:
        assert found.reason == f"the formula is for an encoder or a decoder of text; {model} is none that it describes"
        return
    difference = found.flops - right_step(arch, STEP).model_flops
    assert sum(cause.flops for cause in found.causes) == difference
    assert found.unexplained == 0


def test_causes_by_name() -> None:
    found = closed(PEERS["megatron"], read_model("mixtral-8x7b"), STEP)
    assert [(each.cause, each.flops) for each in found.causes] == [
        ("attention by half of the pairs", -3 * 32 * 2 * 128 * 128 * 32 * 128),  # half of 4·S²·H·d, three passes
        ("router left out", -3 * 32 * 2 * 128 * 4096 * 8),
    ]


def test_elements_of_a_picture_taken_for_tokens() -> None:
    found = closed(PEERS["hf-trainer"], read_model("resnet-152"), Workload(phase="train"), 150_528)
    assert found.flops == 6 * 150_528 * 60_192_808
    assert found.causes[0].cause == "elements of the input (150,528) taken for tokens"
    assert found.unexplained == 0


def test_a_formula_that_does_not_know_the_model_says_so() -> None:
    for name, what in (("megatron", "a transformer"), ("electra", "an encoder or a decoder of text")):
        found = closed(PEERS[name], read_model("resnet-152"), STEP)
        assert found.flops is None
        assert found.reason == f"the formula is for {what}; resnet-152 is none that it describes"
    assert closed(PEERS["hf-trainer"], read_model("resnet-152"), STEP).reason == (
        "the elements of its main input are known only where the model is built"
    )
