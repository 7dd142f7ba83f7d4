"""Pins as typed: what they mean, and one message for everything that is wrong with them."""

from __future__ import annotations

import pytest

from suanli.errors import InputError
from suanli.plan.limits import Cuts, Space
from suanli.plan.pins import read_pins

CUTS = Cuts(layers=126, heads=(("heads", 128), ("columns", 53248)), groups=(8,))
SPACE = Space(cuts=CUTS, gpus=(16384,), global_batch=2048, seq=8192, per_node=8)
MIXTURE = Space(cuts=Cuts(layers=61, heads=(("heads", 128),), experts=(256,), expert_widths=(2048,)), gpus=(2048,),
                global_batch=15360, seq=4096, per_node=8)  # fmt: skip

MEANS = [
    (None, {}),
    ("tp=8,pp=16", {"tp": (8,), "pp": (16,)}),
    ("tp=1..8", {"tp": (1, 2, 4, 8)}),
    ("tp=8..32", {"tp": (8, 16, 32)}),  # past a node where asked
    ("micro_batch=1,2,zero=2", {"micro_batch": (1, 2), "zero": (2,)}),
    ("micro-batch=2, ZeRO=1", {"micro_batch": (2,), "zero": (1,)}),
    ("recompute=none,full", {"recompute": ("none", "full")}),
    ("recompute=Full", {"recompute": ("full",)}),
    ("sp=yes", {"sp": (True,)}),
    ("sp=false,true", {"sp": (False, True)}),
    ("schedule=interleaved,vpp=2..7", {"schedule": ("interleaved",), "vpp": (2, 3, 4, 5, 6, 7)}),
    ({"tp": 8, "pp": [8, 16], "sp": True}, {"tp": (8,), "pp": (8, 16), "sp": (True,)}),
    ({"zero": range(2)}, {"zero": (0, 1)}),
    ("dp=128", {"dp": (128,)}),
]


@pytest.mark.parametrize(("given", "expected"), MEANS, ids=[str(each[0]) for each in MEANS])
def test_pins_mean(given, expected):
    assert read_pins(given, SPACE) == expected


WRONG = {
    "tp=7": "tp cannot be so in --pin tp; got 7: 128 heads cannot be cut into 7; expected a possible value; "
    "nearest: 4, 8.",
    "pp=256": "pp cannot be so in --pin pp; got 256: 126 layers are fewer than 256 stages; expected a possible value; "
    "nearest: 32, 64.",
    "cp=3": "cp cannot be so in --pin cp; got 3: 8,192 positions cannot be cut into 2 · 3 equal pieces; "
    "expected a possible value; nearest: 2, 4.",
    "ep=8": "ep cannot be so in --pin ep; got 8: the model has no routed experts; expected a possible value; "
    "nearest: 1.",
    "micro_batch=3": "micro_batch cannot be so in --pin micro_batch; got 3: 3 does not divide the global batch of "
    "2,048 sequences; expected a possible value; nearest: 2, 4.",
    "tp=0": "tp cannot be so in --pin tp; got 0: it is nothing; expected a possible value; nearest: 1, 2.",
    "tp=9..15": "tp cannot be so in --pin tp; got a range that holds no possible value; expected a possible value; "
    "nearest: 1, 2.",
    "tq=8": "unknown pin 'tq' in --pin; expected one of tp, pp, vpp, dp, cp, ep, etp, micro_batch, zero, shards, "
    "offload, recompute, sp, schedule, recompute_layers; nearest: tp, etp.",
    "shards=few": "shards cannot be read in --pin; got 'few'; expected a whole number or a range like 1..8, or all.",
    "shards=3": "shards cannot be so in --pin shards; got 3: 3 does not divide 16,384 GPUs; expected a possible value; "
    "nearest: 2, 4.",
    "offload=maybe": "offload cannot be read in --pin; got 'maybe'; expected yes or no.",
    "recompute=blocks": "unknown recompute 'blocks' in --pin recompute; expected one of none, selective, block, "
    "full; nearest: block.",
    "recompute_layers=127": "recompute_layers cannot be so in --pin recompute_layers; got 127: 126 layers are fewer "
    "than 127; expected a possible value; nearest: 125, 126.",
    "tp": "a pin cannot be read in --pin; got 'tp'; expected name=value, like tp=8 or pp=1..16 or micro_batch=1,2.",
    "tp=eight": "tp cannot be read in --pin; got 'eight'; expected a whole number or a range like 1..8.",
    "sp=maybe": "sp cannot be read in --pin; got 'maybe'; expected yes or no.",
    "zero=4": "unknown zero 4 in --pin zero; expected one of 0, 1, 2, 3.",
    "schedule=1f1": "unknown schedule '1f1' in --pin schedule; expected one of 1f1b, interleaved, zero-bubble, "
    "dualpipe; nearest: 1f1b.",
}


@pytest.mark.parametrize(("given", "message"), WRONG.items(), ids=list(WRONG))
def test_a_pin_that_cannot_be_says_why_and_what_can(given, message):
    with pytest.raises(InputError) as caught:
        read_pins(given, SPACE)
    assert str(caught.value) == message


def test_all_pins_that_cannot_be_are_named_together():
    with pytest.raises(InputError) as caught:
        read_pins("tp=7,pp=256,ep=3", SPACE)
    assert [fault.where for fault in caught.value.faults] == ["--pin tp", "--pin pp", "--pin ep"]


@pytest.mark.parametrize("given", ["ep=64,etp=1", "ep=64,pp=16,tp=1"])
def test_pins_of_a_mixture(given):
    assert read_pins(given, MIXTURE)["ep"] == (64,)


@pytest.mark.parametrize(
    ("given", "why"), [("ep=3", "256 experts cannot be spread over 3 ranks"),
                       ("etp=3", "experts of width 2,048 cannot be cut into 3")],
)  # fmt: skip
def test_pins_a_mixture_cannot_have(given, why):
    with pytest.raises(InputError, match=why):
        read_pins(given, MIXTURE)


@pytest.mark.parametrize("given", ["=8", "tp==", "tp=1,,2", "tp=" + "9" * 100, "\x00=1", "tp=-8", "tp=1.5", "tp=8..1"])
def test_careless_pins_are_refused_in_words(given):
    with pytest.raises(InputError):
        read_pins(given, SPACE)


NOT_PINS = [
    (5, "pins cannot be read in --pin; got 5; expected a text like tp=8,pp=1..16, or a mapping of names to values."),
    (
        [1, 2],
        "pins cannot be read in --pin; got [1, 2]; expected a text like tp=8,pp=1..16, or a mapping of names to "
        "values.",
    ),
    ({"sp": [1]}, "sp cannot be read in --pin; got 1; expected yes or no."),
    ({"sp": 0}, "sp cannot be read in --pin; got 0; expected yes or no."),
    ({"sp": []}, "sp has no value in --pin sp; got nothing; expected a value, or several."),
    ({"tp": ()}, "tp has no value in --pin tp; got nothing; expected a value, or several."),
    ({"tp": True}, "tp cannot be read in --pin; got True; expected a whole number or a range like 1..8."),
]


@pytest.mark.parametrize(("given", "message"), NOT_PINS, ids=[str(each[0]) for each in NOT_PINS])
def test_values_of_python_that_are_no_pins(given, message):
    with pytest.raises(InputError) as caught:
        read_pins(given, SPACE)
    assert str(caught.value) == message


def test_one_gpu_is_not_several():
    one = Space(cuts=CUTS, gpus=(1,), global_batch=8, seq=128, per_node=8)
    with pytest.raises(InputError, match="2 does not divide 1 GPU;"):
        read_pins("dp=2", one)
